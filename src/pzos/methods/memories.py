"""Predictions that remember: B, a running estimate of the followers' Jacobian, learned from every answer.

All predict p = B' grad_y f. *All are unbiased* in :func:`pzos.predicted_estimate`: B is a function of the
answers of earlier steps, hence fixed before the directions of a step are drawn, and is updated after its use.

============================  ===========================================  ====================  ===============
memory                        update with a probe (v, s), s = rise / run   numbers kept          work per probe
============================  ===========================================  ====================  ===============
:class:`SecantMemory`         B += (s - B v) v'                            d_x d_y               O(d_x d_y)
:class:`RegressionMemory`     least squares on the past, discounted        d_x (d_x + d_y)       O(d_x (d_x + d_y))
:class:`PairMemory`           as SecantMemory, of the last m probes only   m (d_x + d_y)         O(m (d_x + d_y))
:class:`FittingMemory`        regression if it fits in memory, else pairs  at most ``entries``
============================  ===========================================  ====================  ===============

Matrices are multiplied by ``einsum``, whose bits do not depend on the number of BLAS threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pzos.base.checks import Faults
from pzos.base.types import LeaderValue, Matrix, Vector, dot
from pzos.methods.estimators import Probe
from pzos.methods.schedules import check_positive


@dataclass(frozen=True, slots=True)
class SecantMemory:
    """B += (s - B v) v': the smallest change (in Frobenius norm) after which B agrees with the last probe.

    For independent directions and a fixed J, E|B - J|_F^2 shrinks by 1 - 1/d per probe. What is learned is B'
    itself, None before the first answer.
    """

    def start(self, dimension: int) -> Matrix | None:
        """Return nothing: B = 0."""
        return None

    def predict(self, learned: Matrix | None, x: Vector, at: LeaderValue) -> Vector:
        """Return B' grad_y f."""
        return np.zeros_like(x) if learned is None else _times(learned, at.grad_y)

    def learn(self, learned: Matrix | None, at: LeaderValue, probes: Sequence[Probe]) -> Matrix | None:
        """Make B agree with each probe in turn."""
        if not probes:
            return learned
        transposed = np.zeros((at.grad_x.size, at.grad_y.size)) if learned is None else learned
        for probe in probes:
            v = probe.direction
            transposed = _plus_outer(transposed, v, probe.slope - _transposed_times(transposed, v))
        return transposed


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A running least-squares fit: B' and P, the inverse of the discounted sum of v v'."""

    transposed: Matrix
    inverse: Matrix


@dataclass(frozen=True, slots=True)
class RegressionMemory:
    """B = the discounted least-squares fit to all past probes, by recursive least squares.

        k = P v / (w + v' P v),   B += (s - B v) k',   P = (P - k v' P) / w,   w = 1 - 1/(horizon d)

    After d probes it knows a constant J up to the ridge, where :class:`SecantMemory` still has 1/e of |B - J|^2;
    with noisy answers it averages. ``horizon`` is how far it looks back, in multiples of d probes; ``ridge`` the
    weight of B = 0 at the start. Directions that are never probed do not make P grow without bound.
    """

    horizon: float = 2.0
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        faults = Faults("RegressionMemory")
        if check_positive(faults, "horizon", self.horizon):
            faults.check(self.horizon >= 0.5, "horizon", self.horizon, "0.5 or more", "try 2.0")
        check_positive(faults, "ridge", self.ridge)
        faults.raise_if_any()

    def start(self, dimension: int) -> Regression | None:
        """Return nothing: B = 0."""
        return None

    def predict(self, learned: Regression | None, x: Vector, at: LeaderValue) -> Vector:
        """Return B' grad_y f."""
        return np.zeros_like(x) if learned is None else _times(learned.transposed, at.grad_y)

    def learn(self, learned: Regression | None, at: LeaderValue, probes: Sequence[Probe]) -> Regression | None:
        """Take the probes into the fit, in order."""
        if not probes:
            return learned
        size = at.grad_x.size
        if learned is None:
            learned = Regression(np.zeros((size, at.grad_y.size)), np.eye(size) / self.ridge)
        for probe in probes:
            learned = self._fitted(learned, probe)
        return learned

    def _fitted(self, past: Regression, probe: Probe) -> Regression:
        v, size = probe.direction, probe.direction.size
        keep = max(0.5, 1.0 - 1.0 / (self.horizon * size))
        spread = _times(past.inverse, v)
        total = keep + dot(v, spread)
        residual = probe.slope - _transposed_times(past.transposed, v)
        transposed = _plus_outer(past.transposed, spread / total, residual)
        # A direction that is starved of probes is not forgotten, or P would grow without bound there.
        starved = (past.inverse.trace() - dot(spread, spread) / total) * self.ridge > keep * size
        growth = 1.0 if starved else 1.0 / keep
        spread *= sqrt(growth / total)
        inverse = np.multiply.outer(spread, spread)  # symmetric to the last bit
        np.subtract(growth * past.inverse, inverse, out=inverse)
        return Regression(transposed, inverse)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The last probes, oldest first: unit directions v_j, slopes s_j, and v_i . v_j for i < j."""

    directions: tuple[Vector, ...] = ()
    slopes: tuple[Vector, ...] = ()
    products: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True)
class PairMemory:
    """The limited-memory form of :class:`SecantMemory`: B as if learning had begun ``pairs`` probes ago.

    B is never formed. With the probes (v_j, s_j), oldest first, unrolling B += (s - B v) v' gives

        B' u = sum_j c_j v_j,   c_j = s_j . u - sum_{i < j} (v_i . v_j) c_i.

    Memory O(m (d_x + d_y)): d = 10^5 works. With as many pairs as probes it is SecantMemory exactly.
    """

    pairs: int = 20

    def __post_init__(self) -> None:
        faults = Faults("PairMemory")
        check_count(faults, "pairs", self.pairs)
        faults.raise_if_any()

    def start(self, dimension: int) -> Pairs:
        """Return no pairs: B = 0."""
        return Pairs()

    def predict(self, learned: Pairs, x: Vector, at: LeaderValue) -> Vector:
        """Return B' grad_y f by forward substitution."""
        weights = np.zeros(len(learned.directions))
        prediction = np.zeros_like(x)
        for j, (v, slope, products) in enumerate(
            zip(learned.directions, learned.slopes, learned.products, strict=True)
        ):
            weights[j] = dot(slope, at.grad_y) - dot(weights[:j], products)
            prediction += weights[j] * v
        return prediction

    def learn(self, learned: Pairs, at: LeaderValue, probes: Sequence[Probe]) -> Pairs:
        """Append the probes, and drop the oldest beyond ``pairs``."""
        return _appended(learned, probes, self.pairs)


@dataclass(frozen=True, slots=True)
class FittingMemory:
    """The memory that fits: a :class:`RegressionMemory` of up to ``entries`` numbers, else a :class:`PairMemory`.

    d_y is not known before the first answer, so the choice is made then: regression if d_x (d_x + d_y) is at most
    ``entries`` (4 million: 32 MB, d = 1400), else as many pairs as fit, and 20 at least.
    """

    entries: int = 4_000_000

    def __post_init__(self) -> None:
        faults = Faults("FittingMemory")
        check_count(faults, "entries", self.entries)
        faults.raise_if_any()

    def start(self, dimension: int) -> Regression | Pairs | None:
        """Return nothing: B = 0."""
        return None

    def predict(self, learned: Regression | Pairs | None, x: Vector, at: LeaderValue) -> Vector:
        """Return B' grad_y f."""
        if isinstance(learned, Pairs):
            return _PAIRS.predict(learned, x, at)
        return _REGRESSION.predict(learned, x, at)

    def learn(
        self, learned: Regression | Pairs | None, at: LeaderValue, probes: Sequence[Probe]
    ) -> Regression | Pairs | None:
        """Learn in the form that fits."""
        size = at.grad_x.size + at.grad_y.size
        if at.grad_x.size * size > self.entries:
            pairs = learned if isinstance(learned, Pairs) else Pairs()
            return _appended(pairs, probes, max(_PAIRS.pairs, self.entries // size))
        regression = learned if isinstance(learned, Regression) else None
        return _REGRESSION.learn(regression, at, probes)


def _appended(learned: Pairs, probes: Sequence[Probe], limit: int) -> Pairs:
    directions, slopes, products = learned.directions, learned.slopes, learned.products
    for probe in probes:
        if len(directions) == limit:
            directions, slopes = directions[1:], slopes[1:]
            products = tuple(row[1:] for row in products[1:])
        products = (*products, np.array([dot(v, probe.direction) for v in directions]))
        directions, slopes = (*directions, probe.direction), (*slopes, probe.slope)
    return Pairs(directions, slopes, products)


def check_count(faults: Faults, argument: str, value: object) -> bool:
    """Note a fault unless ``value`` is a whole number, 1 or more."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return faults.check(whole and int(value) >= 1, argument, value, "a whole number, 1 or more", "try 20")  # type: ignore[call-overload]


def _plus_outer(matrix: Matrix, left: Vector, right: Vector) -> Matrix:
    """Return matrix + left right' as a new array."""
    changed: Matrix = np.multiply.outer(left, right)
    changed += matrix
    return changed


def _times(matrix: Matrix, vector: Vector) -> Vector:
    product: Vector = np.einsum("ij,j->i", matrix, vector)
    return product


def _transposed_times(matrix: Matrix, vector: Vector) -> Vector:
    product: Vector = np.einsum("ij,i->j", matrix, vector)
    return product


_PAIRS, _REGRESSION = PairMemory(), RegressionMemory()
