from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.methods.trust_region.subproblem import (
    Region,
    bounds_of,
    first_radius,
    half_width,
    minimise,
    on_model,
    typical_sizes,
)
from pzos.problem.projections import project_near
from pzos.problem.sets import Ball, Box, Nonnegative, Simplex, Whole

GOAL = np.array([2.0, -1.0, 0.5])


def bowl(x):
    return float((x - GOAL) @ (x - GOAL)), 2.0 * (x - GOAL)


def around(centre, radius, domain, sizes=1.0):
    return Region(centre, radius, np.broadcast_to(sizes, centre.shape), domain)


def test_the_minimiser_in_a_region_is_found():
    step = minimise(bowl, around(np.zeros(3), 10.0, Whole()), 50)
    np.testing.assert_allclose(step.x, GOAL, atol=1e-6)
    assert step.predicted == pytest.approx(GOAL @ GOAL)
    assert step.size == pytest.approx(2.0)


def test_the_region_and_a_box_cut_the_step():
    np.testing.assert_allclose(minimise(bowl, around(np.zeros(3), 0.7, Whole()), 50).x, [0.7, -0.7, 0.5], atol=1e-6)
    np.testing.assert_allclose(
        minimise(bowl, around(np.zeros(3), 0.7, Nonnegative()), 50).x, [0.7, 0.0, 0.5], atol=1e-6
    )
    np.testing.assert_allclose(
        minimise(bowl, around(np.zeros(3), 0.7, Box(-0.1, 0.3)), 50).x, [0.3, -0.1, 0.3], atol=1e-6
    )


@pytest.mark.parametrize("domain", [Simplex(1.0), Ball(np.zeros(3), 1.0)], ids=str)
def test_other_sets_go_by_projection(domain):
    start = domain.project(np.full(3, 1 / 3))
    step = minimise(bowl, around(start, 10.0, domain), 200)
    np.testing.assert_allclose(step.x, domain.project(GOAL), atol=1e-4)
    assert step.predicted > 0


def test_a_step_may_start_elsewhere_and_is_measured_from_the_centre():
    step = minimise(bowl, around(np.zeros(3), 10.0, Whole()), 50, start=np.ones(3))
    assert step.predicted == pytest.approx(GOAL @ GOAL)


def test_bounds_are_known_of_boxes_only():
    lower, upper = bounds_of(Box(0.0, np.array([1.0, 2.0])), 2)
    np.testing.assert_array_equal(upper, [1.0, 2.0])
    np.testing.assert_array_equal(lower, [0.0, 0.0])
    assert bounds_of(Simplex(1.0), 2) is None


def test_the_objective_on_a_model_has_its_exact_gradient():
    matrix = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + np.sin(y).sum()), lambda x, y: 2 * x, lambda x, y: np.cos(y)
    )

    class Linear:
        def response_and_pull(self, x):
            return matrix @ x, lambda g: matrix.T @ g

    for sign in (1.0, -1.0):
        objective = on_model(leader, sign, Linear())
        value, gradient = objective(GOAL)
        assert value == sign * leader.value(GOAL, matrix @ GOAL)
        h = 1e-6
        numerical = [(objective(GOAL + h * e)[0] - objective(GOAL - h * e)[0]) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(gradient, numerical, atol=1e-6)


@pytest.mark.parametrize("of_x", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("of_f", [1e-8, 1.0, 1e8])
def test_a_step_does_not_depend_on_the_units_of_x_or_f(of_x, of_f):
    def scaled(x):
        value, gradient = bowl(x / of_x)
        return of_f * value, of_f * gradient / of_x

    plain = minimise(bowl, around(np.zeros(3), 0.7, Box(-0.1, 0.6)), 30)
    step = minimise(scaled, around(np.zeros(3), 0.7 * of_x, Box(-0.1 * of_x, 0.6 * of_x)), 30)
    np.testing.assert_allclose(step.x / of_x, plain.x, rtol=1e-7)
    assert step.predicted == pytest.approx(of_f * plain.predicted)


def test_where_f_is_not_defined_on_the_model_a_step_turns_back():
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x - np.log(y[0])), lambda x, y: 2 * x, lambda x, y: -1.0 / y
    )

    class Falling:
        def response_and_pull(self, x):
            return np.array([1.0 - x.sum()]), lambda g: -np.full(3, g[0])

    step = minimise(on_model(leader, 1.0, Falling()), around(np.full(3, 0.3), 5.0, Whole()), 30)
    assert np.isfinite(step.predicted)
    assert step.predicted > 0.0
    assert step.x.sum() < 1.0


def test_decisions_of_unequal_size_are_told_by_the_box_or_by_the_curvature_of_f():
    steep = np.array([1e4, 1.0, 1e-4])
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * (steep * x) @ x), lambda x, y: steep * x, lambda x, y: 0 * y
    )
    y = np.zeros(2)
    by_box = typical_sizes(leader, np.zeros(3), y, Box(0.0, np.array([1.0, 10.0, 100.0])))
    np.testing.assert_allclose(by_box, [0.1, 1.0, 10.0])
    np.testing.assert_allclose(typical_sizes(leader, np.zeros(3), y, Whole()), [1e-2, 1.0, 1e2], rtol=1e-6)
    np.testing.assert_array_equal(typical_sizes(leader, np.zeros(3), y, Simplex(1.0)), np.ones(3))


def first_radius_of(leader, x0, answers, domain, sizes=1.0, outcomes=None):
    known = pzos.Problem(leader, lambda x: np.zeros(answers), x0, domain, outcomes=outcomes).known()
    return first_radius(known, x0, np.zeros(answers), np.broadcast_to(sizes, x0.shape))


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4])
def test_the_first_radius_follows_the_leader(scale):
    leader = pzos.leader_from_functions(
        lambda x, y: float((x - scale) @ (x - scale)), lambda x, y: 2 * (x - scale), lambda x, y: 0 * y
    )
    assert first_radius_of(leader, np.zeros(3), 2, Whole()) == pytest.approx(scale, rel=1e-3)


def test_without_a_minimiser_the_size_of_x0_and_the_set_decide():
    leader = pzos.leader_from_functions(lambda x, y: float(x.sum()), lambda x, y: np.ones_like(x), lambda x, y: 0 * y)
    x0 = np.full(3, 8.0)
    assert first_radius_of(leader, x0, 1, Whole()) == pytest.approx(4.0)
    assert first_radius_of(leader, np.full(3, 0.5), 1, Box(0.0, 1.0)) <= 0.5
    flat = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    assert first_radius_of(flat, np.zeros(3), 1, Whole()) == 0.5
    in_simplex = first_radius_of(flat, np.full(3, 1 / 3), 1, Simplex(1.0))
    assert 0.0 < in_simplex <= 0.5


@pytest.mark.parametrize(("price", "domain", "radius"), [
    (1e-4, Box(0.0, 40.0), 2.0),  # next to nothing: a tenth of half the width
    (1e-4, Whole(), 0.5),
    (5.0, Box(0.0, 40.0), 0.5),  # to where f alone leads
])  # fmt: skip
def test_where_f_alone_promises_next_to_nothing_a_bounded_set_tells_the_first_radius(price, domain, radius):
    leader = pzos.leader_from_functions(
        lambda x, y: float(100.0 + price * (x @ x)), lambda x, y: 2.0 * price * x, lambda x, y: 0 * y
    )
    found = first_radius_of(leader, np.full(3, 0.5), 1, domain)
    assert found == pytest.approx(radius, rel=1e-3)


@pytest.mark.parametrize(("n", "answers", "domain", "radius"), [
    (3, 1, Box(0.0, 40.0), 6.0),  # three tenths of half the width
    (12, 1, Box(0.0, 40.0), 6.0),
    (3, 3, Box(0.0, 40.0), 10.0),  # own effects may show: to where f alone leads
    (13, 1, Box(0.0, 40.0), 10.0),
    (3, 1, Nonnegative(), 10.0),
    (3, 1, Ball(20.0, 20.0), 10.0),
])  # fmt: skip
def test_a_first_step_of_few_decisions_is_short_beside_their_box(n, answers, domain, radius):
    leader = pzos.leader_from_functions(
        lambda x, y: float((x - 20.0) @ (x - 20.0)), lambda x, y: 2.0 * (x - 20.0), lambda x, y: 0.0 * y
    )
    x0, sizes = np.full(n, 10.0), np.full(n, 4.0)
    for units in (1.0, sizes):  # the size of a move is in typical moves
        found = first_radius_of(leader, x0, answers, domain, units)
        assert found == pytest.approx(radius / np.mean(units), rel=1e-3)
    limited = first_radius_of(leader, x0, answers, domain, outcomes=pzos.caps(np.ones(answers)))
    assert limited == pytest.approx(10.0, rel=1e-3)  # the limits keep it short, where they bind


CUT = pzos.Polyhedron(A=[[1.0, 1.0, 1.0]], b=[0.5])


def test_the_width_of_a_set_does_not_depend_on_the_order_of_decisions():
    """From a corner of a simplex it was measured along the first decision alone."""
    for corner in np.eye(4):
        assert half_width(Simplex(8.0), 8.0 * corner, np.ones(4)) == pytest.approx(4.0)


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e5, 1e8])
def test_the_width_of_a_set_does_not_depend_on_the_unit_of_decisions(unit):
    assert half_width(Box(0.0, 20.0 * unit), np.full(2, unit), np.ones(2)) == pytest.approx(10.0 * unit)
    assert half_width(Simplex(8.0 * unit), unit * np.array([8.0, 0.0]), np.ones(2)) == pytest.approx(4.0 * unit)
    for open_set in (Whole(), Nonnegative(), pzos.Polyhedron(A=[[1.0, 1.0]], b=[20.0 * unit])):
        assert half_width(open_set, np.full(2, unit), np.ones(2)) == np.inf


@pytest.mark.parametrize(
    "domain",
    [CUT, pzos.Intersection([Box(-0.5, 1.0), CUT]), pzos.Intersection([CUT, Ball(0.0, 1.2)]),
     pzos.Polyhedron(A=[[1.0, 0.0, 0.0]], b=[0.7], C=[[0.0, 1.0, 1.0]], d=[0.0])],
    ids=["polyhedron", "with a box", "with a ball", "with an equation"],
)  # fmt: skip
@pytest.mark.parametrize("radius", [0.3, 10.0])
def test_polyhedra_and_intersections(domain, radius):
    """A bowl is lowest at the projection of its bottom."""
    step = minimise(bowl, around(np.zeros(3), radius, domain), 100)
    np.testing.assert_allclose(step.x, project_near(GOAL, np.zeros(3), radius, domain), atol=1e-5)
    assert domain.contains(step.x, 1e-12)
    assert step.predicted == pytest.approx(bowl(np.zeros(3))[0] - bowl(step.x)[0])


def test_a_polyhedron_of_many_decisions_goes_by_projection():
    many = pzos.Polyhedron(A=np.ones((1, 80)), b=[1.0])
    goal = np.linspace(-1.0, 1.0, 80) + 0.3
    step = minimise(lambda x: (float((x - goal) @ (x - goal)), 2.0 * (x - goal)), around(np.zeros(80), 5.0, many), 50)
    np.testing.assert_allclose(step.x, many.project(goal), atol=1e-6)


def test_where_the_centre_is_lowest_nothing_is_promised():
    step = minimise(lambda x: (float(x @ x), 2.0 * x), around(np.zeros(3), 1.0, CUT), 20)
    assert step.predicted == 0.0
