"""Drawing: the paper's axes and shading, legible at column width, colour-blind safe. From tables only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pzos.base.figures import BLACK, BLUE, GREEN, ORANGE, new_figure
from pzos.base.types import Vector
from pzos.experiments.tables import Bands, Context, Pair

#: PZOS is blue and ZOS black, as in the paper; larger batches get colours of their own.
COLOURS = {"PZOS": BLUE, "ZOS": BLACK, "ZOS (Q=2)": ORANGE, "ZOS (Q=4)": GREEN}
STYLES = {"PZOS": "-", "ZOS": "-", "ZOS (Q=2)": "--", "ZOS (Q=4)": "-."}


def panels(count: int, width: float = 3.3, height: float = 2.9, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure with a row of panels in house style."""
    figure, axes = new_figure(width * count if count > 1 else 4.4, height, ncols=count, squeeze=False, **options)
    return figure, list(axes[0])


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


def draw_second_moments(folder: Path, ours: dict[str, Vector], published: dict[str, Vector]) -> None:
    """Draw mean squared norms against the dimension, without and with error bars, over the paper's points."""
    figure, axes = panels(2, width=4.0, height=3.2)
    for one, with_bars in zip(axes, (False, True), strict=True):
        for name, label in (("zos", "ZOS"), ("pzos", "PZOS")):
            mean, spread, colour = ours[f"{name}_mean"], ours[f"{name}_2sd"], COLOURS[label]
            bars = spread if with_bars else None
            one.errorbar(
                ours["n"], mean, yerr=bars, color=colour, linewidth=1.8, elinewidth=0.9, capsize=2, label=label
            )
            one.plot(
                published["n"], published[f"{name}_mean"], linestyle="none", marker="D", markersize=5,
                markerfacecolor="white", markeredgecolor=colour, label=f"{label}, published",
            )  # fmt: skip
        one.set_xlim(0, 305)
        one.legend(frameon=False, fontsize=8, loc="upper left")
    axes[1].set_title("mean ± 2 standard deviations", fontsize=9)
    axes[0].set_title("mean", fontsize=9)
    label_panels(axes, "problem dimension $d_x$", "mean squared gradient norm")
    save(figure, folder, "second_moments")


def draw_trajectories(
    folder: Path, name: str, x_label: str, rows: Sequence[Sequence[tuple[str, Vector, Bands]]], titles: Sequence[str],
    *, light: bool = True,
) -> None:  # fmt: skip
    """Draw one panel per row, each with the bands of several methods."""
    figure, axes = panels(len(rows), sharey=True)
    for one, row, title in zip(axes, rows, titles, strict=True):
        for label, x, band in row:
            draw_bands(one, x, band, label, light=light)
        one.set_xlim(0, max(float(x[-1]) for _, x, _ in row))
        dress(one, title)
    label_panels(axes, x_label, "normalised objective")
    save(figure, folder, name)


def pair_row(pair: Pair) -> list[tuple[str, Vector, Bands]]:
    """Return what one panel shows of a pair; ZOS first, so that PZOS lies on top."""
    return [("ZOS", pair.zos.steps, pair.their_bands), ("PZOS", pair.pzos.steps, pair.our_bands)]


def draw_pair(context: Context, name: str, pair: Pair, title: str = "") -> dict[str, Vector]:
    """Draw one panel with PZOS and ZOS against the iteration; returns the numbers it shows."""
    draw_trajectories(context.folder, name, "iteration $t$", [pair_row(pair)], [title])
    return {"step": pair.pzos.steps} | pair.columns()


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
