"""The points that several sets have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pzos.base.checks import Faults, set_fields
from pzos.base.types import Vector
from pzos.problem.linear import Facets, Linear
from pzos.problem.sets import Ball, Domain, a_set, linear_form

Projection = Callable[[Vector], Vector]

#: Dykstra's method ends when a round changes nothing by more than this, relative to the size of x, or after so many.
_STILL, _ROUNDS = 1e-12, 5000
#: So many shares of the way to a ball are tried at most: where projections round, more of them tell no more.
_SHARES = 200
#: Sets have no point in common if the nearest ones found are further apart than this, relative to the size of x.
_APART = 1e-7


@dataclass(frozen=True, eq=False, init=False)
class Intersection:
    """The points of all ``sets``: ``Intersection([Box(0, 1), Polyhedron(A, b)])``; must not be empty.

    Flat sets (boxes, budgets, simplices, polyhedra) are projected onto together, exactly, and so is a ball among them.
    With more balls, or a set of the user's own, Dykstra's method alternates between the sets until nothing moves by
    more than 1e-12 of the size of x, or 5000 times; it is slow where sets meet at a flat angle.

    >>> import pzos
    >>> half = Intersection([pzos.Box(0.0, 1.0), pzos.Polyhedron(A=[[1.0, 1.0]], b=[1.0])])
    >>> half.project(np.array([2.0, 1.0])).round(12)
    array([1., 0.])
    """

    sets: tuple[Domain, ...]

    def __init__(self, sets: Iterable[Domain]) -> None:
        parts = tuple(sets) if isinstance(sets, Iterable) else (sets,)
        faults = Faults("Intersection")
        faults.check(len(parts) > 0, "sets", parts, "at least one set", "use pzos.Whole() for no constraint")
        for k, part in enumerate(parts):
            a_set("use e.g. pzos.Box(0, 1) or pzos.Polyhedron(A, b)").note(faults, f"sets[{k}]", part)
        faults.raise_if_any()
        set_fields(self, sets=parts)

    @cached_property
    def _prepared(self) -> dict[int, Facets | None]:
        """Hold what was prepared for a dimension: sets fit several. It is no field: the sets alone say what it is."""
        return {}

    def linear(self, dimension: int) -> Linear | None:
        """Return the constraints of all sets; None if one of them is not flat."""
        flat = [linear_form(part, dimension) for part in self.sets]
        return None if None in flat else _met([one for one in flat if one is not None])

    def _facets(self, dimension: int) -> Facets | None:
        """Return the projection onto the flat sets, None if there are none."""
        if dimension not in self._prepared:
            flat = [own for part in self.sets if (own := linear_form(part, dimension)) is not None]
            self._prepared[dimension] = Facets(_met(flat)) if flat else None
        return self._prepared[dimension]

    def project(self, x: Vector) -> Vector:
        """Return the nearest point of all sets."""
        if self.contains(x, 0.0):
            return x
        return self.project_within(x, np.full(x.size, -np.inf), np.full(x.size, np.inf))

    def project_within(self, x: Vector, low: Vector, high: Vector) -> Vector:
        """Return the nearest point of all sets between two bounds; there must be one."""
        facets = self._facets(x.size)
        curved = [part for part in self.sets if linear_form(part, x.size) is None]

        def between(z: Vector) -> Vector:
            return np.minimum(np.maximum(z, low), high) if facets is None else facets.project(z, low, high)

        if not curved:
            return between(x)
        if len(curved) == 1 and isinstance(curved[0], Ball):
            return drawn_into(curved[0], between, x)
        return _common([between, *(part.project for part in curved)], x)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x lies in every set."""
        return all(part.contains(x, tolerance) for part in self.sets)

    def faults(self, dimension: int) -> list[str]:
        """Return the faults of the sets, or that they have no point in common."""
        found = [fault for part in self.sets for fault in part.faults(dimension)]
        if not found and self._is_empty(dimension):
            found.append("domain: Intersection is empty: expected sets with a point in common; loosen one of them")
        return found

    def _is_empty(self, dimension: int) -> bool:
        facets = self._facets(dimension)
        start = np.zeros(dimension) if facets is None else facets.linear.point()
        return start is None or not self.contains(self.project(start), _APART)


def _met(flat: Sequence[Linear]) -> Linear:
    both = flat[0]
    for one in flat[1:]:
        both = both.met(one)
    return both


def drawn_into(ball: Ball, project: Projection, x: Vector) -> Vector:
    """Project onto a ball and another set: its projection of x, drawn towards the center c as far as need be.

    With the multiplier l of |z - c| <= r, z is the projection of c + (x - c)/(1 + l): the share 1/(1 + l) is kept.
    """
    from scipy.optimize import brentq

    away = x - ball.center

    def drawn(share: float) -> Vector:
        return project(ball.center + share * away)

    def excess(share: float) -> float:
        return float(np.linalg.norm(drawn(share) - ball.center)) - ball.radius

    if excess(1.0) <= 0.0:
        return drawn(1.0)
    if excess(0.0) >= 0.0:
        return drawn(0.0)
    accuracy = 1e-16 * min(1.0, ball.radius / float(np.linalg.norm(away)))
    above = 1.0
    while excess(0.1 * above) > 0.0:  # from far away the share is tiny: its order of magnitude first
        above *= 0.1
    share = brentq(excess, 0.1 * above, above, xtol=accuracy, rtol=1e-15, maxiter=_SHARES, disp=False)
    return drawn(float(share))


def _common(projections: Sequence[Projection], x: Vector) -> Vector:
    """Dykstra's method: project in turns, each time taking back what the same set moved before."""
    corrections = [np.zeros_like(x) for _ in projections]
    z, still = x, _STILL * max(1.0, float(np.abs(x).max()))
    for _ in range(_ROUNDS):
        changed = 0.0
        for k, project in enumerate(projections):
            target = z + corrections[k]
            z = project(target)
            changed = max(changed, float(np.abs(target - z - corrections[k]).max()))
            corrections[k] = target - z
        if changed <= still:
            break
    return z
