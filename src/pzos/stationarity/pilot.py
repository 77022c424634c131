"""A prediction h of the gradient from the first part of a batch, used on the rest: g = h + d (D - h.v) v.

With h fixed before v is drawn, g is unbiased whatever h is, because E[d v v'] = I; its noise is d |grad - h|^2
(methods, section 1). The pilot pairs (v_q, D_q) are regressed, D ~ h . v, by ridge regression around a multiple of the
leader's own gradient; the multiple and the ridge are chosen by leave-one-out error. On a smooth response and with
more pilot pairs than dimensions nothing but the response's third-order terms is left as noise.
"""

from __future__ import annotations

import numpy as np

from pzos.base.types import Matrix, Vector, dot

_RIDGES = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0)


def pilot_size(directions: int, dimension: int) -> int:
    """Return how many of the directions make the prediction: 3 d of them, at most half; none if there are few.

    With no more directions than dimensions a pilot costs as many samples as it removes noise.
    """
    return 0 if directions <= dimension else min(3 * dimension, directions // 2)


def fit_prediction(directions: Matrix, slopes: Vector, prior: Vector) -> Vector:
    """Return h with h . v ~ D for the rows v of ``directions`` and D of ``slopes``, starting from ``prior``."""
    base = _blend(directions, slopes, prior)
    rest = slopes - np.einsum("ij,j->i", directions, base)
    left, values, right = np.linalg.svd(directions, full_matrices=False)
    turned = np.einsum("ij,i->j", left, rest)
    best, best_error = base, float(np.mean(rest**2))
    scale = float(values[0] ** 2)
    for ridge in _RIDGES:
        shrink = np.where(values > 1e-10 * values[0], values**2 / (values**2 + ridge * scale), 0.0)
        leverage = np.einsum("ij,j->i", left**2, shrink)
        if leverage.max() >= 1.0 - 1e-9:  # it would only repeat the data: leave-one-out says nothing
            continue
        errors = (rest - np.einsum("ij,j->i", left, shrink * turned)) / (1.0 - leverage)
        error = float(np.mean(errors**2))
        if error < best_error:
            step = np.divide(shrink, values, out=np.zeros_like(values), where=shrink > 0.0)
            best, best_error = base + np.einsum("ji,j->i", right, step * turned), error
    return best


def _blend(directions: Matrix, slopes: Vector, prior: Vector) -> Vector:
    """Return lambda * prior with lambda in [0, 1] by regression: near an optimum 0 predicts better than grad_x f."""
    along = np.einsum("ij,j->i", directions, prior)
    size = dot(along, along)
    share = min(max(dot(along, slopes) / size, 0.0), 1.0) if size > 0.0 else 0.0
    return share * prior


def gradient_samples(directions: Matrix, slopes: Vector, prediction: Vector) -> Matrix:
    """Return one unbiased estimate g = h + d (D - h.v) v per row."""
    surprise = slopes - np.einsum("ij,j->i", directions, prediction)
    samples: Matrix = prediction + (directions.shape[1] * surprise)[:, None] * directions
    return samples
