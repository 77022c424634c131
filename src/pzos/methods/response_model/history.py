"""Every answer received so far, and what the points of a history look like from one of them.

A history is a value: repeated queries are averaged and counted. Seen from a centre its points have a geometry, which
with three scales gives the covariance of their answers under the response model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.kernels import Kernel

_JITTER = 1e-8
#: Jumps are looked for in so many of the latest answers, and of their entries.
_RECENT = 64
_ROUNDING = 1e-9
#: Of the mean spread of repeated answers: an entry with less repeats itself.
_REPEATED = 1e-6
#: Entries that vary within this factor have one unit. Less than this share of the most is next to nothing, and less
#: than this one, or than this share of the entry itself, is rounding.
_ALIKE, _NEGLIGIBLE, _ROUNDED, LAST_DIGITS = 16.0, 1e-6, 1e-11, 1e-12


Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Points (rows), mean answers (rows), how often each was asked, and the spread among repeated answers.

    ``spread`` sums the squared deviations of repeated answers, entry by entry, over ``freedom`` repeats. Distances
    are measured in ``sizes``, what a typical move of each decision is, and noise, steps and slopes of the answers in
    ``units``, one for each entry, which :func:`typical_units` finds. ``times`` counts the answers before each (the mean
    for repeated ones; rows in the order of their answers unless told), ``now`` is the time of the next.
    """

    points: Matrix
    answers: Matrix
    repeats: Vector
    sizes: Vector
    spread: Vector = field(default_factory=lambda: np.zeros(0))
    freedom: int = 0
    times: Vector = field(default_factory=lambda: np.zeros(0))
    now: int = 0
    units: Vector = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.spread.size == 0:
            object.__setattr__(self, "spread", np.zeros(self.answers.shape[1]))
        if self.units.size == 0:
            object.__setattr__(self, "units", np.ones(self.answers.shape[1]))
        if self.times.size == 0:
            object.__setattr__(self, "times", np.arange(self.count, dtype=np.float64))
            object.__setattr__(self, "now", self.count)

    @property
    def count(self) -> int:
        """Return the number of different points."""
        return int(self.points.shape[0])

    @property
    def forgot(self) -> bool:
        """Tell whether an answer was taken that is here no longer: it was trimmed, or proved wrong."""
        return self.now > float(self.repeats.sum())

    @property
    def variance(self) -> float:
        """Return the variance of one entry of one answer that has noise, from repeated queries; NaN without any."""
        return float(self._spread_in_units[self.noisy].mean()) / self.freedom if self.freedom else float("nan")

    @property
    def varied(self) -> float:
        """Return the variance of an entry among all answers, in units: the mean over the entries."""
        return float(np.mean(np.var(self.answers / self.units, axis=0)))

    @property
    def _spread_in_units(self) -> Vector:
        return self.spread / self.units**2

    @property
    def noisy(self) -> Flags:
        """Tell which entries have noise, if any have: those that never differed where others did have none.

        Of counts or rounded answers, noise may give the same one twice: if one such entry has noise, all of them do.
        """
        spread = self._spread_in_units
        noisy: Flags = spread >= _REPEATED * spread.mean()
        if noisy.all():
            return noisy
        ties, _ = _inner_ties(np.sort(self.answers[-_RECENT:], axis=0))
        tied = np.flatnonzero(ties.any(axis=0))
        if noisy[tied].any():
            noisy[tied] = True
        return noisy

    def jumpiness(self) -> float:
        """Return the variance of one entry within the steps in which answers move, 0 where they move freely.

        What is continuous does not take one value twice inside its range. Where answers do (half of those that move at
        all: some may stay where they are for a while), they are rounded, whole numbers or corners of polyhedra, and
        move by a quantum q: uniform within it, a variance of q^2/12.
        """
        rows = np.sort(self.answers[-_RECENT:, :_RECENT] / self.units[:_RECENT], axis=0)
        ties, inside = _inner_ties(rows)
        moving = rows[-1] > rows[0]
        tied = np.count_nonzero(ties.any(axis=0)) >= 0.5 * np.count_nonzero(moving)
        if self.count < 4 or not tied or np.count_nonzero(ties) <= 0.1 * np.count_nonzero(inside):
            return 0.0
        rises = np.diff(rows, axis=0)
        positive = np.where(rises > 0.0, rises, np.inf).min(axis=0)
        quanta = positive[np.isfinite(positive)]
        return float(np.mean(quanta**2)) / 12.0 if quanta.size else 0.0

    def index_of(self, x: Vector) -> int | None:
        """Return the row that holds exactly x, if any."""
        same = np.flatnonzero((self.points == x).all(axis=1))
        return int(same[0]) if same.size else None

    def append(self, x: Vector, y: Vector) -> History:
        """Return the history with one more answer."""
        row = self.index_of(x)
        if row is None:
            return replace(
                self,
                points=np.concatenate([self.points, x[None]]),
                answers=np.concatenate([self.answers, y[None]]),
                repeats=np.append(self.repeats, 1.0),
                times=np.append(self.times, float(self.now)),
                now=self.now + 1,
            )
        answers, repeats, times = self.answers.copy(), self.repeats.copy(), self.times.copy()
        before = repeats[row]
        change = y - answers[row]
        repeats[row] = before + 1.0
        answers[row] += change / repeats[row]
        times[row] += (self.now - times[row]) / repeats[row]
        spread = self.spread + change * change * (before / (before + 1.0))
        freedom, now = self.freedom + 1, self.now + 1
        return replace(self, answers=answers, repeats=repeats, spread=spread, freedom=freedom, times=times, now=now)

    def rises(self, centre: int) -> tuple[Vector, Vector]:
        """Return the mean squared change of the answers from row ``centre`` to every other, and their distances."""
        others = np.delete(np.arange(self.count), centre)
        offsets = (self.points[others] - self.points[centre]) / self.sizes
        changes = (self.answers[others] - self.answers[centre]) / self.units
        return np.mean(changes * changes, axis=1), np.sqrt(np.einsum("ij,ij->i", offsets, offsets))

    def steepest(self, centre: int) -> float:
        """Return the largest root mean square change of the answers from row ``centre`` to another, per distance."""
        squared, distances = self.rises(centre)
        return float(np.max(np.sqrt(squared) / distances, initial=0.0))

    def steepness(self, centre: int, variance: float) -> float:
        """Return the root mean square, over the entries of y, of the slope of the response: of the farther half.

        A slope seen along one of d directions is a share 1/d of the squared whole; noise of this variance is taken off.
        """
        squared, distances = self.rises(centre)
        if distances.size == 0:
            return 0.0
        far = distances >= np.median(distances)
        seen = float(np.median((squared[far] - 2.0 * variance) / distances[far] ** 2))
        return float(np.sqrt(max(seen, 0.0) * self.sizes.size))

    def replaced(self, row: int, y: Vector) -> History:
        """Return the history with another answer in one row: the one that was there was wrong."""
        answers, times = self.answers.copy(), self.times.copy()
        answers[row], times[row] = y, self.now
        return replace(self, answers=answers, times=times, now=self.now + 1)

    def part(self, rows: Indices | Sequence[int]) -> History:
        """Return the history of these rows alone."""
        points, answers, repeats = self.points[rows], self.answers[rows], self.repeats[rows]
        return replace(self, points=points, answers=answers, repeats=repeats, times=self.times[rows])

    def thinned(self, first: int, apart: float) -> History:
        """Return a part of the history, no two points of it closer than ``apart``, with row ``first`` as row 0."""
        kept = [first]
        for row in range(self.count):
            offsets = np.abs(self.points[kept] - self.points[row]) / self.sizes
            if float(offsets.max(axis=1).min()) > apart:
                kept.append(row)
        return self.part(kept)

    def nearest(self, centre: int, limit: int) -> Indices:
        """Return the rows of the ``limit`` points nearest to row ``centre``, without it, oldest first."""
        offsets = (self.points - self.points[centre]) / self.sizes
        squared = np.einsum("ij,ij->i", offsets, offsets)
        squared[centre] = np.inf
        rows: Indices = np.arange(squared.size)
        if squared.size - 1 > limit:
            rows = np.sort(np.argpartition(squared, limit)[:limit])
        kept: Indices = rows[rows != centre]
        return kept

    def around(self, centre: int, limit: int) -> Indices:
        """Return row ``centre`` and the rows of the points nearest to it, ``limit`` in all, in order."""
        rows: Indices = np.sort(np.append(self.nearest(centre, limit - 1), centre))
        return rows

    def trimmed(self, centre: int, limit: int) -> tuple[History, int]:
        """Return the history without its farthest points, ``limit`` at most, and the new row of the centre."""
        if self.count <= limit:
            return self, centre
        rows = self.around(centre, limit)
        return self.part(rows), int(np.searchsorted(rows, centre))

    def seen_from(self, centre: int, limit: int) -> tuple[Geometry, Matrix]:
        """Return the geometry of the ``limit`` points nearest to row ``centre``, and the slopes (y_j - y_c)/d_j."""
        return _seen_from(self, centre, limit)


def typical_units(answers: Matrix, pull: Vector) -> Vector:
    """Return the units in which noise, steps and slopes of each entry are comparable; all 1 where they are anyway.

    Euros, people and shares of one simulator differ by many orders, and what is noise in one is nothing in another. By
    how much an entry varies tells its unit, to a power of four, so that one answer more hardly ever changes it. Entries
    that hardly vary, nor matter to f by its slopes ``pull``, are measured like the one that varies most, and so are
    those that differ in their last digits alone: what a solver rounds is no noise.
    """
    varied = answers.std(axis=0)
    most, worth = float(varied.max(initial=0.0)), np.abs(pull) * varied
    tells = (varied > _NEGLIGIBLE * most) | (worth > _NEGLIGIBLE * worth.max(initial=0.0))
    tells &= (varied > _ROUNDED * most) & (varied > LAST_DIGITS * np.abs(answers).max(axis=0))
    if not tells.any() or most <= _ALIKE * float(varied[tells].min()):
        return np.ones(answers.shape[1])
    units: Vector = 4.0 ** np.round(np.log(np.where(tells, varied, most)) / np.log(4.0))
    return units


def _inner_ties(rows: Matrix) -> tuple[Flags, Flags]:
    """Tell which answers, sorted entry by entry, equal the one before inside their range, and which lie inside it."""
    edge = _ROUNDING * (rows[-1] - rows[0])  # at a bound, answers may differ by what a solver rounds
    inside: Flags = (rows[1:] > rows[0] + edge) & (rows[1:] < rows[-1] - edge)
    return (np.diff(rows, axis=0) == 0.0) & inside, inside


@lru_cache(maxsize=2)  # every structure, and the scales, are fitted to the same view
def _seen_from(history: History, centre: int, limit: int) -> tuple[Geometry, Matrix]:
    rows = history.nearest(centre, limit)
    offsets = (history.points[rows] - history.points[centre]) / history.sizes
    times = history.times[rows] - history.times[centre]
    now = float(history.now - history.times[centre])
    seen = geometry(offsets, history.repeats[rows], history.repeats[centre], history.sizes, times, now)
    return seen, (history.answers[rows] - history.answers[centre]) / seen.lengths[:, None]


def first(x: Vector, y: Vector, sizes: Vector | None = None) -> History:
    """Return the history of a single answer."""
    return History(x[None].copy(), y[None].copy(), np.ones(1), np.ones(x.size) if sizes is None else sizes)


@dataclass(frozen=True, slots=True)
class Scales:
    """Length, weight and noise of the process, fitted by marginal likelihood, and its kind of smoothness.

    All are relative to the linear part, whose slopes have unit variance before the common scale is profiled out.
    ``variance`` is that of the noise in one entry of one answer, in its unit. All answers drift together, a random walk
    in time: ``drift`` is what its variance grows by from query to query, ``drifting`` the same in units of the answers.
    """

    length: float = 1.0
    weight: float = 1.0
    noise: float = 0.0
    kernel: Kernel = Kernel.KINKED
    variance: float = 0.0
    drift: float = 0.0
    drifting: float = 0.0

    @property
    def untold(self) -> float:
        """Return the variance of what the answers before do not tell of an entry of the next one: noise, and drift."""
        return self.variance + self.drifting


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """Offsets x_j - c from the centre in units of ``sizes``, their lengths d_j, unit rows s_j and pairwise distances.

    ``shares`` is 1/(number of answers averaged) at each point, ``centre_share`` the same at the centre. ``times`` are
    those of the answers, and ``now`` of the next, after that of the centre.
    """

    offsets: Matrix
    lengths: Vector
    units: Matrix
    gram: Matrix
    distances: Matrix
    shares: Vector
    centre_share: float
    sizes: Vector
    times: Vector
    now: float

    @property
    def count(self) -> int:
        """Return the number of points besides the centre."""
        return int(self.lengths.size)

    def covariance(self, scales: Scales) -> Matrix:
        """Return K, the covariance of the slopes r_j = (y_j - y_c)/d_j up to the common scale (recipe 3b)."""
        K: Matrix = self.covariances([scales])[0]
        return K

    def covariances(self, candidates: Sequence[Scales]) -> Matrix:
        """Return K for each of the scales; those that share kernel and length share most of the work."""
        d = self.lengths
        between = d[:, None] * d
        K, processes = np.empty((len(candidates), d.size, d.size)), dict[tuple[Kernel, float], Matrix]()
        for row, scales in zip(K, candidates, strict=True):
            size, kind = scales.weight * scales.length, (scales.kernel, scales.length)
            if size > 0.0 and kind not in processes:
                process = scales.kernel.covariance(scales.length, d, self.distances, self.gram * between)
                process /= between
                processes[kind] = process
            if size > 0.0:
                np.multiply(processes[kind], scales.weight**2, out=row)
                row += self.gram
            else:
                row[...] = self.gram
            if scales.noise > 0.0:
                row += (scales.noise * self.centre_share) / between
            if scales.drift > 0.0:
                row += scales.drift * walked(self.times[:, None], self.times) / between
            diagonal = np.einsum("ii->i", row)
            diagonal += scales.noise * self.shares / d**2 + _JITTER + 1e-14 * (size / d) ** 2
        return K


def walked(times: Vector, others: Vector) -> Matrix:
    """Return the covariance of a random walk of unit steps between two times, from where it is at time 0."""
    shared: Matrix = 0.5 * (np.abs(times) + np.abs(others) - np.abs(times - others))
    return shared


def geometry(
    offsets: Matrix,
    repeats: Vector,
    centre_repeats: float,
    sizes: Vector,
    times: Vector | None = None,
    now: float = 0.0,
) -> Geometry:
    """Measure points, none of them the centre, by their offsets from it; without ``times`` all are told at once."""
    lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
    units = offsets / lengths[:, None]
    gram = units @ units.T
    squared = lengths[:, None] ** 2 + lengths**2 - 2.0 * gram * (lengths[:, None] * lengths)
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    times = np.zeros(lengths.size) if times is None else times
    return Geometry(
        offsets, lengths, units, gram, np.sqrt(squared), 1.0 / repeats, 1.0 / centre_repeats, sizes, times, now
    )
