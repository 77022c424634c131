"""The figures on security games (Sec. 5.2) and the claims they bear on."""

from __future__ import annotations

import numpy as np

from pzos.base.types import Vector
from pzos.experiments.context import Claim, Context, Figure, FigureReport, share
from pzos.experiments.descriptions import RunSpec, Scale
from pzos.experiments.drawing import by_dimension, draw_dimension, draw_second_moments, draw_trajectories
from pzos.experiments.noise import noise_claims
from pzos.experiments.paper import SECOND_MOMENTS
from pzos.experiments.tables import Bands, bands, normalised, write_columns, write_trajectories

_FIGURE_1 = "Fig. 1 and its twin with error bars"
_SECTION = "Sec. 5.2"
_CHOICES = (
    "Which 427 instances: 61 dimensions (2, 5, 10, ..., 300) with 7 instances each; instance i of seed s is "
    "SecurityGame.random(1000000 s + i).",
    "A probe outside x >= 0 counts as no investment there.",
)


def _needs(scale: Scale, seed: int) -> list[RunSpec]:
    return list(scale.security.runs(seed))


# ---- second moments ---------------------------------------------------------------------------------------


def _moments(context: Context) -> dict[str, Vector]:
    """Return the mean of |g_t|^2 along each algorithm's own trajectory, by dimension, with 2 sd over instances."""
    columns: dict[str, Vector] = {}
    for algorithm in ("PZOS", "ZOS"):
        runs = context.security(algorithm)
        targets = np.unique(runs.dimensions)
        per_instance = runs.norms.mean(axis=1)
        groups = [per_instance[runs.dimensions == n] for n in targets]
        columns["n"] = targets
        columns[f"{algorithm.lower()}_mean"] = np.array([group.mean() for group in groups])
        columns[f"{algorithm.lower()}_2sd"] = np.array([2.0 * group.std(ddof=1) for group in groups])
    return columns


def _moment_claims(ours: dict[str, Vector], published: dict[str, Vector], samples: int) -> tuple[Claim, ...]:
    gap = ours["zos_mean"] - ours["pzos_mean"]
    at = np.isin(ours["n"], published["n"])
    rising = np.diff(gap[at]) > 0
    ratios = {
        name: ours[f"{name}_mean"][at] / published[f"{name}_mean"][np.isin(published["n"], ours["n"])]
        for name in ("pzos", "zos")
    }
    large = ours["n"][at] >= 50
    close = {name: np.abs(ratio[large] - 1.0) <= 0.25 for name, ratio in ratios.items()}
    listing = "; ".join(
        f"n = {n:.0f}: {p:.2f} / {z:.2f}" for n, p, z in zip(ours["n"][at], ratios["pzos"], ratios["zos"], strict=True)
    )
    return (
        Claim("The second moment of g_t is below that of the black-box estimate at every dimension (Lemma 1)",
              _FIGURE_1, share(gap > 0), bool((gap > 0).all())),
        Claim("The gap between the two second moments grows with the dimension", _FIGURE_1,
              f"rises in {share(rising)} steps between the published dimensions, from {gap[0]:.3g} to {gap[-1]:.4g}",
              bool(rising.all())),
        Claim("Evaluations per dimension: 3500", _FIGURE_1, f"{samples}", samples == 3500),
        Claim("Our means are within 25 % of the published ones for n >= 50 (ratio ours / paper, PZOS / ZOS)",
              _FIGURE_1, f"{share(np.concatenate(list(close.values())))} within; {listing}",
              float(np.concatenate(list(close.values())).mean()) >= 0.9),
    )  # fmt: skip


def _second_moments(context: Context) -> FigureReport:
    ours = _moments(context)
    rows = np.array(SECOND_MOMENTS)
    published = {name: rows[:, at] for at, name in enumerate(("n", "pzos_mean", "pzos_2sd", "zos_mean", "zos_2sd"))}
    draw_second_moments(context.folder, ours, published)
    order = ("n", "pzos_mean", "pzos_2sd", "zos_mean", "zos_2sd")
    columns = {name: ours[name] for name in order}
    write_columns(context.folder / "second_moments.csv", columns)
    write_columns(context.folder / "second_moments_figure.csv", columns)
    security = context.scale.security
    return FigureReport(
        "second_moments",
        "Second moments of the two estimators",
        "Mean of |g_t|^2 along each algorithm's own trajectory, over all steps and instances of a dimension; bars are "
        "2 standard deviations over the instances. Diamonds: the paper's published points.",
        _moment_claims(ours, published, security.repetitions * security.steps)
        + noise_claims(context.folder, context.seed),
        _CHOICES,
    )


# ---- trajectories -----------------------------------------------------------------------------------------


def _pair(context: Context) -> tuple[Vector, Vector]:
    pzos, zos = context.security("PZOS"), context.security("ZOS")
    scaled = normalised([pzos, zos])
    return scaled[0], scaled[1]


def _security(context: Context) -> FigureReport:
    pzos, zos = context.security("PZOS"), context.security("ZOS")
    scaled_pzos, scaled_zos = _pair(context)
    write_trajectories(context.folder / "security.csv", ((pzos, scaled_pzos), (zos, scaled_zos)))
    ours, theirs = bands(scaled_pzos), bands(scaled_zos)
    steps = pzos.steps
    draw_trajectories(
        context.folder, "security", "iteration $t$", [[("ZOS", steps, theirs), ("PZOS", steps, ours)]], [""]
    )
    write_columns(
        context.folder / "security_figure.csv", {"step": steps} | ours.columns("pzos") | theirs.columns("zos")
    )
    return FigureReport(
        "security",
        "Security games",
        "Median normalised objective (lower is better) with interquartile (dark) and 10-90 % range (light).",
        _security_claims(context, scaled_pzos, scaled_zos, ours, theirs),
        _CHOICES,
    )


def _security_claims(context: Context, pzos: Vector, zos: Vector, ours: Bands, theirs: Bands) -> tuple[Claim, ...]:
    final = pzos[:, -1] < zos[:, -1]
    area = pzos.mean(axis=1) < zos.mean(axis=1)
    later = slice(1, None)
    median = ours.median[later] < theirs.median[later]
    narrower = (ours.upper_quartile - ours.lower_quartile) < (theirs.upper_quartile - theirs.lower_quartile)
    runs = context.security("PZOS"), context.security("ZOS")
    projected = sum(int(one.projected.sum()) for one in runs)
    moved = sum(int((one.projected > 0).sum()) for one in runs)
    steps = sum(one.norms.size for one in runs)
    slack = sum(int(one.slack.sum()) for one in runs)
    losers = [spec.seed for spec, won in zip(runs[0].specs, area, strict=True) if not won]
    shown = f"; exceptions (seeds): {losers[:20]}" if losers else ""
    return (
        Claim("PZOS converges faster than ZOS on every run (lower mean normalised objective over the run)",
              _SECTION, share(area) + shown, bool(area.all())),
        Claim("PZOS ends lower than ZOS on every run", _SECTION, share(final), bool(final.all())),
        Claim("The median of PZOS is below that of ZOS throughout", _SECTION, share(median), bool(median.all())),
        Claim("PZOS varies less between runs (narrower interquartile range)", _SECTION,
              f"narrower at {share(narrower[later])} iterations", float(narrower[later].mean()) > 0.5),
        Claim("The projection onto x >= 0 is never active", _SECTION,
              f"active in {projected} of {steps} steps, in {moved} runs", projected == 0),
        Claim("The attacker's budget binds throughout", _SECTION, f"{slack} answers left budget unspent", slack == 0),
    )  # fmt: skip


def _security_dimension(context: Context) -> FigureReport:
    pzos, zos = _pair(context)
    dimensions = context.security("PZOS").dimensions
    large = dimensions >= 100
    n = np.unique(dimensions[large])
    panels, columns, claims = [], {"n": n}, []
    for t in (50, 150, 250):
        curves = {"ZOS": by_dimension(dimensions[large], zos[large, t]),
                  "PZOS": by_dimension(dimensions[large], pzos[large, t])}  # fmt: skip
        panels.append((t, n, curves))
        for label, curve in curves.items():
            columns |= {f"{label.lower()}_{kind}_t{t}": values for kind, values in curve.items()}
        gap = curves["ZOS"]["mean"] - curves["PZOS"]["mean"]
        claims += _dimension_claims(t, n, gap, curves["PZOS"]["mean"])
    draw_dimension(context.folder, panels)
    write_columns(context.folder / "security_dimension_figure.csv", columns)
    return FigureReport(
        "security_dimension",
        "Security games by dimension",
        f"Normalised objective (lower is better) for n in [100, 300], {int(large.sum())} instances: mean over the "
        "instances of a dimension, shading from the lowest to the highest.",
        tuple(claims),
        _CHOICES,
    )


def _dimension_claims(t: int, n: Vector, gap: Vector, pzos: Vector) -> list[Claim]:
    correlation = float(np.corrcoef(n, gap)[0, 1])
    beyond = n > 100  # the step size changes at n = 100, and with it every curve
    rising = np.diff(gap[beyond]) > 0
    drift = float(pzos[beyond].max() - pzos[beyond].min())
    return [
        Claim(f"At t = {t} the gap between ZOS and PZOS widens with n", "Fig. security, by dimension",
              f"correlation of gap and n {correlation:.2f}; from {gap[beyond][0]:.3f} to {gap[-1]:.3f}",
              correlation > 0.5 and bool(gap[-1] > gap[beyond][0])),
        Claim(f"At t = {t} the gap widens monotonically in n", "Fig. security, by dimension",
              f"rises in {share(rising)} steps for n > 100", bool(rising.all())),
        Claim(f"At t = {t} PZOS is stable across dimensions (varies by less than 0.2 for n > 100)",
              "Fig. security, by dimension", f"varies by {drift:.3f}", drift < 0.2),
    ]  # fmt: skip


FIGURES = {
    "second_moments": Figure(_needs, _second_moments),
    "security": Figure(_needs, _security),
    "security_dimension": Figure(_needs, _security_dimension),
}
