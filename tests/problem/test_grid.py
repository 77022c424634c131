from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.problem.grid import Grid

LEADER = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
CUT = pzos.Polyhedron(A=[[1.0, 1.0, 1.0]], b=[1.3])
SETS = (
    pzos.Whole(),
    pzos.Box(-1.03, [0.97, 0.4, 2.0]),
    pzos.Simplex(1.0),
    pzos.Budget(1.1),
    pzos.Ball(0.2, 0.9),
    CUT,
    pzos.Intersection([pzos.Box(0.0, 1.0), CUT]),
)


def is_on(grid, x):
    held = grid.steps > 0.0
    counts = x[held] / grid.steps[held]
    return np.allclose(counts, np.round(counts), atol=1e-9)


@pytest.mark.parametrize("domain", SETS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("steps", [[0.25, 0.25, 0.25], [0.5, 0.0, 0.25]], ids=["full", "mixed"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_nearest_point_is_on_the_grid_in_the_set_and_near(domain, steps, seed):
    grid = Grid(np.array(steps))
    x = domain.project(np.random.default_rng(seed).standard_normal(3))
    near = grid.nearest(x, domain)
    assert near is not None
    assert is_on(grid, near)
    assert domain.contains(near, 1e-9)
    assert np.abs(near - x).max() <= 3 * max(steps)


def test_neighbours_differ_by_one_step_in_one_entry_inside():
    grid, x = Grid(np.array([0.5, 0.0, 1.0])), np.array([0.5, 0.3, 1.0])
    around = np.array(list(grid.neighbours(x, pzos.Box(0.0, 1.0))))
    np.testing.assert_allclose(around - x, [[0.5, 0, 0], [-0.5, 0, 0], [0, 0, -1.0]])


def test_where_a_sum_is_fixed_neighbours_move_one_entry_up_and_another_down():
    grid, x = Grid(np.ones(3)), np.array([4.0, 1.0, 0.0])
    around = {tuple(move - x) for move in grid.neighbours(x, pzos.Simplex(5.0))}
    assert around == {(-1, 1, 0), (1, -1, 0), (-1, 0, 1), (0, -1, 1)}


def test_free_entries_follow_where_a_sum_is_kept():
    grid = Grid(np.array([0.25, 0.25, 0.0]))
    near = grid.nearest(np.array([0.3, 0.3, 0.4]), pzos.Simplex(1.0))
    np.testing.assert_allclose(near, [0.25, 0.25, 0.5], atol=1e-9)


def test_bounds_between_multiples_are_kept():
    grid = Grid(np.full(2, 0.25))
    np.testing.assert_allclose(grid.rounded(np.array([5.0, -5.0]), -1.03, 0.97), [0.75, -1.0])


def test_a_problem_takes_one_step_or_one_per_entry():
    made = pzos.Problem(LEADER, abs, x0=[0.1, 0.2], grid=pzos.whole())
    assert made.grid is not None
    assert made.grid.steps.tolist() == [1.0, 1.0]
    assert made.grid.full
    mixed = pzos.Problem(LEADER, abs, x0=[0.1, 0.2], grid=[0.25, 0.0])
    assert mixed.known().grid is mixed.grid
    assert not mixed.grid.full
    assert mixed.with_leader(LEADER).grid.steps.tolist() == [0.25, 0.0]
    assert pzos.Problem(LEADER, abs, x0=[0.1, 0.2], grid=0).grid is None
    assert pzos.Problem(LEADER, abs, x0=[0.1, 0.2]).grid is None


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ([0.1, 0.2, 0.3], r"grid = \[0.1, 0.2, 0.3\]: expected one step, or 2, one per entry of x0; use 0 where"),
        (-1.0, r"grid = -1.0: expected steps of zero or more; try 0.25, or pzos.whole\(\)"),
        (np.nan, r"grid = nan: expected steps of zero or more"),
        ("fine", r"grid = 'fine': expected an array of numbers"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(grid, words):
    with pytest.raises(InvalidInput, match=words):
        pzos.Problem(LEADER, abs, x0=[0.1, 0.2], grid=grid)


def test_a_grid_without_a_point_in_the_set_is_refused():
    with pytest.raises(InvalidInput, match=r"grid = 1: expected a grid with a point in the domain Box.* near x0"):
        pzos.Problem(LEADER, abs, x0=[0.4, 0.5], domain=pzos.Box(0.3, 0.6), grid=1)
