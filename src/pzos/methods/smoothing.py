"""The four algorithms of the paper: PZOS and ZOS, each with batch size Q (Q = 1: Alg. PZOS and ZOS; else -B).

Both take the same step, x_{t+1} = P_X(x_t -+ alpha_t g_t) with minus to minimise and plus to maximise; they differ
in the estimate g_t alone. With the same seed both use the same directions.

The paper's probes x_t +- mu v lie outside the set where x_t is near its boundary. With ``inside`` none does: where the
ball of radius mu around x_t is not in the set, the pairs lie in a smaller one that is, within mu of x_t
(:mod:`pzos.problem.room`). Then E[g_t] still lies in the (partial) Goldstein set of radius mu, along the set's own
directions, but it is the gradient of F smoothed at the other ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pzos.base.checks import check_fields, checked, one_of
from pzos.base.types import Vector, dot
from pzos.methods.estimators import (
    Answers,
    Estimate,
    Plan,
    TwoPointPlan,
    black_box_estimate,
    of_kind,
    partial_estimate,
    plan_inside,
    sphere_directions,
    two_point_plan,
)
from pzos.methods.solver import Outcome, Stop, Task
from pzos.methods.steps import BATCH, SCHEDULE, Schedule, value_at
from pzos.problem.leader import Leader

INSIDE = one_of((True, False), "say whether probes must stay in the set")


class IterateState(NamedTuple):
    """An iterate x_t and its number t."""

    t: int
    x: Vector
    value: float = float("nan")


@dataclass(frozen=True, slots=True)
class _Smoothing:
    """What PZOS and ZOS share: configuration, directions and the projected step."""

    step: float | Schedule = checked(SCHEDULE, default=0.05)
    radius: float | Schedule = checked(SCHEDULE, default=0.1)
    batch: int = checked(BATCH, default=1)
    inside: bool = checked(INSIDE, default=False, later=True)
    _centred: ClassVar[bool]

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("step", "radius"):
            value = getattr(self, name)
            if not callable(value):  # float32 would round what is computed with it
                object.__setattr__(self, name, float(value))
        object.__setattr__(self, "batch", int(self.batch))

    def init(self, task: Task) -> IterateState:
        """Start at x0."""
        return IterateState(0, task.known.x0)

    def stop(self, task: Task, state: IterateState) -> Stop | None:
        """Never stop: the paper's algorithms run for a given number of steps."""
        return None

    def ask(self, task: Task, state: IterateState) -> TwoPointPlan:
        """Plan x_t (for PZOS) and x_t +- mu v_q, or pairs that stay in the set."""
        radius = value_at(self.radius, state.t)

        def directions(dimension: int) -> tuple[Vector, ...]:
            return sphere_directions(task.keys, state.t, self.batch, dimension)

        if self.inside:
            return plan_inside(state.x, radius, directions, task.known.domain, centred=self._centred)
        return two_point_plan(state.x, radius, directions(state.x.shape[-1]), centred=self._centred)

    def tell(self, task: Task, state: IterateState, plan: Plan, answers: Answers) -> tuple[IterateState, Outcome]:
        """Take x_{t+1} = P_X(x_t -+ alpha_t g_t); stay where the whole batch failed."""
        estimate = self.estimate(task.known.leader, plan, answers)
        step = value_at(self.step, state.t)
        if estimate is None:
            nothing = float("nan")
            return IterateState(state.t + 1, state.x), Outcome(state.x, nothing, nothing, 0.0)
        g = estimate.gradient
        norm_squared = dot(g, g)
        g *= -task.known.sign * step  # the estimate is ours: no need for another array
        g += state.x
        moved = task.known.domain.project(g)
        return IterateState(state.t + 1, moved), Outcome(state.x, estimate.value, norm_squared, step)

    @staticmethod
    def estimate(leader: Leader, plan: Plan, answers: Answers) -> Estimate | None:
        """Return g_t from the answers to a two-point plan; None where the whole batch failed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PZOS(_Smoothing):
    """Partial zeroth-order smoothing (Alg. PZOS; with ``batch`` > 1 Alg. PZOS-B): 2 Q + 1 queries a step.

    Only the Jacobian of the followers' response is estimated by two-point differences of radius ``radius``; the
    leader's partial gradients are exact. ``step`` and ``radius`` are numbers or schedules, e.g.
    ``Diminishing(0.05)``. ``inside`` keeps every query in the set.
    """

    _centred = True

    @staticmethod
    def estimate(leader: Leader, plan: Plan, answers: Answers) -> Estimate | None:
        """Return the partial estimate, eq. (4), from the answers to a two-point plan."""
        return partial_estimate(leader, of_kind(TwoPointPlan, plan), answers)


@dataclass(frozen=True, slots=True)
class ZOS(_Smoothing):
    """Zeroth-order smoothing of the whole of F (Alg. ZOS; with ``batch`` > 1 Alg. ZOS-B): 2 Q queries a step.

    The black-box baseline: f is only evaluated, its gradients are not used. F(x_t) itself is not queried; a
    study can monitor it, and counts those queries apart.
    """

    _centred = False

    @staticmethod
    def estimate(leader: Leader, plan: Plan, answers: Answers) -> Estimate | None:
        """Return the black-box estimate, eq. (2), from the answers to a two-point plan."""
        return black_box_estimate(leader, of_kind(TwoPointPlan, plan), answers)
