"""Trips and classes of travellers."""

from __future__ import annotations

import pytest

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
