"""Fitting the response model to a history: linear prior, weights of the answers, and the scales of the process.

Length and weight of the process are those of largest marginal likelihood, the common scale profiled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds, Law, beyond, imputed, precision_of
from pzos.methods.response_model.history import Geometry, History, Scales, geometry
from pzos.methods.response_model.prior import LinearPrior, fit_conserving, fit_own
from pzos.methods.response_model.response import ResponseModel

_IMPUTATIONS = 2
#: Below this many answers, those at a bound are completed by the linear prior alone.
_FEW = 12
#: Above this many answers the linear prior need not be fitted at every step.
_SETTLED = 40
_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_NEAR_LENGTHS = (0.35, 0.6, 1.0, 1.6, 2.8)
_NEAR_WEIGHTS = (0.3, 0.55, 1.0, 1.8, 3.3)


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


def negative_log_likelihood(geometry: Geometry, residuals: Matrix, scales: Scales) -> tuple[float, float]:
    """Return -log p(residuals)/columns up to constants, and the profiled variance of a unit slope."""
    from scipy.linalg import solve_triangular

    try:
        factor = np.linalg.cholesky(geometry.covariance(scales))
    except np.linalg.LinAlgError:
        return float("inf"), float("nan")
    white = solve_triangular(factor, residuals, lower=True, check_finite=False)
    variance = float(np.einsum("ij,ij->", white, white)) / residuals.size
    variance = max(variance, 1e-300)
    logdet = 2.0 * float(np.log(np.einsum("ii->i", factor)).sum())
    return 0.5 * (logdet + geometry.count * float(np.log(variance))), variance


def fit_scales(geometry: Geometry, residuals: Matrix, start: Scales | None, variance: float) -> Scales:
    """Return the scales of largest likelihood: a grid without ``start``, else one pass over each number around it.

    ``variance`` is that of the noise in one entry of one answer, in the units of y; zero for exact followers.
    """
    median = float(np.median(geometry.lengths))
    noise = 0.0
    if variance > 0.0:
        noise = (
            start.noise
            if start is not None and start.noise > 0.0
            else variance / max(float(np.mean(residuals**2)), 1e-300)
        )
    if start is None:
        grid = [Scales(median * length, weight, noise) for weight in _WEIGHTS for length in _LENGTHS]
        start = _best(geometry, residuals, [Scales(median, 0.0, noise), *grid])
    for _ in range(2 if variance > 0.0 else 1):
        start = _refined(geometry, residuals, Scales(start.length, start.weight, noise))
        if variance > 0.0:
            # A process of very short length would explain the noise once more.
            start = Scales(max(start.length, _LENGTHS[0] * median), start.weight, noise)
            noise = variance / negative_log_likelihood(geometry, residuals, start)[1]
            start = Scales(start.length, start.weight, noise)
    return start


def _refined(geometry: Geometry, residuals: Matrix, start: Scales) -> Scales:
    if start.weight == 0.0:
        weights: Sequence[float] = (0.0, 0.1, 0.5)
    else:
        lengths = [Scales(start.length * r, start.weight, start.noise) for r in _NEAR_LENGTHS]
        start = _best(geometry, residuals, lengths)
        weights = [start.weight * r for r in _NEAR_WEIGHTS]
    return _best(geometry, residuals, [Scales(start.length, w, start.noise) for w in weights])


def _best(geometry: Geometry, residuals: Matrix, candidates: Sequence[Scales]) -> Scales:
    scored = [negative_log_likelihood(geometry, residuals, scales)[0] for scales in candidates]
    return candidates[int(np.argmin(scored))]
