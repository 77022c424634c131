"""Semismooth Newton on the natural map r(y) = y - P(y - g G(y)): the fast finish of a VI.

With D in the generalised derivative of P at y - g G(y), a step solves (I - D (I - g G'(y))) s = -r. Where the
set is polyhedral, P is piecewise affine: once the active face is right, this is Newton on the face, and one
step is exact when G is affine. A step is taken only if it shrinks r; what cannot be improved is handed back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pzos.base.types import Matrix, Vector, dot
from pzos.problem.projections import Projector

Operator = Callable[[Vector], Vector]
_STEP_LIMIT = 50
_SHRINK = 0.7
_LONGEST = 1e8
_LINE_SEARCH = (1.0, 0.5, 0.25, 0.1)


@dataclass(frozen=True, slots=True, eq=False)
class NewtonOutcome:
    """Where Newton ended, and after how many accepted steps."""

    y: Vector
    steps: int


def natural_map(operator: Operator, projector: Projector, y: Vector, scale: float = 1.0) -> Vector:
    """Return y - P(y - scale G(y)); zero exactly at the solutions."""
    return y - projector.project(y - scale * operator(y))


def finite_difference_jacobian(operator: Operator, y: Vector, value: Vector) -> Matrix:
    """Return G'(y) column by column by forward differences; backward where forward has no finite value."""
    jacobian = np.empty((y.size, y.size))
    for i in range(y.size):
        for sign in (1.0, -1.0):
            moved = y.copy()
            moved[i] += sign * 1.5e-8 * max(1.0, abs(float(y[i])))
            jacobian[:, i] = (operator(moved) - value) / (moved[i] - y[i])
            if np.isfinite(jacobian[:, i]).all():
                break
    return jacobian


def newton_finish(
    operator: Operator, jacobian: Callable[[Vector, Vector], Matrix], projector: Projector, y: Vector
) -> NewtonOutcome:
    """Run Newton from y until the natural map stops shrinking; G' is asked for once per step."""
    value = operator(y)
    slope = jacobian(y, value)
    if not np.isfinite(slope).all():
        return NewtonOutcome(y, 0)
    # a scale that balances both parts of the natural map, kept for the whole run: it defines the merit
    norm = (np.abs(slope).sum(axis=0).max() * np.abs(slope).sum(axis=1).max()) ** 0.5
    scale = 1.0 / norm if norm > 0.0 else 1.0
    residual = natural_map(operator, projector, y, scale)
    for step in range(_STEP_LIMIT):
        if not residual.any():
            return NewtonOutcome(y, step)
        target = y - scale * value
        derivative = projector.derivative(target, y - residual)
        if derivative is None:
            return NewtonOutcome(y, step)
        matrix = np.eye(y.size) - derivative @ (np.eye(y.size) - scale * slope)
        better = _improve(operator, projector, y, residual, matrix, scale)
        if better is None:
            return NewtonOutcome(y, step)
        y, residual = better
        value = operator(y)
        slope = jacobian(y, value)
        if not np.isfinite(slope).all():
            return NewtonOutcome(y, step + 1)
    return NewtonOutcome(y, _STEP_LIMIT)


def _improve(
    operator: Operator, projector: Projector, y: Vector, residual: Vector, matrix: Matrix, scale: float
) -> tuple[Vector, Vector] | None:
    """Try the Newton step, then the least-norm one (singular systems), each shortened if need be."""
    merit = math.sqrt(dot(residual, residual))
    for solve in (_regular_solution, _least_norm_solution):
        direction = solve(matrix, -residual)
        if direction is None or not np.abs(direction).max() <= _LONGEST * (1.0 + np.abs(y).max()):
            continue  # a nearly singular system: the direction is rounding noise
        for length in _LINE_SEARCH:
            trial = projector.project(y + length * direction)
            trial_residual = natural_map(operator, projector, trial, scale)
            if math.sqrt(dot(trial_residual, trial_residual)) <= _SHRINK * merit:
                return trial, trial_residual
    return None


def _regular_solution(matrix: Matrix, right: Vector) -> Vector | None:
    try:
        direction: Vector = np.linalg.solve(matrix, right).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return direction


def _least_norm_solution(matrix: Matrix, right: Vector) -> Vector | None:
    try:
        direction: Vector = np.linalg.lstsq(matrix, right, rcond=1e-10)[0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return direction
