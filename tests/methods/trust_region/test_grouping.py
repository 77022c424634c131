"""Many decisions and few queries: groups of decisions are moved together."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.keys import Keys
from pzos.methods.solver import Task
from pzos.methods.trust_region.grouping import _next, told
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import Group, Grouped
from pzos.testing import play

#: What decisions are worth is alike for neighbours, and only moves of about 50 matter.
FAR, ROADS = 50.0, 400


def tolls(domain, worth):
    """Return a problem that starts at zero where f says nothing of x: the answers fall until about FAR, then rise."""

    def respond(x):
        return 1.0 + (worth * (0.5 * (x / FAR) ** 2 - x / FAR)).reshape(20, -1).mean(axis=1)

    leader = pzos.leader_from_functions(
        lambda x, y: float(y.sum()), lambda x, y: np.zeros_like(x), lambda x, y: np.ones_like(y)
    )
    return pzos.Problem(leader, respond, np.zeros(ROADS), domain)


@pytest.mark.parametrize("domain", [pzos.Whole(), pzos.Nonnegative(), pzos.Box(0.0, 1e4)])
def test_the_scale_of_many_decisions_is_found_from_zero_in_a_few_queries(domain):
    result = pzos.solve(tolls(domain, np.ones(ROADS)), queries=12, seed=0, progress=False, certificate=False)
    assert result.value <= 20.0 - 0.8 * 10.0  # all at FAR bring 10


def test_groups_that_must_go_different_ways_are_told_apart():
    # half of them make things worse: all together are worth nothing
    worth = np.repeat([1.0, -0.5, 1.0, -0.5], ROADS // 4)
    problem = tolls(pzos.Nonnegative(), worth)
    result = pzos.solve(problem, queries=40, seed=0, progress=False, certificate=False)
    best, everything = 0.25 * 20.0, 0.125 * 20.0
    assert 20.0 - result.value > everything + 0.5 * (best - everything)


@pytest.mark.parametrize(("step", "next_step"), [(-1.0, 1.0), (2.0, 0.0)])
def test_halves_of_a_group_that_moved_the_wrong_way_go_the_other_way(step, next_step):
    problem = tolls(pzos.Nonnegative(), np.ones(ROADS))
    study, _, _ = play(problem, CompositeTrustRegion(), steps=6, seed=0)
    x = study.state.x.copy()
    x[: ROADS // 2] += 5.0 * FAR * step if step > 0.0 else -x[: ROADS // 2]  # F rises either way
    asked = Grouped(x, 0, (Group(0, ROADS // 2, step), Group(ROADS // 2, ROADS)))
    task = Task(problem.known(), Keys(0))
    state = told(task, study.state, study.state, asked, x, problem.follower.respond(x, None))
    assert state.groups[0].moved > 0.0
    assert state.groups[0].step == next_step  # that it was moved too far says nothing


def test_few_decisions_are_never_moved_in_groups():
    n = 300
    leader = pzos.leader_from_functions(lambda x, y: float(y[0]), lambda x, y: 0 * x, lambda x, y: np.ones(1))
    problem = pzos.Problem(leader, lambda x: np.array([np.abs(x - 3.0).sum()]), np.zeros(n))
    study, _, _ = play(problem, CompositeTrustRegion(), steps=8, seed=0)
    assert study.state.groups == ()


def test_a_set_on_which_all_cannot_move_together_is_split_at_once():
    n = 320
    wanted = np.repeat([0.0, 2.0 / n], n // 2)
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: np.zeros_like(x), lambda x, y: 2.0 * y)
    problem = pzos.Problem(
        leader, lambda x: (x - wanted).reshape(4, -1).sum(axis=1), np.full(n, 1.0 / n), pzos.Simplex(1.0)
    )
    result = pzos.solve(problem, queries=15, seed=0, progress=False, certificate=False)
    assert result.value < 0.01 * 4 * 0.25**2


def test_the_group_that_moved_the_answers_most_is_halved():
    groups = (Group(0, 8, moved=1.0), Group(8, 16, step=-1.0, moved=5.0), Group(16, 24, moved=2.0))
    row, halves = _next(groups)
    assert row == 1
    assert [(group.first, group.last) for group in halves] == [(0, 8), (8, 12), (12, 16), (16, 24)]
    assert [group.step for group in halves] == [0.0, -1.0, -1.0, 0.0]  # as was found for the whole
    assert _next((Group(0, 1, moved=1.0),)) is None  # nothing is left to halve
