"""The gap by other means."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.networks import (
    Network,
    flow_imbalance,
    generated_city,
    independent_gap,
)


@pytest.mark.parametrize("seed", range(4))
def test_reported_gap_agrees_with_an_independent_one(seed: int) -> None:
    city = generated_city(4, 5, zones=8, congestion=1.5, seed=seed).with_classes([0.5, 1.0, 4.0], [0.3, 0.5, 0.2])
    tolls = np.random.default_rng(seed).uniform(-0.5, 3.0, city.links)
    answer = city.assign(tolls, gap=1e-11)
    assert abs(independent_gap(city, answer.class_flow, tolls)) <= 2e-11
    assert flow_imbalance(city, answer.class_flow) <= 1e-12
    loose = city.assign(tolls, gap=1e-3)
    assert independent_gap(city, loose.class_flow, tolls) == pytest.approx(loose.gap, rel=1e-8, abs=1e-13)


def test_an_unbalanced_flow_has_no_gap(city: Network) -> None:
    assert independent_gap(city, np.zeros(city.links)) == np.inf
