"""Predictions of the gradient, to put in the estimate g = h + d (D - h . v) v of :func:`~pzos.predicted_estimate`.

A prediction foresees p, the part J' grad_y f of the gradient that is not known exactly; h = grad_x f + p. It may use
everything that happened before the directions of a step were drawn, and *learns from them only after it was used*:
that order is what keeps g unbiased, however wrong the prediction is. Its error |J' grad_y f - p|^2, times d, is the
noise that remains.

===============================  ========================  =====================================================
prediction                       h                         noise of g
===============================  ========================  =====================================================
:class:`LeaderPrediction`        grad_x f                  d |J' grad_y f|^2; this is PZOS, bit for bit; it does
                                                           not vanish at an optimum
:class:`ZeroPrediction`          0                         d |grad F|^2: vanishes at an optimum, larger far off
:class:`BlendPrediction`         lambda grad_x f           between the two, by running regression; O(d) memory
:class:`ModelPrediction`         grad_x f + M' grad_y f    d |(J - M)' grad_y f|^2, M from a model of the followers
memories                         grad_x f + B' grad_y f    d |(J - B)' grad_y f|^2, B learned from the answers
===============================  ========================  =====================================================

Each prediction is a frozen value; what it has learned is another value, handed in and given back.

*Memories* learn B, a running estimate of the followers' Jacobian, from every answer, and predict p = B' grad_y f:

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pzos.base.checks import Must, at_least, check_fields, checked, number, whole
from pzos.base.errors import InvalidInput
from pzos.base.types import LeaderValue, Matrix, Vector, dot
from pzos.methods.estimators import Probe
from pzos.methods.steps import POSITIVE

M = TypeVar("M")


@runtime_checkable
class Prediction(Protocol[M]):
    """What a prediction is: pure methods around a value M that holds what was learned."""

    def start(self, dimension: int) -> M:
        """Return what is known before any answer."""
        ...

    def predict(self, learned: M, x: Vector, at: LeaderValue) -> Vector:
        """Return p, the prediction of J' grad_y f at x; ``at`` holds f and its partial gradients there."""
        ...

    def learn(self, learned: M, at: LeaderValue, probes: Sequence[Probe]) -> M:
        """Return what is known after the probes of a step; called after :meth:`predict` of that step."""
        ...


AnyPrediction = Prediction[Any]


_PREDICTION = Must(
    lambda value: isinstance(value, Prediction) and not isinstance(value, type),
    "an object with the methods of Prediction",
    "try FittingMemory()",
)


class _Given:
    """What predictions share that are given beforehand: there is nothing to learn."""

    __slots__ = ()

    def start(self, dimension: int) -> None:
        """Return nothing: there is nothing to learn."""

    def learn(self, learned: None, at: LeaderValue, probes: Sequence[Probe]) -> None:
        """Learn nothing."""


@dataclass(frozen=True, slots=True)
class LeaderPrediction(_Given):
    """h = grad_x f: the estimate is PZOS, eq. (4), bit for bit.

    *Unbiased*: p = 0 is a constant. Its noise d |J' grad_y f|^2 stays where grad F = 0, because there
    J' grad_y f = -grad_x f.
    """

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return 0."""
        return np.zeros_like(at.grad_x)


@dataclass(frozen=True, slots=True)
class ZeroPrediction(_Given):
    """h = 0: g = d D v, close to ZOS (eq. (2)), but with the leader's part of the slope exact.

    *Unbiased*: p = -grad_x f is known before v is drawn. Its noise d |grad F|^2 vanishes where grad F does.
    """

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return -grad_x f."""
        return -at.grad_x


@dataclass(frozen=True, slots=True)
class BlendState:
    """Running sums of D (grad_x f . v) and (grad_x f . v)^2 over the past."""

    product: float = 0.0
    square: float = 0.0

    @property
    def weight(self) -> float:
        """Return lambda, the regression of D on grad_x f . v, clipped to [0, 1]; 1 (PZOS) before any answer."""
        return min(1.0, max(0.0, self.product / self.square)) if self.square > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class BlendPrediction:
    """h = lambda grad_x f: lambda = 1 is PZOS and 0 the zero prediction; regression on the past decides.

    *Unbiased*: lambda is computed from the probes of earlier steps alone, so p = (lambda - 1) grad_x f is fixed
    before v is drawn. ``discount`` is how much of the past a new probe leaves; it needs O(1) memory.
    """

    discount: float = checked(number(lambda d: 0.0 < d <= 1.0, "a number in (0, 1]", "try 0.98"), default=0.98)

    def __post_init__(self) -> None:
        check_fields(self)

    def start(self, dimension: int) -> BlendState:
        """Return empty sums."""
        return BlendState()

    def predict(self, learned: BlendState, x: Vector, at: LeaderValue) -> Vector:
        """Return (lambda - 1) grad_x f."""
        prediction: Vector = (learned.weight - 1.0) * at.grad_x
        return prediction

    def learn(self, learned: BlendState, at: LeaderValue, probes: Sequence[Probe]) -> BlendState:
        """Add D and grad_x f . v of each probe to the sums."""
        product, square = learned.product, learned.square
        for probe in probes:
            known = dot(at.grad_x, probe.direction)
            slope = known + dot(at.grad_y, probe.rise) / probe.run
            product = self.discount * product + slope * known
            square = self.discount * square + known * known
        return BlendState(product, square)


@dataclass(frozen=True, slots=True)
class ModelPrediction(_Given):
    """h = grad_x f + M(x)' grad_y f, with M(x) the Jacobian of an imperfect model of the followers.

    ``product(x, u)`` returns M(x)' u; the Jacobian itself is never formed. *Unbiased* however wrong the model is:
    M(x) does not depend on v. Only the noise, d |(J - M)' grad_y f|^2, follows the model's error.

    >>> import numpy as np
    >>> twice = ModelPrediction(lambda x, u: 2.0 * u)
    >>> twice.predict(None, np.zeros(2), LeaderValue(0.0, np.zeros(2), np.array([1.0, 3.0])))
    array([2., 6.])
    """

    product: Callable[[Vector, Vector], Any] = checked(
        Must(callable, "a function (x, u) -> J_model(x)' u", "pass the function itself")
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return M(x)' grad_y f, checked."""
        product = np.array(self.product(x.copy(), at.grad_y.copy()), dtype=np.float64)
        if product.shape != x.shape or not np.isfinite(product).all():
            raise InvalidInput(
                f"ModelPrediction: product(x, u) has shape {product.shape}: expected {x.shape}, all finite; "
                "return the transposed Jacobian of the model times u, one entry per entry of x"
            )
        return product


@dataclass(frozen=True, slots=True)
class ClippedPrediction:
    """Another prediction, drawn back to |p| <= ``bound``: then the second moment of g is bounded, and a theorem holds.

    |J' grad_y f| <= L_f L_y, so that nothing is lost with a bound of L_f L_y. *Unbiased* like the prediction it clips.
    """

    prediction: AnyPrediction = checked(_PREDICTION)
    bound: float = checked(POSITIVE)

    def __post_init__(self) -> None:
        check_fields(self)

    def start(self, dimension: int) -> Any:
        """Return what the prediction knows before any answer."""
        return self.prediction.start(dimension)

    def predict(self, learned: Any, x: Vector, at: LeaderValue) -> Vector:
        """Return p, or p bound/|p| where it is longer."""
        p = self.prediction.predict(learned, x, at)
        length = sqrt(dot(p, p))
        return p if length <= self.bound else p * (self.bound / length)

    def learn(self, learned: Any, at: LeaderValue, probes: Sequence[Probe]) -> Any:
        """Learn as the prediction does."""
        return self.prediction.learn(learned, at, probes)


# ---- memories -------------------------------------------------------------------------------------------------------


class _Blank:
    """What memories share that hold None before the first answer, when d_y is not known."""

    __slots__ = ()

    def start(self, dimension: int) -> None:
        """Return nothing: B = 0."""


@dataclass(frozen=True, slots=True)
class SecantMemory(_Blank):
    """B += (s - B v) v': the smallest change (in Frobenius norm) after which B agrees with the last probe.

    For independent directions and a fixed J, E|B - J|_F^2 shrinks by 1 - 1/d per probe. What is learned is B'
    itself, None before the first answer.
    """

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
class RegressionMemory(_Blank):
    """B = the discounted least-squares fit to all past probes, by recursive least squares.

        k = P v / (w + v' P v),   B += (s - B v) k',   P = (P - k v' P) / w,   w = 1 - 1/(horizon d)

    After d probes it knows a constant J up to the ridge, where :class:`SecantMemory` still has 1/e of |B - J|^2;
    with noisy answers it averages. ``horizon`` is how far it looks back, in multiples of d probes; ``ridge`` the
    weight of B = 0 at the start. Directions that are never probed do not make P grow without bound.
    """

    horizon: float = checked(at_least(0.5, "0.5 or more", "try 2.0"), default=2.0)
    ridge: float = checked(POSITIVE, default=1e-3)

    def __post_init__(self) -> None:
        check_fields(self)

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

    pairs: int = checked(whole(1, "try 20"), default=20)

    def __post_init__(self) -> None:
        check_fields(self)

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
class FittingMemory(_Blank):
    """The memory that fits: a :class:`RegressionMemory` of up to ``entries`` numbers, else a :class:`PairMemory`.

    d_y is not known before the first answer, so the choice is made then: regression if d_x (d_x + d_y) is at most
    ``entries`` (4 million: 32 MB, d = 1400), else as many pairs as fit, and 20 at least.
    """

    entries: int = checked(whole(1, "try 20"), default=4_000_000)

    def __post_init__(self) -> None:
        check_fields(self)

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
