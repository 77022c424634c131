"""One study as a page tells it: plain numbers and text, gathered here from a result, elsewhere from a study file."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import pzos
from pzos.base.columns import Columns
from pzos.base.types import Matrix, Purpose, Sense, Vector
from pzos.problem.problem import NAMELESS
from pzos.study.result import NAMES
from pzos.study.standing import FEASIBLE

if TYPE_CHECKING:
    from pzos.problem.problem import Known, Problem
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
NOTHING = "doing nothing"
#: A start whose F is smaller than this part of the best has no percentages.
_SMALL = 1e-9
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


class Point(NamedTuple):
    """A decision that is compared with others: x, what the followers did there (empty: not known), F (or NaN)."""

    name: str
    x: Vector
    y: Vector
    value: float


class RoadMap(NamedTuple):
    """Links as segments between points, with their flow before and after, and the tolls set on them."""

    start: Matrix
    end: Matrix
    flow_before: Vector
    flow_after: Vector
    toll: Vector
    before: str = "before"


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
    points: tuple[Point, ...]
    curve: Curve
    motion: Motion
    certificate: str
    resume: tuple[str, ...]
    missing: tuple[str, ...] = ()
    roads: RoadMap | None = None
    decisions: Columns = NAMELESS
    responses: Columns = NAMELESS
    unit: str = ""

    @property
    def cost(self) -> str:
        """Return what F is called."""
        return "cost" if self.sense == "min" else "value"

    def amount(self, value: float) -> str:
        """Return F in words, in its unit."""
        return f"{value:.6g} {self.unit}".rstrip()

    @property
    def verdict(self) -> str:
        """Return in one sentence what came of it, and why it went no further."""
        asked = sum(self.ledger.values())
        queries = f"{asked:,} {'query' if asked == 1 else 'queries'}"
        return f"{self._found()}, after {queries}; {self.status}."

    def _found(self) -> str:
        if not self.curve.values.size:
            return "What was reached is not known here"
        first, best = float(self.curve.values[0]), float(self.curve.best(self.sense)[-1])
        known = [point.value for point in self.points if point.name == NOTHING and point.value == point.value]
        aside = [f"{NOTHING}: {self.amount(value)}" for value in known]
        if best == first:
            said = f"No decision asked about is better than the first, with a {self.cost} of {self.amount(best)}"
        else:
            down, lower = ("down", "lower") if best < first else ("up", "higher")
            came = f"{down} from {self.amount(first)} to {self.amount(best)}"
            said = f"The best decision found brings the {self.cost} {came}"
            if abs(first) > _SMALL * abs(best) and first * best >= 0.0:  # of a change of sign there are none
                aside.insert(0, f"{100 * abs(best - first) / abs(first):.3g} % {lower}")
        return said + (f" ({'; '.join(aside)})" if aside else "")


# ---- from a result that is still in memory: everything but the queries themselves is in its trace ----------------


def story_of(
    result: Result,
    name: str = "",
    problem: Problem | None = None,
    certificate: Certificate | NeighbourCertificate | None = None,
) -> Story:
    """Return the story of ``result``; with its ``problem`` also set, start and, for networks, the map."""
    points, about = points_of(result, problem), problem or result.known
    told = dict(result.rows())
    return Story(
        name=name or result.problem or "study",
        sense=result.sense,
        status=result.stop.value,
        asked=asked_rows(result.problem, result.sense, result.x.size, problem),
        method=tuple((name, told[name]) for name in _METHOD if name in told),
        versions=present_versions(),
        ledger=ledger_of(result),
        points=points,
        curve=curve_of(result.trace),
        motion=motion_of(result.trace),
        certificate=certificate_words(certificate or result.certificate, result.uncertified),
        resume=how_to_go_on(Path(result.kept_in).name),
        roads=road_map(problem, points),
        decisions=NAMELESS if about is None else about.decisions,
        responses=NAMELESS if about is None else about.responses,
        unit="" if about is None else about.unit,
    )


def how_to_go_on(file: str) -> tuple[str, ...]:
    """Return how a study kept in ``file`` is resumed; with no file, how to keep the next one."""
    if not file:
        return ("This result was kept in memory: a run with path=... is kept in a file, and can be resumed.",)
    return (
        "Open the study again with the same problem and solver; limits may change. Every answer is replayed, and no "
        "query that was answered is ever asked again:",
        f'$ study = pzos.Study.open("{file}", problem.known(), solver)',
        "$ pzos.drive(study, pzos.Oracle(problem.follower))",
        "or, where a TOML file describes the study:",
        "$ pzos resume STUDY.toml",
    )


def points_of(result: Result, problem: Problem | None = None) -> tuple[Point, ...]:
    """Return doing nothing (where that is allowed and is not the start), the start, and the best point seen."""
    known, answers = result.known, dict[bytes, Vector]()
    for query, told in result.told or ():
        if not told.failure:
            answers.setdefault(_place(query.x), told.y)
    for x, y in () if result.given is None else result.given.pairs():
        answers.setdefault(_place(x), y)

    def point(name: str, x: Vector) -> Point:
        y = answers.get(_place(x), EMPTY)
        value = known.leader.value(x, y) if known is not None and y.size else float("nan")
        return Point(name, x, y, value)

    best = point("best point seen", result.best_x)._replace(value=result.best_value)
    if result.x0 is None:
        return (best,)
    return (*nothing_beside(point("start", result.x0), answers, problem, known), best)


def nothing_beside(
    start: Point, answers: Mapping[bytes, Vector], problem: Problem | None, known: Known | None
) -> tuple[Point, ...]:
    """Return the start and, before it, x = 0 if it may be chosen; a network's own model says what happens there."""
    zero = np.zeros_like(start.x)
    about = known or problem
    if about is None or not about.domain.contains(zero, 0.0):
        return (start,)
    if not start.x.any():
        return (start._replace(name=f"start ({NOTHING})"),)
    y, travellers = answers.get(_place(zero), EMPTY), _travellers(problem)
    if not y.size and travellers is not None and callable(travellers):
        y = np.asarray(travellers(zero).y, dtype=np.float64)
    return Point(NOTHING, zero, y, about.leader.value(zero, y) if y.size else float("nan")), start


def _place(x: Vector) -> bytes:
    return (x + 0.0).tobytes()  # minus zero is zero


def certificate_words(certificate: Certificate | NeighbourCertificate | None, why: str = "") -> str:
    """Return a certificate in words, or that there is none, and ``why``."""
    return why or NO_CERTIFICATE if certificate is None else str(certificate)


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


def road_map(problem: Problem | None, points: Sequence[Point]) -> RoadMap | None:
    """Return the map of the first and of the last point, or None where there is no network to draw.

    What was not asked of the study's follower is computed by the network's own model.
    """
    travellers = _travellers(problem)
    if travellers is None or len(points) < 2:
        return None
    network = travellers.network
    where, roads = np.asarray(network.coordinates, dtype=np.float64), network.roads
    tolls = travellers.tolls(points[-1].x)  # one row per class: what is shown is the highest
    toll = tolls[np.argmax(np.abs(tolls), axis=0), np.arange(network.links)]
    flows = [
        point.y[: network.links] if point.y.size >= network.links else travellers.assignment(point.x).flow
        for point in (points[0], points[-1])
    ]
    before, after = (np.asarray(flow, dtype=np.float64) for flow in flows)
    ends = where[network.tail[roads]], where[network.head[roads]]
    return RoadMap(*ends, before[roads], after[roads], toll[roads], points[0].name)


def _travellers(problem: Problem | None) -> Any:
    """Return the toll follower of a problem, also from inside a wrapper (plain function, cache), or None."""
    inner: Any = None if problem is None else problem.follower
    for _ in range(4):
        if hasattr(inner, "network") and hasattr(inner, "assignment") and inner.network.coordinates is not None:
            return inner
        inner = getattr(inner, "function", None) or getattr(inner, "inner", None)
    return None
