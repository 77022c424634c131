"""The result: its table, its points, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import Stop
from pzos.solving import solve
from pzos.testing import small_problem


def table(result):
    return dict(result.rows())


def test_the_table_says_what_happened():
    result = solve(small_problem(), ZOS(batch=2), steps=7, seed=3)
    rows = table(result)
    assert rows["problem"] == "a small kinked problem"
    assert rows["stopped"] == "steps: all steps were taken"
    assert rows["queries"] == "28 by the algorithm, 8 to monitor it"
    assert (rows["steps"], rows["seed"]) == ("7", "3")
    assert rows["lowest F seen"] == f"{result.best_value:.8g}"
    assert "failed queries" not in rows
    assert all(len(line) > 0 for line in repr(result).splitlines())


def test_a_value_that_was_never_queried_is_said_to_be_unknown():
    result = solve(small_problem("max"), ZOS(), steps=2, monitor=False)
    assert table(result)["F at the last point"] == "not known (it was not queried)"
    assert "highest F seen" in table(result)


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        ({"steps": 2}, Stop.STEPS),
        ({"queries": 7}, Stop.QUERIES),
        ({"seconds": 1e-9}, Stop.SECONDS),
        ({"target": 1e9}, Stop.TARGET),
    ],
)
def test_every_limit_has_its_reason(limits, stop):
    assert solve(small_problem(), PZOS(), **limits).stop is stop


def test_best_last_and_random_points():
    result = solve(small_problem(), PZOS(), steps=40)
    values = result.trace["value"]
    assert result.best_value == np.min(values)
    assert 0 <= result.random_step < 40
    assert result.value == values[-1]
    assert not np.shares_memory(result.x, result.best_x)


def test_certify_refuses_an_unknown_point():
    problem = small_problem()
    with pytest.raises(InvalidInput, match="'last', 'best' or 'random'"):
        solve(problem, PZOS(), steps=1).certify(problem, delta=0.1, at="first")
