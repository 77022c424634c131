"""How smooth the response may be: the correlations of the process, from kinks to quadratics.

Seen from the centre, two points with offsets o, o' have the covariance  o.o' + t^2 P(o, o')  in the process part:

    P = l^2 [m(|o - o'|/l) - m(|o|/l) - m(|o'|/l) + 1]     for a correlation m
    P = (o.o')^2 / 2                                       for quadratics of least Frobenius norm
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from pzos.base.types import Matrix, Vector

_ROOT3, _ROOT5 = float(np.sqrt(3.0)), float(np.sqrt(5.0))


class Kernel(Enum):
    """A kind of smoothness, roughest first."""

    KINKED = "once differentiable (Matern 3/2)"
    CURVED = "twice differentiable (Matern 5/2)"
    SMOOTH = "infinitely smooth (squared exponential)"
    QUADRATIC = "quadratic, of least Frobenius norm"

    def correlation(self, u: Matrix) -> Matrix:
        """Return m(u) for distances in units of the length."""
        if self is Kernel.KINKED:
            scaled = _ROOT3 * u
            return (1.0 + scaled) * np.exp(-scaled)
        if self is Kernel.CURVED:
            scaled = _ROOT5 * u
            return (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
        return np.exp(-0.5 * u * u)

    def steepness(self, u: Matrix) -> Matrix:
        """Return -m'(u)/u, so that the gradient of m(|x - z|/l) is -steepness (x - z)/l^2."""
        if self is Kernel.KINKED:
            return 3.0 * np.exp(-_ROOT3 * u)
        if self is Kernel.CURVED:
            scaled = _ROOT5 * u
            return (5.0 / 3.0) * (1.0 + scaled) * np.exp(-scaled)
        return np.exp(-0.5 * u * u)

    def correlation_and_steepness(self, u: Matrix) -> tuple[Matrix, Matrix]:
        """Return both with one exponential, bit for bit."""
        if self is Kernel.KINKED:
            scaled = _ROOT3 * u
            decay = np.exp(-scaled)
            return (1.0 + scaled) * decay, 3.0 * decay
        if self is Kernel.CURVED:
            scaled = _ROOT5 * u
            decay, linear = np.exp(-scaled), 1.0 + scaled
            return (linear + scaled * scaled / 3.0) * decay, (5.0 / 3.0) * linear * decay
        decay = np.exp(-0.5 * u * u)
        return decay, decay.copy()

    def covariance(self, length: float, lengths: Vector, distances: Matrix, inner: Matrix) -> Matrix:
        """Return P for all pairs of points, given their distances from the centre, from each other, and o.o'."""
        if self is Kernel.QUADRATIC:
            return 0.5 * inner * inner
        own = self.correlation(lengths / length)
        process = self.correlation(distances / length)
        process -= own[:, None]
        process -= own
        process += 1.0
        process *= length * length
        return process
