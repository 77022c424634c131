"""Related methods with guarantees of Goldstein stationarity: GFM, 2-GFM, GFM+, Kornowski-Shamir, and with constraints.

A point is (delta, eps)-Goldstein stationary for a Lipschitz F if the convex hull of the Clarke gradients within delta
of it holds a vector no longer than eps; L is the Lipschitz constant and D = F(x_0) - inf F. What was compared with
the papers' text and what was not is said as in :mod:`pzos.methods.related.black_box`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from pzos.base.checks import checked, whole
from pzos.base.keys import Role
from pzos.base.types import Vector, dot
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.related.blocks import (
    JointPlan,
    RayPlan,
    Walk,
    Walker,
    along,
    drawn,
    joint_plan,
    ray_plan,
    slopes,
    slopes_of_parts,
    stayed,
    values,
)
from pzos.methods.solver import Outcome, Stop, Task
from pzos.methods.steps import BATCH, POSITIVE, SCHEDULE, Schedule, value_at
from pzos.problem.sets import Domain

_UNKNOWN = float("nan")
_COUNT = whole(1, "try 10")


@dataclass(frozen=True, slots=True)
class GFM(Walker):
    """Gradient-free method: two points on the sphere, output drawn at random; 2 Q queries a step.

        g_t = (d / (2 delta)) (F(x_t + delta v) - F(x_t - delta v)) v
        x_{t+1} = x_t - eta g_t,   return x_R with R uniform

    Lin, Zheng and Jordan, "Gradient-free methods for deterministic and stochastic nonsmooth nonconvex optimization",
    NeurIPS 2022, Algorithm 1 (key ``lin2022goldstein``). The iterates are those of :class:`pzos.ZOS`; the point
    returned, ``result.x``, is drawn from x_0, ..., x_{T-1}.

    *Guarantee*: F is L-Lipschitz on R^d; E of the least norm in the delta-Goldstein set at x_R is at most eps within
    O(d^{3/2} (L^4 eps^-4 + D L^3 delta^-1 eps^-4)) queries, for the step of their theorem.
    """

    def _returned(self, task: Task, state: Walk, moved: Vector) -> Vector:
        return drawn(task, state.t, state.x, state.at, state.t + 1)


@dataclass(frozen=True, slots=True)
class TwoPhaseGFM(Walker):
    """2-GFM: ``rounds`` runs of GFM from x0 with ``steps`` steps each, then the best of their outputs by estimate.

    Lin, Zheng and Jordan (see :class:`GFM`), Algorithm 2. Post-optimisation estimates the gradient at each of the S
    outputs from ``judging`` fresh directions, 2 S B queries in one batch, and returns the output with the shortest;
    the run then ends.

    *Guarantee*: as for GFM, but with probability 1 - Lambda instead of in the mean, with S ~ log(1/Lambda).
    """

    rounds: int = checked(_COUNT, default=3)
    steps: int = checked(_COUNT, default=50)
    judging: int = checked(_COUNT, default=20)

    def init(self, task: Task) -> Walk:
        """Start the first round at x0."""
        return Walk(0, task.known.x0, task.known.x0, ())

    def stop(self, task: Task, state: Walk) -> Stop | None:
        """End after the post-optimisation."""
        return Stop.STEPS if state.t > self.rounds * self.steps else None

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan a step of the round, or the judgement of all outputs."""
        if state.t < self.rounds * self.steps:
            return self._plan_at(task, state, state.at)
        radius, d = value_at(self.radius, state.t), state.x.size
        all_directions = self._rays.draw(task.keys, state.t, self.judging * len(state.kept), d)
        shares = (all_directions[k * self.judging : (k + 1) * self.judging] for k in range(len(state.kept)))
        return joint_plan(
            [ray_plan(x, radius, share, self._sides) for x, share in zip(state.kept, shares, strict=True)]
        )

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Take the step of GFM, or choose."""
        if isinstance(plan, JointPlan):
            return self._choose(task, state, plan, answers)
        after, outcome = Walker.tell(self, task, state, plan, answers)
        within = state.t % self.steps
        output = drawn(task, state.t, state.x, state.at, within + 1)
        ends = within + 1 == self.steps
        outputs = (*state.kept, output) if ends else state.kept
        return after._replace(x=output, at=task.known.x0 if ends else after.at, kept=outputs), outcome

    def _choose(self, task: Task, state: Walk, plan: JointPlan, answers: Answers) -> tuple[Walk, Outcome]:
        weight = self._rays.weight(state.x.size)
        found = [
            along(part.directions, sizes, weight)
            for part, sizes in zip(plan.parts, slopes_of_parts(task.known.leader, plan, answers), strict=True)
        ]
        lengths = [inf if g is None else dot(g, g) for g in found]
        best = int(np.argmin(lengths))
        chosen = state.kept[best]
        return Walk(state.t + 1, chosen, chosen, state.kept), Outcome(state.x, _UNKNOWN, lengths[best], 0.0)


class _Recursive(NamedTuple):
    """The running estimate v_t of GFM+ and the iterate it belongs to."""

    estimate: Vector
    at: Vector


@dataclass(frozen=True, slots=True)
class GFMPlus(Walker):
    """GFM+: recursive (SPIDER) estimates; 2 ``large`` queries every ``period`` steps, 4 Q in between.

        v_t = g(x_t; large batch)                                    every ``period`` steps
        v_t = v_{t-1} + g(x_t; S_t) - g(x_{t-1}; S_t)                else, with the same Q directions S_t at both points
        x_{t+1} = x_t - eta v_t,   return x_R, R uniform

    Chen, Xu and Luo, "Faster gradient-free algorithms for nonsmooth nonconvex stochastic optimization", ICML 2023,
    Algorithm 2 (key ``chen2023goldsteinimproved``). After a step without answers a large batch comes next.

    *Guarantee*: F is L-Lipschitz (in the mean square where it is random); (delta, eps)-Goldstein stationary in the
    mean within O(d^{3/2} (L^3 eps^-3 + D L^2 delta^-1 eps^-3)) queries. The gain over GFM comes from the noise of
    samples of F; where answers are exact only that of the directions is left to reduce.
    """

    batch: int = checked(BATCH, default=2)
    large: int = checked(_COUNT, default=20)
    period: int = checked(_COUNT, default=10)

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan a large batch at x_t, or the same directions at x_t and x_{t-1}."""
        fresh = state.kept is None or state.t % self.period == 0
        count = self.large if fresh else self.batch
        directions = self._rays.draw(task.keys, state.t, count, state.at.size)
        centres = (state.at,) if fresh else (state.at, state.kept.at)
        return joint_plan([ray_plan(x, value_at(self.radius, state.t), directions, self._sides) for x in centres])

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Renew or correct the estimate, and step."""
        joint = of_kind(JointPlan, plan)
        here, *before = slopes_of_parts(task.known.leader, joint, answers)
        sizes = here - before[0] if before else here
        estimate = along(joint.parts[0].directions, sizes, self._rays.weight(state.at.size))
        if estimate is None:
            return stayed(state)
        if before:
            estimate = state.kept.estimate + estimate
        step = value_at(self.step, state.t)
        moved = self._moved(task, state.at, estimate, step)
        output = drawn(task, state.t, state.x, state.at, state.t + 1)
        outcome = Outcome(state.x, _UNKNOWN, dot(estimate, estimate), step)
        return Walk(state.t + 1, output, moved, _Recursive(estimate, state.at)), outcome


class _Online(NamedTuple):
    """The next displacement, and the block's points z so far: how many, and their sum."""

    move: Vector
    seen: int
    total: Vector


@dataclass(frozen=True, slots=True)
class KornowskiShamir(Walker):
    """Optimal in d: online learning of displacements, probed at a random point of each; 2 Q queries a step.

        x_t = x_{t-1} + m_t,   z_t = x_{t-1} + s_t m_t with s_t ~ U[0, 1]
        g_t = (d / (2 nu)) (F(z_t + nu v) - F(z_t - nu v)) v,   m_{t+1} = clip(m_t - eta g_t)

    clip shortens what is longer than ``length``. The mean of z over each block of ``block`` steps is a candidate, and
    one of them, drawn at random, is returned (before the first block is full, the mean so far). Kornowski and Shamir,
    "An algorithm with optimal dimension-dependence for zero-order nonsmooth nonconvex stochastic optimization", JMLR
    2024, Algorithm 1 (key ``kornowski2024goldsteinoptimal``), after the online-to-nonconvex conversion of Cutkosky,
    Mehta and Orabona (2023). With a set of decisions x_t is projected onto it, and z_t lies between the projected
    points.

    *Guarantee*: F is L-Lipschitz on R^d; (delta, eps)-Goldstein stationary in the mean within O(d delta^-1 eps^-3)
    queries, for ``radius`` and ``block`` * ``length`` of the order of delta: linear in d, which is optimal.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.01)
    length: float = checked(POSITIVE, default=0.1)
    block: int = checked(_COUNT, default=5)

    def init(self, task: Task) -> Walk:
        """Start at x0, at rest."""
        x0 = task.known.x0
        return Walk(0, x0, x0, _Online(np.zeros_like(x0), 0, np.zeros_like(x0)))

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan the pairs around z_t."""
        s = task.keys.uniform(Role.OUTPUT, state.t, 2)
        return self._plan_at(task, state, state.at + s * (self._next(task, state) - state.at))

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Let the displacement learn from the slope at z_t; rest where nothing was answered."""
        read, kept = of_kind(RayPlan, plan), state.kept
        found = slopes(read, values(task.known.leader, read.points, answers))
        gradient = along(read.directions, found, self._rays.weight(read.x.size))
        if gradient is None:
            return stayed(state, kept._replace(move=np.zeros_like(kept.move)))
        step = value_at(self.step, state.t)
        move = kept.move - (task.known.sign * step) * gradient
        move *= min(1.0, self.length / (sqrt(dot(move, move)) or inf))
        seen, total = kept.seen + 1, kept.total + read.x
        returned = state.x
        if seen == self.block:
            blocks = state.t // self.block + 1
            returned = drawn(task, state.t, state.x, total / seen, blocks)
            seen, total = 0, np.zeros_like(total)
        elif state.t < self.block:
            returned = total / seen
        outcome = Outcome(state.x, _UNKNOWN, dot(gradient, gradient), step)
        return Walk(state.t + 1, returned, self._next(task, state), _Online(move, seen, total)), outcome

    def _next(self, task: Task, state: Walk) -> Vector:
        return task.known.domain.project(state.at + state.kept.move)


@dataclass(frozen=True, slots=True)
class GradientMappingZO(Walker):
    """Constrained zeroth order by the gradient mapping; 2 Q queries a step.

        x_{t+1} = P_X(x_t - gamma g_t),   gradient mapping  G = (x_t - x_{t+1}) / gamma,   return x_R, R uniform

    Liu, Chen, Luo and Low, "Zeroth-order methods for constrained nonconvex nonsmooth stochastic optimization", ICML
    2024 (key ``liu2024goldsteinconstrained``), g_t as in :class:`GFM` with a batch; the smooth case with Gaussian
    directions is Balasubramanian and Ghadimi, FoCM 2022. The trace's squared gradient is |G|^2.

    *Guarantee*: F is Lipschitz around the closed convex set X; a non-asymptotic bound on the generalised gradient
    mapping, in which a vector of the Goldstein set stands for the gradient (abstract; rate and batch of the theorem
    were not compared). Probes leave X by ``radius``: F must be defined there.
    """

    batch: int = checked(BATCH, default=4)

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Take the projected step and measure the gradient mapping."""
        after, outcome = Walker.tell(self, task, state, plan, answers)
        if outcome.step_size > 0.0:
            mapping = (state.at - after.at) / outcome.step_size
            outcome = outcome._replace(gradient_norm_squared=dot(mapping, mapping))
        return after, outcome

    def _returned(self, task: Task, state: Walk, moved: Vector) -> Vector:
        return drawn(task, state.t, state.x, state.at, state.t + 1)


@dataclass(frozen=True, slots=True)
class FrankWolfeZO(Walker):
    """Constrained zeroth order without a step across the set: Frank-Wolfe; 2 Q queries a step.

        s_t = argmin <g_t, s> over s in X with |s - x0| <= ``reach``,   x_{t+1} = x_t + alpha_t (s_t - x_t)

    Liu, Chen, Luo and Low (see :class:`GradientMappingZO`); with Gaussian directions and smooth F it is the
    conditional gradient of Balasubramanian and Ghadimi, "Zeroth-order nonconvex stochastic optimization: handling
    constraints, high dimensionality, and saddle points", FoCM 2022. ``step`` is alpha_t, cut at 1. Frank-Wolfe needs
    a bounded set, so X is cut by a ball around x0, whose radius ``reach`` must hold the solution. The trace's squared
    gradient is the Frank-Wolfe gap.

    *Guarantee*: F Lipschitz around a compact convex X; a non-asymptotic bound on the generalised Frank-Wolfe gap
    (abstract; rate and batch of the theorem were not compared).
    """

    step: float | Schedule = checked(SCHEDULE, default=0.02)
    batch: int = checked(BATCH, default=4)
    reach: float = checked(POSITIVE, default=1.0)

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Step towards the minimiser of the linear model."""
        known = task.known
        estimate = self._estimate(task, state, of_kind(RayPlan, plan), answers)
        if estimate is None:
            return stayed(state)
        slope = known.sign * estimate.gradient
        towards = linear_minimiser(known.domain, slope, known.x0, self.reach) - state.at
        alpha = min(1.0, value_at(self.step, state.t))
        moved = known.domain.project(state.at + alpha * towards)  # rounding alone could leave the set
        return Walk(state.t + 1, moved, moved), Outcome(state.x, _UNKNOWN, -dot(slope, towards), alpha)


def linear_minimiser(domain: Domain, slope: Vector, centre: Vector, reach: float) -> Vector:
    """Return argmin <slope, s> over s in the domain with |s - centre| <= reach, by projections alone.

    The multiplier of the ball makes it the projection of centre - length * slope for the one length at which the ball
    is met (the distance grows with the length), or for a very large one where the domain ends before; ``centre`` lies
    in it.
    """
    size = sqrt(dot(slope, slope))
    if size == 0.0:
        return centre
    short, long = 0.0, reach / size
    for _ in range(60):  # where the domain bends away, the projection needs more than the straight way
        if _distance(domain.project(centre - long * slope), centre) >= reach:
            break
        short, long = long, 2.0 * long
        if long * size > 1e9 * reach:
            return domain.project(centre - long * slope)
    for _ in range(60):
        middle = 0.5 * (short + long)
        if _distance(domain.project(centre - middle * slope), centre) > reach:
            long = middle
        else:
            short = middle
    return domain.project(centre - short * slope)


def _distance(point: Vector, other: Vector) -> float:
    gap = point - other
    return sqrt(dot(gap, gap))
