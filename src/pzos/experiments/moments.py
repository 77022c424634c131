"""Second moments of both estimates against the dimension (Fig. 1 and 10), beside the paper's own points."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from pzos.base.types import Vector
from pzos.experiments.claims import Bar, Claim, Size, everywhere, measured, rank_correlation
from pzos.experiments.drawing import draw_second_moments
from pzos.experiments.noise import noise_claims
from pzos.experiments.tables import Context, Measured, Pair, by_dimension, write_columns

_WHERE = "Fig. 1 and 10"
#: Instances of a dimension behind each published point.
_PUBLISHED_INSTANCES = 7


def published_moments() -> dict[str, Vector]:
    """Return the 61 points of Fig. 10: dimension, and mean and two standard deviations of each method."""
    text = files("pzos.experiments").joinpath("published_moments.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def own_moments(pair: Pair) -> dict[str, Vector]:
    """Return the mean of |g_t|^2 along each algorithm's own trajectory, by dimension, with 2 sd over instances."""
    columns = {"n": np.unique(pair.pzos.dimensions)}
    for name, runs in (("pzos", pair.pzos), ("zos", pair.zos)):
        groups = by_dimension(runs.dimensions, runs.norms.mean(axis=1))
        columns[f"{name}_mean"] = np.array([group.mean() for group in groups])
        columns[f"{name}_2sd"] = np.array([2.0 * group.std(ddof=1) for group in groups])
    return columns


class Agreement(NamedTuple):
    """Log ratios ours / published of one method, their standard errors, and what they say together."""

    log_ratios: Vector
    errors: Vector

    @property
    def mean(self) -> float:
        """Return the mean log ratio, weighted by the inverse variances."""
        return float(np.average(self.log_ratios, weights=self.errors**-2.0))

    @property
    def error(self) -> float:
        """Return the standard error of the weighted mean."""
        return float(np.sum(self.errors**-2.0) ** -0.5)

    @property
    def chi_square(self) -> float:
        """Return the sum of squared log ratios in units of their errors."""
        return float(np.sum((self.log_ratios / self.errors) ** 2))


def agreement(ours: dict[str, Vector], published: dict[str, Vector], name: str, instances: int) -> Agreement:
    """Compare one method's means at the dimensions both have.

    The error of a log ratio is that of both sides: the relative standard deviations over instances, each divided by
    the root of the number of its instances.
    """
    at, there = np.isin(ours["n"], published["n"]), np.isin(published["n"], ours["n"])
    sides = ((ours, at, instances), (published, there, _PUBLISHED_INSTANCES))
    (mean, spread), (their_mean, their_spread) = (
        (side[f"{name}_mean"][kept], side[f"{name}_2sd"][kept] / 2.0 / side[f"{name}_mean"][kept] / np.sqrt(count))
        for side, kept, count in sides
    )
    return Agreement(np.log(mean / their_mean), np.hypot(spread, their_spread))


def _agreement_claim(both: dict[str, Agreement]) -> Claim:
    """Return the one claim that our means are the published ones up to sampling error.

    Its number is the largest of three deviations in standard errors: the weighted mean log ratio of either method,
    and the chi-square of all points.
    """
    points = sum(one.errors.size for one in both.values())
    chi_square = sum(one.chi_square for one in both.values())
    deviations = [abs(one.mean) / one.error for one in both.values()]
    deviations.append((chi_square - points) / np.sqrt(2.0 * points))
    ratios = ", ".join(
        f"{name} {np.exp(one.mean):.3f} +- {np.exp(one.mean) * one.error:.3f} (chi-square {one.chi_square:.1f} on "
        f"{one.errors.size})" for name, one in both.items()
    )  # fmt: skip
    return Claim(
        "Our second moments are the published ones up to the sampling error of both sides (largest of three "
        "deviations in standard errors: weighted mean log ratio of PZOS, of ZOS, and chi-square of all points)",
        _WHERE, f"ratio ours / published: {ratios}", max(deviations), Bar(most=3.0),
        Size(points // 2, 20, "dimensions"),
    )  # fmt: skip


def moment_claims(ours: dict[str, Vector], both: dict[str, Agreement]) -> tuple[Claim, ...]:
    """Return what the figure says (order, growth, values), and how fast the gap grows."""
    gap = ours["zos_mean"] - ours["pzos_mean"]
    size = Size(gap.size, 20, "dimensions")
    trend = rank_correlation(ours["n"], gap)
    positive = gap > 0
    slope = (
        float(np.polyfit(np.log(ours["n"][positive]), np.log(gap[positive]), 1)[0]) if positive.sum() > 1 else np.nan
    )
    return (
        everywhere("The second moment of g_t is below that of the black-box estimate at every dimension (Lemma 1)",
                   _WHERE, positive, size),
        Claim("The gap between the two second moments grows with the dimension (rank correlation of gap and n)",
              _WHERE, f"{trend:.3f}; from {gap[0]:.3g} to {gap[-1]:.4g}", trend, Bar(least=0.9), size),
        _agreement_claim(both),
        measured(Claim("The gap grows faster than linearly on these games, whose Lipschitz constants grow with n "
                       "(slope of log gap against log n)", _WHERE, f"{slope:.2f}", slope, None, size)),
    )  # fmt: skip


def measure_moments(context: Context) -> Measured:
    """Compare our second moments with the published ones; beside it, how the noise behaves at the optimum."""
    security = context.scale.security
    ours, published = own_moments(context.pair("security", security.base())), published_moments()
    both = {name: agreement(ours, published, name.lower(), security.repetitions) for name in ("PZOS", "ZOS")}
    noise, claims = noise_claims(context.seed)

    def draw() -> None:
        ratios = [(name, one.log_ratios, one.errors, one.mean) for name, one in both.items()]
        draw_second_moments(context.folder, ours, published, ratios)
        write_columns(context.folder / "second_moments.csv", ours)
        write_columns(context.folder / "noise.csv", noise)

    return Measured(ours, moment_claims(ours, both) + claims, draw)
