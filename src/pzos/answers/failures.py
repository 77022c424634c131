"""Followers that fail: try again, stop what hangs, and either raise or go on without the failed direction.

A failure is an exception, a time-out, a dead worker, an answer that is not finite, not of the length of the others or
none the leader can take.
It is never replaced by a penalty value. Every failed attempt is kept with its query, also in the study file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from pzos.answers.oracle import Job, Oracle, at_x, outcome_of, respond, respond_all
from pzos.answers.workers import TIME_LIMIT, Workers
from pzos.base.checks import Faults, at_least, check_fields, checked, instance_of, number, one_of, whole
from pzos.base.errors import FollowerFailure, FollowerTimeout, InvalidAnswer
from pzos.base.types import Query, Response, Vector, all_finite

Policy = Literal["raise", "drop"]
_EMPTY: Vector = np.empty(0)
_LONGEST_WAIT = number(lambda seconds: seconds >= 0, "seconds, 0 or more", "try longest_wait=1.0", finite=False)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What to do about a follower that fails.

    A query is tried ``attempts`` times, with a pause of ``wait`` seconds before the second try that grows by the factor
    ``growth`` up to ``longest_wait``. ``timeout`` stops an attempt, and every process it started, after that many
    seconds. A seeded follower has other random numbers in each attempt. A batch that failed every time is asked query
    by query once more, so that one that fails does not cost the others. When every attempt failed, ``policy`` decides:

    * ``"raise"`` (the default): FollowerFailure names the query and what went wrong each time;
    * ``"drop"``: the failed direction's pair is left out and the run goes on. **The estimate stays unbiased only if
      failing does not depend on the direction**: a follower that fails wherever demand is high hides those points.

    A study ends when more than ``failure_rate`` of its queries failed for good.
    """

    attempts: int = checked(whole(1, "try 3"), default=3)
    wait: float = checked(at_least(0, "seconds, 0 or more", "try wait=1.0"), default=1.0)
    growth: float = checked(at_least(1, "a factor, 1 or more", "try growth=2.0"), default=2.0)
    longest_wait: float = checked(_LONGEST_WAIT, default=60.0)
    timeout: float | None = checked(TIME_LIMIT, default=None)
    policy: Policy = checked(one_of(("raise", "drop")), default="raise")
    failure_rate: float = checked(number(lambda rate: 0 < rate <= 1, "a share in (0, 1]", "try 0.5"), default=0.5)

    def __post_init__(self) -> None:
        check_fields(self)

    def pause(self, failed: int) -> float:
        """Return how long to wait after ``failed`` attempts."""
        return float(min(self.longest_wait, self.wait * self.growth ** (failed - 1)))


class FailedAttempt(NamedTuple):
    """One attempt that gave no answer; ``kind`` is exception, timeout, not finite, wrong shape or refused."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    attempt: int
    kind: str
    reason: str


class TolerantOracle(Oracle):
    """An oracle that keeps to a :class:`Tolerance`; close it (or use ``with``) if it has a ``timeout``.

    ``failed_attempts`` lists every attempt that gave no answer, ``counts`` how many of each kind there were.
    """

    def __init__(self, follower: Any, tolerance: Tolerance, *, seed: int = 0, executor: Executor | None = None) -> None:
        faults = Faults("TolerantOracle")
        instance_of(Tolerance, "a Tolerance", "try pzos.Tolerance()").note(faults, "tolerance", tolerance)
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
        if self.executor is not None:
            yield from super().answer(queries)
            return
        self.asked += len(queries)
        for job in self._jobs(queries):
            yield from self._answer_here(job)

    # ---- one attempt after the other ------------------------------------------------------------------------

    def _answer_here(self, job: Job) -> Iterator[Response]:
        while True:
            try:
                responses = self._accepted(job, self._attempt(job))
            except FollowerFailure as error:
                if self._failed(job, error):
                    parts = job.apart()
                    for alone in parts:
                        yield from self._answer_here(alone)
                    if not parts:
                        yield self._given_up(job)
                    return
                time.sleep(self.tolerance.pause(len(job.reasons)))
            else:
                yield from responses
                return

    def _attempt(self, job: Job) -> list[Response]:
        if self.follower.batched:
            return respond_all(self.follower, job.queries)
        query = job.queries[0]
        return [respond(self.follower, query, self._generator(query, len(job.reasons)))]

    # ---- many at a time ---------------------------------------------------------------------------------------

    def _settled(self, job: Job, future: Future[Any], waiting: list[tuple[float, Job]]) -> Iterable[Response]:
        """Return the answers of a job that ended; after a failure put it among those that wait, or give it up."""
        try:
            return self._accepted(job, outcome_of(future))
        except FollowerFailure as error:
            if self._failed(job, error):
                parts = job.apart()
                waiting.extend((time.monotonic(), alone) for alone in parts)
                return () if parts else (self._given_up(job),)
            waiting.append((time.monotonic() + self.tolerance.pause(len(job.reasons)), job))
            return ()

    # ---- judging ------------------------------------------------------------------------------------------------

    def _accepted(self, job: Job, responses: list[Response]) -> list[Response]:
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
            if self.judge is not None:
                try:
                    self.judge(response)
                except InvalidAnswer as error:
                    raise _Refused(str(error)) from error
        self._length = responses[0].y.size if responses else self._length
        return [response._replace(retried=job.story()) for response in responses] if job.reasons else responses

    def _failed(self, job: Job, error: FollowerFailure) -> bool:
        """Note a failed attempt; tell whether it was the last one."""
        kind = getattr(error, "kind", "timeout" if isinstance(error, FollowerTimeout) else "exception")
        job.reasons.append(str(error))
        self.counts[kind] += 1
        self.failed_attempts += [
            FailedAttempt(query.step, query.index, len(job.reasons), kind, str(error)) for query in job.queries
        ]
        return len(job.reasons) >= self.tolerance.attempts

    def _given_up(self, job: Job) -> Response:
        (query,) = job.queries
        if self.tolerance.policy == "raise":
            times = "" if len(job.reasons) == 1 else f" {len(job.reasons)} times"
            raise FollowerFailure(
                f"query {query.step}.{query.index} (step.index){at_x([query])} failed{times} ({job.story()})",
                'repair the follower, or go on without such queries with Tolerance(policy="drop")',
            )
        self.counts["given up"] += 1
        return Response(query.step, query.index, _EMPTY, failure=job.story())


class _WrongShape(FollowerFailure):
    kind = "wrong shape"


class _NotFinite(FollowerFailure):
    kind = "not finite"


class _Refused(FollowerFailure):
    kind = "refused"
