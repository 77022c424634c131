"""PZOS and ZOS against the reading edition, against stored trajectories, and against what the paper proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from golden import GOLDEN
from instances import LEADER, START, cost, cost_x, cost_y, iterates, negated, problem, response
from pzos.base.types import Matrix
from reading_edition import pzos as reading_pzos, zos as reading_zos

DOMAINS = {
    "whole": pzos.Whole(),
    "box": pzos.Box(0.0, 0.9 + np.arange(5) / 10),
    "nonnegative": pzos.Nonnegative(),
    "simplex": pzos.Simplex(3.0),
    "budget": pzos.Budget(3.2),
    "ball": pzos.Ball(np.full(5, 0.5), 0.8),
}
STEPS = {"constant": 0.02, "diminishing": pzos.Diminishing(0.05)}


def engine(solver: object, task: pzos.Problem, steps: int, seed: int = 7, monitor: bool = False) -> Matrix:
    study = pzos.Study(task.known(), solver, seed=seed, steps=steps, monitor=monitor)  # type: ignore[arg-type]
    return iterates(study, pzos.Oracle(task.follower, seed=seed))


def schedule(step: Any) -> Any:
    return step if callable(step) else lambda t: step


@pytest.mark.parametrize(
    ("step", "domain"),
    [
        ("constant", "whole"),
        ("diminishing", "whole"),
        ("constant", "box"),
        ("diminishing", "nonnegative"),
        ("constant", "simplex"),
        ("diminishing", "budget"),
        ("constant", "ball"),
    ],
)
@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("method", ["PZOS", "ZOS"])
def test_engine_agrees_with_the_reading_edition(method: str, batch: int, sense: str, step: str, domain: str) -> None:
    known = DOMAINS[domain]
    start = known.project(START)
    leader, sign = (LEADER, 1) if sense == "min" else (negated(), -1)
    task = pzos.Problem(leader, response, start, known, sense)  # type: ignore[arg-type]
    solver = getattr(pzos, method)(step=STEPS[step], radius=0.1, batch=batch)
    ours = engine(solver, task, 200)
    settings = {"Q": batch, "seed": 7, "sign": sign, "project": known.project}
    if method == "PZOS":
        f_x, f_y = (lambda x, y: sign * cost_x(x, y)), (lambda x, y: sign * cost_y(x, y))
        theirs = reading_pzos(f_x, f_y, response, start, schedule(STEPS[step]), 0.1, 200, **settings)
    else:
        theirs = reading_zos(
            lambda x, y: sign * cost(x, y), response, start, schedule(STEPS[step]), 0.1, 200, **settings
        )
    assert ours.shape == (201, 5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_maximising_the_negated_cost_gives_the_same_bits() -> None:
    solver = pzos.PZOS(step=0.02, radius=0.1)
    down = engine(solver, problem(), 50)
    up = engine(solver, pzos.Problem(negated(), response, START, sense="max"), 50)
    np.testing.assert_array_equal(down, up)


@pytest.mark.parametrize("name", GOLDEN)
def test_trajectories_are_the_stored_ones(name: str) -> None:
    method, batch = name.split("-")
    solver = getattr(pzos, method)(step=pzos.Diminishing(0.05), radius=0.1, batch=int(batch))
    ours = engine(solver, problem(domain=pzos.Nonnegative()), 30, seed=2024)
    np.testing.assert_allclose(ours[[1, 10, 30]], GOLDEN[name], rtol=1e-12, atol=0)


def test_descends_on_a_smooth_problem() -> None:
    for method in (pzos.PZOS, pzos.ZOS):
        result = pzos.solve(problem(), method(step=0.02, radius=0.01, batch=4), steps=300, seed=1)
        assert result.value < result.trace["value"][0] - 0.3


def test_queries_per_step() -> None:
    for batch in (1, 2, 5):
        assert pzos.solve(problem(), pzos.PZOS(batch=batch), steps=4).queries == 4 * (2 * batch + 1)
        assert pzos.solve(problem(), pzos.ZOS(batch=batch), steps=4).queries == 4 * 2 * batch


def test_step_sizes_are_recorded_with_t_from_one() -> None:
    trace = pzos.solve(problem(), pzos.PZOS(step=pzos.Diminishing(0.05)), steps=9, monitor=False).trace
    np.testing.assert_allclose(trace["step_size"], 0.05 / np.sqrt(np.arange(1, 10)), rtol=1e-15)


def test_float32_settings_are_taken_as_python_floats() -> None:
    solver = pzos.PZOS(step=np.float32(0.5), radius=np.float32(0.1), batch=np.int64(2))  # type: ignore[arg-type]
    assert (type(solver.step), type(solver.radius), type(solver.batch)) == (float, float, int)
    assert solver == pzos.PZOS(step=0.5, radius=float(np.float32(0.1)), batch=2)


def test_radius_may_follow_a_schedule() -> None:
    shrinking = engine(pzos.PZOS(step=0.02, radius=pzos.Diminishing(0.2)), problem(), 5)
    constant = engine(pzos.PZOS(step=0.02, radius=0.2), problem(), 5)
    np.testing.assert_array_equal(shrinking[1], constant[1])
    assert not np.array_equal(shrinking[5], constant[5])


def test_a_failed_pair_is_left_out_and_a_failed_batch_moves_nothing() -> None:
    study = pzos.Study(problem().known(), pzos.PZOS(step=0.02, radius=0.1, batch=2), steps=2)
    queries = study.ask()
    study.fail(queries[3], "no answer")
    for query in queries[:3] + queries[4:]:
        study.tell(query, response(query.x))
    alone = engine(pzos.PZOS(step=0.02, radius=0.1), problem(), 1, seed=0)
    np.testing.assert_array_equal(study.state.x, alone[1])
    before = study.state.x
    for query in study.ask():
        record = study.fail(query, "the laboratory burnt down")
    assert record is not None
    assert np.isnan(record.value)
    np.testing.assert_array_equal(study.state.x, before)
    assert study.failures == 6


@pytest.mark.parametrize("method", [pzos.PZOS, pzos.ZOS])
def test_configuration_is_a_frozen_value(method: type) -> None:
    assert method(step=0.1) == method(step=0.1)
    assert hash(method(step=0.1)) == hash(method(step=0.1))
    with pytest.raises(AttributeError):
        method().step = 0.2
