from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.problem.room import has_room, room_near
from pzos.problem.sets import Product

from .test_projections import Disc

CUTS = pzos.Polyhedron(A=[[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 2.0, 0.5]], b=[0.4, 0.3])
SETS = (
    pzos.Whole(),
    pzos.Nonnegative(),
    pzos.Box(0.0, [1.0, 0.0, 2.0, 1.0]),
    pzos.Simplex(1.0),
    pzos.Budget(1.0),
    pzos.Ball(0.3, 0.7),
    CUTS,
    pzos.Polyhedron(C=[[1.0, 2.0, 0.0, 1.0]], d=[0.2], A=[[1.0, 0.0, 0.0, 0.0]], b=[0.0]),
    pzos.Intersection([pzos.Box(-1.0, 1.0), CUTS]),
    pzos.Intersection([pzos.Box(-1.0, 1.0), CUTS, pzos.Ball(0.0, 1.0)]),
    pzos.Intersection([pzos.Ball(0.0, 1.0), pzos.Ball(0.5, 1.0)]),
    Product([(pzos.Ball(0.0, 1.0), 2), (pzos.Box(0.0, 1.0), 2)]),
    Disc(),
)


@pytest.mark.parametrize("domain", SETS, ids=lambda s: type(s).__name__)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), radius=st.sampled_from([1e-4, 0.1, 3.0]))
def test_the_ball_lies_in_the_set_and_near_x(domain, seed, radius):
    rng = np.random.default_rng(seed)
    x = domain.project(2.0 * rng.standard_normal(4))
    room = room_near(domain, x, radius)
    assert room.radius > 0.0
    assert np.linalg.norm(room.centre - x) + room.radius <= radius * (1 + 1e-12)
    for _ in range(30):
        v = rng.standard_normal(room.dimension)
        v /= np.linalg.norm(v)
        assert domain.contains(room.centre + room.radius * room.along(v), 1e-9)
        np.testing.assert_allclose(room.coordinates(room.along(v)), v, atol=1e-12)


def test_far_from_the_boundary_all_room_is_taken():
    x = np.full(4, 0.5)
    assert room_near(pzos.Box(0.0, 1.0), x, 0.1).centre is x
    assert room_near(pzos.Box(0.0, 1.0), x, 0.1).radius == 0.1


def test_equations_leave_their_own_directions():
    assert room_near(pzos.Simplex(1.0), np.full(4, 0.25), 0.1).dimension == 3
    assert room_near(pzos.Box(0.0, [1.0, 0.0, 2.0, 1.0]), np.zeros(4), 0.1).dimension == 3


def test_a_set_without_known_interior_is_refused():
    thin = pzos.Polyhedron(A=[[1.0, 0.0], [-1.0, 0.0]], b=[0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"no interior near x.*equations given as such .*inside=False"):
        room_near(thin, np.zeros(2), 0.1)
    assert not has_room(thin, np.zeros(2), 0.1)
    assert has_room(pzos.Simplex(1.0), np.array([1.0, 0.0]), 0.1)
