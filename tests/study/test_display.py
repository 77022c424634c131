"""A result at first sight: the verdict first, ten lines at most, whatever the run had; and in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pzos
from instances import problem
from pzos.study.display import entries


def follower(x: Any) -> Any:
    return np.maximum(4.0 - x, 0.0)


def cost(x: Any, y: Any) -> Any:
    return ((y - 3.0) ** 2).sum() + 0.1 * (x * x).sum()


@pytest.mark.parametrize(
    "settings",
    [
        {"queries": 60},
        {"queries": 8, "outcomes": pzos.caps([2.0, 2.5], entries=[0, 1]), "name": "prices"},
        {"queries": 3},
        {"steps": 4, "method": "PZOS"},
        {"steps": 4, "method": "ZOS", "monitor": False},
        {"queries": 4, "step_of_x": 0.5},
    ],
)
def test_the_verdict_comes_first_and_ten_lines_are_enough(settings: Any) -> None:
    result = pzos.minimize(cost, follower, np.zeros(3), bounds=(0, 8), **settings)
    lines = repr(result).splitlines()
    assert lines[0].startswith("F = ")
    assert lines[0].endswith(result.message)
    assert len(lines) <= 10
    assert all(lines)
    assert lines[-1].split() == ["more", "print(result.table())"]


def test_the_verdict_says_how_far_it_came() -> None:
    down = repr(pzos.minimize(cost, follower, np.zeros(3), bounds=(0, 8), queries=12)).splitlines()[0]
    up = repr(pzos.maximize(cost, follower, np.ones(3), bounds=(0, 8), queries=12)).splitlines()[0]
    assert ", down from 3 at the start; " in down
    assert ", up from " in up


def test_a_violated_constraint_is_part_of_the_verdict() -> None:
    result = pzos.minimize(cost, follower, np.zeros(2), bounds=(0, 1), outcomes=pzos.caps(1.0), queries=8)
    assert result.violation > 0
    assert not result.success
    assert ", constraints violated; infeasible" in repr(result)


def test_a_long_point_is_cut_and_says_so() -> None:
    assert entries(np.arange(3.0)) == "[0. 1. 2.]"
    assert entries(np.arange(50.0)) == "[ 0.  1.  2. ... 47. 48. 49.] (50 entries)"


def test_a_point_with_names_is_read_by_them() -> None:
    named = pzos.Columns(["toll", "tax"], "EUR", 2)
    assert entries(np.array([1.0, 0.126]), named) == "toll 1.00 EUR, tax 0.13 EUR"
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    problem = pzos.Problem(leader, abs, [1.0, 2.0], decisions=named)
    assert "toll 1.00 EUR" in repr(pzos.solve(problem, pzos.PZOS(step=0.0001, radius=0.1), steps=1))


def test_the_table_names_x() -> None:
    result = pzos.minimize(lambda x, y: y @ y, abs, [1.0, 2.0], queries=3, decisions=["bus", "train"])
    assert dict(result.rows())["x"] == entries(result.x, pzos.Columns(["bus", "train"]))
    assert "bus" in result.table()


def test_scipys_names() -> None:
    result = pzos.solve(problem(), pzos.ZOS(), steps=3)
    assert (result.fun, result.nfev) == (result.value, result.queries + result.monitoring)
    assert (result.success, result.message) == (True, "all steps were taken")
    assert not pzos.Study(problem().known(), pzos.ZOS(), steps=3).result().success


def test_a_notebook_shows_the_picture_and_text_is_escaped() -> None:
    pytest.importorskip("matplotlib")
    page = pzos.solve(problem(name="<b>&"), pzos.PZOS(), steps=3)._repr_html_()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>" not in page
    assert page.count('src="data:image/png;base64,') == 1


def test_without_matplotlib_or_a_step_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<img" not in pzos.Study(problem().known(), pzos.PZOS(), steps=3).result()._repr_html_()
    result = pzos.solve(problem(), pzos.PZOS(), steps=3)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<img" not in result._repr_html_()
    assert "<strong>F = " in result._repr_html_()
