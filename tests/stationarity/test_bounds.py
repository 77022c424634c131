from math import log, sqrt

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
@pytest.mark.parametrize("share", [0.1, 0.5, 2.0])
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


@pytest.mark.parametrize(("d", "count"), [(2, 30), (20, 200), (300, 60)])
def test_with_mean_zero_the_bound_is_as_small_as_the_noise_allows(d: int, count: int) -> None:
    """Any bound covers a mean of zero; what can go wrong there is that it says too much or nothing at all."""
    response = np.eye(1, d)[0]
    uppers = np.array([norm_upper_bound(paper_estimates(s, count, np.zeros(d), response)).upper for s in range(100)])
    noise = sqrt((d - 1.0) / count)  # the standard error of the mean: E|g|^2 = d - 1
    assert uppers.max() < 4.5 * noise
    assert np.median(uppers) > 0.1 * noise * d**-0.25


def test_the_finite_sample_bound_covers_and_needs_a_true_bound() -> None:
    # E g = mean; |g| <= |mean - response| + 3 = 3.5 and E|g|^2 = 1/4 - 1 + 3 = 2.25
    mean, response = np.array([0.5, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
    excess = []
    for seed in range(100):
        samples = paper_estimates(seed, 50, mean, response)
        bound = finite_sample_bound(samples, largest=3.5, second_moment=2.25)
        assert bound.upper >= 0.5
        assert bound.upper > norm_upper_bound(samples).upper
        assert finite_sample_bound(samples, 3.5).upper > bound.upper, "without a second moment it is wider"
        excess.append(bound.upper - np.linalg.norm(bound.mean))
    level = log(2.0 / 0.05)
    assert excess == pytest.approx([2.0 * 3.5 * level / 50 + sqrt(2.0 * 2.25 * level / 50)] * 100)
    with pytest.raises(InvalidInput, match="a bound on"):
        finite_sample_bound(samples, largest=0.1)
    with pytest.raises(InvalidInput, match="second_moment"):
        finite_sample_bound(samples, largest=4.0, second_moment=0.0)


def test_the_finite_sample_estimate_of_the_square_has_no_bias() -> None:
    mean, response = np.array([0.5, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    squares = [finite_sample_bound(paper_estimates(s, 10, mean, response), 5.0).squared for s in range(3000)]
    assert abs(np.mean(squares) - 0.25) < 4 * np.std(squares) / sqrt(len(squares))
    assert finite_sample_bound(np.array([[3.0, 4.0]]), 5.0).squared == 25.0


def test_a_prediction_of_unknown_shape_widens_the_bound() -> None:
    samples = paper_estimates(1, 60, np.ones(4), np.eye(1, 4)[0])
    assert norm_upper_bound(samples, predicted=True).upper > norm_upper_bound(samples).upper
    assert norm_upper_bound(samples, allowance=0.25).upper == norm_upper_bound(samples).upper + 0.25


def test_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)samples.*confidence"):
        norm_upper_bound(np.zeros((3, 2)), confidence=1.5)
