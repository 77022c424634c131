"""The composite trust region on problems with known answers: sets, kinks, noise, wrong declarations, scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

import instances as small
import pzos
from golden import GOLDEN_TRUST
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.games.cournot import CournotGame
from pzos.games.derivatives import security_gradient
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.methods.solver import Stop, Task
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import Kind
from pzos.methods.trust_region.subproblem import on_model
from pzos.problem.follower import seeded
from pzos.testing import play, small_problem


def quadratic(n, m, domain=None, x0=None, sense="min", structure=(), seed=0):
    """Return a problem whose F is a convex quadratic, with its minimiser over the whole space."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) / np.sqrt(n)
    c, t = rng.standard_normal(n), rng.standard_normal(m)
    sign = 1.0 if sense == "min" else -1.0
    leader = pzos.leader_from_functions(
        lambda x, y: sign * float(0.5 * ((x - c) ** 2).sum() + 0.5 * ((y - t) ** 2).sum()),
        lambda x, y: sign * (x - c),
        lambda x, y: sign * (y - t),
    )
    problem = pzos.Problem(
        leader, lambda x: A @ x, np.zeros(n) if x0 is None else x0, domain, sense, structure=structure
    )
    optimum = np.linalg.solve(np.eye(n) + A.T @ A, c + A.T @ t)
    return problem, optimum


def run(problem, queries, solver=None, **settings):
    settings = {"progress": False, "certificate": False, **settings}
    return pzos.solve(problem, solver or CompositeTrustRegion(), queries=queries, **settings)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 5), (12, 4), (4, 15)])
@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_smooth_problem_is_solved_to_rounding(n, m, sense):
    problem, optimum = quadratic(n, m, sense=sense)
    result = run(problem, 4 * n + 20)
    np.testing.assert_allclose(result.x, optimum, atol=2e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("domain", "x0"),
    [
        (pzos.Whole(), np.zeros(6)),
        (pzos.Nonnegative(), np.zeros(6)),
        (pzos.Box(-0.2, 0.3), np.zeros(6)),
        (pzos.Box(-np.inf, 0.1), np.zeros(6)),
        (pzos.Simplex(1.0), np.full(6, 1 / 6)),
        (pzos.Budget(0.8), np.full(6, 0.1)),
        (pzos.Ball(np.zeros(6), 0.5), np.zeros(6)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_set_is_kept_and_the_point_is_stationary_in_it(domain, x0, seed):
    problem, _ = quadratic(6, 6, domain, x0, seed=seed)
    asked = []
    clean = problem.follower

    def watched(x):
        asked.append(x.copy())
        return next(iter(pzos.Oracle(clean).answer([pzos.Query(0, 0, x)]))).y

    result = run(pzos.Problem(problem.leader, watched, x0, domain), 60)
    assert all(domain.contains(x, 1e-9) for x in asked)
    h = 1e-5
    gradient = np.array(
        [(value(problem, result.x + h * e) - value(problem, result.x - h * e)) / (2 * h) for e in np.eye(6)]
    )
    np.testing.assert_allclose(domain.project(result.x - gradient), result.x, atol=5e-3)


def value(problem, x):
    (response,) = pzos.Oracle(problem.follower).answer([pzos.Query(0, 0, x)])
    return problem.leader.value(x, response.y)


def test_kinks_do_not_stop_it():
    """Security with answers at their bounds: a gap of 1e-5, where any single linearisation stalls."""
    game = SecurityGame.random(115, 20)
    best = min(reference(game, start) for start in range(3))
    result = run(game.problem(), 150, seed=1)
    first = result.trace["value"][0]
    assert (game.response(result.x) == 0).any() or (result.best_value - best) / (first - best) < 1e-8
    assert (result.best_value - best) / (first - best) < 1e-5


def reference(game, start):
    from scipy.optimize import minimize

    x = game.start() + start * np.random.default_rng(start).random(game.targets)
    for _ in range(3):
        x = minimize(
            lambda z: security_gradient(game, z), x, jac=True, method="L-BFGS-B", bounds=[(0, None)] * x.size
        ).x
    return security_gradient(game, x)[0]


def test_prices_do_not_get_lost_where_nothing_is_sold():
    """Logit demand: f alone promises most for prices at which hardly anything is sold any more."""
    rng = np.random.default_rng(5)
    taste, pull, x0 = 2.0 + rng.random(10), 1.0 + rng.random(10), 0.5 + 0.5 * rng.random(10)

    def sold(x):
        odds = np.exp(taste - pull * x)
        return 10.0 * odds / (1.0 + odds.sum())

    leader = pzos.leader_from_functions(lambda x, y: float(x @ y), lambda x, y: y, lambda x, y: x)
    result = run(pzos.Problem(leader, sold, x0, pzos.Box(0.0, 10.0), "max"), 30, seed=5)
    # At the optimum every price is 1/pull_i above the profit per customer.
    best = 10.0 * brentq(lambda profit: np.exp(taste - 1.0 - pull * profit) @ (1.0 / pull) - profit, 0.0, 10.0)
    # Of sixteen draws 4e-4 to 6e-3 is missing; lost at prices at which nothing is sold it was .1 and more.
    assert best - result.value < 1e-2 * (best - x0 @ sold(x0))


def test_a_promise_of_rounding_where_f_is_zero_is_no_trial():
    """DeSilva's problem: the second query has F = 0, where a promise of 4e-16 once shortened the steps to nothing."""
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x - 2.0 * x.sum() + y @ y), lambda x, y: 2.0 * x - 2.0, lambda x, y: 2.0 * y
    )
    problem = pzos.Problem(leader, lambda x: np.clip(x, 0.5, 1.5), [2.5, 0.1], pzos.Box(0.0, 3.0))
    assert run(problem, 10).best_value < -0.99  # the best is -1; -0.04 before


@pytest.mark.parametrize("seed", range(3))
def test_few_queries_suffice_with_declared_structure_and_hardly_more_without(seed):
    game = SecurityGame.random(300 + seed, 30)
    best = reference(game, 0)
    gaps = {}
    for declared in (True, False):
        structure = [pzos.own_effect(), pzos.conserved()] if declared else []
        result = run(game.problem(structure=structure), 25)
        values = np.minimum.accumulate(result.trace["value"])
        gaps[declared] = (values - best) / (values[0] - best)
    assert gaps[True][9] < 0.01
    assert gaps[False][24] < 0.01


@pytest.mark.parametrize(
    "structure",
    [
        [pzos.own_effect()],
        [pzos.own_effect(), pzos.conserved()],
        [pzos.conserved(np.arange(1.0, 31.0))],
        [pzos.answers_between(0.0, 0.5)],
        [pzos.own_effect(), pzos.conserved(), pzos.answers_nonnegative()],
    ],
    ids=str,
)
def test_wrong_declarations_cost_but_do_not_break(structure):
    """The response here has no own effects, no law and no bounds."""
    n = 30
    A = np.roll(np.eye(n), 7, axis=1) + 0.1 * np.random.default_rng(1).standard_normal((n, n))
    c = np.random.default_rng(2).standard_normal(n)
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * ((x - c) ** 2).sum() + 0.5 * ((y + 0.3) ** 2).sum()),
        lambda x, y: x - c,
        lambda x, y: y + 0.3,
    )
    optimum = np.linalg.solve(np.eye(n) + A.T @ A, c - 0.3 * A.sum(axis=0))
    best = leader.value(optimum, A @ optimum)
    result = run(pzos.Problem(leader, lambda x: A @ x, np.zeros(n), structure=structure), 80)
    start = result.trace["value"][0]
    assert (result.best_value - best) / (start - best) < 0.05


@pytest.mark.parametrize("noisy", [None, True])
def test_noise_is_noticed_and_does_not_drive_the_point_away(noisy):
    game = SecurityGame.random(42, 15)
    best = reference(game, 0)
    base = game.problem(structure=[pzos.own_effect(), pzos.conserved()])
    follower = seeded(lambda x, generator: game.response(x) * (1.0 + 0.01 * generator.standard_normal(15)))
    problem = pzos.Problem(base.leader, follower, base.x0, base.domain, structure=base.structure)
    study = pzos.Study(problem.known(), CompositeTrustRegion(noisy=noisy), queries=60, seed=3)
    pzos.drive(study, pzos.Oracle(follower, seed=3), progress=False)
    assert study.state.exact is False
    truth = game.damage(study.state.x, game.response(study.state.x))
    start = game.damage(base.x0, game.response(base.x0))
    assert (truth - best) / (start - best) < 0.05
    sigma = 0.01 * np.sqrt(np.mean(game.response(study.state.x) ** 2))
    assert 0.2 * sigma < np.sqrt(study.state.variance) < 5.0 * sigma


def test_exact_followers_are_believed_after_one_repeated_query():
    game = RoutingGame.random(5)
    study = pzos.Study(game.problem(0.02).known(), CompositeTrustRegion(), queries=40)
    asked = []
    while not study.done:
        for query in study.ask():
            asked.append(query.x.tobytes())
            study.tell(query, game.response(query.x))
    assert study.state.exact is not False
    assert len(asked) - len(set(asked)) <= 1


def test_no_query_is_ever_asked_twice_by_an_exact_run():
    game = SecurityGame.random(115, 20)
    _, asked, _ = play(game.problem(), CompositeTrustRegion(noisy=False), steps=150)
    assert len({query.x.tobytes() for query in asked}) == len(asked)


def test_an_objective_without_a_minimum_keeps_going_down_at_finite_points():
    leader = pzos.leader_from_functions(
        lambda x, y: float(x.sum() + y.sum()), lambda x, y: np.ones_like(x), lambda x, y: np.ones_like(y)
    )
    result = run(pzos.Problem(leader, np.abs, np.full(4, 0.5)), 40)
    assert np.isfinite(result.x).all()
    linear = run(pzos.Problem(leader, lambda x: 0.5 * x, np.zeros(4)), 40)
    assert linear.value < -1e3
    assert np.isfinite(linear.x).all()


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_no_scale_is_needed_from_the_user(scale):
    leader = pzos.leader_from_functions(
        lambda x, y: float(((x - scale) ** 2).sum() + y @ y), lambda x, y: 2 * (x - scale), lambda x, y: 2 * y
    )
    result = run(pzos.Problem(leader, lambda x: np.abs(x - 0.3 * scale), np.zeros(5)), 60)
    np.testing.assert_allclose(result.x, 0.65 * scale, rtol=2e-2)


def test_several_points_per_step_where_workers_allow():
    problem, optimum = quadratic(8, 8)
    study = pzos.Study(problem.known(), CompositeTrustRegion(batch=4), steps=12)
    sizes = []
    while not study.done:
        queries = study.ask()
        sizes.append(len({query.x.tobytes() for query in queries}))
        for query in queries:
            study.tell(query, pzos.testing.answer(problem, query))
    assert sizes == [4] * 12
    np.testing.assert_allclose(study.state.x, optimum, atol=1e-2)


def test_a_few_points_are_enough_in_thousands_of_dimensions():
    n = 2000
    w = 0.5 + np.random.default_rng(0).random(n)
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * (x @ x) + w @ y), lambda x, y: x.copy(), lambda x, y: w
    )
    result = run(pzos.Problem(leader, lambda x: np.maximum(1 - 0.3 * x - 0.1 * x.mean(), 0), np.zeros(n)), 25)
    J = -0.3 * w - 0.1 * w.mean()
    best = leader.value(-J, 1 + 0.3 * J + 0.1 * J.mean())
    start = result.trace["value"][0]
    assert (result.value - best) / (start - best) < 1e-2


def test_a_run_at_its_optimum_ends_as_converged():
    problem, _ = quadratic(3, 3)
    result = run(problem, 400)
    assert result.stop is Stop.CONVERGED
    assert result.queries < 150


def test_failing_followers_end_the_run_after_a_few_queries():
    study, _, _ = play(small_problem(), CompositeTrustRegion(), steps=50, fails=lambda query: query.step > 3)
    assert study.stop is Stop.FAILURES
    assert study.queries == 9


def test_bits_do_not_depend_on_the_number_of_blas_threads():
    problem = SecurityGame.random(2, 120).problem()
    with threadpool_limits(1, user_api="blas"):
        one = run(problem, 30).x
    with threadpool_limits(2, user_api="blas"):
        two = run(problem, 30).x
    np.testing.assert_array_equal(one, two)


def test_a_durable_run_goes_on_bit_for_bit(tmp_path):
    problem = CournotGame.random(3).problem()
    whole = run(problem, 25)
    run(problem, 11, path=tmp_path / "run")
    resumed = run(problem, 25, path=tmp_path / "run")
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.trace["value"], whole.trace["value"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": 0}, "batch"),
        ({"points": 1}, "points"),
        ({"radius": -1.0}, "radius"),
        ({"iterations": 0}, "iterations"),
        ({"noisy": "yes"}, "noisy"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(InvalidInput, match=words):
        CompositeTrustRegion(**settings)


def test_declarations_that_do_not_fit_the_answers_are_named():
    problem, _ = quadratic(4, 3, structure=[pzos.own_effect(), pzos.conserved(np.ones(4))])
    with pytest.raises(InvalidInput) as error:
        run(problem, 5)
    assert "own_effect" in str(error.value)
    assert "conserved" in str(error.value)


def test_the_trajectory_is_the_golden_one():
    """Only its beginning: linear algebra differs from one machine to the next, and later queries feel it."""
    _, asked, _ = play(small.problem(domain=pzos.Nonnegative()), CompositeTrustRegion(), steps=3, seed=2024)
    np.testing.assert_allclose([asked[i].x for i in (1, 2)], GOLDEN_TRUST, rtol=1e-4, atol=1e-6)


def in_steps(x):
    """Return answers that move in steps of a tenth, lowest away from where a search begins."""
    return np.round(10.0 * np.array([(x - 0.6) @ (x - 0.6), np.sin(x[0]) + x[1], x[0] * x[1]])) / 10.0


def test_where_answers_jump_and_are_many_surveys_go_where_f_may_be_lowest():
    leader = pzos.leader_from_functions(
        lambda x, y: float(y[0] + 0.01 * (x @ x)), lambda x, y: 0.02 * x, lambda x, y: np.eye(3)[0]
    )
    problem = pzos.Problem(leader, in_steps, np.full(2, -1.5), pzos.Box(-2.0, 2.0))
    solver, task = CompositeTrustRegion(), Task(problem.known(), Keys(0))
    state, early, late = solver.init(task), [], []
    for _ in range(40):
        plan = solver.ask(task, state)
        if plan.kind is Kind.SURVEY:
            (early if state.past.count <= 8 else late).append((plan.points[0], state))
        state, _ = solver.tell(task, state, plan, (in_steps(plan.points[0]),))
    assert late
    for x, before in late:
        model = solver.rivals(task, before)[before.shapes[0]]
        doubt = looking.doubt_of(task, before, model)
        lowered = looking.hopeful(on_model(leader, 1.0, model), model, 1.5 * doubt)
        assert not before.knows(x)
        others = [looking.anywhere(task, replace(before, step=before.step + k)) for k in range(1, 6)]
        assert lowered(x)[0] <= np.median([lowered(other)[0] for other in others])
