"""The figures on routing games (Sec. 5.1 and App. A) and the claims they bear on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.experiments.context import Claim, Context, Figure, FigureReport, ahead, share
from pzos.experiments.descriptions import RoutingExperiment, RunSpec, Scale, Variant
from pzos.experiments.drawing import draw_scatter, draw_trajectories
from pzos.experiments.tables import Bands, Runs, bands, normalised, write_columns, write_trajectories

_SECTION = "Sec. 5.1"
_CHOICES = (
    "Graph distribution: the paper gives ranges only; ours is that of RoutingGame.random (see its documentation), "
    "instance i of seed s being RoutingGame.random(1000000 s + 500000 + i).",
    "Normalisation: per instance, over the algorithms compared in the figure; in routing.csv over the pair PZOS and "
    "ZOS of the same radius for Q = 1, and over PZOS and ZOS of every Q for Q > 1.",
)


def _needs(variants: Callable[[RoutingExperiment], tuple[Variant, ...]]) -> Callable[[Scale, int], list[RunSpec]]:
    return lambda scale, seed: list(scale.routing.runs(seed, variants(scale.routing)))


def _base(context: Context) -> tuple[Runs, Runs, Matrix, Matrix]:
    """Return PZOS and ZOS at Q = 1 with their normalised values."""
    pzos, zos = (context.routing(variant) for variant in context.scale.routing.base())
    scaled = normalised([pzos, zos])
    return pzos, zos, scaled[0], scaled[1]


def _exceptions(runs: Runs, won: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    seeds = [spec.seed for spec, ok in zip(runs.specs, won, strict=True) if not ok]
    return f"; exceptions (seeds): {seeds[:20]}" if seeds else ""


def _routing(context: Context) -> FigureReport:
    pzos, _, ours, theirs = _base(context)
    _write_all(context)
    band, other, steps = bands(ours), bands(theirs), pzos.steps
    draw_trajectories(
        context.folder, "routing", "iteration $t$", [[("ZOS", steps, other), ("PZOS", steps, band)]], [""]
    )
    write_columns(context.folder / "routing_figure.csv", {"step": steps} | band.columns("pzos") | other.columns("zos"))
    return FigureReport(
        "routing",
        "Routing games",
        "Median normalised objective (higher is better) with interquartile (dark) and 10-90 % range (light).",
        _routing_claims(pzos, ours, theirs, band, other),
        _CHOICES,
    )


def _write_all(context: Context) -> None:
    """Write every unconstrained run there is to routing.csv."""
    routing = context.scale.routing
    finished = context.store.finished()
    groups: list[tuple[Runs, Matrix]] = []
    for mu in routing.radii:
        pair = [Variant("PZOS", radius=mu), Variant("ZOS", radius=mu)]
        if all(spec.key in finished for spec in routing.runs(context.seed, tuple(pair))):
            runs = [context.routing(variant) for variant in pair]
            groups += zip(runs, normalised(runs), strict=True)
    wide = routing.batch_variants()
    if all(spec.key in finished for spec in routing.runs(context.seed, wide)):
        runs = [context.routing(variant) for variant in wide]
        scaled = normalised(runs)
        groups += [(one, values) for one, values in zip(runs, scaled, strict=True) if one.variant.batch > 1]
    write_trajectories(context.folder / "routing.csv", groups)


def _routing_claims(runs: Runs, pzos: Matrix, zos: Matrix, ours: Bands, theirs: Bands) -> tuple[Claim, ...]:
    later = slice(1, None)
    area = pzos.mean(axis=1) > zos.mean(axis=1)
    median = ours.median[later] > theirs.median[later]
    apart = ours.lower_quartile[later] > theirs.upper_quartile[later]
    barely = ours.lower_decile[later] - theirs.upper_decile[later]
    width = float((ours.upper_quartile - ours.lower_quartile).mean())
    other = float((theirs.upper_quartile - theirs.lower_quartile).mean())
    return (
        Claim("PZOS converges faster than ZOS on all runs (higher mean normalised objective over the run)", _SECTION,
              share(area) + _exceptions(runs, area), bool(area.all())),
        Claim("The median of PZOS is above that of ZOS throughout", _SECTION, share(median), bool(median.all())),
        Claim("The interquartile range of PZOS lies entirely above that of ZOS", _SECTION,
              f"at {share(apart)} iterations", bool(apart.all())),
        Claim("The best runs of ZOS barely match the worst of PZOS (10th percentile of PZOS against 90th of ZOS)",
              _SECTION, f"PZOS ahead by {barely.min():.3f} at worst, {np.median(barely):.3f} in the median",
              bool(np.median(barely) > -0.05)),
        Claim("PZOS varies less between runs (mean width of the interquartile range)", _SECTION,
              f"{width:.3f} against {other:.3f}", width < other),
        Claim("PZOS needs one oracle call more per iteration", _SECTION,
              f"{Variant('PZOS').queries_per_step} against {Variant('ZOS').queries_per_step}",
              Variant("PZOS").queries_per_step == Variant("ZOS").queries_per_step + 1),
    )  # fmt: skip


def _routing_scatter(context: Context) -> FigureReport:
    pzos, _, ours, theirs = _base(context)
    snapshots, columns, claims = [], {"instance": np.arange(len(ours)), "dimension": pzos.dimensions}, []
    for t in (10, 25, 50):
        snapshots.append((t, theirs[:, t], ours[:, t]))
        columns |= {f"zos_t{t}": theirs[:, t], f"pzos_t{t}": ours[:, t]}
        above = ours[:, t] > theirs[:, t]
        gap = ours[:, t] - theirs[:, t]
        correlation = float(np.corrcoef(pzos.dimensions, gap)[0, 1])
        claims += [
            Claim(f"At t = {t} every instance lies above the diagonal", "Fig. scatter",
                  share(above) + _exceptions(pzos, above), bool(above.all())),
            Claim(f"At t = {t} the gap is largest in high dimension (correlation of gap and |E|)", "Fig. scatter",
                  f"{correlation:.2f}", correlation > 0),
        ]  # fmt: skip
    draw_scatter(context.folder, snapshots, pzos.dimensions)
    write_columns(context.folder / "routing_scatter_figure.csv", columns)
    return FigureReport(
        "routing_scatter",
        "Routing games, instance by instance",
        "Normalised objective (higher is better) of ZOS and PZOS on each instance; lighter points have more edges.",
        tuple(claims),
        _CHOICES,
    )


def _batch_bands(context: Context) -> list[tuple[Variant, Bands]]:
    variants = context.scale.routing.batch_variants()
    scaled = normalised([context.routing(variant) for variant in variants])
    return [(variant, bands(values)) for variant, values in zip(variants, scaled, strict=True)]


def _routing_batch(context: Context) -> FigureReport:
    (ours, band), *others = _batch_bands(context)
    steps = context.routing(ours).steps
    rows = [[(variant.label, steps, other), ("PZOS", steps, band)] for variant, other in others]
    draw_trajectories(
        context.folder, "routing_batch", "iteration $t$", rows, [f"ZOS with Q = {v.batch}" for v, _ in others]
    )
    columns = {"step": steps} | band.columns("pzos_q1")
    claims = []
    for variant, other in others:
        columns |= other.columns(f"zos_q{variant.batch}")
        above = band.median[1:] > other.median[1:]
        claims.append(
            Claim(f"PZOS with Q = 1 stays above ZOS with Q = {variant.batch} per iteration (medians)",
                  "Fig. batch size", ahead(band.median[1:], other.median[1:], steps[1:]), bool(above.all()))
        )  # fmt: skip
    write_columns(context.folder / "routing_batch_figure.csv", columns)
    return FigureReport(
        "routing_batch",
        "Effect of the batch size",
        "PZOS with one direction (3 oracle calls an iteration) against ZOS with Q directions (2Q calls).",
        tuple(claims),
        _CHOICES,
    )


def _routing_oracle_calls(context: Context) -> FigureReport:
    (ours, band), *others = _batch_bands(context)
    steps = context.routing(ours).steps
    calls = steps * ours.queries_per_step
    rows, columns, claims = [], {"step": steps, "pzos_calls": calls} | band.columns("pzos_q1"), []
    for variant, other in others:
        their_calls = steps * variant.queries_per_step
        horizon = min(calls[-1], their_calls[-1])
        rows.append([
            (variant.label, *_until(their_calls, other, horizon)), ("PZOS", *_until(calls, band, horizon))
        ])  # fmt: skip
        columns |= {f"zos_q{variant.batch}_calls": their_calls} | other.columns(f"zos_q{variant.batch}")
        claims.append(_per_call_claim(variant, calls, band.median, their_calls, other.median))
    titles = [f"ZOS with Q = {variant.batch}" for variant, _ in others]
    draw_trajectories(context.folder, "routing_oracle_calls", "oracle calls", rows, titles)
    write_columns(context.folder / "routing_oracle_calls_figure.csv", columns)
    return FigureReport(
        "routing_oracle_calls",
        "Per oracle call",
        "The same comparison against calls to y*, counted as in the paper: 2Q + 1 for PZOS, 2Q for ZOS.",
        tuple(claims),
        _CHOICES,
    )


def _until(calls: Vector, band: Bands, horizon: float) -> tuple[Vector, Bands]:
    keep = calls <= horizon
    return calls[keep], Bands(*(getattr(band, name)[keep] for name in Bands.__slots__))


def _per_call_claim(variant: Variant, calls: Vector, ours: Vector, their_calls: Vector, theirs: Vector) -> Claim:
    grid = np.arange(12.0, min(calls[-1], their_calls[-1]) + 1.0, 6.0)
    above = np.interp(grid, calls, ours) > np.interp(grid, their_calls, theirs)
    return Claim(
        f"PZOS is ahead of ZOS with Q = {variant.batch} at equal numbers of oracle calls (medians)",
        "Fig. oracle calls",
        f"at {share(above)} counts from 12 to {grid[-1]:.0f}",
        bool(above.all()),
    )


def _routing_radius(context: Context) -> FigureReport:
    routing = context.scale.routing
    columns: dict[str, Vector] = {}
    rows, claims, finals = [], [], {}
    for mu in routing.radii:
        pzos, zos = context.routing(Variant("PZOS", radius=mu)), context.routing(Variant("ZOS", radius=mu))
        ours, theirs = (bands(values) for values in normalised([pzos, zos]))
        steps = pzos.steps
        rows.append([("ZOS", steps, theirs), ("PZOS", steps, ours)])
        columns |= {"step": steps} | ours.columns(f"pzos_mu{mu:g}") | theirs.columns(f"zos_mu{mu:g}")
        above = ours.median[1:] > theirs.median[1:]
        claims.append(Claim(f"PZOS is above ZOS at mu = {mu:g} (medians)", "Fig. radius",
                            ahead(ours.median[1:], theirs.median[1:], steps[1:]), bool(above.all())))  # fmt: skip
        finals[mu] = pzos.values[:, -1], zos.values[:, -1]
    claims += _sensitivity_claims(finals, routing.radius)
    draw_trajectories(context.folder, "routing_radius", "iteration $t$", rows,
                      [f"$\\mu$ = {mu:g}" for mu in routing.radii], light=False)  # fmt: skip
    write_columns(context.folder / "routing_radius_figure.csv", columns)
    return FigureReport(
        "routing_radius",
        "Effect of the smoothing radius",
        "Median normalised objective (higher is better) with interquartile range, for four radii.",
        tuple(claims),
        _CHOICES,
    )


def _sensitivity_claims(finals: dict[float, tuple[Vector, Vector]], base: float) -> list[Claim]:
    claims = []
    for at, name in enumerate(("PZOS", "ZOS")):
        changes = {mu: float(np.median(np.abs(pair[at] / finals[base][at] - 1.0))) for mu, pair in finals.items()}
        listing = ", ".join(f"mu = {mu:g}: {change:.1%}" for mu, change in changes.items())
        claims.append(
            Claim(f"{name} is not strongly sensitive to mu (median change of its last F against mu = {base:g} "
                  "below 10 %)", "Sec. 5.1, footnote", listing, max(changes.values()) < 0.1)
        )  # fmt: skip
    return claims


def _routing_constrained(context: Context) -> FigureReport:
    pzos, zos = (context.routing(variant) for variant in context.scale.routing.constrained_variants())
    scaled = normalised([pzos, zos])
    ours, theirs = bands(scaled[0]), bands(scaled[1])
    steps = pzos.steps
    draw_trajectories(
        context.folder, "routing_constrained", "iteration $t$", [[("ZOS", steps, theirs), ("PZOS", steps, ours)]],
        ["tolls $\\geq 0$ by projection"],
    )  # fmt: skip
    write_columns(
        context.folder / "routing_constrained_figure.csv",
        {"step": steps} | ours.columns("pzos") | theirs.columns("zos"),
    )
    median = ours.median[1:] > theirs.median[1:]
    stable = (pzos.values[:, -1] > pzos.values[:, 0]) & (zos.values[:, -1] > zos.values[:, 0])
    active = float((pzos.projected / pzos.norms.shape[1]).mean())
    return FigureReport(
        "routing_constrained",
        "Routing games with tolls of at least zero",
        "As the first routing figure, with the projection onto tau >= 0 after each step.",
        (
            Claim("With tau >= 0 PZOS still does visibly better (medians)", "App. A, Fig. constrained",
                  "above " + ahead(ours.median[1:], theirs.median[1:], steps[1:]), bool(median.all())),
            Claim("Both algorithms remain stable under projection (end above their start)", "Sec. 5, limitations",
                  f"{share(stable)} instances; the projection moved x in {active:.0%} of PZOS steps",
                  bool(stable.all())),
        ),
        _CHOICES,
    )  # fmt: skip


FIGURES = {
    "routing": Figure(_needs(lambda routing: routing.base()), _routing),
    "routing_scatter": Figure(_needs(lambda routing: routing.base()), _routing_scatter),
    "routing_batch": Figure(_needs(lambda routing: routing.batch_variants()), _routing_batch),
    "routing_oracle_calls": Figure(_needs(lambda routing: routing.batch_variants()), _routing_oracle_calls),
    "routing_radius": Figure(_needs(lambda routing: routing.radius_variants()), _routing_radius),
    "routing_constrained": Figure(_needs(lambda routing: routing.constrained_variants()), _routing_constrained),
}
