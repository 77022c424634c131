"""The followers' door: what users write (plain, batched or seeded callables) becomes one inner type.

Only the oracle calls a follower. User code is handed copies, so that it may write into its argument.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.random import Generator

from pzos.base.checks import Must
from pzos.base.errors import FollowerFailure, PzosError
from pzos.base.fingerprint import identify
from pzos.base.types import Matrix, Vector

A_FUNCTION = Must(callable, "a function x -> y", "pass the function itself, not its result")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a follower may return instead of a bare array: y with the equilibrium gap it reached.

    ``cached`` says that it was looked up, so that nobody was asked.
    """

    y: Any
    gap: Any = float("nan")
    cached: bool = False


class Follower(ABC):
    """The inner type. It answers one query at a time, or (``batched``) all queries of a step in one call.

    ``seeded`` followers are handed a generator per query, and with ``common`` the same one for a whole step.
    """

    __slots__ = ()
    batched: bool = False
    seeded: bool = False
    common: bool = False

    @abstractmethod
    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Return the answer at x: an :class:`Answer` or a bare vector."""

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Return one answer per point, in order; only batched followers do this in one call."""
        return [self.respond(point, None) for point in points]


A_FOLLOWER = A_FUNCTION._replace(holds=lambda value: callable(value) or isinstance(value, Follower))


@final
@dataclass(frozen=True, eq=False)
class PlainFollower(Follower):
    """An ordinary function x -> y."""

    function: Callable[[Vector], Any]

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Call the function on a copy of x."""
        return self.function(x.copy())


@dataclass(frozen=True, eq=False)
class BatchedFollower(Follower):
    """A function X -> Y that answers a stack of rows in one call."""

    function: Callable[[Matrix], Any]
    batched = True

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Ask for a stack of one row."""
        return self.respond_all([x])[0]

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Call the function once on all points, stacked as rows."""
        returned = self.function(np.array(points))
        answer = returned if isinstance(returned, Answer) else Answer(returned)
        rows = np.asarray(answer.y)
        if rows.ndim != 2 or rows.shape[0] != len(points):
            raise FollowerFailure(
                f"batched follower: returned shape {rows.shape} for {len(points)} queries: "
                "expected one row per query; return a 2-D array"
            )
        gaps = np.broadcast_to(np.asarray(answer.gap, dtype=np.float64), (len(points),))
        return [Answer(row, float(gap)) for row, gap in zip(rows, gaps, strict=True)]


@final
@dataclass(frozen=True, eq=False)
class SeededFollower(Follower):
    """A noisy function (x, generator) -> y whose noise is a pure function of the query's address."""

    function: Callable[[Vector, Generator], Any]
    common: bool = False
    seeded = True

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Call the function on a copy of x with the generator of the query."""
        if generator is None:
            raise FollowerFailure("a seeded follower was asked without a generator; ask it through an Oracle")
        return self.function(x.copy(), generator)


@final
@dataclass(frozen=True, eq=False)
class Respondent(BatchedFollower):
    """The follower of a game with a model, X -> (Y, gaps): each answer comes with its certificate as the gap.

    Each row is answered on its own inside, so the batch never shows in the bits of an answer.
    """

    function: Callable[[Matrix], tuple[Matrix, Vector]]

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Return one answer, with the gap it was certified to, per point."""
        rows, gaps = self.function(np.array(points))
        return [Answer(row, gap) for row, gap in zip(rows, gaps.tolist(), strict=True)]


def batched(function: Callable[[Matrix], Any]) -> BatchedFollower:
    """Declare that ``function`` takes a stack of rows X and returns one row of Y for each.

    It is called with the whole batch of a step, whatever the number of workers, because the last bits of a matrix
    product depend on its shape; where part of a batch was told by hand or saved from a damaged file, with the rest.
    """
    A_FUNCTION.require("batched", "follower", function)
    return BatchedFollower(function)


def seeded(function: Callable[[Vector, Generator], Any], *, common: bool = False) -> SeededFollower:
    """Declare that ``function`` takes (x, generator), so that noise is repeatable.

    ``common=True`` gives all queries of one step the same random numbers (common random numbers), which lets
    noise cancel in differences.
    """
    A_FUNCTION.require("seeded", "follower", function)
    return SeededFollower(function, common)


@final
@dataclass(frozen=True, eq=False)
class Nobody(Follower):
    """Stands where the followers are asked by someone else: by people, or by a program that drives the study."""

    remedy: str

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Say how to answer instead."""
        raise PzosError(self.remedy)


def identity(follower: Follower, name: str = "") -> dict[str, Any] | None:
    """Return what tells these followers from others, for a file; None for :class:`Nobody`.

    A given ``name`` is believed. Without one it is derived: of a function from its name, code and closure, of a program
    from its arguments (of paths the last part, because they differ between machines).
    """
    if isinstance(follower, Nobody):
        return None
    name = name or getattr(follower, "name", "")
    if isinstance(name, str) and name:
        return {"name": name}
    if hasattr(follower, "command"):
        return {"name": " ".join(Path(argument).name for argument in follower.command)}
    return {"kind": type(follower).__name__, **identify(getattr(follower, "function", follower))}


def written(followers: Mapping[str, Any] | None) -> str:
    """Return what :func:`identity` says in one word for a table: the name, and after an @ Python and code.

    >>> written({"name": "model:drivers", "code": "1f", "python": "3.12"})
    'model:drivers @3.12:1f'
    """
    if not followers or not followers.get("name"):
        return ""
    code = followers.get("code")
    return f"{followers['name']} @{followers.get('python', '')}:{code}" if code else str(followers["name"])


def name_of_followers(followers: Mapping[str, Any] | None) -> str:
    """Return the name alone; empty where nobody can tell."""
    return written(followers).partition(" @")[0]


def is_other_version(of_answer: str, followers: Mapping[str, Any] | None) -> bool:
    """Tell whether an answer is by followers of this name whose code was another; other Pythons cannot tell."""
    (python, _, code), (now_python, _, now_code) = (
        text.partition(" @")[2].partition(":") for text in (of_answer, written(followers))
    )
    return bool(code and now_code) and python == now_python and code != now_code


def as_follower(follower: Any) -> Follower:
    """Turn what a user wrote into the inner type."""
    A_FOLLOWER.require("follower", "follower", follower)
    return follower if isinstance(follower, Follower) else PlainFollower(follower)
