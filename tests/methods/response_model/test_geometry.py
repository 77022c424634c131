from __future__ import annotations

import numpy as np
import pytest

from pzos.methods.response_model.geometry import Scales, geometry, matern
from pzos.methods.response_model.likelihood import fit_scales, negative_log_likelihood


def points(count=12, n=4, seed=0):
    return np.random.default_rng(seed).standard_normal((count, n))


def test_offsets_lengths_and_distances():
    x = points()
    seen = geometry(x[0], x[1:], np.ones(11), 1.0)
    np.testing.assert_allclose(seen.lengths, np.linalg.norm(x[1:] - x[0], axis=1))
    np.testing.assert_allclose(seen.distances, np.linalg.norm(x[1:, None] - x[None, 1:], axis=2), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(seen.units, axis=1), 1.0)
    assert seen.count == 11


def test_matern_is_one_at_zero_and_decreases():
    u = np.linspace(0.0, 5.0, 40)
    assert matern(np.zeros(1))[0] == 1.0
    assert (np.diff(matern(u)) < 0).all()


@pytest.mark.parametrize("scales", [Scales(1.0, 0.0, 0.0), Scales(0.3, 2.0, 0.0), Scales(2.0, 1.0, 0.1)])
def test_covariance_of_slopes_is_that_of_the_process(scales):
    """K is Var of (z(x_j) - z(c))/d_j for z = linear + process (+ noise), written out from the kernel itself."""
    x = points()
    seen = geometry(x[0], x[1:], np.ones(11), 1.0)
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    kernel = (x - x[0]) @ (x - x[0]).T + (scales.weight * scales.length) ** 2 * matern(distance / scales.length)
    kernel += scales.noise * np.eye(12)
    difference = np.hstack([-np.ones((11, 1)), np.eye(11)]) / seen.lengths[:, None]
    np.testing.assert_allclose(seen.covariance(scales), difference @ kernel @ difference.T, atol=1e-6)


def test_the_likelihood_is_that_of_a_gaussian_with_its_scale_profiled_out():
    seen = geometry(points()[0], points()[1:], np.ones(11), 1.0)
    residuals = points(11, 3, seed=1)
    scales = Scales(1.0, 1.0, 0.0)
    K = seen.covariance(scales)
    value, variance = negative_log_likelihood(seen, residuals, scales)
    assert variance == pytest.approx(np.trace(residuals.T @ np.linalg.solve(K, residuals)) / 33)
    assert value == pytest.approx(0.5 * (np.linalg.slogdet(K)[1] + 11 * np.log(variance)))


def test_a_linear_response_needs_no_process_and_a_wavy_one_does():
    x = points(20, 2)
    seen = geometry(x[0], x[1:], np.ones(19), 1.0)

    def slopes(y):
        return (y[1:] - y[0]) / seen.lengths[:, None]

    straight = fit_scales(seen, slopes(x @ points(2, 5, 3)), None, 0.0)
    wavy = fit_scales(seen, slopes(np.sin(4.0 * x @ points(2, 5, 3))), None, 0.0)
    assert straight.weight * straight.length < 1e-2 * wavy.weight * wavy.length or straight.weight == 0.0
    assert wavy.weight > 0.0


def test_known_noise_is_kept_in_its_place():
    rng = np.random.default_rng(4)
    x = points(40, 2)
    seen = geometry(x[0], x[1:], np.ones(39), 1.0)
    y = x @ points(2, 6, 3) + 0.1 * rng.standard_normal((40, 6))
    found = fit_scales(seen, (y[1:] - y[0]) / seen.lengths[:, None], None, 0.01)
    assert found.noise > 0.0
    assert found.length >= 0.25 * np.median(seen.lengths)
