"""Closed convex sets for the leader's decision: exact Euclidean projection and membership.

The paper projects after each step (Sec. 5.2 and App. A). Every set is a frozen value; ``project`` never writes
into its argument, and returns it unchanged where it already lies in the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Vector, as_number, dot, float_array


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
        faults = Faults("Box")
        below, above = _numbers(faults, "lower", lower), _numbers(faults, "upper", upper)
        faults.raise_if_any()
        for name, bound, closed in (("lower", below, np.inf), ("upper", above, -np.inf)):
            open_side = "use -inf for lower and inf for upper where a side is open"
            faults.check(not (np.isnan(bound) | (bound == closed)).any(), name, bound, "numbers", open_side)
        if faults.check(below.ndim == 0 or above.ndim == 0 or below.shape == above.shape, "upper", above,
                        f"{below.size} entries, as lower has", "give both bounds the same length"):  # fmt: skip
            ordered = not np.any(below > above)
            faults.check(ordered, "upper", above, "upper >= lower in every entry", "swap the bounds")
        faults.raise_if_any()
        object.__setattr__(self, "lower", below)
        object.__setattr__(self, "upper", above)

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
            f"domain: Box.{name} has {bound.size} entries: expected {dimension}; give one number per entry of x0"
            for name, bound in (("lower", self.lower), ("upper", self.upper))
            if bound.ndim == 1 and bound.size != dimension
        ]


def _project_to_sum(x: Vector, total: float) -> Vector:
    """Project onto {y >= 0, sum y = total} by the sorted-threshold rule (exact, O(n log n))."""
    shifted = x - x.max()  # a common shift leaves the projection as it is, and keeps small totals from drowning
    descending = np.sort(shifted)[::-1]
    excess = np.cumsum(descending) - total
    counts = np.arange(1, x.size + 1)
    active = int(np.nonzero(descending * counts > excess)[0][-1])
    threshold = excess[active] / (active + 1)
    projected: Vector = np.maximum(shifted - threshold, 0.0)
    return projected


def _numbers(faults: Faults, name: str, value: npt.ArrayLike) -> Vector:
    """Return a number or a vector as a read-only float64 array, or note the fault."""
    try:
        array = float_array(value)
    except (TypeError, ValueError):
        faults.check(False, name, value, "a number or a vector", "give numbers")
        return np.zeros(())
    faults.check(array.ndim <= 1, name, array, "a number or a vector", "flatten it")
    array.flags.writeable = False
    return array


def _check_positive(faults: Faults, name: str, value: object) -> float:
    """Return ``value`` as a float, or note a fault unless it is a positive finite number."""
    number = as_number(value)
    ok = number is not None and 0 < number < np.inf
    faults.check(ok, name, value, "a positive number", f"try {name}=1.0")
    return number or np.nan


def _positive_total(where: str, total: object) -> float:
    faults = Faults(where)
    checked = _check_positive(faults, "total", total)
    faults.raise_if_any()
    return checked


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
        faults = Faults("Ball")
        middle = _numbers(faults, "center", center)
        faults.check(bool(np.isfinite(middle).all()), "center", center, "finite numbers", "try center=0.0")
        object.__setattr__(self, "center", middle)
        object.__setattr__(self, "radius", _check_positive(faults, "radius", radius))
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
            has = self.center.size
            return [f"domain: Ball.center has {has} entries: expected {dimension}; give one number per entry of x0"]
        return []
