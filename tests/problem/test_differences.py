"""Gradients by differences, and the check of gradients by hand: what is wrong is caught, what is awkward passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidLeader
from pzos.problem.differences import WrongGradient, gradients


def called(value: Any, grad_x: Any, grad_y: Any, x: Any, y: Any) -> Any:
    return pzos.leader_from_functions(value, grad_x, grad_y)(np.array(x, dtype=float), np.array(y, dtype=float))


def zero(_: Any, y: Any) -> Any:
    return 0.0 * y


def squares(x: Any, y: Any) -> float:
    return float(x @ x + y @ y)


@pytest.mark.parametrize(
    ("grad_x", "grad_y", "named"),
    [
        (lambda x, y: -2 * x, lambda x, y: 2 * y, r"grad_x\[0\] = -2: expected 2,"),
        (lambda x, y: 2 * x, lambda x, y: -2 * y, r"grad_y\[0\] = -6: expected 6,"),
        (lambda x, y: 2 * x * [1, 1.01], lambda x, y: 2 * y, r"grad_x\[1\] = 4.04: expected 4,"),
        (lambda x, y: 2 * x[::-1], lambda x, y: 2 * y, r"grad_x\[0\] = 4: expected 2,"),
        (lambda x, y: 2 * x, lambda x, y: 0 * y, r"grad_y\[0\] = 0: expected 6,"),
    ],
)
def test_a_wrong_gradient_is_an_error_that_names_the_entry(grad_x: Any, grad_y: Any, named: str) -> None:
    with pytest.raises(WrongGradient, match=named):
        called(squares, grad_x, grad_y, [1.0, 2.0], [3.0])


def test_a_gradient_of_something_that_is_not_there_is_wrong() -> None:
    with pytest.raises(WrongGradient, match=r"grad_x\[0\] = 1: expected 0,"):
        called(lambda x, y: float(y[0]), lambda x, y: 0 * x + 1, lambda x, y: np.array([1.0, 0.0]), [0.0], [1.0, 2.0])


def test_one_wrong_entry_of_thousands_is_found() -> None:
    weights = np.sin(np.arange(5000.0)) + 2.0

    def wrong(x: Any, y: Any) -> Any:
        gradient = weights * np.cos(x)
        gradient[4321] *= -1.0
        return gradient

    def value(x: Any, y: Any) -> float:
        return float(weights @ np.sin(x))

    x = 0.1 * np.cos(np.arange(5000.0))
    called(value, lambda x, y: weights * np.cos(x), zero, x, [1.0])
    with pytest.raises(WrongGradient, match=r"grad_x\[4321\]"):
        called(value, wrong, zero, x, [1.0])


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_smooth_cost_of_any_scale_passes_and_its_negative_gradient_does_not(
    size: float, scale: float, offset: float
) -> None:
    def value(x: Any, y: Any) -> float:
        return float(offset * size + size * np.sin(x / scale).sum())

    def slope(x: Any, y: Any) -> Any:
        return size * np.cos(x / scale) / scale

    x = np.array([0.3, 1.2]) * scale
    called(value, slope, zero, x, [1.0])
    with pytest.raises(WrongGradient):
        called(value, lambda x, y: -slope(x, y), zero, x, [1.0])


@pytest.mark.parametrize(
    ("value", "grad_x", "x"),
    [
        (lambda x, y: float(np.abs(x).sum()), lambda x, y: np.sign(x), [0.0, 1e-7, 1.0]),
        (lambda x, y: float(np.abs(x).sum()), lambda x, y: np.ones_like(x), [0.0, 0.0, 0.0]),
        (lambda x, y: -float(np.abs(x).sum()), lambda x, y: 0 * x, [0.0, 0.0]),
        (lambda x, y: 100 * float(np.maximum(x - 1, 0).sum()), lambda x, y: 100.0 * (x > 1), [1.0, 1 - 1e-9, 1 + 1e-9]),
        (lambda x, y: float(np.sqrt(x).sum()), lambda x, y: 0.5 / np.sqrt(x), [1e-12, 1e-3]),
        (lambda x, y: float(np.log(x).sum()), lambda x, y: 1 / x, [1e-12, 1e-3]),
        (lambda x, y: float(np.float32(x @ x)), lambda x, y: 2 * x, [1.3, 2.0]),
        (lambda x, y: float((1e8 + x @ x) ** 2 - 1e16), lambda x, y: 4 * x * (1e8 + x @ x), [1.3, 2.0]),
        (lambda x, y: float(np.exp(50 * x).sum()), lambda x, y: 50 * np.exp(50 * x), [1.3, 2.0]),
        (lambda x, y: float((x**3).sum()), lambda x, y: 3 * x**2, [0.0, 0.0]),
    ],
)
def test_a_kink_an_edge_and_a_cost_of_few_digits_pass(value: Any, grad_x: Any, x: Any) -> None:
    at = called(value, grad_x, zero, x, [1.0])  # a wrong gradient would have been refused here
    np.testing.assert_array_equal(at.grad_x, grad_x(np.array(x), None))


def test_a_kink_between_many_entries_passes() -> None:
    x = np.where(np.arange(200) % 2, 0.0, 1.0)
    at = called(lambda x, y: float(np.abs(x[:100]).sum() - np.abs(x[100:]).sum()),
                lambda x, y: np.sign(x) * np.repeat([1.0, -1.0], 100), zero, x, [1.0])  # fmt: skip
    assert at.value == 0.0


def test_a_run_ends_at_the_first_answer_and_keeps_it(tmp_path: Any) -> None:
    calls = []

    def follower(x: Any) -> Any:
        calls.append(x)
        return np.abs(x)

    def game(sign: float) -> pzos.Problem:
        leader = pzos.leader_from_functions(squares, lambda x, y: 2 * x, lambda x, y: sign * 2 * y)
        return pzos.Problem(leader, follower, [1.0, 2.0], follower_name="abs")

    path = tmp_path / "a.study"
    with pytest.raises(InvalidLeader, match=r"step 0: leader: grad_y\[0\] = -2: expected 2, as differences of f say"):
        pzos.solve(game(-1.0), queries=5, path=path)
    assert len(calls) == 1
    pzos.solve(game(1.0), queries=2, path=path, certificate=False)
    assert len(calls) == 2  # the first answer was not lost


def test_a_method_that_needs_no_gradient_does_not_mind() -> None:
    leader = pzos.leader_from_functions(squares, lambda x, y: 0 * x, lambda x, y: 0 * y)
    assert pzos.solve(pzos.Problem(leader, abs, [1.0, 2.0]), pzos.ZOS(), steps=2).steps == 2


def test_differences_are_gradients_and_one_sided_at_an_edge() -> None:
    def value(x: Any, y: Any) -> float:
        if x[0] < 0.0:
            raise ValueError("no price is negative")
        return float(3 * x[0] + np.sin(x[1]) + y @ y)

    grad_x, grad_y = gradients(value, np.array([0.0, 1.0]), np.array([2.0, -1.0]))
    np.testing.assert_allclose(grad_x, [3.0, np.cos(1.0)], rtol=1e-8)
    np.testing.assert_allclose(grad_y, [4.0, -2.0], rtol=1e-8)
    with pytest.raises(InvalidLeader, match=r"not defined on either side of x\[0\] = 0"):
        gradients(lambda x, y: 1.0 if x[0] == 0.0 else float("nan"), np.zeros(1), np.ones(1))
