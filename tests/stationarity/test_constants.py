from math import gamma, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.stationarity import Constants, published_moment_constant, sharp_moment_constant, smoothing_constant


def ball_volume(d: int) -> float:
    return pi ** (d / 2) / gamma(d / 2 + 1)


@given(st.integers(1, 120))
def test_k1_is_twice_the_ratio_of_ball_volumes(d: int) -> None:
    assert smoothing_constant(d) * sqrt(d) == pytest.approx(2 * ball_volume(d - 1) / ball_volume(d), rel=1e-12)


def test_k1_by_double_factorials_in_small_dimensions() -> None:
    # kappa d!!/(d-1)!!, kappa = 2/pi for even d and 1 for odd d
    expected = [1.0, 2 / pi * 2 / 1, 3 / 2, 2 / pi * 8 / 3, 15 / 8]
    assert [smoothing_constant(d) * sqrt(d) for d in range(1, 6)] == pytest.approx(expected, rel=1e-14)


def test_k1_is_the_same_on_both_sides_of_the_switch_to_logarithms() -> None:
    assert smoothing_constant(300) == pytest.approx(smoothing_constant(301), rel=1e-5)
    assert smoothing_constant(10**6) == pytest.approx(sqrt(2 / pi), rel=1e-5)


def test_k1_is_tight_for_the_absolute_value_of_one_entry() -> None:
    # J y_mu for |x_1| is P(|u_1| <= x_1/mu); its slope at 0 is the density of the ball's marginal there.
    from scipy.special import betainc

    d, mu, step = 7, 0.3, 1e-5
    slope = betainc(0.5, (d + 1) / 2, (step / mu) ** 2) / step
    assert slope == pytest.approx(smoothing_constant(d) * sqrt(d) / mu, rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_sharp_k2_bounds_the_second_moment_of_lipschitz_functions(d: int) -> None:
    v = np.array([Keys(1).direction(0, q, d) for q in range(4000)])
    x = 0.3 * np.ones(d) / sqrt(d)
    functions = (
        lambda z: z[:, 0],
        lambda z: np.abs(z).max(axis=1),
        lambda z: np.linalg.norm(z, axis=1),
        lambda z: np.maximum(z[:, 0], 0.0),
    )
    for h in functions:  # each 1-Lipschitz
        moment = np.mean((d / 2.0 * (h(x + v) - h(x - v))) ** 2)
        assert moment <= sharp_moment_constant(d) * d * 1.1
    assert 1.0 <= sharp_moment_constant(d) <= 2.0 < published_moment_constant()


def test_the_derived_constants_are_the_papers() -> None:
    c = Constants(L_f=2.0, L_g=3.0, L_y=0.5, dimension=4, Delta=7.0, k1=0.9, k2=5.0)
    assert c.C_p == pytest.approx(3.0 * 1.5 * 0.5)
    assert c.C_f == pytest.approx(1.5 * 3.0 * 2.0)
    assert c.sigma_squared == pytest.approx(5 * 4 * 4 * 0.25 + 4 * 2.0)
    assert c.black_box_sigma_squared == pytest.approx(5 * 4 * 4 * 0.25 + 5 * 4 * 4 * 2.0)
    assert c.L_F(0.1) == pytest.approx(3.0 * 2.25 + 0.9 * 2.0 * 0.5 * 2.0 / 0.1)
    assert c.Delta_mu(0.1) == pytest.approx(7.0 + 2 * 2.0 * 0.5 * 0.1)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)L_f.*L_y.*dimension"):
        Constants(L_f=-1.0, L_g=1.0, L_y=0.0, dimension=0, Delta=1.0)
