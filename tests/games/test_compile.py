"""Compilation in one place: the same answers without it, announced when it happens, arrays handed over by address."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import small_games
from pzos.games._compile import announce_compilation, compiled, fused, inner, openers, table_of

NUMBERS = st.floats(-1e100, 1e100, allow_subnormal=False)


def without_compilation(*command: str) -> str:
    """What Python prints if nothing is compiled."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=True,
                          timeout=300)  # fmt: skip
    return done.stdout


def test_every_kernel_answers_alike_without_compilation() -> None:
    plain = json.loads(without_compilation(str(Path(small_games.__file__))))
    kernels = small_games.answers()
    assert plain.keys() == kernels.keys()
    for name, answer in kernels.items():
        for one, other in zip(np.atleast_2d(answer), np.atleast_2d(plain[name]), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13, err_msg=name)
    assert plain["paper"] == kernels["paper"]  # the exact flow, rounded: not even the last bit differs


def test_growth_and_refusals_without_compilation() -> None:
    """A workspace that is too small grows; tolls that are no numbers are refused."""
    code = """
import numpy as np
import pzos.games._routing.solver as solver
from pzos.games import RoutingGame
game = RoutingGame.random(3, vertices=8, edges=30, classes=3)
tolls = np.vstack([np.zeros(30), np.random.default_rng(0).normal(size=(2, 30))])
roomy, solver.FIRST_CAPACITY = game.response(tolls), 1
tight = RoutingGame.random(3, vertices=8, edges=30, classes=3)
assert tight._solver()._named.pool.active.size == 4
assert np.array_equal(tight.response(tolls), roomy)
assert np.array_equal(tight.certified_response(tolls[::-1])[0], roomy[::-1])
assert tight._solver()._named.pool.active.size > 4
assert tight.statistics().responses == 6
try:
    tight.response(np.where(np.arange(30) == 7, np.nan, 0.0))
except ValueError as error:
    print(error)
"""
    assert "tolls[7] = nan: expected a finite number" in without_compilation("-c", code)


def test_compilation_is_announced_once_and_only_when_it_happens(caplog: pytest.LogCaptureFixture) -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def double(value: float) -> float:
        return 2.0 * value

    with caplog.at_level(logging.INFO, logger="pzos"):
        with announce_compilation("toy kernel"):
            assert double(2.0) == 4.0
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
        assert "compiling the toy kernel" in caplog.text
        caplog.clear()
        with announce_compilation("toy kernel"):
            assert double(3.0) == 6.0
        assert not caplog.records


class Inside(NamedTuple):
    """Part of a tuple of arrays."""

    numbers: np.ndarray
    table: np.ndarray


class Outside(NamedTuple):
    """A tuple of arrays with a tuple inside."""

    whole: np.ndarray
    inside: Inside
    last: np.ndarray


EXAMPLE = Outside(np.zeros(1, dtype=np.int64), Inside(np.zeros(1), np.zeros((1, 1))), np.zeros((1, 1, 1)))
whole_of, inside_of, last_of = openers(EXAMPLE)


@inner
def corner(address: int) -> float:
    inside = inside_of(address)
    return inside.table[1, 2] + inside.numbers[0]


@numba.njit  # type: ignore[untyped-decorator]
def visit(address: int) -> float:
    last_of(address)[1, 0, 3] = whole_of(address)[2]
    return corner(address)


def test_arrays_are_found_by_the_address_of_their_table() -> None:
    arrays = Outside(np.arange(3), Inside(np.full(4, 0.5), np.arange(6.0).reshape(2, 3)), np.zeros((2, 3, 4)))
    table = table_of(arrays)
    assert table.size == 2 + 2 + 3 + 4  # an address and a shape each
    assert visit(int(table.ctypes.data)) == 5.5
    assert arrays.last[1, 0, 3] == 2.0
    assert np.count_nonzero(arrays.last) == 1


@compiled
def fused_product(a: float, b: float, c: float) -> float:
    return fused(a, b, c)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_fused_products_are_rounded_once(a: float, b: float, c: float) -> None:
    assert fused_product(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))
