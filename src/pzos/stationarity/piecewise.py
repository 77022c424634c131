"""Exact tools in one dimension: Goldstein and partial Goldstein intervals of piecewise smooth responses, any delta.

Both examples of the appendix (Sec. B.4) are here as well, ready to be solved, certified, checked and drawn.

On each smooth piece a function is expanded in Chebyshev polynomials until its coefficients vanish to rounding;
its range is then exact to about 1e-13, extremes inside included. A breakpoint on the edge of the ball counts
with the limits from both of its sides, as the Clarke subdifferential of a closed ball demands.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from pzos.base.checks import Faults, at_least
from pzos.base.errors import NotConverged
from pzos.base.figures import new_figure
from pzos.base.types import LeaderValue, Matrix, Vector, dot
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.stationarity.theory import Notion

_MOST_DEGREE = 1024


class Interval(NamedTuple):
    """A closed interval of the line."""

    low: float
    high: float

    @property
    def min_norm(self) -> float:
        """Return the smallest |g| in it."""
        return max(0.0, self.low, -self.high)

    def join(self, other: Interval) -> Interval:
        """Return the hull of both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


class Piece(NamedTuple):
    """A smooth piece of a response: y(x) and its derivative."""

    value: Callable[[float], Vector]
    slope: Callable[[float], Vector]


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseResponse:
    """A continuous response y* of one variable: ``pieces[k]`` holds between ``breaks[k - 1]`` and ``breaks[k]``."""

    breaks: tuple[float, ...]
    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        faults = Faults("PiecewiseResponse")
        ordered = all(a < b for a, b in zip(self.breaks, self.breaks[1:], strict=False))
        faults.check(ordered, "breaks", self.breaks, "increasing numbers", "sort them")
        enough = len(self.pieces) == len(self.breaks) + 1
        if faults.check(enough, "pieces", len(self.pieces), f"{len(self.breaks) + 1} pieces", "one between breaks"):
            for k, point in enumerate(self.breaks):
                left, right = self.pieces[k].value(point), self.pieces[k + 1].value(point)
                same = np.allclose(left, right, rtol=1e-12, atol=1e-12)
                faults.check(same, f"pieces[{k + 1}]", right, f"{left} at {point}", "a response is continuous")
        faults.raise_if_any()

    def __call__(self, x: Vector | float) -> Vector:
        """Return y*(x); this is a follower."""
        point = float(np.asarray(x).reshape(()))
        return np.asarray(self.pieces[bisect_left(self.breaks, point)].value(point), dtype=np.float64)

    def within(self, low: float, high: float) -> Iterator[tuple[Piece, float, float]]:
        """Yield the pieces that touch [low, high], each with the part it holds there (maybe one point)."""
        first, last = bisect_left(self.breaks, low), bisect_right(self.breaks, high)
        edges = (-np.inf, *self.breaks, np.inf)
        for k in range(first, last + 1):
            yield self.pieces[k], max(low, edges[k]), min(high, edges[k + 1])


def goldstein_interval(leader: Leader, response: PiecewiseResponse, x: float, delta: float) -> Interval:
    """Return the delta-Goldstein subdifferential of F(x) = f(x, y*(x)) at x, eq. (goldstein_full_F), d_x = 1."""

    def derivative(piece: Piece, z: float) -> float:
        return _chain(leader(np.array([z]), np.asarray(piece.value(z), dtype=np.float64)), piece, z)

    return _hull(response, x, delta, derivative)


def partial_goldstein_interval(leader: Leader, response: PiecewiseResponse, x: float, delta: float) -> Interval:
    """Return the delta-partial Goldstein subdifferential of F at x, eq. (goldstein_partial_F), d_x = 1.

    It is the image of the hull of Jacobians under a linear map, so the hull of the images.
    """
    here = leader(np.array([float(x)]), response(x))
    return _hull(response, x, delta, partial(_chain, here))


def _chain(here: LeaderValue, piece: Piece, z: float) -> float:
    return float(here.grad_x[0]) + dot(here.grad_y, np.asarray(piece.slope(z), dtype=np.float64))


_INTERVALS = {"full": goldstein_interval, "partial": partial_goldstein_interval}


def threshold(
    leader: Leader, response: PiecewiseResponse, x: float, notion: Notion, epsilon: float = 0.0, largest: float = 1e3
) -> float:
    """Return the smallest delta at which x is (delta, epsilon)-stationary, to 1e-12; infinity if above ``largest``.

    The subdifferentials grow with delta, so bisection finds it.
    """

    def holds(delta: float) -> bool:
        return _INTERVALS[notion](leader, response, x, delta).min_norm <= epsilon + 1e-13

    if not holds(largest):
        return float("inf")
    low, high = 0.0, largest
    while high - low > 1e-12 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _hull(response: PiecewiseResponse, x: float, delta: float, derivative: Callable[[Piece, float], float]) -> Interval:
    at_least(0.0, "zero or a positive number", "the radius of the ball").require("Goldstein interval", "delta", delta)
    ranges = [smooth_range(partial(derivative, p), a, b) for p, a, b in response.within(x - delta, x + delta)]
    return reduce(Interval.join, ranges)


def smooth_range(function: Callable[[float], float], low: float, high: float) -> Interval:
    """Return the range of a smooth function on [low, high]."""
    ends = [function(low), function(high)]
    if high <= low:
        return Interval(min(ends), max(ends))
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    degree = 8
    while degree <= _MOST_DEGREE:
        nodes = chebyshev.chebpts1(degree + 1)
        heights = np.array([function(middle + half * float(t)) for t in nodes])
        series = np.einsum("ji,j->i", chebyshev.chebvander(nodes, degree), heights) / (0.5 * (degree + 1))
        series[0] *= 0.5
        size = float(np.abs(series).max())
        if float(np.abs(series[-3:]).max()) <= 1e-14 * max(size, 1e-300):
            trimmed = chebyshev.chebtrim(series, 1e-15 * size)
            turns = chebyshev.chebroots(chebyshev.chebder(trimmed)) if trimmed.size > 2 else np.empty(0)
            inside = [float(t.real) for t in turns if abs(t.imag) < 1e-6 and abs(t.real) < 1.0]
            values = ends + [function(middle + half * t) for t in inside]
            return Interval(min(values), max(values))
        degree *= 2
    raise NotConverged(
        f"smooth_range: degree {_MOST_DEGREE} does not resolve the function on [{low:g}, {high:g}]: expected a smooth "
        "piece; add a break where it has a kink"
    )


# ---- the examples of the paper ----------------------------------------------------------------------------------


class Example(NamedTuple):
    """A one-dimensional leader-follower problem looked at in the point x = 0."""

    leader: Leader
    response: PiecewiseResponse
    name: str

    def problem(self) -> Problem:
        """Return it as a problem that can only be queried."""
        return Problem(self.leader, self.response, x0=np.zeros(1), name=self.name)

    def objective(self, x: float) -> float:
        """Return F(x) = f(x, y*(x))."""
        return self.leader.value(np.array([x]), self.response(x))

    def intervals(self, deltas: Vector, x: float = 0.0) -> Matrix:
        """Return rows (full low, full high, partial low, partial high), one per delta."""
        rows = [
            (*goldstein_interval(self.leader, self.response, x, float(delta)),
             *partial_goldstein_interval(self.leader, self.response, x, float(delta)))
            for delta in deltas
        ]  # fmt: skip
        return np.array(rows)


def _linear(*coefficients: tuple[float, float]) -> Piece:
    """Return the piece whose component i is a_i + b_i x."""
    constants, slopes = (np.array(column, dtype=np.float64) for column in zip(*coefficients, strict=True))
    return Piece(lambda x: constants + slopes * x, lambda x: slopes)


def full_not_partial() -> Example:
    """Return Example 1: f = (x - 1)^2 + y, y* = |x|. Goldstein stationary for delta >= 1/2, never partially so."""
    leader = leader_from_functions(
        lambda x, y: float((x[0] - 1.0) ** 2 + y[0]),
        lambda x, y: 2.0 * (x - 1.0),
        lambda x, y: np.ones(1),
        name="(x - 1)^2 + y",
    )
    response = PiecewiseResponse((0.0,), (_linear((0.0, -1.0)), _linear((0.0, 1.0))))
    return Example(leader, response, "F(x) = (x - 1)^2 + |x|")


def partial_not_full() -> Example:
    """Return Example 2: f = y_1 - y_2^2, y* = (|x|, |x - 1|). Partially stationary from delta = 1, fully from 3/2."""
    leader = leader_from_functions(
        lambda x, y: float(y[0] - y[1] ** 2),
        lambda x, y: np.zeros(1),
        lambda x, y: np.array([1.0, -2.0 * y[1]]),
        name="y_1 - y_2^2",
    )
    slopes = ((0.0, -1.0), (1.0, -1.0)), ((0.0, 1.0), (1.0, -1.0)), ((0.0, 1.0), (-1.0, 1.0))
    pieces = tuple(_linear(*components) for components in slopes)
    return Example(leader, PiecewiseResponse((0.0, 1.0), pieces), "F(x) = |x| - (x - 1)^2")


def draw(example: Example, deltas: Vector, path: str | Path | None = None) -> Any:
    """Draw F and both subdifferentials at 0 against delta; returns the matplotlib figure, written to ``path``."""
    figure, (left, right) = new_figure(9.0, 3.5, purpose="drawing an example", ncols=2)
    grid = np.linspace(-1.5, 2.5, 401)
    left.plot(grid, [example.objective(float(x)) for x in grid])
    left.plot([0.0], [example.objective(0.0)], "o", color="tab:red")
    left.set(xlabel="x", ylabel="F(x)", title=example.name)
    rows = example.intervals(deltas)
    right.fill_between(deltas, rows[:, 0], rows[:, 1], alpha=0.4, label="Goldstein")
    right.fill_between(deltas, rows[:, 2], rows[:, 3], alpha=0.4, label="partial Goldstein")
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set(xlabel="delta", ylabel="subdifferential at 0", title="contains 0 where x = 0 is stationary")
    right.legend()
    if path is not None:
        figure.savefig(path)
    return figure
