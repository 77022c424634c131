"""Figures of the test bed: gap against queries per family, and the share of instances solved within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.errors import MissingExtra
from testbed.table import LEVELS, METHODS, Curve, profile, stacked

_FLOOR = 1e-12
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_LINES = ("-", "--", ":", "-.")
#: What stands out: ours in black, and the limit.
_SPECIAL = {
    "default": {"color": "black", "linestyle": "-", "linewidth": 2.6, "zorder": 5},
    "white-box": {"color": "black", "linestyle": ":", "linewidth": 1.4},
}


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
        figure, axes = pyplot.subplots(figsize=(7.5, 4.2))
        shown = [item for item in curves if item.family == family]
        for method in dict.fromkeys(item.method for item in shown):
            gaps = stacked([item for item in shown if item.method == method], queries)
            if gaps.size:
                best = np.maximum(np.median(gaps, axis=0), _FLOOR)
                axes.step(np.arange(1, queries + 1), best, where="post", label=method, **style(method))
        runs = max(sum(item.method == method for item in shown) for method in {item.method for item in shown})
        axes.set(xscale="log", yscale="log", xlabel="queries", ylabel=f"gap, median of {runs}", title=family)
        _legend(axes)
        written.append(folder / f"{family.replace(' ', '-').replace('=', '')}.png")
        figure.savefig(written[-1], dpi=150, bbox_inches="tight")
        pyplot.close(figure)
    return [*written, _profiles(pyplot, curves, queries, folder / "profiles.png")]


def _profiles(pyplot: Any, curves: Sequence[Curve], queries: int, path: Path) -> Path:
    figure, panels = pyplot.subplots(1, len(LEVELS), figsize=(3.6 * len(LEVELS) + 1.5, 3.5), sharey=True)
    budgets = np.unique(np.geomspace(1, queries, 80).astype(int)).tolist()
    for axes, level in zip(panels, LEVELS, strict=True):
        for method, shares in profile(curves, level, budgets).items():
            axes.step(budgets, shares, where="post", label=method, **style(method))
        axes.set(xscale="log", xlabel="queries", title=f"gap {level:g}", ylim=(-0.03, 1.03))
    panels[0].set_ylabel("share of instances solved")
    _legend(panels[-1])
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    return path


def style(method: str) -> dict[str, Any]:
    """Return how a method is drawn: the same in every figure, and different from every other."""
    if method in _SPECIAL:
        return _SPECIAL[method]
    names = [name for name in METHODS if name not in _SPECIAL]
    place = names.index(method) if method in names else len(names)
    line = _LINES[(place // len(_COLOURS)) % len(_LINES)]
    return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": line, "linewidth": 1.4}


def _legend(axes: Any) -> None:
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
