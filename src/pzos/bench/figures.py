"""Figures of the test bed: gap against queries per family, and the share of instances solved within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pzos.bench.table import LEVELS, Curve, profile, stacked
from pzos.errors import MissingExtra

_FLOOR = 1e-10


def draw(curves: Sequence[Curve], queries: int, folder: Path) -> list[Path]:
    """Write one figure per family and one of profiles; needs the extra ``plot``."""
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "pzos bench --figures") from error
    written = []
    for family in dict.fromkeys(item.family for item in curves):
        figure, axes = pyplot.subplots(figsize=(6, 4))
        for method in dict.fromkeys(item.method for item in curves):
            gaps = stacked([item for item in curves if (item.family, item.method) == (family, method)], queries)
            if gaps.size:
                axes.plot(np.arange(1, queries + 1), np.maximum(np.median(gaps, axis=0), _FLOOR), label=method)
        axes.set(xscale="log", yscale="log", xlabel="queries", ylabel="median gap", title=family)
        axes.legend(fontsize=7)
        written.append(folder / f"{family.replace(' ', '-').replace('=', '')}.png")
        figure.savefig(written[-1], dpi=150, bbox_inches="tight")
        pyplot.close(figure)
    figure, panels = pyplot.subplots(1, len(LEVELS), figsize=(4 * len(LEVELS), 3.5), sharey=True)
    budgets = np.unique(np.geomspace(1, queries, 60).astype(int)).tolist()
    for axes, level in zip(panels, LEVELS, strict=True):
        for method, shares in profile(curves, level, budgets).items():
            axes.plot(budgets, shares, label=method)
        axes.set(xscale="log", xlabel="queries", title=f"share of instances with gap <= {level:g}")
    panels[0].legend(fontsize=7)
    written.append(folder / "profiles.png")
    figure.savefig(written[-1], dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    return written
