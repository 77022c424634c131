"""Linear constraints {x : lower <= x <= upper, A x <= b, C x = d}: what flat sets have in common, and its projection.

A set that is flat says so by ``linear(dimension)``; what it returns goes to solvers of linear and quadratic programs,
can be met with other linear constraints, and is projected onto exactly (:class:`Facets`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.problem.projections import HalfSpaces


class Linear(NamedTuple):
    """{x : lower <= x <= upper, A x <= b, C x = d}; open bounds are infinite, and each matrix may have no row."""

    lower: Vector
    upper: Vector
    A: Matrix
    b: Vector
    C: Matrix
    d: Vector

    def met(self, other: Linear) -> Linear:
        """Return the constraints of both."""
        return Linear(
            np.maximum(self.lower, other.lower),
            np.minimum(self.upper, other.upper),
            np.vstack([self.A, other.A]),
            np.concatenate([self.b, other.b]),
            np.vstack([self.C, other.C]),
            np.concatenate([self.d, other.d]),
        )

    def lowest(self, costs: Vector) -> Vector | None:
        """Return a point where costs . x is lowest; None if no point satisfies the constraints."""
        from scipy.optimize import linprog

        if (self.lower > self.upper).any():
            return None
        found = linprog(
            costs, self.A if self.b.size else None, self.b if self.b.size else None,
            self.C if self.d.size else None, self.d if self.d.size else None,
            bounds=list(zip(self.lower.tolist(), self.upper.tolist(), strict=True)),
        )  # fmt: skip
        return np.asarray(found.x) if found.status == 0 else None

    def point(self) -> Vector | None:
        """Return some point that satisfies the constraints; None if there is none."""
        return self.lowest(np.zeros(self.lower.size))


def bounded(dimension: int, lower: Vector | float = -np.inf, upper: Vector | float = np.inf) -> Linear:
    """Return bounds alone."""
    below, above = np.broadcast_to(lower, dimension), np.broadcast_to(upper, dimension)
    return Linear(below, above, np.zeros((0, dimension)), np.zeros(0), np.zeros((0, dimension)), np.zeros(0))


class Facets:
    """The projection onto linear constraints, prepared once: equations are solved, rows have length one.

    ``project`` may add bounds, those of a trust region say, without new preparations.
    """

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        width = linear.lower.size
        fixed = np.flatnonzero(linear.lower == linear.upper)
        equations = np.vstack([linear.C, np.eye(width)[fixed]]), np.concatenate([linear.d, linear.lower[fixed]])
        self.origin, self.basis = solution_space(*equations)
        rows = np.vstack([linear.A, np.eye(width), -np.eye(width)])
        normals = rows if self.basis is None else rows @ self.basis
        lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
        # A row along the equations' own normals holds everywhere or nowhere on their solutions.
        self.kept = lengths > 1e-12 * np.sqrt(np.einsum("ij,ij->i", rows, rows))
        self.lengths = np.where(self.kept, lengths, 1.0)
        self.normals: Matrix = normals / self.lengths[:, None]
        self.shift = rows @ self.origin

    def halfspaces(self, lower: Vector, upper: Vector, margin: float = 0.0) -> HalfSpaces:
        """Return the inequalities with these bounds, in the coordinates of ``basis``, each tighter by ``margin``."""
        offsets = np.concatenate([self.linear.b, upper, -lower]) - self.shift
        used = self.kept & np.isfinite(offsets)
        return HalfSpaces(self.normals[used], offsets[used] / self.lengths[used] - margin)

    def project(
        self, x: Vector, low: Vector | float = -np.inf, high: Vector | float = np.inf, margin: float = 0.0
    ) -> Vector:
        """Return the nearest point that satisfies the constraints and lies between ``low`` and ``high`` as well.

        With a ``margin``, one around which the ball of that radius does, in the directions of ``basis``.
        """
        lower, upper = np.maximum(self.linear.lower, low), np.minimum(self.linear.upper, high)
        spaces = self.halfspaces(lower, upper, margin)
        if self.basis is None:
            return np.minimum(np.maximum(spaces.project(x)[0], lower), upper)
        reduced, _ = spaces.project(self.basis.T @ (x - self.origin))
        return self.origin + self.basis @ reduced


def solution_space(sums: Matrix, totals: Vector) -> tuple[Vector, Matrix | None]:
    """Return a point of {C x = d} and an orthonormal basis of its directions, None for all directions."""
    width = sums.shape[1]
    if totals.size == 0:
        return np.zeros(width), None
    u, values, vt = np.linalg.svd(sums)
    rank = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    origin = vt[:rank].T @ ((u.T @ totals)[:rank] / values[:rank])
    return origin, np.ascontiguousarray(vt[rank:].T)
