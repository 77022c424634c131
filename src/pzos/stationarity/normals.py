"""Constrained stationarity: normals of the domain near x, so that a certificate is about g + n instead of g.

At a minimiser over X some g + n vanishes, n in the normal cone of X. In the spirit of Goldstein, n is taken at a
point p of X within delta of x: p = P_X(x - gamma g) gives n = (x - gamma g - p)/gamma in N_X(p), and g + n is the
gradient mapping (x - p)/gamma. The largest gamma with |p - x| <= delta is used, which makes |g + n| smallest.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pzos.base.types import Vector, dot
from pzos.problem.sets import Domain, Whole

_DOUBLINGS = 60
_HALVINGS = 40


def normal_near(domain: Domain, x: Vector, descent: Vector, delta: float) -> Vector:
    """Return a normal n of ``domain`` at a point within ``delta`` of x that makes |descent + n| small.

    ``descent`` is the gradient of what goes down (minus the gradient of F where F is maximised).
    """
    size = sqrt(dot(descent, descent))
    if isinstance(domain, Whole) or size == 0.0:
        return np.zeros_like(x)
    low = delta / size  # |p - x| <= gamma |g| for x in X
    for _ in range(_DOUBLINGS):
        if not _stays(domain, x, descent, 2.0 * low, delta):
            break
        low *= 2.0
    else:
        return _normal(domain, x, descent, low)
    high = 2.0 * low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _stays(domain, x, descent, middle, delta) else (low, middle)
    return _normal(domain, x, descent, low)


def _stays(domain: Domain, x: Vector, descent: Vector, gamma: float, delta: float) -> bool:
    move = domain.project(x - gamma * descent) - x
    return sqrt(dot(move, move)) <= delta


def _normal(domain: Domain, x: Vector, descent: Vector, gamma: float) -> Vector:
    target = x - gamma * descent
    normal: Vector = (target - domain.project(target)) / gamma
    return normal
