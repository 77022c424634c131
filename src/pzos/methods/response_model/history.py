"""Every answer received so far, as a value: repeated queries are averaged and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector

Rows = npt.NDArray[np.int64]


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

    def nearest(self, centre: int, limit: int) -> Rows:
        """Return the rows of the ``limit`` points nearest to row ``centre``, without it, oldest first."""
        offsets = self.points - self.points[centre]
        squared = np.einsum("ij,ij->i", offsets, offsets)
        squared[centre] = np.inf
        rows: Rows = np.arange(squared.size)
        if squared.size - 1 > limit:
            rows = np.sort(np.argpartition(squared, limit)[:limit])
        kept: Rows = rows[rows != centre]
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
