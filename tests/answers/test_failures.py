"""Followers that fail: tried again, stopped, dropped or raised, and every failure counted and kept."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pzos
from durable_problem import Counted, bits, problem
from pzos.answers.failures import Tolerance, TolerantOracle
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.durable.log import read_study
from unreliable import Noting, gone, kinked

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
AGAIN = Tolerance(attempts=3, wait=0.0)
DROP = Tolerance(attempts=2, wait=0.0, policy="drop", failure_rate=1.0)


class Moody:
    """Misbehaves on the calls that ``when`` picks, by number."""

    def __init__(self, when: Callable[[int], bool], how: Callable[[np.ndarray], Any]) -> None:
        self.calls, self.when, self.how = 0, when, how

    def __call__(self, x: np.ndarray) -> Any:
        self.calls += 1
        return self.how(x) if self.when(self.calls) else Counted()(x)


def crash(x: np.ndarray) -> Any:
    raise RuntimeError("the simulator crashed")


MOODS: dict[str, Callable[[np.ndarray], Any]] = {
    "exception": crash,
    "not finite": lambda x: np.full(2 * x.size, np.nan),
    "wrong shape": lambda x: np.ones(1),
}


@pytest.mark.parametrize("pooled", [False, True], ids=["here", "threads"])
@pytest.mark.parametrize("kind", MOODS)
def test_what_fails_is_tried_again_with_the_same_bits(kind: str, pooled: bool, tmp_path: Path) -> None:
    game = problem(follower=Moody(lambda call: call % 3 == 0, MOODS[kind]))
    path = tmp_path / "s.study"
    study = pzos.Study.open(path, game.known(), pzos.PZOS(batch=2), seed=7, steps=4)
    with ThreadPoolExecutor(1) as threads:
        oracle = TolerantOracle(game.follower, AGAIN, executor=threads if pooled else None)
        with study:
            for _ in pzos.iterate(study, oracle):
                pass
    assert bits(study.result()) == bits(pzos.solve(problem(), pzos.PZOS(batch=2), seed=7, steps=4))
    function: Any = game.follower
    failed = function.function.calls // 3
    assert oracle.counts == {kind: failed}
    assert len(oracle.failed_attempts) == failed
    assert oracle.asked + failed == function.function.calls
    stories = [row.retried for row in read_study(path).answers]
    assert sum(story.count("attempt ") for story in stories) == failed  # kept with the query, in the file


def test_raising_names_the_query_and_every_attempt() -> None:
    game = problem(follower=crash)
    with pytest.raises(FollowerFailure, match=r"query 0\.0 .*failed 3 times .*attempt 1: .*crashed.*attempt 3: "):
        pzos.solve(game, pzos.PZOS(), steps=2, tolerance=AGAIN)


def test_dropping_goes_on_without_the_pair() -> None:
    game = problem(follower=Moody(lambda call: call in (2, 3, 8, 9), crash))
    result = pzos.solve(game, pzos.PZOS(batch=2), seed=7, steps=5, tolerance=DROP)
    assert result.stop is pzos.Stop.STEPS
    assert result.failures == 2
    assert np.isfinite(result.x).all()


def test_a_study_that_fails_too_often_ends() -> None:
    tolerance = Tolerance(attempts=1, policy="drop", failure_rate=0.3)
    game = problem(follower=Moody(lambda call: call % 2 == 0, crash))
    result = pzos.solve(game, pzos.PZOS(batch=2), steps=200, tolerance=tolerance)
    assert result.stop is pzos.Stop.FAILURES
    assert result.steps < 200


def test_a_batched_follower_fails_as_a_whole() -> None:
    calls: list[int] = []

    def rows(X: np.ndarray) -> np.ndarray:
        calls.append(len(X))
        if len(calls) == 1:
            raise RuntimeError("no licence")
        return np.abs(X)

    oracle = TolerantOracle(pzos.batched(rows), AGAIN)
    study = pzos.Study(problem().known(), pzos.PZOS(batch=2), steps=1)
    for _ in pzos.iterate(study, oracle):
        pass
    assert calls == [5, 5, 1]
    assert oracle.counts == {"exception": 1}
    assert len(oracle.failed_attempts) == 5


def picky(X: np.ndarray) -> np.ndarray:
    """A batched follower that answers no batch with a row to the right of the start."""
    if (X[:, 0] > 1.00001).any():
        raise RuntimeError("no equilibrium")
    return np.hstack([np.abs(X - 0.3), np.maximum(X, 0.1)])


@pytest.mark.parametrize("pooled", [False, True], ids=["here", "threads"])
def test_a_query_that_fails_its_batch_costs_no_other(pooled: bool) -> None:
    study = pzos.Study(problem().known(), pzos.PZOS(batch=2, radius=0.1), seed=7, steps=1)
    asked = study.ask()
    bad = [query.index for query in asked if query.x[0] > 1.00001]
    assert 0 < len(bad) < len(asked)
    with ThreadPoolExecutor(2) as threads:
        oracle = TolerantOracle(pzos.batched(picky), DROP, executor=threads if pooled else None)
        told = sorted(oracle.answer(asked), key=lambda response: response.index)
    assert [response.index for response in told if response.failure] == bad
    assert [response.index for response in told] == [query.index for query in asked]
    assert oracle.counts == {"exception": 2 + len(bad), "given up": len(bad)}
    with pytest.raises(FollowerFailure, match=rf"query 0\.{bad[0]} \(step\.index\) at x = .* failed 4 times"):
        list(TolerantOracle(pzos.batched(picky), AGAIN).answer(asked))


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("pooled", [False, True], ids=["here", "threads"])
def test_each_attempt_of_a_seeded_follower_has_numbers_of_its_own(pooled: bool, common: bool) -> None:
    drawn: list[tuple[bytes, float]] = []

    def unlucky(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        drawn.append((x.tobytes(), float(generator.random())))
        if drawn[-1][1] < 0.7:
            raise RuntimeError("did not converge")
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])

    game = problem(follower=pzos.seeded(unlucky, common=common))
    runs = []
    for _ in range(2):
        drawn.clear()
        with ThreadPoolExecutor(1) as threads:
            tolerance = Tolerance(attempts=60, wait=0.0)
            given: dict[str, Any] = {"executor": threads if pooled else None, "tolerance": tolerance}
            result = pzos.solve(game, pzos.PZOS(batch=2), seed=7, steps=3, **given)
        assert len(drawn) > result.queries + result.monitoring  # some failed
        by_point: dict[bytes, list[float]] = {}
        for point, number in drawn:
            by_point.setdefault(point, []).append(number)
        assert all(len(set(numbers)) == len(numbers) for numbers in by_point.values())
        runs.append((bits(result), sorted(drawn)))
    assert runs[0] == runs[1]  # by address: the same again


def weighted() -> pzos.Leader:
    """A leader that takes answers of 6 entries only."""
    weights = np.linspace(1.0, 2.0, 6)
    return pzos.leader_from_functions(
        lambda x, y: float(x @ x + weights @ y), lambda x, y: 2.0 * x, lambda x, y: weights + 0.0 * y
    )


def test_a_first_answer_of_the_wrong_length_is_tried_again() -> None:
    quiet = pzos.solve(problem(leader=weighted()), pzos.PZOS(), seed=7, steps=2)
    follower = Moody(lambda call: call == 1, MOODS["wrong shape"])
    result = pzos.solve(problem(leader=weighted(), follower=follower), pzos.PZOS(), seed=7, steps=2, tolerance=AGAIN)
    assert bits(result) == bits(quiet)


def test_a_resumed_study_tries_an_answer_of_the_wrong_length_again(tmp_path: Path) -> None:
    given: dict[str, Any] = {"seed": 7, "tolerance": AGAIN, "path": tmp_path / "s.study"}
    pzos.solve(problem(follower_name="kinks"), pzos.PZOS(), steps=2, **given)
    follower = Moody(lambda call: call == 1, MOODS["wrong shape"])
    result = pzos.solve(problem(follower=follower, follower_name="kinks"), pzos.PZOS(), steps=4, **given)
    assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(), seed=7, steps=4))


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_hanging_follower_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "hang", times=1)
    game = problem(follower=follower)
    tolerance = Tolerance(attempts=2, wait=0.0, timeout=5.0)
    result = pzos.solve(game, pzos.PZOS(), seed=7, steps=1, tolerance=tolerance)
    quiet = pzos.solve(problem(follower=kinked), pzos.PZOS(), seed=7, steps=1)
    assert bits(result) == bits(quiet)
    assert all(gone(process) for process in follower.started())
    assert follower.calls() == quiet.queries + quiet.monitoring + 1


def test_a_timeout_needs_workers_that_can_be_stopped() -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(InvalidInput, match=r"pzos\.Workers\(4, timeout=1\)"):
        TolerantOracle(kinked, Tolerance(timeout=1.0), executor=threads)


class Picky:
    """Fails at the first query of a batch at once; the others take their time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        import time

        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("no luck")
        time.sleep(0.2)
        return Counted()(x)


@pytest.mark.parametrize("tolerance", [None, Tolerance(attempts=1)], ids=["plain", "tolerant"])
def test_answers_in_flight_are_kept_when_another_query_fails(tmp_path: Path, tolerance: Tolerance | None) -> None:
    follower = Picky()
    game = problem(follower=follower)
    with ThreadPoolExecutor(5) as threads:
        given: dict[str, Any] = {"seed": 7, "steps": 1, "tolerance": tolerance, "path": tmp_path / "s.study"}
        with pytest.raises(FollowerFailure, match="no luck"):
            pzos.solve(game, pzos.PZOS(batch=2), executor=threads, **given)
        kept = follower.calls - 1
        assert kept >= 1
        result = pzos.solve(game, pzos.PZOS(batch=2), executor=threads, **given)
    assert follower.calls == result.queries + result.monitoring + 1  # not one of them was paid twice


@given(failed=st.integers(1, 40))
def test_pauses_grow_up_to_the_longest(failed: int) -> None:
    tolerance = Tolerance(wait=0.5, growth=3.0, longest_wait=20.0)
    assert tolerance.pause(failed) == min(20.0, 0.5 * 3.0 ** (failed - 1))


def test_it_really_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("pzos.answers.failures.time.sleep", waits.append)
    game = problem(follower=Moody(lambda call: call <= 2, crash))
    pzos.solve(game, pzos.PZOS(), steps=1, tolerance=Tolerance(attempts=3, wait=1.5))
    assert waits == [1.5, 3.0]


FAULTS: list[dict[str, Any]] = [
    {"attempts": 0}, {"wait": -1.0}, {"growth": 0.5}, {"timeout": 0.0}, {"policy": "ignore"}, {"failure_rate": 0.0},
]  # fmt: skip


@pytest.mark.parametrize("given", FAULTS, ids=str)
def test_bad_tolerances(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        Tolerance(**given)


class Broken(Executor):
    """An executor that has lost its workers."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        from concurrent.futures import BrokenExecutor, Future

        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("a child process terminated abruptly"))
        return future


@pytest.mark.parametrize("tolerance", [None, AGAIN], ids=["plain", "tolerant"])
def test_a_broken_executor_is_named(tolerance: Tolerance | None) -> None:
    with pytest.raises(pzos.PzosError, match=r"lost its workers .*pzos\.Renewed"):
        pzos.solve(problem(), pzos.PZOS(), steps=1, executor=Broken(), tolerance=tolerance)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_the_drill_on_a_small_scale() -> None:
    command = [sys.executable, str(BENCHMARKS / "failing.py"), "25"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_follower_that_workers_cannot_import_is_no_failure_to_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("nowhere_to_be_found")
    exec("def follower(x): return x", module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    game = problem(follower=module.follower)
    with pytest.raises(InvalidInput, match="a worker cannot find the follower"):
        pzos.solve(game, pzos.PZOS(), steps=1, tolerance=Tolerance(attempts=2, timeout=60.0, policy="drop"))
