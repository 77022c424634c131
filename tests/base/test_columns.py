"""Names, units and digits: what people see is what was given, and nothing else is taken."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.checks import Faults
from pzos.base.columns import Column, as_columns, read_columns


def test_one_unit_and_one_number_of_digits_are_for_all() -> None:
    named = pzos.Columns(["centre", "ring"], units="EUR", digits=2)
    assert named.of(2) == (Column("centre", "EUR", 2), Column("ring", "EUR", 2))
    assert pzos.Columns(units=["EUR", "h"], digits=[2, 0]).of(2) == (Column("", "EUR", 2), Column("", "h", 0))
    assert pzos.Columns(units="h").of(3) == (Column("", "h"),) * 3
    assert pzos.Columns(["a"]).of(2) == (Column("a"), Column())  # more entries than names
    assert pzos.Columns(["a", "b"]).of(1) == (Column("a"),)
    assert not pzos.Columns()
    assert pzos.Columns(digits=2)


@pytest.mark.parametrize(
    ("column", "label", "head"),
    [
        (Column("toll", "EUR"), "toll [EUR]", "x.toll [EUR]"),
        (Column("toll"), "toll", "x.toll"),
        (Column("", "EUR"), "x[3] [EUR]", "x.3 [EUR]"),
        (Column(), "x[3]", "x3"),
    ],
)
def test_what_is_not_named_has_its_number(column: Column, label: str, head: str) -> None:
    assert column.label("x", 3) == label
    assert column.head("x", 3) == head


@pytest.mark.parametrize(
    ("digits", "value", "text"),
    [(2, 1234.567, "1,234.57"), (0, 2.4, "2"), (None, 1234567.8, "1.23457e+06"), (1, -0.01, "0.0")],
)
def test_numbers_are_rounded_for_people(digits: int | None, value: float, text: str) -> None:
    assert Column(digits=digits).shown(value) == text


def test_a_vector_is_read_with_names_units_and_digits() -> None:
    y = np.array([1.0, 2.25])
    assert pzos.Columns().in_words(y) == "1, 2.25"
    assert pzos.Columns(["tram", "bus"], "1/h", 1).in_words(y) == "tram 1.0 1/h, bus 2.2 1/h"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": "price"}, "names = 'price': expected one name for each entry"),
        ({"names": ["a", "a"]}, "each name once"),
        ({"names": ["a\n"]}, "lines of text"),
        ({"names": [1]}, "names = 1: expected lines of text"),
        ({"digits": 2.0}, "digits = 2.0: expected whole numbers from 0 to 15"),
        ({"digits": -1}, "digits = -1"),
        ({"digits": True}, "digits = True"),
        ({"names": ["a", "b"], "units": ["h"]}, "2 names, 1 units: expected as many of each"),
    ],
)
def test_what_is_no_name_is_refused(given: dict, said: str) -> None:
    with pytest.raises(pzos.InvalidInput, match=said.replace("[", r"\[")):
        pzos.Columns(**given)


def test_columns_are_given_as_names_pairs_or_a_table() -> None:
    faults = Faults("test")
    same = pzos.Columns(["a", "b"], ["EUR", ""]).of(2)
    for given in (
        ["a", "b"],
        [("a", "EUR"), "b"],
        {"names": ["a", "b"], "units": ["EUR", ""]},
        pzos.Columns(["a", "b"]),
    ):
        assert [column.name for column in as_columns(faults, "x", given, 2).of(2)] == ["a", "b"]
    assert as_columns(faults, "x", [["a", "EUR"], ["b", ""]]).of(2) == same
    assert faults.messages == []
    for wrong in (3, "ab", [3], {"name": []}, [("a", "b", "c")]):
        as_columns(faults, "x", wrong)
    assert len(faults.messages) == 5
    as_columns(faults, "decisions", ["a"], 2)
    assert faults.messages[-1].startswith("decisions = Columns(a): expected 2 names")


def test_what_a_file_keeps_comes_back_and_anything_else_is_nothing() -> None:
    named = pzos.Columns(["a", "b"], "EUR", 2)
    assert read_columns(named.kept()).of(3) == named.of(3)
    assert read_columns(pzos.Columns(units="h").kept()).of(2) == (Column("", "h"),) * 2
    assert pzos.Columns().kept() is None
    assert pzos.Columns([f"{'long' * 100} {at}" for at in range(1000)]).kept() is None  # a header is short
    row = ["a", "EUR", 2]
    for hostile in (None, 3, [], {"each": 3}, {"each": [["a", 3, 2]], "others": row}, {"each": [row], "others": None},
                    {"each": [["a"] * 9], "others": row}, {"each": ["ab"], "others": row}):  # fmt: skip
        assert not read_columns(hostile)


def test_names_belong_to_the_problem_and_to_its_answers() -> None:
    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    with pytest.raises(pzos.InvalidInput, match=r"decisions = .*expected 2 names"):
        pzos.Problem(leader, abs, [1.0, 2.0], decisions=["one"])
    named = pzos.Problem(leader, abs, [1.0, 2.0], decisions=["one", "two"], responses=pzos.Columns(units="h"))
    other = named.with_leader(leader)
    table = pzos.solve(other, pzos.PZOS(0.05, 0.1), steps=1).answers
    assert [column.name for column in table.decisions] == ["one", "two"]
    assert [column.unit for column in table.responses] == ["h", "h"]
