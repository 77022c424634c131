from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.methods.response_model.history import first
from pzos.methods.trust_region.gridded import smallest_radius, trial_on_grid
from pzos.methods.trust_region.state import RegionState
from pzos.methods.trust_region.subproblem import Region
from pzos.problem.grid import Grid
from pzos.stationarity import StopWhenStationary

RNG = np.random.default_rng(3)
MIX, SHIFT = RNG.standard_normal((6, 4)), RNG.standard_normal(6)
GOAL = np.tanh(MIX @ np.array([0.7, -0.4, 0.3, 0.1]) + SHIFT)
LEADER = pzos.leader_from_functions(
    lambda x, y: float((y - GOAL) @ (y - GOAL) + 0.01 * (x @ x)), lambda x, y: 0.02 * x, lambda x, y: 2.0 * (y - GOAL)
)
CUT = pzos.Polyhedron(A=[[1.0, 1.0, 1.0, 1.0]], b=[0.6])
SETS = {
    "box": pzos.Box(-1.03, 1.03),
    "whole space": pzos.Whole(),
    "box and cut": pzos.Intersection([pzos.Box(-1.0, 1.0), CUT]),
    "ball": pzos.Ball(0.0, 1.2),
}


def follower(x):
    return np.tanh(MIX @ x + SHIFT)


def played(grid, domain=None, solver=None, queries=60, **settings):
    """Return the result and every point asked, the certificate's last."""
    asked = []

    def answer(x):
        asked.append(x.copy())
        return follower(x)

    problem = pzos.Problem(LEADER, answer, x0=np.full(4, 0.1), domain=domain, grid=grid)
    return pzos.solve(problem, solver, queries=queries, seed=4, **settings), np.array(asked)


def best_on(grid, domain):
    """Return the lowest F on the grid within 1.25, by trying all points of it."""
    ticks = grid * np.arange(-round(1.25 / grid), round(1.25 / grid) + 1)
    points = np.stack(np.meshgrid(*[ticks] * 4), axis=-1).reshape(-1, 4)
    inside = np.array([x for x in points if domain.contains(x, 1e-9)])
    answers = np.tanh(inside @ MIX.T + SHIFT)
    return float((((answers - GOAL) ** 2).sum(axis=1) + 0.01 * (inside**2).sum(axis=1)).min())


@pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
def test_queries_are_on_the_grid_in_the_set_and_new_and_the_best_point_is_found(domain):
    result, asked = played(0.25, domain, certificate=False)
    points = asked[1:]
    np.testing.assert_array_equal(points, 0.25 * np.round(points / 0.25))
    assert all(domain.contains(x, 1e-9) for x in points)
    assert len({x.tobytes() for x in asked}) == len(asked)
    start, best = LEADER.value(asked[0], follower(asked[0])), best_on(0.25, domain)
    assert result.value - best <= 0.01 * (start - best)


def test_the_resolution_of_the_solver_is_the_same_grid():
    _, by_problem = played(0.25, pzos.Box(-1.0, 1.0), pzos.CompositeTrustRegion(), queries=20)
    _, by_solver = played(None, pzos.Box(-1.0, 1.0), pzos.CompositeTrustRegion(resolution=0.25), queries=20)
    np.testing.assert_array_equal(by_problem, by_solver)


def test_free_entries_are_free():
    steps = np.array([0.5, 0.0, 0.5, 0.0])
    result, asked = played(steps, pzos.Box(-1.0, 1.0), certificate=False)
    held = asked[1:, [0, 2]]
    np.testing.assert_array_equal(held, 0.5 * np.round(held / 0.5))
    assert np.abs(asked[1:, 1] / 0.5 - np.round(asked[1:, 1] / 0.5)).max() > 1e-3
    full, _ = played(0.5, pzos.Box(-1.0, 1.0), certificate=False)
    assert result.value < full.value


def test_whole_numbers_with_few_choices_end_when_every_neighbour_is_told():
    result, asked = played(pzos.whole(), pzos.Box(-1.0, 1.0), queries=200)
    assert result.stop is pzos.Stop.CONVERGED
    assert len(asked) <= 3**4 + 1 + 9
    assert result.value == pytest.approx(best_on(1.0, pzos.Box(-1.0, 1.0)))


def test_shares_of_a_fixed_sum_end_when_every_exchange_is_told():
    """No single step stays in the set, which was once taken for the end after two queries."""
    best = np.array([1.0, 3.0, 3.0, 1.0])
    leader = pzos.leader_from_functions(
        lambda x, y: float(y @ y), lambda x, y: np.zeros(4), lambda x, y: 2.0 * y, name="distance"
    )
    problem = pzos.Problem(leader, lambda x: np.array(x) - best, [8.0, 0.0, 0.0, 0.0], pzos.Simplex(8.0), grid=1.0)
    result = pzos.solve(problem, queries=60, seed=0, progress=False, certificate=False)
    np.testing.assert_array_equal(result.best_x, best)


def test_the_certificate_says_what_stationarity_is_on_a_grid():
    result, asked = played(0.25, pzos.Box(-1.0, 1.0))
    certificate = result.certificate
    assert certificate is not None
    assert certificate.better is None
    assert str(certificate).startswith("no better neighbour on the grid, all ")
    np.testing.assert_array_equal(asked[1:], 0.25 * np.round(asked[1:] / 0.25))
    assert "no better neighbour" in str(result)


def test_a_batch_has_different_points_of_the_grid():
    _, asked = played(0.25, pzos.Box(-1.0, 1.0), pzos.CompositeTrustRegion(batch=4), queries=30)
    np.testing.assert_array_equal(asked[1:], 0.25 * np.round(asked[1:] / 0.25))
    assert len({x.tobytes() for x in asked}) == len(asked)


def test_maximising_is_minimising_the_negative():
    flipped = pzos.leader_from_functions(
        lambda x, y: -LEADER.value(x, y), lambda x, y: -LEADER(x, y).grad_x, lambda x, y: -LEADER(x, y).grad_y
    )
    low = pzos.minimize(
        LEADER, follower, np.full(4, 0.1), domain=pzos.Box(-1, 1), step_of_x=0.25, queries=25, certificate=True
    )
    high = pzos.maximize(
        flipped, follower, np.full(4, 0.1), domain=pzos.Box(-1, 1), step_of_x=0.25, queries=25, certificate=True
    )
    np.testing.assert_array_equal(low.x, high.x)
    assert high.certificate.better is None


@pytest.mark.parametrize(
    "solver",
    [pzos.PZOS(), pzos.ZOS(), pzos.MemoryPZOS(), StopWhenStationary(pzos.CompositeTrustRegion(), 0.1, 0.1)],
    ids=lambda s: type(s).__name__,
)
def test_a_solver_that_leaves_the_grid_is_refused(solver):
    with pytest.raises(InvalidInput, match="expected one that keeps to the grid of the problem; use the default"):
        played(0.25, pzos.Box(-1.0, 1.0), solver)
    result, _ = played(0.25, pzos.Box(-1.0, 1.0), queries=5, certificate=False)
    problem = pzos.Problem(LEADER, follower, np.full(4, 0.1), pzos.Box(-1.0, 1.0), grid=0.25)
    with pytest.raises(InvalidInput, match="keeps to the grid"):
        result.certify(problem, delta=0.1)


def test_constraints_on_the_outcome_and_a_grid_together():
    caps = pzos.outcomes_from_functions(
        lambda x, y: y[:1] - 0.2, lambda x, y, w: (0 * x, np.append(w, np.zeros(5))), names=["first"]
    )
    asked = []

    def answer(x):
        asked.append(x.copy())
        return follower(x)

    problem = pzos.Problem(LEADER, answer, np.full(4, 0.25), pzos.Box(-1.0, 1.0), outcomes=caps, grid=0.25)
    result = pzos.solve(problem, queries=40, certificate=False)
    np.testing.assert_array_equal(asked, 0.25 * np.round(np.array(asked) / 0.25))
    assert follower(result.x)[0] <= 0.2 + 1e-6


def test_as_long_as_answers_are_few_the_rounded_minimiser_is_asked():
    """Between neighbours a model of few answers is no guide: searching it was up to 13 queries behind rounding."""
    grid, x = Grid(np.full(2, 0.5)), np.array([0.6, 0.1])

    def first_query(answers):
        points = np.array([[2.0 + k, 2.0] for k in range(answers)])
        history = first(points[0], np.zeros(1), np.ones(2))
        for point in points[1:]:
            history = history.append(point, np.zeros(1))
        state = RegionState(points[0], history=history)
        region = Region(np.zeros(2), 2.0, np.ones(2), pzos.Whole())
        away = lambda z: (float((z - 1.5) @ (z - 1.5)), 2.0 * (z - 1.5))  # noqa: E731
        return trial_on_grid(None, state, grid, away, region, x, 16)

    np.testing.assert_array_equal(first_query(4), [0.5, 0.0])
    np.testing.assert_array_equal(first_query(5), [1.5, 1.5])


def test_the_smallest_trust_region_has_room_for_two_steps():
    assert smallest_radius(Grid(np.array([0.25, 0.5])), np.array([1.0, 4.0])) == 0.5
    assert smallest_radius(Grid(np.array([0.25, 0.0])), np.ones(2)) == 0.0


def test_a_better_valley_of_a_small_grid_is_found_and_no_point_is_asked_twice():
    """From x0 every neighbour is worse: once that was the end, with most of the budget left."""
    asked = []

    def valleys(x):
        asked.append(x.copy())
        return np.array([min(float(np.abs(x - 1.0).sum()), float(np.abs(x - 5.0).sum()) - 2.5)])

    leader = pzos.leader_from_functions(lambda x, y: float(y[0]), lambda x, y: np.zeros(2), lambda x, y: np.ones(1))
    problem = pzos.Problem(leader, valleys, np.ones(2), pzos.Box(0.0, 6.0), grid=pzos.whole())
    result = pzos.solve(problem, queries=200, seed=0, progress=False, certificate=False)
    assert result.value == -2.5
    assert result.stop is pzos.Stop.CONVERGED
    assert len(np.unique(np.array(asked), axis=0)) == len(asked) <= 49


def test_a_long_grid_of_one_decision_is_not_taken_for_told_where_it_is_crowded():
    """6001 points are too many to list: when all around the best one are told, there are others further away."""
    asked = []

    def answer(x):
        asked.append(float(x[0]))
        return np.abs(x - 3.0)

    leader = pzos.leader_from_functions(lambda x, y: float(y[0]), lambda x, y: np.zeros(1), lambda x, y: np.ones(1))
    problem = pzos.Problem(leader, answer, np.array([40.0]), pzos.Box(-3000.0, 3000.0), grid=pzos.whole())
    result = pzos.solve(problem, queries=60, seed=0, progress=False, certificate=False)
    assert result.value == 0.0
    assert len(asked) > 40
    assert len(set(asked)) == len(asked)
