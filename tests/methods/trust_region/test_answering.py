"""Followers that give no answer on part of the set: where the next query goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.answers.failures import TolerantOracle
from pzos.base.keys import Keys
from pzos.methods.response_model.history import first
from pzos.methods.solver import Stop, Task
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.answering import answering, in_between
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import Kind, Refusal, RegionState
from pzos.methods.trust_region.subproblem import minimise

DROP = pzos.Tolerance(attempts=1, wait=0.0, policy="drop")


def distance(goal):
    return pzos.leader_from_functions(
        lambda x, y: float((y - goal) @ (y - goal)), lambda x, y: np.zeros_like(x), lambda x, y: 2.0 * (y - goal)
    )


def around_zero(*refused, told=(), radius=1.0, sizes=(1.0, 1.0), failed=0):
    """Return the task and the state of a search that stands at zero in the plane."""
    history = first(np.zeros(2), np.zeros(1), np.array(sizes))
    for x in told:
        history = history.append(np.array(x, dtype=float), np.ones(1))
    points = [np.array(x, dtype=float) for x in refused]
    refusals = tuple(Refusal(x, float(np.linalg.norm(x / np.array(sizes)))) for x in points)
    state = RegionState(np.zeros(2), history=history, radius=radius, scale=1.0, refused=refusals, step=10)
    known = pzos.Problem(distance(np.zeros(1)), lambda x: x[:1], np.zeros(2), pzos.Box(-50.0, 50.0)).known()
    return Task(known, Keys(0)), replace(state, failed=failed)


def test_where_all_were_answered_nothing_changes():
    task, state = around_zero()
    assert answering(task, state, 1.0) is task.known.domain
    task, state = around_zero([9.0, 0.0])
    assert answering(task, state, 1.0) is task.known.domain  # most of the way there is beyond the trust region
    assert answering(task, state, 9.0) is not task.known.domain


def test_the_next_query_on_the_same_way_goes_less_far_after_each_failure():
    for failed, share in ((0, 0.3), (1, 0.09), (2, 0.027)):
        task, state = around_zero([1.0, 0.0], failed=failed)
        x = looking.region_of(task, state).at(1.0, np.array([1.0, 1.0]))
        np.testing.assert_allclose(x, [share, 1.0])  # aside it is free


def test_a_plane_keeps_points_told_and_points_without_an_answer_apart():
    task, state = around_zero([1.0, 0.3], [-1.0, 0.3], told=[[0.9, -0.1], [-0.9, -0.1]])
    part = answering(task, state, 1.0)
    for along in (-0.9, 0.0, 0.9):  # the border runs along the first axis
        assert part.contains(np.array([along, 0.085]))
        assert not part.contains(np.array([along, 0.095]))


def test_without_such_a_plane_queries_stay_nearer_to_the_centre():
    refused = [[1.0, 0.0], [-1.0, 0.0]]
    task, state = around_zero(*refused)
    part = answering(task, state, 1.0)
    assert part.contains(np.array([0.29, 3.0]))
    assert not part.contains(np.array([0.31, 0.0]))
    assert not part.contains(np.array([-0.31, 0.0]))


def test_an_answer_from_much_nearer_contradicts_a_query_without_one():
    task, state = around_zero([1.0, 0.0], told=[[0.8, 0.0]])
    assert answering(task, state, 1.0) is task.known.domain


def test_many_decisions_are_left_to_the_trust_radius():
    state = RegionState(np.zeros(100), history=first(np.zeros(100), np.zeros(1)), radius=1.0)
    state = state.refusing(np.ones(100), Kind.TRIAL)
    known = pzos.Problem(distance(np.zeros(1)), lambda x: x[:1], np.zeros(100)).known()
    assert answering(Task(known, Keys(0)), state, 1.0) is known.domain


def test_the_model_is_minimised_on_the_near_side_whatever_the_units():
    sizes = (0.01, 100.0)
    task, state = around_zero([0.01, 0.0], sizes=sizes)

    def objective(x):
        ways = x / np.array(sizes) - np.array([2.0, 0.5])
        return float(ways @ ways), 2.0 * ways / np.array(sizes)

    move = minimise(objective, looking.region_of(task, state), 30)
    np.testing.assert_allclose(move.x, [0.003, 50.0], rtol=1e-4)


def test_what_had_no_answer_is_not_asked_again():
    _, state = around_zero()
    x = np.array([0.3, 0.4])
    after = state.refusing(x, Kind.TRIAL)
    assert after.knows(x)
    assert after.refused[0].away == pytest.approx(0.5)
    assert not state.refusing(x, Kind.REPEAT).refused  # the same place was answered before: it failed by chance


@pytest.mark.parametrize("batch", [1, 4])
def test_queries_without_an_answer_are_remembered(batch):
    def follower(x):
        if x[0] > 1.0:
            raise RuntimeError("no equilibrium")
        return np.array([x[0], x[1], x[0] * x[1]])

    problem = pzos.Problem(distance(np.array([3.0, 1.0, 3.0])), follower, np.array([0.2, 0.1]))
    study = pzos.Study(problem.known(), CompositeTrustRegion(batch=batch), seed=0, queries=24)
    for _ in pzos.iterate(study, TolerantOracle(follower, DROP)):
        pass
    assert len(study.state.refused) == study.result().failures > 0


def test_looks_far_away_stay_nearer_to_answers_and_are_left_out_where_most_have_none():
    task, state = around_zero([5.0, 5.0], told=[[-5.0, -5.0], [1.0, 0.0], [0.0, 1.0]], radius=0.1)
    for step in range(5):
        x = looking.far_look(task, replace(state, step=step), None)
        assert np.abs(x - [5.0, 5.0]).max() >= np.abs(x - state.past.points).max(axis=1).min()
    assert looking.looks_far(task, replace(state, idle=2, step=30, settled=True))
    assert not looking.looks_far(task, replace(state, idle=2, step=2, settled=True))


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_at_a_border_that_nobody_told_of_is_found(seed):
    draw = np.random.default_rng(seed)
    A, normal = draw.standard_normal((6, 4)), draw.standard_normal(4)
    normal /= np.linalg.norm(normal)

    def respond(x):
        return np.tanh(0.5 * (A @ x))

    def follower(x):
        if normal @ x > 0.3:
            raise RuntimeError("no equilibrium")
        return respond(x)

    leader = distance(respond(normal))  # beyond the border
    problem = pzos.Problem(leader, follower, -0.5 * normal, pzos.Box(-4.0, 4.0))
    result = pzos.solve(problem, queries=60, seed=seed, certificate=False, progress=False, tolerance=DROP)
    assert result.best_value < leader.value(0.3 * normal, respond(0.3 * normal))  # better than straight on
    assert result.queries > 30


def test_after_four_failures_in_a_row_the_next_query_lies_between_points_told():
    _, state = around_zero(told=[[4.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(in_between(state), [0.0, 1.0])
    assert in_between(around_zero()[1]) is None


def test_followers_that_never_answer_again_end_the_run():
    def follower(x):
        follower.calls += 1
        if follower.calls > 8:
            raise RuntimeError("the licence has ended")
        return np.tanh(x)

    follower.calls = 0
    problem = pzos.Problem(distance(np.full(3, 0.4)), follower, np.ones(3))
    result = pzos.solve(problem, queries=60, certificate=False, progress=False, tolerance=DROP)
    assert result.stop is Stop.FAILURES
    assert follower.calls <= 20


@pytest.mark.parametrize("radius", [1e200, 1e300])
def test_in_a_trust_region_beside_which_all_else_is_rounding_the_whole_set_is_left(radius):
    task, state = around_zero((1.0, 0.0), (0.0, 2.0), told=[(-1.0, 0.0)])
    assert answering(task, state, 4.0) is not task.known.domain
    assert answering(task, state, radius) is task.known.domain
