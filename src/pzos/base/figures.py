"""How every figure begins (extra ``plot``): one style, and colours that are colour-blind safe (Okabe and Ito)."""

from __future__ import annotations

import textwrap
from typing import Any

from pzos.base.errors import MissingExtra

#: The colours of curves, in figures and on pages alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
BLUE, ORANGE, GREEN, BLACK = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4]


def wrapped(title: str, width: int = 80) -> str:
    """Return a title in lines that a figure is wide enough for."""
    return "\n".join(textwrap.wrap(title, width))


def new_figure(
    width: float = 6.4, height: float = 4.0, *, purpose: str = "drawing a figure", **grid: Any
) -> tuple[Any, Any]:
    """Return a figure and its axes in house style (a light grid, no box), the same with or without a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", purpose) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(**grid)
    for one in figure.axes:
        one.grid(True, color="0.9", linewidth=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes
