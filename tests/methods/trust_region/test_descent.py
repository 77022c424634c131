"""Descent in a box: as low as an independent method, always inside, and never up."""

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from pzos.methods.trust_region.descent import descend


def bent(n, seed):
    """Return a smooth function with curvatures from 0.1 to 10, and a box that holds some of its decisions."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = directions @ np.diag(np.geomspace(0.1, 10.0, n)) @ directions.T
    target = rng.standard_normal(n)

    def objective(x):
        off = x - target
        quartic = 0.1 * float((off**4).sum())
        return 0.5 * float(off @ matrix @ off) + quartic, matrix @ off + 0.4 * off**3

    return objective, -0.5 * np.ones(n), 0.7 * np.ones(n)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_it_gets_as_low_as_an_independent_method(n):
    for seed in range(5):
        objective, lower, upper = bent(n, seed)
        x, value = descend(objective, np.zeros(n), objective(np.zeros(n)), lower, upper, 100)
        there = minimize(objective, np.zeros(n), jac=True, method="L-BFGS-B", bounds=Bounds(lower, upper))
        assert (x >= lower).all()
        assert (x <= upper).all()
        assert value == objective(x)[0]
        assert value <= there.fun + 1e-5 * (objective(np.zeros(n))[0] - there.fun)


def test_few_evaluations_are_enough_and_never_more_than_asked_for():
    objective, lower, upper = bent(20, 0)
    asked = []

    def counted(x):
        asked.append(x)
        return objective(x)

    descend(counted, np.zeros(20), objective(np.zeros(20)), lower, upper, 16)
    assert len(asked) <= 24


def test_a_kink_and_a_cliff_are_never_climbed():
    def kinked(x):
        return float(np.abs(x - 0.3).sum()), np.sign(x - 0.3)

    def cliff(x):  # as where f is not defined: worse than all else, and flat
        return (float(x.sum()), np.ones(2)) if (x > -0.5).all() else (9.0, np.zeros(2))

    box = -np.ones(2), np.ones(2)
    for objective, least in ((kinked, 0.05), (cliff, -0.8)):
        start = np.array([0.1, 0.2])
        assert descend(objective, start, objective(start), *box, 30)[1] <= least


def test_where_nothing_falls_the_start_is_kept():
    start, box = np.array([1.0, 0.0]), (np.zeros(2), np.ones(2))

    def outwards(x):
        return float(x[1] - x[0]), np.array([-1.0, 1.0])

    x, value = descend(outwards, start, outwards(start), *box, 10)
    np.testing.assert_array_equal(x, start)
    assert value == -1.0
