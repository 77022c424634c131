"""Projections onto polyhedra and products: against known sets, by their variational characterisation."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from pzos.base.errors import InvalidInput
from pzos.problem.sets import Ball, Box, Budget, Domain, Simplex
from pzos.problem.vi_sets import Polyhedron, Product

SETTINGS = settings(max_examples=60, deadline=None)


def as_polyhedron(which: str, n: int) -> tuple[Domain, Polyhedron]:
    low, ones = -np.eye(n), np.ones((1, n))
    if which == "simplex":
        return Simplex(2.0), Polyhedron(low, np.zeros(n), ones, [2.0])
    if which == "budget":
        return Budget(2.0), Polyhedron(np.vstack([low, ones, 2 * ones]), np.r_[np.zeros(n), 2.0, 4.0])
    return Box(-1.0, 2.0), Polyhedron(np.vstack([low, np.eye(n)]), np.r_[np.ones(n), 2 * np.ones(n)])


@SETTINGS
@given(which=st.sampled_from(["simplex", "budget", "box"]), n=st.integers(1, 12), seed=st.integers(0, 10_000))
def test_agrees_with_sets_in_closed_form(which: str, n: int, seed: int) -> None:
    known, polyhedron = as_polyhedron(which, n)
    u = np.random.default_rng(seed).normal(0, 3, n)
    np.testing.assert_allclose(polyhedron.project(u), known.project(u), atol=1e-13)


@SETTINGS
@given(seed=st.integers(0, 100_000), whole_numbers=st.booleans())
def test_the_projection_is_the_nearest_point(seed: int, whole_numbers: bool) -> None:
    """u - p is normal to the set at p: a linear program finds no feasible point further along it."""
    rng = np.random.default_rng(seed)
    n, m, e = int(rng.integers(2, 12)), int(rng.integers(1, 30)), int(rng.integers(0, 3))
    draw = (lambda *s: rng.integers(-2, 3, s).astype(float)) if whole_numbers else (lambda *s: rng.normal(size=s))
    A, C, inside = draw(m, n), draw(e, n), draw(n)
    b, d = A @ inside + rng.integers(0, 2, m), C @ inside
    polyhedron = Polyhedron(A, b, C if e else None, d if e else None)
    u = rng.normal(0, 5, n)
    p = polyhedron.project(u)
    assert polyhedron.contains(p, 1e-10)
    best = linprog(-(u - p), A, b, C if e else None, d if e else None, bounds=(None, None))
    assert best.status == 0
    assert -best.fun - (u - p) @ p <= 1e-8
    np.testing.assert_allclose(polyhedron.project(p), p, atol=1e-11)
    assert (polyhedron.project(u) == p).all()


def test_a_point_of_the_set_is_returned_unchanged() -> None:
    square = Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    inside = np.array([0.3, -1.0])
    assert (square.project(inside) == inside).all()
    assert square.contains(inside)
    assert not square.contains(np.array([0.0, 1.1]))


def test_product_projects_block_by_block() -> None:
    blocks = Product([(Simplex(1.0), 3), (Ball(0.0, 1.0), 2), (Polyhedron([[1.0]], [0.0]), 1)])
    p = blocks.project(np.array([3.0, 0.0, 0.0, 3.0, 4.0, 5.0]))
    np.testing.assert_allclose(p, [1.0, 0.0, 0.0, 0.6, 0.8, 0.0], atol=1e-15)
    assert blocks.dimension == 6
    assert blocks.contains(p)
    assert not blocks.contains(np.ones(6))
    assert blocks.faults(6) == []
    assert "6 entries" in blocks.faults(5)[0]


def test_bad_sets_are_refused_with_all_faults() -> None:
    with pytest.raises(InvalidInput, match="at least one point"):
        Polyhedron([[1.0], [-1.0]], [0.0, -1.0])
    with pytest.raises(InvalidInput, match="b is missing"):
        Polyhedron(A=[[1.0]])
    with pytest.raises(InvalidInput, match="no constraints"):
        Polyhedron()
    with pytest.raises(InvalidInput) as caught:
        Polyhedron([[1.0, np.nan]], [0.0], [[1.0, 1.0]], [0.0, 1.0])
    assert "A[0, 1] = nan" in str(caught.value)
    assert "one per row" in str(caught.value)
    with pytest.raises(InvalidInput, match="2 columns"):
        Polyhedron([[1.0, 1.0]], [0.0], [[1.0]], [0.0])
    with pytest.raises(InvalidInput) as caught:
        Product([(Simplex(1.0), 0), (Box([0.0, 0.0], 1.0), 3)])
    assert "parts[0] size = 0" in str(caught.value)
    assert "parts[1]" in str(caught.value)
    assert "2 columns" in Polyhedron([[1.0, 1.0]], [0.0]).faults(3)[0]
    assert repr(Polyhedron([[1.0, 1.0]], [0.0])) == "Polyhedron(dimension=2, inequalities=1, equations=0)"
