from __future__ import annotations

import numpy as np

from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.censored import beyond, precision_of
from pzos.methods.response_model.geometry import Scales, geometry


def setting(count=30, n=3, seed=0, centre_at=None):
    """Return points, a smooth latent response and the answers it shows at zero."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.standard_normal((count, n))
    x[0] = 0.0 if centre_at is None else centre_at
    slopes = rng.standard_normal((n, 4))
    z = x @ slopes + np.array([0.1, -0.05, 0.2, 3.0])
    return x, z, np.maximum(z, 0.0)


def latent(x, y, prior=None):
    seen = geometry(x[0], x[1:], np.ones(len(x) - 1), 1.0)
    factor = np.linalg.cholesky(seen.covariance(Scales(1.0, 0.0, 0.0)))
    surprise = (y[1:] - y[0]) / seen.lengths[:, None]
    if prior is not None:
        surprise = surprise - seen.units @ prior
    bounds = Bounds(np.zeros(4), np.full(4, np.inf))
    moved, centre = beyond(bounds, y[1:], y[0], surprise, seen, precision_of(factor))
    return y[1:] + moved, y[0] + centre


def test_precision_is_the_inverse():
    x, _, _ = setting()
    K = geometry(x[0], x[1:], np.ones(29), 1.0).covariance(Scales(0.5, 1.0, 0.0))
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
