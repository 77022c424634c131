"""Numbers at the door, and sums whose bits do not depend on threads."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from pzos.base.types import Purpose, Query, Response, all_finite, as_number, dot, float_array


@pytest.mark.parametrize(
    "value", [[1, 2], (1.0, 2.0), np.float32([1, 2]), np.array([1, 2]), [Fraction(1), 2], [True, 2]]
)
def test_numbers_of_any_kind_become_float64_copies(value: Any) -> None:
    found = float_array(value)
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]
    assert found is not value


@pytest.mark.parametrize("value", ["1", ["1"], [1j], None, [None, 1], np.array([1j]), [[1], [1, 2]], object(), b"1"])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        float_array(value)


def test_a_copy_even_of_float64() -> None:
    mine = np.zeros(2)
    float_array(mine)[0] = 1.0
    assert mine[0] == 0.0


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (np.float32(0.5), 0.5), (np.array(2.0), 2.0), (Fraction(1, 2), 0.5)]
)
def test_as_number(value: Any, number: float) -> None:
    found = as_number(value)
    assert found == number
    assert type(found) is float


@pytest.mark.parametrize(
    "value", ["1", b"1", True, None, [1.0], np.ones(1), 1j, object(), np.True_, [[1], [1, 2]], 10**400]
)
def test_as_number_refuses(value: Any) -> None:
    assert as_number(value) is None


@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e150, 1e150)))
def test_all_finite_agrees_with_numpy(a: np.ndarray) -> None:
    assert all_finite(a)
    if a.size:
        for bad in (np.nan, np.inf, -np.inf):
            spoilt = a.copy()
            spoilt[a.size // 2] = bad
            assert not all_finite(spoilt)


def test_all_finite_of_long_and_of_huge_numbers() -> None:
    long = np.ones(10_000)
    assert all_finite(long)
    assert all_finite(long * 1e200)
    long[9_999] = np.nan
    assert not all_finite(long)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_all_finite_where_the_squares_overflow() -> None:
    assert all_finite(np.full(3, 1e200))
    assert not all_finite(np.array([1e200, np.inf]))


@pytest.mark.parametrize("n", [1, 100, 4096, 4097, 100_000])
def test_dot(n: int) -> None:
    a, b = np.sin(np.arange(n)), np.cos(np.arange(n))
    assert dot(a, b) == pytest.approx(float(np.sum(a * b)), abs=1e-10)


def test_a_query_reads_well_and_an_answer_knows_nothing_by_default() -> None:
    assert repr(Query(3, 1, np.zeros(4), Purpose.TRIAL)) == "Query(3.1, trial, x of length 4)"
    response = Response(3, 1, np.zeros(2))
    assert np.isnan([response.gap, response.seconds]).all()
    assert response.failure == response.retried == ""


def test_purposes_keep_their_words() -> None:
    """They are part of the file format."""
    assert [purpose.value for purpose in Purpose] == ["iterate", "probe", "trial", "certificate", "monitor"]
