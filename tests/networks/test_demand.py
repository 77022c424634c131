"""Trips and classes of travellers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    UserClass,
)


def test_demand_adds_up_and_stays_on_the_road() -> None:
    demand = Demand.from_list([0, 0, 1, 2, 0], [1, 1, 1, 0, 2], [3, 4, 9, 0, 5])
    assert demand.matrix(3).tolist() == [[0, 7, 5], [0, 0, 0], [0, 0, 0]]
    assert demand.total == 12
    assert demand.scaled(0.5).total == 6
    assert Demand.from_matrix(demand.matrix(3)).matrix(3).tolist() == demand.matrix(3).tolist()
    for bad, expected in (
        (lambda: Demand.from_matrix([[1, 2]]), "square"),
        (lambda: Demand.from_list([0], [1], [-1]), r"trips\[0\]"),
        (lambda: Demand.from_list([0], [1, 2], [1]), "equal length"),
        (lambda: Demand.from_list([-1], [1], [1]), "node numbers"),
        (lambda: demand.scaled(0), "factor"),
        (lambda: UserClass(demand, 0.0), "value_of_time"),
    ):
        with pytest.raises(InvalidInput, match=expected):
            bad()


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=12)


@given(PAIRS)
def test_a_list_and_its_table_are_one_demand(pairs: list[tuple[int, int, int]]) -> None:
    origin, end, trips = np.array(pairs).T
    table = np.zeros((6, 6))
    np.add.at(table, (origin, end), trips)
    np.fill_diagonal(table, 0.0)
    listed, tabled = Demand.from_list(origin, end, trips), Demand.from_matrix(table)
    np.testing.assert_array_equal(listed.matrix(6), table)
    for name in ("origin", "destination", "trips"):
        np.testing.assert_array_equal(getattr(listed, name), getattr(tabled, name))
    assert listed.total == table.sum()
    assert listed.highest == max([0, *np.argwhere(table > 0).ravel().tolist()])
    assert np.all(np.diff(listed.origin) >= 0)  # the solver reads them by origin


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: Demand.from_matrix([[1, 2]]), "matrix = array([[1., 2.]]): expected a square table"),
        (
            lambda: Demand.from_list([0], [1], [np.nan]),
            "trips[0] = nan: expected a finite number >= 0",
        ),
        (lambda: Demand.from_matrix("x"), "matrix = 'x': expected an array of numbers"),
        (lambda: Demand.from_list([0], [1], "x"), "trips = 'x': expected an array of numbers"),
        (lambda: Demand.from_list(["x"], [1.5], [1]), "destination[0] = 1.5: expected a whole number"),
        (lambda: Demand.from_list([0], [1], [1]).scaled(-2), "factor = -2: expected a positive number; try 0.5"),
        (lambda: Demand.from_list([0], [1], [1]).scaled(np.inf), "factor = inf: expected a positive number"),
        (lambda: UserClass("all of them"), "demand = 'all of them': expected a Demand; use Demand.from_matrix"),
        (lambda: UserClass(Demand.from_list([0], [1], [1]), "much"), "value_of_time = 'much': expected a positive"),
    ],
)
def test_messages(build, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build()
    assert expected in str(caught.value)


def test_both_faults_of_a_class_are_told_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)UserClass: 2 faults.*demand.*value_of_time"):
        UserClass(None, -1.0)  # type: ignore[arg-type]
