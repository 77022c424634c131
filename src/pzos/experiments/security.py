"""The figures on security games (Sec. 5.2) and the claims they bear on."""

from __future__ import annotations

import numpy as np

from pzos.base.types import Vector
from pzos.experiments.claims import Bar, Claim, Size, everywhere, measured, rank_correlation, share
from pzos.experiments.descriptions import RunSpec, Scale
from pzos.experiments.drawing import draw_dimension, draw_pair
from pzos.experiments.moments import measure_moments
from pzos.experiments.tables import Context, Figure, Measured, Pair, by_dimension, exceptions, write_trajectories

_FIGURE_5 = "Fig. 5, Sec. 5.2"
_FIGURE_6 = "Fig. 6, Sec. 5.2"
_FOOTNOTE = "Sec. 5.2, footnote on the step"
_CHOICES = (
    "Which 427 instances: 61 dimensions (2, 5, 10, ..., 300) with 7 instances each; instance i of seed s is "
    "SecurityGame.random(1000000 s + i).",
    "A probe outside x >= 0 counts as no investment there.",
)
_SNAPSHOTS = (50, 150, 250)
#: The step size changes at n = 100, and with it every curve against n.
_STEP_CHANGES = 100
#: Dimensions are put together in bins of this width, because 7 instances of one dimension are few.
_BIN = 25


def _needs(scale: Scale, seed: int) -> list[RunSpec]:
    return list(scale.security.runs(seed, scale.security.base()))


def _needs_with_footnote(scale: Scale, seed: int) -> list[RunSpec]:
    return list(scale.security.runs(seed, (*scale.security.base(), *scale.security.bold())))


def _pair(context: Context) -> Pair:
    return context.pair("security", context.scale.security.base())


# ---- trajectories -----------------------------------------------------------------------------------------------


def _security(context: Context) -> Measured:
    pair = _pair(context)

    def draw() -> None:
        draw_pair(context, "security", pair)
        write_trajectories(context.folder / "security.csv", ((pair.pzos, pair.ours), (pair.zos, pair.theirs)))

    bold = context.pair("security", context.scale.security.bold())
    claims = (*_speed_claims(pair), *_constraint_claims(pair), *_step_claims(bold))
    return Measured({"step": pair.pzos.steps} | pair.columns(), claims, draw)


def _speed_claims(pair: Pair) -> tuple[Claim, ...]:
    ours, theirs = pair.our_bands, pair.their_bands
    sooner, lower = pair.ours.mean(axis=1) < pair.theirs.mean(axis=1), pair.ours[:, -1] < pair.theirs[:, -1]
    narrower = (ours.quartile_range < theirs.quartile_range)[1:]
    width, their_width = float(ours.quartile_range.mean()), float(theirs.quartile_range.mean())
    ends = float(theirs.median[-1] - ours.median[-1])
    size, every = Size(len(pair.ours), 30), Size(len(pair.ours), 100)
    return (
        everywhere("PZOS converges faster than ZOS (its median is below that of ZOS at every iteration)", _FIGURE_5,
                   ours.median[1:] < theirs.median[1:], size, "at {} iterations"),
        measured(everywhere("Runs on which PZOS converges faster (lower mean normalised objective over the run)",
                            _FIGURE_5, sooner, every, "{}" + _dimensions(pair, sooner))),
        Claim("PZOS reaches a better final value (ZOS - PZOS, medians at the last iteration)", _FIGURE_5,
              f"{ours.median[-1]:.3f} against {theirs.median[-1]:.3f}", ends, Bar(least=0.0), size),
        measured(everywhere("Runs that PZOS ends lower", _FIGURE_5, lower, every, "{}" + _dimensions(pair, lower))),
        Claim("PZOS varies less between runs (mean width of its interquartile range / that of ZOS)", _FIGURE_5,
              f"{width:.3f} against {their_width:.3f}", width / their_width, Bar(most=1.0), size),
        measured(everywhere("Iterations at which PZOS has the narrower quartile range", _FIGURE_5, narrower, size)),
    )  # fmt: skip


def _dimensions(pair: Pair, won: np.ndarray) -> str:
    """Return the largest dimension of the exceptions, and their seeds, as the end of a sentence."""
    lost = pair.pzos.dimensions[~won]
    return f", exceptions at n <= {lost.max():.0f}{exceptions(pair.pzos, won)}" if lost.size else ""


def _constraint_claims(pair: Pair) -> tuple[Claim, ...]:
    both = pair.pzos, pair.zos
    steps = sum(runs.norms.size for runs in both)
    ours, theirs = (int(runs.projected.sum()) for runs in both)
    touched = int(((pair.pzos.projected + pair.zos.projected) > 0).sum())
    slack = sum(int(runs.slack.sum()) for runs in both)
    size = Size(len(pair.ours), 30)
    return (
        Claim("In practice the projection onto x >= 0 is not activated (share of the steps in which it is)", _FIGURE_5,
              f"{ours + theirs} of {steps} steps, on {touched} instances", (ours + theirs) / steps, Bar(most=0.001),
              size),
        measured(Claim("Steps with an active projection", _FIGURE_5, f"PZOS {ours}, ZOS {theirs}",
                       float(ours + theirs), None, size)),
        Claim("The attacker's budget binds throughout (answers that leave some of it)", _FIGURE_5, f"{slack}",
              float(slack), Bar(most=0.0, exact=True), size),
    )  # fmt: skip


def _step_claims(bold: Pair) -> tuple[Claim, ...]:
    """Return what the footnote says of the larger step in large games: how far F rises above its start."""
    largest = bold.pzos.dimensions == bold.pzos.dimensions.max()
    ours, theirs = ((runs.values[largest].max(axis=1) / runs.values[largest, 0]) for runs in (bold.pzos, bold.zos))
    n, size = int(bold.pzos.dimensions.max()), Size(int(largest.sum()), 5, "instances of the largest dimension")
    return (
        Claim("With the step 0.05/sqrt(t) ZOS is unstable in high dimension (highest F of the run / F at its start, "
              "median at the largest n)", _FOOTNOTE, f"rises to {np.median(theirs):.3f} of its start at n = {n}",
              float(np.median(theirs)), Bar(least=1.01), size),
        Claim("With the same step PZOS remains stable (highest F of the run / F at its start, median at the largest n)",
              _FOOTNOTE, f"rises to {np.median(ours):.3f} of its start at n = {n}, {ours.max():.3f} at most",
              float(np.median(ours)), Bar(most=1.01), size),
    )  # fmt: skip


# ---- against the dimension --------------------------------------------------------------------------------------


def _security_dimension(context: Context) -> Measured:
    pair = _pair(context)
    large = pair.pzos.dimensions >= _STEP_CHANGES
    dimensions = pair.pzos.dimensions[large]
    n = np.unique(dimensions)
    panels, columns, claims = [], {"n": n}, []
    for t in _SNAPSHOTS:
        curves = {
            label: _spread(by_dimension(dimensions, values[large, t]))
            for label, values in (("ZOS", pair.theirs), ("PZOS", pair.ours))
        }
        panels.append((t, n, curves))
        for label, curve in curves.items():
            columns |= {f"{label.lower()}_{kind}_t{t}": values for kind, values in curve.items()}
        beyond = n > _STEP_CHANGES
        claims += dimension_claims(t, n[beyond], curves["PZOS"]["mean"][beyond], curves["ZOS"]["mean"][beyond])
    return Measured(columns, claims, lambda: draw_dimension(context.folder, panels))


def _spread(groups: list[Vector]) -> dict[str, Vector]:
    """Return mean, min and max of each group."""
    return {kind: np.array([getattr(group, kind)() for group in groups]) for kind in ("mean", "min", "max")}


def dimension_claims(t: int, n: Vector, pzos: Vector, zos: Vector) -> list[Claim]:
    """Return what is said of the means at iteration t against the dimensions above the change of the step."""
    gap = zos - pzos
    trend, drift = rank_correlation(n, gap), float(np.ptp(pzos))
    bins = (n - n[0]) // _BIN
    rough = np.array([gap[bins == one].mean() for one in np.unique(bins)])
    degrades = float(zos[bins == bins[-1]].mean() - zos[bins == 0].mean())
    size = Size(n.size, 20, "dimensions above 100")
    return [
        Claim(f"At t = {t} the gap between ZOS and PZOS widens with n (rank correlation of gap and n)", _FIGURE_6,
              f"{trend:.2f}; from {gap[0]:.3f} to {gap[-1]:.3f}", trend, Bar(least=0.8), size),
        measured(everywhere(f"Steps from dimension to dimension in which the gap widens at t = {t}", _FIGURE_6,
                            np.diff(gap) > 0, size, f"{{}}; between bins of {_BIN} {share(np.diff(rough) > 0)}")),
        Claim(f"At t = {t} PZOS is stable across dimensions (range of its mean)", _FIGURE_6,
              f"{pzos.min():.3f} to {pzos.max():.3f}", drift, Bar(most=0.2), size),
        Claim(f"At t = {t} ZOS degrades in high dimension (rise of its mean from the lowest to the highest {_BIN} "
              "targets)", _FIGURE_6, f"{degrades:+.3f}", degrades, Bar(least=0.05), size),
    ]  # fmt: skip


FIGURES = {
    "second_moments": Figure(
        "Second moments of the two estimators",
        "Mean of |g_t|^2 along each algorithm's own trajectory, over all steps and instances of a dimension (lines), "
        "and the paper's published points (diamonds); bars are 2 standard deviations over the instances. Right: ratio "
        "of our means to the published ones, bars of 2 standard errors of both sides; dashed: the weighted mean.",
        _needs,
        measure_moments,
        _CHOICES,
    ),
    "security": Figure(
        "Security games",
        "Median normalised objective (lower is better) with interquartile (dark) and 10-90 % range (light).",
        _needs_with_footnote,
        _security,
        (*_CHOICES, "The footnote on the step is tried at n = 200, 250 and 300, on the same instances."),
    ),
    "security_dimension": Figure(
        "Security games by dimension",
        "Normalised objective (lower is better) for n in [100, 300], {scale.security.large_instances} instances: mean "
        "over the instances of a dimension, shading from the lowest to the highest.",
        _needs,
        _security_dimension,
        _CHOICES,
    ),
}
