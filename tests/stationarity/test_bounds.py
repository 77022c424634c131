from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.stationarity import finite_sample_bound, norm_upper_bound


def paper_estimates(seed: int, count: int, mean: Vector, response: Vector) -> Matrix:
    """Estimates g = (mean - response) + d (response . v) v, as PZOS makes them on a linear response."""
    draw = Keys(seed).generator(Role.CERTIFICATE)
    v = draw.standard_normal((count, mean.size))
    v /= np.linalg.norm(v, axis=1)[:, None]
    return mean - response + (mean.size * (v @ response))[:, None] * v


def test_the_squared_norm_is_estimated_without_bias() -> None:
    mean, response = np.array([0.5, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    squares = [norm_upper_bound(paper_estimates(s, 20, mean, response)).squared for s in range(3000)]
    error = np.std(squares) / sqrt(len(squares))
    assert abs(np.mean(squares) - 0.25) < 4 * error


@pytest.mark.parametrize(("d", "count"), [(20, 200), (5, 60), (100, 60), (300, 60), (2, 30)])
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("along", [0, 1])
def test_coverage_in_few_and_many_dimensions(d: int, count: int, share: float, along: int) -> None:
    mean, response = np.zeros(d), np.zeros(d)
    response[0], mean[along] = 1.0, share
    repeats = 200
    covered = sum(norm_upper_bound(paper_estimates(s, count, mean, response)).upper >= share for s in range(repeats))
    # nominal 95 %; 0.895 is 3.5 standard errors below
    assert covered / repeats >= 0.895


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.integers(2, 30))
def test_the_bound_scales_and_turns_with_the_data(seed: int, scale: float, d: int) -> None:
    samples = paper_estimates(seed, 40, np.ones(d), np.arange(1.0, d + 1))
    turn = Keys(seed).basis(0, d)
    bound = norm_upper_bound(samples)
    assert norm_upper_bound(scale * samples).upper == pytest.approx(scale * bound.upper, rel=1e-9)
    assert norm_upper_bound(samples @ turn).upper == pytest.approx(bound.upper, rel=1e-9)
    assert bound.upper >= bound.estimate
    assert norm_upper_bound(samples, 0.99).upper > bound.upper


def test_no_noise_means_no_excess() -> None:
    bound = norm_upper_bound(np.tile([3.0, 4.0], (20, 1)))
    assert bound.upper == pytest.approx(5.0, rel=1e-14)
    assert norm_upper_bound(np.zeros((20, 3))).upper == 0.0


def test_the_finite_sample_bound_covers_and_needs_a_true_bound() -> None:
    response = np.array([1.0, 0.0, 0.0])
    for seed in range(100):
        samples = paper_estimates(seed, 50, np.zeros(3), response)
        assert finite_sample_bound(samples, largest=4.0, second_moment=3.0).upper >= 0.0
        assert finite_sample_bound(samples, 4.0, 3.0).upper > norm_upper_bound(samples).upper
    with pytest.raises(InvalidInput, match="a bound on"):
        finite_sample_bound(samples, largest=0.1)


def test_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)samples.*confidence"):
        norm_upper_bound(np.zeros((3, 2)), confidence=1.5)
