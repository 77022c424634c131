"""Stationarity under outcome constraints: the Lagrangian f +- sum_k lambda_k g_k in the place of f.

At a constrained optimum some lambda >= 0, zero for constraints away from their limits, makes an element of the partial
Goldstein subdifferential of the Lagrangian vanish (with a normal of the domain). The Lagrangian is a known smooth cost
like f, so for *any* lambda that was fixed before the directions a bound is taken from, the bound on its norm is as
valid as that for f. Where lambda comes from does not matter for that: from the model of a run, or from the first part
of the batch. A poor one makes the bound large, never wrong. That x keeps the constraints, and by how much lambda_k g_k
differs from zero, is read off the answer at x itself and is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.base.types import LeaderValue, Matrix, Vector
from pzos.methods.estimators import Answers, TwoPointPlan, answered_pairs
from pzos.problem.leader import Leader
from pzos.problem.outcomes import Outcomes
from pzos.problem.problem import Known


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """What a certificate says of the constraints at x: ``values`` of g, and the multipliers its bounds are for."""

    names: tuple[str, ...]
    values: Vector
    multipliers: Vector

    @property
    def violation(self) -> float:
        """Return the largest g, 0 if none is positive."""
        return max(float(self.values.max()), 0.0)

    @property
    def slackness(self) -> float:
        """Return sum_k lambda_k |g_k|: 0 where complementarity holds exactly."""
        return float(self.multipliers @ np.abs(self.values))

    @property
    def sentence(self) -> str:
        """Return both in words."""
        return f"largest violation {self.violation:.2g}, complementarity {self.slackness:.2g}"


def lagrangian(known: Known, outcomes: Outcomes, multipliers: Vector) -> Leader:
    """Return f +- sum_k lambda_k g_k as a cost in the sense of the problem: plus to minimise, minus to maximise."""
    weights = known.sign * multipliers

    def value(x: Vector, y: Vector) -> float:
        return known.leader.value(x, y) + float(weights @ outcomes.values(x, y))

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = known.leader(x, y)
        grad_x, grad_y = outcomes.pull(x, y, weights)
        total = at.value + float(weights @ outcomes.values(x, y))
        return total, at.grad_x + grad_x, at.grad_y + grad_y

    return Leader(value, everything, f"Lagrangian of {known.leader.name}")


def fitted_multipliers(
    known: Known, outcomes: Outcomes, plan: TwoPointPlan, at: LeaderValue, answers: Answers, pilot: int, delta: float
) -> Vector:
    """Return lambda >= 0 that makes the gradient of the Lagrangian smallest, as the first ``pilot`` pairs see it.

    Only constraints that may reach their limits within ``delta`` of x, as these pairs see their slopes, can have one.
    """
    from scipy.optimize import nnls

    y = answers[0]
    lambdas = np.zeros(len(outcomes))
    pairs = list(answered_pairs(plan.directions, answers[1:]))[:pilot]
    if y is None or not pairs:
        return lambdas
    directions = np.array([v for v, _, _ in pairs])
    slopes = np.array([plus - minus for _, plus, minus in pairs]) / (2.0 * plan.radius)
    in_x, in_y = outcomes.pulls(plan.x, y, np.eye(len(outcomes)))
    gradients = _seen(directions, directions @ in_x.T + slopes @ in_y.T)
    cost = _seen(directions, (directions @ at.grad_x + slopes @ at.grad_y)[:, None])[0]
    reach = delta * np.linalg.norm(gradients, axis=1)
    near = outcomes.values(plan.x, y) >= -reach
    sizes = np.linalg.norm(gradients[near], axis=1)
    if not near.any() or not sizes.any():
        return lambdas
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    found, _ = nnls((gradients[near] / sizes[:, None]).T, -known.sign * cost)
    lambdas[near] = found / sizes
    return lambdas


def _seen(directions: Matrix, slopes: Matrix) -> Matrix:
    """Return the gradients of least norm, one per row, that have these slopes (a column each) along the directions."""
    found: Matrix = np.linalg.lstsq(directions, slopes, rcond=1e-8)[0].T.astype(np.float64, copy=False)
    return found
