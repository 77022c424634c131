"""Fitting the response model to a history: covariance, linear prior, weights of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds, Law, imputed
from pzos.methods.response_model.censored import beyond, precision_of
from pzos.methods.response_model.geometry import Geometry, Scales, geometry
from pzos.methods.response_model.history import History
from pzos.methods.response_model.likelihood import fit_scales
from pzos.methods.response_model.prior import LinearPrior, fit_conserving, fit_own
from pzos.methods.response_model.response import ResponseModel

_IMPUTATIONS = 2
#: Below this many answers, those at a bound are completed by the linear prior alone.
_FEW = 12
#: Above this many answers the linear prior need not be fitted at every step.
_SETTLED = 40


class Shape(Enum):
    """Which linear prior the model leans on."""

    FREE = "no structure"
    OWN = "own effects"
    CONSERVING = "own effects under conservation laws"


@dataclass(frozen=True, slots=True, eq=False)
class Fitter:
    """What stays the same from fit to fit: how many points, which laws, which bounds, which sketch."""

    points: int
    laws: Matrix
    bounds: Bounds
    sketch: Matrix | None = None

    def fit(
        self,
        history: History,
        centre: int,
        shape: Shape,
        scales: Scales | None,
        start: LinearPrior | None = None,
        refit: bool = True,
    ) -> ResponseModel:
        """Return the model of ``shape`` around row ``centre`` of the history; a constant from a single answer.

        The linear prior is fitted from ``start``; with many answers it hardly changes, and without ``refit`` is kept.
        """
        seen, slopes = self._seen(history, centre)
        point, answer = history.points[centre], history.answers[centre]
        if seen.count == 0 or scales is None:
            return ResponseModel(point, answer, seen, slopes, Scales(1.0, 0.0, 0.0), LinearPrior(), self.bounds)
        factor = _factor(seen, scales)
        kinked = self.bounds.touched(history.answers)
        if start is not None and start.own is not None and not refit and seen.count > _SETTLED:
            prior = start
            slopes, base = self._completed(kinked, prior, factor, seen, slopes, answer)
        else:
            prior, slopes, base = self._prior(shape, factor, seen, slopes, answer, start)
        bounds = self._bounds(prior, answer)
        residuals = slopes if prior.own is None else slopes - prior.apply(seen.units)
        weights = cho_solve((factor, True), residuals, check_finite=False)
        weights /= seen.lengths[:, None]
        if scales.noise > 0.0:
            base = base + scales.noise * seen.centre_share * weights.sum(axis=0)
        return ResponseModel(point, base, seen, weights, scales, prior, bounds, kinked)

    def _completed(
        self, kinked: bool, prior: LinearPrior, factor: Matrix, seen: Geometry, slopes: Matrix, answer: Vector
    ) -> tuple[Matrix, Vector]:
        return self._latent(prior, seen, precision_of(factor), slopes, answer) if kinked else (slopes, answer)

    def _latent(
        self, prior: LinearPrior, seen: Geometry, precision: Matrix, slopes: Matrix, answer: Vector
    ) -> tuple[Matrix, Vector]:
        """Return slopes and centre of the latent response, which has no kinks where answers reach their bounds."""
        lengths = seen.lengths[:, None]
        surprise = slopes if prior.own is None else slopes - prior.apply(seen.units)
        bounds = self._bounds(prior, answer)
        law = bounds.law
        if law is not None:
            surprise = surprise - np.outer(surprise @ law.shares, law.coefficients)
        moved, centre_moved = beyond(bounds, answer + slopes * lengths, answer, surprise, seen, precision)
        if law is not None:
            moved = moved - np.outer(moved @ law.coefficients, law.shares)
            centre_moved = centre_moved - float(centre_moved @ law.coefficients) * law.shares
        return slopes + (moved - centre_moved) / lengths, answer + centre_moved

    def _bounds(self, prior: LinearPrior, answer: Vector) -> Bounds:
        """Return the bounds; with a single law the surplus that clipping makes is shared out by it."""
        shares, laws = prior.shares, prior.laws
        if shares is None or laws is None or laws.shape[0] != 1:
            return self.bounds
        positive = np.maximum(shares[:, 0], 1e-3 * float(np.abs(shares).mean()))
        law = Law(laws[0], positive / float(laws[0] @ positive), float(laws[0] @ answer))
        return Bounds(self.bounds.lower, self.bounds.upper, law)

    def tune(
        self,
        history: History,
        centre: int,
        shape: Shape,
        start: Scales | None,
        variance: float,
        prior: LinearPrior | None = None,
    ) -> Scales:
        """Return the scales of largest likelihood for this shape."""
        seen, slopes = self._seen(history, centre)
        if shape is not Shape.FREE:
            answer = history.answers[centre]
            factor = _factor(seen, Scales(float(np.median(seen.lengths)), 1.0, 0.0) if start is None else start)
            prior, slopes, _ = self._prior(shape, factor, seen, slopes, answer, prior)
            slopes = slopes - prior.apply(seen.units)
        if self.sketch is not None:
            slopes = slopes @ self.sketch
        return fit_scales(seen, slopes, start, variance)

    def _seen(self, history: History, centre: int) -> tuple[Geometry, Matrix]:
        rows = history.nearest(centre, self.points)
        seen = geometry(history.points[centre], history.points[rows], history.repeats[rows], history.repeats[centre])
        return seen, (history.answers[rows] - history.answers[centre]) / seen.lengths[:, None]

    def _prior(
        self, shape: Shape, factor: Matrix, seen: Geometry, slopes: Matrix, answer: Vector, start: LinearPrior | None
    ) -> tuple[LinearPrior, Matrix, Vector]:
        """Return the linear prior, the slopes and the answer at the centre, latent where answers are at bounds."""
        if shape is Shape.FREE:
            return LinearPrior(), slopes, answer
        units = solve_triangular(factor, seen.units, lower=True, check_finite=False)
        touched = self.bounds.touched(answer + slopes * seen.lengths[:, None]) or self.bounds.touched(answer)
        prior = start
        if prior is None or prior.own is None or not touched:
            white = solve_triangular(factor, slopes, lower=True, check_finite=False)
            prior = self._linear(shape, units, white, start)
        if not touched:
            return prior, slopes, answer
        if seen.count < _FEW:
            return self._roughly_censored(shape, factor, seen, units, slopes, answer, prior)
        precision = precision_of(factor)
        latent, _ = self._latent(prior, seen, precision, slopes, answer)
        white = solve_triangular(factor, latent, lower=True, check_finite=False)
        prior = self._linear(shape, units, white, prior)
        return prior, *self._latent(prior, seen, precision, slopes, answer)

    def _roughly_censored(
        self,
        shape: Shape,
        factor: Matrix,
        seen: Geometry,
        units: Matrix,
        slopes: Matrix,
        answer: Vector,
        prior: LinearPrior,
    ) -> tuple[LinearPrior, Matrix, Vector]:
        """Fit the prior where answers are too few for a process: censored ones get what the prior itself predicts."""
        lengths = seen.lengths[:, None]
        answers = answer + slopes * lengths
        latent_answer = answer
        for _ in range(_IMPUTATIONS):
            predicted = prior.explain(seen.units, slopes) * lengths
            latent, latent_answer = imputed(self.bounds, answers, answer, predicted, seen.lengths)
            slopes = (latent - latent_answer) / lengths
            white = solve_triangular(factor, slopes, lower=True, check_finite=False)
            prior = self._linear(shape, units, white, prior)
        return prior, slopes, latent_answer

    def _linear(self, shape: Shape, units: Matrix, slopes: Matrix, start: LinearPrior | None) -> LinearPrior:
        return fit_own(units, slopes) if shape is Shape.OWN else fit_conserving(units, slopes, self.laws, start)


def _factor(seen: Geometry, scales: Scales) -> Matrix:
    """Return the Cholesky factor of K, with more jitter where rounding made K indefinite."""
    covariance = seen.covariance(scales)
    jitter = 1e-10 * float(np.einsum("ii->i", covariance).max())
    for _ in range(6):
        try:
            return _cholesky(covariance)
        except np.linalg.LinAlgError:
            np.einsum("ii->i", covariance)[...] += jitter
            jitter *= 100.0
    return _cholesky(covariance)


def _cholesky(covariance: Matrix) -> Matrix:
    factor: Matrix = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
    return factor
