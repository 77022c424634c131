"""What arguments must be: constraints as data, every fault at once, in the words users see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pzos.base.checks import (
    Faults,
    FileFaults,
    Must,
    aligned,
    as_rows,
    at_least,
    check_entries,
    check_fields,
    checked,
    frozen_array,
    frozen_bounds,
    frozen_indices,
    frozen_numbers,
    frozen_vector,
    instance_of,
    is_whole,
    not_finite,
    note_fields,
    number,
    one_of,
    positive,
    read_lines,
    require,
    set_fields,
    shaped_rows,
    shown,
    whole,
)
from pzos.base.errors import InvalidInput

#: What may stand where a number is expected and is none; none of these may raise anything but InvalidInput.
ODD: tuple[Any, ...] = (
    None,
    "1",
    b"1",
    True,
    np.True_,
    1j,
    np.complex128(1.0),
    [1.0],
    np.ones(1),
    np.ones((2, 2)),
    [[1], [1, 2]],
    {},
    object(),
    int,
    np.array("1"),
    np.datetime64("2020-01-01"),
    float("nan"),
)
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=200),
    st.binary(max_size=200),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.fractions(),
    st.lists(st.floats(), max_size=20),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=5),
    arrays(np.float64, array_shapes(max_dims=3, max_side=4)),
)


def noted(must: Must, value: Any) -> list[str]:
    faults = Faults("here")
    assert must.note(faults, "thing", value) is (not faults.messages)
    return faults.messages


def test_faults_are_collected() -> None:
    faults = Faults("thing")
    assert faults.check(True, "a", 1, "x", "y")
    assert faults.check(np.True_, "a", 1, "x", "y")
    faults.raise_if_any()
    assert faults.check(False, "size", -1, "a positive number", "try 1") is False
    with pytest.raises(InvalidInput, match=r"^thing: size = -1: expected a positive number; try 1$"):
        faults.raise_if_any()
    faults.add("in words of its own")
    with pytest.raises(InvalidInput, match=r"^thing: 2 faults\n  - size = -1: .*\n  - in words of its own$"):
        faults.raise_if_any()


def test_values_are_shown_in_short() -> None:
    assert shown(np.zeros((100, 3))) == "array of shape (100, 3), dtype float64"
    assert shown([1, 2]) == "[1, 2]"
    assert len(shown("x" * 500)) == 60
    assert "\n" not in shown(np.zeros((2, 3)))


@given(ANYTHING, st.integers(10, 80))
def test_whatever_is_shown_fits_on_one_short_line(value: Any, limit: int) -> None:
    text = shown(value, limit)
    assert len(text) <= limit
    assert "\n" not in text


@given(st.integers(), st.integers(-5, 5))
def test_whole_numbers_of_any_kind(value: int, least: int) -> None:
    assert is_whole(value, least) is (value >= least)
    assert is_whole(value, least, least + 3) is (least <= value <= least + 3)
    if -(2**63) <= value < 2**63:
        assert is_whole(np.int64(value), least) is is_whole(value, least)


@pytest.mark.parametrize("value", [*ODD, 1.0, np.float64(2.0), Fraction(2)])
def test_what_is_no_whole_number(value: Any) -> None:
    assert not is_whole(value)
    assert noted(whole(0, "try 1"), value) == [f"thing = {shown(value)}: expected a whole number, 0 or more; try 1"]


def test_whole_numbers_within_a_range_say_so() -> None:
    assert noted(whole(1, "try 2", most=3), 3) == []
    assert noted(whole(1, "try 2", most=3), 4) == ["thing = 4: expected a whole number from 1 to 3; try 2"]
    assert noted(whole(1, "try 2", most=3, expected="a day"), 0) == ["thing = 0: expected a day; try 2"]
    assert not is_whole(np.uint8(255), 0, 254), "no overflow in the kind of the value"


@pytest.mark.parametrize("value", ODD)
def test_what_is_no_number(value: Any) -> None:
    assert noted(number(lambda _: True, "a number", "try 1"), value) == [
        f"thing = {shown(value)}: expected a number; try 1"
    ]
    assert noted(positive("try 1"), value) == [f"thing = {shown(value)}: expected a positive number; try 1"]


@given(st.floats())
def test_numbers_with_a_bound(value: float) -> None:
    assert (noted(positive("try 1"), value) == []) is (isfinite(value) and value > 0)
    assert (noted(at_least(2, "2 or more", "try 2"), value) == []) is (isfinite(value) and value >= 2)
    unbounded = number(lambda v: v > 0, "above 0", "try 1", finite=False)
    assert (noted(unbounded, value) == []) is (value > 0)


@pytest.mark.parametrize("value", [3, np.float32(0.5), np.int8(1), np.array(2.0), Fraction(1, 2)])
def test_numbers_of_any_kind(value: Any) -> None:
    assert noted(positive("try 1"), value) == []


@given(ANYTHING)
def test_no_constraint_ever_raises(value: Any) -> None:
    constraints = (
        whole(1, "try 1"),
        positive("try 1"),
        at_least(0, "0 or more", "try 1"),
        one_of(("min", "max", None, 3)),
        instance_of(str, "text", "quote it"),
        positive("try 1").or_none(),
    )
    for must in constraints:
        messages = noted(must, value)
        assert messages in ([], [f"thing = {shown(value)}: expected {must.expected}; {must.remedy}"])


def test_one_of_a_few() -> None:
    must = one_of(("min", "max"), "say what to do")
    assert noted(must, "min") == noted(must, np.str_("max")) == []
    assert noted(must, "up") == ["thing = 'up': expected 'min' or 'max'; say what to do"]
    assert one_of(("a", "b", "c")).expected == "'a', 'b' or 'c'"
    assert one_of(("a",)).expected == "'a'"
    assert one_of((None, "a"), expected="a, or nothing").expected == "a, or nothing"
    assert noted(one_of((None, "a")), None) == []
    assert noted(must, np.array(["min", "max"])) != [], "an array is no word, and has no truth value"


def test_none_may_be_allowed() -> None:
    must = whole(1, "try 1").or_none()
    assert noted(must, None) == noted(must, 1) == []
    assert noted(must, 0) == noted(whole(1, "try 1"), 0)


def test_one_condition_is_required_at_once() -> None:
    require(True, "assign", "gap", 2.0, "a number below 1", "try 0.5")
    with pytest.raises(InvalidInput, match=r"^assign: gap = 2\.0: expected a number below 1; try 0\.5$") as caught:
        require(np.bool_(False), "assign", "gap", 2.0, "a number below 1", "try 0.5")
    assert len(caught.value.faults) == 1


def test_one_argument_is_required_at_once() -> None:
    must = instance_of(str, "text", "quote it")
    must.require("door", "name", "x")
    with pytest.raises(InvalidInput, match=r"^door: name = 5: expected text; quote it$"):
        must.require("door", "name", 5)


@dataclass(frozen=True)
class Rule:
    attempts: int = checked(whole(1, "try 3"), default=3)
    wait: float = checked(at_least(0, "seconds, 0 or more", "try wait=1.0"), default=1.0)
    kind: str | None = checked(one_of(("linear", "growing"), "choose").or_none(), default=None)
    remark: Any = None

    def __post_init__(self) -> None:
        check_fields(self)


def test_fields_say_what_they_must_be() -> None:
    rule = Rule(2, 0.5, "linear", remark=object())
    assert (rule.attempts, rule.wait, rule.kind) == (2, 0.5, "linear")
    with pytest.raises(InvalidInput, match=r"^Rule: attempts = 0: expected a whole number, 1 or more; try 3$"):
        Rule(0)
    with pytest.raises(InvalidInput) as caught:
        Rule(0.5, -1.0, "none")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "Rule: 3 faults\n"
        "  - attempts = 0.5: expected a whole number, 1 or more; try 3\n"
        "  - wait = -1.0: expected seconds, 0 or more; try wait=1.0\n"
        "  - kind = 'none': expected 'linear' or 'growing'; choose"
    )
    with pytest.raises(InvalidInput, match="wait = -2"):
        replace(rule, wait=-2.0)


def test_fields_are_noted_beside_other_faults() -> None:
    faults = Faults("both")
    faults.add("something across fields")
    note_fields(faults, Rule())
    assert faults.messages == ["something across fields"]
    broken = Rule()
    object.__setattr__(broken, "attempts", 0)
    note_fields(faults, broken)
    assert faults.messages[1:] == ["attempts = 0: expected a whole number, 1 or more; try 3"]


FINITE = st.floats(-1e6, 1e6)


@given(arrays(np.float64, array_shapes(max_dims=3, max_side=4), elements=FINITE))
def test_frozen_arrays_are_copies_that_cannot_be_written(given_array: np.ndarray) -> None:
    faults = Faults("here")
    for layout in (given_array, np.asfortranarray(given_array), given_array.tolist()):
        found = frozen_array(faults, "a", layout)
        assert found is not None
        np.testing.assert_array_equal(found, given_array)
        assert found.flags.c_contiguous
        assert not found.flags.writeable
        assert not np.shares_memory(found, given_array)
    assert faults.messages == []


@pytest.mark.parametrize("value", ["a", [[1], [1, 2]], object(), ["x", 1.0]])
def test_what_is_no_array_of_numbers(value: Any) -> None:
    faults = Faults("here")
    assert frozen_array(faults, "a", value) is None
    assert frozen_numbers(faults, "b", value).shape == ()
    assert frozen_vector(faults, "c", value, None, minimum=0.0, strict=True) is None
    assert [message.split(" = ")[0] for message in faults.messages] == ["a", "b", "c"]


def test_the_first_bad_entry_is_named_with_its_place() -> None:
    def message(array: Any, good: Any) -> list[str]:
        faults = Faults("here")
        check_entries(faults, "a", np.asarray(array, dtype=float), np.asarray(good), "a number >= 0")
        return faults.messages

    assert message([1.0, 2.0], [True, True]) == []
    assert message([1.0, -2.0], [True, False]) == ["a[1] = -2.0: expected a number >= 0; correct it"]
    assert message([[1.0, -2.0], [3.0, -4.0]], [[True, False], [True, False]]) == [
        "a[0, 1] = -2.0: expected a number >= 0; correct it (2 entries are wrong)"
    ]
    assert message(-1.0, False) == ["a = -1.0: expected a number >= 0; correct it"]


@pytest.mark.parametrize(
    ("value", "size", "strict", "words"),
    [
        ([1.0, 2.0], 2, True, None),
        ([0.0], None, False, None),
        ([0.0], None, True, "v[0] = 0.0: expected a finite number > 0; correct it"),
        ([1.0, np.inf], 2, True, "v[1] = inf: expected a finite number > 0; correct it"),
        ([-1.0, np.nan], 2, False, "v[0] = -1.0: expected a finite number >= 0; correct it (2 entries are wrong)"),
        ([1.0], 2, True, "v = array([1.]): expected 2 entries, not 1; all data must have one length"),
        ([[1.0]], None, True, "v = array([[1.]]): expected a vector; give one number each"),
        ([], None, True, "v = array([], dtype=float64): expected a vector; give one number each"),
    ],
)
def test_vectors_with_a_least_entry(value: Any, size: int | None, strict: bool, words: str | None) -> None:
    faults = Faults("here")
    found = frozen_vector(faults, "v", value, size, minimum=0.0, strict=strict)
    assert faults.messages == ([] if words is None else [words])
    if words is None:
        assert found is not None
        assert found.tolist() == value


@given(arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False)))
def test_bounds_are_kept_if_they_are_in_order(pair: np.ndarray) -> None:
    lower, upper = np.sort(pair, axis=0)
    closed = np.any(lower == np.inf) or np.any(upper == -np.inf)
    if closed:
        with pytest.raises(InvalidInput, match="where a side is open"):
            frozen_bounds("Box", lower, upper)
        return
    below, above = frozen_bounds("Box", lower, upper)
    np.testing.assert_array_equal(below, lower)
    np.testing.assert_array_equal(above, upper)
    assert not below.flags.writeable
    if np.any(lower < upper):
        with pytest.raises(InvalidInput, match=r"upper >= lower in every entry; swap the bounds|side is open"):
            frozen_bounds("Box", upper, lower)


def test_all_faults_of_bounds_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"^Box: 2 faults\n  - lower = 'a': .*\n  - upper = .*flatten it$"):
        frozen_bounds("Box", "a", np.zeros((2, 2)))
    with pytest.raises(InvalidInput, match=r"^Box: 3 faults\n  - lower = .*\n  - upper = .*\n  - upper = .*2 entries"):
        frozen_bounds("Box", [np.nan, 0.0], [1.0, -np.inf, 2.0])


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=FINITE))
def test_rows_are_fresh_copies_of_a_vector_or_a_stack(stack: np.ndarray) -> None:
    rows, single = as_rows("ask", stack, stack.shape[1])
    assert not single
    np.testing.assert_array_equal(rows, stack)
    assert not np.shares_memory(rows, stack)
    one, single = as_rows("ask", stack[0].tolist(), None)
    assert single
    np.testing.assert_array_equal(one, stack[:1])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ("a", r"^ask: x = 'a': expected an array of numbers; give one per decision$"),
        ([[1.0], [1.0, 2.0]], r"^ask: x = .*: expected an array of numbers"),
        (
            [1.0, 2.0],
            r"^ask: x has shape \(2,\): expected a vector of 3 entries or a stack of such rows; give one entry",
        ),
        (np.ones((2, 2, 3)), r"x has shape \(2, 2, 3\)"),
        (np.ones((0, 3)), r"x has shape \(0, 3\)"),
        ([1.0, np.nan, 2.0], r"^ask: x\[1\] = nan: expected a finite number; correct it$"),
        ([[1.0, 2.0, 3.0], [np.inf, 1.0, np.nan]], r"^ask: x\[1, 0\] = inf: .*correct it \(2 entries are wrong\)$"),
    ],
)
def test_rows_that_cannot_be_used(x: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        as_rows("ask", x, 3)


def test_whoever_looks_for_nan_later_says_the_same() -> None:
    rows, single = shaped_rows("ask", [1.0, np.nan], 2)
    assert np.isnan(rows[0, 1])
    with pytest.raises(InvalidInput) as caught:
        as_rows("ask", [1.0, np.nan], 2)
    assert str(not_finite("ask", rows, single)) == str(caught.value)


def test_faults_of_a_file_name_their_line(tmp_path: Path) -> None:
    faults = FileFaults(tmp_path / "roads.csv")
    faults.raise_if_any()
    faults.at(3, "capacity 0: expected a number > 0")
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any()
    assert str(caught.value) == f"{tmp_path / 'roads.csv'}:3: capacity 0: expected a number > 0"
    faults.at(None, "no link found")
    assert str(faults.error()).splitlines()[2] == "  - roads.csv: no link found"


@pytest.mark.parametrize("count", [2, 20, 21, 50])
def test_of_many_faults_the_first_twenty_are_shown(count: int) -> None:
    faults = Faults("table")
    for row in range(count):
        faults.add(f"row {row}")
    lines = str(faults.error()).splitlines()
    assert lines[0] == f"table: {count} faults"
    assert lines[1 : min(count, 20) + 1] == [f"  - row {row}" for row in range(min(count, 20))]
    assert lines[21:] == ([f"  - and {count - 20} more faults"] if count > 20 else [])


def test_lines_of_a_file_or_why_there_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xff\n")
    assert read_lines(path) == ["one", "two\ufffd"]
    with pytest.raises(
        InvalidInput, match=r"cannot be read \(No such file or directory\): expected a text file; check"
    ):
        read_lines(tmp_path / "none.txt")


def test_frozen_values_set_their_own_fields() -> None:
    rule = Rule()
    set_fields(rule, attempts=5, wait=0.0)
    assert (rule.attempts, rule.wait) == (5, 0.0)


def test_faults_of_parts_become_faults_of_the_whole() -> None:
    faults = Faults("whole")
    assert faults.made(Rule, 2) == Rule(2)
    faults.made(Rule, 0, -1.0)
    faults.made(lambda: frozen_bounds("Box", 1.0, 0.0))
    assert [message.split(" = ")[0] for message in faults.messages] == ["attempts", "wait", "upper"]
    assert faults.error().faults == tuple(faults.messages)


def test_columns_line_up() -> None:
    assert aligned([("a", "1"), ("long", "2")]) == "a     1\nlong  2"
    assert aligned([("a", "1")], width=3) == "a    1"


def test_indices_are_whole_numbers() -> None:
    faults = Faults("call")
    found = frozen_indices(faults, "links", [[2.0, 1.0]])
    assert found is not None
    assert (found.tolist(), found.dtype, faults.messages) == ([2, 1], np.dtype(np.int64), [])
    for value in ("x", [0.5], [np.nan], [np.inf]):
        assert frozen_indices(faults, "links", value) is None
    assert [message.split(":")[0] for message in faults.messages] == [
        "links = 'x'", "links[0] = 0.5", "links[0] = nan", "links[0] = inf",
    ]  # fmt: skip
