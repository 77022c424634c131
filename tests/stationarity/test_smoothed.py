import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.stationarity import SmoothingSolver, smoothed_objects
from pzos.stationarity.piecewise import full_not_partial

from .instances import kinked_problem, linear_problem


def test_closed_forms_in_one_dimension() -> None:
    # y* = |x| at 0: y_mu = mu/2, J y_mu = 0; F~_mu = 1 + mu^2/3 + mu/2 for F = (x - 1)^2 + |x|
    mu = 0.4
    report = smoothed_objects(full_not_partial().problem(), radius=mu, pairs=2000)
    assert abs(report.y_mu.number - mu / 2) <= 4 * report.y_mu.error
    assert abs(report.F_mu.number - (1 + mu / 2)) <= 4 * report.F_mu.error
    assert abs(report.F_tilde.number - (1 + mu**2 / 3 + mu / 2)) <= 4 * report.F_tilde.error
    assert report.F_mu_gradient.number == pytest.approx(-2.0)
    assert report.F_tilde_gradient.number == pytest.approx(-2.0)
    assert 0.0 < report.y_mu.error < 0.01
    assert report.queries == 8001


def test_errors_are_honest() -> None:
    problem, norm, _ = kinked_problem(4, 1.0, 0.1)
    distances, errors = [], []
    for seed in range(40):
        report = smoothed_objects(problem, radius=0.1, pairs=100, seed=seed)
        distances.append(report.estimate_mean.value)
        errors.append(report.estimate_mean.error)
    truth = np.array(distances).mean(axis=0)
    assert np.linalg.norm(truth) == pytest.approx(norm, rel=0.1)
    scatter = np.sqrt(np.mean([np.sum((v - truth) ** 2) for v in distances]))
    assert scatter == pytest.approx(np.mean(errors), rel=0.2)


def test_second_moments_of_a_linear_response() -> None:
    # g = grad_x + d (w.v) v: E|g|^2 = |grad_x|^2 + 2 grad_x.w + d |w|^2; black box: d |grad_x + w|^2
    problem, norm, unit = linear_problem(5, 1.0)
    report = smoothed_objects(problem, radius=0.1, pairs=3000)
    x = problem.x0
    w = report.estimate_mean.value - x
    expected = x @ x + 2 * x @ w + 5 * unit**2
    assert abs(report.partial_moment.number - expected) <= 4 * report.partial_moment.error + 0.05 * expected
    assert abs(report.black_box_moment.number - 5 * norm**2) <= 4 * report.black_box_moment.error
    assert "E|g|^2, black box" in repr(report)


def test_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)radius.*pairs"):
        SmoothingSolver(radius=-1.0, pairs=3)
