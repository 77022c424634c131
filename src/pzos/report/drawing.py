"""Figures from trace tables only (extra ``plot``). Colours are colour-blind safe (Okabe and Ito)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.base.errors import MissingExtra
from pzos.report.story import curve_of

if TYPE_CHECKING:
    from pzos.study.result import Result

#: The colours of curves, in figures and on pages alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
BLUE, ORANGE, GREEN, BLACK = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4]


def new_figure(width: float = 6.4, height: float = 4.0, **grid: Any) -> tuple[Any, Any]:
    """Return a figure and its axes in house style (a light grid, no box), the same with or without a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "drawing a figure") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(**grid)
    for one in figure.axes:
        one.grid(True, color="0.9", linewidth=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plot_result(result: Result, path: str | Path | None = None) -> Any:
    """Draw F at the iterates and the best so far against the algorithm's queries."""
    figure, axes = new_figure()
    curve = curve_of(result.trace)
    axes.plot(curve.queries, curve.values, color=BLUE, linewidth=1.2, alpha=0.55, label="F at the iterate")
    axes.plot(curve.queries, curve.best(result.sense), color=ORANGE, linewidth=2.0, label="best so far")
    axes.set(xlabel="queries to the followers", ylabel="F(x)")
    axes.set_title(f"{result.problem or 'objective'}: {result.solver}", fontsize=10)
    axes.legend(frameon=False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
