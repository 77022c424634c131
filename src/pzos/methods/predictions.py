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
memories (:mod:`pzos.methods.memories`)  grad_x f + B' grad_y f    d |(J - B)' grad_y f|^2, B learned from the answers
===============================  ========================  =====================================================

Each prediction is a frozen value; what it has learned is another value, handed in and given back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pzos.base.checks import Faults
from pzos.base.errors import InvalidInput
from pzos.base.types import LeaderValue, Vector, dot
from pzos.methods.estimators import Probe

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


@dataclass(frozen=True, slots=True)
class LeaderPrediction:
    """h = grad_x f: the estimate is PZOS, eq. (5), bit for bit.

    *Unbiased*: p = 0 is a constant. Its noise d |J' grad_y f|^2 stays where grad F = 0, because there
    J' grad_y f = -grad_x f.
    """

    def start(self, dimension: int) -> None:
        """Return nothing: there is nothing to learn."""

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return 0."""
        return np.zeros_like(at.grad_x)

    def learn(self, learned: None, at: LeaderValue, probes: Sequence[Probe]) -> None:
        """Learn nothing."""


@dataclass(frozen=True, slots=True)
class ZeroPrediction:
    """h = 0: g = d D v, close to ZOS (eq. (2)), but with the leader's part of the slope exact.

    *Unbiased*: p = -grad_x f is known before v is drawn. Its noise d |grad F|^2 vanishes where grad F does.
    """

    def start(self, dimension: int) -> None:
        """Return nothing: there is nothing to learn."""

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return -grad_x f."""
        return -at.grad_x

    def learn(self, learned: None, at: LeaderValue, probes: Sequence[Probe]) -> None:
        """Learn nothing."""


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

    discount: float = 0.98

    def __post_init__(self) -> None:
        faults = Faults("BlendPrediction")
        ok = isinstance(self.discount, int | float) and 0.0 < self.discount <= 1.0
        faults.check(ok, "discount", self.discount, "a number in (0, 1]", "try 0.98")
        faults.raise_if_any()

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
class ModelPrediction:
    """h = grad_x f + M(x)' grad_y f, with M(x) the Jacobian of an imperfect model of the followers.

    ``product(x, u)`` returns M(x)' u; the Jacobian itself is never formed. *Unbiased* however wrong the model is:
    M(x) does not depend on v. Only the noise, d |(J - M)' grad_y f|^2, follows the model's error.

    >>> import numpy as np
    >>> twice = ModelPrediction(lambda x, u: 2.0 * u)
    >>> twice.predict(None, np.zeros(2), LeaderValue(0.0, np.zeros(2), np.array([1.0, 3.0])))
    array([2., 6.])
    """

    product: Callable[[Vector, Vector], Any]

    def __post_init__(self) -> None:
        faults = Faults("ModelPrediction")
        what = "a function (x, u) -> J_model(x)' u"
        faults.check(callable(self.product), "product", self.product, what, "pass the function itself")
        faults.raise_if_any()

    def start(self, dimension: int) -> None:
        """Return nothing: the model is given."""

    def predict(self, learned: None, x: Vector, at: LeaderValue) -> Vector:
        """Return M(x)' grad_y f, checked."""
        product = np.array(self.product(x.copy(), at.grad_y.copy()), dtype=np.float64)
        if product.shape != x.shape or not np.isfinite(product).all():
            raise InvalidInput(
                f"ModelPrediction: product(x, u) has shape {product.shape}: expected {x.shape}, all finite; "
                "return the transposed Jacobian of the model times u, one entry per entry of x"
            )
        return product

    def learn(self, learned: None, at: LeaderValue, probes: Sequence[Probe]) -> None:
        """Learn nothing."""
