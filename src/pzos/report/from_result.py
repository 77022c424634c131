"""The story of a result that is still in memory: everything but the queries themselves is in its trace."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np

import pzos
from pzos.base.types import Purpose, Sense, Vector
from pzos.report.roads import road_map, toll_labels
from pzos.report.story import EMPTY, Curve, Motion, Rows, Story
from pzos.study.result import NAMES

if TYPE_CHECKING:
    from pzos.problem.problem import Problem
    from pzos.stationarity.certificate import Certificate
    from pzos.study.result import Result, Trace

_TRIALS = NAMES[Purpose.TRIAL.value]
NO_CERTIFICATE = (
    "No certificate was asked for, so nothing is claimed about how close this point is to a stationary one. "
    "Ask for one with result.certify(problem, delta=...) or pzos certify."
)


def story_of(
    result: Result, name: str = "", problem: Problem | None = None, certificate: Certificate | None = None
) -> Story:
    """Return the story of ``result``; with its ``problem`` also set, start and, for networks, the map."""
    start = result.x0 if result.x0 is not None else EMPTY
    return Story(
        name=name or result.problem or "study",
        sense=result.sense,
        status=result.stop.value,
        asked=asked_rows(result.problem, result.sense, result.x.size, problem),
        method=(("solver", result.solver), *_costs(result)),
        versions=present_versions(),
        ledger=ledger_of(result),
        before=start,
        after=result.best_x,
        after_name=f"best point seen, F = {result.best_value:.8g}",
        curve=curve_of(result.trace),
        motion=motion_of(result.trace),
        certificate=certificate_words(certificate or result.certificate),
        resume=("This result was kept in memory. Open the study with Study.open(path, ...) to be able to resume it.",),
        roads=road_map(problem, start, result.best_x),
        labels=toll_labels(problem),
    )


def certificate_words(certificate: Certificate | None) -> str:
    """Return a certificate in words, or that there is none."""
    return NO_CERTIFICATE if certificate is None else str(certificate)


def asked_rows(name: str, sense: Sense, size: int, problem: Problem | None) -> Rows:
    """Return what was asked, as rows of a table."""
    rows = [("problem", name or "unnamed"), ("goal", f"{'minimise' if sense == 'min' else 'maximise'} F(x)")]
    rows.append(("decisions", str(size)))
    if problem is not None:
        rows.append(("allowed set", type(problem.domain).__name__))
        rows += [("declared", ", ".join(map(repr, problem.structure)))] if problem.structure else []
    return tuple(rows)


def _costs(result: Result) -> Rows:
    rows = [
        ("seed", str(result.seed)),
        ("steps", str(result.steps)),
        ("queries", f"{result.queries} by the algorithm, {result.monitoring} to monitor it"),
        ("seconds", f"{result.seconds:.3g}"),
    ]
    return (*rows, ("why this method", result.explanation)) if result.explanation else tuple(rows)


def present_versions() -> Rows:
    """Return what this process runs on."""
    return (
        ("pzos", pzos.__version__),
        ("numpy", np.__version__),
        ("python", platform.python_version()),
        ("platform", f"{platform.system()} {platform.machine()}"),
    )


def curve_of(trace: Trace) -> Curve:
    """Return F against queries and seconds from a trace."""
    known = np.isfinite(trace["value"])
    return Curve(trace["queries"][known], trace["seconds"][known], trace["value"][known])


def motion_of(trace: Trace) -> Motion:
    """Return step size and, where the method reports one, radius from a trace."""
    radius = trace["radius"] if "radius" in trace.columns else EMPTY
    return Motion(trace["queries"], trace["step_size"], "step size", radius)


def ledger_of(result: Result) -> dict[str, int]:
    """Return where the queries went; trial points are told apart by what became of them."""
    ledger, trace = dict(result.ledger), result.trace
    if _TRIALS not in ledger or "accepted" not in trace.columns:
        return ledger
    taken: Vector = trace["accepted"]
    tried, accepted = ledger.pop(_TRIALS), int(np.nansum(taken > 0))
    start = int(bool(np.isnan(taken[:1]).any()))
    return {"start": start, "accepted": accepted, "rejected": max(0, tried - accepted - start)} | ledger
