"""Projections with what Newton needs of them: an element of the generalised derivative of P at u.

A projector belongs to one solve. For polyhedra it starts each projection from the last active set, which
makes a sequence of near projections cheap; a solve always starts from a fresh projector, so its answer does
not depend on earlier ones.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from pzos.base.types import Matrix, Vector, dot
from pzos.problem.sets import Ball, Box, Budget, Domain, Nonnegative, Simplex, Whole
from pzos.problem.vi_sets import Polyhedron, Product


class Projector(Protocol):
    """Projects, and differentiates the last projection."""

    def project(self, u: Vector) -> Vector:
        """Return P(u)."""
        ...

    def derivative(self, u: Vector, projected: Vector) -> Matrix | None:
        """Return an element of the generalised derivative of P at u, given P(u); None if unknown."""
        ...


class SetProjector:
    """A set with a closed-form projection; sets of the user's own have no derivative."""

    def __init__(self, feasible: Domain) -> None:
        self.feasible = feasible

    def project(self, u: Vector) -> Vector:
        """Return P(u)."""
        return self.feasible.project(u)

    def derivative(self, u: Vector, projected: Vector) -> Matrix | None:
        """Return the derivative on the piece that u lies in."""
        feasible = self.feasible
        if isinstance(feasible, Whole):
            return np.eye(u.size)
        if isinstance(feasible, Nonnegative):
            return np.diag((u > 0.0).astype(np.float64))
        if isinstance(feasible, Box):
            return np.diag(((u > feasible.lower) & (u < feasible.upper)).astype(np.float64))
        if isinstance(feasible, Budget) and float(np.maximum(u, 0.0).sum()) <= feasible.total:
            return np.diag((u > 0.0).astype(np.float64))
        if isinstance(feasible, Budget | Simplex):
            return _sum_preserving(projected > 0.0)
        if isinstance(feasible, Ball):
            return _towards_center(u - feasible.center, feasible.radius)
        return None


def _sum_preserving(used: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Matrix:
    """Return diag(m) - m m' / sum(m): entries in use move, their sum does not."""
    mask = used.astype(np.float64)
    derivative: Matrix = np.diag(mask) - np.outer(mask, mask) / mask.sum()
    return derivative


def _towards_center(offset: Vector, radius: float) -> Matrix:
    """Return the derivative of the projection onto a ball at ``offset`` from its center."""
    distance = math.sqrt(dot(offset, offset))
    identity = np.eye(offset.size)
    if distance <= radius:
        return identity
    normal = offset / distance
    derivative: Matrix = (radius / distance) * (identity - np.outer(normal, normal))
    return derivative


class PolyhedronProjector:
    """A polyhedron whose active set is carried from one projection to the next."""

    def __init__(self, feasible: Polyhedron) -> None:
        self.feasible = feasible
        self.working: tuple[int, ...] = ()

    def project(self, u: Vector) -> Vector:
        """Return P(u), starting from the last active set."""
        projected, self.working = self.feasible.project_from(u, self.working)
        return projected

    def derivative(self, u: Vector, projected: Vector) -> Matrix | None:
        """Return the projector onto the directions within the active face."""
        self.project(u)
        return self.feasible.tangent(self.working)


class ProductProjector:
    """Block by block."""

    def __init__(self, feasible: Product) -> None:
        self.blocks = [(projector_for(part), block) for part, block in feasible.blocks()]

    def project(self, u: Vector) -> Vector:
        """Return P(u)."""
        return np.concatenate([part.project(u[block]) for part, block in self.blocks])

    def derivative(self, u: Vector, projected: Vector) -> Matrix | None:
        """Return the block-diagonal derivative, if every block has one."""
        whole = np.zeros((u.size, u.size))
        for part, block in self.blocks:
            piece = part.derivative(u[block], projected[block])
            if piece is None:
                return None
            whole[block, block] = piece
        return whole


def projector_for(feasible: Domain) -> Projector:
    """Return a fresh projector for any set."""
    if isinstance(feasible, Polyhedron):
        return PolyhedronProjector(feasible)
    if isinstance(feasible, Product):
        return ProductProjector(feasible)
    return SetProjector(feasible)
