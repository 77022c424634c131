"""A model of the followers' response that passes through every answer it was given (recipe 3b of the design notes).

    M(x) = y_c + nz sum_j A_j + B (x - c) + t^2 l^2 sum_j A_j [m(|x - x_j|/l) - m(|x - c|/l) - m(d_j/l) + 1]

with A = K^-1 (R - S B_p') row by row divided by d_j, B = B_p + sum_j A_j (x_j - c)', K the covariance of the geometry.
The weights of the answers are shared by all entries of y, so every linear law A y = b that the answers obey, the
model obeys too. No matrix of size d_y by d_x is formed: memory is O(points (d_x + d_y)).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.history import ROOT3, Geometry, Scales, matern
from pzos.methods.response_model.prior import LinearPrior

_NONE: Vector = np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class ResponseModel:
    """M around a centre; ``predict`` is M itself, ``clipped`` M within the bounds of the answers."""

    centre: Vector
    base: Vector
    geometry: Geometry
    weights: Matrix
    scales: Scales
    prior: LinearPrior
    bounds: Bounds
    kinked: bool = False
    anchored: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # m(d_j/l), the same at every x
        object.__setattr__(self, "anchored", matern(self.geometry.lengths / self.scales.length))

    def predict(self, x: Vector) -> Vector:
        """Return M(x), before the bounds are applied."""
        return self._evaluate(x - self.centre)[0]

    def clipped(self, x: Vector) -> Vector:
        """Return M(x) moved into the bounds of the answers."""
        return self.bounds.show(self.predict(x))[0]

    def rounded(self, rounding: float) -> ResponseModel:
        """Return the model with the corners at the bounds rounded off."""
        return replace(self, bounds=replace(self.bounds, rounding=rounding))

    def slope_size(self) -> float:
        """Return the root mean square, over the entries of y, of the slope of the linear part."""
        squared = 0.0
        if self.geometry.count > 0:
            gram = self.geometry.gram * (self.geometry.lengths[:, None] * self.geometry.lengths)
            squared = max(float(np.einsum("ij,ij->", self.weights, gram @ self.weights)), 0.0)
        if self.prior.own is not None:
            squared += float(self.prior.own @ self.prior.own)
        return float(np.sqrt(squared / self.base.size))

    def _evaluate(self, s: Vector) -> tuple[Vector, Vector, float]:
        """Return M(c + s), the decays exp(-sqrt3 |x - x_j|/l), and the decay at the centre."""
        geometry, scales = self.geometry, self.scales
        inner = geometry.offsets @ s
        size = scales.weight * scales.length
        basis = inner
        decays, at_centre = _NONE, 0.0
        if size > 0.0:
            squared = float(s @ s)
            distance = np.sqrt(np.maximum(geometry.lengths**2 - 2.0 * inner + squared, 0.0))
            scaled = (ROOT3 / scales.length) * distance
            decays = np.exp(-scaled)
            centre = ROOT3 / scales.length * np.sqrt(squared)
            at_centre = float(np.exp(-centre))
            process = (1.0 + scaled) * decays
            process += (1.0 - (1.0 + centre) * at_centre) - self.anchored
            basis = inner + size * size * process
        return self.base + self.prior.apply(s) + basis @ self.weights, decays, at_centre

    def response_and_pull(self, x: Vector) -> tuple[Vector, Pull]:
        """Return the clipped M(x), and the map g -> (dM/dx)' g there."""
        s = x - self.centre
        raw, decays, at_centre = self._evaluate(s)
        shown, free = self.bounds.show(raw)
        return shown, Pull(self, s, free, decays, at_centre)


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """The transposed Jacobian of the clipped model at one point."""

    model: ResponseModel
    offset: Vector
    free: Vector
    decays: Vector
    at_centre: float

    def __call__(self, g: Vector) -> Vector:
        """Return (dM/dx)' g, the derivative of an entry at its bound being zero."""
        model = self.model
        g = model.bounds.pull(g, self.free)
        geometry, scales = model.geometry, model.scales
        inner = model.weights @ g
        coefficients = inner
        pulled = model.prior.pull(g)
        strength = 3.0 * scales.weight**2
        if strength > 0.0:
            # d m(|x - z|/l)/dx = -3/l^2 exp(-sqrt3 |x - z|/l) (x - z); t^2 l^2 cancels l^-2.
            near = strength * self.decays * inner
            coefficients = inner + near
            pulled = pulled - (float(near.sum()) - strength * self.at_centre * float(inner.sum())) * self.offset
        total: Vector = pulled + coefficients @ geometry.offsets
        return total
