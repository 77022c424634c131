"""Followers that fail: try again, stop what hangs, and either raise or go on without the failed direction.

A failure is an exception, a time-out, a dead worker, an answer that is not finite or not of the length of the others.
It is never replaced by a penalty value. Every failed attempt is kept with its query, also in the study file.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from pzos.answers.oracle import Oracle, abandon, outcome_of, respond, respond_all
from pzos.answers.workers import Workers
from pzos.base.checks import Faults
from pzos.base.errors import FollowerFailure, FollowerTimeout, PzosError
from pzos.base.types import Query, Response, Vector, all_finite

Policy = Literal["raise", "drop"]
_EMPTY: Vector = np.empty(0)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What to do about a follower that fails.

    A query is tried ``attempts`` times, with a pause of ``wait`` seconds before the second try that grows by the factor
    ``growth`` up to ``longest_wait``. ``timeout`` stops an attempt, and every process it started, after that many
    seconds. When every attempt failed, ``policy`` decides:

    * ``"raise"`` (the default): FollowerFailure names the query and what went wrong each time;
    * ``"drop"``: the failed direction's pair is left out and the run goes on. **The estimate stays unbiased only if
      failing does not depend on the direction**: a follower that fails wherever demand is high hides those points.

    A study ends when more than ``failure_rate`` of its queries failed for good.
    """

    attempts: int = 3
    wait: float = 1.0
    growth: float = 2.0
    longest_wait: float = 60.0
    timeout: float | None = None
    policy: Policy = "raise"
    failure_rate: float = 0.5

    def __post_init__(self) -> None:
        faults = Faults("Tolerance")
        whole = isinstance(self.attempts, int) and not isinstance(self.attempts, bool)
        faults.check(whole and self.attempts >= 1, "attempts", self.attempts, "a whole number, 1 or more", "try 3")
        for name in ("wait", "longest_wait"):
            value = getattr(self, name)
            faults.check(value >= 0, name, value, "seconds, 0 or more", f"try {name}=1.0")
        faults.check(self.growth >= 1, "growth", self.growth, "a factor, 1 or more", "try growth=2.0")
        ok = self.timeout is None or self.timeout > 0
        faults.check(ok, "timeout", self.timeout, "seconds, more than 0", "or None for no limit")
        faults.check(self.policy in ("raise", "drop"), "policy", self.policy, "'raise' or 'drop'", "choose one")
        faults.check(0 < self.failure_rate <= 1, "failure_rate", self.failure_rate, "a share in (0, 1]", "try 0.5")
        faults.raise_if_any()

    def pause(self, failed: int) -> float:
        """Return how long to wait after ``failed`` attempts."""
        return float(min(self.longest_wait, self.wait * self.growth ** (failed - 1)))


class FailedAttempt(NamedTuple):
    """One attempt that gave no answer; ``kind`` is exception, timeout, not finite or wrong shape."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    attempt: int
    kind: str
    reason: str


class _Task:
    """Some queries that travel together (one; or a whole batch for a batched follower) and how often they failed."""

    def __init__(self, queries: list[Query]) -> None:
        self.queries = queries
        self.reasons: list[str] = []

    def story(self) -> str:
        """Return what went wrong, attempt by attempt."""
        return "; ".join(f"attempt {number}: {reason}" for number, reason in enumerate(self.reasons, start=1))


class TolerantOracle(Oracle):
    """An oracle that keeps to a :class:`Tolerance`; close it (or use ``with``) if it has a ``timeout``.

    ``failed_attempts`` lists every attempt that gave no answer, ``counts`` how many of each kind there were.
    """

    def __init__(self, follower: Any, tolerance: Tolerance, *, seed: int = 0, executor: Executor | None = None) -> None:
        faults = Faults("TolerantOracle")
        faults.check(isinstance(tolerance, Tolerance), "tolerance", tolerance, "a Tolerance", "try pzos.Tolerance()")
        faults.raise_if_any()
        self._own_workers: Workers | None = None
        if tolerance.timeout is not None:
            faults.check(
                executor is None or (isinstance(executor, Workers) and executor.timeout is not None),
                "executor",
                executor,
                "workers that can be stopped, because there is a timeout",
                f"use pzos.Workers(4, timeout={tolerance.timeout:g}) (a thread or a cluster's job cannot be stopped), "
                "or give a CommandFollower a timeout of its own",
            )
            faults.raise_if_any()
            if executor is None:  # here it could not be stopped: let one worker process do it
                executor = self._own_workers = Workers(1, timeout=tolerance.timeout)
        super().__init__(follower, seed=seed, executor=executor)
        self.tolerance = tolerance
        self.failed_attempts: list[FailedAttempt] = []
        self.counts: Counter[str] = Counter()
        self._length: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker process this oracle started for itself."""
        if self._own_workers is not None:
            self._own_workers.shutdown()

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        """Yield one response per query; a failed one says why in ``failure`` (policy ``"drop"``)."""
        self.asked += len(queries)
        together = self.follower.batched
        tasks = [_Task(list(queries))] if together else [_Task([query]) for query in queries]
        if self.executor is None:
            for task in tasks:
                yield from self._answer_here(task)
        else:
            yield from self._answer_there(self.executor, tasks)

    # ---- one attempt after the other ------------------------------------------------------------------------

    def _answer_here(self, task: _Task) -> Iterator[Response]:
        while True:
            try:
                responses = self._accepted(task, self._attempt(task))
            except FollowerFailure as error:
                if self._failed(task, error):
                    yield from self._given_up(task)
                    return
                time.sleep(self.tolerance.pause(len(task.reasons)))
            else:
                yield from responses
                return

    def _attempt(self, task: _Task) -> list[Response]:
        if self.follower.batched:
            return respond_all(self.follower, task.queries)
        query = task.queries[0]
        return [respond(self.follower, query, self._generator(query))]  # each attempt has the same random numbers

    # ---- many at a time ---------------------------------------------------------------------------------------

    def _answer_there(self, executor: Executor, tasks: list[_Task]) -> Iterator[Response]:
        running: dict[Future[Any], _Task] = {self._submit(executor, task): task for task in tasks}
        waiting: list[tuple[float, int, _Task]] = []
        failure: PzosError | None = None
        try:
            while running or waiting:
                while waiting and waiting[0][0] <= time.monotonic():
                    task = heapq.heappop(waiting)[2]
                    running[self._submit(executor, task)] = task
                pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
                if not running:
                    time.sleep(pause or 0.0)
                    continue
                for future in wait(running, timeout=pause, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        yield from self._settled(task, future, waiting)
                    except PzosError as error:  # what has begun is paid for: let it end and keep its answer
                        failure = failure or error
                        running = {other: task for other, task in running.items() if not other.cancel()}
                if failure is not None:
                    waiting.clear()
        finally:
            abandon(running)
        if failure is not None:
            raise failure

    def _settled(self, task: _Task, future: Future[Any], waiting: list[tuple[float, int, _Task]]) -> Iterator[Response]:
        """Yield the answers of a job that ended; after a failure put it among those that wait, or give it up."""
        try:
            responses = self._accepted(task, _as_list(outcome_of(future)))
        except FollowerFailure as error:
            if self._failed(task, error):
                yield from self._given_up(task)
            else:
                due = time.monotonic() + self.tolerance.pause(len(task.reasons))
                heapq.heappush(waiting, (due, task.queries[0].index, task))
        else:
            yield from responses

    def _submit(self, executor: Executor, task: _Task) -> Future[Any]:
        if self.follower.batched:
            return executor.submit(respond_all, self.follower, task.queries)
        query = task.queries[0]
        return executor.submit(respond, self.follower, query, self._generator(query))

    # ---- judging ------------------------------------------------------------------------------------------------

    def _accepted(self, task: _Task, responses: list[Response]) -> list[Response]:
        """Return the responses if each is a finite vector of the usual length, else raise."""
        for response in responses:
            y = response.y
            where = f"query {response.step}.{response.index}"
            if y.ndim != 1 or y.size == 0 or y.size != (self._length or y.size):
                expected = f"{self._length} entries" if self._length else "a vector"
                raise _WrongShape(f"{where}: the follower returned shape {y.shape}: expected {expected}")
            if not all_finite(y):
                entry = int(np.nonzero(~np.isfinite(y))[0][0])
                raise _NotFinite(f"{where}: the follower returned y[{entry}] = {y[entry]}: expected finite numbers")
        self._length = responses[0].y.size if responses else self._length
        return [response._replace(retried=task.story()) for response in responses] if task.reasons else responses

    def _failed(self, task: _Task, error: FollowerFailure) -> bool:
        """Note a failed attempt; tell whether it was the last one."""
        kind = getattr(error, "kind", "timeout" if isinstance(error, FollowerTimeout) else "exception")
        task.reasons.append(str(error))
        self.counts[kind] += 1
        self.failed_attempts += [
            FailedAttempt(query.step, query.index, len(task.reasons), kind, str(error)) for query in task.queries
        ]
        return len(task.reasons) >= self.tolerance.attempts

    def _given_up(self, task: _Task) -> Iterator[Response]:
        if self.tolerance.policy == "raise":
            where = ", ".join(f"{query.step}.{query.index}" for query in task.queries)
            raise FollowerFailure(
                f"query {where} (step.index) failed {len(task.reasons)} times ({task.story()}); "
                'repair the follower, or go on without such queries with Tolerance(policy="drop")'
            )
        for query in task.queries:
            self.counts["given up"] += 1
            yield Response(query.step, query.index, _EMPTY, failure=task.story())


class _WrongShape(FollowerFailure):
    kind = "wrong shape"


class _NotFinite(FollowerFailure):
    kind = "not finite"


def _as_list(answered: Any) -> list[Response]:
    return list(answered) if isinstance(answered, list) else [answered]
