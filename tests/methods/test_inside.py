"""No query leaves the set: not a probe, not an exploration, not a far look, not a certificate's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import pzos
from pzos.stationarity import StopWhenStationary

from ..problem.test_projections import Disc

RNG = np.random.default_rng(5)
A = RNG.standard_normal((3, 4))
MIX = RNG.standard_normal((4, 4))
CUTS = pzos.Polyhedron(A=A, b=[0.3, 0.2, 0.4])
SETS = {
    "box": pzos.Box(0.0, 0.8),
    "simplex": pzos.Simplex(1.0),
    "ball": pzos.Ball(0.2, 0.5),
    "polyhedron": CUTS,
    "equation": pzos.Polyhedron(A=A, b=[0.3, 0.2, 0.4], C=[[1.0, 1.0, -1.0, 1.0]], d=[0.1]),
    "box and cuts": pzos.Intersection([pzos.Box(-0.5, 0.8), CUTS]),
    "cuts and ball": pzos.Intersection([pzos.Ball(0.0, 0.7), CUTS]),
    "own": Disc(),
}
SOLVERS = {
    "default": pzos.CompositeTrustRegion(),
    "batch": pzos.CompositeTrustRegion(batch=3),
    "PZOS": pzos.PZOS(radius=0.3, inside=True),
    "ZOS": pzos.ZOS(radius=0.3, batch=2, inside=True),
    "one-sided": pzos.MemoryPZOS(radius=0.3, differences=pzos.OneSided(inside=True)),
    "central": pzos.MemoryPZOS(radius=0.3, differences=pzos.Central(inside=True)),
    "midpoint": pzos.SecantPZOS(radius=0.3, differences=pzos.Midpoint(inside=True)),
    "certified": StopWhenStationary(pzos.PZOS(radius=0.3, inside=True), delta=0.2, epsilon=1e-9, share=0.6),
}


FOLLOWERS = {
    "smooth": lambda x, rng: np.tanh(MIX @ x),
    "jumping": lambda x, rng: np.round(np.tanh(MIX @ x), 1),
    "noisy": lambda x, rng: np.tanh(MIX @ x) + 0.05 * rng.standard_normal(4),
}


def watched(domain, follower):
    """Return a problem whose optimum lies on the boundary, and the list of every point its followers are asked."""
    asked = []
    goal = np.array([2.0, -1.0, 1.5, 1.0])
    leader = pzos.leader_from_functions(
        lambda x, y: float((x - goal) @ (x - goal) + x @ y), lambda x, y: 2 * (x - goal) + y, lambda x, y: x
    )

    def answer(x, rng):
        asked.append(x.copy())
        return follower(x, rng)

    return pzos.Problem(leader, pzos.seeded(answer), domain.project(np.full(4, 0.1)), domain), asked


def assert_inside(domain, asked):
    outside = [x for x in asked if not domain.contains(x, 1e-9)]
    assert not outside, f"{len(outside)} of {len(asked)} queries outside, the first at {outside[0]}"


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
@pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
def test_no_query_leaves_the_set(domain, solver):
    problem, asked = watched(domain, FOLLOWERS["smooth"])
    pzos.solve(problem, solver, queries=40, seed=1)
    assert len(asked) >= 10
    assert_inside(domain, asked)


@pytest.mark.parametrize("follower", FOLLOWERS.values(), ids=FOLLOWERS.keys())
@pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
def test_nor_a_query_of_the_default_with_its_certificate(domain, follower):
    problem, asked = watched(domain, follower)
    result = pzos.solve(problem, queries=30, seed=2, certificate=True)
    assert result.certificate is not None
    assert len(asked) > 30 or result.stop is pzos.Stop.CONVERGED
    assert_inside(domain, asked)


@pytest.mark.parametrize("name", ["polyhedron", "box and cuts", "equation"])
def test_the_default_reaches_the_constrained_optimum(name):
    """Against SLSQP on the same F, which sees the follower itself."""
    domain, F = SETS[name], []
    problem, _ = watched(domain, FOLLOWERS["smooth"])
    linear = domain.linear(4)
    for seed in range(4):
        start = domain.project(np.random.default_rng(seed).standard_normal(4))
        found = minimize(
            lambda x: problem.leader.value(x, np.tanh(MIX @ x)), start, method="SLSQP",
            bounds=list(zip(linear.lower, linear.upper, strict=True)),
            constraints=[
                {"type": "ineq", "fun": lambda x: linear.b - linear.A @ x},
                {"type": "eq", "fun": lambda x: linear.C @ x - linear.d},
            ],
            options={"ftol": 1e-12, "maxiter": 500},
        )  # fmt: skip
        F.append(found.fun)
    result = pzos.solve(problem, queries=40)
    assert result.best_value <= min(F) + 1e-3 * abs(min(F))
