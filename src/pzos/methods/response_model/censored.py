"""Answers at their bounds as censored rows of the process: what the latent response is there, given the free answers.

The latent response z is smooth, and an answer at its bound says only that z is there or beyond. For one entry of y let
theta hold how far z is beyond the bound at each censored point, the centre among them. The slopes of the entry are
r = r_0 + D theta, and the most likely theta under the model r ~ N(prior, K) solves

    D' K^-1 D theta = -D' K^-1 (r_0 - prior),        then theta is cut to the side where the bound is

which is the mean of the process at the censored points given the free ones. All entries share K^-1. Only the points
nearest to the centre are solved for; farther ones get what the linear prior says.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotri

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.geometry import Geometry
from pzos.methods.response_model.history import Rows

_RIDGE = 1e-9
_NEAREST = 40


def precision_of(factor: Matrix) -> Matrix:
    """Return K^-1 from the lower Cholesky factor of K."""
    lower, _ = dpotri(factor, lower=1)
    lower = np.tril(lower)
    inverse: Matrix = lower + np.tril(lower, -1).T
    return inverse


def beyond(
    bounds: Bounds, answers: Matrix, centre: Vector, surprise: Matrix, seen: Geometry, precision: Matrix
) -> tuple[Matrix, Vector]:
    """Return how far the latent response lies beyond the bounds, at each answer and at the centre; 0 where free.

    ``surprise`` holds the slopes of the answers less what the linear prior says.
    """
    low, centre_low = answers <= bounds.lower, centre <= bounds.lower
    held, centre_held = low | (answers >= bounds.upper), centre_low | (centre >= bounds.upper)
    moved, centre_moved = np.zeros_like(answers), np.zeros_like(centre)
    known = ~(held.all(axis=0) & centre_held)  # an entry that was never free says nothing about its latent value
    entries = np.flatnonzero((held.any(axis=0) | centre_held) & known)
    if entries.size == 0:
        return moved, centre_moved
    side = np.where(low[:, entries], -1.0, 1.0)
    guess = np.where(held[:, entries], -surprise[:, entries] * seen.lengths[:, None], 0.0)
    guess = side * np.maximum(side * guess, 0.0)
    inverse = 1.0 / seen.lengths
    pulls = precision @ (surprise[:, entries] + guess * inverse[:, None])
    from_centre = precision @ inverse
    for k, entry in enumerate(entries):
        rows = np.flatnonzero(held[:, entry])
        if rows.size > _NEAREST:
            rows = rows[np.argpartition(seen.lengths[rows], _NEAREST)[:_NEAREST]]
        theta, theta_centre = _most_likely(precision, from_centre, pulls[:, k], inverse, rows, bool(centre_held[entry]))
        guess[rows, k] += theta
        centre_moved[entry] = theta_centre
    moved[:, entries] = side * np.maximum(side * guess, 0.0)
    centre_side = np.where(centre_low, -1.0, 1.0)
    return moved, np.where(centre_held, centre_side * np.maximum(centre_side * centre_moved, 0.0), 0.0)


def _most_likely(
    precision: Matrix, from_centre: Vector, pull: Vector, inverse: Vector, rows: Rows, centre_held: bool
) -> tuple[Vector, float]:
    """Return the change of theta at ``rows``, and theta at the centre (0 if it is free)."""
    matrix = precision[np.ix_(rows, rows)] * (inverse[rows, None] * inverse[rows])
    right = -pull[rows] * inverse[rows]
    if centre_held:
        across = -from_centre[rows] * inverse[rows]
        corner = np.array([[float(inverse @ from_centre)]])
        matrix = np.block([[matrix, across[:, None]], [across[None], corner]])
        right = np.append(right, float(inverse @ pull))
    np.einsum("ii->i", matrix)[...] *= 1.0 + _RIDGE
    theta = np.linalg.solve(matrix, right).astype(np.float64, copy=False)
    return theta[: rows.size], float(theta[-1]) if centre_held else 0.0
