"""Every answer received so far, and what the points of a history look like from one of them.

A history is a value: repeated queries are averaged and counted. Seen from a centre its points have a geometry, which
with three scales gives the covariance of their answers under the response model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector

ROOT3 = float(np.sqrt(3.0))
_JITTER = 1e-8


Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Points (rows), mean answers (rows), how often each was asked, and the spread among repeated answers.

    ``spread`` sums the squared deviations of repeated answers, over ``freedom`` degrees of freedom per entry.
    """

    points: Matrix
    answers: Matrix
    repeats: Vector
    spread: float = 0.0
    freedom: int = 0

    @property
    def count(self) -> int:
        """Return the number of different points."""
        return int(self.points.shape[0])

    @property
    def variance(self) -> float:
        """Return the variance of one entry of one answer, from repeated queries; NaN without any."""
        return self.spread / self.freedom if self.freedom else float("nan")

    def index_of(self, x: Vector) -> int | None:
        """Return the row that holds exactly x, if any."""
        same = np.flatnonzero((self.points == x).all(axis=1))
        return int(same[0]) if same.size else None

    def append(self, x: Vector, y: Vector) -> History:
        """Return the history with one more answer."""
        row = self.index_of(x)
        if row is None:
            return History(
                np.concatenate([self.points, x[None]]),
                np.concatenate([self.answers, y[None]]),
                np.append(self.repeats, 1.0),
                self.spread,
                self.freedom,
            )
        answers, repeats = self.answers.copy(), self.repeats.copy()
        before = repeats[row]
        change = y - answers[row]
        repeats[row] = before + 1.0
        answers[row] += change / repeats[row]
        spread = self.spread + float(np.einsum("i,i->", change, change)) * before / (before + 1.0)
        return History(self.points, answers, repeats, spread, self.freedom + y.size)

    def nearest(self, centre: int, limit: int) -> Indices:
        """Return the rows of the ``limit`` points nearest to row ``centre``, without it, oldest first."""
        offsets = self.points - self.points[centre]
        squared = np.einsum("ij,ij->i", offsets, offsets)
        squared[centre] = np.inf
        rows: Indices = np.arange(squared.size)
        if squared.size - 1 > limit:
            rows = np.sort(np.argpartition(squared, limit)[:limit])
        kept: Indices = rows[rows != centre]
        return kept

    def trimmed(self, centre: int, limit: int) -> tuple[History, int]:
        """Return the history without its farthest points, ``limit`` at most, and the new row of the centre."""
        if self.count <= limit:
            return self, centre
        rows = np.sort(np.append(self.nearest(centre, limit - 1), centre))
        kept = History(self.points[rows], self.answers[rows], self.repeats[rows], self.spread, self.freedom)
        return kept, int(np.searchsorted(rows, centre))


def first(x: Vector, y: Vector) -> History:
    """Return the history of a single answer."""
    return History(x[None].copy(), y[None].copy(), np.ones(1))


def matern(u: Matrix) -> Matrix:
    """Return the Matern-3/2 correlation m(u) = (1 + sqrt3 u) exp(-sqrt3 u)."""
    scaled = ROOT3 * u
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
