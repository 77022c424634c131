"""What is expected without a query: checked where the followers are known, against what they then answer."""

from __future__ import annotations

import numpy as np
import pytest

import pzos

MATRIX = np.array([[1.0, 0.3, 0.0], [-0.2, 0.8, 0.1], [0.0, 0.4, 1.2], [0.5, 0.0, -0.3]])


def follower(x: np.ndarray) -> np.ndarray:
    return np.tanh(MATRIX @ x) + 0.3 * MATRIX @ x


def cost(x: np.ndarray, y: np.ndarray, target: float = 1.0, weight: float = 0.1) -> float:
    return float(((y - target) ** 2).sum() + weight * (x @ x))


def grad_x(x: np.ndarray, y: np.ndarray, target: float = 1.0, weight: float = 0.1) -> np.ndarray:
    return 2.0 * weight * x


def grad_y(x: np.ndarray, y: np.ndarray, target: float = 1.0, weight: float = 0.1) -> np.ndarray:
    return 2.0 * (y - target)


def leader(**parameters: float) -> pzos.Leader:
    given = {"target": 1.0, "weight": 0.1, **parameters}
    return pzos.leader_from_functions(cost, grad_x, grad_y, parameters=given)


def best(**parameters: float) -> float:
    problem = pzos.Problem(leader(**parameters), follower, np.zeros(3))
    return pzos.solve(problem, queries=60, certificate=False).best_value


@pytest.fixture(scope="module")
def result() -> pzos.Result:
    return pzos.solve(pzos.Problem(leader(), follower, np.zeros(3)), queries=40, certificate=False)


def test_another_cost_is_foretold_without_a_query(result: pzos.Result) -> None:
    foretold = result.what_if(leader(target=1.2))
    true = cost(foretold.x, follower(foretold.x), target=1.2)
    assert foretold.value == pytest.approx(true, abs=max(4.0 * foretold.spread, 1e-3))
    assert true == pytest.approx(best(target=1.2), rel=3e-2)
    assert foretold.value <= foretold.known_value
    known = [cost(x, y, target=1.2) for x, y in result.answers.pairs()]
    assert foretold.known_value == min(known)
    assert "expected cost" in repr(foretold)


def test_the_same_cost_expects_what_was_found(result: pzos.Result) -> None:
    same = result.what_if(leader())
    assert same.value == pytest.approx(result.best_value, rel=1e-6)


def test_to_maximise_is_to_minimise_the_negative(result: pzos.Result) -> None:
    negative = pzos.leader_from_functions(
        lambda x, y: -cost(x, y, 1.2), lambda x, y: -grad_x(x, y, 1.2), lambda x, y: -grad_y(x, y, 1.2)
    )
    assert result.what_if(negative, sense="max").value == pytest.approx(-result.what_if(leader(target=1.2)).value)


def test_first_order_is_the_partial_derivative_and_reoptimising_follows_the_optimum(result: pzos.Result) -> None:
    found = result.sensitivity()
    y = follower(result.best_x)
    assert found["target"].slope == pytest.approx(float((-2.0 * (y - 1.0)).sum()), rel=1e-6)
    assert found["weight"].slope == pytest.approx(float(result.best_x @ result.best_x), rel=1e-6)
    for name, value in (("target", 1.0), ("weight", 0.1)):
        effect = found[name]
        assert effect.change == pytest.approx(0.1 * value)
        assert effect.above.value == pytest.approx(best(**{name: 1.1 * value}), rel=1e-2)
        assert effect.below.value == pytest.approx(best(**{name: 0.9 * value}), rel=1e-2)
    assert result.sensitivity(["weight"]).effects[0].name == "weight"
    assert "re-optimised" in repr(found)


def test_what_cannot_be_asked_is_refused(result: pzos.Result) -> None:
    with pytest.raises(pzos.InvalidInput, match="a parameter of the leader"):
        result.sensitivity(["price"])
    with pytest.raises(pzos.InvalidInput, match="change = -1"):
        result.sensitivity(change=-1)
    with pytest.raises(pzos.InvalidInput, match="expected a Leader"):
        result.what_if(cost)  # type: ignore[arg-type]
    plain = pzos.leader_from_functions(cost, grad_x, grad_y)
    without = pzos.solve(pzos.Problem(plain, follower, np.zeros(3)), queries=3, certificate=False)
    with pytest.raises(pzos.InvalidInput, match="a leader with parameters"):
        without.sensitivity()
    with pytest.raises(pzos.InvalidLeader, match="has no parameters"):
        plain.with_parameters(target=1.0)


def test_constraints_are_kept_by_what_is_expected() -> None:
    problem = pzos.Problem(leader(), follower, np.zeros(3), outcomes=pzos.caps(upper=[0.6]))
    result = pzos.solve(problem, queries=30, certificate=False)
    foretold = result.what_if(leader(target=1.3))
    assert follower(foretold.x)[0] <= 0.6 + 0.02


def test_the_same_followers_under_another_leader() -> None:
    problem = pzos.Problem(leader(), follower, np.zeros(3), pzos.Box(-5, 5), name="first", follower_name="people")
    other = problem.with_leader(leader(target=2.0), sense="max", name="second")
    assert other.known().follower == problem.known().follower == {"name": "people"}
    assert (other.sense, other.name, other.domain) == ("max", "second", problem.domain)
    assert other.leader.parameters["target"] == 2.0
    assert problem.with_leader(leader()).sense == "min"


# ---- leaders with parameters ---------------------------------------------------------------------------------------


def test_parameters_are_bound_and_changed() -> None:
    made = leader(weight=0.5)
    x, y = np.ones(3), np.zeros(4)
    assert made.value(x, y) == cost(x, y, 1.0, 0.5)
    changed = made.with_parameters(weight=2)
    assert changed.value(x, y) == cost(x, y, 1.0, 2.0)
    assert np.array_equal(changed(x, y).grad_x, grad_x(x, y, 1.0, 2.0))
    assert changed.parameters == {"target": 1.0, "weight": 2.0}
    assert made.parameters["weight"] == 0.5
    with pytest.raises(pzos.InvalidInput) as error:
        made.with_parameters(wieght=1.0, target=float("nan"))
    assert "wieght" in str(error.value)
    assert "target = nan" in str(error.value)
    with pytest.raises(pzos.InvalidInput, match="numbers by name"):
        pzos.leader_from_functions(cost, grad_x, grad_y, parameters=[1.0])  # type: ignore[arg-type]


def test_jax_takes_parameters_too() -> None:
    pytest.importorskip("jax")
    made = pzos.leader_from_jax(lambda x, y, price: price * (x * y).sum(), parameters={"price": 2.0})
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert made.value(x, y) == 22.0
    assert np.array_equal(made.with_parameters(price=3.0)(x, y).grad_y, 3.0 * x)
