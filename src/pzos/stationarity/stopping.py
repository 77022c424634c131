"""``StopWhenStationary``: any solver, with certificates at growing intervals, stopped by the first that holds.

Certificate k is asked at the solver's current point once the solver has spent enough queries of its own that all
certificates together stay within ``share`` of the queries. Batches grow geometrically, so intervals do. Certificate k
is held at confidence 1 - a/(k (k + 1)), a = 1 - ``confidence``; these errors add up to a over all k, so a stop is right
with the confidence asked for however often was looked. Certificates are phases of the state; the wrapper is a solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from pzos.base.checks import Faults, shown
from pzos.base.types import Vector
from pzos.methods.default import foresee
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import AnySolver, Outcome, State, Stop, Task
from pzos.stationarity.bounds import FEWEST, check_confidence
from pzos.stationarity.certificate import Certificate, CertificateSolver, Foresight
from pzos.stationarity.schedules import NOTIONS, Notion

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

    solver: AnySolver
    delta: float
    epsilon: float
    confidence: float = 0.95
    notion: Notion = "partial"
    share: float = 0.1
    first: int | None = None
    growth: float = 1.5
    radius: float | None = None

    def __post_init__(self) -> None:
        faults = Faults("StopWhenStationary")
        methods = ("init", "ask", "tell", "stop")
        solver = not isinstance(self.solver, type) and all(callable(getattr(self.solver, m, None)) for m in methods)
        faults.check(solver, "solver", shown(self.solver), "a solver", "try pzos.PZOS(step=0.05, radius=0.1)")
        for name in ("delta", "epsilon"):
            value = getattr(self, name)
            faults.check(0.0 < value < np.inf, name, value, "a positive number", "try 0.1")
        faults.check(self.notion in NOTIONS, "notion", self.notion, "'partial' or 'full'", "choose one")
        faults.check(0.0 < self.share < 1.0, "share", self.share, "a number between 0 and 1", "try 0.1")
        faults.check(1.0 <= self.growth < np.inf, "growth", self.growth, "1 or more", "try 1.5")
        whole = self.first is None or (isinstance(self.first, int | np.integer) and self.first >= 2 * FEWEST)
        faults.check(whole, "first", self.first, f"a whole number, {2 * FEWEST} or more", "or None")
        radius = self.radius is None or 0.0 < self.radius <= self.delta
        faults.check(radius, "radius", self.radius, f"at most delta = {self.delta}", "or None")
        check_confidence(faults, self.confidence)
        faults.raise_if_any()

    def init(self, task: Task) -> WatchedState:
        """Start the solver inside."""
        return WatchedState(self.solver.init(task))

    def ask(self, task: Task, state: WatchedState) -> Plan:
        """Plan the solver's own batch, or a certificate where one is due."""
        if self._due(state):
            return self._certificate(task, state).plan_at(task.keys, state.x)
        return self.solver.ask(task, state.inner)

    def tell(self, task: Task, state: WatchedState, plan: Plan, answers: Answers) -> tuple[WatchedState, Outcome]:
        """Read a certificate, or hand the answers to the solver."""
        if not self._due(state):
            inner, outcome = self.solver.tell(task, state.inner, plan, answers)
            spent = state.solver_queries + len(plan.points)
            return WatchedState(inner, spent, state.certificate_queries, state.checks, state.certified), outcome
        report = self._certificate(task, state).read(task.known, plan, answers)
        value = _UNKNOWN if report is None else report.value
        told = WatchedState(
            state.inner,
            state.solver_queries,
            state.certificate_queries + len(plan.points),
            state.checks + 1,
            state.certified if report is None else report,
            value,
        )
        extras = {} if report is None else {"stationarity_bound": report.bound(self.notion).upper}
        return told, Outcome(state.x, value, _UNKNOWN, 0.0, extras)

    def stop(self, task: Task, state: WatchedState) -> Stop | None:
        """Stop when the latest certificate, at this very point, holds; else when the solver stops."""
        report = state.certified
        if report is not None and report.x is state.x and report.stationary(self.epsilon, self.notion):
            return Stop.STATIONARY
        return self.solver.stop(task, state.inner)

    def _directions(self, state: WatchedState) -> int:
        first = max(64, 4 * state.x.size) if self.first is None else self.first
        return ceil(first * self.growth**state.checks)

    def _due(self, state: WatchedState) -> bool:
        after = state.certificate_queries + 2 * self._directions(state) + 1
        return after <= self.share * (state.solver_queries + after)

    def _certificate(self, task: Task, state: WatchedState) -> CertificateSolver:
        k = state.checks + 1
        confidence = 1.0 - (1.0 - self.confidence) / (k * (k + 1))
        return CertificateSolver(
            self.delta,
            self._directions(state),
            self.radius,
            confidence,
            foresee=_memory_of(task, self.solver, state.inner),
            address=state.checks,
        )


def _memory_of(task: Task, solver: Any, state: Any) -> Foresight | None:
    """Return what a solver's model or memory (``solver.prediction.predict(state.learned, x, at)``) foresees."""
    modelled = foresee(task, state)
    if modelled is not None:
        return modelled
    predict = getattr(getattr(solver, "prediction", None), "predict", None)
    if predict is None or not hasattr(state, "learned"):
        return None
    learned = state.learned
    return lambda x, at: np.asarray(predict(learned, x, at), dtype=np.float64)


def latest_certificate(state: Any) -> Certificate | None:
    """Return the latest certificate of a study's state, or None if its solver is not watched."""
    return state.certified if isinstance(state, WatchedState) else None
