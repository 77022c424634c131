"""The response model: it passes through every answer, its derivative is exact, and it keeps laws and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.games.security import SecurityGame
from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.fit import Fitter, Shape, fit_scales
from pzos.methods.response_model.history import Scales, first
from pzos.methods.response_model.kernels import Kernel

GAME = SecurityGame.random(7, 8)
START = GAME.start()
SCALES = Scales(1.0, 1.0, 0.0)


def history_of(respond, n, count=10, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    x = START[:n]
    history = first(x, respond(x))
    for _ in range(count):
        point = np.maximum(x + size * rng.standard_normal(n), 0.0)
        history = history.append(point, respond(point))
    return history


def fitter(n, lower=0.0):
    return Fitter(100, np.ones((1, n)), Bounds(np.full(n, lower), np.full(n, np.inf)))


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("centre", [0, 4])
def test_the_model_passes_through_every_answer(shape, centre):
    history = history_of(GAME.response, 8)
    model = fitter(8, -np.inf).fit(history, centre, shape, SCALES)
    for x, y in zip(history.points, history.answers, strict=True):
        np.testing.assert_allclose(model.predict(x), y, atol=1e-5)


@pytest.mark.parametrize("shape", [Shape.OWN, Shape.CONSERVING])
def test_what_the_latent_model_shows_passes_through_answers_at_their_bounds(shape):
    history = history_of(GAME.response, 8, count=25, size=1.5)
    assert (history.answers == 0).any()
    model = fitter(8).fit(history, 0, shape, SCALES)
    shown = np.array([model.clipped(x) for x in history.points])
    assert np.abs(shown - history.answers).max() < 2e-3
    if shape is Shape.CONSERVING:
        np.testing.assert_allclose(shown.sum(axis=1), GAME.response(START).sum(), rtol=1e-9)


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("rounding", [0.0, 0.05])
def test_the_pull_is_the_transposed_jacobian(shape, rounding):
    history = history_of(GAME.response, 8, count=25, size=1.5)
    model = fitter(8).fit(history, 0, shape, SCALES).rounded(rounding)
    x = START + 0.0373
    y, pull = model.response_and_pull(x)
    np.testing.assert_allclose(y, model.clipped(x))
    h = 1e-6
    jacobian = np.array([(model.clipped(x + h * e) - model.clipped(x - h * e)) / (2 * h) for e in np.eye(8)]).T
    for g in np.eye(8)[::3]:
        np.testing.assert_allclose(pull(g), jacobian.T @ g, atol=1e-5)


def test_every_linear_law_of_the_answers_is_kept():
    history = history_of(GAME.response, 8)
    model = fitter(8, -np.inf).fit(history, 0, Shape.FREE, SCALES)
    total = history.answers[0].sum()
    for x in START + np.eye(8):
        assert model.predict(x).sum() == pytest.approx(total)


def test_answers_of_another_size_than_decisions():
    def respond(x):
        return np.array([np.abs(x[0] - x[1]), x.sum(), 1.0])

    history = history_of(respond, 5)
    model = Fitter(100, np.ones((1, 3)), Bounds(np.full(3, -np.inf), np.full(3, np.inf))).fit(
        history, 0, Shape.FREE, SCALES
    )
    for x, y in zip(history.points, history.answers, strict=True):
        np.testing.assert_allclose(model.predict(x), y, atol=1e-5)
    assert model.response_and_pull(START[:5])[1](np.ones(3)).shape == (5,)


def test_a_single_answer_gives_a_constant():
    history = first(START, GAME.response(START))
    model = fitter(8).fit(history, 0, Shape.FREE, None)
    np.testing.assert_array_equal(model.clipped(START + 1.0), GAME.response(START))
    assert not model.response_and_pull(START)[1](np.ones(8)).any()


def test_the_model_is_that_of_followers_as_they_are_by_now():
    way, calls = 0.01 * np.arange(8.0), [0]

    def drifting(x):
        calls[0] += 1
        return GAME.response(x) + calls[0] * way

    history = history_of(drifting, 8, count=60, size=0.1)
    x = START + 0.05
    present = drifting(x)
    still = fitter(8, -np.inf).fit(history, 0, Shape.FREE, Scales(3.0, 0.1, 1e-2))
    aware = fitter(8, -np.inf).fit(history, 0, Shape.FREE, Scales(3.0, 0.1, 1e-6, drift=1e-2))
    assert np.linalg.norm(aware.predict(x) - present) < 0.1 * np.linalg.norm(still.predict(x) - present)


def test_noise_is_averaged_out():
    rng = np.random.default_rng(1)
    sigma = 0.05

    def noisy(x):
        return GAME.response(x) + sigma * rng.standard_normal(8)

    history = history_of(noisy, 8, count=60)
    exact = fitter(8, -np.inf).fit(history, 0, Shape.FREE, Scales(3.0, 0.1, 0.0))
    aware = fitter(8, -np.inf).fit(history, 0, Shape.FREE, Scales(3.0, 0.1, sigma**2))
    fresh = START + 0.2 * rng.standard_normal((20, 8))
    error = {
        name: np.mean([np.linalg.norm(model.predict(x) - GAME.response(x)) for x in fresh])
        for name, model in (("exact", exact), ("aware", aware))
    }
    assert error["aware"] < 0.8 * error["exact"]


def test_structure_predicts_far_better_from_few_answers():
    game = SecurityGame.random(1, 40)
    rng = np.random.default_rng(2)
    history = first(game.start(), game.response(game.start()))
    for _ in range(4):
        x = np.maximum(game.start() + 0.1 * rng.standard_normal(40), 0.0)
        history = history.append(x, game.response(x))
    fit = Fitter(100, np.ones((1, 40)), Bounds(np.zeros(40), np.full(40, np.inf)))
    fresh = np.maximum(game.start() + 0.1 * rng.standard_normal((5, 40)), 0.0)
    errors = {
        shape: sum(
            np.linalg.norm(fit.fit(history, 0, shape, Scales(1.0, 0.3, 0.0)).clipped(x) - game.response(x))
            for x in fresh
        )
        for shape in Shape
    }
    assert errors[Shape.CONSERVING] < 0.5 * errors[Shape.FREE]


def test_tuning_gives_finite_scales_for_every_shape():
    history = history_of(GAME.response, 8, count=25, size=1.5)
    for shape in Shape:
        for start in ((), (SCALES,)):
            found = fitter(8).tune(history, 0, shape, start, 0.0)
            assert len(found) == (len(Kernel) if shape is Shape.FREE else 1)
            assert all(np.isfinite([scales.length, scales.weight]).all() and scales.noise == 0.0 for scales in found)


@pytest.mark.parametrize(
    ("respond", "kernels"),
    [
        (lambda x: np.abs(x) + np.abs(x[::-1] - 0.5), {Kernel.KINKED}),
        (lambda x: np.sin(x) + np.cos(x[::-1]), {Kernel.CURVED, Kernel.SMOOTH}),
        (lambda x: x * x[::-1] + x**2 + x, {Kernel.QUADRATIC}),
    ],
)
def test_the_leading_kernel_is_as_smooth_as_the_answers(respond, kernels):
    history = history_of(respond, 3, count=40, size=2.0)
    assert fitter(3).tune(history, 0, Shape.FREE, (), 0.0)[0].kernel in kernels


def test_entries_that_differ_by_rounding_alone_have_no_say_in_the_scales():
    def respond(x):
        noise = 1e-14 * np.random.default_rng(int(1e6 * abs(x[0]))).standard_normal(4)
        return np.concatenate([[x[0] - 2.0 * x[1], x[1] + x[2]], noise])

    history = history_of(respond, 3, count=8, size=1.0)
    clean = history_of(lambda x: respond(x)[:2], 3, count=8, size=1.0)
    found, alone = (fitter(n, -np.inf).tune(h, 0, Shape.FREE, (), 0.0) for n, h in ((6, history), (2, clean)))
    assert found == alone
    model = fitter(6, -np.inf).fit(history, 0, Shape.FREE, found[0])
    x = START[:3] + 2.0
    np.testing.assert_allclose(model.response_and_pull(x)[0][:2], respond(x)[:2], atol=1e-3)


def test_entries_that_are_linear_have_no_say_in_the_scales_of_others():
    def respond(x):
        return np.concatenate([x, [2.0 * x[0] - x[1]], np.sin(2.0 * x[:1])])

    history = history_of(respond, 3, count=20, size=1.0)
    alone = history_of(lambda x: respond(x)[4:], 3, count=20, size=1.0)
    found, bent = (fitter(n, -np.inf).tune(h, 0, Shape.FREE, (), 0.0)[0] for n, h in ((5, history), (1, alone)))
    assert (found.kernel, found.length, found.weight) == (bent.kernel, bent.length, bent.weight)
    assert found.weight > 0.0
    linear = history_of(lambda x: respond(x)[:4], 3, count=20, size=1.0)
    model = fitter(4, -np.inf).fit(linear, 0, Shape.FREE, fitter(4, -np.inf).tune(linear, 0, Shape.FREE, (), 0.0)[0])
    np.testing.assert_allclose(model.clipped(START[:3] + 2.0), respond(START[:3] + 2.0)[:4], atol=1e-3)


def test_entries_in_small_units_keep_their_say():
    def respond(x):
        return np.array([1e12 * (x[0] - x[1]), np.sin(3.0 * x[0]), np.sin(3.0 * x[1])])

    large = history_of(respond, 3, count=12, size=1.0)
    alike = history_of(lambda x: respond(x) * [1e-12, 1.0, 1.0], 3, count=12, size=1.0)
    one, other = (fitter(3, -np.inf).tune(h, 0, Shape.FREE, (), 0.0)[0] for h in (large, alike))
    assert one.kernel is other.kernel
    assert (one.length, one.weight) == pytest.approx((other.length, other.weight), rel=1e-2)


@pytest.mark.parametrize("kernel", Kernel)
def test_the_spread_is_nothing_at_told_answers_and_has_the_gradient_it_says(kernel):
    history = history_of(lambda x: np.sin(x), 3, count=6, size=1.0)
    model = fitter(3).fit(history, 0, Shape.FREE, Scales(1.0, 0.7, 0.0, kernel))
    for row in range(history.count):
        assert model.spread(history.points[row])[0] < 1e-6
    x = np.array([0.9, -0.7, 0.4])
    value, gradient = model.spread(x)
    assert value > 1e-3
    for i, step in enumerate(1e-6 * np.eye(3)):
        slope = (model.spread(x + step)[0] - model.spread(x - step)[0]) / 2e-6
        assert slope == pytest.approx(gradient[i], rel=1e-4, abs=1e-6)


def test_noise_that_was_seen_too_small_is_found_by_likelihood():
    generator = np.random.default_rng(8)
    jacobian = generator.standard_normal((12, 4))
    past = first(np.zeros(4), np.zeros(12))
    for x in generator.standard_normal((40, 4)):
        past = past.append(x, jacobian @ x + 0.3 * generator.standard_normal(12))
    seen, slopes = past.seen_from(0, 100)
    found = fit_scales(seen, slopes, None, 0.3**2 / 1000.0)
    assert 0.3**2 / 10.0 < found.variance < 0.3**2 * 10.0
    right = fit_scales(seen, slopes, None, 0.3**2)
    assert right.variance == pytest.approx(0.3**2)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_many_points_at_once_are_what_they_are_one_by_one(kernel):
    generator = np.random.default_rng(2)
    past = first(np.zeros(3), np.zeros(2))
    for x in generator.standard_normal((9, 3)):
        past = past.append(x, np.array([np.sin(x.sum()), x @ x]))
    free = np.full(2, np.inf)
    model = Fitter(50, np.ones((1, 2)), Bounds(-free, free)).fit(past, 0, Shape.FREE, Scales(1.5, 0.7, kernel=kernel))
    points = generator.standard_normal((5, 3))
    answers, variances = model.at_many(points)
    np.testing.assert_allclose(answers, [model.clipped(x) for x in points], atol=1e-10)
    np.testing.assert_allclose(variances, [model.spread(x)[0] for x in points], atol=1e-8)
    assert model.deviation(past.points[3]) < 1e-3 < model.deviation(points[0])


def censored(clip, pull, count=30, seed=3):
    """Return the free model of answers that were clipped, the same without a pull, and a measure of their errors."""
    rng = np.random.default_rng(seed)
    A, points = rng.standard_normal((5, 4)), rng.uniform(-1.0, 1.0, (count + 200, 4))
    answers = clip(points @ A.T)
    history = first(points[0], answers[0])
    for x, y in zip(points[1:count], answers[1:count], strict=True):
        history = history.append(x, y)
    bounds = Bounds(np.full(5, -0.3), np.full(5, np.inf))
    fits = [Fitter(100, np.ones((1, 5)), bounds, pull=given) for given in (pull, None)]
    made = [each.fit(history, 0, Shape.FREE, Scales(3.0, 0.1, 0.0)) for each in fits]
    errors = [
        np.mean([(pull @ (model.clipped(x) - y)) ** 2 for x, y in zip(points[count:], answers[count:], strict=True)])
        for model in made
    ]
    return made, errors


def test_without_structure_answers_at_a_bound_are_latent_where_that_foretells_better():
    (latent, plain), errors = censored(lambda z: np.maximum(z, -0.3), np.ones(5))
    assert not np.array_equal(latent.weights, plain.weights)
    assert errors[0] < 0.3 * errors[1]


def test_answers_that_a_law_holds_at_their_bound_are_taken_as_they_are():
    def shared(z):
        held = np.maximum(z, -0.3)
        return held - np.where(held > -0.3, 1.0, 0.0) * ((held - z).sum(axis=1, keepdims=True))  # others make up for it

    (chosen, plain), _ = censored(shared, np.array([1.0, -2.0, 3.0, -1.0, 2.0]))
    np.testing.assert_array_equal(chosen.weights, plain.weights)


def test_entries_that_repeat_themselves_are_passed_through_where_others_are_noisy():
    rng = np.random.default_rng(0)
    A, points = rng.standard_normal((3, 4)), rng.uniform(-1.0, 1.0, (15, 4))
    noise = 0.1 * rng.standard_normal((20, 3)) * [1.0, 0.0, 0.0]
    history = first(points[0], np.sin(A @ points[0]))
    for x, off in zip([*points[1:], *points[:5]], noise[1:], strict=True):  # the first five once more
        history = history.append(x, np.sin(A @ x) + off)
    assert history.noisy.tolist() == [True, False, False]
    assert history.variance == pytest.approx(float(history.spread[0]) / 5)
    made = fitter(3, -np.inf)
    (scales, *_) = made.tune(history, 0, Shape.FREE, (), history.variance)
    assert scales.variance == history.variance
    model = made.fit(history, 0, Shape.FREE, scales)
    missed = np.abs([model.predict(x) - y for x, y in zip(history.points, history.answers, strict=True)]).max(axis=0)
    assert missed[0] > 1e-2
    assert missed[1:].max() < 1e-5
