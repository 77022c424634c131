"""The linear prior of the response model: none, own effects, or own effects that keep A y constant.

    B_p = 0,   diag(d),   or   (I - U A) diag(d) with A U = I

fitted by least squares under the covariance of the slopes; never formed as a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.types import Matrix, Vector

_SWEEPS = 8
_RIDGE = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class LinearPrior:
    """B_p = (I - U A) diag(d); U and A are None without laws, d is None without own effects (B_p = 0)."""

    own: Vector | None = None
    shares: Matrix | None = None
    laws: Matrix | None = None

    def apply(self, s: Matrix) -> Matrix:
        """Return B_p s for one vector or for each row of a stack."""
        if self.own is None:
            return np.zeros(1)
        moved = s * self.own
        if self.shares is None or self.laws is None:
            return moved
        return moved - (moved @ self.laws.T) @ self.shares.T

    def explain(self, s: Matrix, slopes: Matrix) -> Matrix:
        """Return what the prior makes of rows whose own totals A r are known to differ from zero."""
        if self.own is None:
            return np.zeros_like(slopes)
        moved = s * self.own
        if self.shares is None or self.laws is None:
            return moved
        return moved - ((moved - slopes) @ self.laws.T) @ self.shares.T

    def pull(self, g: Vector) -> Vector:
        """Return B_p' g."""
        if self.own is None:
            return np.zeros(1)
        if self.shares is None or self.laws is None:
            return self.own * g
        return self.own * (g - (g @ self.shares) @ self.laws)


def fit_own(units: Matrix, slopes: Matrix) -> LinearPrior:
    """Fit d_i with d_i ~ N(theta, rho) from whitened rows; theta is the common effect of all entries."""
    return LinearPrior(_shrunk(np.einsum("ij,ij->j", units, slopes), np.einsum("ij,ij->j", units, units), units.shape[0]))


def _shrunk(right: Vector, weight: Vector, count: int) -> Vector:
    """Return argmin_d sum_i weight_i d_i^2 - 2 right_i d_i + ridge (d_i - theta)^2, theta profiled out."""
    # Profiling theta: d_i = (right_i + ridge theta)/(weight_i + ridge), theta = mean(d).
    ridge = _RIDGE / count**2 * float(weight.mean())
    inverse = 1.0 / (weight + ridge)
    pulled = 1.0 - ridge * float(np.mean(inverse))
    theta = float(np.mean(right * inverse)) / max(pulled, 1e-12)
    shrunk: Vector = (right + ridge * theta) * inverse
    return shrunk


def fit_conserving(units: Matrix, slopes: Matrix, laws: Matrix, start: LinearPrior | None = None) -> LinearPrior:
    """Fit (I - U A) diag(d) by alternating least squares on whitened rows.

    Latent slopes (see :mod:`bounds`) need not obey the laws; then A R is what the multipliers did not make up for,
    and the model is R = S diag(d) - (S diag(d) - R) A' U'.
    """
    entries = units.shape[1]
    square = np.einsum("ij,ij->j", units, units)
    gramian = laws @ laws.T
    shares = np.linalg.solve(gramian, laws).T  # A' (A A')^-1: the laws shared evenly
    own = np.zeros(entries)
    sweeps = _SWEEPS
    if start is not None and start.own is not None and start.shares is not None:
        own, shares, sweeps = start.own, start.shares, 2
    for _ in range(sweeps):
        own = _own_given_shares(units, slopes, laws, shares, square, own)
        shares = _shares_given_own(units, slopes, laws, own, shares)
    return LinearPrior(own, shares, laws)


def _own_given_shares(
    units: Matrix, slopes: Matrix, laws: Matrix, shares: Matrix, square: Vector, own: Vector
) -> Vector:
    """Minimise |R - S diag(d) (I - U A)'|^2 + (d - theta)^2/rho over d by conjugate gradients from ``own``."""

    ridge = _RIDGE / units.shape[0] ** 2 * float(square.mean())

    def normal(d: Vector) -> Vector:
        moved = units * d
        image = moved - (moved @ laws.T) @ shares.T
        back = image - (image @ shares) @ laws
        result: Vector = np.einsum("ij,ij->j", units, back) + ridge * (d - d.mean())
        return result

    target = slopes - (slopes @ laws.T) @ shares.T
    target = target - (target @ shares) @ laws
    residual = np.einsum("ij,ij->j", units, target) - normal(own)
    precondition = 1.0 / (square + ridge)
    z = precondition * residual
    direction, power = z, float(residual @ z)
    goal = 1e-12 * power
    for _ in range(10):
        if power <= goal or power <= 0.0:
            break
        image = normal(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0:
            break
        step = power / curvature
        own = own + step * direction
        residual = residual - step * image
        z = precondition * residual
        power, previous = float(residual @ z), power
        direction = z + (power / previous) * direction
    return own


def _shares_given_own(units: Matrix, slopes: Matrix, laws: Matrix, own: Vector, shares: Matrix) -> Matrix:
    """Minimise |R - S diag(d) + (S diag(d) A') U'|^2 over U, then restore A U = I."""
    moved = units * own
    totals = (moved - slopes) @ laws.T
    matrix = totals.T @ totals
    ridge = 1e-6 * max(float(np.trace(matrix)), 1e-300)
    matrix = matrix + ridge * np.eye(matrix.shape[0])
    free = np.linalg.solve(matrix, totals.T @ (moved - slopes) + ridge * shares.T).T
    gap = np.eye(laws.shape[0]) - laws @ free
    restored: Matrix = free + np.linalg.solve(laws @ laws.T, laws).T @ gap
    return restored
