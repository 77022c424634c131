from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.methods.response_model.fit import fit_scales, negative_log_likelihoods
from pzos.methods.response_model.history import History, Scales, first, geometry, typical_units
from pzos.methods.response_model.kernels import Kernel


def grown(points):
    history = first(points[0], 2.0 * points[0])
    for x in points[1:]:
        history = history.append(x, 2.0 * x)
    return history


def test_answers_are_appended_and_repeats_averaged():
    x = np.array([1.0, 2.0])
    history = first(x, np.array([0.0])).append(x, np.array([2.0])).append(x + 1.0, np.array([5.0]))
    assert history.count == 2
    np.testing.assert_array_equal(history.answers, [[1.0], [5.0]])
    np.testing.assert_array_equal(history.repeats, [2.0, 1.0])
    assert history.variance == 2.0  # of 0 and 2, one degree of freedom


def test_the_times_of_answers_are_kept():
    x = np.array([1.0, 2.0])
    history = first(x, np.zeros(1)).append(x + 1.0, np.zeros(1)).append(x, np.ones(1)).append(x + 2.0, np.ones(1))
    np.testing.assert_array_equal(history.times, [1.0, 1.0, 3.0])  # asked at 0 and 2, at 1, at 3
    assert history.now == 4
    part = history.part([2, 0])
    np.testing.assert_array_equal(part.times, [3.0, 1.0])
    assert part.now == 4
    np.testing.assert_array_equal(history.replaced(1, np.ones(1)).times, [1.0, 4.0, 3.0])
    seen, _ = history.seen_from(1, 10)
    np.testing.assert_array_equal(seen.times, [0.0, 2.0])
    assert seen.now == 3.0


def test_without_repeats_the_variance_is_not_known():
    assert np.isnan(first(np.zeros(1), np.zeros(1)).variance)


def test_variance_is_unbiased():
    draws = np.sin(np.arange(400.0) * 12.9898).reshape(100, 4)
    history = first(np.zeros(2), draws[0])
    for y in draws[1:]:
        history = history.append(np.zeros(2), y)
    np.testing.assert_allclose(history.variance, draws.var(axis=0, ddof=1).mean())
    np.testing.assert_allclose(history.answers[0], draws.mean(axis=0))


def test_nearest_leaves_the_centre_out_and_keeps_the_order():
    points = np.array([[0.0], [5.0], [1.0], [-2.0], [9.0]])
    history = grown(points)
    np.testing.assert_array_equal(history.nearest(0, 2), [2, 3])
    np.testing.assert_array_equal(history.nearest(0, 10), [1, 2, 3, 4])


def test_trimming_keeps_the_nearest_and_finds_the_centre_again():
    points = np.array([[9.0], [8.0], [0.0], [1.0], [-1.0]])
    kept, centre = grown(points).trimmed(2, 3)
    np.testing.assert_array_equal(kept.points.ravel(), [0.0, 1.0, -1.0])
    np.testing.assert_array_equal(kept.points[centre], [0.0])
    same, row = kept.trimmed(centre, 3)
    assert same is kept
    assert row == centre


def test_a_history_is_a_value():
    history = first(np.zeros(1), np.zeros(1))
    history.append(np.zeros(1), np.ones(1))
    assert history.count == 1
    assert history.repeats[0] == 1.0
    assert isinstance(history, History)


def points(count=12, n=4, seed=0):
    return np.random.default_rng(seed).standard_normal((count, n))


def seen_from_first(x):
    return geometry(x[1:] - x[0], np.ones(len(x) - 1), 1.0, np.ones(x.shape[1]))


def test_offsets_lengths_and_distances():
    x = points()
    seen = seen_from_first(x)
    np.testing.assert_allclose(seen.lengths, np.linalg.norm(x[1:] - x[0], axis=1))
    np.testing.assert_allclose(seen.distances, np.linalg.norm(x[1:, None] - x[None, 1:], axis=2), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(seen.units, axis=1), 1.0)
    assert seen.count == 11


@pytest.mark.parametrize("kernel", [Kernel.KINKED, Kernel.CURVED, Kernel.SMOOTH])
def test_correlations_are_one_at_zero_decrease_and_have_the_steepness_they_say(kernel):
    u = np.linspace(0.0, 5.0, 40)
    assert kernel.correlation(np.zeros(1))[0] == 1.0
    assert (np.diff(kernel.correlation(u)) < 0).all()
    v, h = u[1:], 1e-6
    slope = (kernel.correlation(v + h) - kernel.correlation(v - h)) / (2.0 * h)
    np.testing.assert_allclose(-slope / v, kernel.steepness(v), atol=1e-8)


@pytest.mark.parametrize("kernel", [Kernel.KINKED, Kernel.CURVED, Kernel.SMOOTH])
@pytest.mark.parametrize("numbers", [(1.0, 0.0, 0.0), (0.3, 2.0, 0.0), (2.0, 1.0, 0.1)])
def test_covariance_of_slopes_is_that_of_the_process(numbers, kernel):
    """K is Var of (z(x_j) - z(c))/d_j for z = linear + process (+ noise), written out from the kernel itself."""
    scales = Scales(*numbers, kernel)
    x = points()
    seen = seen_from_first(x)
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    process = kernel.correlation(distance / scales.length)
    covariance = (x - x[0]) @ (x - x[0]).T + (scales.weight * scales.length) ** 2 * process
    covariance += scales.noise * np.eye(12)
    difference = np.hstack([-np.ones((11, 1)), np.eye(11)]) / seen.lengths[:, None]
    np.testing.assert_allclose(seen.covariance(scales), difference @ covariance @ difference.T, atol=1e-6)


def test_covariance_of_drift_is_that_of_a_random_walk():
    history, drift = grown(points()), 0.3
    seen, _ = history.seen_from(4, 20)
    steps = np.tril(np.ones((12, 12)))  # the walk after each step
    difference = np.delete(np.eye(12) - np.eye(12)[4], 4, axis=0) / seen.lengths[:, None]
    added = seen.covariance(Scales(1.0, 0.0, drift=drift)) - seen.covariance(Scales(1.0, 0.0))
    np.testing.assert_allclose(added, drift * (difference @ steps @ steps.T @ difference.T), atol=1e-12)


def test_drift_is_told_from_noise():
    rng = np.random.default_rng(3)
    x, slopes = points(40, 3), points(3, 6, seed=1)

    def fitted(disturbance):
        told = first(x[0], x[0] @ slopes)
        for point, off in zip(x[1:], disturbance, strict=True):
            told = told.append(point, point @ slopes + off)
        seen, rises = told.seen_from(0, 50)
        return fit_scales(seen, rises, None, 1e-4, drifts=True)

    steps = 0.01 * rng.standard_normal((39, 6))
    walk, noise = fitted(np.cumsum(steps, axis=0)), fitted(steps)
    assert 0.004 < np.sqrt(walk.drifting) < 0.025
    assert noise.drift == noise.drifting == 0.0


def test_quadratics_have_the_covariance_of_random_quadratics():
    """Var of o'(v + Q o)/|o| with v and Q standard normal, Q symmetric with half the variance off the diagonal."""
    x = points()
    seen = seen_from_first(x)
    o = x[1:] - x[0]
    covariance = (o @ o.T + 0.5 * 4.0 * (o @ o.T) ** 2) / (seen.lengths[:, None] * seen.lengths)
    np.testing.assert_allclose(seen.covariance(Scales(1.0, 2.0, 0.0, Kernel.QUADRATIC)), covariance, atol=1e-6)


def test_decisions_of_other_sizes_are_measured_in_their_sizes():
    x, sizes = points(), np.array([1e-3, 1.0, 10.0, 1e3])
    scaled, plain = first(x[0] * sizes, x[0], sizes), first(x[0], x[0])
    for row in x[1:]:
        scaled, plain = scaled.append(row * sizes, row), plain.append(row, row)
    np.testing.assert_allclose(scaled.seen_from(3, 5)[0].lengths, plain.seen_from(3, 5)[0].lengths)
    np.testing.assert_array_equal(scaled.nearest(3, 5), plain.nearest(3, 5))


def test_jumps_are_values_taken_twice_inside_their_range():
    x = np.random.default_rng(5).standard_normal((30, 3))

    def history(answers):
        told = first(x[0], answers[0])
        for point, answer in zip(x[1:], answers[1:], strict=True):
            told = told.append(point, answer)
        return told

    assert history(x).jumpiness() == 0.0
    assert history(np.maximum(x, 0.0)).jumpiness() == 0.0  # ties at a bound are no jumps
    assert history(np.round(4.0 * x) / 4.0).jumpiness() == pytest.approx(0.25**2 / 12.0)


def test_the_likelihood_is_that_of_a_gaussian_with_its_scale_profiled_out():
    seen = seen_from_first(points())
    residuals = points(11, 3, seed=1)
    candidates = [Scales(1.0, 1.0, 0.0), Scales(1.0, 3.0, 0.1), Scales(2.0, 0.0), Scales(1.0, 1.0, -1.0)]
    values, variances = negative_log_likelihoods(seen, residuals, candidates)
    for scales, value, variance in zip(candidates[:3], values, variances, strict=False):
        K = seen.covariance(scales)
        assert variance == pytest.approx(np.trace(residuals.T @ np.linalg.solve(K, residuals)) / 33)
        assert value == pytest.approx(0.5 * (np.linalg.slogdet(K)[1] + 11 * np.log(variance)))
    assert np.isposinf(values[3])  # no covariance at all


def test_a_linear_response_needs_no_process_and_a_wavy_one_does():
    x = points(20, 2)
    seen = seen_from_first(x)

    def slopes(y):
        return (y[1:] - y[0]) / seen.lengths[:, None]

    straight = fit_scales(seen, slopes(x @ points(2, 5, 3)), None, 0.0)
    wavy = fit_scales(seen, slopes(np.sin(4.0 * x @ points(2, 5, 3))), None, 0.0)
    assert straight.weight * straight.length < 1e-2 * wavy.weight * wavy.length or straight.weight == 0.0
    assert wavy.weight > 0.0


def test_known_noise_is_kept_in_its_place():
    rng = np.random.default_rng(4)
    x = points(40, 2)
    seen = seen_from_first(x)
    y = x @ points(2, 6, 3) + 0.1 * rng.standard_normal((40, 6))
    found = fit_scales(seen, (y[1:] - y[0]) / seen.lengths[:, None], None, 0.01)
    assert found.noise > 0.0
    assert found.length >= 0.25 * np.median(seen.lengths)


def test_slopes_are_told_by_the_farther_answers_and_noise_is_taken_off():
    generator = np.random.default_rng(4)
    jacobian = generator.standard_normal((40, 6))
    points = generator.standard_normal((60, 6))
    noisy = points @ jacobian.T + 0.5 * generator.standard_normal((60, 40))
    past = first(np.zeros(6), np.zeros(40))
    for x, y in zip(points, noisy, strict=True):
        past = past.append(x, y)
    whole = float(np.sqrt(np.mean(np.sum(jacobian**2, axis=1))))
    assert past.steepness(0, 0.25) == pytest.approx(whole, rel=0.2)
    assert first(np.zeros(6), np.zeros(40)).steepness(0, 0.0) == 0.0


def test_a_wrong_answer_is_replaced_and_the_rest_is_kept():
    past = first(np.zeros(2), np.zeros(1)).append(np.ones(2), np.full(1, 9.0))
    mended = past.replaced(1, np.full(1, 1.0))
    np.testing.assert_array_equal(mended.answers, [[0.0], [1.0]])
    np.testing.assert_array_equal(past.answers, [[0.0], [9.0]])


def test_a_thinned_history_keeps_its_first_row_and_no_two_points_close_together():
    past = first(np.zeros(1), np.zeros(1))
    for x in (0.01, 0.5, 0.52, 1.0, 0.99):
        past = past.append(np.array([x]), np.array([x]))
    part = past.thinned(2, 0.1)
    np.testing.assert_array_equal(part.points[:, 0], [0.5, 0.0, 1.0])
    np.testing.assert_array_equal(part.answers, part.points)


def test_answers_of_which_only_a_few_stay_where_they_are_do_not_jump():
    generator = np.random.default_rng(1)
    past = first(np.zeros(3), np.ones(6))
    for x in generator.standard_normal((8, 3)):
        moving = np.append(np.sin(x.sum() * np.arange(1, 6)), 0.5 if x[0] < 0.8 else x[0])
        past = past.append(x, moving)
    assert past.jumpiness() == 0.0
    rounded = first(np.zeros(3), np.zeros(6))
    for x in generator.standard_normal((12, 3)):
        rounded = rounded.append(x, 0.5 * np.round(2.0 * np.sin(x.sum() * np.arange(1, 7))))
    assert rounded.jumpiness() == pytest.approx(0.25 / 12.0)


def test_a_count_that_comes_twice_by_chance_is_no_entry_without_noise():
    answers = np.random.default_rng(2).integers(0, 6, (12, 3)).astype(float)
    answers[:, 2] = np.arange(12.0) ** 2  # no value twice: nothing says that it is a count
    past = first(np.zeros(1), answers[0])
    for k, y in enumerate(answers[1:], 1):
        past = past.append(np.full(1, float(k)), y)
    again = past.append(np.zeros(1), answers[0] + [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(again.noisy, [True, True, False])
    assert again.variance == pytest.approx(0.25)
    steps = past.append(np.zeros(1), answers[0] + [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(steps.noisy, [False, False, True])  # counts that repeat themselves


def test_entries_that_vary_by_many_orders_have_units_of_their_own():
    answers = np.random.default_rng(3).standard_normal((20, 4)) * [1.0, 3.0, 1e4, 0.1]
    units = typical_units(answers, np.ones(4))
    np.testing.assert_allclose(np.log(units / answers.std(axis=0)) / np.log(4.0), 0.0, atol=0.5)
    np.testing.assert_array_equal(typical_units(answers[:, :2], np.ones(2)), 1.0)  # all alike
    np.testing.assert_array_equal(typical_units(answers[:1], np.ones(4)), 1.0)
    np.testing.assert_array_equal(typical_units(answers * 256.0, np.ones(4)), 256.0 * units)


def test_what_hardly_varies_nor_matters_to_f_has_no_unit_of_its_own():
    answers = np.random.default_rng(3).standard_normal((20, 3)) * [1.0, 100.0, 1e-8]
    largest = typical_units(answers, np.ones(3))
    assert largest[2] == largest[1] > largest[0]
    assert typical_units(answers, np.array([1.0, 1.0, 1e9]))[2] < 1e-7  # f makes much of it
    rounded = answers * [1.0, 1.0, 1e-6]
    assert typical_units(rounded, np.array([1.0, 1.0, 1e15]))[2] == largest[1]
    shifted = answers * [1.0, 1.0, 1e4] + [0.0, 0.0, 1e9]  # differs in its last digits
    assert typical_units(shifted, np.ones(3))[2] == largest[1]


def test_noise_steps_and_slopes_are_measured_in_units():
    scales, generator = np.array([1.0, 1e4]), np.random.default_rng(4)
    plain, scaled = first(np.zeros(2), np.zeros(2)), first(np.zeros(2), np.zeros(2))
    for x in np.concatenate([generator.standard_normal((12, 2)), np.zeros((1, 2))]):
        y = 0.25 * np.round(4.0 * np.array([x.sum(), x[0] - x[1]])) + (not x.any())
        plain, scaled = plain.append(x, y), scaled.append(x, scales * y)
    scaled = replace(scaled, units=scales)
    for measure in (lambda past: past.variance, History.jumpiness, lambda past: past.steepest(0)):
        assert measure(scaled) == pytest.approx(measure(plain)) != 0.0
    np.testing.assert_array_equal(scaled.noisy, plain.noisy)
