import argparse
from math import sqrt

import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.cli import plan as plan_command
from pzos.stationarity import Constants, theorem_schedule
from pzos.stationarity.theory import in_words

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
