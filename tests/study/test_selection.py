"""x^R: R uniform on the steps taken, for any number of them, drawn while the run goes on."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.keys import Keys
from pzos.study.result import Record, Selection


def record(step: int, value: float = float("nan")) -> Record:
    return Record(step, np.array([float(step)]), 0, 0, value, 0.0, 0.0, 0.0)


def drawn(seed: int, steps: int) -> int:
    selection = Selection(np.zeros(1), 1.0, Keys(seed))
    for step in range(steps):
        selection.draw(record(step))
    assert selection.random_x[0] == selection.random_step
    return selection.random_step


@pytest.mark.parametrize("steps", [1, 2, 5, 13])
def test_r_is_uniform_over_seeds(steps: int) -> None:
    seeds = 3000
    counts = np.bincount([drawn(seed, steps) for seed in range(seeds)], minlength=steps)
    assert counts.size == steps
    expected = seeds / steps
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = steps - 1
    assert chi_square <= freedom + 4 * np.sqrt(2 * freedom) + 1e-9


def test_the_same_seed_draws_the_same_step() -> None:
    assert [drawn(seed, 50) for seed in range(20)] == [drawn(seed, 50) for seed in range(20)]


def test_a_longer_run_keeps_the_draw_or_takes_a_later_one() -> None:
    for seed in range(50):
        assert drawn(seed, 40) in {drawn(seed, 20), *range(20, 40)}


def test_the_best_ignores_what_is_not_known_and_keeps_the_first_of_equals() -> None:
    for sign, best in ((1.0, 1), (-1.0, 3)):
        selection = Selection(np.zeros(1), sign, Keys(0))
        assert np.isnan(selection.best_value)
        for step, value in enumerate([np.nan, 1.0, np.nan, 3.0, 1.0, 3.0, 2.0]):
            selection.consider(record(step, value))
        assert selection.best_x[0] == best
        assert selection.best_value == float(best)
