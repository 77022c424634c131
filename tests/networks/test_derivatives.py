"""Derivatives of flows in tolls: against central differences, forward against transposed, and as a prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.base.types import LeaderValue
from pzos.networks import Network, model_prediction, tariff
from pzos.networks.tolls import TollFollower
from roads import braess

CASES = {
    "braess": lambda city: braess(),
    "city": lambda city: city,
    "classes": lambda city: city.with_classes([0.5, 2.0], [0.4, 0.6]),
    "general power": lambda city: replace(city, latency=replace(city.latency, power=city.latency.power - 0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_products_agree_with_central_differences(city: Network, name: str) -> None:
    network: Network = CASES[name](city)
    rng = np.random.default_rng(4)
    tolls = rng.uniform(0.1, 0.3, network.links) * network.latency.base.mean()
    direction = rng.normal(size=network.links)
    at = network.assign(tolls, gap=1e-15, above_gap="return")
    found = at.jacobian().forward(direction)
    length = 1e-5
    ends = [network.assign(tolls + s * direction, gap=1e-15, above_gap="return").flow for s in (length, -length)]
    expected = (ends[0] - ends[1]) / (2.0 * length)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    assert np.abs(found).max() > 0.0


def test_transposed_products_are_the_transpose_by_class_too(city: Network) -> None:
    network = city.with_classes([0.5, 1.0, 2.0])
    jacobian = network.assign(np.linspace(0.0, 1.0, network.links), gap=1e-13, above_gap="return").jacobian()
    rng = np.random.default_rng(1)
    for shape in ((network.links,), (3, network.links)):
        tolls, weights = rng.normal(size=shape), rng.normal(size=shape)
        assert np.vdot(weights, jacobian.forward(tolls)) == pytest.approx(
            np.vdot(jacobian.transpose(weights), tolls), rel=1e-8
        )
    with pytest.raises(InvalidInput, match=r"tolls.*numbers \(or 3 rows\)"):
        jacobian.forward([1.0, 2.0])


def test_the_model_predicts_the_gradient_of_what_it_models(city: Network) -> None:
    network = city.with_classes([0.5, 2.0])
    travellers = TollFollower(network, tariff(network, [0, 3, 7]), 1e-14)
    x = np.array([0.5, 0.2, 0.3])
    weights = np.random.default_rng(2).normal(size=travellers(x).y.size)
    found = model_prediction(travellers).predict(None, x, LeaderValue(0.0, np.zeros(3), weights))
    slopes = [(travellers(x + step).y - travellers(x - step).y) / 2e-4 for step in 1e-4 * np.eye(3)]
    np.testing.assert_allclose(found, np.array(slopes) @ weights, rtol=1e-5, atol=1e-5 * np.abs(found).max())
