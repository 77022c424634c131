"""Directions orthonormal where promised and uniform always; differences: what is asked, read, and lost by a failure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import Purpose
from pzos.methods.estimators import sphere_directions, two_point_plan
from pzos.methods.probes import Central, Cycled, Independent, Midpoint, OneSided, Orthogonal, orthonormal_rows
from pzos.problem.sets import Box, Simplex, Whole

DIRECTIONS = (Independent(), Orthogonal(), Cycled(), Cycled(2))


@settings(deadline=None)
@given(seed=st.integers(0, 2**30), rule=st.sampled_from(DIRECTIONS), count=st.integers(1, 6), step=st.integers(0, 50))
def test_unit_vectors_by_address(seed, rule, count, step):
    drawn = rule(Keys(seed), step, count, 4)
    assert len(drawn) == count
    np.testing.assert_allclose([v @ v for v in drawn], 1.0, rtol=1e-14)
    np.testing.assert_array_equal(drawn, rule(Keys(seed), step, count, 4))


@settings(deadline=None)
@given(seed=st.integers(0, 2**30), count=st.integers(1, 7))
def test_orthogonal_batches(seed, count):
    drawn = np.array(Orthogonal()(Keys(seed), 3, count, 7))
    np.testing.assert_allclose(drawn @ drawn.T, np.eye(count), atol=1e-14)
    np.testing.assert_allclose(drawn[0], sphere_directions(Keys(seed), 3, 1, 7)[0], rtol=1e-15)
    if count > 1:
        np.testing.assert_array_equal(drawn[:-1], Orthogonal()(Keys(seed), 3, count - 1, 7))


def test_beyond_the_dimension_a_further_basis_begins():
    drawn = np.array(Orthogonal()(Keys(0), 0, 5, 3))
    np.testing.assert_allclose(drawn[:3] @ drawn[:3].T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(drawn[3:] @ drawn[3:].T, np.eye(2), atol=1e-14)


@pytest.mark.parametrize(("batch", "dimension"), [(1, 5), (2, 5), (7, 5)])
def test_cycled_directions_use_up_one_basis_after_the_other(batch, dimension):
    steps = 2 * dimension
    drawn = np.array([v for step in range(steps) for v in Cycled()(Keys(1), step, batch, dimension)])
    bases = drawn[: len(drawn) // dimension * dimension].reshape(-1, dimension, dimension)
    for basis in bases:
        np.testing.assert_allclose(basis @ basis.T, np.eye(dimension), atol=1e-14)
    assert np.abs(bases[0] - bases[1]).max() > 0.1


def test_cycled_frames_are_cut_where_a_full_basis_would_be_too_large():
    drawn = Cycled()(Keys(0), 0, 1, 400_000)
    assert drawn[0].size == 400_000


@pytest.mark.parametrize("rule", DIRECTIONS, ids=str)
def test_every_direction_is_uniform(rule):
    """E[d v v'] = I, at the last place of a basis as well."""
    last = [rule(Keys(seed), 1, 2, 4)[1] for seed in range(6000)]
    moment = 4 * np.mean([np.outer(v, v) for v in last], axis=0)
    np.testing.assert_allclose(moment, np.eye(4), atol=0.08)
    np.testing.assert_allclose(np.mean(last, axis=0), 0.0, atol=0.04)


def test_nearly_dependent_rows_still_become_orthonormal():
    rows = np.ones((3, 5)) + 1e-9 * np.array(sphere_directions(Keys(0), 0, 3, 5))
    frame = orthonormal_rows(rows)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-7)


def test_bad_length_is_named():
    with pytest.raises(InvalidInput, match="length = 0"):
        Cycled(0)


X = np.array([0.3, -0.2, 0.5])
JACOBIAN = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
DIFFERENCES = (Central, Midpoint, OneSided)
COUNTS = {Central: lambda q: 2 * q + 1, Midpoint: lambda q: 2 * q, OneSided: lambda q: q + 1}


@settings(deadline=None)
@given(rule=st.sampled_from(DIFFERENCES), batch=st.integers(1, 4), inside=st.booleans())
def test_linear_responses_are_read_exactly(rule, batch, inside):
    domain = Box(-0.25, 0.55) if inside else Whole()
    plan = rule(inside).plan(X, 0.1, sphere_directions(Keys(0), 0, batch, 3), domain)
    assert len(plan.points) == len(plan.purposes) == COUNTS[rule](batch)
    assert all(domain.contains(point) for point in plan.points)
    reading = rule(inside).read(plan, [JACOBIAN @ point for point in plan.points])
    assert len(reading.probes) == batch
    for probe in reading.probes:
        np.testing.assert_allclose(probe.slope, JACOBIAN @ probe.direction, rtol=1e-9, atol=1e-12)
    if rule is not Midpoint:
        np.testing.assert_array_equal(reading.y, JACOBIAN @ X)
    elif not inside:
        np.testing.assert_allclose(reading.y, JACOBIAN @ X, atol=1e-14)


def test_central_asks_what_pzos_asks():
    directions = sphere_directions(Keys(3), 0, 2, 3)
    ours, paper = Central().plan(X, 0.1, directions, Whole()), two_point_plan(X, 0.1, directions, centred=True)
    np.testing.assert_array_equal(ours.points, paper.points)
    assert ours.purposes == paper.purposes
    assert Midpoint().plan(X, 0.1, directions, Whole()).purposes == (Purpose.PROBE,) * 4


@pytest.mark.parametrize("rule", DIFFERENCES)
def test_failed_answers_are_left_out(rule):
    plan = rule().plan(X, 0.1, sphere_directions(Keys(0), 0, 2, 3), Whole())
    answers = [JACOBIAN @ point for point in plan.points]
    reading = rule().read(plan, [*answers[:-1], None])
    assert len(reading.probes) == 1
    np.testing.assert_array_equal(reading.probes[0].direction, plan.directions[0])
    assert rule().read(plan, [None] * len(answers)) is None


@pytest.mark.parametrize("rule", [Central, OneSided])
def test_without_the_centre_there_is_nothing(rule):
    plan = rule().plan(X, 0.1, sphere_directions(Keys(0), 0, 1, 3), Whole())
    assert rule().read(plan, [None, *[JACOBIAN @ point for point in plan.points[1:]]]) is None


def test_midpoint_of_what_answered():
    plan = Midpoint().plan(X, 0.1, sphere_directions(Keys(0), 0, 2, 3), Whole())
    answers = [JACOBIAN @ point for point in plan.points]
    reading = Midpoint().read(plan, [None, *answers[1:]])
    assert not reading.exact
    np.testing.assert_allclose(reading.y, (answers[2] + answers[3]) / 2, rtol=1e-15)


def test_probes_on_a_simplex_stay_on_it_and_are_divided_by_what_they_moved():
    x = np.array([1.0, 0.0, 0.0])
    plan = OneSided(inside=True).plan(x, 0.2, sphere_directions(Keys(4), 0, 4, 3), Simplex())
    for point, v, run in zip(plan.points[1:], plan.directions, plan.runs, strict=True):
        assert Simplex().contains(point, 1e-9)
        np.testing.assert_allclose(point - x, run * v if (point - x) @ v > 0 else -run * v, atol=1e-15)


def test_a_probe_without_room_tells_nothing():
    point = Box(X, X)
    for rule in DIFFERENCES:
        plan = rule(inside=True).plan(X, 0.1, sphere_directions(Keys(0), 0, 2, 3), point)
        reading = rule(inside=True).read(plan, [JACOBIAN @ p for p in plan.points])
        assert reading.probes == ()
