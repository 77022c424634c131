"""The point of smallest norm in the hull of finitely many points, by Wolfe's algorithm (1976) with a proven stop.

For any x in the hull, x.x - min_i p_i.x bounds |x - x*|^2, and min_i p_i.x/|x| bounds the smallest norm from below, so
the stop is a certificate. The algorithm ends after finitely many steps because each corral (an affinely independent
set whose affine minimiser lies inside) has a smaller norm than the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.base.checks import Faults
from pzos.base.errors import NotConverged
from pzos.base.types import Matrix, Vector, dot

_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class MinNorm:
    """The nearest point of a hull to the origin: ``norm``, with proof that no point has a norm below ``at_least``."""

    point: Vector
    norm: float
    at_least: float
    weights: Vector


def min_norm_point(points: Matrix, tolerance: float = 1e-12) -> MinNorm:
    """Return the point of smallest norm in the hull of the rows, to |x - x*|^2 <= tolerance * max|p|^2.

    >>> min_norm_point(np.array([[1.0, 1.0], [1.0, -1.0]])).norm
    1.0
    """
    faults = Faults("min_norm_point")
    array = points.ndim == 2 and points.shape[0] > 0
    faults.check(array and bool(np.isfinite(points).all()), "points", points, "finite rows", "one point per row")
    faults.raise_if_any()
    scale = float(np.sqrt(np.einsum("ij,ij->i", points, points).max()))
    if scale == 0.0:
        return MinNorm(points[0].copy(), 0.0, 0.0, _spread([0], np.ones(1), len(points)))
    unit = points / scale
    chosen, weights = _wolfe(unit, tolerance)
    x = np.einsum("i,ij->j", weights, unit[chosen])
    norm = dot(x, x) ** 0.5
    lowest = float(np.einsum("ij,j->i", unit, x).min()) / norm if norm > 0.0 else 0.0
    return MinNorm(x * scale, norm * scale, max(0.0, lowest) * scale, _spread(chosen, weights, len(points)))


def _wolfe(points: Matrix, tolerance: float) -> tuple[list[int], Vector]:
    """Return the corral and its weights; every point has norm at most 1."""
    chosen = [int(np.argmin(np.einsum("ij,ij->i", points, points)))]
    weights = np.ones(1)
    for _ in range(_MOST_STEPS):
        x = np.einsum("i,ij->j", weights, points[chosen])
        products = np.einsum("ij,j->i", points, x)
        entering = int(np.argmin(products))
        if dot(x, x) - products[entering] <= tolerance or entering in chosen:
            return chosen, weights
        chosen = [*chosen, entering]
        chosen, weights = _minor_cycle(points, chosen, np.append(weights, 0.0))
    raise NotConverged(f"min_norm_point: no proof after {_MOST_STEPS} steps: expected a gap of {tolerance:g}; widen it")


def _minor_cycle(points: Matrix, chosen: list[int], weights: Vector) -> tuple[list[int], Vector]:
    """Walk to the affine minimiser, dropping points whose weight reaches zero, until it lies inside."""
    while True:
        target = _affine_minimiser(points[chosen])
        if target.min() > 1e-14:
            return chosen, target
        falling = target <= 1e-14
        ratios = weights[falling] / np.maximum(weights[falling] - target[falling], 1e-300)
        weights = weights + min(1.0, float(ratios.min())) * (target - weights)
        kept = weights > 1e-14
        if kept.all():  # rounding left everybody in: drop the smallest
            kept[int(np.argmin(weights))] = False
        chosen = [index for index, keep in zip(chosen, kept, strict=True) if keep]
        weights = weights[kept] / weights[kept].sum()


def _affine_minimiser(points: Matrix) -> Vector:
    """Return weights, of sum 1 and any sign, of the smallest point in the affine hull."""
    count = len(points)
    system = np.ones((count, count)) + np.einsum("ij,kj->ik", points, points)
    solution = np.linalg.lstsq(system, np.ones(count), rcond=None)[0]
    weights: Vector = solution / solution.sum()
    return weights


def _spread(chosen: list[int], weights: Vector, count: int) -> Vector:
    spread = np.zeros(count)
    spread[chosen] = weights
    return spread
