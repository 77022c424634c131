from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.fingerprint import describe
from pzos.problem.projections import project_near

SUM = pzos.Polyhedron(A=[[1.0, 1.0, 1.0]], b=[1.0])


class Disc:
    """A set of the user's own: |x| <= 1, known by its projection alone."""

    def project(self, x):
        return x / max(1.0, float(np.linalg.norm(x)))

    def contains(self, x, tolerance=1e-12):
        return float(np.linalg.norm(x)) <= 1.0 + tolerance

    def faults(self, dimension):
        return []


def nearest_by_a_peer(x, start, center, radius, cut):
    found = minimize(
        lambda z: 0.5 * (z - x) @ (z - x),
        start,
        jac=lambda z: z - x,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * x.size,
        constraints=[
            {"type": "ineq", "fun": lambda z: cut.b - cut.A @ z},
            {"type": "ineq", "fun": lambda z: radius**2 - (z - center) @ (z - center)},
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ball", [pzos.Ball(0.0, 1.0), Disc()], ids=["ball", "own"])
def test_a_curved_set_among_flat_ones(seed, ball):
    x = np.random.default_rng(seed).uniform(-2.0, 3.0, 3)
    common = pzos.Intersection([pzos.Box(0.0, 1.0), SUM, ball])
    assert common.faults(3) == []
    p = common.project(x)
    assert common.contains(p, 1e-9)
    np.testing.assert_allclose(p, nearest_by_a_peer(x, np.full(3, 0.2), 0.0, 1.0, SUM), atol=2e-6)


def test_two_balls_by_dykstra():
    lens = pzos.Intersection([pzos.Ball([0.0, 0.0], 1.0), pzos.Ball([1.0, 0.0], 1.0)])
    np.testing.assert_allclose(lens.project(np.array([0.5, 5.0])), [0.5, np.sqrt(0.75)], atol=1e-7)
    assert lens.faults(2) == []


def test_a_point_of_all_sets_stays():
    x = np.array([0.1, 0.2, 0.3])
    assert pzos.Intersection([SUM, pzos.Ball(0.0, 1.0)]).project(x) is x


@pytest.mark.parametrize("domain", [SUM, pzos.Intersection([SUM, pzos.Ball(0.0, 0.9)])], ids=["flat", "curved"])
def test_within_a_trust_region(domain):
    centre, x = np.array([0.2, 0.3, 0.4]), np.array([3.0, 1.0, -2.0])
    p = project_near(x, centre, 0.1, domain)
    assert np.abs(p - centre).max() <= 0.1 + 1e-12
    assert domain.contains(p, 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(100):
        z = centre + rng.uniform(-0.1, 0.1, 3)
        if domain.contains(z):
            assert (x - p) @ (z - p) <= 1e-9


@pytest.mark.parametrize(
    "sets",
    [
        (pzos.Box(2.0, 3.0), pzos.Budget(1.0)),
        (pzos.Box(2.0, 3.0), pzos.Ball(0.0, 1.0)),
        (Disc(), pzos.Ball([3.0, 0.0], 1.0)),
        (pzos.Polyhedron(A=[[1.0, 0.0]], b=[0.0]), pzos.Polyhedron(A=[[-1.0, 0.0]], b=[-1.0])),
    ],
)
def test_sets_without_a_common_point_are_refused(sets):
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)
    with pytest.raises(InvalidInput) as caught:
        pzos.Problem(leader, abs, x0=np.zeros(2), domain=pzos.Intersection(sets))
    words = str(caught.value)
    assert words == ("Problem: domain: Intersection is empty: expected sets with a point in common; loosen one of them")


def test_what_is_no_set_is_refused_with_all_faults():
    with pytest.raises(InvalidInput, match=r"2 faults\n  - sets\[0\] = 3: expected a set with .*\n  - sets\[2\]"):
        pzos.Intersection([3, SUM, pzos.Box])
    with pytest.raises(InvalidInput, match="at least one set"):
        pzos.Intersection([])
    with pytest.raises(InvalidInput, match=r"sets\[0\] = 3"):
        pzos.Intersection(3)


def test_faults_of_the_sets_are_those_of_their_intersection():
    assert pzos.Intersection([SUM, pzos.Box([0.0, 0.0], 1.0)]).faults(3) == [
        "domain: Box.lower has 2 entries: expected 3; give one number per entry of x0"
    ]


def test_what_was_prepared_is_no_part_of_what_a_set_is():
    """A durable study compares the sets of two sessions: a projection in between must not make another set."""
    fresh, used = (pzos.Intersection([pzos.Box(0.0, 1.0), SUM]) for _ in range(2))
    used.project(np.full(3, 5.0))
    SUM.project(np.full(3, 5.0))
    assert describe(fresh) == describe(used)
    again = pzos.Polyhedron(A=[[1.0, 1.0, 1.0]], b=[1.0])
    assert describe(again) == describe(SUM)


@pytest.mark.parametrize("size", [1.0, 1e6, 1e15])
def test_what_lies_far_away_is_projected_as_well(size):
    domain = pzos.Intersection([pzos.Ball(np.full(3, 0.3), 0.25), SUM])
    for way in np.random.default_rng(0).standard_normal((20, 3)):
        assert domain.contains(domain.project(size * way), 1e-9)
