"""``StopWhenStationary``: any solver, with certificates at growing intervals, stopped by the first that holds.

Certificate k is asked at the solver's current point once the solver has spent enough queries of its own that all
certificates together stay within ``share`` of the queries. Batches grow geometrically, so intervals do. Certificate k
is held at confidence 1 - a/(k (k + 1)), a = 1 - ``confidence``; these errors add up to a over all k, so a stop is right
with the confidence asked for however often was looked. Certificates are phases of the state; the wrapper is a solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from pzos.base.checks import Faults, at_least, checked, note_fields, number, one_of, positive, whole
from pzos.base.types import Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import SOLVER, AnySolver, Outcome, State, Stop, Task, begin, foreseen
from pzos.stationarity.bounds import CONFIDENCE, FEWEST
from pzos.stationarity.certificate import Certificate, CertificateSolver
from pzos.stationarity.theory import NOTIONS, Notion

_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class WatchedState:
    """The state of the solver inside, what both sides spent, and the latest certificate."""

    inner: State
    solver_queries: int = 0
    certificate_queries: int = 0
    checks: int = 0
    certified: Certificate | None = None
    value_here: float = _UNKNOWN

    @property
    def x(self) -> Vector:
        """Return the solver's current point."""
        return self.inner.x

    @property
    def value(self) -> float:
        """Return F there, if the solver or a certificate knows it."""
        return self.value_here if self.value_here == self.value_here else self.inner.value


@dataclass(frozen=True, slots=True)
class StopWhenStationary:
    """Run ``solver`` until its point is certified (delta, epsilon)-stationary (``Stop.STATIONARY``).

    ``notion`` is "partial" or "full". ``first`` directions (4 d, at least 64, if None) make the first certificate,
    each later batch is ``growth`` times larger, and at most ``share`` of all queries go into certificates. Other limits
    of the study hold as ever. ``study.state.certified`` is the latest certificate.
    """

    solver: AnySolver = checked(SOLVER)
    delta: float = checked(positive("try 0.1"))
    epsilon: float = checked(positive("try 0.1"))
    confidence: float = checked(CONFIDENCE, default=0.95)
    notion: Notion = checked(one_of(NOTIONS), default="partial")
    share: float = checked(number(lambda v: 0.0 < v < 1.0, "a number between 0 and 1", "try 0.1"), default=0.1)
    first: int | None = checked(whole(2 * FEWEST, "or None").or_none(), default=None)
    growth: float = checked(at_least(1.0, "1 or more", "try 1.5"), default=1.5)
    radius: float | None = checked(positive("or None").or_none(), default=None)

    def __post_init__(self) -> None:
        faults = Faults("StopWhenStationary")
        note_fields(faults, self)
        if not faults.messages and self.radius is not None:
            faults.check(self.radius <= self.delta, "radius", self.radius, f"at most delta = {self.delta}", "or None")
        faults.raise_if_any()

    def init(self, task: Task) -> WatchedState:
        """Start the solver inside."""
        return WatchedState(self.solver.init(task))

    def begun(self, task: Task) -> WatchedState:
        """Start the solver inside with the answers known before, if it can use them."""
        return WatchedState(begin(self.solver, task))

    def ask(self, task: Task, state: WatchedState) -> Plan:
        """Plan the solver's own batch, or a certificate where one is due."""
        if self._due(state):
            return self._certificate(task, state).plan_at(task, state.x)
        return self.solver.ask(task, state.inner)

    def tell(self, task: Task, state: WatchedState, plan: Plan, answers: Answers) -> tuple[WatchedState, Outcome]:
        """Read a certificate, or hand the answers to the solver."""
        if not self._due(state):
            inner, outcome = self.solver.tell(task, state.inner, plan, answers)
            spent = state.solver_queries + len(plan.points)
            return replace(state, inner=inner, solver_queries=spent, value_here=_UNKNOWN), outcome
        report = self._certificate(task, state).read(task.known, plan, answers)
        value = _UNKNOWN if report is None else report.value
        spent, certified = state.certificate_queries + len(plan.points), report or state.certified
        told = replace(state, certificate_queries=spent, checks=state.checks + 1, certified=certified, value_here=value)
        extras = {} if report is None else {"stationarity_bound": report.bound(self.notion).upper}
        return told, Outcome(state.x, value, _UNKNOWN, 0.0, extras)

    def stop(self, task: Task, state: WatchedState) -> Stop | None:
        """Stop when the latest certificate, at this very point, holds; else when the solver stops."""
        report = state.certified
        if report is not None and report.x is state.x and report.stationary(self.epsilon, self.notion):
            return Stop.STATIONARY
        return self.solver.stop(task, state.inner)

    def certificate(self, state: WatchedState) -> Certificate | None:
        """Return the latest certificate."""
        return state.certified

    def _directions(self, state: WatchedState) -> int:
        first = max(64, 4 * state.x.size) if self.first is None else self.first
        return ceil(first * self.growth**state.checks)

    def _due(self, state: WatchedState) -> bool:
        after = state.certificate_queries + 2 * self._directions(state) + 1
        return after <= self.share * (state.solver_queries + after)

    def _certificate(self, task: Task, state: WatchedState) -> CertificateSolver:
        k = state.checks + 1
        confidence = 1.0 - (1.0 - self.confidence) / (k * (k + 1))
        foresee = foreseen(self.solver, task, state.inner)
        settings = self.delta, self._directions(state), self.radius, confidence
        return CertificateSolver(*settings, foresee=foresee, address=state.checks)
