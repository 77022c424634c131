"""The only door to the followers, and the only place where queries are counted.

An oracle turns open queries into responses, in any order; the study gathers them by index. Serial, batched and
pooled answers have the same bits because every answer is a function of its query alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import numpy as np
from numpy.random import Generator

from pzos.errors import FollowerFailure
from pzos.follower import Answer, Follower, SeededFollower, as_follower
from pzos.keys import Keys, Role
from pzos.types import Query, Response, Vector


class Oracle:
    """Answers queries by calling the follower, here or on an executor.

    ``executor`` is any ``concurrent.futures.Executor``; a batched follower is sent there as one job, so that the
    shape of its computation does not depend on the number of workers. ``asked`` counts every query.
    """

    def __init__(self, follower: Any, *, seed: int = 0, executor: Executor | None = None) -> None:
        self.follower: Follower = as_follower(follower)
        self.keys = Keys(seed)
        self.executor = executor
        self.asked = 0

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        """Yield one response per query, in the order in which they arrive."""
        self.asked += len(queries)
        jobs = [list(queries)] if self.follower.batched else [[query] for query in queries]
        if self.executor is None:
            for job in jobs:
                yield from _respond(self.follower, job, self._generators(job))
        else:
            yield from self._pooled(self.executor, jobs)

    def _pooled(self, executor: Executor, jobs: Sequence[list[Query]]) -> Iterator[Response]:
        futures: list[Future[list[Response]]] = []
        try:
            futures = [executor.submit(_respond, self.follower, job, self._generators(job)) for job in jobs]
            for future in as_completed(futures):
                yield from future.result()
        finally:
            for future in futures:
                future.cancel()

    def _generators(self, job: Sequence[Query]) -> list[Generator] | None:
        if not self.follower.seeded:
            return None
        common = isinstance(self.follower, SeededFollower) and self.follower.common
        return [self.keys.generator(Role.NOISE, query.step, 0 if common else query.index) for query in job]


def _respond(follower: Follower, job: list[Query], generators: list[Generator] | None) -> list[Response]:
    """Have one job answered; runs here or on a worker."""
    start = time.perf_counter()
    try:
        answers = follower.respond([query.x for query in job], generators)
    except FollowerFailure:
        raise
    except Exception as error:
        where = ", ".join(f"{query.step}.{query.index}" for query in job)
        raise FollowerFailure(
            f"the follower failed on query {where} (step.index): {type(error).__name__}: {error}; "
            "call your follower by hand at that x to see why"
        ) from error
    seconds = (time.perf_counter() - start) / len(job)
    return [_response(query, answer, seconds) for query, answer in zip(job, answers, strict=True)]


def _response(query: Query, answer: Answer, seconds: float) -> Response:
    return Response(query.step, query.index, as_vector(query, answer.y), float(answer.gap), seconds)


def as_vector(query: Query, y: Any) -> Vector:
    """Return a float64 copy of an answer (lists, ints and float32 are converted at this door)."""
    try:
        vector = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FollowerFailure(
            f"query {query.step}.{query.index}: the follower returned {type(y).__name__}: "
            f"expected a vector of numbers ({error}); return a 1-D array"
        ) from error
    return vector.reshape(1) if vector.ndim == 0 else vector
