"""Room for probes: a ball that lies in the set, near a point that may lie on its boundary.

Differences x +- mu v leave the set where x is within mu of its boundary. Around another point z they do not, if the
ball of radius m around z lies in the set; and if |z - x| + m <= mu, whatever is true of gradients within mu of x (a
Goldstein subdifferential, partial or not) is true of those within m of z. So the claims of estimators and certificates
that hold for any point near x hold without a single query outside the set.

A set without interior (a simplex, any with equations) has room in its own directions alone; a gradient is then known
along them, which is all a step within the set, or a certificate over it, can use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pzos.base.errors import InvalidInput, NotConverged
from pzos.base.types import Matrix, Vector
from pzos.problem.intersections import Intersection, drawn_into
from pzos.problem.linear import Facets, Linear
from pzos.problem.sets import Ball, Domain, Whole, linear_form

#: Margins tried: each this share of the one before, so many times.
_SHRINK, _TRIES = 0.75, 24
#: How often the room along the axes is halved before it counts as none.
_HALVINGS = 30

#: (x, margin) -> the nearest point whose ball of radius ``margin`` lies in the set; NotConverged if no point has one.
Inner = Callable[[Vector, float], Vector]


class Room(NamedTuple):
    """The ball around ``centre``, in the directions of ``basis`` (orthonormal columns, None for all directions)."""

    centre: Vector
    radius: float
    basis: Matrix | None = None

    @property
    def dimension(self) -> int:
        """Return how many directions there are."""
        return int(self.centre.size if self.basis is None else self.basis.shape[1])

    def along(self, direction: Vector) -> Vector:
        """Return a direction given in coordinates of the basis."""
        return direction if self.basis is None else self.basis @ direction

    def coordinates(self, vector: Vector) -> Vector:
        """Return the part of a vector along the basis, in its coordinates."""
        return vector if self.basis is None else self.basis.T @ vector


def room_near(domain: Domain, x: Vector, radius: float) -> Room:
    """Return a ball in the set that lies within ``radius`` of x; an error if the set has no interior that is known."""
    if isinstance(domain, Whole):
        return Room(x, radius)
    flat, ball = _flat_and_ball(domain, x.size)
    if flat is None and ball is None:
        return _room_by_membership(domain, x, radius)
    inner, basis = (_unmoved, None) if flat is None else _in_flat(flat)
    margin = radius
    for _ in range(_TRIES):
        try:
            centre = inner(x, margin) if ball is None else _in_ball(ball, inner, x, margin)
        except NotConverged:
            centre = None
        if centre is not None:
            away = float(np.linalg.norm(centre - x))
            if margin == radius and away <= 1e-12 * radius:
                return Room(x, radius, basis)
            if away + margin <= radius:
                return Room(centre, margin, basis)
        margin *= _SHRINK
    raise _no_room()


def has_room(domain: Domain, x: Vector, radius: float) -> bool:
    """Tell whether the set has room within ``radius`` of x, as far as is known."""
    try:
        room_near(domain, x, radius)
    except InvalidInput:
        return False
    return True


def _no_room() -> InvalidInput:
    return InvalidInput(
        "domain: the set has no interior near x, so that no difference can be taken inside it: expected room in every "
        "direction, or equations given as such (Polyhedron(C=..., d=...), Simplex); else use inside=False"
    )


def _flat_and_ball(domain: Domain, size: int) -> tuple[Linear | None, Ball | None]:
    """Return what the set consists of: linear constraints, a ball, or both; neither for any other set."""
    if isinstance(domain, Ball):
        return None, domain
    if isinstance(domain, Intersection):
        curved = [part for part in domain.sets if linear_form(part, size) is None]
        flat = [part for part in domain.sets if part not in curved]
        if len(curved) == 1 and isinstance(curved[0], Ball):
            return (Intersection(flat).linear(size) if flat else None), curved[0]
    return linear_form(domain, size), None


def _unmoved(x: Vector, margin: float) -> Vector:
    return x


def _in_flat(flat: Linear) -> tuple[Inner, Matrix | None]:
    """Return where balls fit between linear constraints, and the directions in which they do."""
    if flat.b.size or flat.d.size:
        facets = Facets(flat)
        return lambda x, margin: facets.project(x, margin=margin), facets.basis
    free = flat.lower < flat.upper

    def clipped(x: Vector, margin: float) -> Vector:
        lower, upper = flat.lower + margin * free, flat.upper - margin * free
        if (lower > upper).any():
            raise NotConverged("a box narrower than the ball")
        return np.minimum(np.maximum(x, lower), upper)

    return clipped, None if free.all() else np.eye(free.size)[:, free]


def _in_ball(ball: Ball, inner: Inner, x: Vector, margin: float) -> Vector | None:
    if margin >= ball.radius:
        return None
    smaller = Ball(ball.center, ball.radius - margin)
    centre = drawn_into(smaller, lambda z: inner(z, margin), x)
    return centre if smaller.contains(centre, 1e-9) else None


def _room_by_membership(domain: Domain, x: Vector, radius: float) -> Room:
    """Find room in a set known by projection and membership alone.

    The mean of points of the set is one; where it has room of size m along every axis, forwards and backwards, it has
    a ball of radius m / sqrt(d), by convexity.
    """
    reach = 0.5 * radius
    axes = np.eye(x.size)
    sides = np.concatenate([x + reach * axes, x - reach * axes])
    if all(domain.contains(side, 0.0) for side in sides):
        centre = x
    else:
        centre = np.mean([domain.project(side) for side in sides], axis=0)
    for _ in range(_HALVINGS):
        if all(domain.contains(centre + sign * reach * axis, 0.0) for axis in axes for sign in (1.0, -1.0)):
            return Room(centre, reach / float(np.sqrt(x.size)))
        reach *= 0.5
    raise _no_room()
