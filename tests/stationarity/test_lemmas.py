"""The paper's lemmas on random instances that satisfy its assumptions (y* a projection, f a smooth norm)."""

import numpy as np
import pytest

from pzos.base.keys import Keys, Role
from pzos.stationarity import Constants, estimate_constants, sharp_moment_constant, smoothed_objects

from .instances import Instance, random_instance

SEEDS = range(6)
RADII = (0.05, 0.5)


def constants(instance: Instance) -> Constants:
    d = instance.problem.x0.size
    return Constants(instance.L_f, instance.L_g, instance.L_y, d, 1.0, k2=sharp_moment_constant(d))


def size(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector))


@pytest.fixture(scope="module", params=[(seed, mu) for seed in SEEDS for mu in RADII])
def case(request: pytest.FixtureRequest):
    seed, mu = request.param
    instance = random_instance(seed)
    return instance, mu, smoothed_objects(instance.problem, radius=mu, pairs=2000)


def test_bias_of_the_estimate(case) -> None:
    instance, mu, report = case  # Lem. 8: |E g - grad F_mu| <= C_p mu
    assert size(report.bias.value) <= constants(instance).C_p * mu + 4 * report.bias.error
    difference = report.estimate_mean.value - report.F_mu_gradient.value
    assert np.allclose(difference, report.bias.value, atol=1e-10)


def test_second_moments(case) -> None:
    instance, _, report = case  # Lem. 1, with the sharp k_2
    c = constants(instance)
    assert report.partial_moment.number <= c.sigma_squared + 4 * report.partial_moment.error
    assert report.black_box_moment.number <= c.black_box_sigma_squared + 4 * report.black_box_moment.error
    assert report.partial_variance <= report.partial_moment.number * (1 + 1e-9)
    difference = report.black_box_moment.number - report.partial_moment.number
    assert report.moment_difference.number == pytest.approx(difference, rel=1e-9, abs=1e-12)


def test_the_smoothed_response_stays_in_Y_and_near(case) -> None:
    instance, mu, report = case  # Lem. 2 and Lem. 4 (i), with the exact mean length d/(d+1) of the ball
    y = np.clip(instance.A @ report.x + instance.b, -1.0, 1.0)
    d = report.x.size
    assert np.all(np.abs(report.y_mu.value) <= 1.0)
    assert size(report.y_mu.value - y) <= instance.L_y * mu * d / (d + 1) + 4 * report.y_mu.error


def test_both_surrogates_are_near_F(case) -> None:
    instance, mu, report = case  # Prop. 2, and F is L_f (1 + L_y)-Lipschitz
    assert abs(report.F_mu.number - report.value) <= instance.L_f * instance.L_y * mu + 4 * report.F_mu.error
    reach = instance.L_f * (1 + instance.L_y) * mu
    assert abs(report.F_tilde.number - report.value) <= reach + 4 * report.F_tilde.error


def test_distance_to_the_goldstein_subdifferential(case) -> None:
    instance, mu, report = case  # Lem. 12 with q = E grad F(x + mu u), which lies in the Goldstein subdifferential
    distance = size(report.F_mu_gradient.value - report.F_tilde_gradient.value)
    allowed = 4 * (report.F_mu_gradient.error + report.F_tilde_gradient.error)
    assert distance <= constants(instance).C_f * mu + allowed


def test_jacobian_of_the_smoothed_response_is_a_mean_of_jacobians(case) -> None:
    instance, mu, report = case  # eq. (jacymuintegral): so it lies in the hull (Lem. 11), and E g in the partial set
    keys, d = Keys(9), report.x.size
    points = [
        report.x + mu * keys.uniform(Role.REGION, 50, q) ** (1 / d) * keys.direction(51, q, d, Role.REGION)
        for q in range(4000)
    ]
    jacobians = np.array([instance.jacobian(z) for z in points])
    at = instance.problem.leader(report.x, np.clip(instance.A @ report.x + instance.b, -1.0, 1.0))
    products = at.grad_x + np.einsum("qij,i->qj", jacobians, at.grad_y)
    spread = np.sqrt(products.var(axis=0).sum() / len(points))
    assert size(products.mean(axis=0) - report.estimate_mean.value) <= 4 * (spread + report.estimate_mean.error) + 1e-12
    assert np.linalg.norm(jacobians.mean(axis=0), 2) <= instance.L_y * (1 + 1e-9)  # Lem. 5


@pytest.mark.parametrize("seed", SEEDS)
def test_lipschitz_constants_of_the_smoothed_response(seed: int) -> None:
    instance, mu = random_instance(seed), 0.3  # Lem. 4 (ii) and Lem. 6 (smoothness of F_mu)
    x = instance.problem.x0
    z = x + 0.2 * Keys(seed).direction(0, 0, x.size)
    here, there = (smoothed_objects(instance.problem, p, radius=mu, pairs=1000) for p in (x, z))
    gap = size(z - x)
    noise = 4 * (here.y_mu.error + there.y_mu.error)
    assert size(here.y_mu.value - there.y_mu.value) <= instance.L_y * gap + noise
    noise = 4 * (here.F_mu_gradient.error + there.F_mu_gradient.error)
    change = size(here.F_mu_gradient.value - there.F_mu_gradient.value)
    assert change <= constants(instance).L_F(mu) * gap + noise


@pytest.mark.parametrize("seed", SEEDS)
def test_estimated_constants_are_lower_estimates(seed: int) -> None:
    instance = random_instance(seed)
    found = estimate_constants(instance.problem, radius=2.0, pairs=200, seed=seed)
    assert 0.0 < found.L_y <= instance.L_y * (1 + 1e-9)
    assert 0.0 < found.L_f <= instance.L_f * (1 + 1e-9)
    assert 0.0 < found.L_g <= instance.L_g * (1 + 1e-9)
