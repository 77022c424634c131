"""Drawing: the paper's axes and shading, legible at column width, colour-blind safe. From tables only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.figures import BLACK, BLUE, GREEN, ORANGE, new_figure
from pzos.base.types import Vector
from pzos.experiments.tables import Bands, Context, Pair

#: PZOS is blue and ZOS black, as in the paper; larger batches get colours of their own.
COLOURS = {
    "PZOS": BLUE, "PZOS (Q=2)": BLUE, "PZOS (Q=4)": BLUE, "ZOS": BLACK, "ZOS (Q=2)": ORANGE, "ZOS (Q=4)": GREEN,
}  # fmt: skip
STYLES = {"PZOS": "-", "PZOS (Q=2)": "--", "PZOS (Q=4)": "-.", "ZOS": "-", "ZOS (Q=2)": "--", "ZOS (Q=4)": "-."}

#: A curve of a panel: the label, what it is drawn against, and its bands.
Curve = tuple[str, Vector, Bands]


def panels(count: int, rows: int = 1, width: float = 3.3, height: float = 2.9, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure with rows of panels in house style; the panels come row by row."""
    size = (width * count if count > 1 else 4.4, height * rows)
    figure, axes = new_figure(*size, nrows=rows, ncols=count, squeeze=False, **options)
    return figure, list(axes.flat)


def draw_bands(axes: Any, x: Vector, band: Bands, label: str, *, light: bool = True) -> None:
    """Draw a median line with the interquartile range (dark) and the 10-90 % range (light)."""
    colour = COLOURS[label]
    if light:
        axes.fill_between(x, band.lower_decile, band.upper_decile, color=colour, alpha=0.12, linewidth=0)
    axes.fill_between(x, band.lower_quartile, band.upper_quartile, color=colour, alpha=0.25, linewidth=0)
    axes.plot(x, band.median, color=colour, linestyle=STYLES[label], linewidth=1.8, label=label)


def label_panels(axes: Sequence[Any], x: str, y: str) -> None:
    """Label every panel's x axis and the first panel's y axis."""
    for one in axes:
        one.set_xlabel(x)
    axes[0].set_ylabel(y)


def dress(axes: Any, title: str, *, legend: bool = True) -> None:
    """Give a panel of normalised objectives its title, range and legend."""
    axes.set_title(title, fontsize=9)
    axes.set_ylim(-0.03, 1.03)
    if legend:
        axes.legend(frameon=False, fontsize=8)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write the figure as PNG and PDF, without time stamps, so that equal figures are equal files."""
    figure.savefig(folder / f"{name}.png", dpi=170, metadata={"Software": None})
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})


def draw_second_moments(
    folder: Path,
    ours: dict[str, Vector],
    published: dict[str, Vector],
    ratios: Sequence[tuple[str, Vector, Vector, float]],
) -> None:
    """Draw mean squared norms against the dimension on log axes, ours over the paper's points, and their ratios.

    ``ratios`` has a label, log ratios, their standard errors and the weighted mean for each method.
    """
    figure, (curves, *others) = panels(3, width=3.9, height=3.4)
    for name, label in (("zos", "ZOS"), ("pzos", "PZOS")):
        colour = COLOURS[label]
        for source, style in ((published, "D"), (ours, "-")):
            mean, spread = source[f"{name}_mean"], source[f"{name}_2sd"]
            below = np.minimum(spread, 0.95 * mean)  # a bar that reaches zero or less ends near the axis
            words = f"{label}, published" if source is published else label
            curves.errorbar(
                source["n"], mean, yerr=(below, spread), fmt=style, color=colour, linewidth=1.4, elinewidth=0.6,
                markersize=3.5, markerfacecolor="white", alpha=0.55 if source is published else 1.0, label=words,
            )  # fmt: skip
    curves.set(xscale="log", yscale="log", title="mean ± 2 standard deviations over instances")
    curves.legend(frameon=False, fontsize=8, loc="upper left")
    shared = ours["n"][np.isin(ours["n"], published["n"])]
    for one, (label, logs, errors, centre) in zip(others, ratios, strict=True):
        values = np.exp(logs)
        one.errorbar(
            shared, values, yerr=2.0 * errors * values, fmt="o", color=COLOURS[label], markersize=3, elinewidth=0.7
        )
        one.axhline(1.0, color="0.3", linewidth=1.0)
        one.axhline(
            np.exp(centre), color=ORANGE, linewidth=1.2, linestyle="--", label=f"weighted mean {np.exp(centre):.3f}"
        )
        one.set(ylim=(0.0, 2.5), title=f"{label}: ours / published")
        one.legend(frameon=False, fontsize=8, loc="upper right")
    for one in (curves, *others):
        one.title.set_fontsize(9)
    label_panels((curves, *others), "problem dimension $d_x$", "mean squared gradient norm")
    save(figure, folder, "second_moments")


def draw_trajectories(
    folder: Path, name: str, x_label: str, rows: Sequence[Sequence[Sequence[Curve]]], titles: Sequence[str],
    *, light: bool = True,
) -> None:  # fmt: skip
    """Draw rows of panels, each with the bands of several methods; titles come row by row."""
    figure, axes = panels(len(rows[0]), len(rows), sharey=True)
    shown = [curves for row in rows for curves in row]
    for one, curves, title in zip(axes, shown, titles, strict=True):
        for label, x, band in curves:
            draw_bands(one, x, band, label, light=light)
        one.set_xlim(0, max(float(x[-1]) for _, x, _ in curves))
        dress(one, title)
    for first in range(0, len(axes), len(rows[0])):
        label_panels(axes[first : first + len(rows[0])], x_label, "normalised objective")
    save(figure, folder, name)


def pair_row(pair: Pair) -> list[Curve]:
    """Return what one panel shows of a pair; ZOS first, so that PZOS lies on top."""
    return [("ZOS", pair.zos.steps, pair.their_bands), ("PZOS", pair.pzos.steps, pair.our_bands)]


def draw_pair(context: Context, name: str, pair: Pair, title: str = "") -> None:
    """Draw one panel with PZOS and ZOS against the iteration."""
    draw_trajectories(context.folder, name, "iteration $t$", [[pair_row(pair)]], [title])


def draw_scatter(folder: Path, snapshots: Sequence[tuple[int, Vector, Vector]], dimensions: Vector) -> None:
    """Draw PZOS against ZOS per instance at each snapshot, coloured by dimension."""
    figure, axes = panels(len(snapshots), sharex=True, sharey=True)
    points = None
    for one, (t, zos, pzos) in zip(axes, snapshots, strict=True):
        points = one.scatter(zos, pzos, c=dimensions, cmap="cividis", s=14, linewidths=0.3, edgecolors="white")
        one.plot((0, 1), (0, 1), color="0.4", linewidth=1.0, linestyle="--")
        one.set_aspect("equal")
        one.set_xlim(-0.03, 1.03)
        dress(one, f"iteration {t}", legend=False)
    label_panels(axes, "ZOS, normalised objective", "PZOS, normalised objective")
    figure.colorbar(points, ax=axes, label="number of edges", shrink=0.85)
    save(figure, folder, "routing_scatter")


def draw_dimension(folder: Path, panels_of: Sequence[tuple[int, Vector, dict[str, dict[str, Vector]]]]) -> None:
    """Draw mean and min-max range over the instances of each dimension, at each snapshot."""
    figure, axes = panels(len(panels_of), sharey=True)
    for one, (t, n, curves) in zip(axes, panels_of, strict=True):
        for label, curve in curves.items():
            one.fill_between(n, curve["min"], curve["max"], color=COLOURS[label], alpha=0.2, linewidth=0)
            one.plot(n, curve["mean"], color=COLOURS[label], linewidth=1.8, label=label)
        dress(one, f"iteration {t}")
    label_panels(axes, "number of targets $n$", "normalised objective")
    save(figure, folder, "security_dimension")
