"""Answers at their bounds: the model predicts a latent response z, and what the followers show is z moved into its box.

With one conservation law a'y = b the surplus that clipping makes is shared out again, as a multiplier does in the
followers' own optimality conditions:

    y = clip(z - mu u, lower, upper)    with mu such that a'y = b        (u: the shares of the law, a'u = 1)

Answers at a bound are censored: they say only that z, which is smooth, is there or beyond. For one entry of y let
theta hold how far z is beyond the bound at each censored point, the centre among them. The slopes of the entry are
r = r_0 + D theta, and the most likely theta under the model r ~ N(prior, K) solves

    D' K^-1 D theta = -D' K^-1 (r_0 - prior),        then theta is cut to the side where the bound is

which is the mean of the process at the censored points given the free ones. All entries share K^-1. Only the points
nearest to the centre are solved for; farther ones get what the linear prior says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpotri

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.history import Geometry, Indices

#: How far beyond its bound an entry of the centre is assumed to be, as a share of the nearest free answers.
_HOPE = 0.1
_RIDGE = 1e-9
_NEAREST = 40


@dataclass(frozen=True, slots=True, eq=False)
class ConservedSum:
    """A conserved sum a'y = total, with the shares u >= 0 in which the followers make up for a change."""

    coefficients: Vector
    shares: Vector
    total: float

    def excess(self, y: Vector) -> float:
        """Return by how much a'y exceeds the total."""
        return float(self.coefficients @ y) - self.total

    def slope(self, free: Vector) -> float:
        """Return by how much a'y falls as the multiplier mu grows, where each entry moves as ``free`` says."""
        return float((self.coefficients * self.shares) @ free)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The box of the answers, and the law that holds inside it (None if there is none).

    ``rounding`` > 0 rounds the corners off, (z + sqrt(z^2 + r^2))/2 for max(z, 0), so that a smooth minimiser gets
    past them.
    """

    lower: Vector
    upper: Vector
    law: ConservedSum | None = None
    rounding: float = 0.0
    open_below: bool = field(init=False, repr=False)
    open_above: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "open_below", bool(np.isneginf(self.lower).all()))
        object.__setattr__(self, "open_above", bool(np.isposinf(self.upper).all()))

    def clip(self, z: Vector) -> tuple[Vector, Vector]:
        """Return z moved into the box, entry by entry, and the derivative of each entry."""
        if self.open_below and self.open_above:
            return z, np.ones_like(z)
        if self.rounding == 0.0:
            clipped: Vector = np.minimum(np.maximum(z, self.lower), self.upper)
            return clipped, (clipped == z).astype(np.float64)
        y, slope = _rounded(z, self.lower, self.rounding)
        if self.open_above:
            return y, slope
        down, back = _rounded(-y, -self.upper, self.rounding)
        return -down, slope * back

    def show(self, z: Vector) -> tuple[Vector, Vector]:
        """Return what the followers show for the latent z, and how freely each entry can move (0 to 1)."""
        y, free = self.clip(z)
        law = self.law
        if law is None or (self.rounding == 0.0 and bool(free.all())):
            return y, free
        moved = z
        for _ in range(12):  # Newton's method on a piecewise linear monotone function ends after few pieces
            gap, slope = law.excess(y), law.slope(free)
            if abs(gap) <= 1e-12 * abs(law.total) or slope <= 1e-12:
                break
            moved = moved - (gap / slope) * law.shares
            y, free = self.clip(moved)
        return y, free

    def pull(self, g: Vector, free: Vector) -> Vector:
        """Return the transposed derivative of ``show`` times g, or each row of it, where ``free`` came from it."""
        inner: Vector = free * g
        law = self.law
        if law is None or bool((free == 1.0).all()):
            return inner
        slope = law.slope(free)
        if slope <= 1e-12:
            return inner
        along = inner @ law.shares / slope
        pulled: Vector = inner - along[..., None] * (free * law.coefficients)
        return pulled

    def touched(self, answers: Matrix) -> bool:
        """Tell whether any answer lies at a bound."""
        below = not self.open_below and bool((answers <= self.lower).any())
        return below or (not self.open_above and bool((answers >= self.upper).any()))


def _rounded(z: Vector, lower: Vector, rounding: float) -> tuple[Vector, Vector]:
    """Return max(z, lower) with its corner rounded off, and its derivative; an open side stays as it is."""
    closed = lower > -np.inf
    if closed.all():
        offset = z - lower
        root = np.sqrt(offset * offset + rounding**2)
        return lower + 0.5 * (offset + root), 0.5 + 0.5 * (offset / root)
    offset = np.where(closed, z - np.where(closed, lower, 0.0), 0.0)
    root = np.sqrt(offset**2 + rounding**2)
    y = np.where(closed, np.where(closed, lower, 0.0) + 0.5 * (offset + root), z)
    return y, np.where(closed, 0.5 * (1.0 + offset / root), 1.0)


def imputed(
    bounds: Bounds, answers: Matrix, centre: Vector, predicted: Matrix, lengths: Vector
) -> tuple[Matrix, Vector]:
    """Return latent answers: those at a bound are replaced by what the linear prior predicts beyond it.

    ``predicted`` holds the predicted changes from the centre. A centre entry at its bound gets the latent value
    that the free entries of the other answers imply, the nearer ones counting more; but at least a share of the
    way to those answers beyond the bound. A corner that the model puts exactly at the centre would never be tried,
    and an answer at the bound cannot contradict it; this way every step towards it halves the doubt.
    """
    low, high = answers <= bounds.lower, answers >= bounds.upper
    centre_low, centre_high = centre <= bounds.lower, centre >= bounds.upper
    latent_centre = centre
    held = centre_low | centre_high
    if held.any():
        weight = np.where(low | high, 0.0, 1.0 / lengths[:, None] ** 2)
        total = weight.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)
        implied = np.where(total > 0, ((answers - predicted) * weight).sum(axis=0) / safe, centre)
        free_answer = np.where(total > 0, (answers * weight).sum(axis=0) / safe, float(np.abs(centre).mean()))
        inside = _HOPE * np.abs(free_answer - centre)
        latent_centre = np.where(centre_low, np.minimum(implied, bounds.lower - inside), centre)
        latent_centre = np.where(centre_high, np.maximum(implied, bounds.upper + inside), latent_centre)
    expected = latent_centre + predicted
    latent = np.where(low, np.minimum(expected, bounds.lower), answers)
    latent = np.where(high, np.maximum(expected, bounds.upper), latent)
    return latent, latent_centre


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
    precision: Matrix, from_centre: Vector, pull: Vector, inverse: Vector, rows: Indices, centre_held: bool
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
