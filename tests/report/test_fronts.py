"""Pictures of fronts: what is drawn is what was found, and a page holds every decision."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import pzos
from pzos.study.front import Front


def made(costs: int, name: str = "a") -> Front:
    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    result = pzos.solve(pzos.Problem(leader, abs, np.ones(2)), queries=2, certificate=False)
    points = np.array([[0.0, 4.0, 1.0], [1.0, 1.0, 2.0], [4.0, 0.0, 0.5]])[:, :costs]
    decisions = np.arange(3 * 14.0).reshape(3, 14)
    names, senses = (name, "b", "c")[:costs], ("min", "max", "min")[:costs]
    return Front(points, decisions, decisions, np.array([1]), names, senses, result)


@pytest.mark.parametrize("costs", [2, 3])
def test_a_figure_has_a_panel_for_each_pair_of_costs(tmp_path: Path, costs: int) -> None:
    pytest.importorskip("matplotlib")
    figure = made(costs).plot(tmp_path / "front.png")
    assert len(figure.axes) == {2: 1, 3: 3}[costs]
    first = figure.axes[0]
    assert first.lines[0].get_xydata().tolist() == [[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]]
    assert first.lines[1].get_xydata().tolist() == [[1.0, 1.0]]
    assert first.get_ylabel() == "b (higher is better)"
    assert (tmp_path / "front.png").stat().st_size > 1000


@pytest.mark.parametrize("costs", [2, 3])
def test_a_page_shows_decisions_on_hover_and_runs_no_name(tmp_path: Path, costs: int) -> None:
    pytest.importorskip("plotly")
    text = made(costs, "</script><script>alert(1)").page(tmp_path / "front.html").read_text()
    assert "</script><script>alert(1)" not in text
    assert "x[3] = 17" in text
    assert "and 2 more" in text
    kinds = set(re.findall(r'"type":"(scatter\w*)"', text[text.rindex("Plotly.newPlot") :]))
    assert ("scatter3d" in kinds) == (costs == 3)
    assert json.dumps("knee") in text
