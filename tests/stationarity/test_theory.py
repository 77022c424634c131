"""The paper's constants and schedule: values done by hand, laws, and the theorem as a small experiment."""

import argparse
from math import gamma, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.cli import plan as plan_command
from pzos.stationarity import (
    Constants,
    min_norm_point,
    published_moment_constant,
    sharp_moment_constant,
    smoothing_constant,
    theorem_schedule,
)
from pzos.stationarity.theory import in_words
from pzos.study.run import iterate


def ball_volume(d: int) -> float:
    return pi ** (d / 2) / gamma(d / 2 + 1)


@given(st.integers(1, 120))
def test_k1_is_twice_the_ratio_of_ball_volumes(d: int) -> None:
    assert smoothing_constant(d) * sqrt(d) == pytest.approx(2 * ball_volume(d - 1) / ball_volume(d), rel=1e-12)


def test_k1_by_double_factorials_in_small_dimensions() -> None:
    # kappa d!!/(d-1)!!, kappa = 2/pi for even d and 1 for odd d
    expected = [1.0, 2 / pi * 2 / 1, 3 / 2, 2 / pi * 8 / 3, 15 / 8]
    assert [smoothing_constant(d) * sqrt(d) for d in range(1, 6)] == pytest.approx(expected, rel=1e-14)


def test_k1_is_the_same_on_both_sides_of_the_switch_to_logarithms() -> None:
    assert smoothing_constant(300) == pytest.approx(smoothing_constant(301), rel=1e-5)
    assert smoothing_constant(10**6) == pytest.approx(sqrt(2 / pi), rel=1e-5)


def test_k1_is_tight_for_the_absolute_value_of_one_entry() -> None:
    # J y_mu for |x_1| is P(|u_1| <= x_1/mu); its slope at 0 is the density of the ball's marginal there.
    from scipy.special import betainc

    d, mu, step = 7, 0.3, 1e-5
    slope = betainc(0.5, (d + 1) / 2, (step / mu) ** 2) / step
    assert slope == pytest.approx(smoothing_constant(d) * sqrt(d) / mu, rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_sharp_k2_bounds_the_second_moment_of_lipschitz_functions(d: int) -> None:
    v = np.array([Keys(1).direction(0, q, d) for q in range(4000)])
    x = 0.3 * np.ones(d) / sqrt(d)
    functions = (
        lambda z: z[:, 0],
        lambda z: np.abs(z).max(axis=1),
        lambda z: np.linalg.norm(z, axis=1),
        lambda z: np.maximum(z[:, 0], 0.0),
    )
    for h in functions:  # each 1-Lipschitz
        moment = np.mean((d / 2.0 * (h(x + v) - h(x - v))) ** 2)
        assert moment <= sharp_moment_constant(d) * d * 1.1
    assert 1.0 <= sharp_moment_constant(d) <= 2.0 < published_moment_constant()


def test_the_derived_constants_are_the_papers() -> None:
    c = Constants(L_f=2.0, L_g=3.0, L_y=0.5, dimension=4, Delta=7.0, k1=0.9, k2=5.0)
    assert c.C_p == pytest.approx(3.0 * 1.5 * 0.5)
    assert c.C_f == pytest.approx(1.5 * 3.0 * 2.0)
    assert c.sigma_squared == pytest.approx(5 * 4 * 4 * 0.25 + 4 * 2.0)
    assert c.black_box_sigma_squared == pytest.approx(5 * 4 * 4 * 0.25 + 5 * 4 * 4 * 2.0)
    assert c.L_F(0.1) == pytest.approx(3.0 * 2.25 + 0.9 * 2.0 * 0.5 * 2.0 / 0.1)
    assert c.Delta_mu(0.1) == pytest.approx(7.0 + 2 * 2.0 * 0.5 * 0.1)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)L_f.*L_y.*dimension"):
        Constants(L_f=-1.0, L_g=1.0, L_y=0.0, dimension=0, Delta=1.0)


sizes = st.floats(0.05, 20.0)


@given(sizes, sizes, sizes, st.integers(1, 300), sizes, st.floats(0.01, 3.0), st.floats(0.05, 2.0))
def test_the_schedule_meets_its_epsilon(
    L_f: float, L_g: float, L_y: float, d: int, Delta: float, delta: float, epsilon: float
) -> None:
    constants = Constants(L_f, L_g, L_y, d, Delta)
    for notion in ("partial", "full"):
        plan = theorem_schedule(constants, delta=delta, epsilon=epsilon, notion=notion)
        assert plan.radius <= delta
        assert plan.radius < 1.0
        assert plan.guarantee() <= epsilon * (1 + 1e-9)
        # alpha balances the first and the third term of the descent bound
        first = 2 * constants.Delta_mu(plan.radius) / (plan.step * plan.steps)
        third = plan.step * constants.L_F(plan.radius) * constants.sigma_squared
        assert first == pytest.approx(third, rel=1e-9)
        assert plan.queries == 3 * plan.steps


def test_the_values_of_a_case_done_by_hand() -> None:
    # L_f = L_g = L_y = 1, d = 1, k_1 = 1, k_2 = 1: C_p = 2, sigma^2 = 4
    constants = Constants(1.0, 1.0, 1.0, 1, 1.0, k2=1.0)
    plan = theorem_schedule(constants, delta=1.0, epsilon=0.5, notion="partial")
    mu = 0.5 / (sqrt(2) * 2)
    assert plan.radius == pytest.approx(mu, rel=1e-15)
    assert plan.steps == -(-32 * (1 + 2 * mu) * (4 + 1 / mu) * 4 // 0.5**4)
    assert theorem_schedule(constants, delta=1.0, epsilon=0.5, notion="full").radius == pytest.approx(0.5 / 12)


def test_words_and_faults() -> None:
    assert "worst case" in in_words(3 * 10**9)
    assert in_words(3 * 10**9).startswith("about 3e9 queries")
    assert "within reach" in in_words(600)
    with pytest.raises(InvalidInput, match=r"(?s)delta.*epsilon.*notion"):
        theorem_schedule(Constants(1, 1, 1, 1, 1), delta=0.0, epsilon=-1.0, notion="both")  # type: ignore[arg-type]


def test_pzos_plan_prints_both_notions(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    plan_command.add_arguments(parser)
    words = [
        "--L-f",
        "1",
        "--L-g",
        "1",
        "--L-y",
        "1",
        "--Delta",
        "1",
        "--dimension",
        "100",
        "--delta",
        "0.1",
        "--epsilon",
        "0.1",
    ]
    assert plan_command.run(parser.parse_args(words)) == 0
    printed = capsys.readouterr().out
    assert printed.count("steps T") == 2
    assert "as published" in printed
    assert "worst case" in printed
    assert plan_command.run(parser.parse_args([*words, "--k2", "sharp", "--notion", "full"])) == 0
    assert "set by you" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="--k2"):
        plan_command.run(parser.parse_args([*words, "--k2", "small"]))


def test_the_partial_schedule_keeps_its_promise() -> None:
    # f = sqrt(1 + |x - p|^2) + a.y, y* = |x|/2: L_f = L_g = 1, L_y = 1/2; benchmarks/theorem.py is the long version
    target, weights, start = np.array([2.0, 0.3]), np.array([0.8, 0.6]), np.array([2.5, -0.2])

    def known_part(x: np.ndarray) -> np.ndarray:
        return (x - target) / np.sqrt(1.0 + (x - target) @ (x - target))

    leader = pzos.leader_from_functions(
        lambda x, y: float(np.sqrt(1.0 + (x - target) @ (x - target)) + weights @ y),
        lambda x, y: known_part(x),
        lambda x, y: weights.copy(),
    )
    problem = pzos.Problem(leader, lambda x: 0.5 * np.abs(x), start)
    gap = leader.value(start, 0.5 * np.abs(start)) - 1.0  # F >= 1
    constants = Constants(1.0, 1.0, 0.5, 2, gap, k2=sharp_moment_constant(2))
    plan = theorem_schedule(constants, delta=0.5, epsilon=0.7, notion="partial")
    assert 500 <= plan.steps <= 5000
    solver = pzos.PZOS(step=plan.step, radius=plan.radius)
    study = pzos.Study(problem.known(), solver, steps=plan.steps, monitor=False)
    norms = []
    for record in iterate(study, pzos.Oracle(problem.follower)):
        if record.step % 20 == 0:
            x = record.x
            met = [
                np.array([i, j])
                for i in (1.0, -1.0)
                for j in (1.0, -1.0)
                if np.linalg.norm(np.where(np.array([i, j]) * x >= 0, 0.0, x)) <= plan.delta
            ]
            norms.append(min_norm_point(np.array([known_part(x) + 0.5 * weights * s for s in met])).norm)
    assert np.mean(norms) <= plan.epsilon
