"""Pictures of the suite: who is how far behind in each cell, and the share of instances solved within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.errors import MissingExtra
from suite.methods import METHODS
from suite.table import EQUAL, LEVELS, TIED, Row, profile

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_LINES = ("-", "--", ":")


def draw(table: Sequence[Row], folder: Path) -> list[Path]:
    """Write the wall of cells and the profiles; needs the extra ``plot``."""
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "pzos bench --figures") from error
    return [_wall(pyplot, table, folder / "suite_cells.png"), _profiles(pyplot, table, folder / "suite_profiles.png")]


def _wall(pyplot: Any, table: Sequence[Row], path: Path) -> Path:
    """Draw one square per method and cell: the gap over the best one's in colour, the gap itself as a number."""
    columns = list(dict.fromkeys((row.family, row.budget) for row in table if row.method in METHODS))
    lines = [name for name in METHODS if any(row.method == name for row in table)]
    gaps = np.full((len(lines), len(columns)), np.nan)
    for row in table:
        if row.method in lines:
            gaps[lines.index(row.method), columns.index((row.family, row.budget))] = max(row.median, EQUAL)
    ratio = gaps / np.nanmin(gaps, axis=0)
    figure, axes = pyplot.subplots(figsize=(2.4 + 0.62 * len(columns), 1.6 + 0.33 * len(lines)))
    shown = axes.imshow(np.log10(ratio), cmap="YlOrRd", vmin=0.0, vmax=2.0, aspect="auto")
    for (k, j), gap in np.ndenumerate(gaps):
        if np.isfinite(gap):
            best = ratio[k, j] <= TIED
            text = "<1e-4" if gap <= EQUAL else f"{gap:.0e}".replace("e-0", "e-") if gap < 0.01 else f"{gap:.2f}"
            axes.text(j, k, text, ha="center", va="center", fontsize=7, fontweight="bold" if best else "normal",
                      color="white" if ratio[k, j] > 30.0 else "black")  # fmt: skip
    axes.set_xticks(range(len(columns)), [f"{family}  {budget}" for family, budget in columns], rotation=90, fontsize=8)
    axes.set_yticks(range(len(lines)), lines, fontsize=8)
    figure.colorbar(shown, ax=axes, label="times behind the best", ticks=[0, 1, 2], shrink=0.8).ax.set_yticklabels(
        ["1", "10", "100"]
    )
    axes.set_title("Median gap by family and queries; bold: first or tied", fontsize=10)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)
    return path


def _profiles(pyplot: Any, table: Sequence[Row], path: Path) -> Path:
    most = max(row.budget for row in table)
    budgets = np.unique(np.geomspace(1, most, 80).astype(int)).tolist()
    figure, panels = pyplot.subplots(1, len(LEVELS), figsize=(3.6 * len(LEVELS) + 1.5, 3.5), sharey=True)
    for axes, level in zip(panels, LEVELS, strict=True):
        for method, shares in profile(table, level, budgets).items():
            axes.step(budgets, shares, where="post", label=method, **_style(method))
        axes.set(xscale="log", xlabel="queries", title=f"gap {level:g}", ylim=(-0.03, 1.03))
    panels[0].set_ylabel("share of instances solved")
    panels[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)
    return path


def _style(method: str) -> dict[str, Any]:
    """Return how a method is drawn: the default in black, the others each in a colour and line of its own."""
    if method == "default":
        return {"color": "black", "linewidth": 2.6, "zorder": 5}
    place = list(METHODS).index(method)
    line = _LINES[(place // len(_COLOURS)) % len(_LINES)]
    return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": line, "linewidth": 1.4}
