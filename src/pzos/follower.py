"""The followers' door: what users write (plain, batched or seeded callables) becomes one inner type.

Only the oracle calls a follower. User code is handed copies, so that it may write into its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from pzos.errors import Faults, FollowerFailure
from pzos.types import Matrix, Vector


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a follower may return instead of a bare array: y with the equilibrium gap it reached."""

    y: Any
    gap: float = float("nan")


@runtime_checkable
class Follower(Protocol):
    """The inner type. ``seeded`` followers are handed a generator; ``batched`` ones get all points at once."""

    @property
    def seeded(self) -> bool:
        """Whether ``respond`` wants one random generator per point."""
        ...

    @property
    def batched(self) -> bool:
        """Whether ``respond`` takes many points in one call; otherwise it is given one at a time."""
        ...

    def respond(self, points: Sequence[Vector], generators: Sequence[Generator] | None) -> list[Answer]:
        """Return one answer per point, in order."""
        ...


def as_answer(returned: Any) -> Answer:
    """Give a follower's return value the inner form."""
    return returned if isinstance(returned, Answer) else Answer(returned)


@dataclass(frozen=True, slots=True, eq=False)
class PlainFollower:
    """An ordinary function x -> y."""

    function: Callable[[Vector], Any]
    seeded: bool = False
    batched: bool = False

    def respond(self, points: Sequence[Vector], generators: Sequence[Generator] | None) -> list[Answer]:
        """Call the function point by point, each time on a copy."""
        return [as_answer(self.function(point.copy())) for point in points]


@dataclass(frozen=True, slots=True, eq=False)
class BatchedFollower:
    """A function X -> Y that answers a stack of rows in one call."""

    function: Callable[[Matrix], Any]
    seeded: bool = False
    batched: bool = True

    def respond(self, points: Sequence[Vector], generators: Sequence[Generator] | None) -> list[Answer]:
        """Call the function once on all points, stacked as rows."""
        returned = as_answer(self.function(np.stack(points)))
        rows = np.asarray(returned.y)
        if rows.ndim != 2 or rows.shape[0] != len(points):
            raise FollowerFailure(
                f"batched follower: returned shape {rows.shape} for {len(points)} queries: "
                "expected one row per query; return a 2-D array"
            )
        gaps = np.broadcast_to(np.asarray(returned.gap, dtype=np.float64), (len(points),))
        return [Answer(row, float(gap)) for row, gap in zip(rows, gaps, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class SeededFollower:
    """A noisy function (x, generator) -> y whose noise is a pure function of the query's address.

    With ``common`` all queries of a step share their random numbers, which lets noise cancel in differences.
    """

    function: Callable[[Vector, Generator], Any]
    common: bool = False
    seeded: bool = True
    batched: bool = False

    def respond(self, points: Sequence[Vector], generators: Sequence[Generator] | None) -> list[Answer]:
        """Call the function point by point with the generator of each query."""
        if generators is None:
            raise FollowerFailure("a seeded follower was asked without generators; ask it through an Oracle")
        pairs = zip(points, generators, strict=True)
        return [as_answer(self.function(point.copy(), generator)) for point, generator in pairs]


def batched(function: Callable[[Matrix], Any]) -> BatchedFollower:
    """Declare that ``function`` takes a stack of rows X and returns one row of Y for each.

    It is always called with the whole batch of a step, whatever the number of workers, because the last bits of
    a matrix product depend on its shape.
    """
    _require_callable("batched", function)
    return BatchedFollower(function)


def seeded(function: Callable[[Vector, Generator], Any], *, common: bool = False) -> SeededFollower:
    """Declare that ``function`` takes (x, generator), so that noise is repeatable.

    ``common=True`` gives all queries of one step the same random numbers (common random numbers).
    """
    _require_callable("seeded", function)
    return SeededFollower(function, common)


def as_follower(follower: Any) -> Follower:
    """Turn what a user wrote into the inner type."""
    if isinstance(follower, Follower):
        return follower
    _require_callable("follower", follower)
    return PlainFollower(follower)


def _require_callable(where: str, function: Any) -> None:
    faults = Faults(where)
    faults.check(
        callable(function), "follower", function, "a function x -> y", "pass the function itself, not its result"
    )
    faults.raise_if_any()
