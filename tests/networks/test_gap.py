"""The gap by other means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.networks import (
    Network,
    flow_imbalance,
    generated_city,
    independent_gap,
)
from pzos.networks.gap import sparse_graph
from roads import braess, road_networks


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


def by_hand(network: Network, flow: np.ndarray, tolls: np.ndarray) -> float:
    """Return the gap of one class by trying every simple path."""
    cost = network.latency.time(flow) + tolls
    ways: dict[tuple[int, int], float] = {}

    def walk(start: int, node: int, seen: frozenset[int], spent: float) -> None:
        ways[start, node] = min(ways.get((start, node), np.inf), spent)
        if node >= network.first_thru or node == start:
            for link in np.flatnonzero(network.tail == node):
                there = int(network.head[link])
                if there not in seen:
                    walk(start, there, seen | {there}, spent + float(cost[link]))

    for node in range(network.nodes):
        walk(node, node, frozenset([node]), 0.0)
    demand = network.demand
    pairs = zip(demand.origin.tolist(), demand.destination.tolist(), demand.trips.tolist(), strict=True)
    least = sum(ways[a, b] * trips for a, b, trips in pairs)
    return (float(cost @ flow) - least) / float(np.abs(cost) @ flow)


@settings(max_examples=25, deadline=None)
@given(road_networks(), st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6))
def test_the_gap_of_a_loose_answer_is_that_of_all_simple_paths(network: Network, height: list[float]) -> None:
    climb = np.array(height)[network.head] - np.array(height)[network.tail]
    loose = network.assign(climb, gap=0.5, above_gap="return")
    found = independent_gap(network, loose.class_flow, climb)
    assert found == pytest.approx(by_hand(network, loose.flow, climb), rel=1e-9, abs=1e-12)
    assert found == pytest.approx(loose.gap, rel=1e-9, abs=1e-12)


def test_the_gap_of_everyone_on_the_short_cut_of_braess() -> None:
    # 60 + 16 + 60 by the short cut, 60 + 50 by the outer ways.
    assert independent_gap(braess(), [6.0, 0.0, 0.0, 6.0, 6.0]) == pytest.approx((136 - 110) / 136)


def test_the_imbalance_is_relative_to_the_demand_of_the_class() -> None:
    two = braess().with_classes([1.0, 1.0], [0.25, 0.75])
    flow = two.assign().class_flow
    assert flow_imbalance(two, flow) <= 1e-15
    flow[0, 0] += 0.3
    assert flow_imbalance(two, flow) == pytest.approx(0.3 / 1.5)
    flow[1, 2] -= 0.9
    assert flow_imbalance(two, flow) == pytest.approx(0.2)


def test_of_parallel_links_the_cheapest_counts() -> None:
    tail, head = np.array([0, 1, 0, 0]), np.array([1, 2, 1, 2])
    graph = sparse_graph(tail, head, np.array([3.0, 1.0, 2.0, 9.0]), 4)
    assert graph.toarray().tolist() == [[0, 2, 9, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
