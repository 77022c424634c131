"""Grids of decisions: every entry of x a multiple of its step (0.25, whole numbers), or free where the step is 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pzos.base.checks import Faults, frozen_array, shown
from pzos.base.errors import NotConverged
from pzos.base.types import Vector
from pzos.problem.intersections import Intersection
from pzos.problem.sets import Box, Domain, linear_form

#: How far outside the set a point of the grid may lie, relatively: by rounding.
_ROUNDING = 1e-9
#: Moves by which a rounded point is brought back into the set, and decisions up to which two entries move at once.
_REPAIRS, _FEW = 50, 40


def whole() -> float:
    """Return the grid of whole numbers, for ``Problem(..., grid=pzos.whole())``.

    >>> whole()
    1.0
    """
    return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The points whose every entry is a multiple of its step; entries with step 0 are free."""

    steps: Vector

    @property
    def full(self) -> bool:
        """Tell whether no entry is free."""
        return bool((self.steps > 0.0).all())

    def rounded(self, x: Vector, lower: Vector | float = -np.inf, upper: Vector | float = np.inf) -> Vector:
        """Return the nearest point of the grid between two bounds."""
        held = self.steps > 0.0
        unit = np.where(held, self.steps, 1.0)
        least, most = np.ceil(lower / unit - _ROUNDING), np.floor(upper / unit + _ROUNDING)
        counts = np.minimum(np.maximum(np.round(x / unit), least), most)
        return np.where(held, counts * unit, np.minimum(np.maximum(x, lower), upper))

    def nearest(self, x: Vector, domain: Domain) -> Vector | None:
        """Return a point of the grid in the set, the nearest one to x or not far from it; None if none is found.

        A rounded point outside the set is brought back by single steps, and where those do not help, by steps of two
        entries at once, which keep a sum.
        """
        linear = linear_form(domain, x.size)
        bounds = (-np.inf, np.inf) if linear is None else (linear.lower, linear.upper)
        point = self.rounded(x, *bounds)
        outside = self._outside(point, domain)
        for _ in range(_REPAIRS):
            if outside == 0.0:
                return self._settled(point, x, domain)
            moves = [*self._moves(point, bounds)]
            if x.size <= _FEW:
                moves += [self.rounded(other, *bounds) for one in moves for other in self._moves(one, bounds)]
            ranked = [(self._outside(move, domain), float(np.abs(move - x).sum()), k) for k, move in enumerate(moves)]
            if not ranked or min(ranked)[0] >= outside:
                return None
            outside, _, best = min(ranked)
            point = moves[best]
        return None

    def neighbours(self, x: Vector, domain: Domain) -> Iterator[Vector]:
        """Yield the points of the set one step from x in one entry; where x is on no grid, from the nearest that is.

        Where every single step leaves the set, as it does where the sum is fixed, one entry steps up and another down.
        """
        base = self.nearest(x, domain)
        if base is None:
            return
        if (base != x).any():
            yield base
        moves = [*self._moves(base, (-np.inf, np.inf))]
        inside = [move for move in moves if domain.contains(move, _ROUNDING)]
        if not inside and x.size <= _FEW:
            pairs = {pair.tobytes(): pair for one in moves for pair in self._moves(one, (-np.inf, np.inf))}
            inside = [pair for pair in pairs.values() if (pair != base).any() and domain.contains(pair, _ROUNDING)]
        yield from inside

    def _moves(self, x: Vector, bounds: tuple[Vector | float, Vector | float]) -> Iterator[Vector]:
        for entry in np.flatnonzero(self.steps):
            for sign in (1.0, -1.0):
                moved = x.copy()
                moved[entry] = self.steps[entry] * (np.round(x[entry] / self.steps[entry]) + sign)
                if not (moved == self.rounded(moved, *bounds)).all():
                    continue
                yield moved

    def _outside(self, point: Vector, domain: Domain) -> float:
        """Return how far a point is outside the set, whose free entries may still be chosen."""
        if domain.contains(point, _ROUNDING):
            return 0.0
        inside = self._settled(point, point, domain)
        if inside is not None:
            return 0.0
        return float(np.linalg.norm(point - domain.project(point)))

    def _settled(self, point: Vector, x: Vector, domain: Domain) -> Vector | None:
        """Return the point of the set nearest to x with the entries on the grid as they are in ``point``."""
        if domain.contains(point, _ROUNDING):
            return point
        if self.full:
            return None
        held = self.steps > 0.0
        fixed = Box(np.where(held, point, -np.inf), np.where(held, point, np.inf))
        try:
            found = Intersection([domain, fixed]).project(x)
        except NotConverged:
            return None
        settled: Vector = np.where(held, point, found)
        return settled if domain.contains(settled, _ROUNDING) else None


def checked_grid(faults: Faults, grid: Any, start: Vector | None, domain: Any) -> Grid | None:
    """Return the grid a problem names (None for none), or note what is wrong with it."""
    if grid is None:
        return None
    steps = frozen_array(faults, "grid", grid)
    if steps is None or start is None:
        return None
    size = start.size
    fits = steps.ndim == 0 or steps.shape == (size,)
    good = faults.check(fits, "grid", grid, f"one step, or {size}, one per entry of x0", "use 0 where x is continuous")
    finite = bool(np.isfinite(steps).all()) and bool((steps >= 0.0).all())
    if not (faults.check(finite, "grid", grid, "steps of zero or more", "try 0.25, or pzos.whole()") and good):
        return None
    if not steps.any() or faults.messages:
        return None
    found = Grid(np.broadcast_to(steps, size))
    if found.nearest(start, domain) is None:
        faults.check(False, "grid", grid, f"a grid with a point in the domain {shown(domain)} near x0",
                     "take a finer grid, or start elsewhere")  # fmt: skip
    return found
