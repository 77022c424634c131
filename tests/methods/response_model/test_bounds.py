from __future__ import annotations

import numpy as np
import pytest

from pzos.methods.response_model.bounds import Bounds, ConservedSum, beyond, imputed, precision_of
from pzos.methods.response_model.history import Scales, geometry

LOWER, UPPER = np.zeros(5), np.full(5, np.inf)
BOX = np.full(5, 2.0)
SHARES = np.array([0.3, 0.1, 0.2, 0.3, 0.1])
LAW = ConservedSum(np.ones(5), SHARES, 4.0)
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


def setting(count=30, n=3, seed=0, centre_at=None):
    """Return points, a smooth latent response and the answers it shows at zero."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.standard_normal((count, n))
    x[0] = 0.0 if centre_at is None else centre_at
    slopes = rng.standard_normal((n, 4))
    z = x @ slopes + np.array([0.1, -0.05, 0.2, 3.0])
    return x, z, np.maximum(z, 0.0)


def latent(x, y, prior=None):
    seen = geometry(x[1:] - x[0], np.ones(len(x) - 1), 1.0, np.ones(x.shape[1]))
    factor = np.linalg.cholesky(seen.covariance(Scales(1.0, 0.0, 0.0)))
    surprise = (y[1:] - y[0]) / seen.lengths[:, None]
    if prior is not None:
        surprise = surprise - seen.units @ prior
    bounds = Bounds(np.zeros(4), np.full(4, np.inf))
    moved, centre = beyond(bounds, y[1:], y[0], surprise, seen, precision_of(factor))
    return y[1:] + moved, y[0] + centre


def test_precision_is_the_inverse():
    x, _, _ = setting()
    K = geometry(x[1:] - x[0], np.ones(29), 1.0, np.ones(x.shape[1])).covariance(Scales(0.5, 1.0, 0.0))
    np.testing.assert_allclose(precision_of(np.linalg.cholesky(K)) @ K, np.eye(29), atol=1e-5)


def test_a_linear_latent_response_is_recovered_behind_its_bound():
    x, z, y = setting()
    assert (y == 0).any()
    found, centre = latent(x, y)
    hidden = y[1:] == 0
    assert np.abs(found - z[1:])[hidden].max() < 0.05 * np.abs(z[1:])[hidden].max()
    np.testing.assert_array_equal(found[~hidden], y[1:][~hidden])
    np.testing.assert_allclose(centre, z[0], atol=0.02)  # entry 1 is held at the centre itself


def test_free_answers_are_left_alone():
    x, _, y = setting()
    found, centre = latent(x, y + 5.0)
    np.testing.assert_array_equal(found, y[1:] + 5.0)
    np.testing.assert_array_equal(centre, y[0] + 5.0)


def test_latent_values_stay_on_the_side_of_the_bound():
    for seed in range(5):
        x, _, y = setting(seed=seed)
        found, centre = latent(x, y)
        assert (found[y[1:] == 0] <= 0).all()
        assert (centre[y[0] == 0] <= 0).all()


def test_an_entry_that_was_never_free_stays_at_its_bound():
    x, _, y = setting()
    y = y.copy()
    y[:, 2] = 0.0
    found, centre = latent(x, y)
    np.testing.assert_array_equal(found[:, 2], 0.0)
    assert centre[2] == 0.0


def test_of_many_censored_rows_the_nearest_are_solved_for_and_the_others_follow_the_prior():
    x, z, y = setting(count=200)
    true = np.linalg.lstsq(x, z - z[0], rcond=None)[0]
    assert ((y == 0).sum(axis=0) > 40).any()
    found, _ = latent(x, y, 0.9 * true)
    hidden = y[1:] == 0
    assert np.abs(found - z[1:])[hidden].mean() < 0.15 * np.abs(z[1:])[hidden].mean()
