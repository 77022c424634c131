"""How far rounding moves a point is found out by taking steps again with other last digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import finish, problem
from pzos.study.rounding import Step, shaken, shaken_points, standing_at


def test_every_entry_is_changed_in_the_last_digits_and_zeros_stay() -> None:
    vector = np.array([1.0, -2.0, 0.0, 1.0, 3e-9] * 20)
    trials = np.array([shaken(vector, 1e-13, trial) for trial in range(8)])
    apart = np.abs(trials - vector)
    np.testing.assert_allclose(apart, np.broadcast_to(1e-13 * np.abs(vector), apart.shape), rtol=0.01)
    ups = (trials > vector).sum(axis=0)[vector != 0.0]
    assert 2.0 < ups.mean() < 6.0, "up as often as down"
    assert len({trial.tobytes() for trial in trials}) == 8
    np.testing.assert_array_equal(shaken(vector, 1e-13, 3), trials[3])


@pytest.mark.parametrize("size", [1e-13, 1e-9])
def test_a_method_that_passes_rounding_on_moves_as_little(size: float) -> None:
    study = pzos.Study(problem().known(), pzos.PZOS(), steps=9)
    state, plan = study.state, pzos.PZOS().ask(study.task, study.state)
    answers = [problem().follower.respond(point, None) for point in plan.points]
    after, _ = pzos.PZOS().tell(study.task, state, plan, answers)
    own = pzos.PZOS().ask(study.task, after).points
    moved = [
        max(float(np.abs(a - b).max()) for a, b in zip(own, points, strict=True))
        for points in shaken_points(pzos.PZOS(), study.task, [Step(state, plan, answers)], size)
    ]
    assert 0.0 < max(moved) < 1e3 * size


def test_at_the_start_nothing_has_been_rounded() -> None:
    study = pzos.Study(problem().known(), pzos.PZOS(), steps=9)
    own = study.ask()[0].x
    assert all(points[0].tobytes() == own.tobytes() for points in shaken_points(study.solver, study.task, [], 1e-9))


@pytest.mark.parametrize("solver", [pzos.PZOS(), pzos.MemoryPZOS()], ids=repr)
def test_a_state_and_a_plan_stand_where_they_are_told(solver: Any) -> None:
    study = pzos.Study(problem().known(), solver, steps=2)
    finish(study, problem())
    plan, there = solver.ask(study.task, study.state), np.full(3, 0.5)
    moved_plan, moved = standing_at(there, plan, study.state)
    assert moved.x is there
    assert getattr(moved_plan, "x", there) is there
    assert standing_at(there, None, object())[0] is None
