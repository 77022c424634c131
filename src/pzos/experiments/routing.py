"""The figures on routing games (Sec. 5.1 and App. A) and the claims they bear on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.experiments.descriptions import RoutingExperiment, RunSpec, Scale, Variant, both
from pzos.experiments.drawing import draw_pair, draw_scatter, draw_trajectories, pair_row
from pzos.experiments.tables import (
    Bands,
    Claim,
    Context,
    Drawn,
    Figure,
    Pair,
    Runs,
    bands,
    everywhere,
    exceptions,
    normalised,
    stays_ahead,
    write_trajectories,
)

_SECTION = "Sec. 5.1"
_CHOICES = (
    "Graph distribution: the paper gives ranges only; ours is that of RoutingGame.random (see its documentation), "
    "instance i of seed s being RoutingGame.random(1000000 s + 500000 + i).",
    "Normalisation: per instance, over the algorithms compared in the figure; in routing.csv over the pair PZOS and "
    "ZOS of the same radius for Q = 1, and over PZOS and ZOS of every Q for Q > 1.",
)


def _needs(variants: Callable[[RoutingExperiment], tuple[Variant, ...]]) -> Callable[[Scale, int], list[RunSpec]]:
    return lambda scale, seed: list(scale.routing.runs(seed, variants(scale.routing)))


def _routing(context: Context) -> Drawn:
    pair = context.pair("routing", context.scale.routing.base())
    _write_all(context)
    return Drawn(draw_pair(context, "routing", pair), _routing_claims(pair))


def _write_all(context: Context) -> None:
    """Write every unconstrained run there is to routing.csv."""
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
    barely = (ours.lower_decile - theirs.upper_decile)[1:]
    width, other = float(ours.quartile_range.mean()), float(theirs.quartile_range.mean())
    calls, their_calls = pair.pzos.variant.queries_per_step, pair.zos.variant.queries_per_step
    return (
        everywhere("PZOS converges faster than ZOS on all runs (higher mean normalised objective over the run)",
                   _SECTION, area, "{}" + exceptions(pair.pzos, area)),
        everywhere("The median of PZOS is above that of ZOS throughout", _SECTION,
                   ours.median[1:] > theirs.median[1:]),
        everywhere("The interquartile range of PZOS lies entirely above that of ZOS", _SECTION,
                   ours.lower_quartile[1:] > theirs.upper_quartile[1:], "at {} iterations"),
        Claim("The best runs of ZOS barely match the worst of PZOS (10th percentile of PZOS against 90th of ZOS)",
              _SECTION, f"PZOS ahead by {barely.min():.3f} at worst, {np.median(barely):.3f} in the median",
              bool(np.median(barely) > -0.05)),
        Claim("PZOS varies less between runs (mean width of the interquartile range)", _SECTION,
              f"{width:.3f} against {other:.3f}", width < other),
        Claim("PZOS needs one oracle call more per iteration", _SECTION, f"{calls} against {their_calls}",
              calls == their_calls + 1),
    )  # fmt: skip


def _routing_scatter(context: Context) -> Drawn:
    pzos, _, ours, theirs, *_ = context.pair("routing", context.scale.routing.base())
    snapshots, columns, claims = [], {"instance": np.arange(len(ours)), "dimension": pzos.dimensions}, []
    for t in (10, 25, 50):
        snapshots.append((t, theirs[:, t], ours[:, t]))
        columns |= {f"zos_t{t}": theirs[:, t], f"pzos_t{t}": ours[:, t]}
        above = ours[:, t] > theirs[:, t]
        correlation = float(np.corrcoef(pzos.dimensions, ours[:, t] - theirs[:, t])[0, 1])
        claims += [
            everywhere(f"At t = {t} every instance lies above the diagonal", "Fig. scatter", above,
                       "{}" + exceptions(pzos, above)),
            Claim(f"At t = {t} the gap is largest in high dimension (correlation of gap and |E|)", "Fig. scatter",
                  f"{correlation:.2f}", correlation > 0),
        ]  # fmt: skip
    draw_scatter(context.folder, snapshots, pzos.dimensions)
    return Drawn(columns, claims)


def _batch_bands(context: Context) -> list[tuple[Variant, Vector, Bands]]:
    """Return PZOS and ZOS with each Q: the variant, its steps, and the bands of the values normalised over all."""
    runs = [context.runs("routing", variant) for variant in context.scale.routing.batch_variants()]
    return [(one.variant, one.steps, bands(values)) for one, values in zip(runs, normalised(runs), strict=True)]


def _routing_batch(context: Context) -> Drawn:
    (_, steps, band), *others = _batch_bands(context)
    rows, columns, claims = [], {"step": steps} | band.columns("pzos_q1"), []
    for variant, _, other in others:
        rows.append([(variant.label, steps, other), ("PZOS", steps, band)])
        columns |= other.columns(f"zos_q{variant.batch}")
        claim = f"PZOS with Q = 1 stays above ZOS with Q = {variant.batch} per iteration (medians)"
        claims.append(stays_ahead(claim, "Fig. batch size", band.median, other.median))
    titles = [f"ZOS with Q = {variant.batch}" for variant, *_ in others]
    draw_trajectories(context.folder, "routing_batch", "iteration $t$", rows, titles)
    return Drawn(columns, claims)


def _routing_oracle_calls(context: Context) -> Drawn:
    (ours, steps, band), *others = _batch_bands(context)
    calls = steps * ours.queries_per_step
    rows, columns, claims = [], {"step": steps, "pzos_calls": calls} | band.columns("pzos_q1"), []
    for variant, _, other in others:
        their_calls = steps * variant.queries_per_step
        horizon = min(calls[-1], their_calls[-1])
        rows.append(
            [
                (label, x[x <= horizon], shown.until(x <= horizon))
                for label, x, shown in ((variant.label, their_calls, other), ("PZOS", calls, band))
            ]
        )
        columns |= {f"zos_q{variant.batch}_calls": their_calls} | other.columns(f"zos_q{variant.batch}")
        claims.append(_per_call_claim(variant, calls, band.median, their_calls, other.median))
    titles = [f"ZOS with Q = {variant.batch}" for variant, *_ in others]
    draw_trajectories(context.folder, "routing_oracle_calls", "oracle calls", rows, titles)
    return Drawn(columns, claims)


def _per_call_claim(variant: Variant, calls: Vector, ours: Vector, their_calls: Vector, theirs: Vector) -> Claim:
    grid = np.arange(12.0, min(calls[-1], their_calls[-1]) + 1.0, 6.0)
    return everywhere(
        f"PZOS is ahead of ZOS with Q = {variant.batch} at equal numbers of oracle calls (medians)",
        "Fig. oracle calls",
        np.interp(grid, calls, ours) > np.interp(grid, their_calls, theirs),
        f"at {{}} counts from 12 to {grid[-1]:.0f}",
    )


def _routing_radius(context: Context) -> Drawn:
    routing = context.scale.routing
    pairs = {mu: context.pair("routing", both(mu)) for mu in routing.radii}
    columns: dict[str, Vector] = {"step": pairs[routing.radius].pzos.steps}
    claims = []
    for mu, pair in pairs.items():
        columns |= pair.columns(f"_mu{mu:g}")
        medians = pair.our_bands.median, pair.their_bands.median
        claims.append(stays_ahead(f"PZOS is above ZOS at mu = {mu:g} (medians)", "Fig. radius", *medians))
    draw_trajectories(context.folder, "routing_radius", "iteration $t$", [pair_row(pair) for pair in pairs.values()],
                      [f"$\\mu$ = {mu:g}" for mu in pairs], light=False)  # fmt: skip
    return Drawn(columns, claims + _sensitivity_claims(pairs, routing.radius))


def _sensitivity_claims(pairs: dict[float, Pair], base: float) -> list[Claim]:
    claims = []
    for name in ("PZOS", "ZOS"):
        last = {mu: getattr(pair, name.lower()).values[:, -1] for mu, pair in pairs.items()}
        changes = {mu: float(np.median(np.abs(values / last[base] - 1.0))) for mu, values in last.items()}
        listing = ", ".join(f"mu = {mu:g}: {change:.1%}" for mu, change in changes.items())
        claims.append(
            Claim(f"{name} is not strongly sensitive to mu (median change of its last F against mu = {base:g} "
                  "below 10 %)", "Sec. 5.1, footnote", listing, max(changes.values()) < 0.1)
        )  # fmt: skip
    return claims


def _routing_constrained(context: Context) -> Drawn:
    pair = context.pair("routing", context.scale.routing.constrained_variants())
    rises = [runs.values[:, -1] > runs.values[:, 0] for runs in (pair.pzos, pair.zos)]
    active = float((pair.pzos.projected / pair.pzos.norms.shape[1]).mean())
    claims = [
        stays_ahead("With tau >= 0 PZOS still does visibly better (medians)", "App. A, Fig. constrained",
                    pair.our_bands.median, pair.their_bands.median, "above {}"),
        everywhere("Both algorithms remain stable under projection (end above their start)", "Sec. 5, limitations",
                   rises[0] & rises[1], f"{{}} instances; the projection moved x in {active:.0%} of PZOS steps"),
    ]  # fmt: skip
    return Drawn(draw_pair(context, "routing_constrained", pair, "tolls $\\geq 0$ by projection"), claims)


FIGURES = {
    "routing": Figure(
        "Routing games",
        "Median normalised objective (higher is better) with interquartile (dark) and 10-90 % range (light).",
        _needs(RoutingExperiment.base),
        _routing,
        _CHOICES,
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
        "The same comparison against calls to y*, counted as in the paper: 2Q + 1 for PZOS, 2Q for ZOS.",
        _needs(RoutingExperiment.batch_variants),
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
