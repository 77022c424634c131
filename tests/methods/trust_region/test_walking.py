"""Walks: when it is their turn, where they lead, how far the next one goes, and what they bring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.keys import Keys
from pzos.methods.response_model.history import first
from pzos.methods.solver import Task
from pzos.methods.trust_region.state import Refusal, RegionState, Walk
from pzos.methods.trust_region.walking import told, walk

BOX = pzos.Box(-2.0, 2.0)
#: What a unit of each decision costs.
PRICES = np.array([1.0, -2.0])


def task(**changes):
    """Return a task in which answers count the whole units of each decision, and the leader pays for both."""
    leader = pzos.leader_from_functions(
        lambda x, y: float(PRICES @ x + y.sum()), lambda x, y: PRICES.copy(), lambda x, y: np.ones(2)
    )
    known = {"x0": np.zeros(2), "domain": BOX, **changes}
    return Task(pzos.Problem(leader, np.floor, **known).known(), Keys(0))


def jumped(answers=np.floor, **changes):
    """Return a state after ten queries around the best one, in a response with jumps."""
    points = np.random.default_rng(0).uniform(-0.5, 0.9, (10, 2))
    history = first(points[0], answers(points[0]))
    for point in points[1:]:
        history = history.append(point, answers(point))
    best = points[points.min(axis=1).argmax()]  # well inside of a cell
    known = {"history": history, "radius": 0.5, "scale": 1.0, "step": 10, "jumps": 1e-2, "lowest": (best, 0.0)}
    return replace(RegionState(best), **{**known, **changes})


def test_a_walk_goes_from_the_best_answer_down_the_slope_of_f_alone():
    state = jumped()
    move = walk(task(), state, iterations=16)
    np.testing.assert_allclose(move.x, state.lowest[0] + 0.2 * np.array([-1.0, 1.0]))
    assert move.predicted == pytest.approx(0.2 * 3.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"jumps": 0.0},
        {"exact": False},
        {"step": 3},
        {"walk": Walk(np.full(2, 0.1), True, 1, 11)},
        {"lowest": None},
        {"lowest": (np.full(2, 7.0), 0.0)},
        {"refused": (Refusal(np.full(2, 2.0), 3.0),)},
    ],
    ids=["no jumps", "noise", "too early", "not its turn", "nothing told", "forgotten", "no answer somewhere"],
)
def test_it_is_the_turn_of_a_walk_only_between_jumps_that_repeat_themselves(changes):
    assert walk(task(), jumped(**changes), iterations=16) is None


def test_no_walk_where_answers_move_between_their_jumps():
    moving = jumped(lambda x: np.floor(x) + 0.1 * x)
    assert walk(task(), moving, iterations=16) is None


def test_no_walk_where_decisions_share_a_sum():
    shares = pzos.Simplex(1.0)
    assert walk(task(x0=np.full(2, 0.5), domain=shares), jumped(), iterations=16) is None


def test_no_walk_that_promises_next_to_nothing():
    assert walk(task(), jumped(), iterations=16, least=1.0) is None


def test_walks_into_where_followers_do_not_answer_end_no_run():
    """A border that walks know nothing of; without them no run ended early here."""
    draw = np.random.default_rng(4)
    slopes, worth = draw.standard_normal((5, 5)), draw.random(5)

    def follower(x):
        if x.max() > 2.0:
            raise RuntimeError("no answer")
        return np.floor(3.0 * slopes @ x)

    leader = pzos.leader_from_functions(
        lambda x, y: float(-worth @ x + 0.02 * y @ y), lambda x, y: -worth, lambda x, y: 0.04 * y
    )
    problem = pzos.Problem(leader, follower, np.ones(5), pzos.Box(0.0, 4.0))
    lenient = pzos.Tolerance(policy="drop", attempts=1, failure_rate=0.95)
    for seed in range(4):
        result = pzos.solve(problem, queries=80, seed=seed, tolerance=lenient, progress=False, certificate=False)
        assert result.stop is pzos.Stop.QUERIES


def test_no_walk_under_constraints_on_outcomes():
    outcomes = pzos.caps(1.0)
    assert walk(task(outcomes=outcomes), jumped(), iterations=16) is None


def test_no_walk_to_a_point_that_is_known():
    state = jumped()
    there = walk(task(), state, iterations=16).x
    assert walk(task(), replace(state, history=state.history.append(there, np.floor(there))), iterations=16) is None


def test_after_a_failure_only_some_decisions_move():
    moved = set()
    for step in range(10, 30):
        state = jumped(step=step, walk=Walk(np.full(2, 0.1), True, 1, 0))
        found = walk(task(), state, iterations=16)
        moved |= {None if found is None else tuple(found.x != state.lowest[0])}
    assert moved == {None, (True, False), (False, True), (True, True)}


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_next_walk_is_longer_after_a_gain_and_shorter_and_later_after_failures(sense):
    known = task(sense=sense)
    sign = 1.0 if sense == "min" else -1.0
    state = jumped(lowest=(np.zeros(2), 0.0))
    lower, higher = -sign * np.array([0.2, 0.0]), sign * np.array([0.2, 0.0])
    gained = told(known, state, lower, np.zeros(2)).walk
    np.testing.assert_allclose(gained.lengths, [0.28, 0.2])  # the second decision did not move
    assert gained[1:] == (False, 0, 12)
    once = told(known, state, higher, np.zeros(2))
    np.testing.assert_allclose(once.walk.lengths, [0.1, 0.2])
    assert once.walk[1:] == (True, 1, 13)
    twice = told(known, once, higher, np.zeros(2))
    np.testing.assert_allclose(twice.walk.lengths, [0.05, 0.2])
    assert twice.walk[1:] == (True, 2, 15)
    assert told(known, twice, higher, np.zeros(2)).walk.turn == 15


def test_all_decisions_move_again_once_all_of_them_gained():
    known, state = task(), jumped(lowest=(np.zeros(2), 0.0), walk=Walk(np.full(2, 0.2), True, 3, 0))
    assert told(known, state, np.array([-0.2, 0.0]), np.zeros(2)).walk.failed
    assert not told(known, state, np.array([-0.2, 0.2]), np.zeros(2)).walk.failed


def prices_of_whole_units(seed):
    """Return goods that are sold in whole units, fewer the higher the price, and the most they can bring."""
    draw = np.random.default_rng(seed)
    units, worth = draw.integers(4, 9, 3).astype(float), 2.0 * (1.0 + draw.random(3))

    def sold(x):
        return np.ceil(units * (1.0 - x / worth)).clip(min=0.0)

    leader = pzos.leader_from_functions(lambda x, y: float(-x @ y), lambda x, y: -y, lambda x, y: -x)
    # The highest price at which k are sold is that at which k - 1 would be, nearly.
    most = sum(
        max(k * w * (1.0 - (k - 1.0) / u) for k in np.arange(1.0, u + 1.0)) for u, w in zip(units, worth, strict=True)
    )
    return pzos.Problem(leader, sold, np.full(3, 0.2), pzos.Box(0.0, 4.0)), most


def test_walks_find_the_edges_of_cells():
    """Prices at which one unit less would be sold if they were higher: the model, which smooths, misses more."""
    missing = []
    for seed in range(20, 26):
        problem, most = prices_of_whole_units(seed)
        result = pzos.solve(problem, queries=80, seed=seed, progress=False, certificate=False)
        assert result.value == result.best_value
        missing.append(1.0 + result.best_value / most)
    assert min(missing) >= 0.0
    assert np.exp(np.mean(np.log(missing))) < 0.02
