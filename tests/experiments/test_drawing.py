"""What the figures of the paper show, read back from the drawn axes; equal figures are equal files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.made import made_pair
from pzos.experiments import drawing

pytest.importorskip("matplotlib", reason="figures need the extra plot")

ROWS = np.linspace(0.0, 1.0, 44).reshape(4, 11)


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    pair = made_pair(ROWS, ROWS[::-1] / 2)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        drawing.draw_trajectories(tmp_path / name, "f", "t", [[drawing.pair_row(pair)]], ["title"])
    for file in ("f.png", "f.pdf"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("light", [True, False])
def test_a_band_is_a_median_between_shadings(light: bool) -> None:
    _, (axes,) = drawing.panels(1)
    band = made_pair(ROWS, ROWS[::-1] / 2).our_bands
    drawing.draw_bands(axes, np.arange(11.0), band, "PZOS", light=light)
    (line,) = axes.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), band.median)
    assert line.get_label() == "PZOS"
    assert len(axes.collections) == 1 + light


def test_panels_stand_in_a_row_with_a_light_grid_and_one_label_at_the_side() -> None:
    figure, axes = drawing.panels(3)
    drawing.label_panels(axes, "iteration", "value")
    assert len(figure.axes) == len(axes) == 3
    assert [one.get_ylabel() for one in axes] == ["value", "", ""]
    assert {one.get_xlabel() for one in axes} == {"iteration"}
    assert not any(one.spines["top"].get_visible() for one in axes)


def test_every_method_of_the_paper_has_a_look_of_its_own() -> None:
    looks = {(drawing.COLOURS[name], drawing.STYLES[name]) for name in drawing.COLOURS}
    assert len(looks) == len(drawing.COLOURS) == len(drawing.STYLES) == 6


def test_zos_is_drawn_first_so_that_pzos_lies_on_top() -> None:
    pair = made_pair(ROWS, ROWS[::-1] / 2)
    (first, _, theirs), (second, steps, ours) = drawing.pair_row(pair)
    assert (first, second) == ("ZOS", "PZOS")
    assert theirs is pair.their_bands
    assert ours is pair.our_bands
    np.testing.assert_array_equal(steps, np.arange(11.0))
