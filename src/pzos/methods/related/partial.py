"""Related methods that use the leader's known cost: PZOBO, and zeroth order guided by the known function.

What was compared with the papers' text and what was not is said as in :mod:`pzos.methods.related.black_box`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from pzos.base.checks import checked, number
from pzos.base.keys import Role
from pzos.base.types import Purpose, Vector, dot
from pzos.methods.estimators import Answers, Estimate, Plan
from pzos.methods.related.blocks import (
    GAUSSIAN,
    RayPlan,
    Rays,
    Sides,
    Walk,
    Walker,
    along,
    gaussian_directions,
    ray_plan,
    slopes,
    stayed,
    values,
)
from pzos.methods.solver import Outcome, Task
from pzos.methods.steps import SCHEDULE, Schedule, value_at

_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class PZOBO(Walker):
    """Partial zeroth-order bilevel optimiser: Gaussian one-sided differences of y*, Q + 1 queries a step.

        g = grad_x f + (1/Q) sum_q <grad_y f, (y*(x + mu u_q) - y*(x)) / mu> u_q,   u_q ~ N(0, I)

    Sow, Ji and Liang, "On the convergence theory for Hessian-free bilevel algorithms", NeurIPS 2022, Algorithm 1 (key
    ``sow2022pzobo``); theirs runs N inner gradient steps for y*, here the followers answer.

    *Guarantee*: a lower level that is unconstrained and strongly convex, with smooth data, so that y* is
    differentiable: then the mean of |grad F|^2 over the steps becomes small. Followers with constraints are outside
    their theory (y* has kinks, and normal directions leave every ball); against :class:`pzos.PZOS` it saves one query
    of three.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.02)
    _rays: ClassVar[Rays] = GAUSSIAN
    _sides: ClassVar[Sides] = Sides.ONE_SIDED

    def _estimate(self, task: Task, state: Walk, plan: RayPlan, answers: Answers) -> Estimate | None:
        y = answers[0]
        if y is None:
            return None
        at = task.known.leader(plan.x, y)
        rises = [np.nan if other is None else dot(at.grad_y, other - y) / plan.radius for other in answers[1:]]
        part = along(plan.directions, np.array(rises), self._rays.weight(plan.x.size))
        return None if part is None else Estimate(at.grad_x + part, at.value, int(np.isfinite(rises).sum()))


@dataclass(frozen=True, slots=True)
class GuidedZO(Walker):
    """Zeroth order guided by the known function: 2 Q + 1 queries a step, 2 Q with ``history``.

        u = sqrt(a_k / d) z + sqrt(1 - a_k) zeta p,   z ~ N(0, I), zeta ~ N(0, 1), p = grad_x f / |grad_x f|
        x_{k+1} = P_X(x_k - beta (F(x_k + mu u) - F(x_k - mu u)) / (2 mu) u),   1 - a_k = ``fading``^k

    Hikima, Sawada and Fujino, "Guided zeroth-order methods for stochastic non-convex problems with decision-dependent
    distributions", ICML 2025. Here the law of their samples is the followers' answer. The guide p is taken at (x,
    y*(x)), their GZO-NS, or with ``history`` at x_k and the mean of the last step's answers, their GZO-HS. Compared
    with the abstract and with the formulas of the published experiments; there step and radius shrink by 0.95 a step
    down to a least radius, here they are what is given.

    *Guarantee* (abstract): convergence to stationary points for differentiable F, with a worst-case sample complexity
    that was not compared. As E[u u'] = a_k I/d + (1 - a_k) p p', early steps follow the part of the gradient that is
    known.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.5)
    fading: float = checked(number(lambda f: 0.0 < f < 1.0, "a number between 0 and 1", "0.98 is theirs"), default=0.98)
    history: bool = False

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan x where a fresh guide is due, else the pairs."""
        if not self.history and state.kept is None:
            return Plan((state.at,), (Purpose.ITERATE,))
        directions = self._guided(task, state)
        return ray_plan(state.at, value_at(self.radius, self._turn(state)), directions, Sides.CENTRAL)

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Learn the guide from y*(x), or take the step from the pairs."""
        leader = task.known.leader
        if not isinstance(plan, RayPlan):
            y = answers[0]
            if y is None:
                return stayed(state)
            at = leader(state.at, y)
            return state._replace(t=state.t + 1, kept=_unit(task.known.sign * at.grad_x)), Outcome(
                state.x, at.value, _UNKNOWN, 0.0
            )
        gradient = along(plan.directions, slopes(plan, values(leader, plan.points, answers)), 1.0)
        if gradient is None:
            return stayed(state, state.kept)
        step = value_at(self.step, self._turn(state))
        moved = self._moved(task, state.at, gradient, step)
        told = [leader(moved, y).grad_x for y in answers if y is not None] if self.history else []
        guide = _unit(task.known.sign * np.sum(told, axis=0)) if told else None
        return Walk(state.t + 1, moved, moved, guide), Outcome(state.x, _UNKNOWN, dot(gradient, gradient), step)

    def _turn(self, state: Walk) -> int:
        """Return k, the number of moves so far: without history every other batch learns the guide."""
        return state.t if self.history else state.t // 2

    def _guided(self, task: Task, state: Walk) -> tuple[Vector, ...]:
        d, guide = state.at.size, state.kept
        normal = gaussian_directions(task.keys, state.t, self.batch, d)
        if guide is None or not guide.any():
            return tuple(sqrt(1.0 / d) * z for z in normal)
        known = self.fading ** self._turn(state)
        lengths = (float(task.keys.generator(Role.PROBE, state.t, q).standard_normal()) for q in range(self.batch))
        return tuple(
            sqrt((1.0 - known) / d) * z + (sqrt(known) * length) * guide
            for z, length in zip(normal, lengths, strict=True)
        )


def _unit(vector: Vector) -> Vector:
    """Return the vector with length one; zero stays zero, and guides nowhere."""
    length = sqrt(dot(vector, vector))
    return vector / length if length > 0.0 else np.zeros_like(vector)
