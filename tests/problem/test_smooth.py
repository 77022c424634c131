from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import pzos
from pzos.base.errors import InvalidInput

VECTORS = st.integers(1, 9).flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-100.0, 100.0)))
WIDTHS = st.floats(1e-4, 10.0)


@given(VECTORS, WIDTHS)
def test_each_lies_above_what_it_stands_for_by_at_most_the_width(v, width):
    rounding = 1e-12 * (1.0 + np.abs(v).max())
    for smooth, exact in (
        (pzos.smooth_abs(v, width), np.abs(v)),
        (pzos.smooth_norm(v, width), np.linalg.norm(v)),
        (pzos.smooth_max(v, width), v.max()),
    ):
        excess = np.asarray(smooth - exact)
        assert excess.min() >= -rounding
        assert excess.max() <= width + rounding


def test_what_has_no_width_is_refused():
    for smooth in (pzos.smooth_abs, pzos.smooth_norm, pzos.smooth_max):
        with pytest.raises(InvalidInput, match="width = 0"):
            smooth(np.ones(3), 0.0)


def kinked(smooth):
    """Return a cost that is a maximum, exact or smooth, of answers, with its F on known followers."""
    rng = np.random.default_rng(1)
    mix, shift, target = rng.standard_normal((6, 5)) / 2.0, 0.3 * rng.standard_normal(6), 0.5 * rng.standard_normal(6)

    def follower(x):
        return np.tanh(mix @ x + shift) + 0.3 * (mix @ x)

    def cost(x, y):
        import jax.numpy as jnp

        return (pzos.smooth_max(y - target, 1e-3) if smooth else jnp.max(y - target)) + 0.1 * (x @ x)

    return pzos.Problem(pzos.leader_from_jax(cost), follower, np.ones(5), pzos.Box(-5.0, 5.0)), (
        lambda x: float(np.max(follower(x) - target) + 0.1 * (x @ x))
    )


def test_a_smooth_cost_gets_to_the_kink_of_the_exact_one():
    pytest.importorskip("jax")
    ends = []
    for smooth in (True, False):
        problem, F = kinked(smooth)
        ends.append(F(pzos.solve(problem, queries=30, certificate=False).x))
    assert ends[0] < ends[1] - 1e-3
