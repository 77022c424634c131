"""The leader's door: values and gradients in float64, finite, of the right shape, and errors that say which entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from instances import LEADER, START, cost, cost_x, cost_y, response
from pzos.base.errors import InvalidInput, InvalidLeader

X, Y = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])


def leader(value: Any = 1.0, grad_x: Any = (0.0, 0.0), grad_y: Any = (0.0, 0.0, 0.0)) -> pzos.Leader:
    return pzos.leader_from_functions(lambda x, y: value, lambda x, y: grad_x, lambda x, y: grad_y)


def test_from_functions_and_from_one_function_agree() -> None:
    together = pzos.leader_from_functions(
        cost, value_and_gradients=lambda x, y: (cost(x, y), cost_x(x, y), cost_y(x, y))
    )
    y = response(START)
    one, other = LEADER(START, y), together(START, y)
    assert one.value == other.value == LEADER.value(START, y) == cost(START, y)
    np.testing.assert_array_equal(one.grad_x, other.grad_x)
    np.testing.assert_array_equal(one.grad_y, other.grad_y)


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), np.array(2.0), np.array([2.0]), np.int64(2)])
def test_values_become_python_floats(value: Any) -> None:
    found = leader(value).value(X, Y)
    assert found == 2.0
    assert type(found) is float


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (leader(np.float32(1)), r"f\(x, y\) = .*dtype float32.*expected one float64 number.*not float32"),
        (leader(np.array([1.0, 2.0])), "expected one float64 number"),
        (leader("1"), "expected one float64 number"),
        (leader(None), "expected one float64 number"),
        (leader(float("nan")), r"f\(x, y\) = nan: expected a finite number; .*smaller step"),
        (leader(float("inf")), r"f\(x, y\) = inf: expected a finite number"),
        (leader(grad_x=np.zeros(3)), r"grad_x has shape \(3,\).*expected shape \(2,\).*per entry of x"),
        (leader(grad_y=np.zeros((3, 1))), r"grad_y has shape \(3, 1\).*expected shape \(3,\).*per entry of y"),
        (leader(grad_x=np.zeros(2, np.float32)), "grad_x has shape .* dtype float32: expected .* float64"),
        (leader(grad_y=np.array([0.0, np.nan, 1.0])), r"grad_y\[1\] = nan: expected finite numbers; .*check_leader"),
        (leader(grad_x=np.array([0.0, -np.inf])), r"grad_x\[1\] = -inf: expected finite numbers"),
        (
            pzos.leader_from_functions(lambda x, y: 0.0, value_and_gradients=lambda x, y: (0.0, x)),  # type: ignore[arg-type,return-value]
            r"value_and_gradients returned .*expected three things; return \(value, grad_x, grad_y\)",
        ),
        (
            pzos.leader_from_functions(lambda x, y: 0.0, value_and_gradients=lambda x, y: None),  # type: ignore[arg-type,return-value]
            "value_and_gradients returned None: expected three things",
        ),
    ],
)
def test_what_comes_back_is_checked(faulty: pzos.Leader, message: str) -> None:
    with pytest.raises(InvalidLeader, match=message):
        faulty(X, Y)


def test_errors_carry_the_name_of_the_leader_and_the_step() -> None:
    faulty = pzos.leader_from_functions(lambda x, y: float("nan"), cost_x, cost_y, name="toll revenue")
    with pytest.raises(InvalidLeader, match=r"^step 0: toll revenue: f\(x, y\) = nan"):
        pzos.solve(pzos.Problem(faulty, response, START), pzos.PZOS(), steps=3)


def test_a_float32_leader_is_an_error_in_a_run() -> None:
    single = pzos.leader_from_functions(cost, lambda x, y: cost_x(x, y).astype(np.float32), cost_y)
    with pytest.raises(InvalidLeader, match=r"grad_x has shape .* float32: expected .* dtype float64"):
        pzos.solve(pzos.Problem(single, response, START), pzos.PZOS(), steps=3)


def test_a_leader_cannot_move_the_iterate_by_accident() -> None:
    def careless(x: Any, y: Any) -> float:
        if not np.array_equal(x, START):  # x0 is the user's own
            x -= 1.0
        return float(x @ x)

    task = pzos.Problem(pzos.leader_from_functions(careless, lambda x, y: 2 * x, lambda x, y: 0 * y), response, START)
    with pytest.raises(ValueError, match="read-only"):
        pzos.solve(task, pzos.PZOS(), steps=3)
    with pytest.raises(ValueError, match="read-only"):
        pzos.solve(task, pzos.PZOS(), steps=3, monitor=False)
    np.testing.assert_array_equal(task.x0, START)


def test_non_callables_are_all_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        pzos.leader_from_functions(3, None, "g")  # type: ignore[arg-type]
    message = str(caught.value)
    assert "3 faults" in message
    for part in ("value = 3", "grad_x = None", "grad_y = 'g'", "expected a function of (x, y)", "give both partial"):
        assert part in message
    with pytest.raises(InvalidInput, match="value_and_gradients = 5: expected a function"):
        pzos.leader_from_functions(cost, value_and_gradients=5)  # type: ignore[arg-type]


def test_check_leader_agrees_with_right_gradients() -> None:
    report = pzos.check_leader(LEADER, START, response(START))
    assert report
    assert report.worst_error < 1e-9
    assert repr(report).startswith("both gradients agree with f")


@pytest.mark.parametrize(("which", "entry"), [("grad_x", 0), ("grad_x", 4), ("grad_y", 2)])
def test_check_leader_finds_the_wrong_entry(which: str, entry: int) -> None:
    def spoilt(gradient: Any, name: str) -> Any:
        def wrong(x: Any, y: Any) -> Any:
            g = np.array(gradient(x, y))
            if name == which:
                g[entry] += 0.01
            return g

        return wrong

    faulty = pzos.leader_from_functions(cost, spoilt(cost_x, "grad_x"), spoilt(cost_y, "grad_y"))
    report = pzos.check_leader(faulty, START, response(START))
    assert not report
    assert [(w.gradient, w.entry) for w in report.wrong] == [(which, entry)]
    assert report.wrong[0].claimed - report.wrong[0].measured == pytest.approx(0.01, rel=1e-5)
    assert f"{which}[{entry}]: the leader says" in repr(report)


def test_check_leader_does_not_blame_the_rounding_of_a_large_cost() -> None:
    large = pzos.leader_from_functions(
        lambda x, y: float(3.7e7 + y.sum() + 1e-3 * (x @ x)), lambda x, y: 2e-3 * x, lambda x, y: np.ones(y.size)
    )
    assert pzos.check_leader(large, np.linspace(1e-5, 1e-3, 50), np.linspace(0.1, 1e3, 50))


def test_check_leader_shortens_a_long_list_and_samples_long_gradients() -> None:
    wrong = pzos.leader_from_functions(lambda x, y: float(x @ x), lambda x, y: -x, lambda x, y: 0 * y)
    report = pzos.check_leader(wrong, np.ones(1000), [1.0], entries=50)
    assert len(report.wrong) == 50
    assert "... and 40 more" in repr(report)
    assert {w.entry for w in report.wrong} >= {0, 999}


def test_check_leader_takes_numbers_and_names_bad_points() -> None:
    single = pzos.leader_from_functions(lambda x, y: float(x @ x + y @ y), lambda x, y: 2 * x, lambda x, y: 2 * y)
    assert pzos.check_leader(single, 1, 2)
    with pytest.raises(InvalidInput) as caught:
        pzos.check_leader("f", [np.nan], ["a"])  # type: ignore[arg-type]
    for part in ("leader = 'f'", "x = [nan]: expected a vector of finite numbers", "y = ['a']"):
        assert part in str(caught.value)
