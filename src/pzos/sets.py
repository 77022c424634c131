"""Closed convex sets for the leader's decision: exact Euclidean projection and membership.

The paper projects after each step (Sec. 5.2 and App. A). Every set is a frozen value; ``project`` never writes
into its argument, and returns it unchanged where it already lies in the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pzos.errors import Faults
from pzos.types import Vector, dot


@runtime_checkable
class Domain(Protocol):
    """What the solvers need of a set; any object with these three methods will do."""

    def project(self, x: Vector) -> Vector:
        """Return the nearest point of the set."""
        ...

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x lies in the set, up to ``tolerance`` relative to the size of the data."""
        ...

    def faults(self, dimension: int) -> list[str]:
        """Return what makes the set unusable in this dimension (empty if nothing does)."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole space R^n: no constraint."""

    def project(self, x: Vector) -> Vector:
        """Return x."""
        return x

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Return True."""
        return True

    def faults(self, dimension: int) -> list[str]:
        """Return nothing: the whole space fits every dimension."""
        return []


@dataclass(frozen=True, slots=True)
class Nonnegative:
    """The orthant {x >= 0}."""

    def project(self, x: Vector) -> Vector:
        """Return max(x, 0)."""
        return np.maximum(x, 0.0)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether no entry is below zero."""
        return bool(x.min(initial=0.0) >= -tolerance)

    def faults(self, dimension: int) -> list[str]:
        """Return nothing: the orthant fits every dimension."""
        return []


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The box {lower <= x <= upper}; each bound is a number or one number per entry, infinite if open."""

    lower: Vector
    upper: Vector

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        object.__setattr__(self, "lower", np.array(lower, dtype=np.float64))
        object.__setattr__(self, "upper", np.array(upper, dtype=np.float64))
        faults = Faults("Box")
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            faults.check(bound.ndim <= 1, name, bound, "a number or a vector", "flatten it")
            faults.check(not np.isnan(bound).any(), name, bound, "no NaN", "use -inf or inf for an open side")
        shapes_agree = self.lower.ndim == 0 or self.upper.ndim == 0 or self.lower.shape == self.upper.shape
        if faults.check(shapes_agree, "upper", self.upper, f"{self.lower.size} entries, as lower has", "match"):
            ordered = bool(np.all(self.lower <= self.upper))
            faults.check(ordered, "upper", self.upper, "upper >= lower in every entry", "swap the bounds")
        faults.raise_if_any()

    def project(self, x: Vector) -> Vector:
        """Return x with every entry moved to its nearest bound if outside."""
        projected: Vector = np.minimum(np.maximum(x, self.lower), self.upper)
        return projected

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether every entry lies between its bounds."""
        slack = tolerance * np.maximum(1.0, np.abs(x))
        return bool(np.all(x >= self.lower - slack) and np.all(x <= self.upper + slack))

    def faults(self, dimension: int) -> list[str]:
        """Return a fault for each bound whose length is not the dimension."""
        return [
            f"domain: Box.{name} has {bound.size} entries: expected {dimension}, one per entry of x0"
            for name, bound in (("lower", self.lower), ("upper", self.upper))
            if bound.ndim == 1 and bound.size != dimension
        ]


def _project_to_sum(x: Vector, total: float) -> Vector:
    """Project onto {y >= 0, sum y = total} by the sorted-threshold rule (exact, O(n log n))."""
    descending = np.sort(x)[::-1]
    excess = np.cumsum(descending) - total
    counts = np.arange(1, x.size + 1)
    active = int(np.nonzero(descending * counts > excess)[0][-1]) if total > 0 else 0
    threshold = excess[active] / (active + 1)
    projected: Vector = np.maximum(x - threshold, 0.0)
    return projected


def _positive_total(where: str, total: float) -> float:
    faults = Faults(where)
    faults.check(bool(np.isfinite(total) and total > 0), "total", total, "a positive number", "try total=1.0")
    faults.raise_if_any()
    return float(total)


@dataclass(frozen=True, slots=True)
class Simplex:
    """The scaled simplex {x >= 0, sum x = total}."""

    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", _positive_total("Simplex", self.total))

    def project(self, x: Vector) -> Vector:
        """Return the nearest point whose nonnegative entries add up to ``total``."""
        return _project_to_sum(x, self.total)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is nonnegative and adds up to ``total``."""
        slack = tolerance * max(1.0, self.total) * max(1.0, float(x.size) ** 0.5)
        return bool(x.min() >= -tolerance) and abs(float(x.sum()) - self.total) <= slack

    def faults(self, dimension: int) -> list[str]:
        """Return nothing: the simplex fits every dimension."""
        return []


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget set {x >= 0, sum x <= total}."""

    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", _positive_total("Budget", self.total))

    def project(self, x: Vector) -> Vector:
        """Return max(x, 0) where that is within budget, else the projection onto the simplex."""
        nonnegative = np.maximum(x, 0.0)
        return nonnegative if float(nonnegative.sum()) <= self.total else _project_to_sum(x, self.total)

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is nonnegative and within budget."""
        slack = tolerance * max(1.0, self.total) * max(1.0, float(x.size) ** 0.5)
        return bool(x.min() >= -tolerance) and float(x.sum()) <= self.total + slack

    def faults(self, dimension: int) -> list[str]:
        """Return nothing: the budget set fits every dimension."""
        return []


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """The Euclidean ball {|x - center| <= radius}; ``center`` is a number or one number per entry."""

    center: Vector
    radius: float

    def __init__(self, center: npt.ArrayLike = 0.0, radius: float = 1.0) -> None:
        object.__setattr__(self, "center", np.array(center, dtype=np.float64))
        object.__setattr__(self, "radius", float(radius))
        faults = Faults("Ball")
        faults.check(self.center.ndim <= 1, "center", self.center, "a number or a vector", "flatten it")
        faults.check(bool(np.isfinite(self.center).all()), "center", self.center, "finite numbers", "check it")
        faults.check(0 < self.radius < np.inf, "radius", self.radius, "a positive number", "try radius=1.0")
        faults.raise_if_any()

    def project(self, x: Vector) -> Vector:
        """Return x, pulled straight towards the center if it lies outside."""
        offset = x - self.center
        distance = dot(offset, offset) ** 0.5
        if distance <= self.radius:
            return x
        pulled: Vector = self.center + offset * (self.radius / distance)
        return pulled

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Tell whether x is within ``radius`` of the center."""
        offset = x - self.center
        return bool(dot(offset, offset) ** 0.5 <= self.radius * (1.0 + tolerance))

    def faults(self, dimension: int) -> list[str]:
        """Return a fault if the center has another length than x0."""
        if self.center.ndim == 1 and self.center.size != dimension:
            return [f"domain: Ball.center has {self.center.size} entries: expected {dimension}, one per entry of x0"]
        return []
