"""Projection onto the part of the leader's set that lies in the trust region, {z in X, |z - c|_inf <= D}.

Simplex, budget and ball have one multiplier besides the bounds: it is the root of a monotone function. Any other set
is known by its own projection alone, and Dykstra's method alternates between it and the region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pzos.base.types import Vector
from pzos.problem.sets import Ball, Budget, Domain, Simplex

_HALVINGS = 60
_ALTERNATIONS = 100


def project_near(x: Vector, centre: Vector, radius: float, domain: Domain) -> Vector:
    """Return the point of the set within ``radius`` of the centre that is nearest to x; the centre is in the set."""
    low, high = centre - radius, centre + radius
    if isinstance(domain, Simplex | Budget):
        low = np.maximum(low, 0.0)

        def shifted(mu: float) -> Vector:
            return np.minimum(np.maximum(x - mu, low), high)

        inside = shifted(0.0)
        total = float(inside.sum())
        if isinstance(domain, Budget) and total <= domain.total:
            return inside
        reach = float(np.abs(x - centre).max()) + radius
        found = _root(shifted, lambda z: float(z.sum()) - domain.total, -reach, reach)
    elif isinstance(domain, Ball):
        middle, size = domain.center, domain.radius

        def drawn(share: float) -> Vector:
            return np.minimum(np.maximum((1.0 - share) * x + share * middle, low), high)

        inside = drawn(0.0)
        if float(np.linalg.norm(inside - middle)) <= size:
            return inside
        found = _root(drawn, lambda z: float(np.linalg.norm(z - middle)) - size, 0.0, 1.0)
    else:
        found = _alternating(x, low, high, domain)
    return _kept(found, centre, radius, domain)


def _root(point: Callable[[float], Vector], excess: Callable[[Vector], float], low: float, high: float) -> Vector:
    """Halve the interval of the multiplier; ``excess`` falls as it grows."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if excess(point(middle)) > 0.0:
            low = middle
        else:
            high = middle
    return point(high)


def _alternating(x: Vector, low: Vector, high: Vector, domain: Domain) -> Vector:
    z = x
    set_part, box_part = np.zeros_like(x), np.zeros_like(x)
    for _ in range(_ALTERNATIONS):
        boxed = np.minimum(np.maximum(z + box_part, low), high)
        box_part = z + box_part - boxed
        inside = domain.project(boxed + set_part)
        set_part = boxed + set_part - inside
        moved = float(np.abs(inside - z).max())
        z = inside
        if moved <= 1e-10 * float(np.max(high - low)):
            break
    return z


def _kept(z: Vector, centre: Vector, radius: float, domain: Domain) -> Vector:
    """Draw z back so that set and region hold exactly: a chord from the centre to a point of the set lies in it."""
    z = domain.project(z)
    size = float(np.abs(z - centre).max())
    return z if size <= radius else centre + (radius / size) * (z - centre)
