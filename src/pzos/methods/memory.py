"""Solvers that remember what the followers answered: MemoryPZOS (unbiased) and SecantPZOS (biased, bolder).

Both take the step x_{t+1} = P_X(x_t -+ alpha_t g_t) of the paper, with minus to minimise and plus to maximise, from
the answers of one batch; they differ in the estimate g_t. A step whose differences all failed is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pzos.base.checks import Must, check_fields, checked
from pzos.base.types import LeaderValue, Vector, dot
from pzos.methods.estimators import Answers, Plan, Probe, of_kind, predicted_estimate
from pzos.methods.predictions import AnyPrediction, FittingMemory, Prediction
from pzos.methods.probes import Cycled, Differences, Directions, Independent, OneSided, ProbePlan, Reading
from pzos.methods.solver import Foresight, Outcome, Stop, Task
from pzos.methods.steps import BATCH, SCHEDULE, STEP, DoG, Schedule, Step, StepState, next_step, value_at

_UNKNOWN = float("nan")
#: Of answers known before, so many per decision are learned from: what is farther away says little of x0.
_LEARNED = 2


@dataclass(frozen=True, slots=True, eq=False)
class MemoryState:
    """An iterate x_t and its number t, with what the prediction has learned and the step rule has seen."""

    t: int
    x: Vector
    learned: Any
    steps: StepState = field(default_factory=StepState)
    value: float = _UNKNOWN


def _part(kind: type, example: str) -> Must:
    """An object with the methods of a protocol, not a class of such objects."""
    expected = f"an object with the methods of {kind.__name__}"
    return Must(lambda value: isinstance(value, kind) and not isinstance(value, type), expected, f"try {example}")


_DIRECTIONS = _part(Directions, "Independent()")


@dataclass(frozen=True, slots=True)
class _Remembering:
    """What both solvers share: configuration, queries and the projected step."""

    step: Step = checked(STEP, default_factory=DoG)
    radius: float | Schedule = checked(SCHEDULE, default=0.1)
    batch: int = checked(BATCH, default=1)
    prediction: AnyPrediction = checked(_part(Prediction, "FittingMemory()"), default_factory=FittingMemory)
    differences: Differences = checked(_part(Differences, "OneSided()"), default_factory=OneSided)
    directions: Directions = checked(_DIRECTIONS, default_factory=Independent)

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, task: Task) -> MemoryState:
        """Start at x0 with an empty memory."""
        return MemoryState(0, task.known.x0, self.prediction.start(task.known.dimension))

    def begun(self, task: Task) -> MemoryState:
        """Start at x0 with the differences among answers known before in the memory, the nearest to x0 learned last."""
        state, known = self.init(task), task.known
        ordered = sorted(task.told, key=lambda pair: float(np.linalg.norm(pair[0] - known.x0)))
        (x, y), others = ordered[0], ordered[1 : _LEARNED * known.dimension + 1]
        runs = [float(np.linalg.norm(point - x)) for point, _ in others]
        probes = [
            Probe((point - x) / run, answer - y, run)
            for (point, answer), run in zip(others, runs, strict=True)
            if run > 0.0
        ]
        learned = self.prediction.learn(state.learned, known.leader(x, y), probes[::-1])
        return MemoryState(0, known.x0, learned)

    def ask(self, task: Task, state: MemoryState) -> ProbePlan:
        """Plan the probes of this step."""
        directions = self.directions(task.keys, state.t, self.batch, state.x.size)
        return self.differences.plan(state.x, value_at(self.radius, state.t), directions, task.known.domain)

    def stop(self, task: Task, state: MemoryState) -> Stop | None:
        """Never stop: a limit of the run decides."""
        return None

    def tell(self, task: Task, state: MemoryState, plan: Plan, answers: Answers) -> tuple[MemoryState, Outcome]:
        """Read the answers, estimate the gradient, learn, and take the projected step."""
        reading = self.differences.read(of_kind(ProbePlan, plan), answers)
        if reading is None:
            return self._stay(state, _UNKNOWN)
        at = task.known.leader(state.x, reading.y)
        value = at.value if reading.exact else _UNKNOWN
        if not reading.probes:
            return self._stay(state, value)
        gradient, learned = self._estimate(state, at, reading)
        return self._move(task, state, value, gradient, learned)

    def foresight(self, task: Task, state: MemoryState) -> Foresight:
        """Return what the memory predicts, for a certificate."""
        return lambda x, at: self.prediction.predict(state.learned, x, at)

    def _estimate(self, state: MemoryState, at: LeaderValue, reading: Reading) -> tuple[Vector, Any]:
        raise NotImplementedError

    def _stay(self, state: MemoryState, value: float) -> tuple[MemoryState, Outcome]:
        stayed = MemoryState(state.t + 1, state.x, state.learned, state.steps)
        return stayed, Outcome(state.x, value, _UNKNOWN, 0.0)

    def _move(
        self, task: Task, state: MemoryState, value: float, gradient: Vector, learned: Any
    ) -> tuple[MemoryState, Outcome]:
        known = task.known
        radius = value_at(self.radius, 0)
        alpha, steps = next_step(self.step, state.t, state.steps, radius, state.x - known.x0, gradient)
        outcome = Outcome(state.x, value, dot(gradient, gradient), alpha)
        moved = known.domain.project(state.x - (known.sign * alpha) * gradient)
        return MemoryState(state.t + 1, moved, learned, steps), outcome


@dataclass(frozen=True, slots=True)
class MemoryPZOS(_Remembering):
    """PZOS around a prediction: unbiased, with noise that dies out as the followers' Jacobian is learned.

        g = h + d/Q sum_q (D_q - h . v_q) v_q,   h = grad_x f + B' grad_y f,   B learned from earlier answers

    E[g | past] = grad_x f + J y_mu' grad_y f exactly as for PZOS (see :func:`pzos.predicted_estimate`), so g lies in
    the partial Goldstein set in the mean. Convergence is *not* proved for the defaults: one-sided differences have a
    second moment of order d^2, the DoG step contains the current estimate, and the memory has no bound. It is proved
    (docs/theory.md) for

        MemoryPZOS(step=0.01, differences=Central(), prediction=ClippedPrediction(FittingMemory(), bound=L_f L_y))

    with a number as the step. ``prediction`` is interchangeable (``methods/predictions.py``), and so
    are ``differences`` and ``directions``; what each does to the claim stands in its docstring. By default 2 queries
    a step (Q + 1), no step size to tune, and memory that fits d = 10^5.

    Noise of the followers enters as noise / radius, times d: with noisy answers take a radius on which the response
    changes by more than its noise, and :class:`pzos.Central`. (Six security games, n = 50, 1 % noise, 450
    queries: median true gap 0.88 with radius 0.1 and 0.16 with radius 0.5.)

    With ``MemoryPZOS(step, radius, batch, LeaderPrediction(), Central())`` it is PZOS, bit for bit.
    """

    def _estimate(self, state: MemoryState, at: LeaderValue, reading: Reading) -> tuple[Vector, Any]:
        """Use the prediction first and let it learn afterwards: h must not depend on the directions."""
        foreseen = self.prediction.predict(state.learned, state.x, at)
        gradient = predicted_estimate(at, foreseen, reading.probes)
        return gradient, self.prediction.learn(state.learned, at, reading.probes)


@dataclass(frozen=True, slots=True)
class SecantPZOS(_Remembering):
    """Steps along g = grad_x f + B' grad_y f, with B learned from the probes of this step as well. *Biased.*

    The followers' Jacobian is not estimated afresh but remembered, so there is no noise of size d to pay for; in
    exchange E[g | past] is not in the partial Goldstein set, the theorem says nothing, and where the response has
    kinks B may stay wrong. Far fewer queries than the unbiased methods where it works (recipe 2 of the design
    notes), but noisy answers at a small radius can drive it above its start: certify the result with fresh
    directions. Directions are cycled through random orthonormal bases, so that B is complete after d probes.
    """

    directions: Directions = checked(_DIRECTIONS, default_factory=Cycled)

    def _estimate(self, state: MemoryState, at: LeaderValue, reading: Reading) -> tuple[Vector, Any]:
        """Learn first, then trust the memory."""
        learned = self.prediction.learn(state.learned, at, reading.probes)
        gradient: Vector = at.grad_x + self.prediction.predict(learned, state.x, at)
        return gradient, learned
