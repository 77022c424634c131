"""What a state knows before and after the first answer, and what declarations must fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import first
from pzos.methods.solver import Task
from pzos.methods.trust_region.state import Kind, RegionState, fitter, opening_contest, retuned


def state_of(points, answers, **settings):
    history = first(points[0], answers[0])
    for x, y in zip(points[1:], answers[1:], strict=True):
        history = history.append(x, y)
    return RegionState(points[0], 1.0, history=history, **settings)


def task_of(n, *structure):
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)
    return Task(pzos.Problem(leader, lambda x: x, np.zeros(n), structure=structure).known(), Keys(0))


def test_before_the_first_answer_there_is_no_past():
    state = RegionState(np.zeros(2))
    assert state.shapes == (Shape.FREE,)
    assert state.variance == 0.0
    with pytest.raises(TypeError, match="no history yet"):
        _ = state.past


def test_queries_count_as_trials_or_probes():
    trials = {kind for kind in Kind if kind.purpose is pzos.Purpose.TRIAL}
    assert trials == {Kind.START, Kind.TRIAL, Kind.STRIDE, Kind.WALK}
    assert {kind.purpose for kind in set(Kind) - trials} == {pzos.Purpose.PROBE}


def test_who_competes_follows_from_dimensions_and_declarations():
    assert opening_contest(task_of(3), 2).shapes == (Shape.FREE,)
    assert opening_contest(task_of(3), 3).favourite is Shape.FREE
    assert opening_contest(task_of(3), 3).decisions == 3
    assert opening_contest(task_of(3, pzos.own_effect()), 3).favourite is Shape.OWN
    assert opening_contest(task_of(3, pzos.own_effect(), pzos.conserved()), 3).favourite is Shape.CONSERVING


def test_bounds_are_seen_declared_and_dropped_where_answers_contradict():
    points = np.eye(3)
    touching = state_of(points, np.array([[0.0, 1.0], [2.0, 1.0], [0.5, 0.0]]))
    assert fitter(task_of(3), touching, None).bounds.lower.tolist() == [0.0, 0.0]
    above = state_of(points, np.array([[0.1, 1.0], [2.0, 1.0], [0.5, 0.2]]))
    assert np.isneginf(fitter(task_of(3), above, None).bounds.lower).all()
    declared = fitter(task_of(3, pzos.answers_between(0.0, 1.5)), above, 7)
    assert declared.points == 7
    assert declared.bounds.lower.tolist() == [0.0, 0.0]
    assert np.isposinf(declared.bounds.upper).all()  # 2.0 was answered
    low = fitter(task_of(3, pzos.answers_between(0.15, 9.0)), above, None).bounds
    assert np.isneginf(low.lower).all()
    assert low.upper.tolist() == [9.0, 9.0]


def test_bounds_of_another_length_are_named():
    state = state_of(np.eye(3), np.ones((3, 2)))
    with pytest.raises(InvalidInput, match=r"lower = .*: expected 2 bounds, one per answer; match y"):
        fitter(task_of(3, pzos.answers_between(np.zeros(4), 1.0)), state, None)


def test_each_entry_shows_bounds_of_its_own_where_answers_tie_far_apart():
    points = np.random.default_rng(0).uniform(-2.0, 2.0, (12, 3))
    latent = points @ np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, 0.2]])
    rounding = 1e-8 * np.random.default_rng(1).standard_normal(latent.shape)
    free, held = latent.copy(), np.clip(latent, -0.5, 0.7) + rounding
    bounds = fitter(task_of(3), state_of(points, held), None).bounds
    np.testing.assert_allclose(bounds.lower, [-0.5, -0.5], atol=1e-5)
    np.testing.assert_allclose(bounds.upper, [0.7, 0.7], atol=1e-5)
    for open_sides in (free, free**3):
        bounds = fitter(task_of(3), state_of(points, open_sides), None).bounds
        assert bounds.open_below
        assert bounds.open_above


def test_answers_alike_where_a_search_ends_are_no_bound():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-2.0, 2.0, (8, 3)), 1e-8 * rng.standard_normal((8, 3))])
    answers = np.stack([np.sum(points**2, axis=1), points[:, 0]], axis=1)  # the first is lowest where the search ends
    bounds = fitter(task_of(3), state_of(points, answers), None).bounds
    assert bounds.open_below
    assert bounds.open_above


def test_scales_are_tuned_when_the_history_has_grown_by_a_quarter():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((9, 3))
    state = state_of(points, np.sin(points))
    tuned = retuned(task_of(3), state, None)
    assert tuned.tuned == 9
    assert set(tuned.scales) == {Shape.FREE}
    assert retuned(task_of(3), replace(tuned, tuned=8), None).tuned == 8
    assert retuned(task_of(3), replace(tuned, tuned=7), None).tuned == 9


def queueing(x):
    """Return waiting times that explode where capacity is short, row by row."""
    return 1.0 / (1.05 - 1.0 / (1.0 + np.exp(x - 2.0))) ** 2


@pytest.mark.parametrize("count", [12, 40])
def test_answers_that_explode_are_taken_on_a_curved_scale(count):
    points = np.random.default_rng(1).uniform(-3.0, 3.0, (count, 3))
    points[0] = 1.0
    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0.0 * x, lambda x, y: np.ones(3))
    task = Task(pzos.Problem(leader, queueing, points[0]).known(), Keys(0))
    state = retuned(task, state_of(points, queueing(points)), None)
    assert state.curving is not None
    assert state.curving.curved.any()
    again = retuned(task, replace(state, tuned=1), None)  # from where it was
    assert again.curving is not None
    assert retuned(task, replace(state, tuned=1, jumps=1e-4), None).curving is not None  # rough ones as well
    both = state_of(points, np.vstack([queueing(points[:-1]), [[-1.0, -1.0, -1.0]]]))
    overtaken = retuned(task, replace(state, history=both.history, tuned=count), None)
    assert overtaken.curving is None or overtaken.curving.suits(both.past.answers)  # at once, powers need one sign
    tame = retuned(task, state_of(points, np.sin(points) + 2.0), None)
    assert tame.curving is None


def test_what_is_trimmed_from_the_history_is_still_known():
    history = first(np.zeros(2), np.zeros(1))
    for k in range(1, 8):
        history = history.append(np.full(2, float(k)), np.ones(1))
    state = RegionState(np.zeros(2), history=history, centre=0)
    kept = state.trimmed(4)
    assert kept.past.count == 4
    assert all(kept.knows(np.full(2, float(k))) for k in range(8))
    assert not kept.knows(np.full(2, 8.0))
    assert kept.trimmed(4) is kept


def test_a_point_is_known_up_to_rounding_of_each_decision():
    x = np.array([1e9, 1e-6, 0.0])
    state = RegionState(x, history=first(x, np.zeros(1)), radius=1e-5)
    assert state.knows(x)
    assert state.knows(x * (1.0 + 4e-15))
    assert not state.knows(np.array([1e9, 5e-6, 0.0]))
    assert not state.knows(np.array([1e9, 1e-6, 1e-12]))
