"""Tables of a reproduction: values by instance and step, normalised per run as in the paper, and their bands."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.store import RunStore


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


def load_runs(store: RunStore, specs: Iterable[RunSpec]) -> dict[Variant, Runs]:
    """Read finished runs from the store, grouped by variant, in the order of their instances."""
    grouped: dict[Variant, list[RunSpec]] = {}
    for spec in specs:
        grouped.setdefault(spec.variant, []).append(spec)
    tables = {}
    for variant, members in grouped.items():
        outcomes = store.load(spec.key for spec in members)
        tables[variant] = Runs(
            variant,
            tuple(members),
            np.stack([outcome.values for outcome in outcomes]),
            np.stack([outcome.gradient_norms_squared for outcome in outcomes]),
            np.array([outcome.dimension for outcome in outcomes], dtype=np.float64),
            np.array([outcome.projected_steps for outcome in outcomes], dtype=np.float64),
            np.array([outcome.slack_answers for outcome in outcomes], dtype=np.float64),
        )
    return tables


def normalised(group: Sequence[Runs]) -> list[Matrix]:
    """Scale the values of each instance to [0, 1] by the lowest and highest F of the whole group (Sec. 5.1)."""
    lowest = np.min([runs.values.min(axis=1) for runs in group], axis=0)[:, None]
    highest = np.max([runs.values.max(axis=1) for runs in group], axis=0)[:, None]
    spread = np.where(highest > lowest, highest - lowest, 1.0)
    return [(runs.values - lowest) / spread for runs in group]


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
        return {
            f"{prefix}_median": self.median,
            f"{prefix}_q25": self.lower_quartile,
            f"{prefix}_q75": self.upper_quartile,
            f"{prefix}_q10": self.lower_decile,
            f"{prefix}_q90": self.upper_decile,
        }


def bands(values: Matrix) -> Bands:
    """Return median, interquartile range and 10-90 % range over the rows."""
    q10, q25, q50, q75, q90 = np.quantile(values, (0.1, 0.25, 0.5, 0.75, 0.9), axis=0)
    return Bands(q50, q25, q75, q10, q90)


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
