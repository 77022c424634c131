"""The linear prior of the response model: none, own effects, or own effects that keep A y constant.

    B_p = 0,   diag(d),   or   (I - U A) diag(d) with A U = I

fitted by least squares under the covariance of the slopes; never formed as a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.base.types import Matrix, Vector

_SWEEPS = 8
_WARM_SWEEPS = 2
_RIDGE = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class LinearPrior:
    """B_p = (I - U A) diag(d); U and A are None without laws, d is None without own effects (B_p = 0)."""

    own: Vector | None = None
    shares: Matrix | None = None
    laws: Matrix | None = None

    def apply(self, s: Matrix, slopes: Matrix | float = 0.0) -> Matrix:
        """Return B_p s for one vector or for each row of a stack.

        Latent ``slopes`` r need not obey the laws; with them it is what the prior makes of rows that keep their A r.
        """
        if self.own is None:
            return np.zeros(1)
        moved = s * self.own
        if self.shares is None or self.laws is None:
            return moved
        return moved - ((moved - slopes) @ self.laws.T) @ self.shares.T

    def pull(self, g: Vector) -> Vector:
        """Return B_p' g, or that of each row of g."""
        if self.own is None:
            return np.zeros(1)
        if self.shares is None or self.laws is None:
            return self.own * g
        return self.own * (g - (g @ self.shares) @ self.laws)


def fit_own(units: Matrix, slopes: Matrix) -> LinearPrior:
    """Fit d_i with d_i ~ N(theta, rho) from whitened rows; theta is the common effect of all entries."""
    return LinearPrior(
        _shrunk(np.einsum("ij,ij->j", units, slopes), np.einsum("ij,ij->j", units, units), units.shape[0])
    )


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
    and the model is R = S diag(d) - (S diag(d) - R) A' U'. A ``start`` from an earlier fit saves most sweeps.
    """
    evenly: Matrix = np.linalg.solve(laws @ laws.T, laws).T.astype(np.float64)  # A' (A A')^-1: the laws shared evenly
    own: Vector = np.zeros(units.shape[1])
    shares, sweeps = evenly, _SWEEPS
    if start is not None and start.own is not None and start.shares is not None:
        own, shares, sweeps = start.own, start.shares, _WARM_SWEEPS
    square = np.einsum("ij,ij->j", units, units)
    for _ in range(sweeps):
        normal = _Normal(units, square, laws, shares)
        target = slopes - (slopes @ laws.T) @ shares.T
        target = target - (target @ shares) @ laws
        own = _conjugate_gradients(normal, np.einsum("ij,ij->j", units, target), own)
        shares = _shares_given_own(units, slopes, laws, own, shares, evenly)
    return LinearPrior(own, shares, laws)


class _Normal:
    """The normal matrix of d, |S diag(d) (I - U A)'|^2 + ridge |d - mean d|^2, by products with S alone.

    With G = S'S:  diag(G) d - sum_m [U_m o G (A_m o d) + A_m o G (U_m o d)] + sum_mn (U'U)_mn A_m o G (A_n o d).
    """

    def __init__(self, units: Matrix, square: Vector, laws: Matrix, shares: Matrix) -> None:
        self.units, self.square, self.laws, self.shares = units, square, laws, shares.T
        self.ridge = _RIDGE / units.shape[0] ** 2 * float(square.mean())
        self.scale = 1.0 / (square + self.ridge)
        self.overlap = shares.T @ shares
        self.both = np.concatenate([laws, shares.T])

    def __call__(self, d: Vector) -> Vector:
        through = ((self.both * d) @ self.units.T) @ self.units
        by_laws, by_shares = through[: len(self.laws)], through[len(self.laws) :]
        result: Vector = (self.square + self.ridge) * d - self.ridge * d.mean()
        result -= np.einsum("mi,mi->i", self.shares, by_laws)
        result += np.einsum("mi,mi->i", self.laws, self.overlap @ by_laws - by_shares)
        return result


def _conjugate_gradients(normal: _Normal, right: Vector, x: Vector) -> Vector:
    residual = right - normal(x)
    z = normal.scale * residual
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
        x = x + step * direction
        residual = residual - step * image
        z = normal.scale * residual
        power, previous = float(residual @ z), power
        direction = z + (power / previous) * direction
    return x


def _shares_given_own(
    units: Matrix, slopes: Matrix, laws: Matrix, own: Vector, shares: Matrix, evenly: Matrix
) -> Matrix:
    """Minimise |R - S diag(d) + (S diag(d) - R) A' U'|^2 over U, then restore A U = I."""
    surplus = units * own - slopes
    totals = surplus @ laws.T
    matrix = totals.T @ totals
    ridge = 1e-6 * max(float(np.trace(matrix)), 1e-300)
    matrix = matrix + ridge * np.eye(matrix.shape[0])
    free = np.linalg.solve(matrix, totals.T @ surplus + ridge * shares.T).T
    restored: Matrix = free + evenly @ (np.eye(laws.shape[0]) - laws @ free)
    return restored
