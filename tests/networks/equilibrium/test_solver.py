"""The solver: any latency to any gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.networks import (
    Latency,
    Network,
    generated_city,
    independent_gap,
)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.5038, 5.1644, 16.8])
def test_cities_with_odd_latencies_reach_any_gap(power: float) -> None:
    from pzos.networks import independent_gap

    # As in public files: capacity 1 with a tiny b, links of constant cost, free-flow times of zero.
    city = generated_city(8, 8, zones=20, congestion=0.6 if power > 5 else 1.5, seed=1)
    b = np.where(np.arange(city.links) % 7 == 0, 0.0, 0.15 / city.latency.capacity**power)
    base = np.where(np.arange(city.links) % 11 == 0, 0.0, city.latency.base)
    odd = replace(city, latency=Latency.bpr(base, b, 1.0, power))
    answer = odd.assign(gap=1e-12)
    assert answer.gap <= 1e-12
    assert abs(independent_gap(odd, answer.class_flow)) <= 2e-12


@pytest.mark.parametrize(("power", "seed"), [(4.0, 3), (8.0, 1)])
def test_classes_that_swap_roads_on_steep_latencies_reach_the_gap(power: float, seed: int) -> None:
    city = generated_city(8, 9, zones=20, congestion=2.5, seed=seed)
    latency = Latency.bpr(city.latency.base, 0.15 if seed < 3 else 1.0, city.latency.capacity, power)
    classes: Network = replace(city, latency=latency).with_classes([0.5, 1.0, 2.0, 4.0])
    tolls = np.random.default_rng(seed).uniform(-0.05, 1.0, city.links) * city.latency.base.mean()
    answer = classes.assign(tolls, gap=1e-12)
    assert abs(independent_gap(classes, answer.class_flow, tolls)) <= 2e-12
