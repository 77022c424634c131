"""Fitting the response model to a history: linear prior, weights of the answers, and the scales of the process.

Length and weight of the process are those of largest marginal likelihood, the common scale profiled out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dtrtrs

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds, ConservedSum, beyond, imputed, precision_of
from pzos.methods.response_model.curving import Curving, likeliest
from pzos.methods.response_model.history import Flags, Geometry, History, Scales, walked
from pzos.methods.response_model.kernels import Kernel
from pzos.methods.response_model.prior import LinearPrior, fit_conserving, fit_own
from pzos.methods.response_model.response import ResponseModel

_IMPUTATIONS = 2
#: Below this many answers, those at a bound are completed by the linear prior alone.
_FEW = 12
#: Above this many answers the linear prior need not be fitted at every step.
_SETTLED = 40
#: Of a typical slope: what is foretold better than this is foretold exactly.
_EXACTLY = 1e-9
#: An entry that moves by less than this share of the one that moves most differs by what a solver rounds.
_ROUNDING = 1e-13
#: One that differs from a linear function by less than this share of its slopes is linear.
_LINEAR = 1e-7
_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_QUADRATIC_WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: By how much, per column of y, a smoother kernel must be more likely.
_MARGIN = 0.1
#: So many numbers are held at a time to compare scales.
_NUMBERS_AT_ONCE = 200_000
#: So many answers tell the scales of a process under noise.
_ENOUGH = 120
#: How many times noise may turn out to be ten times as large as it was seen.
_DECADES = 4
#: By how much answers must be more likely with drift than with noise alone, in all and per column of y; with less than
#: this share of it at first sight nothing more is tried.
_DRIFT_MARGIN, _DRIFT_MARGIN_EACH, _WORTH_TRYING = 15.0, 0.5, 0.2
#: Where drift is looked for first: what of the noise stays noise, and what the drift adds per query.
_NOISES, _DRIFTS = (1.0, 0.1, 0.01, 1e-3), (1e-3, 1e-2, 0.1, 1.0, 10.0)
_NEAR_LEVELS = (0.3, 1.0, 3.0)
#: Where answers drift, this share of the variance of repeated ones is noise still.
_LEAST_NOISE = 1e-4
_NEAR_LENGTHS = (0.35, 0.6, 1.0, 1.6, 2.8)
#: Beyond this the linear part has no say at all.
_HEAVIEST = 1e3
_NEAR_WEIGHTS = (0.3, 0.55, 1.0, 1.8, 3.3)


#: Noise hides the finer differences.
_UNDER_NOISE = (Kernel.KINKED, Kernel.SMOOTH)


class Shape(Enum):
    """Which linear prior the model leans on."""

    FREE = "no structure"
    OWN = "own effects"
    CONSERVING = "own effects under conservation laws"


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Answers seen from a centre: y_c there, the slopes r_j = (y_j - y_c)/d_j, the factor of their covariance K."""

    seen: Geometry
    answer: Vector
    slopes: Matrix
    factor: Matrix

    @property
    def answers(self) -> Matrix:
        """Return the answers y_j again."""
        return self.answer + self.slopes * self.seen.lengths[:, None]

    def whitened(self, rows: Matrix) -> Matrix:
        """Return L^-1 rows, where K = L L'."""
        return solve_triangular(self.factor, rows, lower=True, check_finite=False)

    def residuals(self, prior: LinearPrior) -> Matrix:
        """Return the slopes less what the linear prior says."""
        return self.slopes - prior.apply(self.seen.units)


@dataclass(frozen=True, slots=True, eq=False)
class Fitter:
    """What stays the same from fit to fit: how many points, which laws, which bounds, which sketch.

    ``pull`` is what f makes of each answer, by which answers at their bounds are judged where there is no structure;
    without it they are taken as they are. ``curving`` is the scale on which answers without structure are taken.
    """

    points: int
    laws: Matrix
    bounds: Bounds
    sketch: Matrix | None = None
    pull: Vector | None = None
    curving: Curving | None = None

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
        seen, slopes = history.seen_from(centre, self.points)
        point, answer = history.points[centre], history.answers[centre]
        slopes, curving = self._curved(history, centre, seen, slopes) if shape is Shape.FREE else (slopes, None)
        within = self._unbounded_where(curving)
        if seen.count == 0 or scales is None:
            return ResponseModel(point, answer, seen, slopes, Scales(1.0, 0.0, 0.0), LinearPrior(), self.bounds)
        sample = _Sample(seen, answer, slopes, _factor(seen, scales))
        kinked = self.bounds.touched(history.answers)
        if start is not None and start.own is not None and not refit and seen.count > _SETTLED:
            prior = start
            latent = self._latent(prior, sample, precision_of(sample.factor)) if kinked else sample
        else:
            prior, latent = within._prior(shape, sample, start)
        weights, variances, base = _weights(latent, prior, scales)
        noisy = np.ones(answer.size) if scales.noise == 0.0 else history.noisy.astype(np.float64)
        if not noisy.all():  # entries that repeat themselves are passed through
            still = replace(scales, noise=0.0, drift=0.0)
            exact = _weights(replace(latent, factor=_factor(seen, still)), prior, still)
            weights, variances, base = (
                np.where(noisy, *both) for both in zip((weights, variances, base), exact, strict=True)
            )
        bounds = self._bounds(prior, answer)
        return ResponseModel(
            point, base, seen, weights, scales, prior, bounds, kinked, variances, sample.factor, noisy, curving, answer,
            history.units,
        )  # fmt: skip

    def tune(
        self,
        history: History,
        centre: int,
        shape: Shape,
        start: Sequence[Scales],
        variance: float,
        prior: LinearPrior | None = None,
        drifts: bool = False,
    ) -> tuple[Scales, ...]:
        """Return the scales of largest likelihood for this shape, those of its most likely kernel first.

        Without structure every kernel competes; with one the process is only what the structure leaves unexplained.
        With ``drifts`` answers may drift in time, where that is clearly more likely than noise alone.
        """
        seen, slopes = history.seen_from(centre, self.points if variance == 0.0 else min(self.points, _ENOUGH))
        if shape is Shape.FREE:
            slopes, curving = self._curved(history, centre, seen, slopes)
            if start:
                slopes = (
                    self._unbounded_where(curving)
                    ._censored(_Sample(seen, history.answers[centre], slopes, _factor(seen, start[0])))
                    .slopes
                )
            slopes = _telling(seen, slopes)
            if variance > 0.0:
                slopes = slopes / history.units
            if variance > 0.0 and not history.noisy.all():
                return _fit_apart(seen, slopes, start, variance, history.noisy, drifts)
            if self.sketch is not None:
                size = np.sqrt(np.einsum("ij,ij->j", slopes, slopes))
                slopes = (slopes / np.where(size > 0.0, size, 1.0)) @ self.sketch
            kernels = tuple(Kernel) if variance == 0.0 else _UNDER_NOISE
            return fit_kernels(seen, slopes, start, variance, kernels, drifts=drifts)
        factor = _factor(seen, start[0] if start else Scales(float(np.median(seen.lengths)), 1.0, 0.0))
        prior, latent = self._prior(shape, _Sample(seen, history.answers[centre], slopes, factor), prior)
        slopes = latent.residuals(prior) if variance == 0.0 else latent.residuals(prior) / history.units
        if self.sketch is not None:
            slopes = slopes @ self.sketch
        return fit_kernels(seen, slopes, start, variance, (Kernel.KINKED,), drifts=drifts)

    def tune_roughly(self, history: History, centre: int, variance: float) -> Scales:
        """Return likely scales without structure for little: two kernels near what distances and noise suggest."""
        seen, slopes = history.seen_from(centre, self.points)
        slopes, _ = self._curved(history, centre, seen, slopes)
        slopes = slopes / history.units
        length = 2.0 * float(np.median(seen.lengths))
        noise = variance / max(float(np.mean(slopes**2)), 1e-300)
        start = [Scales(length, 1.0, noise, kernel) for kernel in _UNDER_NOISE]
        return fit_kernels(seen, slopes, start, variance, _UNDER_NOISE, decades=0)[0]

    def likeliest_curving(self, history: History, centre: int, scales: Scales) -> Curving | None:
        """Return the scale on which answers are clearly likeliest; None if that is their own for every entry.

        Entries that touch a bound keep their own: what is censored there is not to be bent as well.
        """
        seen, slopes = history.seen_from(centre, self.points)
        low, high = history.answers.min(axis=0), history.answers.max(axis=0)
        free = np.logical_and(low > self.bounds.lower, high < self.bounds.upper)
        factor, noisy = _factor(seen, scales), scales.noise > 0.0
        found = likeliest(seen, slopes, history.answers[centre], factor, noisy).only(free)
        return found if found.curved.any() else None

    def foretelling(self, history: History, centre: int, scales: Scales, pull: Vector, nearest: int) -> float:
        """Return how far off what f makes of an answer nearby is if it is foretold from all others: the mean logarithm.

        By logarithms, for a few answers that explode would decide alone.
        """
        seen, slopes = history.seen_from(centre, self.points)
        latent, curving = self._curved(history, centre, seen, slopes)
        precision = precision_of(_factor(seen, scales))
        answer, lengths = history.answers[centre], seen.lengths[:, None]
        left_out = (precision @ latent) / np.einsum("ii->i", precision)[:, None]
        foretold = answer + (latent - left_out) * lengths
        if curving is not None:
            foretold = curving.shown(foretold, answer)[0]
        rows = np.argsort(seen.lengths)[:nearest]
        missed = (((foretold - answer) / lengths - slopes)[rows]) @ pull
        rounding = _EXACTLY * float(np.abs(slopes[rows] @ pull).mean())
        return float(np.log(np.abs(missed) + rounding + 1e-300).mean())

    def _curved(self, history: History, centre: int, seen: Geometry, slopes: Matrix) -> tuple[Matrix, Curving | None]:
        """Return the slopes of latent answers, and the scale that these are on; None where it is their own."""
        curving = None if self.curving is None else self.curving.suiting(history.answers)
        if curving is None or not curving.curved.any():
            return slopes, None
        lengths = seen.lengths[:, None]
        return curving.latent(slopes * lengths, history.answers[centre])[0] / lengths, curving

    def _unbounded_where(self, curving: Curving | None) -> Fitter:
        """Return the fitter for latent answers: bounds of entries on a curved scale hold for what is shown alone."""
        if curving is None:
            return self
        lower, upper = np.where(curving.curved, [[-np.inf], [np.inf]], [self.bounds.lower, self.bounds.upper])
        return replace(self, bounds=replace(self.bounds, lower=lower, upper=upper))

    def _prior(self, shape: Shape, sample: _Sample, start: LinearPrior | None) -> tuple[LinearPrior, _Sample]:
        """Return the linear prior and the sample, latent where answers are at their bounds."""
        if shape is Shape.FREE:
            return LinearPrior(), self._censored(sample)
        units = sample.whitened(sample.seen.units)

        def linear(sample: _Sample, start: LinearPrior | None) -> LinearPrior:
            slopes = sample.whitened(sample.slopes)
            return fit_own(units, slopes) if shape is Shape.OWN else fit_conserving(units, slopes, self.laws, start)

        touched = self.bounds.touched(sample.answers) or self.bounds.touched(sample.answer)
        prior = linear(sample, start) if start is None or start.own is None or not touched else start
        if not touched:
            return prior, sample
        if sample.seen.count < _FEW:
            latent = sample
            for _ in range(_IMPUTATIONS):
                latent = self._imputed(prior, sample, latent)
                prior = linear(latent, prior)
            return prior, latent
        precision = precision_of(sample.factor)
        prior = linear(self._latent(prior, sample, precision), prior)
        return prior, self._latent(prior, sample, precision)

    def _censored(self, sample: _Sample) -> _Sample:
        """Return the sample as latent answers without structure, where these foretell what f makes of answers better.

        Each answer is foretold from all others. Entries at their bounds may hang together (shared capacities): then
        answers as they are, which keep all linear laws, are the better guess.
        """
        touched = self.bounds.touched(sample.answers) or self.bounds.touched(sample.answer)
        if self.pull is None or not touched:
            return sample
        precision = precision_of(sample.factor)
        latent = self._latent(LinearPrior(), sample, precision)
        plain, censored = (self._missed(part, sample, precision) @ self.pull for part in (sample, latent))
        return latent if censored @ censored < plain @ plain else sample

    def _missed(self, part: _Sample, shown: _Sample, precision: Matrix) -> Matrix:
        """Return by how much each answer that was shown is missed if foretold from all others, as slopes."""
        lengths = part.seen.lengths[:, None]
        left_out = (precision @ part.slopes) / np.einsum("ii->i", precision)[:, None]
        foretold = self.bounds.clip(part.answers - left_out * lengths)[0]
        missed: Matrix = (foretold - shown.answers) / lengths
        return missed

    def _imputed(self, prior: LinearPrior, sample: _Sample, latent: _Sample) -> _Sample:
        """Return the latent sample where answers are too few for a process: what the prior itself predicts."""
        seen, lengths = sample.seen, sample.seen.lengths[:, None]
        predicted = prior.apply(seen.units, latent.slopes) * lengths
        answers, answer = imputed(self.bounds, sample.answers, sample.answer, predicted, seen.lengths)
        return replace(latent, answer=answer, slopes=(answers - answer) / lengths)

    def _latent(self, prior: LinearPrior, sample: _Sample, precision: Matrix) -> _Sample:
        """Return the sample of the latent response, which has no kinks where answers reach their bounds."""
        surprise, bounds = sample.residuals(prior), self._bounds(prior, sample.answer)
        law = bounds.law
        if law is not None:
            surprise = surprise - np.outer(surprise @ law.shares, law.coefficients)
        moved, centre_moved = beyond(bounds, sample.answers, sample.answer, surprise, sample.seen, precision)
        if law is not None:
            moved = moved - np.outer(moved @ law.coefficients, law.shares)
            centre_moved = centre_moved - float(centre_moved @ law.coefficients) * law.shares
        slopes = sample.slopes + (moved - centre_moved) / sample.seen.lengths[:, None]
        return replace(sample, answer=sample.answer + centre_moved, slopes=slopes)

    def _bounds(self, prior: LinearPrior, answer: Vector) -> Bounds:
        """Return the bounds; with a single law the surplus that clipping makes is shared out by it."""
        shares, laws = prior.shares, prior.laws
        if shares is None or laws is None or laws.shape[0] != 1:
            return self.bounds
        positive = np.maximum(shares[:, 0], 1e-3 * float(np.abs(shares).mean()))
        law = ConservedSum(laws[0], positive / float(laws[0] @ positive), float(laws[0] @ answer))
        return replace(self.bounds, law=law)


def _telling(seen: Geometry, slopes: Matrix) -> Matrix:
    """Return the slopes without those of entries that tell nothing of the process, if any others do.

    Entries that differ by rounding alone would tell of a rough one, and entries that are linear in x of none at all.
    """
    moved = np.abs(slopes * seen.lengths[:, None]).max(axis=0, initial=0.0)
    telling = moved > _ROUNDING * moved.max(initial=0.0)
    if seen.count > seen.sizes.size + 1:
        linear = seen.units @ np.linalg.lstsq(seen.units, slopes, rcond=None)[0]
        bent = np.abs(slopes - linear).max(axis=0) > _LINEAR * np.abs(slopes).max(axis=0)
        telling = telling & bent if (telling & bent).any() else telling
    return np.where(telling, slopes, 0.0)


def _weights(sample: _Sample, prior: LinearPrior, scales: Scales) -> tuple[Matrix, Vector, Vector]:
    """Return the weights of the answers, the variance of a unit slope in each entry, and the response at the centre."""
    seen, residuals = sample.seen, sample.residuals(prior)
    weights = cho_solve((sample.factor, True), residuals, check_finite=False)
    variances = np.einsum("ij,ij->j", residuals, weights) / seen.count
    weights /= seen.lengths[:, None]
    base = sample.answer
    if scales.noise > 0.0:
        base = base + scales.noise * seen.centre_share * weights.sum(axis=0)
    if scales.drift > 0.0:
        base = base + scales.drift * walked(seen.times, np.array(seen.now)) @ weights
    return weights, variances, base


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


def negative_log_likelihoods(
    geometry: Geometry, residuals: Matrix, candidates: Sequence[Scales], apart: bool = False
) -> tuple[Vector, Vector]:
    """Return -log p(residuals)/columns up to constants, and the profiled variance of a unit slope, for each candidate.

    The variance is common to all columns, or with ``apart`` one for each (then the mean is returned).
    """
    residuals = np.asfortranarray(residuals)
    at_once = max(_NUMBERS_AT_ONCE // geometry.count**2, 1)
    parts = [candidates[first : first + at_once] for first in range(0, len(candidates), at_once)]
    scores, variances = zip(*(_likelihoods(geometry, residuals, part, apart) for part in parts), strict=True)
    return np.concatenate(scores), np.concatenate(variances)


def _likelihoods(
    geometry: Geometry, residuals: Matrix, candidates: Sequence[Scales], apart: bool
) -> tuple[Vector, Vector]:
    factors = _all_factors(geometry.covariances(candidates))
    white = np.array([dtrtrs(factor.T, residuals, trans=1)[0] for factor in factors])
    columns = np.maximum((white * white).sum(axis=1) / geometry.count, 1e-300)
    variances: Vector = columns.mean(axis=1)
    scales = np.log(columns).mean(axis=1) if apart else np.log(variances)
    logdets = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    scores = 0.5 * (logdets + geometry.count * scales)
    return np.where(np.isfinite(scores), scores, np.inf), variances


def _all_factors(covariances: Matrix) -> Matrix:
    """Return the lower Cholesky factors of a stack; of NaN where rounding made one indefinite."""
    try:
        return _cholesky(covariances)
    except np.linalg.LinAlgError:
        if len(covariances) == 1:
            return np.full_like(covariances, np.nan)
        return np.concatenate([_all_factors(covariance[None]) for covariance in covariances])


def fit_kernels(
    geometry: Geometry,
    residuals: Matrix,
    start: Sequence[Scales],
    variance: float,
    kernels: Sequence[Kernel],
    decades: int = _DECADES,
    drifts: bool = False,
) -> tuple[Scales, ...]:
    """Return the scales of largest likelihood for each kernel, the most likely kernel first.

    A kernel smoother than the roughest must win by a margin: where both explain the answers, kinks are the safer guess.
    """
    apart = variance == 0.0 and len(kernels) > 1
    if apart:
        residuals = residuals[:, np.abs(residuals).max(axis=0) > 0.0]
        if residuals.shape[1] == 0:
            return tuple(start) or (Scales(float(np.median(geometry.lengths)), 0.0),)
    begun = {scales.kernel: scales for scales in start}
    found = {
        kernel: fit_scales(geometry, residuals, begun.get(kernel), variance, kernel, apart, decades, drifts)
        for kernel in kernels
    }
    scores, _ = negative_log_likelihoods(geometry, residuals, list(found.values()), apart)
    scores += [0.0 if kernel is Kernel.KINKED else _MARGIN for kernel in found]
    return tuple(found[kernels[int(row)]] for row in np.argsort(scores, kind="stable"))


def _fit_apart(
    geometry: Geometry, slopes: Matrix, start: Sequence[Scales], variance: float, noisy: Flags, drifts: bool
) -> tuple[Scales, ...]:
    """Return the scales of the entries without noise, which tell most, with the noise that the others have.

    Where those drift, that is what tells noise from the rest, and their own scales are returned.
    """
    disturbed = slopes[:, noisy]
    if not slopes[:, ~noisy].any():  # those without noise tell nothing
        return fit_kernels(geometry, disturbed, start, variance, _UNDER_NOISE, drifts=drifts)
    if drifts:
        own = fit_kernels(geometry, disturbed, start, variance, _UNDER_NOISE, drifts=True)
        if own[0].drift > 0.0:
            return own
    still = [replace(scales, noise=0.0, variance=0.0, drift=0.0, drifting=0.0) for scales in start]
    found = fit_kernels(geometry, slopes[:, ~noisy], still, 0.0, tuple(Kernel))
    noise = variance / max(float(np.mean(disturbed**2)), 1e-300)
    _, units = negative_log_likelihoods(geometry, disturbed, [replace(each, noise=noise) for each in found])
    return tuple(
        replace(each, noise=variance / float(unit), variance=variance)
        for each, unit in zip(found, np.maximum(units, 1e-300), strict=True)
    )


def fit_scales(
    geometry: Geometry,
    residuals: Matrix,
    start: Scales | None,
    variance: float,
    kernel: Kernel = Kernel.KINKED,
    apart: bool = False,
    decades: int = _DECADES,
    drifts: bool = False,
) -> Scales:
    """Return the scales of largest likelihood: a grid without ``start``, else one pass over each number around it.

    ``variance`` is the least that noise may have in one entry of one answer, in its unit; zero for exact
    followers. A pair of answers, or a step in which they jump, may tell too little of it: where answers are clearly
    more likely with ten times as much, and again (``decades``), that is taken.
    """
    median = float(np.median(geometry.lengths))

    def best(candidates: Sequence[Scales]) -> Scales:
        return candidates[int(np.argmin(negative_log_likelihoods(geometry, residuals, candidates, apart)[0]))]

    if variance == 0.0:
        return _refined(best, replace(best(_grid(kernel, median, 0.0)) if start is None else start, noise=0.0))

    def at_noise(scales: Scales | None, variance: float) -> tuple[Scales, float]:
        noise = variance / max(float(np.mean(residuals**2)), 1e-300) if scales is None else scales.noise
        scales = best(_grid(kernel, median, noise)) if scales is None else scales
        for _ in range(2):
            scales = _refined(best, replace(scales, noise=noise))
            # A process of very short length would explain the noise once more.
            scales = replace(scales, length=max(scales.length, _LENGTHS[0] * median))
            noise = variance / float(negative_log_likelihoods(geometry, residuals, [scales])[1][0])
            scales = replace(scales, noise=noise, variance=variance)
        return scales, float(negative_log_likelihoods(geometry, residuals, [scales])[0][0])

    known = None if start is None or start.noise == 0.0 else replace(start, drift=0.0, drifting=0.0)
    found, score = at_noise(known, variance)
    rougher = found
    for _ in range(decades):
        # A small noise may be taken for a process of short length: the next decade may be better where this one is not.
        rougher, rougher_score = at_noise(replace(rougher, noise=10.0 * rougher.noise), 10.0 * rougher.variance)
        if rougher_score < score - _MARGIN:
            found, score = rougher, rougher_score
    drifted = _drifted(geometry, residuals, best, found, start, variance) if drifts else None
    return found if drifted is None else drifted


def _drifted(
    geometry: Geometry,
    residuals: Matrix,
    best: Callable[[Sequence[Scales]], Scales],
    found: Scales,
    start: Scales | None,
    variance: float,
) -> Scales | None:
    """Return the scales with drift where that makes answers clearly more likely than any noise alone, else None."""
    margin = max(_DRIFT_MARGIN / residuals.shape[1], _DRIFT_MARGIN_EACH)

    def lead(drifting: Scales, still: Sequence[Scales]) -> float:
        scores, _ = negative_log_likelihoods(geometry, residuals, [drifting, *still])
        return float(scores[1:].min() - scores[0])

    def levels(drifts: Sequence[float]) -> list[Scales]:
        return [replace(found, noise=noise * found.noise, drift=drift * found.noise)
                for noise in _NOISES for drift in drifts]  # fmt: skip

    if start is None or start.drift == 0.0:
        start = best(levels(_DRIFTS))
        if lead(start, levels([0.0])) < _WORTH_TRYING * margin:
            return None
    drifting = _levelled(best, start)
    if lead(drifting, [_levelled(best, scales) for scales in (replace(drifting, drift=0.0), found)]) < margin:
        return None
    unit = float(negative_log_likelihoods(geometry, residuals, [drifting])[1][0])
    noise = max(drifting.noise, _LEAST_NOISE * variance / unit)
    return replace(drifting, noise=noise, variance=noise * unit, drifting=drifting.drift * unit)


def _levelled(best: Callable[[Sequence[Scales]], Scales], scales: Scales) -> Scales:
    """Return likelier scales near these, with as much noise and drift as the answers show."""
    drifts = (1.0,) if scales.drift == 0.0 else _NEAR_LEVELS
    for _ in range(2):
        scales = _refined(best, scales)
        scales = best([replace(scales, noise=noise * scales.noise, drift=drift * scales.drift)
                       for noise in _NEAR_LEVELS for drift in drifts])  # fmt: skip
    return scales


def _grid(kernel: Kernel, median: float, noise: float) -> list[Scales]:
    if kernel is Kernel.QUADRATIC:  # it has no length of its own
        return [Scales(median, weight / median, noise, kernel) for weight in _QUADRATIC_WEIGHTS]
    grid = [Scales(median * length, weight, noise, kernel) for weight in _WEIGHTS for length in _LENGTHS]
    return [Scales(median, 0.0, noise, kernel), *grid]


def _refined(best: Callable[[Sequence[Scales]], Scales], start: Scales) -> Scales:
    if start.weight == 0.0:
        return best([replace(start, weight=weight) for weight in (0.0, 0.1, 0.5)])
    if start.kernel is not Kernel.QUADRATIC:
        start = best([replace(start, length=start.length * r) for r in _NEAR_LENGTHS])
    return best([replace(start, weight=min(start.weight * r, _HEAVIEST)) for r in _NEAR_WEIGHTS])
