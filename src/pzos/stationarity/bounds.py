"""Upper confidence bounds for the norm of a mean of random vectors, valid in any dimension.

Let g_1, ..., g_N be independent with mean m and covariance Sigma. The squared norm is estimated without bias by

    S = (|sum g|^2 - sum |g|^2) / (N (N - 1)),     E S = |m|^2,     Var S = 4 m'Sigma m/N + 2 tr(Sigma^2)/(N(N-1)),

and S is asymptotically normal as N grows (m != 0), and as the dimension grows (m = 0); for m = 0 in few dimensions
its lower tail is shorter than normal. The bound inverts that test: the largest t with
t^2 - S <= z sqrt(4 t^2 lambda/N + 2 tr(Sigma^2)/(N(N-1))), which is a quadratic in t^2. Ingredients:

* tr(Sigma^2) by its unbiased estimator for any distribution (Himeno and Yamada 2014), at least tr(Sigma)^2/d;
* lambda = m'Sigma m/|m|^2 by the variance of p_i = g_i . mean_{j != i} g_j (leave-one-out, so that |g_i|^2 does not
  enter it in high dimension) over |mean g|^2, or with the noise taken out of both, (Var p - tr(Sigma^2)/(N-1))/S,
  whichever is larger; the latter only where S is at least a fifth of |mean g|^2;
* z a Student quantile with N - 1 degrees after Hall's (1992) correction for the skewness of p, taken only where it
  widens the bound: estimates of the form d (w.v) v are skewed like a chi-square variable. The sample skewness of
  heavy-tailed variables is too small on average; it is raised by the factor 1.1 + kurtosis/40;
* for estimates around a prediction (``predicted``) at least the Student quantile with 3 degrees: what a prediction
  leaves is of unknown shape (third-order terms, kinks met by few directions), and a sample that missed the rare large
  values cannot know it. Where a prediction is good this widens next to nothing.

S below zero counts as zero. Nothing here assumes normal data or N > d. It is asymptotic, not finite-sample; the
repository's benchmark of certificates measures its coverage, which falls below nominal for few samples (tens).
:func:`finite_sample_bound` is the finite-sample one, for a user who knows a bound on |g|.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cbrt, isfinite, log, sqrt

import numpy as np

from pzos.base.checks import Faults, number, positive
from pzos.base.types import Matrix, Vector, dot

#: Below this many samples the moments that enter the bound mean nothing.
FEWEST = 8
#: The fewest queries a certificate needs: x, and pairs for a pilot and for the bound.
FEWEST_QUERIES = 4 * FEWEST + 1
#: Share of |mean g|^2 from which on the estimate of |m|^2 is good enough to divide by.
_SIGNIFICANT = 0.2
#: Degrees of freedom for samples of unknown shape.
_UNKNOWN_SHAPE = 3
#: What a confidence must be.
CONFIDENCE = number(lambda level: 0.5 <= level < 1.0, "a number from 0.5 to below 1", "try 0.95")


@dataclass(frozen=True, slots=True, eq=False)
class NormBound:
    """An upper confidence bound for |E g|.

    ``squared`` is the unbiased estimate of |E g|^2 (it may be negative), ``allowance`` what was added to the bound
    for rounding and for the stated error of the answers. ``mean`` is the sample mean.
    """

    upper: float
    squared: float
    confidence: float
    samples: int
    mean: Vector
    allowance: float = 0.0

    @property
    def estimate(self) -> float:
        """Return the estimate of |E g|: the root of ``squared``, 0 if that is negative."""
        return sqrt(max(self.squared, 0.0))


def norm_upper_bound(
    samples: Matrix, confidence: float = 0.95, allowance: float = 0.0, *, predicted: bool = False
) -> NormBound:
    """Return the bound of this module for the rows of ``samples``; ``allowance`` is added to it.

    ``predicted`` says that the samples are estimates around a prediction, whose noise has an unknown shape.

    >>> bound = norm_upper_bound(np.ones((10, 4)))
    >>> bound.upper, bound.estimate
    (2.0, 2.0)
    """
    faults = Faults("norm_upper_bound")
    faults.check(samples.ndim == 2 and len(samples) >= FEWEST, "samples", samples, f"{FEWEST} rows or more",
                 "draw more directions")  # fmt: skip
    CONFIDENCE.note(faults, "confidence", confidence)
    faults.raise_if_any()
    count = len(samples)
    mean: Vector = samples.mean(axis=0)
    centred = samples - mean
    squares = np.einsum("ij,ij->i", centred, centred)
    trace = float(squares.sum()) / (count - 1)
    norm_squared = dot(mean, mean)
    squared = norm_squared - trace / count
    if trace <= 0.0 or norm_squared <= 0.0:
        return NormBound(sqrt(norm_squared) + allowance, squared, confidence, count, mean, allowance)
    square = _trace_of_square(centred, squares, trace)
    along_mean = np.einsum("ij,j->i", samples, mean)
    against = along_mean - np.einsum("ij,ij->i", samples, samples) / count
    against *= count / (count - 1.0)  # g_i . mean of the others
    variance = float(against.var(ddof=1))
    directional = variance / norm_squared
    if squared > _SIGNIFICANT * norm_squared:
        directional = max(directional, (variance - square / (count - 1)) / squared)
    z = _skewed_quantile(_student(confidence, count - 1), against)
    if predicted:
        z = max(z, _student(confidence, _UNKNOWN_SHAPE))
    start = max(squared, 0.0)
    along = 2.0 * z**2 * directional / count
    top = start + along + sqrt(along**2 + 2.0 * start * along + 2.0 * z**2 * square / (count * (count - 1)))
    return NormBound(sqrt(top) + allowance, squared, confidence, count, mean, allowance)


def finite_sample_bound(
    samples: Matrix, largest: float, second_moment: float | None = None, confidence: float = 0.95
) -> NormBound:
    """Return a bound that holds for every N: |E g| <= |mean| + 2 B log(2/a)/N + sqrt(2 s log(2/a)/N), a = 1 - c.

    ``largest`` is a known B >= |g| and ``second_moment`` a known s >= E|g|^2 (B^2 if None), for instance sigma^2 of
    :class:`pzos.stationarity.Constants`. It is the Pinelis-Bernstein inequality in a Hilbert space (Smale and Zhou
    2007, Lem. 1): free of asymptotics, and much wider.
    """
    faults = Faults("finite_sample_bound")
    faults.check(samples.ndim == 2 and len(samples) >= 1, "samples", samples, "one row per sample", "draw some")
    seen = float(np.sqrt(np.einsum("ij,ij->i", samples, samples).max(initial=0.0))) if samples.ndim == 2 else 0.0
    ok = isfinite(largest) and largest >= seen
    faults.check(ok, "largest", largest, f"a bound on |g|; a sample has norm {seen:.4g}", "give a true bound")
    moment = largest**2 if second_moment is None else second_moment
    positive("or None").note(faults, "second_moment", moment)
    CONFIDENCE.note(faults, "confidence", confidence)
    faults.raise_if_any()
    count = len(samples)
    mean: Vector = samples.mean(axis=0)
    level = log(2.0 / (1.0 - confidence))
    norm = sqrt(dot(mean, mean))
    upper = norm + 2.0 * largest * level / count + sqrt(2.0 * moment * level / count)
    squares = float(np.einsum("ij,ij->", samples, samples))
    squared = (norm**2 * count - squares / count) / (count - 1) if count > 1 else norm**2
    return NormBound(upper, squared, confidence, count, mean)


def _trace_of_square(centred: Matrix, squares: Vector, trace: float) -> float:
    """Estimate tr(Sigma^2) without bias for any distribution; never below tr(Sigma)^2/d."""
    n, d = centred.shape
    # einsum, not BLAS: a stop must not depend on the number of threads.
    gram = np.einsum("ij,kj->ik", centred, centred) if n < d else np.einsum("ij,ik->jk", centred, centred)
    of_sample = float(np.einsum("ij,ij->", gram, gram)) / (n - 1) ** 2
    fourth = float(np.einsum("i,i->", squares, squares)) / (n - 1)
    unbiased = (n - 1) / (n * (n - 2) * (n - 3)) * ((n - 1) * (n - 2) * of_sample + trace**2 - n * fourth)
    floor: float = trace**2 / d
    return max(float(unbiased), floor)


def _student(confidence: float, degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, confidence))


def _skewed_quantile(z: float, sample: Vector) -> float:
    """Return Hall's skewness-corrected quantile for an upper bound on a mean, at least z."""
    centred = sample - sample.mean()
    deviation = sqrt(float((centred**2).mean()))
    if deviation == 0.0:
        return z
    kurtosis = float((centred**4).mean()) / deviation**4
    skewness = (1.1 + kurtosis / 40.0) * float((centred**3).mean()) / deviation**3 / sqrt(sample.size)
    if skewness <= 1e-8:
        return z
    return max(z, 3.0 / skewness * (1.0 - cbrt(1.0 - skewness * (z + skewness / 6.0))))
