from __future__ import annotations

import numpy as np

import pzos
from pzos.methods.solver import Task
from pzos.stationarity.neighbours import NeighbourSolver
from pzos.stationarity.one_batch import report_on

LEADER = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
GOAL = np.array([1.0, 2.0, 0.0])


def problem(x0, sense="min"):
    sign = 1.0 if sense == "min" else -1.0
    return pzos.Problem(LEADER, lambda x: sign * (x - GOAL) ** 2, x0, pzos.Box(0.0, 3.0), sense, grid=1)


def test_at_the_best_point_no_neighbour_is_better():
    for sense in ("min", "max"):
        found = report_on("neighbours", problem(GOAL, sense), NeighbourSolver(), None, seed=0)
        assert found.better is None
        assert (found.neighbours, found.asked, found.queries) == (5, 5, 6)
        assert str(found) == "no better neighbour on the grid, all 5 asked (6 queries)"


def test_the_best_of_better_neighbours_is_named():
    found = report_on("neighbours", problem([1.0, 0.0, 1.0]), NeighbourSolver(), None, seed=0)
    assert found.better.tolist() == [1.0, 1.0, 1.0]
    assert (found.value, found.better_value) == (5.0, 2.0)
    assert found.sentence.startswith("a neighbour on the grid is better: F = 2 instead of 5 (all 5 neighbours asked")


def test_a_budget_for_fewer_queries_is_said():
    found = report_on("neighbours", problem(GOAL), NeighbourSolver(4), None, seed=0)
    assert found.sentence == "no better neighbour on the grid, 3 of 5 asked (4 queries)"


def test_a_neighbour_that_violates_an_outcome_is_not_better():
    caps = pzos.outcomes_from_functions(lambda x, y: x[1:2] - 0.5, lambda x, y, w: (np.array([0.0, w[0], 0.0]), 0 * y),
                                        names=["cap"])  # fmt: skip
    given = pzos.Problem(LEADER, lambda x: (x - GOAL) ** 2, [1.0, 0.0, 0.0], pzos.Box(0.0, 3.0), outcomes=caps, grid=1)
    solver = NeighbourSolver()
    task = Task(given.known(), pzos.Keys(0))
    plan = solver.ask(task, solver.init(task))
    found = solver.read(given.known(), plan, [(x - GOAL) ** 2 for x in plan.points])
    assert found.better is None


def test_without_an_answer_at_x_nothing_is_said():
    given = problem(GOAL)
    task = Task(given.known(), pzos.Keys(0))
    plan = NeighbourSolver().ask(task, NeighbourSolver().init(task))
    assert NeighbourSolver().read(given.known(), plan, [None] * len(plan.points)) is None
