from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.curving import Curving, likeliest
from pzos.methods.response_model.fit import Fitter, Shape
from pzos.methods.response_model.history import History, Scales

CENTRE = np.array([2.0, 0.5, -3.0, 1.5, 4.0, -1.0])
CURVING = Curving(np.array([0.4, np.inf, np.inf, np.inf, np.inf, np.inf]), np.array([1.0, 0.0, -1.0, 0.5, -0.5, 1.0]))


@given(st.lists(st.floats(0.05, 20.0), min_size=6, max_size=6))
def test_what_is_shown_is_what_was_told(ratios):
    answers = CENTRE * np.array(ratios)
    latent, logs = CURVING.latent((answers - CENTRE)[None], CENTRE)
    shown, slope = CURVING.shown(CENTRE + latent[0], CENTRE)
    np.testing.assert_allclose(shown, answers, rtol=1e-8)
    np.testing.assert_allclose(np.log(slope), -logs[0], atol=1e-7)


def test_near_the_centre_answers_are_as_they_are():
    latent, _ = CURVING.latent(1e-7 * np.ones((1, 6)), CENTRE)
    np.testing.assert_allclose(latent, 1e-7, rtol=1e-5)


def test_an_entry_that_is_not_curved_is_left_alone():
    latent, logs = CURVING.latent(np.full((2, 6), 37.0), np.abs(CENTRE))
    assert (latent[:, 5] == 37.0).all()
    assert (logs[:, 5] == 0.0).all()
    np.testing.assert_array_equal(CURVING.curved, [True] * 5 + [False])


def test_extrapolation_ends_somewhere():
    for z in (-1e9, 1e9):
        shown, slope = CURVING.shown(np.full(6, z), CENTRE)
        assert np.isfinite(shown).all()
        assert (slope[:1] == 0.0).all()  # further out nothing changes any more
        assert np.isfinite(slope).all()
        assert (slope >= 0.0).all()


def test_powers_are_dropped_where_both_signs_appear():
    kept = CURVING.suiting(np.vstack([CENTRE, np.where(np.arange(6) == 1, -1.0, 1.0) * CENTRE]))
    np.testing.assert_array_equal(kept.powers, [1.0, 1.0, -1.0, 0.5, -0.5, 1.0])
    assert kept.scales[0] == 0.4
    assert not CURVING.only(np.zeros(6, dtype=bool)).curved.any()


def told(respond, rng, count=30, reach=1.0):
    points = reach * rng.standard_normal((count, 3))
    points[0] = 0.0
    return History(points, respond(points), np.ones(count), np.ones(3))


def waiting(x):
    """Waiting times that explode as capacity falls, and a linear answer."""
    load = 1.0 / (0.6 + np.exp(0.8 * x[:, 0]) + 0.3 * x[:, 1] ** 2)
    return np.column_stack([load**3, x @ [1.0, -2.0, 0.5]])


def test_what_explodes_is_found_and_what_is_linear_left_alone():
    history = told(waiting, np.random.default_rng(1), reach=2.0)
    seen, slopes = history.seen_from(0, 100)
    factor = np.linalg.cholesky(seen.covariance(Scales(2.0, 1.0)))
    found = likeliest(seen, slopes, history.answers[0], factor)
    np.testing.assert_array_equal(found.curved, [True, False])


def fitter(entries=2, **options):
    return Fitter(100, np.ones((1, entries)), Bounds(np.full(entries, -np.inf), np.full(entries, np.inf)), **options)


def test_a_curved_model_passes_through_the_answers_and_foretells_them_better():
    history, plain = told(waiting, np.random.default_rng(2), reach=2.0), fitter()
    straight = plain.tune(history, 0, Shape.FREE, (), 0.0)
    curving = plain.likeliest_curving(history, 0, straight[0])
    assert curving is not None
    curved = fitter(curving=curving)
    scales = curved.tune(history, 0, Shape.FREE, (), 0.0)
    pull = np.array([1.0, 0.1])
    assert curved.foretelling(history, 0, scales[0], pull, 20) < plain.foretelling(history, 0, straight[0], pull, 20)
    model = curved.fit(history, 0, Shape.FREE, scales[0])
    for x, y in zip(history.points, history.answers, strict=True):
        np.testing.assert_allclose(model.clipped(x), y, rtol=1e-4, atol=1e-5)
    many, _ = model.at_many(history.points[:4])
    np.testing.assert_allclose(many, history.answers[:4], rtol=1e-4, atol=1e-5)


def test_the_pull_of_a_curved_model_is_its_transposed_derivative():
    history = told(waiting, np.random.default_rng(3))
    model = fitter(curving=Curving(np.array([np.inf, 0.7]), np.array([-0.5, 1.0]))).fit(
        history, 0, Shape.FREE, Scales(1.5, 1.0)
    )
    x, g, h = np.array([0.2, -0.3, 0.1]), np.array([1.0, -2.0]), 1e-6
    _, pull = model.response_and_pull(x)
    numerical = [(g @ model.clipped(x + h * e) - g @ model.clipped(x - h * e)) / (2.0 * h) for e in np.eye(3)]
    np.testing.assert_allclose(pull(g), numerical, rtol=1e-5)
    assert model.deviation(x) > 0.0


def test_entries_at_a_bound_keep_their_scale():
    history = told(waiting, np.random.default_rng(1), reach=2.0)
    lowest = history.answers.min(axis=0)
    bounded = Fitter(100, np.ones((1, 2)), Bounds(lowest, np.full(2, np.inf)))
    assert bounded.likeliest_curving(history, 0, Scales(2.0, 1.0)) is None


@pytest.mark.parametrize("shape", [Shape.OWN, Shape.CONSERVING])
def test_structures_know_answers_as_they_are(shape):
    rng = np.random.default_rng(4)
    points = rng.standard_normal((12, 3))
    history = History(points, np.exp(points), np.ones(12), np.ones(3))
    curving = Curving(np.full(3, np.inf), np.zeros(3))
    bent, plain = (fitter(3, curving=c).fit(history, 0, shape, Scales(1.0, 1.0)) for c in (curving, None))
    x = np.array([0.1, 0.2, -0.4])
    np.testing.assert_array_equal(bent.clipped(x), plain.clipped(x))


@pytest.mark.parametrize("power", [0.5, 0.0, -0.5, -1.0])
def test_answers_that_nearly_vanish_or_explode_leave_the_model_finite(power):
    points = np.linspace(0.0, 1.0, 6)[:, None]
    answers = np.array([[1.0], [0.3], [1e-20], [1e-300], [1e6], [2.0]])
    history = History(points, answers, np.ones(6), np.ones(1))
    model = fitter(1, curving=Curving(np.array([np.inf]), np.array([power]))).fit(
        history, 0, Shape.FREE, Scales(0.2, 1.0)
    )
    predicted = np.array([model.predict(x) for x in points])
    assert np.isfinite(predicted).all()
    tame = answers < 10.0
    np.testing.assert_allclose(predicted[tame], answers[tame], rtol=1e-2, atol=2e-3)
    assert predicted[4] > 100.0


def test_an_answer_on_a_curved_scale_is_not_taken_for_one_beyond_its_bound():
    """Latent answers may be negative where all answers are positive, with a bound at zero that others touch."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0.0, 4.0, (25, 2))
    points[0] = 0.5
    answers = np.column_stack([np.exp(-2.0 * points[:, 0]), np.maximum(points[:, 1] - 2.0, 0.0)])
    history, bounds = History(points, answers, np.ones(25), np.ones(2)), Bounds(np.zeros(2), np.full(2, np.inf))
    bent = Fitter(
        100, np.ones((1, 2)), bounds, pull=np.ones(2), curving=Curving(np.full(2, np.inf), np.array([0.0, 1.0]))
    )
    model = bent.fit(history, 0, Shape.FREE, Scales(2.0, 1.0))
    for x, y in zip(points, answers, strict=True):
        np.testing.assert_allclose(model.clipped(x)[0], y[0], rtol=1e-4, atol=1e-6)


def test_under_noise_the_scale_is_that_around_the_answer_told():
    x = np.linspace(-1.0, 3.0, 40)[:, None]
    answers = np.exp(x)
    answers[10] += 0.3  # the centre, as it was told
    history = History(x, answers, np.ones(40), np.ones(1))
    curved = fitter(1, curving=Curving(np.array([np.inf]), np.zeros(1)))
    model = curved.fit(history, 10, Shape.FREE, Scales(2.0, 1.0, noise=0.05))
    np.testing.assert_allclose(model.predict(np.array([2.9])), np.exp(2.9), rtol=0.05)


def test_of_noisy_answers_powers_alone_compete():
    history = told(lambda x: np.sinh(2.0 * x[:, :1]) * np.array([[1.0, -1.0]]), np.random.default_rng(5), reach=1.5)
    seen, slopes = history.seen_from(0, 100)
    factor = np.linalg.cholesky(seen.covariance(Scales(2.0, 1.0)))
    assert likeliest(seen, slopes, history.answers[0], factor).curved.any()
    assert not likeliest(seen, slopes, history.answers[0], factor, noisy=True).curved.any()


def test_changes_beyond_all_scales_are_told_without_overflow():
    curving = Curving(np.array([1e-200]), np.ones(1))
    latent, logs = curving.latent(np.array([[1.0], [0.0]]), np.zeros(1))
    np.testing.assert_allclose(latent[:, 0], [1e-200 * np.arcsinh(1e200), 0.0])
    np.testing.assert_allclose(logs[:, 0], [-200.0 * np.log(10.0), 0.0])
