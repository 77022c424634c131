"""Several queries at once: what is asked while others are open, and answers that come out of turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.keys import Keys
from pzos.durable.replay import open_whole
from pzos.methods.solver import Proposing, Task
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.proposing import unseen
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import Kind, Refusal
from pzos.methods.trust_region.subproblem import Move

SOLVER = CompositeTrustRegion()


def curved(n=6, m=4, domain=None, seed=0):
    """Return a problem with a smooth response without structure."""
    rng = np.random.default_rng(seed)
    A, t = rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m)
    leader = pzos.leader_from_functions(
        lambda x, y: float(((y - t) ** 2).sum() + 0.1 * x @ x), lambda x, y: 0.2 * x, lambda x, y: 2 * (y - t)
    )
    return pzos.Problem(leader, lambda x: np.tanh(A @ x) + 0.3 * (A @ x), np.full(n, 0.2), domain)


def answered(problem, plan):
    return np.asarray(problem.follower.respond(plan.points[0], None))


def play(problem, order, workers, solver=SOLVER, failing=()):
    """Return the state after answers to proposals in the order that ``order`` chooses, and all that was asked."""
    task = Task(problem.known(), Keys(0))
    state, pending, asked = solver.init(task), [], []
    for turn, choice in enumerate(order):
        while len(pending) < workers:
            pending.append(solver.propose(task, state, pending))
            asked.append(pending[-1])
        plan = pending.pop(choice % len(pending))
        state, outcome = solver.take(task, state, plan, None if turn in failing else answered(problem, plan))
        assert outcome.x is plan.points[0]
    return state, asked


def test_the_default_proposes_and_others_do_not():
    assert isinstance(SOLVER, Proposing)
    assert not isinstance(pzos.PZOS(), Proposing)


def test_one_worker_asks_what_the_method_asks_alone():
    problem = curved()
    task = Task(problem.known(), Keys(0))
    alone = SOLVER.init(task)
    state, asked = play(problem, [0] * 30, 1)
    for plan in asked:
        own = SOLVER.ask(task, alone)
        assert own.points[0].tobytes() == plan.points[0].tobytes()
        alone, _ = SOLVER.tell(task, alone, own, [answered(problem, own)])
    assert alone.x.tobytes() == state.x.tobytes()
    assert alone.radius == state.radius


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=8, max_size=16), st.integers(2, 8), st.sets(st.integers(0, 15), max_size=3))
def test_answers_in_any_order_give_one_state_that_holds_them_all(order, workers, failing):
    problem = curved()
    state, asked = play(problem, order, workers, failing=failing)
    again, asked_again = play(problem, order, workers, failing=failing)
    assert [plan.points[0].tobytes() for plan in asked] == [plan.points[0].tobytes() for plan in asked_again]
    assert state.x.tobytes() == again.x.tobytes()
    others = [plan.points[0].tobytes() for plan in asked if plan.kind is not Kind.START]
    assert len(set(others)) == len(others)  # only x0 is asked again, if it failed
    if state.history is not None:
        lowest = min(map(problem.known().leader.value, state.past.points, state.past.answers))
        assert state.value == pytest.approx(lowest)


def test_what_is_open_is_not_asked_again_and_the_first_is_the_step_of_one_worker():
    problem = curved()
    state, _ = play(problem, [0] * 8, 1)
    task = Task(problem.known(), Keys(0))
    plan = CompositeTrustRegion(batch=8).ask(task, state)
    assert plan.points[0].tobytes() == SOLVER.ask(task, state).points[0].tobytes()
    assert len({point.tobytes() for point in plan.points}) == 8
    assert [one.kind for one in plan.proposals].count(Kind.TRIAL) >= 4  # half of them, once all directions are seen
    assert Kind.EXPLORE in {one.kind for one in plan.proposals}


def test_a_longer_radius_is_taken_over_only_as_far_as_its_step_went():
    problem = curved()
    state, _ = play(problem, [0] * 11, 1)
    task = Task(problem.known(), Keys(0))
    plan = SOLVER.propose(task, state, [])
    for size, radius in ((0.5, 1.0), (3.0, 3.0), (9.0, 4.0)):
        move = replace(plan.move, size=size * state.radius)
        longer = replace(plan, kind=Kind.TRIAL, alone=False, move=move, radius=4.0 * state.radius)
        moved, _ = SOLVER.take(task, state, longer, answered(problem, plan))
        assert moved.x is plan.points[0]  # F is lower there
        assert moved.radius == pytest.approx(radius * state.radius)


@pytest.mark.parametrize(
    ("n", "changes", "asks"),
    [
        (4, {}, True),
        (4, {"jumps": 1.0}, False),
        (4, {"refused": (Refusal(np.full(4, 9.0), 9.0),)}, False),
        (8, {}, False),
    ],
)
def test_of_few_decisions_every_direction_is_asked_whatever_a_step_promises(n, changes, asks):
    problem = curved(n=n, m=3)
    task = Task(problem.known(), Keys(0))
    state, _ = play(problem, [0] * 3, 1)
    state = replace(state, succeeded=True, losses=0)
    model = SOLVER.rivals(task, state)[state.shapes[0]]
    move = Move(state.x, 1e9, state.radius)
    found = looking.unseen_direction(task, replace(state, **changes), model, move, 1.0)
    assert (found is not None) is asks


def test_hope_waits_until_a_trial_has_succeeded_with_every_direction_known():
    """From the same state the trial is the plain minimiser of the model before, and another point after."""
    problem = curved(n=4, m=3)
    task = Task(problem.known(), Keys(0))
    state, _ = play(problem, [0] * 8, 1)
    wide = replace(state, radius=0.5, settled=False, idle=0, surprise=None, suspect=False, exact=True)
    model = SOLVER.rivals(task, wide)[wide.shapes[0]]
    plain = SOLVER.move_within(task, wide, model, wide.radius)
    before, after = (SOLVER.planned(task, replace(wide, reliable=known)) for known in (False, True))
    assert before.kind is after.kind is Kind.TRIAL
    assert np.array_equal(before.points[0], plain.x)
    assert not np.array_equal(after.points[0], plain.x)


@pytest.mark.parametrize(
    ("decisions_known", "promise", "reliable"), [(True, 0.1, True), (False, 0.1, False), (True, 1e9, False)]
)
def test_a_trial_out_of_turn_that_kept_its_promise_makes_the_model_reliable(decisions_known, promise, reliable):
    problem = curved(n=4, m=3)
    task = Task(problem.known(), Keys(0))
    state, _ = play(problem, [0] * (7 if decisions_known else 3), 1)
    state = replace(state, reliable=False)
    plan = SOLVER.propose(task, state, ())
    lower = replace(state.past, answers=state.past.answers + 10.0)  # F was higher everywhere when it was asked
    there = replace(state, history=lower, value=state.value + 100.0)
    since = replace(there, radius=2.0 * state.radius)
    move = replace(plan.move, predicted=promise)
    out_of_turn = replace(plan, kind=Kind.TRIAL, move=move, alone=False, since=since, radius=state.radius)
    after, _ = SOLVER.take(task, there, out_of_turn, answered(problem, plan))
    assert np.array_equal(after.x, plan.points[0])
    assert after.reliable is reliable


def test_a_shorter_trial_that_fails_shrinks_the_radius_of_where_the_search_stands():
    problem = curved()
    state, _ = play(problem, [0] * 12, 1)
    task = Task(problem.known(), Keys(0))
    plan = SOLVER.propose(task, state, [])
    worse = replace(plan, kind=Kind.TRIAL, alone=False, points=(state.x + 1.0,))

    def radius(share, since=state):
        move = replace(plan.move, size=share * state.radius)
        trial = replace(worse, move=move, radius=share * state.radius, since=since)
        return SOLVER.take(task, state, trial, answered(problem, trial))[0].radius / state.radius

    assert 0.025 <= radius(0.25) <= 0.175  # shorter still than the one that failed
    assert radius(2.0) == radius(1.0) == 1.0
    assert radius(0.25, since=replace(state, x=state.x + 0.1)) == 1.0


@pytest.mark.parametrize(
    "domain", [pzos.Box(0.0, 0.5), pzos.Simplex(1.2), pzos.Ball(np.zeros(6), 0.7)], ids=lambda set_: type(set_).__name__
)
def test_every_proposal_lies_in_the_set(domain):
    _, asked = play(curved(domain=domain), [3, 0, 2, 1] * 6, 4)
    assert all(domain.contains(plan.points[0], 1e-9) for plan in asked)


def test_every_proposal_lies_on_the_grid():
    solver = CompositeTrustRegion(resolution=0.25)
    _, asked = play(curved(domain=pzos.Box(-2.0, 2.0)), [1, 0, 2] * 6, 3, solver)
    points = np.array([plan.points[0] for plan in asked[3:]])  # x0 and what is asked blindly are not
    np.testing.assert_allclose(points / 0.25, np.round(points / 0.25), atol=1e-9)


def test_answers_before_that_at_x0_are_not_lost():
    problem = curved()
    state, _ = play(problem, [3, 2, 1], 4)
    assert state.history is None
    assert len(state.early) == 3
    state, _ = play(problem, [3, 2, 1, 0], 4)
    assert state.early == ()
    assert state.past.count == 4


def test_eight_at_a_time_take_a_third_of_the_rounds():
    problem = curved(15, 10)

    def rounds(batch):
        result = pzos.solve(problem, CompositeTrustRegion(batch=batch), steps=60, progress=False, certificate=False)
        values = np.minimum.accumulate(result.trace["value"])
        return int(np.argmax(values <= 1e-2 * values[0]))

    assert 3 * rounds(8) <= rounds(1)


def test_with_many_decisions_the_search_goes_on_from_the_open_trial():
    problem, calls = curved(60, 10), []
    counted = replace(problem.leader, all_function=lambda x, y: calls.append(0) or problem.leader.all_function(x, y))
    task, state = Task(replace(problem.known(), leader=counted), Keys(0)), play(problem, [0] * 2, 1)[0]
    first = SOLVER.propose(task, state, [])
    assert first.kind is Kind.TRIAL
    from_the_centre = len(calls)
    assert not np.array_equal(SOLVER.propose(task, state, [first]).points[0], first.points[0])
    assert len(calls) - from_the_centre < 0.6 * from_the_centre


def test_a_repeat_that_is_due_takes_one_slot_more():
    problem = curved()
    task = Task(problem.known(), Keys(0))
    state, _ = play(problem, [0] * 12, 1)
    calm = CompositeTrustRegion(batch=6).ask(task, replace(state, suspect=False))
    due = CompositeTrustRegion(batch=6).ask(task, replace(state, suspect=True))
    assert [plan.kind for plan in due.proposals].count(Kind.REPEAT) == 1
    assert due.proposals[0].kind is Kind.REPEAT
    assert due.points[1].tobytes() == calm.points[0].tobytes()


def test_an_answer_out_of_turn_leaves_a_suspicion_standing():
    problem = curved()
    task = Task(problem.known(), Keys(0))
    state, _ = play(problem, [0] * 12, 1)
    *_, aside = CompositeTrustRegion(batch=4).ask(task, state).proposals
    moved, _ = SOLVER.take(task, replace(state, suspect=True), aside, answered(problem, aside))
    assert moved.suspect


@pytest.mark.parametrize("order", [[0] * 60, [2, 1, 0, 3] * 15])
def test_noise_is_found_out(order):
    problem, noise = curved(), np.random.default_rng(0)
    clean = problem.follower
    noisy = pzos.Problem(problem.leader, lambda x: clean.respond(x, None) + 0.05 * noise.standard_normal(4), problem.x0)
    state, _ = play(noisy, order, 4)
    assert state.rough


def test_directions_turn_away_from_those_seen():
    seen = np.eye(5)[:4]
    v = unseen(np.ones(5) / np.sqrt(5.0), seen)
    assert abs(v[4]) > 0.99
    assert np.linalg.norm(v) == pytest.approx(1.0)


@pytest.mark.parametrize(("queries", "steps"), [(20, 3), (16, 2), (5, 1)])
def test_the_last_batch_is_what_is_left_of_the_budget(queries, steps):
    result = pzos.solve(
        curved(), CompositeTrustRegion(batch=8), queries=queries, progress=False, certificate=False, monitor=False
    )
    assert (result.queries, result.steps, result.stop) == (queries, steps, pzos.Stop.QUERIES)


def test_a_batch_that_was_cut_is_whole_again_if_the_run_goes_on(tmp_path):
    path, settings = tmp_path / "a.study", {"progress": False, "certificate": False}
    solver = CompositeTrustRegion(batch=8)
    short = pzos.solve(curved(), solver, queries=20, path=path, **settings)
    with open_whole(path, curved().known(), solver) as looked_at:
        assert looked_at.result().queries == short.queries == 20
        assert looked_at.result().trace["value"].tobytes() == short.trace["value"].tobytes()
    longer = pzos.solve(curved(), solver, queries=40, path=path, **settings)
    at_once = pzos.solve(curved(), solver, queries=40, **settings)
    assert longer.queries == 40
    assert longer.trace["value"].tobytes() == at_once.trace["value"].tobytes()
    assert [query.x.tobytes() for query, _ in longer.told] == [query.x.tobytes() for query, _ in at_once.told]


def test_a_method_whose_batch_is_one_piece_leaves_the_rest():
    assert pzos.solve(curved(), pzos.PZOS(batch=2), queries=13, progress=False).queries == 10


def test_many_workers_go_where_few_would_once_they_gain_little():
    problem = curved(n=3)
    task, many, few = Task(problem.known(), Keys(0)), CompositeTrustRegion(batch=16), CompositeTrustRegion(batch=8)

    def told(solver, state, plan):
        answers = [np.asarray(problem.follower.respond(x, None)) for x in plan.points]
        return solver.tell(task, state, plan, answers)[0]

    state, alone, rounds = many.init(task), few.init(task), 0
    alone = told(few, alone, few.ask(task, alone))
    while rounds < 3:
        plan = many.ask(task, state)
        second = [proposal.second for proposal in plan.proposals]
        if any(second):
            own = few.ask(task, alone)
            assert second == [False] * 8 + [True] * 8
            assert [x.tobytes() for x in plan.points[8:]] == [x.tobytes() for x in own.points]
            alone, rounds = told(few, alone, own), rounds + 1
        state = told(many, state, plan)
        assert state.value <= alone.value
    assert state.few.value == alone.value
