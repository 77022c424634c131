from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.errors import InvalidInput, NotConverged
from pzos.base.keys import Keys, Role
from pzos.stationarity import HullSolver, certify_hull, min_norm_point

from .instances import random_instance


def by_enumeration(points: np.ndarray) -> float:
    """The smallest norm by trying every set of at most d + 1 points: the nearest point is inside one of their hulls."""
    best = np.inf
    for count in range(1, min(len(points), points.shape[1] + 1) + 1):
        for chosen in combinations(points, count):
            rows = np.array(chosen)
            system = np.block([[rows @ rows.T, np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]])
            weights = np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0][:count]
            if weights.min() >= -1e-12 and abs(weights.sum() - 1.0) < 1e-9:
                best = min(best, float(np.linalg.norm(weights @ rows)))
    return best


def by_quadratic_programme(points: np.ndarray) -> float:
    """The smallest norm by SLSQP on the weights."""
    from scipy.optimize import minimize

    gram = points @ points.T
    found = minimize(
        lambda w: (w @ gram @ w, 2.0 * gram @ w), np.full(len(points), 1.0 / len(points)), jac=True, method="SLSQP",
        bounds=[(0.0, None)] * len(points), constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    return float(np.linalg.norm(found.x @ points))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 3), st.floats(0.0, 2.0))
def test_the_smallest_norm_is_that_of_the_nearest_face(seed: int, count: int, d: int, shift: float) -> None:
    points = Keys(seed).generator(Role.INSTANCE).standard_normal((count, d)) + shift
    assert min_norm_point(points).norm == pytest.approx(by_enumeration(points), abs=2e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 8), st.floats(0.0, 2.0))
def test_the_smallest_norm_agrees_with_an_independent_quadratic_programme(
    seed: int, count: int, d: int, shift: float
) -> None:
    points = Keys(seed).generator(Role.INSTANCE).standard_normal((count, d)) + shift
    found = min_norm_point(points)
    assert found.norm <= by_quadratic_programme(points) + 1e-9
    assert found.weights.min() >= 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.allclose(found.weights @ points, found.point, atol=1e-9)
    assert found.at_least <= found.norm * (1 + 1e-12)
    assert found.norm**2 - found.at_least * found.norm <= 1e-10 * max(1.0, np.abs(points).max() ** 2)


def test_hulls_with_many_equal_and_nearly_equal_points_are_proved_too() -> None:
    draw = Keys(3).generator(Role.INSTANCE)
    for d in (2, 5, 30):
        few = draw.standard_normal((4, d)) + 0.5
        points = np.repeat(few, 20, axis=0)
        expected = by_enumeration(few)
        assert min_norm_point(points).norm == pytest.approx(expected, abs=1e-11)
        jittered = points * (1.0 + 1e-13 * draw.standard_normal(points.shape))
        assert min_norm_point(jittered).norm == pytest.approx(expected, abs=1e-9)


def test_a_gap_that_is_not_reached_is_an_error() -> None:
    points = Keys(1).generator(Role.INSTANCE).standard_normal((30, 6)) + 1.0
    with pytest.raises(NotConverged, match="the gap is"):
        min_norm_point(points, tolerance=-1.0)


def test_degenerate_hulls() -> None:
    assert min_norm_point(np.zeros((3, 2))).norm == 0.0
    same = np.tile([3.0, 4.0], (5, 1))
    assert min_norm_point(same).norm == pytest.approx(5.0)
    assert min_norm_point(1e-200 * np.array([[1.0, 1.0], [1.0, -1.0]])).norm == pytest.approx(1e-200)
    line = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    assert min_norm_point(line).point == pytest.approx([0.0, 1.0], abs=1e-9)
    with pytest.raises(InvalidInput, match="points"):
        min_norm_point(np.array([[np.nan]]))


def test_sampled_gradients_are_those_of_the_pieces() -> None:
    instance = random_instance(3)
    report = certify_hull(instance.problem, delta=0.2, points=9)
    at = instance.problem.leader(instance.problem.x0, np.clip(instance.A @ instance.problem.x0 + instance.b, -1, 1))
    exact = at.grad_x + instance.jacobian(instance.problem.x0).T @ at.grad_y
    assert np.allclose(report.partial_gradients[0], exact, atol=1e-7)
    assert np.allclose(report.full_gradients[0], exact, atol=1e-7)
    assert report.queries == 9 * 7
    assert "does not refute" in repr(report)


def test_the_hull_certifies_a_kink_and_counts_its_queries() -> None:
    leader = pzos.leader_from_functions(
        lambda x, y: float(y.sum()), lambda x, y: np.zeros_like(x), lambda x, y: np.ones_like(y)
    )
    problem = pzos.Problem(leader, abs, x0=np.array([1e-3, -2e-3]))
    assert certify_hull(problem, delta=0.1, points=41).stationary(1e-9)
    assert not certify_hull(problem, delta=1e-4).stationary(0.5)


def test_normals_of_the_domain_count() -> None:
    # min x_1 + |x_2| over x >= 0 in the first entry: at the origin the gradient (1, .) is held by the wall
    leader = pzos.leader_from_functions(
        lambda x, y: float(x[0] + y[0]), lambda x, y: np.array([1.0, 0.0]), lambda x, y: np.ones(1)
    )
    domain = pzos.Box([0.0, -1.0], [1.0, 1.0])
    problem = pzos.Problem(leader, lambda x: np.abs(x[1:]), x0=np.zeros(2), domain=domain)
    assert certify_hull(problem, delta=0.01).partial.norm <= 1e-9
    assert certify_hull(problem, delta=0.01, projected=False).partial.norm == pytest.approx(1.0)


def test_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)delta.*points"):
        HullSolver(delta=-1.0, points=0)
