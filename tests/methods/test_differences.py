"""Differences: what is asked, what is read, and what a failure takes away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.keys import Keys
from pzos.base.types import Purpose
from pzos.methods.differences import Central, Midpoint, OneSided
from pzos.methods.estimators import sphere_directions, two_point_plan
from pzos.problem.sets import Box, Simplex, Whole

X = np.array([0.3, -0.2, 0.5])
JACOBIAN = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
RULES = (Central, Midpoint, OneSided)
COUNTS = {Central: lambda q: 2 * q + 1, Midpoint: lambda q: 2 * q, OneSided: lambda q: q + 1}


@settings(deadline=None)
@given(rule=st.sampled_from(RULES), batch=st.integers(1, 4), inside=st.booleans())
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


@pytest.mark.parametrize("rule", RULES)
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
    for rule in RULES:
        plan = rule(inside=True).plan(X, 0.1, sphere_directions(Keys(0), 0, 2, 3), point)
        reading = rule(inside=True).read(plan, [JACOBIAN @ p for p in plan.points])
        assert reading.probes == ()
