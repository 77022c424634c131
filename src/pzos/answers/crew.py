"""Who answers the queries of a run, and how many of them at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pzos.base.checks import shown, whole
from pzos.base.errors import InvalidInput

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: What a number of workers must be.
COUNT = whole(1, "try workers=8, or leave it out").or_none()
#: Where executors say how many they are: ours, pzos.Workers, and those of the standard library.
_NAMES = ("size", "count", "_max_workers")


class Crew(NamedTuple):
    """An executor, None to answer here, and how many queries it may work on at a time: a cluster grows and shrinks."""

    executor: Executor | None
    size: Callable[[], int]


@contextlib.contextmanager
def crew_of(workers: int | None, executor: Executor | None, timeout: float | None = None) -> Iterator[Crew]:
    """Yield the executor that was handed over, or that many worker processes, which end with the block."""
    if executor is None and workers is not None:
        from pzos.answers.workers import Workers

        with Workers(workers, timeout=timeout) as own:
            yield Crew(own, lambda: own.count)
    elif executor is None:
        yield Crew(None, lambda: 1)
    else:
        yield Crew(executor, lambda: size_of(executor) if workers is None else workers)


def size_of(executor: Executor) -> int:
    """Return how many workers the executor has now."""
    for name in _NAMES:
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    raise InvalidInput(
        f"executor = {shown(executor)}: does not tell how many workers it has: expected to be told; add workers=8"
    )
