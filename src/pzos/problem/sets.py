"""Closed convex sets for the leader's decision and the followers' answers: exact projection and membership.

The paper projects after each step (Sec. 5.2 and App. A). Every set is a frozen value; ``project`` never writes
into its argument, and returns it unchanged where it already lies in the set. ``derivative`` is an element of the
generalised derivative of the projection, on the piece that x lies in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pzos.base.checks import (
    Faults,
    Must,
    check_entries,
    check_fields,
    checked,
    frozen_array,
    frozen_bounds,
    frozen_numbers,
    positive,
    require,
    set_fields,
    whole,
)
from pzos.base.types import Matrix, Vector, dot
from pzos.problem.projections import (
    HalfSpaces,
    OneConstraint,
    PolyhedronProjector,
    ProductProjector,
    moving,
    moving_with_sum,
    onto_sum,
)


@runtime_checkable
class Domain(Protocol):
    """What the solvers need of a set; any object with these three methods will do."""

    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the set."""

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x lies in the set, up to ``tolerance`` relative to the size of the data."""

    def faults(self, dimension: int) -> list[str]:
        """Return what makes the set unusable in this dimension (empty if nothing does)."""


def a_set(remedy: str) -> Must:
    """A set: an object (not a class) with the methods of :class:`Domain`."""
    return Must(
        lambda value: isinstance(value, Domain) and not isinstance(value, type),
        "a set with project, contains and faults",
        remedy,
    )


class _OfAnyDimension:
    """What sets have in common that are the same in every dimension."""

    __slots__ = ()

    def faults(self, dimension: int) -> list[str]:
        """Return nothing: the set fits every dimension."""
        return []


@dataclass(frozen=True, slots=True)
class Whole(_OfAnyDimension):
    """The whole space R^n: no constraint."""

    def project(self, x: Vector) -> Vector:
        """Return x."""
        return x

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Return the identity."""
        return np.eye(x.size)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Return True."""
        return True


@dataclass(frozen=True, slots=True)
class Nonnegative(_OfAnyDimension):
    """The orthant {x >= 0}."""

    def project(self, x: Vector) -> Vector:
        """Return max(x, 0)."""
        return np.maximum(x, 0.0)

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Let positive entries move."""
        return moving(x > 0.0)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether no entry is below zero."""
        return bool(x.min(initial=0.0) >= -tolerance)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The box {lower <= x <= upper}; each bound is a number or one number per entry, infinite if open."""

    lower: Vector
    upper: Vector

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        below, above = frozen_bounds("Box", lower, upper)
        set_fields(self, lower=below, upper=above)

    def project(self, x: Vector) -> Vector:
        """Return x with every entry moved to its nearest bound if outside."""
        projected: Vector = np.minimum(np.maximum(x, self.lower), self.upper)
        return projected

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Let entries strictly between their bounds move."""
        return moving((x > self.lower) & (x < self.upper))

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether every entry lies between its bounds."""
        slack = tolerance * np.maximum(1.0, np.abs(x))
        return bool(np.all(x >= self.lower - slack) and np.all(x <= self.upper + slack))

    def faults(self, dimension: int) -> list[str]:
        """Return a fault for each bound whose length is not the dimension."""
        return _length_faults("Box.lower", self.lower, dimension) + _length_faults("Box.upper", self.upper, dimension)


@dataclass(frozen=True, slots=True)
class _Shares(_OfAnyDimension):
    """What simplex and budget have in common: entries >= 0 whose sum is held by ``total``."""

    total: float = checked(positive("try total=1.0"), default=1.0)
    _equation: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)
        set_fields(self, total=float(self.total))

    def one_constraint(self, x: Vector, centre: Vector, radius: float) -> OneConstraint:
        """Return the sum as the one constraint besides bounds; its multiplier shifts all entries alike."""
        low, high = np.maximum(centre - radius, 0.0), centre + radius
        reach = float(np.abs(x - centre).max()) + radius

        def shifted(multiplier: float) -> Vector:
            return np.minimum(np.maximum(x - multiplier, low), high)

        def excess(z: Vector) -> float:
            return float(z.sum()) - self.total

        return OneConstraint(shifted, excess, -reach, reach, self._equation)

    def _slack(self, x: Vector, tolerance: float) -> float:
        return tolerance * max(1.0, self.total) * max(1.0, float(float(x.size) ** 0.5))


@dataclass(frozen=True, slots=True)
class Simplex(_Shares):
    """The scaled simplex {x >= 0, sum x = total}."""

    _equation: ClassVar[bool] = True

    def project(self, x: Vector) -> Vector:
        """Return the nearest point whose nonnegative entries add up to ``total``."""
        return onto_sum(x, self.total)

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Let positive entries move and keep their sum."""
        return moving_with_sum(projected > 0.0)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is nonnegative and adds up to ``total``."""
        return bool(x.min() >= -tolerance) and abs(float(x.sum()) - self.total) <= self._slack(x, tolerance)


@dataclass(frozen=True, slots=True)
class Budget(_Shares):
    """The budget set {x >= 0, sum x <= total}."""

    def project(self, x: Vector) -> Vector:
        """Return max(x, 0) where that is within budget, else the projection onto the simplex."""
        nonnegative = np.maximum(x, 0.0)
        return nonnegative if float(nonnegative.sum()) <= self.total else onto_sum(x, self.total)

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Let positive entries move, and keep their sum where the budget binds."""
        if float(np.maximum(x, 0.0).sum()) <= self.total:
            return moving(x > 0.0)
        return moving_with_sum(projected > 0.0)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is nonnegative and within budget."""
        return bool(x.min() >= -tolerance) and float(x.sum()) <= self.total + self._slack(x, tolerance)


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """The Euclidean ball {|x - center| <= radius}; ``center`` is a number or one number per entry."""

    center: Vector
    radius: float

    def __init__(self, center: npt.ArrayLike = 0.0, radius: float = 1.0) -> None:
        faults = Faults("Ball")
        middle = frozen_numbers(faults, "center", center)
        faults.check(bool(np.isfinite(middle).all()), "center", center, "finite numbers", "try center=0.0")
        positive("try radius=1.0").note(faults, "radius", radius)
        faults.raise_if_any()
        set_fields(self, center=middle, radius=float(radius))

    def project(self, x: Vector) -> Vector:
        """Return x, pulled straight towards the center if it lies outside."""
        offset = x - self.center
        distance = dot(offset, offset) ** 0.5
        if distance <= self.radius:
            return x
        pulled: Vector = self.center + offset * (self.radius / distance)
        return pulled

    def derivative(self, x: Vector, projected: Vector) -> Matrix:
        """Let x move freely inside; outside shrink what moves along the surface, and keep the distance."""
        offset = x - self.center
        distance = sqrt(dot(offset, offset))
        identity = np.eye(x.size)
        if distance <= self.radius:
            return identity
        normal = offset / distance
        along: Matrix = (self.radius / distance) * (identity - np.outer(normal, normal))
        return along

    def one_constraint(self, x: Vector, centre: Vector, radius: float) -> OneConstraint:
        """Return the distance as the one constraint besides bounds; its multiplier draws x towards the center."""
        low, high = centre - radius, centre + radius

        def drawn(share: float) -> Vector:
            return np.minimum(np.maximum((1.0 - share) * x + share * self.center, low), high)

        def excess(z: Vector) -> float:
            return float(np.linalg.norm(z - self.center)) - self.radius

        return OneConstraint(drawn, excess, 0.0, 1.0)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is within ``radius`` of the center."""
        offset = x - self.center
        return bool(dot(offset, offset) ** 0.5 <= self.radius * (1.0 + tolerance))

    def faults(self, dimension: int) -> list[str]:
        """Return a fault if the center has another length than x0."""
        return _length_faults("Ball.center", self.center, dimension)


def _length_faults(what: str, numbers: Vector, dimension: int) -> list[str]:
    if numbers.ndim == 0 or numbers.size == dimension:
        return []
    return [f"domain: {what} has {numbers.size} entries: expected {dimension}; give one number per entry of x0"]


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
    origin: Vector
    basis: Matrix
    halfspaces: HalfSpaces

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
        _require_a_point(left, right, sums, totals)
        origin, basis = _solution_space(sums, totals)
        halfspaces = _reduced(left, right, origin, basis)
        set_fields(self, A=left, b=right, C=sums, d=totals, origin=origin, basis=basis, halfspaces=halfspaces)

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

    def projector(self) -> PolyhedronProjector:
        """Return a projector that starts each projection where the last one ended."""
        return PolyhedronProjector(self)

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
            is_size = whole(1, "give the length of the block").note(faults, f"parts[{k}] size", size)
            is_set = a_set("use a set of pzos or Polyhedron").note(faults, f"parts[{k}] set", part)
            if is_size and is_set:
                faults.messages += [f"parts[{k}]: {message}" for message in part.faults(int(size))]
        faults.raise_if_any()
        set_fields(self, parts=tuple((part, int(size)) for part, size in pairs))

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

    def projector(self) -> ProductProjector:
        """Return a projector made of those of the blocks."""
        return ProductProjector(self)

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
    require(outcome.status == 0, "Polyhedron", "A, b, C, d", outcome.message, "a polyhedron with at least one point",
            "loosen the constraints that contradict each other")  # fmt: skip


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
