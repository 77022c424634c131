"""What the related methods are put together from: directions, differences of F, and the projected step.

Most methods of the literature differ in four choices alone: how directions are drawn, which points are compared, how
far to step, and which point to return. Directions u and weights w have E[w u u'] = I, so that w (slope of F along u) u
estimates the gradient of a smoothed F:

============  =========================================  ======  ==================================================
directions    u                                          w       smoothed F
============  =========================================  ======  ==================================================
``SPHERE``    uniform on the unit sphere                 d       mean over the ball of radius mu
``GAUSSIAN``  standard normal                            1       mean over a normal law of deviation mu
``SIGNS``     independent signs, +1 or -1                1       (no smoothing: a random difference quotient)
============  =========================================  ======  ==================================================

With one seed all three are made from the same normal vectors, and those of the sphere are the directions of PZOS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pzos.base.checks import check_fields, checked, set_fields
from pzos.base.keys import Keys, Role
from pzos.base.types import Purpose, Vector, dot
from pzos.methods.estimators import Answers, Estimate, Plan, of_kind, sphere_directions
from pzos.methods.solver import Outcome, Stop, Task
from pzos.methods.steps import BATCH, SCHEDULE, Schedule, value_at
from pzos.problem.leader import Leader

_UNKNOWN = float("nan")

# ---- directions -----------------------------------------------------------------------------------------------------


class Rays(NamedTuple):
    """A law of directions u, with the weight w for which E[w u u'] = I."""

    draw: Callable[[Keys, int, int, int], tuple[Vector, ...]]
    weight: Callable[[int], float]


def gaussian_directions(keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
    """Draw standard normal vectors; divided by their lengths they are :func:`sphere_directions`."""
    return tuple(keys.generator(Role.DIRECTION, step, index).standard_normal(dimension) for index in range(count))


def sign_directions(keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
    """Draw vectors of independent signs."""
    return tuple(np.where(u < 0.0, -1.0, 1.0) for u in gaussian_directions(keys, step, count, dimension))


SPHERE = Rays(sphere_directions, float)
GAUSSIAN = Rays(gaussian_directions, lambda dimension: 1.0)
SIGNS = Rays(sign_directions, lambda dimension: 1.0)

# ---- differences of F -----------------------------------------------------------------------------------------------


class Sides(Enum):
    """Which points a slope of F along u is taken from."""

    CENTRAL = "x + mu u and x - mu u"
    ONE_SIDED = "x + mu u and x"
    ONE_POINT = "x + mu u alone"


@dataclass(frozen=True, slots=True, eq=False)
class RayPlan(Plan):
    """Points on rays from x: x itself (if one-sided), then x + mu u_q (and x - mu u_q if central) for each q."""

    x: Vector
    radius: float
    directions: tuple[Vector, ...]
    sides: Sides


def ray_plan(x: Vector, radius: float, directions: Sequence[Vector], sides: Sides) -> RayPlan:
    """Plan the queries for slopes of F along the directions."""
    points: list[Vector] = [x] if sides is Sides.ONE_SIDED else []
    purposes = [Purpose.ITERATE] * len(points)
    for u in directions:
        points.append(x + radius * u)
        if sides is Sides.CENTRAL:
            points.append(x - radius * u)
    purposes += [Purpose.PROBE] * (len(points) - len(purposes))
    return RayPlan(tuple(points), tuple(purposes), x, radius, tuple(directions), sides)


def values(leader: Leader, points: Sequence[Vector], answers: Answers) -> Vector:
    """Return F at every point, NaN where the follower failed."""
    return np.array(
        [_UNKNOWN if y is None else leader.value(x, y) for x, y in zip(points, answers, strict=True)], dtype=np.float64
    )


def slopes(plan: RayPlan, found: Vector) -> Vector:
    """Return the slope of F along each direction from F at the plan's points, NaN where an answer is missing."""
    if plan.sides is Sides.CENTRAL:
        rises, run = found[::2] - found[1::2], 2.0 * plan.radius
    elif plan.sides is Sides.ONE_SIDED:
        rises, run = found[1:] - found[0], plan.radius
    else:
        rises, run = found, plan.radius
    read: Vector = rises / run
    return read


def along(directions: Sequence[Vector], sizes: Vector, weight: float) -> Vector | None:
    """Return the mean of weight * size * u over the directions with a size; None if none has one."""
    known = np.isfinite(sizes)
    count = int(known.sum())
    if not count:
        return None
    total = np.zeros_like(directions[0])
    for u, size in zip(directions, sizes, strict=True):
        if np.isfinite(size):
            total += (weight * float(size) / count) * u
    return total


# ---- several plans at once ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class JointPlan(Plan):
    """Several plans asked in one batch."""

    parts: tuple[RayPlan, ...]


def joint_plan(parts: Sequence[RayPlan]) -> JointPlan:
    """Put plans together; none of their points is the iterate."""
    points = tuple(point for part in parts for point in part.points)
    return JointPlan(points, (Purpose.PROBE,) * len(points), tuple(parts))


def slopes_of_parts(leader: Leader, plan: JointPlan, answers: Answers) -> list[Vector]:
    """Return the slopes of each part."""
    found, at, read = values(leader, plan.points, answers), 0, []
    for part in plan.parts:
        read.append(slopes(part, found[at : at + len(part.points)]))
        at += len(part.points)
    return read


# ---- the projected walk ---------------------------------------------------------------------------------------------


class Walk(NamedTuple):
    """The state of a related method after t steps.

    ``at`` is the iterate and ``x`` the point the method returns, which some papers draw at random; ``kept`` is
    whatever else a method remembers.
    """

    t: int
    x: Vector
    at: Vector
    kept: Any = None
    value: float = _UNKNOWN


@dataclass(frozen=True, slots=True)
class Walker:
    """What the related methods share: x_{t+1} = P_X(x_t -+ alpha_t g_t) from slopes of F, minus to minimise.

    A method overrides what it does differently: the law of its directions, which points are compared, the estimate,
    the move, or the point it returns. Where all answers of a step failed, the method stays.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.05)
    radius: float | Schedule = checked(SCHEDULE, default=0.1)
    batch: int = checked(BATCH, default=1)
    _rays: ClassVar[Rays] = SPHERE
    _sides: ClassVar[Sides] = Sides.CENTRAL

    def __post_init__(self) -> None:
        check_fields(self)
        numbers = {name: getattr(self, name) for name in ("step", "radius")}
        set_fields(self, **{name: float(value) for name, value in numbers.items() if not callable(value)})
        set_fields(self, batch=int(self.batch))

    def init(self, task: Task) -> Walk:
        """Start at x0."""
        return Walk(0, task.known.x0, task.known.x0)

    def stop(self, task: Task, state: Walk) -> Stop | None:
        """Never stop: a limit of the run decides."""
        return None

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan the points of this step's slopes."""
        return self._plan_at(task, state, state.at)

    def tell(self, task: Task, state: Walk, plan: Plan, answers: Answers) -> tuple[Walk, Outcome]:
        """Estimate the gradient and take the projected step; stay where nothing was answered."""
        estimate = self._estimate(task, state, of_kind(RayPlan, plan), answers)
        step = value_at(self.step, state.t)
        if estimate is None:
            return stayed(state)
        moved = self._moved(task, state.at, estimate.gradient, step)
        outcome = Outcome(state.x, estimate.value, dot(estimate.gradient, estimate.gradient), step)
        return Walk(state.t + 1, self._returned(task, state, moved), moved), outcome

    # ---- what methods change ----------------------------------------------------------------------------------------

    def _plan_at(self, task: Task, state: Walk, x: Vector) -> RayPlan:
        directions = self._rays.draw(task.keys, state.t, self._count(state.t), x.size)
        return ray_plan(x, value_at(self.radius, state.t), directions, self._sides)

    def _count(self, t: int) -> int:
        """Return the number of directions of step t."""
        return self.batch

    def _estimate(self, task: Task, state: Walk, plan: RayPlan, answers: Answers) -> Estimate | None:
        found = values(task.known.leader, plan.points, answers)
        sizes = slopes(plan, found)
        gradient = along(plan.directions, sizes, self._rays.weight(plan.x.size))
        value = float(found[0]) if plan.sides is Sides.ONE_SIDED else _UNKNOWN
        return None if gradient is None else Estimate(gradient, value, int(np.isfinite(sizes).sum()))

    def _moved(self, task: Task, at: Vector, gradient: Vector, step: float) -> Vector:
        return task.known.domain.project(at - (task.known.sign * step) * gradient)

    def _returned(self, task: Task, state: Walk, moved: Vector) -> Vector:
        """Return the point to return after this step: here the last iterate."""
        return moved


def stayed(state: Walk, kept: Any = None) -> tuple[Walk, Outcome]:
    """Return the state and outcome of a step of which no answer came."""
    return Walk(state.t + 1, state.x, state.at, kept), Outcome(state.x, _UNKNOWN, _UNKNOWN, 0.0)


def drawn(task: Task, t: int, kept: Vector, new: Vector, seen: int) -> Vector:
    """Return ``new`` with probability 1/``seen``, else ``kept``: after n calls each of n points is equally likely."""
    return new if task.keys.uniform(Role.OUTPUT, t, 1) * seen < 1.0 else kept
