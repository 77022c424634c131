"""Figures: what is drawn is what the trace says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.base.errors import MissingExtra
from pzos.methods.smoothing import PZOS, ZOS
from pzos.solving import solve
from pzos.testing import small_problem

pytest.importorskip("matplotlib")


def drawn(figure):
    return {line.get_label(): line.get_xydata() for line in figure.axes[0].get_lines()}


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_curves_are_the_trace_and_its_running_best(sense):
    result = solve(small_problem(sense), PZOS(), steps=30)
    lines = drawn(result.plot())
    np.testing.assert_array_equal(lines["F at the iterate"][:, 1], result.trace["value"])
    np.testing.assert_array_equal(lines["F at the iterate"][:, 0], result.trace["queries"])
    assert lines["best so far"][-1, 1] == result.best_value


def test_steps_whose_value_is_not_known_are_left_out():
    result = solve(small_problem(), ZOS(), steps=5, monitor=False)
    assert drawn(result.plot())["F at the iterate"].size == 0


def test_axes_are_labelled_and_the_file_is_written(tmp_path):
    result = solve(small_problem(), PZOS(), steps=3)
    figure = result.plot(tmp_path / "result.png")
    assert figure.axes[0].get_xlabel() == "queries to the followers"
    assert figure.axes[0].get_ylabel() == "F(x)"
    assert (tmp_path / "result.png").read_bytes().startswith(b"\x89PNG")


def test_a_long_title_is_not_cut():
    result = solve(small_problem(), PZOS(), steps=1)
    figure = replace(result, problem="tolls on " + "very " * 40 + "many links").plot()
    figure.canvas.draw()
    box = figure.axes[0].title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert "many links" in figure.axes[0].get_title()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pzos\[plot\]"):
        solve(small_problem(), PZOS(), steps=1).plot()
