"""Lower estimates of L_f, L_g and L_y from queries in a region, with a stated confidence; never truth.

A difference quotient seen is a lower bound of the Lipschitz constant for certain (for exact answers). How much was
missed is a matter of confidence: if n independent quotients were drawn, then with confidence c at most a share
1 - (1 - c)^(1/n) of the quotients of the same kind exceed the largest one seen (Wilks' tolerance limit, exact and free
of assumptions). The steepest place of all may still be outside any sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy.typing as npt

from pzos.base.checks import Faults, checked, note_fields, number, positive, whole
from pzos.base.keys import Role
from pzos.base.types import LeaderValue, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, answered_pairs
from pzos.methods.solver import Task
from pzos.problem.problem import Known, Problem
from pzos.stationarity.bounds import CONFIDENCE
from pzos.stationarity.one_batch import BatchState, OneBatch, report_on
from pzos.stationarity.theory import Constants

if TYPE_CHECKING:
    from concurrent.futures import Executor

_FACTOR = number(lambda factor: factor >= 1.0, "1 or more", "these are lower estimates: try 2.0", finite=False)


@dataclass(frozen=True, slots=True, eq=False)
class LipschitzEstimates:
    """Lower estimates of the constants in the ball of ``radius`` around ``x``; print them to see what they mean."""

    L_f: float
    L_g: float
    L_y: float
    x: Vector
    radius: float
    pairs: int
    confidence: float
    queries: int

    @property
    def missed(self) -> float:
        """Return the share of pairs that may be steeper than all seen, at ``confidence``."""
        return 1.0 - float((1.0 - self.confidence) ** (1.0 / self.pairs))

    def __repr__(self) -> str:
        return (
            f"lower estimates, from {self.pairs} pairs within {self.radius:g} of x ({self.queries} queries):\n"
            f"L_f >= {self.L_f:.4g}, L_g >= {self.L_g:.4g}, L_y >= {self.L_y:.4g}\n"
            f"With {100 * self.confidence:g} % confidence at most {100 * self.missed:.2g} % of such pairs are steeper. "
            "The true constants may be larger;\nuse assumed(factor, Delta) to say by how much you assume so."
        )

    def assumed(self, factor: float, Delta: float) -> Constants:
        """Return constants for the theorem under *your* assumption that no true one exceeds ``factor`` times these."""
        _FACTOR.require("LipschitzEstimates.assumed", "factor", factor)
        return Constants(factor * self.L_f, factor * self.L_g, factor * self.L_y, int(self.x.size), Delta)


@dataclass(frozen=True, slots=True, eq=False)
class LipschitzSolver(OneBatch[LipschitzEstimates]):
    """Ask x and ``pairs`` pairs (a, a + step v), a uniform in the ball of ``radius`` around x, once.

    A short ``step`` (1/100 of the radius by default) sees local slopes; with noisy answers take a longer one.
    """

    radius: float = checked(positive("the size of the region"))
    pairs: int = checked(whole(1, "try pairs=100"), default=100)
    step: float | None = checked(positive("or None").or_none(), default=None)
    confidence: float = checked(CONFIDENCE, default=0.95)

    def __post_init__(self) -> None:
        faults = Faults("LipschitzSolver")
        note_fields(faults, self)
        if not faults.messages and self.step is not None:
            faults.check(self.step <= self.radius, "step", self.step, f"at most radius = {self.radius}", "or None")
        faults.raise_if_any()

    def ask(self, task: Task, state: BatchState[LipschitzEstimates]) -> Plan:
        """Plan x and the pairs."""
        x, keys = state.x, task.keys
        step = self.radius / 100.0 if self.step is None else self.step
        points = [x]
        for q in range(self.pairs):
            length = self.radius * keys.uniform(Role.REGION, 2, q) ** (1.0 / x.size)
            start = x + length * keys.direction(3, q, x.size, Role.REGION)
            points += [start, start + step * keys.direction(4, q, x.size, Role.REGION)]
        purposes = (Purpose.ITERATE,) + (Purpose.PROBE,) * (len(points) - 1)
        return Plan(tuple(points), purposes)

    def read(self, known: Known, plan: Plan, answers: Answers) -> LipschitzEstimates | None:
        """Take the largest quotients of the answered pairs."""
        quotients = []
        pairs = zip(plan.points[1::2], plan.points[2::2], strict=True)
        for (a, b), first, second in answered_pairs(pairs, answers[1:]):
            at_a, at_b = known.leader(a, first), known.leader(b, second)
            across = known.leader(a, second)  # a step in y alone costs no query
            move_x, move_y = _norm(b - a), _norm(second - first)
            of_f = max(_norm(g) for at in (at_a, at_b) for g in (at.grad_x, at.grad_y))
            of_g = max(
                _gradient_change(at_a, at_b) / sqrt(move_x**2 + move_y**2),
                _gradient_change(at_a, across) / move_y if move_y > 0.0 else 0.0,
                _gradient_change(across, at_b) / move_x,
            )
            quotients.append((of_f, of_g, move_y / move_x))
        if not quotients:
            return None
        f, g, y = (max(column) for column in zip(*quotients, strict=True))
        used, asked = len(quotients), len(plan.points)
        return LipschitzEstimates(f, g, y, plan.points[0], self.radius, used, self.confidence, asked)


def _norm(a: Vector) -> float:
    return sqrt(dot(a, a))


def _gradient_change(a: LeaderValue, b: LeaderValue) -> float:
    return sqrt(_norm(a.grad_x - b.grad_x) ** 2 + _norm(a.grad_y - b.grad_y) ** 2)


def estimate_constants(
    problem: Problem,
    x: npt.ArrayLike | None = None,
    *,
    radius: float,
    pairs: int = 100,
    step: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    executor: Executor | None = None,
) -> LipschitzEstimates:
    """Estimate L_f, L_g and L_y from below around x (x0 if None); arguments as for :class:`LipschitzSolver`.

    L_f is the larger of both partial gradients' norms, as Assumption 2.1 bounds them.
    """
    solver = LipschitzSolver(radius, pairs, step, confidence)
    return report_on("estimate_constants", problem, solver, x, seed=seed, executor=executor)
