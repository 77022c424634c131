"""A leader from a plain function: by JAX, by PyTorch or by differences, the same gradients, and it says which."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput, InvalidLeader

X, Y = np.array([1.0, 2.0]), np.array([3.0, -4.0])


def with_operators(x: Any, y: Any) -> Any:
    return ((y - x) ** 2).sum() + 0.5 * (x * x).sum()


def with_numpy(x: Any, y: Any) -> Any:
    return float(np.square(y - x).sum() + 0.5 * np.square(x).sum())


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in missing else find(name, *rest))


def test_jax_if_it_is_installed() -> None:
    pytest.importorskip("jax")
    leader = pzos.leader_from_cost(with_operators)
    assert (leader.name, leader.remark()) == ("with_operators", "")
    at = leader(X, Y)
    np.testing.assert_array_equal(at.grad_x, 2 * (X - Y) + X)
    np.testing.assert_array_equal(at.grad_y, 2 * (Y - X))
    assert leader.remark() == "The cost is differentiated by JAX"


def test_pytorch_if_there_is_no_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    without(monkeypatch, "jax")
    leader = pzos.leader_from_cost(with_operators)
    np.testing.assert_allclose(leader(X, Y).grad_x, 2 * (X - Y) + X, rtol=1e-14)
    assert leader.remark() == "The cost is differentiated by PyTorch"


@pytest.mark.parametrize("cost", [with_operators, with_numpy])
def test_differences_if_there_is_neither(monkeypatch: pytest.MonkeyPatch, cost: Any) -> None:
    without(monkeypatch, "jax", "torch")
    leader = pzos.leader_from_cost(cost)
    at = leader(X, Y)
    assert at.value == leader.value(X, Y) == with_numpy(X, Y)
    np.testing.assert_allclose(at.grad_x, 2 * (X - Y) + X, rtol=1e-9)
    np.testing.assert_allclose(at.grad_y, 2 * (Y - X), rtol=1e-9)
    assert leader.remark() == "The cost is differentiated by differences (neither JAX nor PyTorch is installed)"


def test_differences_where_jax_cannot_follow_and_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    without(monkeypatch, "torch")
    leader = pzos.leader_from_cost(lambda x, y: float(np.abs(y).sum()))
    np.testing.assert_allclose(leader(X, Y).grad_y, [1.0, -1.0], rtol=1e-9)
    assert leader.name == "leader"
    assert leader.remark().startswith("The cost is differentiated by differences (JAX cannot follow it: Tracer")


def test_what_the_cost_itself_raises_or_returns_is_not_hidden() -> None:
    def faulty(x: Any, y: Any) -> Any:
        raise LookupError("no such price")

    with pytest.raises(LookupError, match="no such price"):
        pzos.leader_from_cost(faulty)(X, Y)
    with pytest.raises(InvalidLeader, match="expected one float64 number"):
        pzos.leader_from_cost(lambda x, y: x)(X, Y)
    with pytest.raises(InvalidInput, match="leader_from_cost: cost = 3: expected a function"):
        pzos.leader_from_cost(3)  # type: ignore[arg-type]
