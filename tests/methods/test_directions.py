"""Directions: orthonormal where promised, uniform always, the same for the same address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.methods.directions import Cycled, Independent, Orthogonal, orthonormal_rows
from pzos.methods.estimators import sphere_directions

RULES = (Independent(), Orthogonal(), Cycled(), Cycled(2))


@settings(deadline=None)
@given(seed=st.integers(0, 2**30), rule=st.sampled_from(RULES), count=st.integers(1, 6), step=st.integers(0, 50))
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


@pytest.mark.parametrize("rule", RULES, ids=str)
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
