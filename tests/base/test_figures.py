"""One beginning for every figure: the house style, or the name of the extra."""

from __future__ import annotations

import sys

import pytest

from pzos.base.errors import MissingExtra
from pzos.base.figures import COLOURS, new_figure


def test_the_house_style_is_on_every_axes() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    figure, axes = new_figure(5.0, 2.0, ncols=2, sharey=True)
    assert figure.get_size_inches().tolist() == [5.0, 2.0]
    assert len(axes) == len(figure.axes) == 2
    for one in figure.axes:
        assert not one.spines["top"].get_visible()
        assert not one.spines["right"].get_visible()
        assert one.xaxis.get_gridlines()[0].get_visible()
        assert one.get_axisbelow() is True


def test_colours_are_distinct() -> None:
    assert len(set(COLOURS)) == len(COLOURS)


def test_without_matplotlib_the_purpose_and_the_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"drawing a map.*pzos\[plot\]"):
        new_figure(purpose="drawing a map")
