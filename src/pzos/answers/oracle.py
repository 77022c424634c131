"""The only door to the followers, and the only place where queries are counted.

An oracle turns open queries into responses, in any order; the study gathers them by index. Serial, batched and
pooled answers have the same bits because every answer is a function of its query alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from pzos.base.checks import Faults, Must, shown
from pzos.base.errors import FollowerFailure, PzosError
from pzos.base.keys import Keys, Role
from pzos.base.types import CACHED_SECONDS, FLOAT64, Purpose, Query, Response, Vector, float_array
from pzos.problem.follower import Answer, Follower, as_follower

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_NOT_REPORTED = float("nan")
_PROBES = 2**32
_EXECUTOR = Must(
    lambda executor: hasattr(executor, "submit") and not isinstance(executor, type),
    "a concurrent.futures.Executor",
    "try ThreadPoolExecutor(2), or None to answer here",
).or_none()
_TICK = 1e-9  # a clock may be too coarse for a fast follower, and no time at all means a cache


class Job:
    """Some queries that travel together (one; or a whole batch for a batched follower) and how they failed so far."""

    def __init__(self, queries: list[Query]) -> None:
        self.queries = queries
        self.reasons: list[str] = []

    def apart(self) -> list[Job]:
        """Return one job for each query of a batch, to find out which of them fails it; none for a single query."""
        alone = [Job([query]) for query in self.queries] if len(self.queries) > 1 else []
        for job in alone:
            job.reasons.extend(self.reasons)
        return alone

    def story(self) -> str:
        """Return what went wrong, attempt by attempt."""
        return "; ".join(f"attempt {number}: {reason}" for number, reason in enumerate(self.reasons, start=1))


#: What to do about a follower that failed.
_BY_HAND = (
    "call your follower by hand at that x to see why; tolerance=pzos.Tolerance() asks again, "
    'and path="run.study" keeps all answers in a file'
)
_WITH_RANDOM_NUMBERS = "if it draws random numbers, follower(x, rng), give pzos.seeded(follower)"


class Oracle:
    """Answers queries by calling the follower, here or on an executor.

    ``executor`` is any ``concurrent.futures.Executor``; a batched follower is sent there as one job, so that the
    shape of its computation does not depend on the number of workers. ``asked`` counts every query. ``judge`` raises
    InvalidAnswer for an answer that its study cannot take.
    """

    judge: Callable[[Response], None] | None = None

    def __init__(self, follower: Any, *, seed: int = 0, executor: Executor | None = None) -> None:
        faults = Faults("Oracle")
        _EXECUTOR.note(faults, "executor", executor)
        faults.raise_if_any()
        self.follower: Follower = as_follower(follower)
        self.keys = Keys(seed)
        self.executor = executor
        self.asked = 0

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        """Yield one response per query, in the order in which they arrive."""
        self.asked += len(queries)
        if self.executor is not None:
            yield from self._pooled(self.executor, queries)
        elif self.follower.batched:
            yield from respond_all(self.follower, list(queries))
        elif self.follower.seeded:
            for query in queries:
                yield respond(self.follower, query, self._generator(query))
        else:
            for query in queries:
                yield respond(self.follower, query)

    def answer_all(self, ask_one: Callable[[], Query | None], workers: Callable[[], int]) -> Iterator[Response]:
        """Yield responses to as many queries as ``ask_one`` gives: each time one of so many workers is free.

        With None it says that there is nothing to ask now; it is tried again after the next response.
        """
        if self.executor is not None:

            def next_query() -> Query | None:
                query = ask_one()
                self.asked += query is not None
                return query

            yield from self._pooled(self.executor, (), next_query, workers)
            return
        while (query := ask_one()) is not None:
            yield from self.answer([query])

    def _pooled(
        self,
        executor: Executor,
        queries: Sequence[Query],
        ask_one: Callable[[], Query | None] = lambda: None,
        workers: Callable[[], int] = lambda: 0,
    ) -> Iterator[Response]:
        """Yield responses as jobs end; those that :meth:`_settled` finds due again later are submitted again then."""
        from concurrent.futures import FIRST_COMPLETED, wait

        running: dict[Future[Any], Job] = {}
        waiting = [(0.0, job) for job in self._jobs(queries)] if queries else []
        failure: PzosError | None = None
        try:
            while True:
                while failure is None and len(running) + len(waiting) < workers() and (query := ask_one()) is not None:
                    waiting.append((0.0, Job([query])))
                if not running and not waiting:
                    break
                now = time.monotonic()
                for job in [job for due, job in waiting if due <= now]:
                    running[self._submit(executor, job)] = job
                waiting = [(due, job) for due, job in waiting if due > now]
                pause = min(due for due, _ in waiting) - now if waiting else None
                if not running:
                    time.sleep(pause or 0.0)
                    continue
                for future in wait(running, timeout=pause, return_when=FIRST_COMPLETED).done:
                    job = running.pop(future)
                    try:
                        yield from self._settled(job, future, waiting)
                    except PzosError as error:  # what has begun is paid for: let it end and keep its answer
                        failure = failure or error
                        running = {other: job for other, job in running.items() if not other.cancel()}
                if failure is not None:
                    waiting.clear()
        finally:
            abandon(running)
        if failure is not None:
            raise failure

    def _jobs(self, queries: Sequence[Query]) -> list[Job]:
        return [Job(list(queries))] if self.follower.batched else [Job([query]) for query in queries]

    def _submit(self, executor: Executor, job: Job) -> Future[Any]:
        if self.follower.batched:
            return executor.submit(respond_all, self.follower, job.queries)
        return executor.submit(
            respond, self.follower, job.queries[0], self._generator(job.queries[0], len(job.reasons))
        )

    def _settled(self, job: Job, future: Future[Any], waiting: list[tuple[float, Job]]) -> Iterable[Response]:
        """Return the answers of a job that ended, or raise; a tolerant oracle may put it among those that wait."""
        return outcome_of(future)

    def _generator(self, query: Query, attempt: int = 0) -> Generator | None:
        if not self.follower.seeded:
            return None
        index = 0 if self.follower.common else _noise_index(query)
        return self.keys.generator(Role.NOISE, query.step, index, attempt)


def _noise_index(query: Query) -> int:
    """Return the address of a query's noise within its step.

    The query at the iterate has the same one whatever its place in the batch, so that the closing query of a study is
    answered with the bits it has in a study that goes on.
    """
    if query.purpose in (Purpose.ITERATE, Purpose.MONITOR):
        return 0
    return query.index if query.purpose is Purpose.TRIAL else _PROBES + query.index


def respond(follower: Follower, query: Query, generator: Generator | None = None) -> Response:
    """Have one query answered; runs here or on a worker."""
    start = time.perf_counter()
    try:
        answer = follower.respond(query.x, generator)
    except Exception as error:
        raise _named(error, [query]) from error
    seconds = time.perf_counter() - start or _TICK
    if type(answer) is np.ndarray and answer.dtype is FLOAT64 and answer.ndim:  # the usual case, in short
        return Response(query.step, query.index, answer.copy(), _NOT_REPORTED, seconds)
    return _response(query, answer, seconds)


def respond_all(follower: Follower, queries: list[Query]) -> list[Response]:
    """Have a whole batch answered in one call of a batched follower; runs here or on a worker."""
    start = time.perf_counter()
    try:
        answers = follower.respond_all([query.x for query in queries])
    except Exception as error:
        raise _named(error, queries) from error
    seconds = (time.perf_counter() - start or _TICK) / len(queries)
    return [_response(query, answer, seconds) for query, answer in zip(queries, answers, strict=True)]


def abandon(futures: Iterable[Future[Any]]) -> None:
    """Give up jobs nobody waits for any more; workers that can be stopped are (``Workers``)."""
    for future in futures:
        getattr(future, "stop", future.cancel)()


def outcome_of(future: Future[Any]) -> list[Response]:
    """Return what a job gave. Its own errors are FollowerFailure; others are the executor's, and say what to do."""
    from concurrent.futures import BrokenExecutor

    try:
        answered = future.result()
    except BrokenExecutor as error:
        raise PzosError(
            f"the executor has lost its workers ({error}): expected one that replaces them; use pzos.Workers(4), "
            "or pzos.Renewed(lambda: ProcessPoolExecutor(4)), and go on: a durable study has lost nothing"
        ) from error
    except Exception as error:
        if not isinstance(error, AttributeError | TypeError) and type(error).__name__ != "PicklingError":
            raise
        from pzos.answers.workers import cannot_be_sent

        raise cannot_be_sent(error) from error
    return answered if isinstance(answered, list) else [answered]


def _named(error: Exception, queries: list[Query]) -> FollowerFailure:
    """Say on which query (step.index) the follower failed."""
    where = ", ".join(f"{query.step}.{query.index}" for query in queries)
    if isinstance(error, FollowerFailure):
        return FollowerFailure(f"query {where}{at_x(queries)}: {error.told}", error.remedy)
    random = isinstance(error, TypeError) and "missing 1 required" in str(error) and queries[0].step == 0
    told = f"the follower failed on query {where} (step.index){at_x(queries)}: {type(error).__name__}: {error}"
    return FollowerFailure(told, f"{_BY_HAND}; {_WITH_RANDOM_NUMBERS}" if random else _BY_HAND)


def at_x(queries: list[Query]) -> str:
    """Return where a query was asked, with all digits, to try it by hand; nothing for several."""
    return f" at x = {shown(queries[0].x.tolist(), 400)}" if len(queries) == 1 else ""


def _response(query: Query, answer: Any, seconds: float) -> Response:
    if isinstance(answer, Answer):
        spent, y, gap = CACHED_SECONDS if answer.cached else seconds, answer.y, answer.gap
        if type(y) is np.ndarray and y.dtype is FLOAT64 and y.ndim and type(gap) is float:  # the usual case, in short
            return Response(query.step, query.index, y.copy(), gap, spent)
        return Response(query.step, query.index, as_vector(query, y), _gap(query, gap), spent)
    return Response(query.step, query.index, as_vector(query, answer), _NOT_REPORTED, seconds)


def as_vector(query: Query, y: Any) -> Vector:
    """Return a float64 copy of an answer (lists, ints and float32 are converted at this door)."""
    try:
        vector = float_array(y)
    except (TypeError, ValueError) as error:
        raise FollowerFailure(
            f"query {query.step}.{query.index}: the follower returned {shown(y)}: "
            f"expected a vector of numbers ({error}); return a 1-D array"
        ) from error
    return vector if vector.ndim else vector.reshape(1)


def _gap(query: Query, gap: Any) -> float:
    try:
        return float(gap)
    except (TypeError, ValueError) as error:
        raise FollowerFailure(
            f"query {query.step}.{query.index}: the follower reported gap = {shown(gap)}: expected a number; "
            "leave the gap out if it is not known"
        ) from error
