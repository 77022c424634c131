from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.problem.projections import project_near
from pzos.problem.sets import Ball, Box, Budget, Nonnegative, Simplex

SETS = (Simplex(2.0), Budget(2.0), Ball(np.full(5, 0.1), 0.7), Box(-0.3, 0.4), Nonnegative())


@pytest.mark.parametrize("domain", SETS, ids=lambda s: type(s).__name__)
@given(seed=st.integers(0, 10_000), radius=st.floats(1e-3, 3.0))
def test_it_is_the_projection_onto_set_and_region(domain, seed, radius):
    """The nearest point: in both sets, and <x - p, z - p> <= 0 for every z in both."""
    rng = np.random.default_rng(seed)
    centre = domain.project(rng.standard_normal(5))
    x = centre + 2.0 * rng.standard_normal(5)
    p = project_near(x, centre, radius, domain)
    assert domain.contains(p, 1e-9)
    assert np.abs(p - centre).max() <= radius * (1 + 1e-12)
    for _ in range(20):
        z = domain.project(centre + radius * (2.0 * rng.random(5) - 1.0))
        shrink = min(1.0, radius / max(np.abs(z - centre).max(), 1e-300))
        z = centre + shrink * (z - centre)
        assert (x - p) @ (z - p) <= 1e-4 * max(1.0, radius) * np.linalg.norm(x - p)


def test_a_set_known_by_its_projection_alone():
    class Disc:
        def project(self, x):
            return x / max(1.0, float(np.linalg.norm(x)))

        def contains(self, x, tolerance=0.0):
            return float(np.linalg.norm(x)) <= 1.0 + tolerance

        def faults(self, size):
            return []

    exact = project_near(np.array([3.0, 1.0]), np.array([0.6, 0.0]), 0.3, Ball(np.zeros(2), 1.0))
    np.testing.assert_allclose(project_near(np.array([3.0, 1.0]), np.array([0.6, 0.0]), 0.3, Disc()), exact, atol=1e-6)
