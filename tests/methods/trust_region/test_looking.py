"""Where a query goes that is not at the model's minimiser: new directions, far away, on a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.methods.response_model.history import History, first
from pzos.methods.solver import Stop, Task
from pzos.methods.trust_region.looking import (
    anywhere,
    beside,
    carried_on,
    explore,
    far_look,
    first_scale,
    looks_far,
    survey,
)
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import RegionState, models
from pzos.methods.trust_region.subproblem import Move
from pzos.testing import play

rng = np.random.default_rng(11)


def tracked(n, m, domain=None, scale=1.0):
    """Return a problem without structure: y is linear in x, f wants it elsewhere."""
    B, goal = rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m)
    leader = pzos.leader_from_functions(
        lambda x, y: float((y - goal) @ (y - goal) + 1e-3 * (x / scale) @ (x / scale)),
        lambda x, y: 2e-3 * x / scale**2,
        lambda x, y: 2.0 * (y - goal),
    )
    return pzos.Problem(leader, lambda x: B @ (x / scale), 0.3 * scale * rng.standard_normal(n), domain)


@pytest.mark.parametrize("n", [5, 12])
def test_every_direction_of_a_response_without_structure_is_seen_in_about_as_many_queries(n):
    problem = tracked(n, n + 3)
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=n + 6, seed=1)
    points = np.array([query.x for query in asked])
    assert np.linalg.matrix_rank(points - points[0], tol=1e-4) == n


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_the_search_does_not_depend_on_the_units_of_x(scale):
    global rng
    rng = np.random.default_rng(3)
    problem = tracked(6, 8, scale=scale)
    rng = np.random.default_rng(3)
    plain = tracked(6, 8)
    solver = CompositeTrustRegion()
    one = pzos.solve(problem, solver, queries=25, seed=2, progress=False)
    other = pzos.solve(plain, solver, queries=25, seed=2, progress=False)
    assert one.value == pytest.approx(other.value, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    ("domain", "radius", "succeeded", "scale"),
    [
        (pzos.Box(-5.0, 5.0), 3.0, False, 0.5),
        (pzos.Box(-5.0, 5.0), 0.2, False, 0.2),  # within the trust region
        (pzos.Box(-5.0, 5.0), 3.0, True, 0.0),  # trials tell it by now
        (pzos.Box(-5.0, np.inf), 3.0, False, 0.0),
        (pzos.Box(-1e8, 1e8), 3.0, False, 0.0),  # bounds that stand for none
        (pzos.Nonnegative(), 3.0, False, 0.0),
        (pzos.Ball(np.zeros(4), 9.0), 3.0, False, 0.225),  # of what four that are alike may be
        (pzos.Ball(np.zeros(4), 3.0), 3.0, False, 0.1),  # of decisions of one at x0
        (pzos.Budget(24.0), 3.0, False, 0.575),
        (pzos.Ball(np.zeros(4), 9.0), 0.05, False, 0.05),
        (pzos.Ball(np.zeros(4), 9.0), 3.0, True, 0.0),
        (pzos.Ball(np.ones(4), 0.4), 0.1, False, 0.02),  # no wider than the set, wherever the origin is
    ],
)
def test_before_a_trial_has_succeeded_a_box_or_x0_tells_how_far_slopes_are_asked(domain, radius, succeeded, scale):
    x, y = np.ones(4), np.zeros(5)
    known = replace(tracked(4, 5).known(), x0=x, domain=domain)
    task = Task(known, Keys(0))
    value = known.leader.value(x, y)
    state = RegionState(x, value, history=first(x, y), radius=radius, succeeded=succeeded)
    assert first_scale(task, state) == pytest.approx(scale)
    (model,) = models(task, state, None, state.shapes, state.priors).values()
    asked = explore(task, state, model, np.array([0.0, 0.6, -0.8, 0.0]))
    near = 0.2 * 0.8 * radius  # the share of the trust radius at which slopes are asked elsewhere
    assert float(np.abs(asked - x).max()) == pytest.approx(max(scale, near))


def two_wells():
    """Return a problem whose x0 lies in the shallow one of two wells."""
    deep, shallow = np.array([2.0, 2.0]), np.array([-2.0, -2.0])

    def respond(x):
        return np.exp(-0.5 * np.array([((x - deep) ** 2).sum(), ((x - shallow) ** 2).sum()]))

    leader = pzos.leader_from_functions(
        lambda x, y: float(-2.0 * y[0] - y[1]), lambda x, y: 0 * x, lambda x, y: np.array([-2.0, -1.0])
    )
    return pzos.Problem(leader, respond, np.array([-1.5, -1.6]), pzos.Box(-4.0, 4.0))


def test_a_random_point_is_never_one_that_was_told():
    """Every corner was told, and in a wide region random points end there."""
    corners = np.array([[-4.0, -4.0], [-4.0, 4.0], [4.0, -4.0], [4.0, 4.0]])
    history = History(corners, np.zeros((4, 2)), np.ones(4), np.ones(2))
    state = RegionState(corners[0], history=history, radius=1e3)
    for step in range(20):
        assert not state.knows(anywhere(Task(two_wells().known(), Keys(step)), state))


def test_a_survey_under_noise_goes_to_a_corner_unless_that_was_told():
    """What passes for noise may be a simulator that jumps at every scale: its answer at the corner is known."""
    corners = np.array([[-4.0, -4.0], [-4.0, 4.0], [4.0, -4.0], [4.0, 4.0]])
    told = RegionState(
        corners[0], history=History(corners, np.zeros((4, 2)), np.ones(4), np.ones(2)), radius=1e3, exact=False
    )
    untold = replace(told, x=np.zeros(2), history=first(np.zeros(2), np.zeros(2), np.ones(2)))
    for step in range(20):
        task = Task(two_wells().known(), Keys(step))
        assert not told.knows(survey(task, told, told.x))
        assert (np.abs(survey(task, untold, untold.x)) == 4.0).all()


def sales(cliff):
    """Return a firm whose cost knows its prices through the answers alone; above the cliff it sells nothing."""
    revenue = pzos.leader_from_functions(
        lambda x, y: float(-y.sum()), lambda x, y: 0 * x, lambda x, y: -np.ones(y.size)
    )
    return pzos.Problem(revenue, lambda x: np.where(x < cliff, x, 0.0), np.full(12, 5.0), pzos.Box(0.0, 30.0))


def test_where_the_cost_does_not_say_which_way_to_go_all_decisions_are_moved_together_first():
    problem = sales(cliff=20.0)
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=2, seed=0)
    moved = asked[1].x - problem.x0
    assert moved[0] > 0.0
    np.testing.assert_allclose(moved, moved[0])


def test_a_failure_on_the_line_of_the_first_move_leaves_the_radius_to_other_directions():
    # F is lowest a little before the first move; a linear model goes on, and fails
    leader = pzos.leader_from_functions(lambda x, y: float(y[0]), lambda x, y: 0.0 * x, lambda x, y: np.ones(1))
    problem = pzos.Problem(leader, lambda x: np.array([(x.mean() - 2.7) ** 2]), np.full(4, 2.0), pzos.Box(0.0, 20.0))
    study, asked, _ = play(problem, CompositeTrustRegion(), steps=3, seed=0)
    assert np.ptp(asked[2].x) < 1e-9  # still on the line
    assert abs(asked[2].x.mean() - 2.7) > abs(asked[1].x.mean() - 2.7)
    assert study.state.radius == study.state.scale


def test_a_first_move_of_all_decisions_over_a_cliff_is_tried_half_as_far():
    problem = sales(cliff=6.5)
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=3, seed=0)
    assert asked[1].x.min() > 6.5
    np.testing.assert_allclose(asked[2].x - problem.x0, 0.5 * (asked[1].x - problem.x0))


def shares(goal, start, grid=None):
    """Return shares of 100 whose cost knows them through the answers alone."""
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    return pzos.Problem(leader, lambda x: np.sqrt(x) - np.sqrt(goal), start, pzos.Simplex(100.0), grid=grid)


@pytest.mark.parametrize("grid", [None, 1.0])
def test_where_nothing_can_move_together_the_first_move_is_to_where_all_are_alike(grid):
    problem = shares(np.full(5, 20.0), [96.0, 1.0, 1.0, 1.0, 1.0], grid)
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=2, seed=0)
    np.testing.assert_allclose(asked[1].x, np.full(5, 20.0))


def test_where_that_fails_half_as_far_is_next():
    problem = shares([80.0, 5.0, 5.0, 5.0, 5.0], [90.0, 2.5, 2.5, 2.5, 2.5])
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=3, seed=0)
    np.testing.assert_allclose(asked[2].x, 0.5 * (asked[0].x + asked[1].x))


def test_shares_that_are_alike_from_the_start_are_moved_some_other_way():
    problem = shares([40.0, 30.0, 10.0, 10.0, 10.0], np.full(5, 20.0))
    _, asked, records = play(problem, CompositeTrustRegion(), steps=25, seed=0)
    assert np.ptp(asked[1].x) > 1.0
    assert min(record.value for record in records) < 1e-3 * records[0].value


def rough(x):
    """Return answers whose kinks make local steps fail."""
    return np.array([np.abs(x - 2.0).sum() + 0.2 * np.abs(np.sin(7.0 * x)).sum(), x[0]])


def test_with_few_answers_nothing_looks_far_away_as_long_as_something_is_promised_nearby():
    leader = pzos.leader_from_functions(
        lambda x, y: float(y[0]), lambda x, y: 0.0 * x, lambda x, y: np.array([1.0, 0.0])
    )
    problem = pzos.Problem(leader, rough, np.full(2, 5.0), pzos.Box(0.0, 100.0))
    _, asked, _ = play(problem, CompositeTrustRegion(), steps=8, seed=0)  # then nothing is promised any more
    assert max(np.abs(query.x - 5.0).max() for query in asked) < 10.0


def test_spare_queries_look_far_away_and_find_the_deeper_well():
    result = pzos.solve(two_wells(), CompositeTrustRegion(), queries=80, progress=False)
    assert result.value == pytest.approx(-2.0, abs=1e-2)
    assert "looked far away" in result.explanation


def test_once_little_is_promised_the_decision_that_came_furthest_is_carried_on_to_its_bound_alone():
    problem = tracked(6, 7, pzos.Box(-9.0, 9.0))
    _, asked, records = play(problem, CompositeTrustRegion(), steps=18, seed=0)
    first = next(k for k, query in enumerate(asked) if np.abs(query.x).max() == 9.0)
    best = asked[int(np.argmin([record.value for record in records[:first]]))].x
    came = best - problem.x0
    furthest = int(np.argmax(np.abs(came)))
    carried = best.copy()
    carried[furthest] = 9.0 * np.sign(came[furthest])
    np.testing.assert_array_equal(asked[first].x, carried)


def carrying_state(came, points=10, **settings):
    """Return a state in a box to 9 that has come so far from x0 = 0, and is promised nothing."""
    x = np.array(came, dtype=np.float64)
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    problem = pzos.Problem(leader, lambda x: x[:1], np.zeros(x.size), pzos.Box(-9.0, 9.0))
    history = first(np.zeros(x.size), np.zeros(1))
    for point in np.random.default_rng(0).uniform(-1.0, 1.0, (points, x.size)):
        history = history.append(point, point[:1])
    return Task(problem.known(), Keys(0)), RegionState(x, -1.0, 0.0, history=history, **settings)


def test_of_few_decisions_the_one_that_came_furthest_is_carried_on_once_and_no_other():
    little = Move(np.zeros(3), 1e-3, 0.1)
    task, state = carrying_state([0.5, -2.0, 1.0])
    carried = carried_on(task, state, little)
    np.testing.assert_array_equal(carried, [0.5, -9.0, 1.0])
    done = replace(state, history=state.past.append(carried, np.zeros(1)))
    assert carried_on(task, done, little) is None
    np.testing.assert_array_equal(
        carried_on(task, replace(done, x=np.array([0.5, -2.0, 3.0])), little), [0.5, -2.0, 9.0]
    )
    trimmed = state.past.part(np.arange(10))
    assert not state.past.forgot
    assert trimmed.forgot
    assert carried_on(task, replace(state, history=trimmed), little) is None  # what was done is forgotten
    np.testing.assert_array_equal(carried_on(task, replace(state, elsewhere=frozenset([b""])), little), carried)
    assert carried_on(task, replace(state, step=1), little) is None
    assert carried_on(task, state, replace(little, predicted=0.1)) is None
    assert carried_on(*carrying_state([0.5, -2.0, 1.0], points=5), little) is None
    assert carried_on(*carrying_state([0.0, 0.0, 0.0]), little) is None
    assert carried_on(*carrying_state(np.ones(7)), little) is None


def test_answers_known_before_the_first_query_count_for_when_looks_begin():
    task, state = idle_state(2, losses=2, stalled=2)
    assert state.step == 0
    assert any(looks_far(task, replace(state, idle=40 + k)) for k in range(9))


def test_on_a_grid_no_decision_is_carried_on_for_its_bound_may_be_no_point_of_it():
    problem = tracked(6, 7, pzos.Box(-9.1, 9.1))
    _, asked, _ = play(problem, CompositeTrustRegion(resolution=0.5), steps=14, seed=0)
    assert not [query for query in asked if (np.abs(query.x) >= 9.0).sum() == 1]


def test_looks_far_away_that_fail_leave_the_search_nearby_alone_and_are_not_asked_again():
    far = lambda query: np.abs(query.x).max() > 4.0  # noqa: E731
    study, asked, _ = play(tracked(3, 4, pzos.Box(-9.0, 9.0)), CompositeTrustRegion(), steps=90, seed=0, fails=far)
    failed = [tuple(query.x) for query in asked if far(query)]
    assert len(asked) == 90
    assert len(set(failed)) == len(failed) > 4
    assert study.state.failed < 5


def test_every_query_lies_on_the_grid_of_the_resolution_inside_the_box_and_is_new():
    problem = tracked(4, 6, domain=pzos.Box(-1.03, 0.97))
    study, asked, _ = play(problem, CompositeTrustRegion(resolution=0.05), steps=60, seed=3)
    points = np.array([query.x for query in asked[1:]])
    np.testing.assert_allclose(points / 0.05, np.round(points / 0.05), atol=1e-9)
    assert points.min() >= -1.03
    assert points.max() <= 0.97
    assert len({x.tobytes() for x in points}) == len(points)
    fine = pzos.solve(problem, CompositeTrustRegion(), queries=60, progress=False)
    first = problem.leader.value(problem.x0, problem.follower.respond(problem.x0, None))
    assert (study.state.value - fine.value) / (first - fine.value) < 0.05


def test_a_resolution_needs_a_multiple_in_the_set():
    problem = pzos.Problem(two_wells().leader, two_wells().follower, np.full(2, 0.5), pzos.Box(0.2, 0.8))
    with pytest.raises(InvalidInput, match=r"resolution = 1.0: expected a multiple of it in the domain near x0"):
        pzos.solve(problem, CompositeTrustRegion(resolution=1.0), queries=5, progress=False)


def test_tolerances_end_a_run_early_and_near_the_optimum():
    problem = tracked(4, 6)
    best = pzos.solve(problem, CompositeTrustRegion(), queries=100, progress=False).value
    result = pzos.solve(problem, CompositeTrustRegion(ftol=1e-6), queries=400, progress=False)
    assert result.stop is Stop.CONVERGED
    assert result.queries < 100
    assert result.value - best < 1e-4


def test_a_look_goes_down_the_model_to_an_optimum_that_no_random_point_hits():
    draw = np.random.default_rng(0)
    here, there = np.full(8, -1.0), np.full(8, 1.0)

    def wells(x, y):
        return float(min(((y - here) ** 2).sum(), ((y - there) ** 2).sum() - 0.5))

    def pull(x, y):
        return 2.0 * (y - (here if ((y - here) ** 2).sum() <= ((y - there) ** 2).sum() - 0.5 else there))

    leader = pzos.leader_from_functions(wells, lambda x, y: np.zeros(8), pull)
    problem = pzos.Problem(leader, lambda x: x, here, pzos.Box(-2.0, 2.0))
    told = tuple((x, x) for x in (here, *draw.uniform(-2.0, 2.0, (30, 8))))
    task = Task(problem.known(), Keys(0), told)
    state = CompositeTrustRegion(noisy=False).begun(task)
    looks = [far_look(task, replace(state, step=step, looks=step), None) for step in range(4)]
    assert min(wells(x, x) for x in draw.uniform(-2.0, 2.0, (1000, 8))) > 0.0
    assert min(wells(x, x) for x in looks) < -0.4


@pytest.mark.parametrize("corner", [False, True], ids=["inside", "in a corner"])
@pytest.mark.parametrize("size", [1.0, 1e8])
def test_the_closest_point_beside_another_is_another(corner, size):
    start = size * np.ones(3)
    box = pzos.Box(size - 1.0, size if corner else size + 1.0)
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    task = Task(pzos.Problem(leader, lambda x: x - size, start, box).known(), Keys(0))
    solver = CompositeTrustRegion()
    state = solver.init(task)
    plan = solver.ask(task, state)
    state, _ = solver.tell(task, state, plan, (plan.points[0] - size,))
    near = beside(task, state, start, closest=True)
    far = beside(task, state, start, closest=False)
    assert 0.0 < np.abs(near - start).max() <= np.abs(far - start).max() <= 1e-4
    assert (near <= box.upper).all()


def idle_state(n, losses, stalled):
    """Return a state that has been idle for long, in a box of n decisions."""
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    problem = pzos.Problem(leader, lambda x: x[:1], np.zeros(n), pzos.Box(-1.0, 1.0))
    history = first(np.zeros(n), np.zeros(1))
    for point in np.random.default_rng(0).uniform(-1.0, 1.0, (20, n)):
        history = history.append(point, point[:1])
    return Task(problem.known(), Keys(0)), RegionState(
        np.zeros(n), 0.0, history=history, losses=losses, stalled=stalled
    )


@pytest.mark.parametrize(
    ("n", "losses", "stalled", "looks"),
    [(8, 0, 0, 20), (8, 1, 11, 20), (8, 2, 2, 48), (8, 0, 12, 48), (4, 0, 0, 48)],
    ids=["gains", "once", "stuck", "nothing left", "few"],
)
def test_of_many_decisions_most_late_queries_look_far_only_where_local_steps_keep_failing(n, losses, stalled, looks):
    task, state = idle_state(n, losses, stalled)
    late = 28 + min(8, n)
    assert sum(looks_far(task, replace(state, idle=late + k, step=8 * n)) for k in range(60)) == looks


@pytest.mark.parametrize(
    ("n", "domain", "settled", "first"),
    [
        (4, None, False, 32),
        (12, None, False, 96),
        (12, None, True, 0),
        (13, None, False, 104),
        (40, None, True, 120),
        (12, pzos.Simplex(1.0), False, 0),
        (13, pzos.Simplex(1.0), False, 104),
    ],
)
def test_looks_wait_for_queries_of_each_decision_and_less_long_where_nothing_is_promised(n, domain, settled, first):
    task, state = idle_state(n, losses=2, stalled=2)
    task = task if domain is None else replace(task, known=replace(task.known, domain=domain))
    state = replace(state, history=state.past.part(np.arange(10)))
    for step in (0, max(first - 1, 0), first, first + 1):
        now = replace(state, step=step, settled=settled)
        assert any(looks_far(task, replace(now, idle=40 + k)) for k in range(9)) is (step >= first)
