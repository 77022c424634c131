"""The points of a history seen from a centre, and the covariance of their answers under the response model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.base.types import Matrix, Vector

_ROOT3 = float(np.sqrt(3.0))
_JITTER = 1e-8


def matern(u: Matrix) -> Matrix:
    """Return the Matern-3/2 correlation m(u) = (1 + sqrt3 u) exp(-sqrt3 u)."""
    scaled = _ROOT3 * u
    return (1.0 + scaled) * np.exp(-scaled)


@dataclass(frozen=True, slots=True)
class Scales:
    """Length, weight and noise of the process: the three numbers fitted by marginal likelihood.

    All are relative to the linear part, whose slopes have unit variance before the common scale is profiled out.
    """

    length: float = 1.0
    weight: float = 1.0
    noise: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """Offsets x_j - c from the centre, their lengths d_j, unit rows s_j and pairwise distances.

    ``shares`` is 1/(number of answers averaged) at each point, ``centre_share`` the same at the centre.
    """

    offsets: Matrix
    lengths: Vector
    units: Matrix
    gram: Matrix
    distances: Matrix
    shares: Vector
    centre_share: float

    @property
    def count(self) -> int:
        """Return the number of points besides the centre."""
        return int(self.lengths.size)

    def covariance(self, scales: Scales) -> Matrix:
        """Return K, the covariance of the slopes r_j = (y_j - y_c)/d_j up to the common scale (recipe 3b)."""
        d = self.lengths
        K = self.gram.copy()
        size = scales.weight * scales.length
        if size > 0.0:
            own = matern(d / scales.length)
            process = matern(self.distances / scales.length)
            process -= own[:, None]
            process -= own
            process += 1.0
            process *= size * size
            process /= d[:, None] * d
            K += process
        if scales.noise > 0.0:
            K += scales.noise * self.centre_share / (d[:, None] * d)
        diagonal = np.einsum("ii->i", K)
        diagonal += scales.noise * self.shares / d**2 + _JITTER + 1e-14 * (size / d) ** 2
        return K


def geometry(centre: Vector, points: Matrix, repeats: Vector, centre_repeats: float) -> Geometry:
    """Measure ``points`` (none of them the centre) from the centre."""
    offsets = points - centre
    lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
    units = offsets / lengths[:, None]
    gram = units @ units.T
    squared = lengths[:, None] ** 2 + lengths**2 - 2.0 * gram * (lengths[:, None] * lengths)
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return Geometry(offsets, lengths, units, gram, np.sqrt(squared), 1.0 / repeats, 1.0 / centre_repeats)
