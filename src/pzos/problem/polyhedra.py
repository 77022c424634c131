"""The polyhedron {y : A y <= b, C y = d}, of the leader's decisions or of the followers' answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, check_entries, frozen_array, require, set_fields
from pzos.base.types import Matrix, Vector
from pzos.problem.linear import Facets, Linear, bounded
from pzos.problem.projections import HalfSpaces, PolyhedronProjector


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Polyhedron:
    """The polyhedron {y : A y <= b, C y = d}; must not be empty (checked by a linear program).

    >>> triangle = Polyhedron(A=[[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], b=[0.0, 0.0, 1.0])
    >>> triangle.project(np.array([2.0, 1.0])).round(12)
    array([1., 0.])
    """

    A: Matrix
    b: Vector
    C: Matrix
    d: Vector

    def __init__(
        self,
        A: npt.ArrayLike | None = None,
        b: npt.ArrayLike | None = None,
        C: npt.ArrayLike | None = None,
        d: npt.ArrayLike | None = None,
    ) -> None:
        faults = Faults("Polyhedron")
        inequalities = _constraints(faults, ("A", A), ("b", b))
        equations = _constraints(faults, ("C", C), ("d", d))
        given = [pair for pair in (inequalities, equations) if pair is not None]
        if not given and not faults.messages:
            faults.add("no constraints given: expected A with b, or C with d; use pzos.Whole() for no constraint")
        if not given:
            raise faults.error()
        width = given[0][0].shape[1]
        faults.check(given[-1][0].shape[1] == width, "C", C, f"{width} columns, as A has", "one per entry of y")
        faults.raise_if_any()
        nothing = (np.zeros((0, width)), np.zeros(0))
        (left, right), (sums, totals) = inequalities or nothing, equations or nothing
        set_fields(self, A=left, b=right, C=sums, d=totals)
        filled = self.linear(width).point() is not None
        require(filled, "Polyhedron", "A, b, C, d", "no point", "a polyhedron with at least one point",
                "loosen the constraints that contradict each other")  # fmt: skip

    def __repr__(self) -> str:
        return f"Polyhedron(dimension={self.dimension}, inequalities={self.b.size}, equations={self.d.size})"

    @property
    def dimension(self) -> int:
        """Return the length of y."""
        return int(self.A.shape[1])

    # Prepared once and kept beside the fields, which alone say which polyhedron it is.

    @cached_property
    def facets(self) -> Facets:
        """Return the projection onto the constraints, prepared."""
        return Facets(self.linear(self.dimension))

    @cached_property
    def halfspaces(self) -> HalfSpaces:
        """Return A y <= b in the coordinates of the equations' solutions."""
        open_sides = np.full(self.dimension, np.inf)
        return self.facets.halfspaces(-open_sides, open_sides)

    def linear(self, dimension: int) -> Linear:
        """Return the constraints."""
        free = bounded(dimension)
        return free._replace(A=self.A, b=self.b, C=self.C, d=self.d)

    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the polyhedron (exact)."""
        if self.contains(x, 0.0):
            return x
        return self.project_from(x, ())[0]

    def project_from(self, x: Vector, working: tuple[int, ...]) -> tuple[Vector, tuple[int, ...]]:
        """Project with a guess of the active constraints; returns the point and the active ones."""
        origin, basis = self.facets.origin, self.facets.basis
        if basis is None:
            return self.halfspaces.project(x, working)
        reduced, working = self.halfspaces.project(basis.T @ (x - origin), working)
        return origin + basis @ reduced, working

    def project_within(self, x: Vector, low: Vector, high: Vector) -> Vector:
        """Return the nearest point of the polyhedron between two bounds; there must be one."""
        return self.facets.project(x, low, high)

    def projector(self) -> PolyhedronProjector:
        """Return a projector that starts each projection where the last one ended."""
        return PolyhedronProjector(self)

    def tangent(self, working: tuple[int, ...]) -> Matrix:
        """Return the orthogonal projector onto the directions that keep ``working`` and C y = d."""
        basis = np.eye(self.dimension) if self.facets.basis is None else self.facets.basis
        if not working:
            return basis @ basis.T
        q, _ = self.halfspaces.factor(working)
        along = basis - basis @ q @ q.T
        return along @ basis.T

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x satisfies every constraint, up to ``tolerance`` relative to the size of the data."""
        size = max(1.0, float(np.abs(x).max(initial=0.0)))
        below = self.A @ x - self.b <= tolerance * (size * np.abs(self.A).sum(axis=1) + np.abs(self.b))
        equal = np.abs(self.C @ x - self.d) <= tolerance * (size * np.abs(self.C).sum(axis=1) + np.abs(self.d))
        return bool(below.all() and equal.all())

    def faults(self, dimension: int) -> list[str]:
        """Return a fault if the matrices have another number of columns."""
        if self.dimension == dimension:
            return []
        return [f"domain: Polyhedron has {self.dimension} columns: expected {dimension}, one per entry"]


def _constraints(
    faults: Faults, matrix: tuple[str, npt.ArrayLike | None], side: tuple[str, npt.ArrayLike | None]
) -> tuple[Matrix, Vector] | None:
    """Check one pair (A, b) or (C, d); None if neither is given or if a fault was noted."""
    (name, rows), (side_name, bounds) = matrix, side
    if rows is None and bounds is None:
        return None
    if rows is None or bounds is None:
        missing = name if rows is None else side_name
        faults.add(f"{missing} is missing: expected {name} and {side_name} together; give both or neither")
        return None
    left, right = frozen_array(faults, name, rows), frozen_array(faults, side_name, bounds)
    if left is None or right is None:
        return None
    good = faults.check(left.ndim == 2 and left.size > 0, name, left, "a matrix", "one row per constraint")
    if good and faults.check(
        right.shape == (left.shape[0],), side_name, right, f"{left.shape[0]} entries, one per row", "match them"
    ):
        check_entries(faults, name, left, np.isfinite(left), "a finite number")
        check_entries(faults, side_name, right, np.isfinite(right), "a finite number")
        return left, right
    return None
