"""The first radius of the trust region, from the set, x0 and the known f; no scale is asked of the user."""

from __future__ import annotations

import numpy as np

from pzos.base.types import Vector
from pzos.methods.trust_region.subproblem import bounds_of, minimise
from pzos.problem.leader import Leader
from pzos.problem.sets import Domain

_GROWTH = 4.0
_TRIES = 12


def first_radius(leader: Leader, sign: float, x0: Vector, y0: Vector, domain: Domain) -> float:
    """Return how far the leader would move if the followers did not react, within the set.

    f(., y0) is minimised in growing boxes until the minimiser lies inside one. Where f(., y0) has no minimiser,
    or x0 is one already, the size of x0 takes its place; a bounded set caps both.
    """

    def unanswered(x: Vector) -> tuple[float, Vector]:
        at = leader(x, y0)
        return sign * at.value, sign * at.grad_x

    typical = max(1.0, float(np.abs(x0).mean()))
    cap = _half_width(domain, x0)
    radius = min(typical, cap)
    for _ in range(_TRIES):
        size = minimise(unanswered, x0, radius, domain, 50).size
        if size < 0.9 * radius or radius >= cap:
            return size if size > 1e-6 * typical else min(0.5 * typical, cap)
        radius = min(_GROWTH * radius, cap)
    return min(0.5 * typical, cap)


def _half_width(domain: Domain, x0: Vector) -> float:
    bounds = bounds_of(domain, x0.size)
    if bounds is None:
        # The set is seen through its projection: how far do two opposite long moves stay apart?
        reach = 1e6 * max(1.0, float(np.abs(x0).max()))
        there, back = domain.project(x0 + reach), domain.project(x0 - reach)
        along = domain.project(x0 + reach * np.eye(1, x0.size)[0])
        width = max(float(np.abs(there - back).max()), float(np.abs(along - x0).max()))
    else:
        width = float(np.max(bounds[1] - bounds[0]))
    return 0.5 * width if 0.0 < width < 1e6 else float("inf")
