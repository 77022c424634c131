"""Which slopes at the centre the answers leave unknown."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.fit import Fitter, Shape
from pzos.methods.response_model.history import Scales, first
from pzos.methods.response_model.kernels import Kernel


def model_of(offsets, scales):
    n = offsets.shape[1]
    history = first(np.zeros(n), np.zeros(2))
    for offset in offsets:
        history = history.append(offset, np.array([offset.sum(), 1.0]))
    nowhere = Bounds(np.full(2, -np.inf), np.full(2, np.inf))
    return Fitter(100, np.ones((1, 2)), nowhere).fit(history, 0, Shape.FREE, scales)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_what_was_asked_nearby_is_known_and_its_complement_is_not(kernel):
    model = model_of(1e-3 * np.eye(5)[:3], Scales(1.0, 1.0, kernel=kernel))
    unknown = model.unknown_slopes(0.5)
    assert unknown.shape == (2, 5)
    assert unknown @ unknown.T == pytest.approx(np.eye(2))
    assert np.abs(unknown[:, :3]).max() < 1e-3


@pytest.mark.parametrize("kernel", [Kernel.KINKED, Kernel.CURVED, Kernel.SMOOTH])
def test_what_was_asked_many_lengths_away_is_forgotten(kernel):
    far = model_of(50.0 * np.eye(4), Scales(1.0, 10.0, kernel=kernel))
    assert far.unknown_slopes(0.5).shape[0] == 4
    near = model_of(0.01 * np.eye(4), Scales(1.0, 10.0, kernel=kernel))
    assert near.unknown_slopes(0.5).shape[0] == 0


def test_before_any_answer_everything_is_unknown():
    model = model_of(np.zeros((0, 3)), None)
    assert model.unknown_slopes(0.5).shape[0] == 3


@pytest.mark.parametrize("kernel", list(Kernel))
def test_the_pull_of_many_rows_is_that_of_each(kernel):
    pull = model_of(np.eye(4) + 0.1, Scales(1.0, 1.0, kernel=kernel)).response_and_pull(np.full(4, 0.3))[1]
    rows = np.array([[1.0, 0.0], [0.5, -2.0], [3.0, 1.0]])
    np.testing.assert_allclose(pull(rows), [pull(row) for row in rows], rtol=1e-12)
