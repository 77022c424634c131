from __future__ import annotations

import numpy as np
import pytest

from pzos.methods.response_model.bounds import Bounds, Law, imputed

LOWER, UPPER = np.zeros(5), np.full(5, np.inf)
BOX = np.full(5, 2.0)
SHARES = np.array([0.3, 0.1, 0.2, 0.3, 0.1])
LAW = Law(np.ones(5), SHARES, 4.0)
Z = np.array([1.5, -0.4, 2.6, 0.3, 0.7])


def numerical(f, z, h=1e-6):
    return np.array([(f(z + h * e) - f(z - h * e)) / (2 * h) for e in np.eye(z.size)]).T


def test_without_a_law_answers_are_clipped():
    y, free = Bounds(LOWER, BOX).show(Z)
    np.testing.assert_array_equal(y, [1.5, 0.0, 2.0, 0.3, 0.7])
    np.testing.assert_array_equal(free, [1, 0, 0, 1, 1])


@pytest.mark.parametrize("rounding", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("upper", [UPPER, BOX])
@pytest.mark.parametrize("law", [None, LAW])
def test_pull_is_the_transposed_derivative_of_show(rounding, upper, law):
    bounds = Bounds(LOWER, upper, law, rounding)
    y, free = bounds.show(Z)
    if law is not None:
        assert y.sum() == pytest.approx(4.0)
    jacobian = numerical(lambda z: bounds.show(z)[0], Z)
    for g in np.eye(5):
        np.testing.assert_allclose(bounds.pull(g, free), jacobian.T @ g, atol=1e-5)


def test_the_law_moves_answers_in_its_shares_as_a_multiplier_does():
    y, _ = Bounds(LOWER, UPPER, LAW).show(Z)
    assert (y >= 0).all()
    moved = (Z - y)[y > 0] / SHARES[y > 0]
    np.testing.assert_allclose(moved, moved[0])


def test_rounding_vanishes_in_the_limit():
    sharp, _ = Bounds(LOWER, BOX, LAW).show(Z)
    for rounding in (1e-1, 1e-3, 1e-6):
        y, _ = Bounds(LOWER, BOX, LAW, rounding).show(Z)
        assert np.abs(y - sharp).max() <= 2.0 * rounding


def test_half_open_boxes_round_only_where_they_are_closed():
    lower = np.array([0.0, -np.inf, 0.0, -np.inf, 0.0])
    y, slope = Bounds(lower, UPPER, None, 0.1).clip(Z)
    np.testing.assert_array_equal(y[[1, 3]], Z[[1, 3]])
    np.testing.assert_array_equal(slope[[1, 3]], 1.0)
    assert y[0] > Z[0]


def test_touched_looks_at_both_sides():
    bounds = Bounds(LOWER, BOX)
    assert not bounds.touched(np.ones((3, 5)))
    assert bounds.touched(np.vstack([np.ones(5), [1, 1, 0, 1, 1]]))
    assert bounds.touched(np.vstack([np.ones(5), [1, 1, 2, 1, 1]]))


def test_imputation_puts_held_answers_beyond_their_bound_and_leaves_free_ones():
    answers = np.array([[0.0, 1.0], [0.5, 1.2]])
    predicted = np.array([[-0.8, 0.1], [-0.2, 0.3]])
    latent, centre = imputed(
        Bounds(np.zeros(2), np.full(2, np.inf)), answers, np.array([0.7, 0.9]), predicted, np.ones(2)
    )
    np.testing.assert_allclose(latent[0], [-0.1, 1.0])
    np.testing.assert_array_equal(latent[1], answers[1])
    np.testing.assert_array_equal(centre, [0.7, 0.9])
