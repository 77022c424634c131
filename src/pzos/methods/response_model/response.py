"""A model of the followers' response that passes through every answer it was given (recipe 3b of the design notes).

    M(x) = y_c + nz sum_j A_j + B (x - c) + t^2 sum_j A_j P(x - c, x_j - c)

with A = K^-1 (R - S B_p') row by row divided by d_j, B = B_p + sum_j A_j (x_j - c)', K the covariance of the geometry
and P that of the process (:mod:`pzos.methods.response_model.kernels`). Where answers drift M is the response by now: a
constant more, dr sum_j A_j w_j with w_j the covariance of the random walk by now and at x_j. The weights of the answers
are shared by all entries of y, so every linear law A y = b that the answers obey, the model obeys too. No matrix of
size d_y by d_x is formed: memory is O(points (d_x + d_y)).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrs

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.curving import Curving
from pzos.methods.response_model.history import Geometry, Scales
from pzos.methods.response_model.kernels import Kernel
from pzos.methods.response_model.prior import LinearPrior

_NONE: Vector = np.zeros(0)


class _Covariances(NamedTuple):
    """Of the answer at c + s with every answer told, and what their gradients are made of.

    The gradient of sum_j w_j k_j is  sum_j w_j (1 + near_j) o_j - (sum_j w_j (near_j - around)) s.
    """

    values: Vector
    near: Vector
    around: float
    radial: bool

    def gradient(self, weights: Vector, offsets: Matrix, s: Vector) -> Vector:
        """Return the gradient of ``weights . values``, or of each row of weights, with respect to s."""
        if self.near.size == 0:
            plain: Vector = weights @ offsets
            return plain
        total: Vector = (weights * (1.0 + self.near)) @ offsets
        if self.radial:
            total -= (weights @ (self.near - self.around))[..., None] * s
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ResponseModel:
    """M around a centre; ``predict`` is M itself, ``clipped`` M within the bounds of the answers.

    ``variances`` are those of a unit slope in each entry of y, by which the spread is measured; ``factor`` is that of
    the covariance K of the answers, ``noisy`` is 1 for the entries of y that have noise, if any have, and else 0, and
    ``units`` are those in which noise is measured. With ``curving`` the process is that of answers on a curved scale,
    around ``anchor``, the answer at the centre.
    """

    centre: Vector
    base: Vector
    geometry: Geometry
    weights: Matrix
    scales: Scales
    prior: LinearPrior
    bounds: Bounds
    kinked: bool = False
    variances: Vector = field(default_factory=lambda: _NONE)
    factor: Matrix | None = field(default=None, repr=False)
    noisy: Vector = field(default_factory=lambda: _NONE, repr=False)
    curving: Curving | None = None
    anchor: Vector = field(default_factory=lambda: _NONE, repr=False)
    units: Vector | float = 1.0
    anchored: Vector = field(init=False, repr=False)
    squares: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # d_j^2 and m(d_j/l), the same at every x
        object.__setattr__(self, "squares", self.geometry.lengths**2)
        anchored = self.scales.kernel.correlation(self.geometry.lengths / self.scales.length)
        object.__setattr__(self, "anchored", anchored)

    def predict(self, x: Vector) -> Vector:
        """Return M(x), before the bounds are applied."""
        return self._straightened(self._latent(self._offset(x))[0])[0]

    def clipped(self, x: Vector) -> Vector:
        """Return M(x) moved into the bounds of the answers."""
        return self.bounds.show(self.predict(x))[0]

    def rounded(self, rounding: float) -> ResponseModel:
        """Return the model with the corners at the bounds rounded off."""
        return replace(self, bounds=replace(self.bounds, rounding=rounding))

    def at_many(self, points: Matrix) -> tuple[Matrix, Vector]:
        """Return the clipped M and the variance of the process (see ``spread``) at every row."""
        offsets = (points - self.centre) / self.geometry.sizes
        values = np.array([self._covariances(s).values for s in offsets])
        shown = self.base + self.prior.apply(offsets) + values @ self.weights
        variances = np.array([self._prior_variance(s)[0] for s in offsets])
        if self.factor is not None:
            white = solve_triangular(self.factor, (values / self.geometry.lengths).T, lower=True, check_finite=False)
            variances -= np.einsum("ij,ij->j", white, white)
        shown = self._straightened(shown)[0]
        return np.array([self.bounds.show(row)[0] for row in shown]), np.maximum(variances, 0.0)

    def deviation(self, x: Vector) -> float:
        """Return the root mean square, over the entries of y in their units, of how far an answer may be from M(x)."""
        if self.variances.size == 0:
            return float("inf")
        untold = self.scales.untold * float(self.noisy.mean())
        variances = self.variances_at(x) / np.square(self.units)
        return float(np.sqrt(max(self.spread(x)[0], 0.0) * np.mean(variances) + untold))

    @property
    def untold(self) -> Vector:
        """Return the variance of what the answers before do not tell of each entry of the next one."""
        variances: Vector = self.scales.untold * self.noisy * np.square(self.units)
        return variances

    def variances_at(self, x: Vector) -> Vector:
        """Return ``variances`` on the scale of the answers themselves, to first order."""
        if self.curving is None:
            return self.variances
        return self.variances * self._straightened(self._latent(self._offset(x))[0])[1] ** 2

    def response_and_pull(self, x: Vector) -> tuple[Vector, Pull]:
        """Return the clipped M(x), and the map g -> (dM/dx)' g there."""
        s = self._offset(x)
        latent, covariances = self._latent(s)
        raw, stretch = self._straightened(latent)
        shown, free = self.bounds.show(raw)
        return shown, Pull(self, s, free, covariances, stretch)

    def spread(self, x: Vector) -> tuple[float, Vector]:
        """Return the variance of the process at x in units of ``variances``, with its gradient; 0 at told answers."""
        s = self._offset(x)
        variance, gradient = self._prior_variance(s)
        if self.factor is None or self.geometry.count == 0:
            return variance, gradient / self.geometry.sizes
        covariances = self._covariances(s)
        scaled = covariances.values / self.geometry.lengths
        known = dpotrs(self.factor.T, scaled)[0]
        variance -= float(scaled @ known)
        if variance <= 0.0:
            return 0.0, np.zeros_like(s)
        gradient -= 2.0 * covariances.gradient(known / self.geometry.lengths, self.geometry.offsets, s)
        return variance, gradient / self.geometry.sizes

    def unknown_slopes(self, share: float) -> Matrix:
        """Return orthonormal directions (rows) along which at least ``share`` of the slope here is left unknown.

        The gradient of the process at the centre has the variance 1 - t^2 m''(0) in every direction before any answer.
        """
        geometry, scales, n = self.geometry, self.scales, self.centre.size
        if self.factor is None or geometry.count == 0:
            return np.eye(n)
        covariances, total = self._covariances(np.zeros(n)), 1.0
        near = covariances.near if covariances.radial else np.zeros(geometry.count)
        if scales.kernel is not Kernel.QUADRATIC:
            total += scales.weight**2 * float(scales.kernel.steepness(np.zeros(())))
        slopes = geometry.units * (1.0 + near)[:, None]
        white = solve_triangular(self.factor, slopes, lower=True, check_finite=False)
        known, directions = np.linalg.eigh(white.T @ white)
        unknown: Matrix = directions.T[known < (1.0 - share) * total]
        return unknown

    def _offset(self, x: Vector) -> Vector:
        offset: Vector = (x - self.centre) / self.geometry.sizes
        return offset

    def _latent(self, s: Vector) -> tuple[Vector, _Covariances]:
        covariances = self._covariances(s)
        return self.base + self.prior.apply(s) + covariances.values @ self.weights, covariances

    def _straightened(self, z: Matrix) -> tuple[Matrix, Matrix | float]:
        """Return latent answers on their own scale, and by how much each is stretched there."""
        return (z, 1.0) if self.curving is None else self.curving.shown(z, self.anchor)

    def _covariances(self, s: Vector) -> _Covariances:
        geometry, scales = self.geometry, self.scales
        inner = geometry.offsets @ s
        strength, length = scales.weight**2, scales.length
        if strength == 0.0:
            return _Covariances(inner, _NONE, 0.0, False)
        if scales.kernel is Kernel.QUADRATIC:
            return _Covariances(inner + (0.5 * strength) * inner**2, strength * inner, 0.0, False)
        scaled = np.zeros(inner.size + 1)  # distances from all points told, the centre last
        np.subtract(self.squares, 2.0 * inner, out=scaled[:-1])
        scaled += s @ s
        scaled = np.sqrt(np.maximum(scaled, 0.0, out=scaled), out=scaled)
        scaled /= length
        process, near = scales.kernel.correlation_and_steepness(scaled)
        values = process[:-1] + ((1.0 - process[-1]) - self.anchored)
        values *= strength * length**2
        values += inner
        near *= strength
        return _Covariances(values, near[:-1], float(near[-1]), True)

    def _prior_variance(self, s: Vector) -> tuple[float, Vector]:
        """Return the variance at c + s before any answer, and its gradient."""
        strength, length = self.scales.weight**2, self.scales.length
        squared = float(s @ s)
        variance, along = squared, 2.0
        if self.scales.kernel is Kernel.QUADRATIC:
            variance += 0.5 * strength * squared**2
            along += 2.0 * strength * squared
        elif strength > 0.0:
            at_centre, around = self.scales.kernel.correlation_and_steepness(np.array(np.sqrt(squared) / length))
            variance += 2.0 * strength * length**2 * (1.0 - float(at_centre))
            along += 2.0 * strength * float(around)
        return variance, along * s


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """The transposed Jacobian of the clipped model at one point."""

    model: ResponseModel
    offset: Vector
    free: Vector
    covariances: _Covariances
    stretch: Vector | float = 1.0

    def __call__(self, g: Vector) -> Vector:
        """Return (dM/dx)' g, or that of each row of g, the derivative of an entry at its bound being zero."""
        model = self.model
        g = model.bounds.pull(g, self.free) * self.stretch
        total: Vector = model.prior.pull(g) + self.covariances.gradient(
            (model.weights @ g.T).T, model.geometry.offsets, self.offset
        )
        return total / model.geometry.sizes
