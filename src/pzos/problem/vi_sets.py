"""Sets for followers that pzos.problem.sets does not have: polyhedra {A y <= b, C y = d} and products of sets.

Both are values with exact projections, like those of :mod:`pzos.problem.sets`, and serve as domains of a leader too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, check_entries, frozen_array
from pzos.base.types import Matrix, Vector
from pzos.problem._halfspaces import HalfSpaces
from pzos.problem.sets import Domain


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
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
    origin: Vector = field(repr=False)
    basis: Matrix = field(repr=False)
    halfspaces: HalfSpaces = field(repr=False)

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
        if not given:
            faults.add("no constraints given: expected A with b, or C with d; use pzos.Whole() for no constraint")
            faults.raise_if_any()
        width = given[0][0].shape[1]
        faults.check(given[-1][0].shape[1] == width, "C", C, f"{width} columns, as A has", "one per entry of y")
        faults.raise_if_any()
        nothing = (np.zeros((0, width)), np.zeros(0))
        (left, right), (sums, totals) = inequalities or nothing, equations or nothing
        _require_a_point(left, right, sums, totals)
        origin, basis = _solution_space(sums, totals)
        fields = {"A": left, "b": right, "C": sums, "d": totals, "origin": origin, "basis": basis}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "halfspaces", _reduced(left, right, origin, basis))

    def __repr__(self) -> str:
        return f"Polyhedron(dimension={self.dimension}, inequalities={self.b.size}, equations={self.d.size})"

    @property
    def dimension(self) -> int:
        """Return the length of y."""
        return int(self.A.shape[1])

    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the polyhedron (exact dual active-set method)."""
        if self.contains(x, 0.0):
            return x
        return self.project_from(x, ())[0]

    def project_from(self, x: Vector, working: tuple[int, ...]) -> tuple[Vector, tuple[int, ...]]:
        """Project with a guess of the active constraints; returns the point and the active ones."""
        reduced, working = self.halfspaces.project(self.basis.T @ (x - self.origin), working)
        return self.origin + self.basis @ reduced, working

    def tangent(self, working: tuple[int, ...]) -> Matrix:
        """Return the orthogonal projector onto the directions that keep ``working`` and C y = d."""
        if not working:
            return self.basis @ self.basis.T
        q, _ = self.halfspaces.factor(working)
        along = self.basis - self.basis @ q @ q.T
        return along @ self.basis.T

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


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Product:
    """The product of sets over consecutive blocks: ``Product([(Simplex(1.0), 3), (Box(0, 1), 2)])``."""

    parts: tuple[tuple[Domain, int], ...]

    def __init__(self, parts: Iterable[tuple[Domain, int]]) -> None:
        pairs = tuple(parts)
        faults = Faults("Product")
        faults.check(len(pairs) > 0, "parts", pairs, "at least one pair (set, size)", "give the blocks of y in order")
        for k, (part, size) in enumerate(pairs):
            whole = isinstance(size, int | np.integer) and size >= 1
            faults.check(whole, f"parts[{k}] size", size, "a whole number >= 1", "give the length of the block")
            is_set = isinstance(part, Domain)
            if faults.check(is_set, f"parts[{k}] set", part, "a set", "use pzos.problem.sets or Polyhedron") and whole:
                for message in part.faults(int(size)):
                    faults.add(f"parts[{k}]: {message}")
        faults.raise_if_any()
        object.__setattr__(self, "parts", tuple((part, int(size)) for part, size in pairs))

    @property
    def dimension(self) -> int:
        """Return the length of y."""
        return sum(size for _, size in self.parts)

    def blocks(self) -> list[tuple[Domain, slice]]:
        """Return each set with the entries it is about."""
        ends = np.cumsum([size for _, size in self.parts])
        return [(part, slice(int(end) - size, int(end))) for (part, size), end in zip(self.parts, ends, strict=True)]

    def project(self, x: Vector) -> Vector:
        """Project block by block."""
        return np.concatenate([part.project(x[block]) for part, block in self.blocks()])

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether every block lies in its set."""
        return all(part.contains(x[block], tolerance) for part, block in self.blocks())

    def faults(self, dimension: int) -> list[str]:
        """Return a fault if the blocks do not add up to the dimension."""
        if self.dimension == dimension:
            return []
        return [f"domain: Product has {self.dimension} entries in all: expected {dimension}"]


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


def _require_a_point(left: Matrix, right: Vector, sums: Matrix, totals: Vector) -> None:
    from scipy.optimize import linprog

    outcome = linprog(
        np.zeros(left.shape[1]), left if right.size else None, right if right.size else None,
        sums if totals.size else None, totals if totals.size else None, bounds=(None, None),
    )  # fmt: skip
    faults = Faults("Polyhedron")
    faults.check(
        outcome.status == 0, "A, b, C, d", outcome.message, "a polyhedron with at least one point",
        "loosen the constraints that contradict each other",
    )  # fmt: skip
    faults.raise_if_any()


def _solution_space(sums: Matrix, totals: Vector) -> tuple[Vector, Matrix]:
    """Return a point of {C y = d} and an orthonormal basis of its directions."""
    width = sums.shape[1]
    if totals.size == 0:
        return np.zeros(width), np.eye(width)
    u, values, vt = np.linalg.svd(sums)
    rank = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    origin = vt[:rank].T @ ((u.T @ totals)[:rank] / values[:rank])
    return origin, np.ascontiguousarray(vt[rank:].T)


def _reduced(left: Matrix, right: Vector, origin: Vector, basis: Matrix) -> HalfSpaces:
    """Write A y <= b in the coordinates of ``basis`` with rows of length one; rows without effect are left out."""
    normals = left @ basis
    lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    sizes = np.sqrt(np.einsum("ij,ij->i", left, left))
    kept = lengths > 1e-12 * sizes
    scaled = normals[kept] / lengths[kept, None]
    return HalfSpaces(scaled, (right - left @ origin)[kept] / lengths[kept])
