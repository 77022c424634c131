"""Answers at their bounds as censored rows of the process: what the latent response is there, given the free answers.

The latent response z is smooth, and an answer at its bound says only that z is there or beyond. For one entry of y let
theta hold how far z is beyond the bound at each censored point, the centre among them. The slopes of the entry are
r = r_0 + D theta, and the most likely theta under the model r ~ N(prior, K) solves

    D' K^-1 D theta = -D' K^-1 (r_0 - prior),        then theta is cut to the side where the bound is

which is the mean of the process at the censored points given the free ones. All entries share K^-1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from pzos.models.bounds import Bounds
from pzos.models.geometry import Geometry
from pzos.types import Matrix, Vector

_RIDGE = 1e-9


def beyond(
    bounds: Bounds, answers: Matrix, centre: Vector, surprise: Matrix, seen: Geometry, factor: Matrix
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
    precision = cho_solve((factor, True), np.eye(seen.count), check_finite=False)
    inverse = 1.0 / seen.lengths
    pulls = precision @ surprise[:, entries]
    from_centre = precision @ inverse
    for k, entry in enumerate(entries):
        rows = np.flatnonzero(held[:, entry])
        matrix = precision[np.ix_(rows, rows)] * (inverse[rows, None] * inverse[rows])
        right = -pulls[rows, k] * inverse[rows]
        if centre_held[entry]:
            across = -from_centre[rows] * inverse[rows]
            corner = np.array([[float(inverse @ from_centre)]])
            matrix = np.block([[matrix, across[:, None]], [across[None], corner]])
            right = np.append(right, inverse @ pulls[:, k])
        np.einsum("ii->i", matrix)[...] *= 1.0 + _RIDGE
        theta = np.linalg.solve(matrix, right)
        moved[rows, entry] = theta[: rows.size]
        if centre_held[entry]:
            centre_moved[entry] = theta[-1]
    moved = np.where(low, np.minimum(moved, 0.0), np.maximum(moved, 0.0))
    centre_moved = np.where(centre_low, np.minimum(centre_moved, 0.0), np.maximum(centre_moved, 0.0))
    return moved, centre_moved
