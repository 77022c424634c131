"""Length and weight of the process by marginal likelihood, the common scale profiled out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pzos.base.types import Matrix
from pzos.methods.response_model.geometry import Geometry, Scales

_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_NEAR_LENGTHS = (0.35, 0.6, 1.0, 1.6, 2.8)
_NEAR_WEIGHTS = (0.3, 0.55, 1.0, 1.8, 3.3)


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
