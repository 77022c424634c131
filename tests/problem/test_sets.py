"""Laws of the Euclidean projection, stated once and held by every set."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

import pzos
from nearest import constraints, nearest
from pzos.base.errors import InvalidInput
from pzos.base.types import Vector
from pzos.problem.polyhedra import Polyhedron
from pzos.problem.projections import projector_for
from pzos.problem.sets import Ball, Box, Budget, Domain, Product, Simplex

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)
SIZES = st.floats(1e-3, 1e3)
SETTINGS = settings(max_examples=60, deadline=None)


def polyhedron(draw: Any, d: int) -> Polyhedron:
    """Draw a polyhedron of small whole numbers (so that constraints coincide) around a point of its own."""
    whole_numbers = st.integers(-2, 2).map(float)
    rows, sums = draw(st.integers(1, 5)), draw(st.integers(0, 1))
    A = draw(arrays(np.float64, (rows, d), elements=whole_numbers))
    inside = draw(arrays(np.float64, d, elements=whole_numbers))
    slack = draw(arrays(np.float64, rows, elements=st.sampled_from([0.0, 1.0, 3.0])))
    if not sums:
        return Polyhedron(A, A @ inside + slack)
    C = draw(arrays(np.float64, (sums, d), elements=whole_numbers))
    return Polyhedron(A, A @ inside + slack, C, C @ inside)


def intersection(draw: Any, d: int) -> pzos.Intersection:
    """Draw sets around a point of their own: flat ones, at times with a ball."""
    inside = draw(arrays(np.float64, d, elements=st.integers(-2, 2).map(float)))
    A = draw(arrays(np.float64, (2, d), elements=st.integers(-2, 2).map(float)))
    sets: list[Domain] = [Polyhedron(A, A @ inside + draw(st.sampled_from([0.0, 1.0])))]
    sets.append(Box(inside - 1.0, inside + draw(st.floats(0.0, 2.0))))
    if draw(st.booleans()):
        sets.append(Ball(inside, draw(st.floats(0.5, 2.0))))
    return pzos.Intersection(sets)


KINDS = (
    "whole", "nonnegative", "box", "open box", "simplex", "budget", "ball", "polyhedron", "intersection", "product",
)  # fmt: skip


def some_set(draw: Any, d: int, kinds: tuple[str, ...]) -> Domain:
    kind = draw(st.sampled_from(kinds))
    if kind in ("box", "open box"):
        ends = np.sort(draw(arrays(np.float64, (2, d), elements=NUMBERS)), axis=0)
        return pzos.Box(ends[0], ends[1] if kind == "box" else np.inf)
    if kind == "ball":
        return pzos.Ball(draw(arrays(np.float64, d, elements=st.floats(-10, 10))), draw(SIZES))
    if kind in ("simplex", "budget"):
        return (pzos.Simplex if kind == "simplex" else pzos.Budget)(draw(SIZES))
    if kind == "polyhedron":
        return polyhedron(draw, d)
    if kind == "intersection":
        return intersection(draw, d)
    if kind == "product":
        cut = draw(st.integers(1, max(1, d - 1)))
        sizes = [cut, d - cut] if d > cut else [cut]
        return Product([(some_set(draw, size, KINDS[:-1]), size) for size in sizes])
    return pzos.Whole() if kind == "whole" else pzos.Nonnegative()


@st.composite
def sets_and_points(draw: Any, count: int = 2, kinds: tuple[str, ...] = KINDS) -> tuple[Domain, list[Vector]]:
    d = draw(st.integers(1, 6))
    points = [draw(arrays(np.float64, d, elements=NUMBERS)) for _ in range(count)]
    return some_set(draw, d, kinds), points


def scale(*points: Vector) -> float:
    return max(1.0, *(float(np.abs(p).max()) for p in points))


@given(sets_and_points())
def test_projection_lies_in_the_set_and_leaves_its_argument_alone(case: tuple[Domain, list[Vector]]) -> None:
    domain, (x, _) = case
    before = x.copy()
    projected = domain.project(x)
    np.testing.assert_array_equal(x, before)
    assert projected.dtype == np.float64
    assert projected.shape == x.shape
    assert domain.contains(projected, 1e-9)


@given(sets_and_points())
def test_projection_is_idempotent(case: tuple[Domain, list[Vector]]) -> None:
    domain, (x, _) = case
    once = domain.project(x)
    np.testing.assert_allclose(domain.project(once), once, rtol=1e-12, atol=1e-12 * scale(once))


@given(sets_and_points())
def test_projection_is_nonexpansive(case: tuple[Domain, list[Vector]]) -> None:
    domain, (x, z) = case
    moved = np.linalg.norm(domain.project(x) - domain.project(z))
    assert moved <= np.linalg.norm(x - z) * (1 + 1e-12) + 1e-12 * scale(x, z)


@given(sets_and_points())
def test_projection_solves_the_variational_inequality(case: tuple[Domain, list[Vector]]) -> None:
    """P(x) is the only point p of the set with (x - p) . (z - p) <= 0 for every z of the set."""
    domain, (x, other) = case
    p, z = domain.project(x), domain.project(other)
    size = scale(x, p, z)
    assert (x - p) @ (z - p) <= 1e-10 * size**2


@given(sets_and_points(count=1))
def test_points_of_the_set_stay(case: tuple[Domain, list[Vector]]) -> None:
    domain, (x,) = case
    inside = domain.project(x)
    assume(domain.contains(inside, 0.0))
    np.testing.assert_allclose(domain.project(inside), inside, rtol=1e-14, atol=1e-14 * scale(inside))


MODEST = st.floats(-20, 20, allow_subnormal=False)


@st.composite
def flat_sets_and_points(draw: Any) -> tuple[Domain, Vector]:
    """Draw a set bounded by planes and a point, both of modest size, so that the oracle is accurate."""
    d = draw(st.integers(1, 5))
    u = draw(arrays(np.float64, d, elements=MODEST))
    if draw(st.booleans()):
        ends = np.sort(draw(arrays(np.float64, (2, d), elements=MODEST)), axis=0)
        return pzos.Box(ends[0], ends[1]), u
    shares = st.floats(0.1, 30).map(draw(st.sampled_from([pzos.Simplex, pzos.Budget])))
    if d > 1 and draw(st.booleans()):
        cut = draw(st.integers(1, d - 1))
        return Product([(draw(shares), cut), (polyhedron(draw, d - cut), d - cut)]), u
    return draw(st.sampled_from([pzos.Whole(), pzos.Nonnegative(), draw(shares), polyhedron(draw, d)])), u


@SETTINGS
@given(flat_sets_and_points())
def test_projection_is_the_nearest_point_by_another_method(case: tuple[Domain, Vector]) -> None:
    """Least distance programming shares nothing with our projections but the definition of the set."""
    domain, u = case
    np.testing.assert_allclose(domain.project(u), nearest(*constraints(domain, u.size), u), atol=1e-7)


@given(arrays(np.float64, 3, elements=MODEST), arrays(np.float64, 3, elements=MODEST), st.floats(0.1, 10))
def test_projection_onto_a_ball_is_the_nearest_point_of_it(u: Vector, center: Vector, radius: float) -> None:
    p = pzos.Ball(center, radius).project(u)
    far = float(np.linalg.norm(u - center))
    assert np.linalg.norm(u - p) == pytest.approx(max(0.0, far - radius), abs=1e-12)
    np.testing.assert_allclose(np.cross(u - center, p - center), 0.0, atol=1e-10 * max(1.0, far) ** 2)


def differences(domain: Domain, u: Vector) -> Vector:
    """Return the derivative of the projection at u by central differences."""
    h = 1e-6
    projector = projector_for(domain)
    return np.stack([(projector.project(u + h * e) - projector.project(u - h * e)) / (2 * h) for e in np.eye(u.size)]).T


OF_FOUR = (
    pzos.Whole(),
    pzos.Nonnegative(),
    pzos.Box([-1.0, -2.0, 0.0, -np.inf], [1.0, np.inf, 0.5, 0.0]),
    pzos.Simplex(2.0),
    pzos.Budget(2.0),
    pzos.Ball(0.3, 3.0),
    Polyhedron(np.vstack([-np.eye(4), np.eye(4)]), np.ones(8), [[1.0, 1.0, 0.0, 0.0]], [0.5]),
    Product([(pzos.Ball(0.0, 1.0), 2), (Polyhedron([[1.0, 2.0]], [1.0]), 2)]),
)


@pytest.mark.parametrize("domain", OF_FOUR, ids=lambda domain: type(domain).__name__)
@SETTINGS
@given(seed=st.integers(0, 10_000))
def test_derivatives_of_projections_are_those_of_differences(domain: Domain, seed: int) -> None:
    """Away from the edges between pieces, where draws of a normal law almost surely lie."""
    u = np.random.default_rng(seed).normal(0.0, 3.0, 4)
    projector = projector_for(domain)
    derivative = projector.derivative(u, projector.project(u))
    assert derivative is not None
    np.testing.assert_allclose(derivative, derivative.T, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(derivative)
    assert eigenvalues.min() >= -1e-9, "P is monotone"
    assert eigenvalues.max() <= 1 + 1e-9, "and nonexpansive"
    near = [projector.derivative(v, projector.project(v)) for v in (u + s * e for e in np.eye(u.size) for s in STEPS)]
    assume(all(np.abs(other - derivative).max() < 1e-3 for other in near if other is not None))  # one smooth piece
    np.testing.assert_allclose(derivative, differences(domain, u), atol=1e-5)


STEPS = (-1e-6, 1e-6)


def nearest_on_face(x: Vector, total: float, keep: tuple[bool, ...]) -> Vector:
    """Return the nearest point of {z: z_i = 0 outside ``keep``, sum z = total}, without its signs."""
    z = np.where(keep, x, 0.0)
    return np.where(keep, z + (total - z.sum()) / sum(keep), 0.0)


@given(arrays(np.float64, st.integers(1, 5), elements=st.floats(-20, 20)), st.floats(0.1, 30))
def test_simplex_and_budget_agree_with_all_faces_tried(x: Vector, total: float) -> None:
    faces = [keep for keep in product([True, False], repeat=x.size) if any(keep)]
    candidates = [z for keep in faces if (z := nearest_on_face(x, total, keep)).min() >= -1e-9]
    best = min(candidates, key=lambda z: float((x - z) @ (x - z)))
    np.testing.assert_allclose(pzos.Simplex(total).project(x), best, atol=1e-7)
    clipped = np.maximum(x, 0.0)
    expected = clipped if clipped.sum() <= total else best
    np.testing.assert_allclose(pzos.Budget(total).project(x), expected, atol=1e-7)


@pytest.mark.parametrize("domain", [pzos.Box([-1.0, 0.0], [0.5, 2.0]), pzos.Ball([0.3, -0.2], 1.1), pzos.Nonnegative()])
def test_agrees_with_a_fine_grid(domain: Domain) -> None:
    axis = np.linspace(-4.0, 4.0, 161)
    grid = np.array([point for point in product(axis, axis) if domain.contains(np.array(point), 1e-9)])
    for x in np.array([[3.0, -2.0], [-2.5, 3.5], [0.1, 0.2], [-3.0, -3.0]]):
        nearest = np.linalg.norm(grid - x, axis=1).min()
        ours = np.linalg.norm(domain.project(x) - x)
        assert nearest - 0.05 <= ours <= nearest + 1e-9


@pytest.mark.parametrize("large", [1e10, 1e17, 1e300])
def test_simplex_survives_numbers_that_drown_its_total(large: float) -> None:
    np.testing.assert_array_equal(pzos.Simplex(1.0).project(np.array([large, 0.0, -large])), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(pzos.Budget(1.0).project(np.array([large, large])), [0.5, 0.5])


def test_contains_says_no() -> None:
    outside = {
        pzos.Nonnegative(): [-1e-3, 1.0],
        pzos.Box(0, 1): [0.5, 1.001],
        pzos.Simplex(1.0): [0.5, 0.6],
        pzos.Budget(1.0): [0.5, 0.6],
        pzos.Ball(0.0, 1.0): [0.8, 0.7],
    }
    for domain, point in outside.items():
        assert not domain.contains(np.array(point)), domain
        assert isinstance(domain, Domain)


def test_bounds_are_copied_and_read_only() -> None:
    lower = np.zeros(2)
    box = pzos.Box(lower, 1)
    lower[0] = 9.0
    assert box.lower.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 1.0


def test_a_set_of_another_dimension_names_the_entry() -> None:
    assert pzos.Box([0, 0], 1).faults(2) == []
    assert pzos.Box([0, 0], 1).faults(3) == [
        "domain: Box.lower has 2 entries: expected 3; give one number per entry of x0"
    ]
    assert pzos.Ball([0, 0], 1).faults(3) == [
        "domain: Ball.center has 2 entries: expected 3; give one number per entry of x0"
    ]


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


def test_of_a_polyhedron_only_what_is_wrong_is_said() -> None:
    with pytest.raises(InvalidInput) as caught:
        Polyhedron(A=[[1.0]])
    assert str(caught.value) == "Polyhedron: b is missing: expected A and b together; give both or neither"
    with pytest.raises(InvalidInput, match=r"^Polyhedron: 2 faults\n  - A = 'x': .*\n  - C is missing"):
        Polyhedron("x", [0.0], d=[1.0])
    with pytest.raises(
        InvalidInput, match=r"^Polyhedron: A = array\(\[1\.\]\): expected a matrix; one row per constraint$"
    ):
        Polyhedron([1.0], [1.0])


def test_all_faults_of_a_product_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        Product([(Simplex(1.0), 1.5), ("box", 2), (Ball([0.0, 0.0], 1.0), 3)])  # type: ignore[list-item]
    words = str(caught.value)
    assert words.startswith("Product: 3 faults\n  - parts[0] size = 1.5: expected a whole number, 1 or more; give the")
    assert "parts[1] set = 'box': expected a set with project, contains and faults" in words
    assert "parts[2]: domain: Ball.center has 2 entries: expected 3" in words
    with pytest.raises(InvalidInput, match=r"parts = \(\): expected at least one pair"):
        Product([])


def test_constraints_without_effect_are_left_out() -> None:
    """0 <= 1 holds everywhere; y_1 <= 2 is no constraint where C y = d fixes y_1."""
    p = Polyhedron([[0.0, 0.0], [1.0, 0.0]], [1.0, 2.0], [[1.0, 0.0]], [1.0])
    assert p.halfspaces.offsets.size == 0
    np.testing.assert_allclose(p.project(np.array([5.0, 7.0])), [1.0, 7.0], atol=1e-14)


def test_sets_are_values() -> None:
    assert pzos.Simplex(2) == pzos.Simplex(2.0)
    assert pzos.Simplex(2) != pzos.Budget(2)
    assert repr(pzos.Budget(np.float32(0.5))) == "Budget(total=0.5)"
    assert len({pzos.Whole(), pzos.Whole(), pzos.Nonnegative()}) == 2
    for domain in OF_FOUR:
        assert isinstance(domain, Domain)
        assert domain.faults(4) == []
    with pytest.raises(AttributeError):
        pzos.Simplex(1.0).total = 3.0  # type: ignore[misc]
