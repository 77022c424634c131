from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import pzos
from pzos.problem.linear import Facets, Linear, bounded
from pzos.problem.sets import Product, linear_form

FLAT = (
    pzos.Whole(),
    pzos.Nonnegative(),
    pzos.Box([-1.0, 0.0, -np.inf, 0.2], [1.0, np.inf, 2.0, 0.2]),
    pzos.Simplex(2.0),
    pzos.Budget(2.0),
    pzos.Polyhedron(A=[[1.0, 1.0, 0.0, 0.0]], b=[1.0], C=[[0.0, 0.0, 1.0, -1.0]], d=[0.5]),
    Product([(pzos.Simplex(1.0), 2), (pzos.Polyhedron(A=[[1.0, -2.0]], b=[0.3]), 2)]),
    pzos.Intersection([pzos.Box(-1.0, 1.0), pzos.Polyhedron(C=[[1.0, 1.0, 1.0, 1.0]], d=[0.5])]),
)


@pytest.mark.parametrize("domain", FLAT, ids=lambda s: type(s).__name__)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_linear_form_of_a_set_is_that_set(domain, seed):
    """The nearest point by least distance programming on the form is the one the set itself gives."""
    linear = linear_form(domain, 4)
    x = 3.0 * np.random.default_rng(seed).standard_normal(4)
    np.testing.assert_allclose(Facets(linear).project(x), domain.project(x), atol=1e-9)


def test_a_curved_set_has_no_linear_form():
    assert linear_form(pzos.Ball(0.0, 1.0), 2) is None
    assert linear_form(Product([(pzos.Ball(0.0, 1.0), 2), (pzos.Nonnegative(), 1)]), 3) is None
    assert pzos.Intersection([pzos.Ball(0.0, 1.0), pzos.Nonnegative()]).linear(3) is None


def random_constraints(rng, d, rows, sums):
    inside = rng.standard_normal(d)
    A, C = rng.standard_normal((rows, d)), rng.standard_normal((sums, d))
    bounds = inside - rng.random(d), inside + rng.random(d)
    return inside, Linear(*bounds, A, A @ inside + rng.random(rows), C, C @ inside)


@pytest.mark.parametrize(("d", "rows", "sums"), [(3, 2, 0), (6, 4, 1), (20, 10, 2)])
def test_the_projection_agrees_with_a_solver_of_quadratic_programs(d, rows, sums):
    rng = np.random.default_rng(d)
    for _ in range(5):
        inside, linear = random_constraints(rng, d, rows, sums)
        x = inside + 2.0 * rng.standard_normal(d)
        peer = minimize(
            lambda z, x=x: 0.5 * (z - x) @ (z - x),
            inside,
            jac=lambda z, x=x: z - x,
            method="SLSQP",
            bounds=np.column_stack([linear.lower, linear.upper]),
            constraints=[
                {"type": "ineq", "fun": lambda z, k=linear: k.b - k.A @ z, "jac": lambda z, k=linear: -k.A},
                {"type": "eq", "fun": lambda z, k=linear: k.C @ z - k.d, "jac": lambda z, k=linear: k.C},
            ],
            options={"ftol": 1e-15, "maxiter": 500},
        )
        assert peer.status in (0, 8)  # 8: no further progress, at this accuracy
        np.testing.assert_allclose(Facets(linear).project(x), peer.x, atol=1e-6)


def test_the_projection_is_proved_optimal_by_a_linear_program():
    """p is the nearest point iff no point z of the set has (x - p) . (z - p) > 0; HiGHS finds the best z."""
    rng = np.random.default_rng(7)
    for d, rows, sums in ((4, 3, 0), (30, 10, 3), (100, 20, 0)):
        inside, linear = random_constraints(rng, d, rows, sums)
        x = inside + 2.0 * rng.standard_normal(d)
        p = Facets(linear).project(x)
        best = linear.lowest(p - x)
        assert (x - p) @ (best - p) <= 1e-7
        assert (linear.A @ p <= linear.b + 1e-10).all()
        np.testing.assert_allclose(linear.C @ p, linear.d, atol=1e-10)


def test_bounds_of_a_region_may_be_added():
    linear = bounded(2, 0.0, 1.0).met(pzos.Polyhedron(A=[[1.0, 1.0]], b=[1.0]).linear(2))
    near = Facets(linear).project(np.array([2.0, 2.0]), np.array([0.0, 0.0]), np.array([0.2, 1.0]))
    np.testing.assert_allclose(near, [0.2, 0.8], atol=1e-12)


def test_a_point_of_the_constraints_or_none():
    assert bounded(2, 0.0, 1.0).lowest(np.array([1.0, -1.0])).tolist() == [0.0, 1.0]
    assert bounded(2, 1.0, 0.0).point() is None
    assert bounded(1, 0.0)._replace(A=np.ones((1, 1)), b=np.array([-1.0])).point() is None
