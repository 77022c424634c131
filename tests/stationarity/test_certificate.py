from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pzos
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.base.keys import Keys, Role
from pzos.methods.solver import Task
from pzos.stationarity import CertificateSolver, certify
from pzos.stationarity.certificate import fit_prediction, gradient_samples, normal_near, pilot_size

from .instances import kinked_problem, linear_problem

REPEATS = 100


def measured(problem: pzos.Problem, delta: float, norm: float, unit: float, **settings) -> tuple[float, float]:
    """Coverage over repeats, and the median excess in units of |J' grad_y f|."""
    bounds = [certify(problem, delta=delta, seed=s, projected=False, **settings).partial.upper for s in range(REPEATS)]
    return float(np.mean(np.array(bounds) >= norm)), (float(np.median(bounds)) - norm) / unit


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_coverage_and_excess_on_a_linear_response(share: float) -> None:
    problem, norm, unit = linear_problem(20, share)
    coverage, excess = measured(problem, 0.1, norm, unit, prediction="none")
    assert coverage >= 0.875  # 3.5 standard errors below 95 % at 100 repeats
    assert excess <= 0.35
    coverage, excess = measured(problem, 0.1, norm, unit)
    assert coverage == 1.0  # no noise is left, and rounding is allowed for
    assert excess <= 1e-9


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_coverage_and_excess_across_kinks(share: float) -> None:
    problem, norm, unit = kinked_problem(20, share, 0.1)
    for prediction in ("none", "pilot"):
        coverage, excess = measured(problem, 0.1, norm, unit, prediction=prediction)
        assert coverage >= 0.875
        assert excess <= 0.35


def test_coverage_and_excess_on_the_security_game() -> None:
    from pzos.games import SecurityGame
    from pzos.games.derivatives import security_gradient, security_jacobian

    game = SecurityGame.random(0, 20)
    x = game.start()
    delta = 1e-3  # so short that J y_mu is J to 1e-6
    _, gradient = security_gradient(game, x)
    _, _, grad_y = game.damage_and_gradients(x, game.response(x))
    norm = float(np.linalg.norm(gradient))
    unit = float(np.linalg.norm(security_jacobian(game, x).transpose_times(grad_y)))
    coverage, excess = measured(game.problem(), delta, norm, unit, prediction="none")
    assert coverage >= 0.875
    assert excess <= 0.35
    bounds = [certify(game.problem(), delta=delta, seed=s).partial.upper for s in range(20)]
    assert max(abs(np.array(bounds) - norm)) / unit <= 1e-5
    assert (np.median(bounds) - norm) / unit <= 0.05


def test_memory_or_model_removes_the_noise_of_what_it_foresees() -> None:
    problem, norm, _ = linear_problem(20, 1.0)
    draw = Keys(0).generator(Role.INSTANCE)
    A, c = draw.standard_normal((7, 20)) / 4.0, draw.standard_normal(7)
    good = certify(problem, delta=0.1, prediction="none", foresee=lambda x, at: A.T @ at.grad_y)
    assert abs(good.partial.upper - norm) <= 1e-9
    half = certify(problem, delta=0.1, prediction="none", foresee=lambda x, at: 0.9 * A.T @ c)
    plain = certify(problem, delta=0.1, prediction="none")
    assert half.partial.upper - half.partial.estimate < 0.3 * (plain.partial.upper - plain.partial.estimate)


def test_the_sentence_and_the_counts() -> None:
    problem, _, _ = linear_problem(5, 1.0)
    report = certify(problem, delta=0.1, queries=101, confidence=0.9)
    assert report.queries == 101
    assert report.directions == 50
    assert report.pilot == 15
    assert "with 90 % confidence x is (0.1, " in repr(report)
    assert "-partial-Goldstein stationary" in repr(report)
    assert report.stationary(report.partial.upper)
    assert not report.stationary(0.9 * report.partial.estimate)
    centre = problem.leader.value(problem.x0, problem.follower.respond(problem.x0, None).y)
    assert report.value == pytest.approx(centre, abs=1e-12)  # a batch rounds differently from its rows


def test_both_notions_agree_where_f_is_linear() -> None:
    problem, norm, _ = kinked_problem(6, 2.0, 0.1)
    report = certify(problem, delta=0.1, queries=2001)
    assert report.bound("full").estimate == pytest.approx(report.bound("partial").estimate, rel=1e-6)
    assert report.partial.upper >= norm


def test_the_same_bits_by_hand_in_any_order_and_in_parallel() -> None:
    problem, _, _ = kinked_problem(4, 1.0, 0.1)
    plain = pzos.Problem(problem.leader, np.abs, problem.x0)
    alone = certify(plain, delta=0.1, queries=101)
    with ThreadPoolExecutor(4) as pool:
        assert certify(plain, delta=0.1, queries=101, executor=pool).partial.upper == alone.partial.upper
    study = pzos.Study(plain.known(), CertificateSolver(0.1, 50), steps=1, monitor=False)
    for query in reversed(study.ask()):
        study.tell(query, np.abs(query.x))
    assert study.done
    assert study.queries == 101
    assert study.state.report.partial.upper == alone.partial.upper  # type: ignore[attr-defined]
    assert certify(plain, delta=0.1, queries=101, seed=1).partial.upper != alone.partial.upper


def test_directions_are_not_those_of_a_run_with_the_same_seed() -> None:
    keys = Keys(0)
    task = Task(kinked_problem(3, 0.5, 0.1)[0].known(), keys)
    plan = CertificateSolver(0.1, 20).plan_at(task, np.zeros(3))
    assert not np.allclose(plan.directions[0], keys.direction(0, 0, 3))
    assert not np.allclose(
        plan.directions[0], CertificateSolver(0.1, 20, address=1).plan_at(task, np.zeros(3)).directions[0]
    )


@pytest.mark.parametrize("sense", ["min", "max"])
def test_normals_of_the_domain_count(sense: str) -> None:
    # sign * F = x_1 + x_2^2/2 over the box: at (0, 0) only the wall stops the descent
    sign = 1.0 if sense == "min" else -1.0
    leader = pzos.leader_from_functions(
        lambda x, y: sign * float(x[0] + 0.5 * y[1] ** 2),
        lambda x, y: sign * np.array([1.0, 0.0]),
        lambda x, y: sign * np.array([0.0, y[1]]),
    )
    box = pzos.Box([0.0, -1.0], [1.0, 1.0])
    problem = pzos.Problem(leader, lambda x: x, x0=np.zeros(2), domain=box, sense=sense)  # type: ignore[arg-type]
    assert certify(problem, delta=0.01).partial.upper <= 1e-9
    assert certify(problem, delta=0.01).projected
    assert certify(problem, delta=0.01, prediction="none").partial.upper <= 1e-9
    assert certify(problem, delta=0.01, projected=False).partial.upper == pytest.approx(1.0)
    # away from the wall by more than delta it no longer helps; within delta it does
    assert certify(problem, [0.5, 0.0], delta=0.01).partial.upper == pytest.approx(1.0, abs=1e-6)
    assert certify(problem, [0.005, 0.0], delta=0.01).partial.upper <= 1e-6


def test_normals_are_normals() -> None:
    for domain in (pzos.Box(-1.0, 1.0), pzos.Nonnegative(), pzos.Simplex(1.0), pzos.Ball(0.0, 1.0)):
        x = domain.project(np.array([2.0, 0.3, -0.4]))
        g = np.array([-1.0, 0.5, 2.0])
        n = normal_near(domain, x, g, 1e-9)
        assert np.linalg.norm(g + n) <= np.linalg.norm(g) + 1e-9
        inside = [domain.project(z) for z in Keys(0).generator(Role.INSTANCE).standard_normal((200, 3))]
        assert max(float(n @ (z - x)) for z in inside) <= 1e-7  # n.(z - x) <= 0 for every z in X


def test_failed_queries_are_left_out_or_named() -> None:
    problem, _, _ = linear_problem(3, 1.0)
    study = pzos.Study(problem.known(), CertificateSolver(0.1, 40), steps=1, monitor=False)
    for query in study.ask():
        if query.index in (5, 6, 9):
            study.fail(query, "down")
        else:
            study.tell(query, problem.follower.respond(query.x, None).y)
    assert study.done
    assert study.state.report.directions == 38  # type: ignore[attr-defined]
    study = pzos.Study(problem.known(), CertificateSolver(0.1, 40), steps=1, monitor=False)
    for query in study.ask():
        study.fail(query, "down")
    assert study.done
    assert study.state.report is None  # type: ignore[attr-defined]


def test_a_known_error_of_the_answers_widens_the_bound() -> None:
    problem, _, _ = linear_problem(4, 1.0)
    c = problem.leader(problem.x0, np.zeros(7)).grad_y
    exact, inexact = (certify(problem, delta=0.1, answer_error=e).partial.upper for e in (0.0, 1e-3))
    assert inexact - exact == pytest.approx(2.0 * np.linalg.norm(c) * 1e-3 / 0.1, rel=1e-9)


def test_the_result_certifies_its_points() -> None:
    problem, _, _ = kinked_problem(3, 0.0, 0.1)
    result = pzos.solve(problem, pzos.PZOS(step=0.01, radius=0.05), steps=20)
    assert np.array_equal(result.certify(problem, delta=0.1).x, result.x)
    assert np.array_equal(result.certify(problem, delta=0.1, at="random", queries=201).x, result.random_x)
    with pytest.raises(InvalidInput, match="'last', 'best' or 'random'"):
        result.certify(problem, delta=0.1, at="first")


def test_predictions_from_a_pilot() -> None:
    keys, d = Keys(2), 10
    h = np.arange(1.0, d + 1)
    v = np.array([keys.direction(0, q, d) for q in range(60)])
    assert pilot_size(200, 20) == 60
    assert pilot_size(50, 20) == 25
    assert pilot_size(20, 20) == 0
    assert np.allclose(fit_prediction(v[:30], v[:30] @ h, np.zeros(d)), h, atol=1e-8)
    few = fit_prediction(v[:6], v[:6] @ h, np.zeros(d))  # fewer than dimensions: at least not worse than nothing
    assert np.linalg.norm(few - h) <= np.linalg.norm(h)
    noise = keys.generator(Role.NOISE).standard_normal(60)
    assert np.linalg.norm(fit_prediction(v, noise, np.zeros(d))) < np.linalg.norm(noise)
    assert np.allclose(gradient_samples(v, v @ h, h), h)


def test_a_follower_that_always_fails_is_reported() -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    problem, _, _ = linear_problem(3, 1.0)
    with pytest.raises(FollowerFailure, match=r"0\.0"):
        certify(pzos.Problem(problem.leader, broken, problem.x0), delta=0.1)


def test_faults() -> None:
    problem, _, _ = linear_problem(3, 1.0)
    with pytest.raises(InvalidInput, match=r"(?s)delta.*confidence.*directions"):
        CertificateSolver(delta=0.0, directions=3, confidence=2.0)
    with pytest.raises(InvalidInput, match="at most delta"):
        CertificateSolver(delta=0.1, radius=0.2)
    with pytest.raises(InvalidInput, match="queries"):
        certify(problem, delta=0.1, queries=10)
    with pytest.raises(InvalidInput, match="3 numbers"):
        certify(problem, np.zeros(2), delta=0.1)
