"""One study as a page tells it: plain numbers and text, gathered here from a result, elsewhere from a study file."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import pzos
from pzos.base.types import Matrix, Purpose, Sense, Vector
from pzos.study.result import NAMES
from pzos.study.standing import FEASIBLE

if TYPE_CHECKING:
    from pzos.problem.problem import Problem
    from pzos.stationarity.certificate import Certificate
    from pzos.stationarity.neighbours import NeighbourCertificate
    from pzos.study.result import Result, Trace

Rows = tuple[tuple[str, str], ...]
EMPTY: Vector = np.empty(0)
NO_CERTIFICATE = (
    "No certificate was asked for, so nothing is claimed about how close this point is to a stationary one. "
    "Ask for one with result.certify(problem, delta=...) or pzos certify."
)
_METHOD = ("solver", "seed", "steps", "queries", "seconds", "constraints", "at their limits", "why this method")
_TRIALS = NAMES[Purpose.TRIAL.value]


class Curve(NamedTuple):
    """F where it is known, against what it cost to get there."""

    queries: Vector
    seconds: Vector
    values: Vector

    def best(self, sense: Sense) -> Vector:
        """Return the best value so far at each point."""
        return np.minimum.accumulate(self.values) if sense == "min" else np.maximum.accumulate(self.values)


class Motion(NamedTuple):
    """Step by step: the algorithm's queries so far, how far (or with which step size) x moved, the radius probed."""

    queries: Vector
    step: Vector
    step_name: str
    radius: Vector


class RoadMap(NamedTuple):
    """Links as segments between points, with their flow before and after, and the tolls set on them."""

    start: Matrix
    end: Matrix
    flow_before: Vector
    flow_after: Vector
    toll: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """Everything the page says about one study; empty parts are left out of it, with the reason in ``missing``."""

    name: str
    sense: Sense
    status: str
    asked: Rows
    method: Rows
    versions: Rows
    ledger: Mapping[str, int]
    before: Vector
    after: Vector
    after_name: str
    curve: Curve
    motion: Motion
    certificate: str
    resume: tuple[str, ...]
    missing: tuple[str, ...] = ()
    roads: RoadMap | None = None
    labels: tuple[str, ...] = ()

    def label(self, entry: int) -> str:
        """Return the name of one decision."""
        return self.labels[entry] if self.labels else f"x[{entry}]"


# ---- from a result that is still in memory: everything but the queries themselves is in its trace ----------------


def story_of(
    result: Result,
    name: str = "",
    problem: Problem | None = None,
    certificate: Certificate | NeighbourCertificate | None = None,
) -> Story:
    """Return the story of ``result``; with its ``problem`` also set, start and, for networks, the map."""
    start = result.x0 if result.x0 is not None else EMPTY
    told = dict(result.rows())
    return Story(
        name=name or result.problem or "study",
        sense=result.sense,
        status=result.stop.value,
        asked=asked_rows(result.problem, result.sense, result.x.size, problem),
        method=tuple((name, told[name]) for name in _METHOD if name in told),
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


def certificate_words(certificate: Certificate | NeighbourCertificate | None) -> str:
    """Return a certificate in words, or that there is none."""
    return NO_CERTIFICATE if certificate is None else str(certificate)


def asked_rows(name: str, sense: Sense, size: int, problem: Problem | None) -> Rows:
    """Return what was asked, as rows of a table."""
    goal = "minimise" if sense == "min" else "maximise"
    rows = [("problem", name or "unnamed"), ("goal", f"{goal} F(x)"), ("decisions", str(size))]
    if problem is not None:
        rows.append(("allowed set", type(problem.domain).__name__))
        if problem.outcomes is not None:
            rows.append(("constraints on outcomes", str(len(problem.outcomes))))
        rows += [("declared", ", ".join(map(repr, problem.structure)))] if problem.structure else []
    return tuple(rows)


def present_versions() -> Rows:
    """Return what this process runs on."""
    return (
        ("pzos", pzos.__version__),
        ("numpy", np.__version__),
        ("python", platform.python_version()),
        ("platform", f"{platform.system()} {platform.machine()}"),
    )


def shown_steps(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return at which steps F is known and constraints on outcomes, if there are any, are kept."""
    known: npt.NDArray[np.bool_] = np.isfinite(trace["value"])
    return known & ~(trace["violation"] > FEASIBLE) if "violation" in trace.columns else known


def curve_of(trace: Trace) -> Curve:
    """Return F against queries and seconds from a trace."""
    known = shown_steps(trace)
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


# ---- the map of a toll problem: any follower that holds a network with coordinates is drawn as one ---------------


def road_map(problem: Problem | None, before: Vector, after: Vector) -> RoadMap | None:
    """Return the map of both equilibria, or None where there is no network to draw.

    The two assignments are computed by the network's own model, not asked of the study's follower.
    """
    travellers = _travellers(problem)
    if travellers is None or before.size != after.size:
        return None
    network = travellers.network
    where = np.asarray(network.coordinates, dtype=np.float64)
    toll = np.zeros(network.links)
    toll[travellers.links] = after
    return RoadMap(
        where[network.tail],
        where[network.head],
        np.asarray(travellers.assignment(before).flow, dtype=np.float64),
        np.asarray(travellers.assignment(after).flow, dtype=np.float64),
        toll,
    )


def toll_labels(problem: Problem | None) -> tuple[str, ...]:
    """Return the tolled links by the names of their ends."""
    travellers = _travellers(problem)
    if travellers is None:
        return ()
    network = travellers.network
    ids = network.node_ids
    return tuple(f"{ids[network.tail[link]]} → {ids[network.head[link]]}" for link in travellers.links)


def _travellers(problem: Problem | None) -> Any:
    """Return the toll follower of a problem, also from inside a wrapper (plain function, cache), or None."""
    inner: Any = None if problem is None else problem.follower
    for _ in range(4):
        if hasattr(inner, "network") and hasattr(inner, "assignment") and inner.network.coordinates is not None:
            return inner
        inner = getattr(inner, "function", None) or getattr(inner, "inner", None)
    return None
