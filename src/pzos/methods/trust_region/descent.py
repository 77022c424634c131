"""Descent in a box: limited-memory BFGS in the decisions that are free to move, along the path that the box bends.

A decision at its bound whose slope points outwards is held; in all others the direction is -H g with H of the last
steps (compact form, Byrd, Nocedal and Schnabel 1994). The step is cut to the box and shortened until f falls
(two-metric projection, Bertsekas 1982). One evaluation is most often enough for a step; on the models of the trust
region the decrease is that of L-BFGS-B for less work.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtrs

from pzos.base.types import Matrix, Vector

Objective = Callable[[Vector], tuple[float, Vector]]

#: So many steps are remembered.
_MEMORY = 10
#: So many evaluations are made for each step at most.
_EVALUATIONS = 1.5
#: The share of the decrease so far below which another step gains nothing; steeper slopes than this are none.
_NOTHING, _FLAT = 1e-7, 1e-12
#: What f must fall of what its slope promises, and by which factors a step is shortened.
_ARMIJO, _SHORTEST, _LONGEST = 1e-4, 0.1, 0.5
#: Changes of the slope that bend less than this tell nothing of the curvature.
_CURVED = 1e-10


def descend(
    objective: Objective, start: Vector, known: tuple[float, Vector], lower: Vector, upper: Vector, iterations: int
) -> tuple[Vector, float]:
    """Return the lowest point found from ``start``, which lies in the box, and the value there.

    ``known`` are value and slope at the start. The first step moves the decision of steepest slope by 1: x should be
    in units in which that is far.
    """
    x, left = start, int(_EVALUATIONS * iterations)
    value, slope = known
    first = value
    steps, changes = np.empty((0, x.size)), np.empty((0, x.size))
    for _ in range(iterations):
        free = ~(((x <= lower) & (slope > 0.0)) | ((x >= upper) & (slope < 0.0)))
        open_slope = slope if free.all() else np.where(free, slope, 0.0)
        steepest = float(np.abs(open_slope).max())
        if steepest <= _FLAT:
            break
        direction = _quasi_newton(open_slope, free, steps, changes)
        if direction is None:
            steps, changes, direction = steps[:0], changes[:0], open_slope / -steepest
        length = 1.0
        while True:
            there = np.minimum(np.maximum(x + length * direction, lower), upper)
            move = there - x
            promised = float(slope @ move)
            trial, new_slope = objective(there)
            left -= 1
            if trial < value and trial <= value + _ARMIJO * promised:
                break
            if left <= 0:
                return x, value
            bend = trial - value - promised
            length *= min(max(-0.5 * promised / bend, _SHORTEST), _LONGEST) if bend > 0.0 else _LONGEST
        gained, change = value - trial, new_slope - slope
        x, value, slope = there, trial, new_slope
        if gained <= _NOTHING * (first - value) or left <= 0:
            break
        if float(move @ change) > _CURVED * float(np.sqrt((move @ move) * (change @ change))):
            steps = np.concatenate([steps[1 - _MEMORY :], move[None]])
            changes = np.concatenate([changes[1 - _MEMORY :], change[None]])
    return x, value


def _quasi_newton(slope: Vector, free: npt.NDArray[np.bool_], steps: Matrix, changes: Matrix) -> Vector | None:
    """Return -H slope in the free decisions; None where no step is remembered, or it would not lead down."""
    if steps.shape[0] == 0:
        return None
    if not free.all():
        steps, changes = steps * free, changes * free
    products, bends = steps @ changes.T, changes @ changes.T
    curvatures = products.diagonal()
    curved = curvatures > _CURVED * bends.diagonal()
    if not curved.all():
        kept = np.flatnonzero(curved)
        if kept.size == 0:
            return None
        steps, changes = steps[kept], changes[kept]
        products, bends, curvatures = products[np.ix_(kept, kept)], bends[np.ix_(kept, kept)], curvatures[kept]
    scale = curvatures[-1] / bends[-1, -1]
    along = dtrtrs(products, steps @ slope)[0]  # only the upper triangle counts
    back = dtrtrs(products, curvatures * along + scale * (bends @ along - changes @ slope), trans=1)[0]
    direction: Vector = scale * (along @ changes - slope) - back @ steps
    return direction if float(direction @ slope) < 0.0 else None
