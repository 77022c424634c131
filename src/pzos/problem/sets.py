"""Closed convex sets for the leader's decision and the followers' answers: exact projection and membership.

The paper projects after each step (Sec. 5.2 and App. A). Every set is a frozen value; ``project`` never writes
into its argument, and returns it unchanged where it already lies in the set. ``derivative`` is an element of the
generalised derivative of the projection, on the piece that x lies in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pzos.base.checks import (
    Faults,
    Must,
    check_fields,
    checked,
    frozen_bounds,
    frozen_numbers,
    positive,
    set_fields,
    whole,
)
from pzos.base.types import Matrix, Vector, dot
from pzos.problem.linear import Linear, bounded
from pzos.problem.projections import OneConstraint, ProductProjector, moving, moving_with_sum, onto_sum


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


def linear_form(domain: Domain, dimension: int) -> Linear | None:
    """Return the linear constraints a set consists of; None for one that is not flat, or does not say so."""
    own: Linear | None = domain.linear(dimension) if hasattr(domain, "linear") else None
    return own


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

    def linear(self, dimension: int) -> Linear:
        """Return no constraint."""
        return bounded(dimension)

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

    def linear(self, dimension: int) -> Linear:
        """Return the bounds."""
        return bounded(dimension, 0.0)

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

    def linear(self, dimension: int) -> Linear:
        """Return the bounds."""
        return bounded(dimension, self.lower, self.upper)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether every entry lies between its bounds."""
        slack = tolerance * np.maximum(1.0, np.abs(x))
        return bool(np.all(x >= self.lower - slack) and np.all(x <= self.upper + slack))

    def faults(self, dimension: int) -> list[str]:
        """Return a fault for each bound whose length is not the dimension."""
        return _length_faults("Box.lower", self.lower, dimension) + _length_faults("Box.upper", self.upper, dimension)


def box_of(faults: Faults, bounds: Any) -> Box | None:
    """Return the box between pairs (lower, upper), one per entry or one for all, None where a side is open.

    Or note what is no such thing. SciPy's ``Bounds`` will do too.

    >>> box_of(Faults("minimize"), [(0, 8), (None, 1)]).upper
    array([8., 1.])
    """
    try:
        if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
            lower, upper = bounds.lb, bounds.ub
        else:
            pairs = [bounds] if np.ndim(bounds[0]) == 0 else bounds
            lower, upper = (
                [infinite if pair[side] is None else float(pair[side]) for pair in pairs]
                for side, infinite in ((0, -np.inf), (1, np.inf))
            )
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError
            if pairs is not bounds:
                lower, upper = lower[0], upper[0]
    except (TypeError, ValueError, IndexError, KeyError):
        faults.check(False, "bounds", bounds, "pairs (lower, upper)", "try bounds=[(0, 8), (0, None)]")
        return None
    return faults.made(Box, lower, upper)


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

    def linear(self, dimension: int) -> Linear:
        """Return the bounds and the sum."""
        sums, total = np.ones((1, dimension)), np.array([self.total])
        nonnegative = bounded(dimension, 0.0)
        return nonnegative._replace(C=sums, d=total) if self._equation else nonnegative._replace(A=sums, b=total)

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

    def linear(self, dimension: int) -> Linear | None:
        """Return the constraints of all blocks; None if one of them is not flat."""
        whole = bounded(dimension)
        for part, block in self.blocks():
            own = linear_form(part, block.stop - block.start)
            if own is None:
                return None
            padded = [np.zeros((rows.shape[0], dimension)) for rows in (own.A, own.C)]
            padded[0][:, block], padded[1][:, block] = own.A, own.C
            lower, upper = np.full(dimension, -np.inf), np.full(dimension, np.inf)
            lower[block], upper[block] = own.lower, own.upper
            whole = whole.met(Linear(lower, upper, padded[0], own.b, padded[1], own.d))
        return whole

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
