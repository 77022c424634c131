"""How told points stand to the constraints: scales, what counts as kept, what is returned and shown."""

from __future__ import annotations

import numpy as np

import pzos
from pzos.base.keys import Keys
from pzos.methods.smoothing import IterateState
from pzos.methods.solver import Outcome, Stop, Task
from pzos.study.result import Selection
from pzos.study.standing import Standing, selection_for


def chosen(leader: pzos.Leader) -> Selection:
    known = pzos.Problem(leader, abs, [0.0], outcomes=pzos.caps(0.0)).known()
    return selection_for(Task(known, Keys(0)), IterateState(0, known.x0))


def told(*points: tuple[float, float]) -> Standing:
    """Tell F = x and g = y for these pairs, and return how the chosen point stands."""
    leader = pzos.leader_from_functions(lambda x, y: float(x[0]), lambda x, y: 0 * x, lambda x, y: 0 * y)
    selected = chosen(leader)
    for x, y in points:
        selected.tell([np.array([x])], [np.array([y])])
    standing = selected.standing  # type: ignore[attr-defined]
    assert isinstance(standing, Standing)
    assert standing.values[0] in [y for _, y in points]
    return standing


def test_the_scale_is_the_span_of_what_was_told_or_the_size_at_the_start() -> None:
    assert told((0.0, -3.0)).scales == [3.0]
    assert told((0.0, -3.0), (1.0, 5.0)).scales == [8.0]
    assert told((0.0, 0.0)).scales == [1.0]


def test_a_feasible_point_is_preferred_to_a_better_one_that_is_not() -> None:
    assert told((5.0, -1.0), (0.0, 0.5), (4.0, -0.2)).values == [-0.2]
    assert told((5.0, 1.0), (0.0, 0.5), (4.0, 0.7)).values == [0.5]


def test_only_rounding_counts_as_kept() -> None:
    kept, broken = told((0.0, -2.0), (-1.0, 2e-9)), told((0.0, 2.0), (-1.0, 3e-9))
    assert kept.feasible
    assert kept.active == ("y[0] <= 0",)
    assert kept.violation <= 1e-9
    assert not broken.feasible
    assert broken.violated == ("y[0] <= 0",)


def test_a_first_step_far_away_does_not_make_violations_small() -> None:
    """The scale is 200 then, and 1e-4 would be less than a millionth of it; near the solution g is about 1."""
    assert told((1.0, -1.0), (50.0, 199.0), (0.0, 1e-4), (0.5, -1e-5)).values == [-1e-5]


def test_the_table_names_what_is_violated_and_what_stands_against_it() -> None:
    standing = Standing(("a", "b", "c"), np.array([0.5, 0.0, -1.0]), np.ones(3))
    assert standing.rows() == [("constraints", "a violated against b, by 0.5 of the scale")]
    kept = Standing(("a", "b"), np.array([-1e-9, -1.0]), np.ones(2), np.array([2.5, 0.0]))
    assert kept.rows()[1] == ("at their limits", "a (multiplier 2.5)")
    assert kept.multipliers == {"a": 2.5, "b": 0.0}
    assert Standing(("a",), np.array([-1.0]), np.ones(1)).rows()[1] == ("at their limits", "none")


def test_a_target_is_reached_by_feasible_points_only() -> None:
    leader = pzos.leader_from_functions(lambda x, y: float(x[0]), lambda x, y: 0 * x, lambda x, y: 0 * y)
    selected = chosen(leader)
    x = np.array([-5.0])
    selected.tell([x], [np.array([1.0])])
    assert not selected.reaches(0.0)
    assert selected.ended(Stop.QUERIES) is Stop.INFEASIBLE
    assert selected.ended(Stop.INTERRUPTED) is Stop.INTERRUPTED
    assert selected.extras(Outcome(x, -5.0, 0.0, 0.0)) == {"violation": 1.0}
    selected.tell([np.array([-1.0])], [np.array([-1.0])])
    assert selected.reaches(0.0)
    assert selected.ended(Stop.QUERIES) is Stop.QUERIES
