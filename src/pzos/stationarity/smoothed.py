"""Smoothed objects by Monte Carlo, with standard errors: y_mu, F_mu, F~_mu, their gradients, bias and variances.

    y_mu(x) = E y*(x + mu u),   F_mu(x) = f(x, y_mu(x)),   F~_mu(x) = E F(x + mu u),   u uniform in the unit ball
    J y_mu(x) = (d/(2 mu)) E [y*(x + mu v) - y*(x - mu v)] v',                          v uniform on the sphere

Ball points come in opposite pairs. The partial and the black-box estimate are read from the same answers, so their
second moments and variances are paired (Lem. 1 and Fig. 1). Standard errors are those of independent pairs; F_mu and
its gradient, which are not linear in the answers, get theirs from a jackknife over 20 groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import aligned, check_fields, checked, positive, whole
from pzos.base.keys import Role
from pzos.base.types import LeaderValue, Matrix, Vector, dot
from pzos.methods.estimators import Answers, Plan, TwoPointPlan, answered_pairs, of_kind, two_point_plan
from pzos.methods.solver import Task
from pzos.problem.leader import Leader
from pzos.problem.problem import Known, Problem
from pzos.stationarity.one_batch import BatchState, OneBatch, report_on

if TYPE_CHECKING:
    from concurrent.futures import Executor

_GROUPS = 20


class Estimated(NamedTuple):
    """A Monte Carlo estimate with its standard error; for a vector the error is that of its norm (root mean square)."""

    value: Vector
    error: float

    @property
    def number(self) -> float:
        """Return the value of a scalar estimate."""
        return float(self.value[0])


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedReport:
    """The smoothed objects at x.

    ``estimate_mean`` is E[g_t], ``bias`` is E[g_t] - grad F_mu(x), bounded by C_p mu (Lem. 8). ``partial_moment`` and
    ``black_box_moment`` are E|g|^2 of the two estimators on the same answers, ``*_variance`` their variances, and
    ``moment_difference`` the paired difference (black box minus partial).
    """

    x: Vector
    radius: float
    value: float
    y_mu: Estimated
    F_mu: Estimated
    F_tilde: Estimated
    F_mu_gradient: Estimated
    F_tilde_gradient: Estimated
    estimate_mean: Estimated
    bias: Estimated
    partial_moment: Estimated
    black_box_moment: Estimated
    moment_difference: Estimated
    partial_variance: float
    black_box_variance: float
    pairs: int
    queries: int

    def __repr__(self) -> str:
        def shown(e: Estimated) -> str:
            return f"{e.number:.6g} +- {e.error:.2g}"

        def size(e: Estimated) -> str:
            return f"{sqrt(dot(e.value, e.value)):.6g} +- {e.error:.2g}"

        rows = [
            ("F(x)", f"{self.value:.6g}"),
            ("F_mu(x)", shown(self.F_mu)),
            ("F~_mu(x)", shown(self.F_tilde)),
            ("|y_mu(x)|", size(self.y_mu)),
            ("|grad F_mu(x)|", size(self.F_mu_gradient)),
            ("|grad F~_mu(x)|", size(self.F_tilde_gradient)),
            ("|E g|", size(self.estimate_mean)),
            ("bias |E g - grad F_mu|", size(self.bias)),
            ("E|g|^2, partial", shown(self.partial_moment)),
            ("E|g|^2, black box", shown(self.black_box_moment)),
            ("queries", f"{self.queries} ({self.pairs} pairs of either kind, radius {self.radius:g})"),
        ]
        return aligned(rows)


class _Sample(NamedTuple):
    """Answered pairs: in the ball the mean of y and of F, on the sphere directions, y+ - y- and f+ - f- over 2 mu."""

    ball_y: Matrix
    ball_f: Vector
    directions: Matrix
    response_slopes: Matrix
    value_slopes: Vector


@dataclass(frozen=True, slots=True, eq=False)
class SmoothingSolver(OneBatch[SmoothedReport]):
    """Ask x, ``pairs`` opposite pairs in the ball and ``pairs`` on the sphere, once: 4 pairs + 1 queries."""

    radius: float = checked(positive("it is mu"))
    pairs: int = checked(whole(2 * _GROUPS, "try pairs=500"), default=500)

    def __post_init__(self) -> None:
        check_fields(self)

    def ask(self, task: Task, state: BatchState[SmoothedReport]) -> Plan:
        """Plan x, x +- mu v on the sphere and x +- mu u in the ball."""
        x, keys = state.x, task.keys
        sphere = [keys.direction(5, q, x.size, Role.REGION) for q in range(self.pairs)]
        lengths = [keys.uniform(Role.REGION, 6, q) ** (1.0 / x.size) for q in range(self.pairs)]
        ball = [length * keys.direction(7, q, x.size, Role.REGION) for q, length in enumerate(lengths)]
        return two_point_plan(x, self.radius, [*sphere, *ball], centred=True)

    def read(self, known: Known, plan: Plan, answers: Answers) -> SmoothedReport | None:
        """Average the answers."""
        plan, centre = of_kind(TwoPointPlan, plan), answers[0]
        sample = None if centre is None else _gather(known.leader, plan, answers, self.pairs)
        if centre is None or sample is None:
            return None
        return _report(known.leader, plan, known.leader(plan.x, centre), sample)


def _gather(leader: Leader, plan: TwoPointPlan, answers: Answers, pairs: int) -> _Sample | None:
    ball_y, ball_f, directions, responses, values = [], [], [], [], []
    asked = enumerate(zip(plan.directions, plan.points[1::2], plan.points[2::2], strict=True))
    for (q, (v, ahead, behind)), plus, minus in answered_pairs(asked, answers[1:]):
        above, below = leader.value(ahead, plus), leader.value(behind, minus)
        if q >= pairs:
            ball_y.append(0.5 * (plus + minus))
            ball_f.append(0.5 * (above + below))
        else:
            directions.append(v)
            responses.append((plus - minus) / (2.0 * plan.radius))
            values.append((above - below) / (2.0 * plan.radius))
    if min(len(ball_y), len(directions)) < 2 * _GROUPS:
        return None
    return _Sample(np.array(ball_y), np.array(ball_f), np.array(directions), np.array(responses), np.array(values))


def _report(leader: Leader, plan: TwoPointPlan, at: LeaderValue, sample: _Sample) -> SmoothedReport:
    x, d = plan.x, plan.x.size
    v = sample.directions
    partial = at.grad_x + (d * np.einsum("ij,j->i", sample.response_slopes, at.grad_y))[:, None] * v
    black_box = (d * sample.value_slopes)[:, None] * v
    moments = [np.einsum("ij,ij->i", g, g) for g in (partial, black_box)]
    mean_partial, mean_black = _mean(partial), _mean(black_box)

    def smoothed(kept_ball: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_]) -> dict[str, Vector]:
        """Return what is not linear in the answers, from part of them."""
        there = leader(x, sample.ball_y[kept_ball].mean(axis=0))

        def through(weights: Vector) -> Vector:
            slopes = np.einsum("ij,j->i", sample.response_slopes[kept], weights)
            product: Vector = d * np.einsum("i,ij->j", slopes, v[kept]) / slopes.size
            return product

        return {
            "value": np.array([there.value]),
            "gradient": there.grad_x + through(there.grad_y),
            "bias": at.grad_x - there.grad_x + through(at.grad_y - there.grad_y),
        }

    curved = _jackknife(smoothed, len(sample.ball_y), len(v))
    return SmoothedReport(
        x=x,
        radius=plan.radius,
        value=at.value,
        y_mu=_mean(sample.ball_y),
        F_mu=curved["value"],
        F_tilde=_mean(sample.ball_f[:, None]),
        F_mu_gradient=curved["gradient"],
        F_tilde_gradient=mean_black,
        estimate_mean=mean_partial,
        bias=curved["bias"],
        partial_moment=_mean(moments[0][:, None]),
        black_box_moment=_mean(moments[1][:, None]),
        moment_difference=_mean((moments[1] - moments[0])[:, None]),
        partial_variance=_variance(partial),
        black_box_variance=_variance(black_box),
        pairs=len(v),
        queries=len(plan.points),
    )


def _mean(rows: Matrix) -> Estimated:
    """Return the mean of the rows with the root mean square error of the vector."""
    return Estimated(rows.mean(axis=0), sqrt(_variance(rows) / len(rows)))


def _variance(rows: Matrix) -> float:
    return float(rows.var(axis=0, ddof=1).sum())


def _jackknife(
    statistic: Callable[[npt.NDArray[np.bool_], npt.NDArray[np.bool_]], dict[str, Vector]], ball: int, sphere: int
) -> dict[str, Estimated]:
    """Return each statistic of all answers with its delete-a-group jackknife error."""
    everything = statistic(np.ones(ball, dtype=bool), np.ones(sphere, dtype=bool))
    left_out = [
        statistic(np.arange(ball) % _GROUPS != group, np.arange(sphere) % _GROUPS != group) for group in range(_GROUPS)
    ]
    estimates = {}
    for name, value in everything.items():
        rows = np.array([part[name] for part in left_out])
        spread = float(((rows - rows.mean(axis=0)) ** 2).sum()) * (_GROUPS - 1) / _GROUPS
        estimates[name] = Estimated(value, sqrt(spread))
    return estimates


def smoothed_objects(
    problem: Problem,
    x: npt.ArrayLike | None = None,
    *,
    radius: float,
    pairs: int = 500,
    seed: int = 0,
    executor: Executor | None = None,
) -> SmoothedReport:
    """Estimate the smoothed objects at x (x0 if None) from 4 ``pairs`` + 1 queries."""
    return report_on("smoothed_objects", problem, SmoothingSolver(radius, pairs), x, seed=seed, executor=executor)
