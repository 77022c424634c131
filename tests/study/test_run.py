"""The one loop and its doors: solve, minimize, maximize, iterate, drive; interruption; the logger; by hand the same."""

from __future__ import annotations

import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest

import pzos
from instances import LEADER, START, cost, problem, response
from pzos import Stop

SOLVER = pzos.PZOS(step=0.02, radius=0.1)


def test_solve_and_a_study_by_hand_give_the_same_bits() -> None:
    result = pzos.solve(problem(), SOLVER, steps=20, seed=5)
    study = pzos.Study(problem().known(), SOLVER, seed=5, steps=20)
    while not study.done:
        for query in study.ask():
            study.tell(query, response(query.x))
    by_hand = study.result()
    for name in ("x", "best_x", "random_x"):
        np.testing.assert_array_equal(getattr(by_hand, name), getattr(result, name))
    for column in ("step", "queries", "monitoring", "value", "gradient_norm_squared", "step_size"):
        np.testing.assert_array_equal(by_hand.trace[column], result.trace[column])
    assert (by_hand.value, by_hand.best_value, by_hand.random_step) == (
        result.value,
        result.best_value,
        result.random_step,
    )


def test_seeds_matter_and_repeat() -> None:
    first, again, other = (pzos.solve(problem(), SOLVER, steps=5, seed=seed).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_minimize_and_maximize_are_solve() -> None:
    for sense, call in (("min", pzos.minimize), ("max", pzos.maximize)):
        domain = pzos.Nonnegative()
        direct = call(LEADER, response, START, SOLVER, domain=domain, steps=8, seed=3)
        through = pzos.solve(problem(domain=domain, sense=sense), SOLVER, steps=8, seed=3)
        np.testing.assert_array_equal(direct.x, through.x)
        assert direct.sense == sense


def test_iterate_is_a_generator_of_records_that_may_be_left() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=50)
    seen = []
    for record in pzos.iterate(study, pzos.Oracle(response)):
        seen.append(record)
        if len(seen) == 3:
            break
    assert [record.step for record in seen] == [0, 1, 2]
    assert study.result().stop is Stop.RUNNING
    assert study.result().steps == 3
    whole = pzos.drive(study, pzos.Oracle(response))  # and taken up again
    np.testing.assert_array_equal(whole.x, pzos.solve(problem(), SOLVER, steps=50).x)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("at", [1, 5, 8])
def test_ctrl_c_in_the_follower_returns_the_partial_result(at: int, threads: int) -> None:
    calls = count(1)

    def interrupted(x: Any) -> Any:
        if next(calls) == at:
            raise KeyboardInterrupt
        return response(x)

    if threads:
        with ThreadPoolExecutor(threads) as pool:
            result = pzos.solve(problem(interrupted), SOLVER, steps=100, executor=pool)
    else:
        result = pzos.solve(problem(interrupted), SOLVER, steps=100)
        assert result.queries == at - 1
    assert result.stop is Stop.INTERRUPTED
    assert result.steps == (at - 1) // 3
    np.testing.assert_array_equal(result.x, iterate_after(result.steps))
    assert "interrupted by the user" in repr(result)
    assert result.monitoring == 0


def iterate_after(steps: int) -> Any:
    return pzos.solve(problem(), SOLVER, steps=steps, monitor=False).x if steps else START


def test_a_real_signal() -> None:
    calls = [0]

    def signalled(x: Any) -> Any:
        calls[0] += 1
        if calls[0] == 7:
            signal.raise_signal(signal.SIGINT)
        return response(x)

    result = pzos.solve(problem(signalled), SOLVER, steps=100)
    assert result.stop is Stop.INTERRUPTED
    assert result.steps == 2


def test_batched_followers_are_interrupted_too() -> None:
    def interrupted(rows: Any) -> Any:
        raise KeyboardInterrupt

    result = pzos.solve(problem(pzos.batched(interrupted)), SOLVER, steps=9)
    assert (result.stop, result.steps, result.queries) == (Stop.INTERRUPTED, 0, 0)
    np.testing.assert_array_equal(result.x, START)
    np.testing.assert_array_equal(result.random_x, START)


def test_a_rebuilt_study_asks_a_batched_follower_for_whole_batches() -> None:
    rows: list[int] = []

    def counting(points: Any) -> Any:
        rows.append(len(points))
        return np.abs(points[:, :2])

    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    study = pzos.Study(pzos.Problem(leader, response, START).known(), pzos.ZOS(batch=3), steps=1)
    study.tell(study.ask()[2], [7.0, 7.0])  # told by someone else: it stands
    result = pzos.drive(study, pzos.Oracle(pzos.batched(counting)))
    assert rows == [7, 1]
    assert result.queries == 6


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_run_that_diverges_ends_with_advice() -> None:
    with pytest.raises(
        pzos.InvalidLeader, match=r"step \d+: leader: f\(x, y\) = inf.*take a smaller step or restrict it"
    ):
        pzos.solve(problem(), pzos.PZOS(step=1e9), steps=1000)


def test_the_result_knows_its_values() -> None:
    result = pzos.solve(problem(), SOLVER, steps=10)
    assert result.value == cost(result.x, response(result.x))
    assert result.best_value == cost(result.best_x, response(result.best_x))
    assert result.seconds > 0


def test_the_logger_tells_and_nothing_is_printed(caplog: Any, capsys: Any) -> None:
    with caplog.at_level(logging.DEBUG, logger="pzos"):
        pzos.solve(problem(name="tolls"), SOLVER, steps=2)
    assert [r.name for r in caplog.records] == ["pzos", "pzos"]
    assert "start: tolls, PZOS(step=0.02" in caplog.text
    assert "all steps were taken after 2 steps and 6 queries: F = " in caplog.text
    assert tuple(capsys.readouterr()) == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("pzos").handlers)
