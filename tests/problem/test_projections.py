"""Algorithms behind projections: within a trust region, onto half-spaces, and with derivatives for Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from nearest import constraints, nearest
from pzos.base.errors import NotConverged
from pzos.base.types import Vector
from pzos.problem.polyhedra import Polyhedron
from pzos.problem.projections import HalfSpaces, onto_sum, project_near, projector_for
from pzos.problem.sets import Ball, Box, Budget, Domain, Nonnegative, Product, Simplex, Whole

SETS = (Simplex(2.0), Budget(2.0), Ball(np.full(5, 0.1), 0.7), Box(-0.3, 0.4), Nonnegative())
SETTINGS = settings(max_examples=60, deadline=None)


class Disc:
    """A set of the user's own: the unit disc, known by its projection alone."""

    def project(self, x: Vector) -> Vector:
        return x / max(1.0, float(np.linalg.norm(x)))

    def contains(self, x: Vector, tolerance: float = 0.0) -> bool:
        return float(np.linalg.norm(x)) <= 1.0 + tolerance

    def faults(self, dimension: int) -> list[str]:
        return []


def near_case(domain: Domain, seed: int, size: int = 5) -> tuple[Vector, Vector]:
    """Return a centre in the set and a point x that may be outside."""
    rng = np.random.default_rng(seed)
    centre = domain.project(rng.standard_normal(size))
    return centre, centre + 2.0 * rng.standard_normal(size)


@pytest.mark.parametrize("domain", SETS, ids=lambda s: type(s).__name__)
@given(seed=st.integers(0, 10_000), radius=st.floats(1e-3, 3.0))
def test_it_is_the_projection_onto_set_and_region(domain: Domain, seed: int, radius: float) -> None:
    """The nearest point: in both sets, and <x - p, z - p> <= 0 for every z in both."""
    centre, x = near_case(domain, seed)
    rng = np.random.default_rng(seed + 1)
    p = project_near(x, centre, radius, domain)
    assert domain.contains(p, 1e-9)
    assert np.abs(p - centre).max() <= radius * (1 + 1e-12)
    for _ in range(20):
        z = domain.project(centre + radius * (2.0 * rng.random(5) - 1.0))
        shrink = min(1.0, radius / max(np.abs(z - centre).max(), 1e-300))
        z = centre + shrink * (z - centre)
        assert (x - p) @ (z - p) <= 1e-4 * max(1.0, radius) * np.linalg.norm(x - p)


@pytest.mark.parametrize("domain", [Simplex(2.0), Budget(2.0), Box(-0.3, 0.4), Nonnegative()], ids=str)
@SETTINGS
@given(seed=st.integers(0, 10_000), radius=st.floats(1e-2, 3.0))
def test_near_points_agree_with_least_distance_programming(domain: Domain, seed: int, radius: float) -> None:
    centre, x = near_case(domain, seed)
    (A, b), (region, limits) = constraints(domain, 5), constraints(Box(centre - radius, centre + radius), 5)
    oracle = nearest(np.vstack([A, region]), np.r_[b, limits], x)
    accuracy = 1e-7 if hasattr(domain, "one_constraint") else 1e-4  # Dykstra's method ends early
    np.testing.assert_allclose(project_near(x, centre, radius, domain), oracle, atol=accuracy)


@pytest.mark.parametrize("seed", range(8))
def test_near_points_of_a_ball_agree_with_a_solver(seed: int) -> None:
    ball, radius = Ball(np.full(5, 0.1), 0.7), 0.5
    centre, x = near_case(ball, seed)
    found = minimize(
        lambda z: 0.5 * (z - x) @ (z - x),
        centre,
        jac=lambda z: z - x,
        method="SLSQP",
        bounds=list(zip(centre - radius, centre + radius, strict=True)),
        constraints={"type": "ineq", "fun": lambda z: ball.radius**2 - (z - ball.center) @ (z - ball.center)},
        options={"ftol": 1e-14, "maxiter": 300},
    )
    np.testing.assert_allclose(project_near(x, centre, radius, ball), found.x, atol=1e-5)


def test_a_point_near_and_inside_stays() -> None:
    for domain in (Budget(2.0), Ball(0.0, 3.0), Whole(), Disc()):
        x = np.array([0.1, 0.2])
        np.testing.assert_array_equal(project_near(x, np.array([0.15, 0.15]), 0.1, domain), x)


def test_a_set_known_by_its_projection_alone() -> None:
    x, centre = np.array([3.0, 1.0]), np.array([0.6, 0.0])
    exact = project_near(x, centre, 0.3, Ball(np.zeros(2), 1.0))
    np.testing.assert_allclose(project_near(x, centre, 0.3, Disc()), exact, atol=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(1e-3, 1e3))
def test_sums_come_out_right_and_order_is_kept(entries: list[float], total: float) -> None:
    x = np.array(entries)
    p = onto_sum(x, total)
    assert p.min() >= 0.0
    assert p.sum() == pytest.approx(total, rel=1e-9)
    assert np.all(np.diff(p[np.argsort(x)]) >= 0.0)


def unit_rows(rng: np.random.Generator, m: int, n: int) -> HalfSpaces:
    normals = rng.normal(size=(m, n))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return HalfSpaces(normals, rng.random(m))  # the origin is inside


@SETTINGS
@given(seed=st.integers(0, 10_000))
def test_a_guess_of_the_active_constraints_changes_nothing_but_the_work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spaces = unit_rows(rng, 8, 4)
    point = rng.normal(0.0, 3.0, 4)
    cold, active = spaces.project(point)
    np.testing.assert_allclose(cold, nearest(spaces.normals, spaces.offsets, point), atol=1e-8)
    for guess in (active, (0,), (3, 1), tuple(rng.permutation(8)[:3].tolist())):
        warm, found = spaces.project(point, guess)
        np.testing.assert_allclose(warm, cold, atol=1e-10)
        assert set(found) == set(active)


def test_the_constraints_a_point_rests_on_hold_as_equations_with_multipliers() -> None:
    spaces = HalfSpaces(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 2.0]))
    projected, active = spaces.project(np.array([4.0, 5.0]))
    assert projected.tolist() == [1.0, 2.0]
    assert set(active) == {0, 1}
    _, multipliers = spaces.on_face(np.array([4.0, 5.0]), active)
    assert sorted(multipliers.tolist()) == [3.0, 3.0]
    inside, active = spaces.project(np.array([-1.0, -1.0]))
    assert active == ()
    assert inside.tolist() == [-1.0, -1.0]


def test_contradictions_are_found() -> None:
    never = HalfSpaces(np.array([[1.0], [-1.0]]), np.array([0.0, -1.0]))  # t <= 0 and t >= 1
    with pytest.raises(NotConverged, match="constraints contradict each other"):
        never.project(np.array([5.0]))


def test_factors_are_remembered_and_forgotten_in_time() -> None:
    rng = np.random.default_rng(0)
    spaces = unit_rows(rng, 400, 3)
    first, again = spaces.factor((7,)), spaces.factor((7,))
    assert first is again
    for index in range(400):
        spaces.factor((index,))
    assert len(spaces.factors) <= 256


@pytest.mark.parametrize(
    "domain", [Whole(), Nonnegative(), Box(-1, 1), Simplex(1.0), Budget(1.0), Ball(0.0, 1.0)], ids=str
)
def test_sets_in_closed_form_are_projectors_themselves(domain: Domain) -> None:
    assert projector_for(domain) is domain


def test_sets_with_a_memory_give_a_fresh_projector_each_time() -> None:
    corner = Polyhedron(np.eye(2), np.zeros(2))
    one, other = projector_for(corner), projector_for(corner)
    assert one is not other
    assert one.project(np.array([1.0, 2.0])).tolist() == [0.0, 0.0]
    assert np.array_equal(one.derivative(np.array([1.0, -2.0]), np.array([0.0, -2.0])), np.diag([0.0, 1.0]))
    assert np.array_equal(other.derivative(np.array([-1.0, -2.0]), np.array([-1.0, -2.0])), np.eye(2))


def test_equations_are_kept_by_the_derivative() -> None:
    line = Polyhedron(C=[[1.0, 1.0]], d=[1.0])
    derivative = projector_for(line).derivative(np.array([3.0, 4.0]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(derivative, [[0.5, -0.5], [-0.5, 0.5]], atol=1e-15)


def test_a_set_of_ones_own_has_no_derivative_unless_it_says_so() -> None:
    class SmoothDisc(Disc):
        def derivative(self, x: Vector, projected: Vector) -> Any:
            return Ball(0.0, 1.0).derivative(x, projected)

    u = np.array([3.0, 4.0])
    np.testing.assert_allclose(projector_for(Disc()).project(u), [0.6, 0.8])
    assert projector_for(Disc()).derivative(u, u / 5.0) is None
    assert projector_for(SmoothDisc()).derivative(u, u / 5.0) is not None
    mixed = projector_for(Product([(Nonnegative(), 1), (Disc(), 2)]))
    np.testing.assert_allclose(mixed.project(np.array([-1.0, 3.0, 4.0])), [0.0, 0.6, 0.8])
    assert mixed.derivative(np.array([-1.0, 3.0, 4.0]), np.array([0.0, 0.6, 0.8])) is None
