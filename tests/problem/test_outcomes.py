"""Outcome constraints: values, products with the Jacobians, names, equalities as two sides, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pzos
from pzos.base.errors import InvalidInput, InvalidLeader
from pzos.base.types import Vector
from pzos.problem.outcomes import Outcomes, joined

X, Y = np.array([0.3, -1.2]), np.array([0.7, 2.0, -0.4])
ROWS = np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])


def bent(x: Vector, y: Vector) -> Vector:
    return np.array([ROWS[0] @ y + x[0] ** 2, ROWS[1] @ (y * y) - x[1]])


def bent_pull(x: Vector, y: Vector, w: Vector) -> tuple[Vector, Vector]:
    return np.array([2.0 * w[0] * x[0], -w[1]]), w[0] * ROWS[0] + 2.0 * w[1] * ROWS[1] * y


def by_hand(**settings: object) -> Outcomes:
    return pzos.outcomes_from_functions(bent, bent_pull, names=["a", "b"], **settings)  # type: ignore[arg-type]


def test_values_and_products_are_those_of_the_functions() -> None:
    g = by_hand()
    assert g.names == ("a", "b")
    np.testing.assert_array_equal(g.values(X, Y), bent(X, Y))
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -3.0]])
    grad_x, grad_y = g.pulls(X, Y, weights)
    for row, in_x, in_y in zip(weights, grad_x, grad_y, strict=True):
        np.testing.assert_allclose(in_x, bent_pull(X, Y, row)[0])
        np.testing.assert_allclose(in_y, bent_pull(X, Y, row)[1])


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.3, 2.0]])
def test_products_agree_with_differences(weights: list[float]) -> None:
    assert pzos.check_leader(by_hand().leader_of(weights), X, Y)
    wrong = pzos.outcomes_from_functions(bent, lambda x, y, w: (x, w[0] * ROWS[0]), names=["a", "b"])
    assert not pzos.check_leader(wrong.leader_of(weights), X, Y)


@given(st.floats(-3, 3), st.floats(1e-3, 2))
def test_an_equality_holds_exactly_when_both_its_sides_do(value: float, tolerance: float) -> None:
    g = pzos.outcomes_from_functions(lambda x, y: y, lambda x, y, w: (0 * x, w), names="balance",
                                     equal={"balance": tolerance})  # fmt: skip
    assert g.names == ("balance (above)", "balance (below)")
    holds = bool((g.values(X, np.array([value])) <= 0.0).all())
    assert holds == (-tolerance <= value <= tolerance)


def test_both_sides_of_an_equality_have_opposite_slopes() -> None:
    g = by_hand(equal={"b": 0.1})
    assert g.names == ("a", "b (above)", "b (below)")
    grad_x, grad_y = g.pulls(X, Y, np.eye(3))
    np.testing.assert_allclose(grad_x[1], -grad_x[2])
    np.testing.assert_allclose(grad_y[1], -grad_y[2])
    np.testing.assert_allclose(g.values(X, Y)[1] + g.values(X, Y)[2], -0.2)
    assert pzos.check_leader(g.leader_of([0.3, 1.0, 0.2]), X, Y)


def test_caps_bound_entries_from_both_sides_and_skip_infinite_ones() -> None:
    g = pzos.caps([1.0, np.inf], [2, 0], lower=[-np.inf, 0.5])
    assert g.names == ("y[2] <= 1", "y[0] >= 0.5")
    np.testing.assert_allclose(g.values(X, Y), [Y[2] - 1.0, 0.5 - Y[0]])
    assert pzos.check_leader(g.leader_of([1.0, 2.0]), X, Y)


def test_several_sets_of_constraints_become_one() -> None:
    g = joined([by_hand(), pzos.caps(1.0, [1])])
    assert g.names == ("a", "b", "y[1] <= 1")
    np.testing.assert_allclose(g.values(X, Y), [*bent(X, Y), 1.0])
    assert pzos.check_leader(g.leader_of([1.0, 2.0, 3.0]), X, Y)


def test_jax_gives_the_same_as_functions_by_hand() -> None:
    jnp = pytest.importorskip("jax.numpy")
    g = pzos.outcomes_from_jax(
        lambda x, y: jnp.stack([ROWS[0] @ y + x[0] ** 2, ROWS[1] @ (y * y) - x[1]]), names=["a", "b"], equal={"a": 0.5}
    )
    same = by_hand(equal={"a": 0.5})
    np.testing.assert_allclose(g.values(X, Y), same.values(X, Y), rtol=1e-14)
    for mine, theirs in zip(g.pulls(X, Y, np.eye(3)), same.pulls(X, Y, np.eye(3)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    np.testing.assert_allclose(g.pull(X, Y, np.ones(3))[1], same.pull(X, Y, np.ones(3))[1], rtol=1e-14)


def test_torch_gives_the_same_as_functions_by_hand() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.tensor(ROWS)
    g = pzos.outcomes_from_torch(
        lambda x, y: torch.stack([rows[0] @ y + x[0] ** 2, rows[1] @ (y * y) - x[1]]), names=["a", "b"]
    )
    np.testing.assert_allclose(g.values(X, Y), bent(X, Y), rtol=1e-14)
    np.testing.assert_allclose(g.pull(X, Y, np.ones(2))[0], bent_pull(X, Y, np.ones(2))[0], rtol=1e-14)


@pytest.mark.parametrize(
    ("names", "equal", "said"),
    [
        (["a", "a"], None, "a name of its own"),
        ([], None, "a name of its own"),
        (["a", "b"], {"c": 0.1}, "check the spelling"),
        (["a", "b"], {"a": 0.0}, "positive"),
    ],
)
def test_bad_names_and_tolerances_are_refused(names: list[str], equal: dict[str, float] | None, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        pzos.outcomes_from_functions(bent, bent_pull, names=names, equal=equal)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda x, y: np.zeros(3), "expected 2 float64 numbers"),
        (lambda x, y: np.array([0.0, np.nan]), "'b' is nan"),
        (lambda x, y: np.zeros(2, dtype=np.float32), "float32"),
    ],
)
def test_what_a_constraint_returns_is_checked(value: object, said: str) -> None:
    g = pzos.outcomes_from_functions(value, bent_pull, names=["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(InvalidLeader, match=said):
        g.values(X, Y)


def test_products_of_the_wrong_length_are_refused() -> None:
    g = pzos.outcomes_from_functions(bent, lambda x, y, w: (x, x), names=["a", "b"])
    with pytest.raises(InvalidLeader, match="dg/dy"):
        g.pull(X, Y, np.ones(2))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1.0, 2.0], [0]), "one number, or 1"),
        ((1.0, [-1]), "from 0 up"),
        ((np.inf, [0]), "a name of its own"),
        ((1.0, [0.5]), "whole number"),
    ],
)
def test_bad_caps_are_refused(arguments: tuple[object, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        pzos.caps(*arguments)  # type: ignore[arg-type]


def test_a_problem_takes_one_set_of_constraints_or_several_and_nothing_else() -> None:
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)
    one, two = pzos.caps(1.0), pzos.caps(2.0, [1])
    assert pzos.Problem(leader, abs, [1.0, 2.0], outcomes=one).outcomes is one
    both = pzos.Problem(leader, abs, [1.0, 2.0], outcomes=[one, two])
    assert both.known().outcomes is not None
    assert both.known().outcomes.names == ("y[0] <= 1", "y[1] <= 2")  # type: ignore[union-attr]
    assert "under 2 constraints" in repr(both)
    with pytest.raises(InvalidInput, match="outcomes"):
        pzos.Problem(leader, abs, [1.0], outcomes=lambda x, y: y)  # type: ignore[arg-type]
