from __future__ import annotations

import numpy as np

from pzos.methods.response_model.history import History, first


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
