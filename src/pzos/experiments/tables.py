"""Tables of a reproduction: values by instance and step, normalised per run as in the paper, their bands.

A figure is made from a ``Context``: the scale, the seed, the folder and the store of finished runs.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.experiments.claims import Claim, Truths, share
from pzos.experiments.descriptions import Family, RunSpec, Scale, Variant
from pzos.experiments.runs import RunStore


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """All runs of one variant: one row per instance, one column per step t = 0, ..., T."""

    variant: Variant
    specs: tuple[RunSpec, ...]
    values: Matrix
    norms: Matrix
    dimensions: Vector
    projected: Vector
    slack: Vector

    @property
    def steps(self) -> Vector:
        """Return t = 0, ..., T."""
        return np.arange(self.values.shape[1], dtype=np.float64)

    @property
    def diverged(self) -> Truths:
        """Tell which runs went to where no equilibrium can be computed; their F is infinitely bad from there on."""
        return np.isinf(self.values[:, -1])

    @property
    def calls(self) -> Vector:
        """Return the oracle calls after each step, counted as in the paper."""
        return self.steps * self.variant.queries_per_step


def load_runs(store: RunStore, specs: Sequence[RunSpec]) -> Runs:
    """Read finished runs of one variant from the store, in the order given."""
    columns = zip(*store.load(spec.key for spec in specs), strict=True)
    return Runs(specs[0].variant, tuple(specs), *(np.array(column, dtype=np.float64) for column in columns))


def exceptions(runs: Runs, won: Truths) -> str:
    """Return the seeds of the instances that a claim does not hold for, as the end of a sentence."""
    seeds = [spec.seed for spec, ok in zip(runs.specs, won, strict=True) if not ok]
    return f"; exceptions (seeds): {seeds[:20]}" if seeds else ""


def by_dimension(dimensions: Vector, values: Vector) -> list[Vector]:
    """Return the values of the instances of each dimension, lowest dimension first."""
    return [values[dimensions == n] for n in np.unique(dimensions)]


def normalised(group: Sequence[Runs]) -> list[Matrix]:
    """Scale the values of each instance to [0, 1] by the lowest and highest F of the whole group (Sec. 5.1).

    A run that diverged stands at the bad end of the scale from there on, whatever its F was before.
    """
    every = np.concatenate([runs.values for runs in group], axis=1)
    reached = np.isfinite(every)
    lowest = every.min(axis=1, keepdims=True, where=reached, initial=np.inf)
    highest = every.max(axis=1, keepdims=True, where=reached, initial=-np.inf)
    spread = np.where(highest > lowest, highest - lowest, 1.0)
    return [np.clip((runs.values - lowest) / spread, 0.0, 1.0) for runs in group]


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Quantiles over instances at every step: the paper's median, dark and light shading."""

    median: Vector
    lower_quartile: Vector
    upper_quartile: Vector
    lower_decile: Vector
    upper_decile: Vector

    def columns(self, prefix: str) -> dict[str, Vector]:
        """Return the bands as named columns."""
        names = ("median", "q25", "q75", "q10", "q90")
        return {f"{prefix}_{name}": getattr(self, part.name) for name, part in zip(names, fields(self), strict=True)}

    def until(self, keep: Truths) -> Bands:
        """Return the bands at the steps kept."""
        return Bands(*(getattr(self, part.name)[keep] for part in fields(self)))

    @property
    def quartile_range(self) -> Vector:
        """Return the width of the dark shading."""
        return self.upper_quartile - self.lower_quartile


def bands(values: Matrix) -> Bands:
    """Return median, interquartile range and 10-90 % range over the rows."""
    q10, q25, q50, q75, q90 = np.quantile(values, (0.1, 0.25, 0.5, 0.75, 0.9), axis=0)
    return Bands(q50, q25, q75, q10, q90)


class Pair(NamedTuple):
    """PZOS and ZOS on the same instances: their runs, the values normalised over both, and the bands of these."""

    pzos: Runs
    zos: Runs
    ours: Matrix
    theirs: Matrix
    our_bands: Bands
    their_bands: Bands

    def columns(self, ending: str = "") -> dict[str, Vector]:
        """Return both bands as named columns."""
        return self.our_bands.columns(f"pzos{ending}") | self.their_bands.columns(f"zos{ending}")


@dataclass(slots=True)
class Context:
    """One reproduction: everything a figure needs, with runs read from the store once."""

    scale: Scale
    seed: int
    folder: Path
    store: RunStore
    _read: dict[tuple[Family, Variant], Runs] = field(default_factory=dict)

    def specs(self, family: Family, *variants: Variant) -> list[RunSpec]:
        """Return the runs of these variants, instance by instance."""
        return list(self.scale.experiment(family).runs(self.seed, variants))

    def runs(self, family: Family, variant: Variant) -> Runs:
        """Return the runs of one variant."""
        if (family, variant) not in self._read:
            self._read[family, variant] = load_runs(self.store, self.specs(family, variant))
        return self._read[family, variant]

    def diverged(self) -> list[str]:
        """Return a sentence for every variant read so far of which runs diverged."""
        return [
            f"{variant.label} on {family} games{', with the larger step' if variant.bold else ''}: "
            f"{share(runs.diverged)} runs diverged to where no equilibrium can be computed "
            f"(seeds {[spec.seed for spec, gone in zip(runs.specs, runs.diverged, strict=True) if gone]})"
            for (family, variant), runs in self._read.items()
            if runs.diverged.any()
        ]

    def pair(self, family: Family, variants: Sequence[Variant]) -> Pair:
        """Return PZOS and ZOS, normalised over the two."""
        pzos, zos = (self.runs(family, variant) for variant in variants)
        ours, theirs = normalised([pzos, zos])
        return Pair(pzos, zos, ours, theirs, bands(ours), bands(theirs))


class Measured(NamedTuple):
    """What a figure tells of one seed: the columns of its CSV file, its claims, and how to draw it."""

    columns: Mapping[str, Iterable[object]]
    claims: Sequence[Claim]
    draw: Callable[[], None]  # writes the picture, and files of numbers that belong to it, into the context's folder


class Figure(NamedTuple):
    """A figure: what it shows, the runs it needs, the function that measures it, and choices the paper left open."""

    title: str
    caption: str  # may name numbers of the scale
    needs: Callable[[Scale, int], list[RunSpec]]
    measure: Callable[[Context], Measured]
    choices: tuple[str, ...] = ()


def write_columns(path: Path, columns: Mapping[str, Iterable[object]]) -> None:
    """Write named columns as CSV, every float with all its digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(value) for value in row] for row in zip(*columns.values(), strict=True))


def write_trajectories(path: Path, groups: Iterable[tuple[Runs, Matrix]]) -> None:
    """Write one row per instance, algorithm and step.

    Columns: instance, dimension, algorithm, batch, radius, step, queries, value, normalised. ``queries`` counts as
    the paper does (2Q + 1 or 2Q a step), without monitoring.
    """
    header = ("instance", "dimension", "algorithm", "batch", "radius", "step", "queries", "value", "normalised")
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(header) + "\n")
        for runs, scaled in groups:
            variant = runs.variant
            ending = [f",{t},{t * variant.queries_per_step}," for t in range(runs.values.shape[1])]
            for row, spec in enumerate(runs.specs):
                start = (
                    f"{spec.instance},{runs.dimensions[row]:.0f},{variant.algorithm},{variant.batch},{variant.radius:g}"
                )
                pairs = zip(ending, runs.values[row].tolist(), scaled[row].tolist(), strict=True)
                file.writelines(f"{start}{middle}{value!r},{scale!r}\n" for middle, value, scale in pairs)


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return str(value)
