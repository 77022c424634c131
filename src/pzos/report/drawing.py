"""Figures from trace tables only (extra ``plot``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.base.columns import Column
from pzos.base.figures import BLUE, ORANGE, new_figure, wrapped
from pzos.report.story import curve_of

if TYPE_CHECKING:
    from pzos.study.result import Result


def plot_result(result: Result, path: str | Path | None = None) -> Any:
    """Draw F at the iterates and the best so far against the algorithm's queries."""
    figure, axes = new_figure()
    curve = curve_of(result.trace)
    axes.plot(curve.queries, curve.values, color=BLUE, linewidth=1.2, alpha=0.55, label="F at the iterate")
    axes.plot(curve.queries, curve.best(result.sense), color=ORANGE, linewidth=2.0, label="best so far")
    axes.set(xlabel="queries to the followers", ylabel=str(Column("F(x)", result.unit)))
    axes.set_title(wrapped(f"{result.problem or 'objective'}: {result.solver}"), fontsize=10)
    axes.legend(frameon=False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
