"""The figures on routing games (Sec. 5.1 and App. A) and the claims they bear on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.experiments.claims import (
    ALL,
    Bar,
    Claim,
    Size,
    everywhere,
    measured,
    rank_correlation,
    share,
    stays_ahead,
)
from pzos.experiments.descriptions import RoutingExperiment, RunSpec, Scale, Variant, both
from pzos.experiments.drawing import Curve, draw_pair, draw_scatter, draw_trajectories, pair_row
from pzos.experiments.tables import (
    Bands,
    Context,
    Figure,
    Measured,
    Pair,
    Runs,
    bands,
    exceptions,
    normalised,
    write_trajectories,
)

_FIGURE_2 = "Fig. 2, Sec. 5.1"
_FIGURE_3 = "Fig. 3, Sec. 5.1"
_FIGURE_4 = "Fig. 4, Sec. 5.1"
_FIGURE_7 = "Fig. 7, App. A"
_FIGURE_8 = "Fig. 8, App. A"
_FIGURE_9 = "Fig. 9, App. A"
_FOOTNOTE = "Sec. 5.1, footnote on the step"
_CHOICES = (
    "Graph distribution: the paper gives ranges only; ours is that of RoutingGame.random (see its documentation), "
    "instance i of seed s being RoutingGame.random(1000000 s + 500000 + i).",
    "Normalisation: per instance, over the algorithms compared in the figure; in routing.csv over the pair PZOS and "
    "ZOS of the same radius for Q = 1, and over PZOS and ZOS of every Q for Q > 1.",
)
#: The median normalised objective at which oracle calls are compared.
_LEVEL = 0.8
#: tau >= 0: both start at the boundary, and the first steps are projected back.
_SETTLED = 5


def _needs(variants: Callable[[RoutingExperiment], tuple[Variant, ...]]) -> Callable[[Scale, int], list[RunSpec]]:
    return lambda scale, seed: list(scale.routing.runs(seed, variants(scale.routing)))


# ---- Fig. 2 and 3: PZOS against ZOS -----------------------------------------------------------------------------


def _routing(context: Context) -> Measured:
    routing = context.scale.routing
    pair, bold = context.pair("routing", routing.base()), context.pair("routing", routing.bold())

    def draw() -> None:
        draw_pair(context, "routing", pair)
        _write_all(context)

    claims = _routing_claims(pair) + _step_claims(pair.pzos, bold)
    return Measured({"step": pair.pzos.steps} | pair.columns(), claims, draw)


def _write_all(context: Context) -> None:
    """Write the unconstrained runs that there are to routing.csv; PZOS-B is in routing_batches.csv."""
    routing, finished = context.scale.routing, context.store.finished()
    groups: list[tuple[Runs, Matrix]] = []
    for variants in (*(both(mu) for mu in routing.radii), routing.batch_variants()):
        if all(spec.key in finished for spec in context.specs("routing", *variants)):
            runs = [context.runs("routing", variant) for variant in variants]
            found = zip(runs, normalised(runs), strict=True)
            groups += [(one, values) for one, values in found if len(variants) == 2 or one.variant.batch > 1]
    write_trajectories(context.folder / "routing.csv", groups)


def _routing_claims(pair: Pair) -> tuple[Claim, ...]:
    ours, theirs = pair.our_bands, pair.their_bands
    area = pair.ours.mean(axis=1) > pair.theirs.mean(axis=1)
    ahead = float(np.median((ours.lower_decile - theirs.upper_decile)[1:]))
    width, their_width = float(ours.quartile_range.mean()), float(theirs.quartile_range.mean())
    ends = float(ours.median[-1] - theirs.median[-1])
    size, every = Size(len(pair.ours), 30), Size(len(pair.ours), 100)
    return (
        everywhere("PZOS converges faster than ZOS on all runs (higher mean normalised objective over the run)",
                   _FIGURE_2, area, every, "{}" + exceptions(pair.pzos, area)),
        everywhere("The median of PZOS is above that of ZOS throughout", _FIGURE_2,
                   ours.median[1:] > theirs.median[1:], size, "at {} iterations"),
        Claim("PZOS reaches a better final value (PZOS - ZOS, medians at the last iteration)", _FIGURE_2,
              f"{ours.median[-1]:.3f} against {theirs.median[-1]:.3f}", ends, Bar(least=0.0), size),
        everywhere("The interquartile range of PZOS lies entirely above that of ZOS", _FIGURE_2,
                   ours.lower_quartile[1:] > theirs.upper_quartile[1:], every, "at {} iterations"),
        Claim("The best runs of ZOS barely match the worst of PZOS (10th percentile of PZOS - 90th of ZOS, median over "
              "the iterations)", _FIGURE_2, f"{ahead:+.3f}", ahead, Bar(least=-0.05), every),
        Claim("PZOS varies less between runs (mean width of its interquartile range / that of ZOS)", _FIGURE_2,
              f"{width:.3f} against {their_width:.3f}", width / their_width, Bar(most=1.0), size),
    )  # fmt: skip


def _step_claims(base: Runs, bold: Pair) -> tuple[Claim, ...]:
    """Return what the footnote says of the step: conservative for PZOS, chosen to keep ZOS stable."""
    values, larger = base.values[: len(bold.ours)], bold.pzos.values
    gain = float(np.median(larger.mean(axis=1) / values.mean(axis=1)))
    fails = bold.zos.values[:, -1] < bold.zos.values[:, 0]
    gone = int(bold.zos.diverged.sum())
    found = share(fails) + (f", {gone} of them to where no equilibrium can be computed" if gone else "")
    size = Size(len(bold.ours), 30)
    return (
        Claim("The step is conservative for PZOS: a step half again as large makes it faster (mean F of the run / that "
              "with the paper's step, median)", _FOOTNOTE, f"{gain:.3f}", gain, Bar(least=1.0), size),
        Claim("The step is as small as it is to stabilise ZOS: with the larger one ZOS is unstable (share of the runs "
              "that end below their start)", _FOOTNOTE, found, float(fails.mean()), Bar(least=0.5), size),
    )  # fmt: skip


def _routing_scatter(context: Context) -> Measured:
    pzos, _, ours, theirs, *_ = context.pair("routing", context.scale.routing.base())
    snapshots, columns, claims = [], {"instance": np.arange(len(ours)), "dimension": pzos.dimensions}, []
    for t in (10, 25, 50):
        snapshots.append((t, theirs[:, t], ours[:, t]))
        columns |= {f"zos_t{t}": theirs[:, t], f"pzos_t{t}": ours[:, t]}
        claims += _scatter_claims(t, pzos, ours[:, t], theirs[:, t])
    return Measured(columns, claims, lambda: draw_scatter(context.folder, snapshots, pzos.dimensions))


def _scatter_claims(t: int, runs: Runs, ours: Vector, theirs: Vector) -> list[Claim]:
    above = ours > theirs
    # Where ZOS is at its lowest the ratio is infinite, which has a rank like any other.
    times = np.divide(ours, theirs, out=np.full(ours.size, np.inf), where=theirs > 0)
    ratio = rank_correlation(runs.dimensions, times)
    difference, struggle = (rank_correlation(runs.dimensions, values) for values in (ours - theirs, theirs))
    size = Size(len(ours), 100)
    chance = round(1.96 / np.sqrt(max(len(ours), 2) - 1), 2)  # what two independent rankings stay below
    return [
        everywhere(f"At t = {t} every instance lies above the diagonal", _FIGURE_3, above, size,
                   "{}" + exceptions(runs, above)),
        Claim(f"At t = {t} the gap is most pronounced in high dimension (rank correlation of PZOS / ZOS and |E|)",
              _FIGURE_3, f"{ratio:.2f}", ratio, Bar(least=chance), size),
        measured(Claim(f"The same with the difference PZOS - ZOS at t = {t}", _FIGURE_3, f"{difference:.2f}",
                       difference, None, size)),
        Claim(f"At t = {t} ZOS struggles the most in high dimension (rank correlation of its objective and |E|)",
              _FIGURE_3, f"{struggle:.2f}", struggle, Bar(most=-chance), size),
    ]  # fmt: skip


# ---- Fig. 4 and 7: batches, per iteration and per oracle call ---------------------------------------------------


def _batch_runs(context: Context) -> list[tuple[Runs, Matrix]]:
    """Return PZOS and ZOS with each Q: the runs, and their values normalised over all."""
    runs = [context.runs("routing", variant) for variant in context.scale.routing.batch_variants()]
    return list(zip(runs, normalised(runs), strict=True))


def _routing_batch(context: Context) -> Measured:
    (pzos, ours), *others = _batch_runs(context)
    steps, band = pzos.steps, bands(ours)
    rows, columns, claims = [], {"step": steps} | band.columns("pzos_q1"), []
    for zos, theirs in others:
        other, q = bands(theirs), zos.variant.batch
        rows.append([(zos.variant.label, steps, other), ("PZOS", steps, band)])
        columns |= other.columns(f"zos_q{q}")
        largest = q == max(context.scale.routing.batches)
        claims += _batch_claims(q, ours, theirs, band, other, largest=largest)
    titles = [f"ZOS with Q = {zos.variant.batch}" for zos, _ in others]
    return Measured(columns, claims,
                    lambda: draw_trajectories(context.folder, "routing_batch", "iteration $t$", [rows], titles)
    )  # fmt: skip


def _batch_claims(q: int, ours: Matrix, theirs: Matrix, band: Bands, other: Bands, *, largest: bool) -> list[Claim]:
    """Return what is said of ZOS with Q = q: it stays below at every iteration, or with the largest Q over the run."""
    size, words = Size(len(ours), 30), f"PZOS with Q = 1 stays above ZOS with Q = {q} per iteration"
    means, lower, middle, upper = (
        stays_ahead(f"{words} ({kind})", _FIGURE_4, one, another, size)
        for kind, one, another in (
            ("means", ours.mean(axis=0), theirs.mean(axis=0)),
            ("lower quartiles", band.lower_quartile, other.lower_quartile),
            ("medians", band.median, other.median),
            ("upper quartiles", band.upper_quartile, other.upper_quartile),
        )
    )
    if q == 1:
        return [means]
    if not largest:
        return [means, lower, measured(middle), measured(upper)]
    lead = float((band.median - other.median)[1:].mean())
    return [
        Claim(f"ZOS with Q = {q} fails to close the gap to PZOS with Q = 1 (PZOS - ZOS, medians, mean over the "
              "iterations)", _FIGURE_4, f"{lead:+.3f}", lead, Bar(least=0.0), size),
        *map(measured, (means, lower, middle, upper)),
    ]  # fmt: skip


class _Panels(NamedTuple):
    """One row of Fig. 7: its panels, their numbers and their claims."""

    row: list[list[Curve]]
    columns: dict[str, Vector]
    claims: list[Claim]


def _routing_oracle_calls(context: Context) -> Measured:
    above, below = _one_direction(context), _same_batch(context)
    batches = context.scale.routing.batches
    titles = [f"{names} with Q = {q}" for names in ("ZOS", "PZOS and ZOS") for q in batches]

    def draw() -> None:
        rows = [above.row, below.row]
        draw_trajectories(context.folder, "routing_oracle_calls", "oracle calls", rows, titles)
        pairs = [context.pair("routing", variants) for variants in context.scale.routing.batch_pairs()]
        groups = [group for pair in pairs for group in ((pair.pzos, pair.ours), (pair.zos, pair.theirs))]
        write_trajectories(context.folder / "routing_batches.csv", groups)

    return Measured(above.columns | below.columns, above.claims + below.claims, draw)


def _one_direction(context: Context) -> _Panels:
    """Compare PZOS with Q = 1 with ZOS-B at each Q, normalised over all."""
    (pzos, ours), *others = _batch_runs(context)
    band, calls, size = bands(ours), pzos.calls, Size(len(ours), 30)
    found = _Panels([], {"step": pzos.steps, "pzos_calls": calls} | band.columns("pzos_q1"), [])
    theirs_to_level = {}
    for zos, theirs in others:
        other, q = bands(theirs), zos.variant.batch
        found.row.append(_until_first_ends([(zos.variant.label, zos.calls, other), ("PZOS", calls, band)]))
        found.columns.update({f"zos_q{q}_calls": zos.calls} | other.columns(f"zos_q{q}"))
        curves = calls, band.median, zos.calls, other.median
        found.claims.append(_per_call_claim(f"PZOS is ahead of ZOS with Q = {q}", *curves, size))
        theirs_to_level[q] = calls_to(_LEVEL, zos.calls, other.median)
    found.claims.append(_fewer_calls_claim(calls_to(_LEVEL, calls, band.median), theirs_to_level, size))
    return found


def _same_batch(context: Context) -> _Panels:
    """Compare PZOS-B with ZOS-B (Algorithms 4 and 3) at each Q, normalised over the two."""
    found = _Panels([], {}, [])
    for variants in context.scale.routing.batch_pairs():
        pair = context.pair("routing", variants)
        q, calls, their_calls = variants[0].batch, pair.pzos.calls, pair.zos.calls
        labelled = (pair.zos, their_calls, pair.their_bands), (pair.pzos, calls, pair.our_bands)
        found.row.append(_until_first_ends([(runs.variant.label, x, band) for runs, x, band in labelled]))
        found.columns.update({f"pzos_b{q}_calls": calls, f"zos_b{q}_calls": their_calls} | pair.columns(f"_b{q}"))
        if q > 1:  # Q = 1 is a claim of the row above
            words, size = f"PZOS with Q = {q} is ahead of ZOS with Q = {q}", Size(len(pair.ours), 30)
            means = calls, pair.ours.mean(axis=0), their_calls, pair.theirs.mean(axis=0)
            medians = calls, pair.our_bands.median, their_calls, pair.their_bands.median
            found.claims.append(_per_call_claim(words, *means, size, "means"))
            found.claims.append(measured(_per_call_claim(words, *medians, size)))
    return found


def _until_first_ends(curves: Sequence[Curve]) -> list[Curve]:
    """Cut curves where the first of them ends."""
    horizon = min(float(x[-1]) for _, x, _ in curves)
    return [(label, x[x <= horizon], band.until(x <= horizon)) for label, x, band in curves]


def _per_call_claim(
    claim: str, calls: Vector, ours: Vector, their_calls: Vector, theirs: Vector, size: Size, kind: str = "medians"
) -> Claim:
    grid = np.arange(12.0, min(calls[-1], their_calls[-1]) + 1.0, 6.0)
    lead = np.interp(grid, calls, ours) - np.interp(grid, their_calls, theirs)
    words = f"at {{}} counts from 12 to {grid[-1]:.0f}"
    if (lead <= 0).any():
        words += f"; behind from {grid[lead <= 0][0]:.0f} calls by at most {-lead.min():.1g}"
    return everywhere(f"{claim} at equal numbers of oracle calls ({kind})", _FIGURE_7, lead > 0, size, words)


def calls_to(level: float, calls: Vector, curve: Vector) -> float:
    """Return the oracle calls after which a curve first reaches a level; infinite if it never does."""
    reached = np.flatnonzero(curve >= level)
    return float(calls[reached[0]]) if reached.size else np.inf


def _fewer_calls_claim(ours: float, theirs: dict[int, float], size: Size) -> Claim:
    """Return contribution C3 as a number: calls of the best ZOS / calls of PZOS to the same median."""
    ratio = min(theirs.values()) / ours
    listing = ", ".join(f"ZOS with Q = {q} {calls:.0f}" for q, calls in theirs.items())
    return Claim(
        f"PZOS takes substantially fewer oracle calls for equal performance (C3: calls until the median is {_LEVEL:g}, "
        "best ZOS / PZOS)", _FIGURE_7, f"PZOS {ours:.0f}, {listing}", ratio, Bar(least=1.5), size,
    )  # fmt: skip


# ---- Fig. 8 and 9: the radius, and tolls of at least zero -------------------------------------------------------


def _routing_radius(context: Context) -> Measured:
    routing = context.scale.routing
    pairs = {mu: context.pair("routing", both(mu)) for mu in routing.radii}
    columns: dict[str, Vector] = {"step": pairs[routing.radius].pzos.steps}
    claims = []
    for mu, pair in pairs.items():
        columns |= pair.columns(f"_mu{mu:g}")
        medians = pair.our_bands.median, pair.their_bands.median
        claims.append(stays_ahead(f"PZOS is above ZOS at mu = {mu:g} (medians)", _FIGURE_8, *medians,
                                  Size(len(pair.ours), 30)))  # fmt: skip
    rows, titles = [pair_row(pair) for pair in pairs.values()], [f"$\\mu$ = {mu:g}" for mu in pairs]
    return Measured(columns, claims + _sensitivity_claims(pairs, routing.radius),
                    lambda: draw_trajectories(context.folder, "routing_radius", "iteration $t$", [rows], titles,
                                              light=False))  # fmt: skip


def _sensitivity_claims(pairs: dict[float, Pair], base: float) -> list[Claim]:
    claims = []
    for name in ("PZOS", "ZOS"):
        last = {mu: getattr(pair, name.lower()).values[:, -1] for mu, pair in pairs.items()}
        changes = {mu: float(np.median(np.abs(values / last[base] - 1.0))) for mu, values in last.items()}
        listing = ", ".join(f"mu = {mu:g}: {change:.1%}" for mu, change in changes.items())
        claims.append(
            Claim(f"{name} is not strongly sensitive to mu (largest median change of its last F against mu = {base:g})",
                  _FIGURE_8, listing, max(changes.values()), Bar(most=0.1), Size(len(last[base]), 30))
        )  # fmt: skip
    return claims


def _routing_constrained(context: Context) -> Measured:
    pair = context.pair("routing", context.scale.routing.constrained_variants())
    draw = lambda: draw_pair(context, "routing_constrained", pair, "tolls $\\geq 0$ by projection")  # noqa: E731
    return Measured({"step": pair.pzos.steps} | pair.columns(), _constrained_claims(pair), draw)


def _constrained_claims(pair: Pair) -> tuple[Claim, ...]:
    medians = pair.our_bands.median, pair.their_bands.median
    rises = [runs.values[:, -1] > runs.values[:, 0] for runs in (pair.pzos, pair.zos)]
    stable = rises[0] & rises[1]
    active = float((pair.pzos.projected / pair.pzos.norms.shape[1]).mean())
    size = Size(len(pair.ours), 30)
    words = "With tau >= 0 PZOS still does visibly better"
    return (
        stays_ahead(f"{words} (medians, from t = {_SETTLED} on)", _FIGURE_9, *medians, size, _SETTLED),
        measured(stays_ahead(f"{words} (medians, from the first iteration)", _FIGURE_9, *medians, size)),
        Claim("Both algorithms remain stable under projection (share of the instances on which both end above their "
              "start)", _FIGURE_9, f"{share(stable)}; the projection moved x in {active:.0%} of PZOS steps",
              float(stable.mean()), ALL, Size(len(pair.ours), 100)),
    )  # fmt: skip


FIGURES = {
    "routing": Figure(
        "Routing games",
        "Median normalised objective (higher is better) with interquartile (dark) and 10-90 % range (light).",
        _needs(lambda routing: (*routing.base(), *routing.bold())),
        _routing,
        (*_CHOICES, "The footnote on the step is tried with 1.05/|E| on the first 60 instances."),
    ),
    "routing_scatter": Figure(
        "Routing games, instance by instance",
        "Normalised objective (higher is better) of ZOS and PZOS on each instance; lighter points have more edges.",
        _needs(RoutingExperiment.base),
        _routing_scatter,
        _CHOICES,
    ),
    "routing_batch": Figure(
        "Effect of the batch size",
        "PZOS with one direction (3 oracle calls an iteration) against ZOS with Q directions (2Q calls).",
        _needs(RoutingExperiment.batch_variants),
        _routing_batch,
        _CHOICES,
    ),
    "routing_oracle_calls": Figure(
        "Per oracle call",
        "The same comparison against calls to y*, counted as in the paper: 2Q + 1 for PZOS, 2Q for ZOS. Above: PZOS "
        "with one direction; below: PZOS-B against ZOS-B with the same Q, normalised over the two.",
        _needs(lambda routing: tuple(variant for pair in routing.batch_pairs() for variant in pair)),
        _routing_oracle_calls,
        _CHOICES,
    ),
    "routing_radius": Figure(
        "Effect of the smoothing radius",
        "Median normalised objective (higher is better) with interquartile range, for four radii.",
        _needs(RoutingExperiment.radius_variants),
        _routing_radius,
        _CHOICES,
    ),
    "routing_constrained": Figure(
        "Routing games with tolls of at least zero",
        "As the first routing figure, with the projection onto tau >= 0 after each step.",
        _needs(RoutingExperiment.constrained_variants),
        _routing_constrained,
        _CHOICES,
    ),
}
