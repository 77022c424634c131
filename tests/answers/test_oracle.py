"""Serial, 2 threads, 3 processes, any order of answers, any rebuilt prefix: the same bits."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from instances import iterates, noisy, problem, response, responses
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.base.types import Matrix, Query, Response

FOLLOWERS = {
    "plain": response,
    "batched": pzos.batched(responses),
    "seeded": pzos.seeded(noisy),
    "common": pzos.seeded(noisy, common=True),
}
SOLVERS = {"PZOS": pzos.PZOS(step=0.02, radius=0.1, batch=3), "ZOS": pzos.ZOS(step=0.02, radius=0.1, batch=2)}


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        yield pool


def study(solver: str, **limits: Any) -> pzos.Study:
    return pzos.Study(problem().known(), SOLVERS[solver], seed=3, **(limits or {"steps": 12}))


def trajectory(follower: str, solver: str, executor: Executor | None = None) -> Matrix:
    return iterates(study(solver), pzos.Oracle(FOLLOWERS[follower], seed=3, executor=executor))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("follower", FOLLOWERS)
def test_threads_and_processes_give_the_serial_bits(follower: str, solver: str, processes: Executor) -> None:
    serial = trajectory(follower, solver)
    with ThreadPoolExecutor(2) as threads:
        np.testing.assert_array_equal(trajectory(follower, solver, threads), serial)
    np.testing.assert_array_equal(trajectory(follower, solver, processes), serial)


def test_solve_takes_an_executor(processes: Executor) -> None:
    serial = pzos.solve(problem(), SOLVERS["PZOS"], steps=5, seed=3)
    pooled = pzos.solve(problem(), SOLVERS["PZOS"], steps=5, seed=3, executor=processes)
    np.testing.assert_array_equal(serial.x, pooled.x)
    np.testing.assert_array_equal(serial.trace["value"], pooled.trace["value"])
    assert serial.queries == pooled.queries


class Shuffled:
    """An oracle that answers in a random order, some queries twice."""

    def __init__(self, oracle: pzos.Oracle, shuffle: random.Random) -> None:
        self.follower, self._oracle, self._shuffle = oracle.follower, oracle, shuffle

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        responses = list(self._oracle.answer(queries))
        self._shuffle.shuffle(responses)
        for told in responses[:-1]:
            yield told
            if self._shuffle.random() < 0.3:
                yield told
        yield responses[-1]


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(FOLLOWERS)), st.sampled_from(sorted(SOLVERS)))
def test_answers_may_be_told_in_any_order(shuffle: random.Random, follower: str, solver: str) -> None:
    oracle = pzos.Oracle(FOLLOWERS[follower], seed=3)
    told = iterates(study(solver), Shuffled(oracle, shuffle))  # type: ignore[arg-type]
    np.testing.assert_array_equal(told, trajectory(follower, solver))


def answers_of_a_run(follower: str, solver: str) -> list[tuple[Query, np.ndarray]]:
    """Return every answer of a run in the order told."""
    first, log = study(solver), []
    oracle = pzos.Oracle(FOLLOWERS[follower], seed=3)
    while not first.done:
        queries = {query.index: query for query in first.ask()}
        for told in oracle.answer(list(queries.values())):
            log.append((queries[told.index], told.y.copy()))
            first.receive(told)
    return log


@settings(max_examples=30)
@given(st.data())
def test_a_study_rebuilt_from_any_prefix_goes_on_with_the_same_bits(data: st.DataObject) -> None:
    follower = data.draw(st.sampled_from(sorted(FOLLOWERS)))
    solver = data.draw(st.sampled_from(sorted(SOLVERS)))
    log = answers_of_a_run(follower, solver)
    kept = data.draw(st.integers(0, len(log)))
    rebuilt = study(solver)
    for query, y in log[:kept]:  # queries made elsewhere: the address and the point count, not the object
        rebuilt.ask()
        rebuilt.tell(query, y)
    result = pzos.drive(rebuilt, pzos.Oracle(FOLLOWERS[follower], seed=3))
    whole = study(solver)
    expected = pzos.drive(whole, pzos.Oracle(FOLLOWERS[follower], seed=3))
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.random_x, expected.random_x)
    for column in ("step", "queries", "monitoring", "value", "gradient_norm_squared", "step_size"):
        np.testing.assert_array_equal(result.trace[column], expected.trace[column])
    assert (result.queries, result.monitoring, result.stop) == (expected.queries, expected.monitoring, expected.stop)


def test_the_oracle_counts_every_query() -> None:
    oracle = pzos.Oracle(response)
    result = pzos.drive(study("ZOS"), oracle)
    assert oracle.asked == result.queries + result.monitoring == 12 * 5 + 1


def test_failures_cross_process_borders_with_the_query_named(processes: Executor) -> None:
    with pytest.raises(FollowerFailure, match=r"failed on query 0\.\d+ \(step\.index\) at x = .*: LinAlgError"):
        pzos.solve(problem(np.linalg.inv), SOLVERS["PZOS"], steps=1, executor=processes)


def test_open_jobs_are_cancelled_when_one_fails() -> None:
    class Counting(ThreadPoolExecutor):
        submitted: list[Any]

        def submit(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            future = super().submit(*args, **kwargs)
            self.submitted.append(future)
            return future

    with Counting(1) as pool:
        pool.submitted = []
        with pytest.raises(FollowerFailure):
            pzos.solve(problem(lambda x: 1 / 0), pzos.PZOS(batch=20), steps=1, executor=pool)
    assert all(future.done() for future in pool.submitted)


@pytest.mark.parametrize("executor", [3, "threads", ThreadPoolExecutor])
def test_a_wrong_executor_is_named(executor: Any) -> None:
    with pytest.raises(InvalidInput, match=r"executor = .*expected a concurrent\.futures\.Executor; try ThreadPool"):
        pzos.solve(problem(), pzos.PZOS(), steps=1, executor=executor)
