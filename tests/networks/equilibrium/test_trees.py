"""Shortest-path trees against scipy's, for costs of any sign, closed zones and negative cycles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse.csgraph import bellman_ford

from pzos.networks import Network
from pzos.networks.equilibrium.trees import Graph, find_potential, grow_tree, mend_tree, tree_space
from pzos.networks.gap import sparse_graph
from roads import road_networks


def graph_of(network: Network, first_thru: int = 0) -> tuple[Graph, np.ndarray]:
    """Return the graph with its links sorted by tail, and the order that sorts them."""
    order = np.argsort(network.tail, kind="stable")
    tail, head = network.tail[order], network.head[order]
    passable = (np.arange(network.nodes) >= first_thru).astype(np.int8)
    first_out = np.searchsorted(tail, np.arange(network.nodes + 1)).astype(np.int64)
    return Graph(first_out, tail.astype(np.int32), head.astype(np.int32), passable), order


def distances(graph: Graph, cost: np.ndarray, origin: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distance and entering link of every node."""
    nodes = graph.first_out.size - 1
    potential, space = np.zeros(nodes), tree_space(nodes)
    assert find_potential(graph, cost, potential, np.empty(nodes, np.int32)) == -1
    grow_tree(origin, graph, cost, potential, space)
    return space.distance, space.into


@settings(max_examples=40, deadline=None)
@given(road_networks(), st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6), st.data())
def test_trees_are_shortest_for_costs_of_any_sign(network: Network, height: list[float], data) -> None:
    graph, order = graph_of(network)
    # Heights telescope: no cycle gets cheaper, but single links may cost less than nothing.
    climb = np.array(height)[graph.head] - np.array(height)[graph.tail]
    cost = network.latency.base[order] + climb
    origin = data.draw(st.integers(0, network.nodes - 1))
    found, into = distances(graph, cost, origin)
    matrix = sparse_graph(graph.tail.astype(np.int64), graph.head.astype(np.int64), cost, network.nodes)
    np.testing.assert_allclose(found, bellman_ford(matrix, indices=origin), rtol=1e-12, atol=1e-12)
    assert into[origin] == -1
    for node in set(range(network.nodes)) - {origin}:
        link = into[node]
        assert graph.head[link] == node
        assert found[node] == found[graph.tail[link]] + cost[link]


@settings(max_examples=40, deadline=None)
@given(road_networks(), st.integers(1, 3))
def test_no_tree_passes_through_a_closed_zone(network: Network, closed: int) -> None:
    graph, order = graph_of(network, closed)
    cost = network.latency.base[order]
    for origin in range(network.nodes):
        found, into = distances(graph, cost, origin)
        for node in range(network.nodes):
            while node != origin and np.isfinite(found[node]):
                node = int(graph.tail[into[node]])
                assert node == origin or node >= closed


def test_a_node_out_of_reach_is_infinitely_far() -> None:
    graph = Graph(np.array([0, 1, 1, 1]), np.array([0], np.int32), np.array([1], np.int32), np.ones(3, np.int8))
    found, into = distances(graph, np.array([2.0]), 0)
    assert found.tolist() == [0.0, 2.0, np.inf]
    assert into.tolist() == [-1, 0, -1]


@pytest.mark.parametrize(("closed", "expected"), [(0, True), (2, False)])
def test_a_negative_cycle_is_found_unless_nobody_can_drive_it(closed: int, expected: bool) -> None:
    tail, head = np.array([0, 1, 1], np.int32), np.array([1, 0, 2], np.int32)
    graph = Graph(np.array([0, 1, 3, 3]), tail, head, (np.arange(3) >= closed).astype(np.int8))
    into = np.empty(3, np.int32)
    node = find_potential(graph, np.array([1.0, -2.0, 1.0]), np.zeros(3), into)
    assert (node >= 0) is expected
    if expected:  # walking back along the links stays on the cycle
        seen = set()
        for _ in range(6):
            node = int(tail[into[node]])
            seen.add(node)
        assert seen == {0, 1}


def test_potentials_make_reduced_costs_nonnegative() -> None:
    rng = np.random.default_rng(0)
    tail, head = (part.ravel().astype(np.int32) for part in np.nonzero(~np.eye(8, dtype=bool)))
    graph = Graph(np.arange(0, 57, 7), tail, head, np.ones(8, np.int8))
    height = rng.normal(size=8)
    cost = rng.uniform(0.0, 1.0, tail.size) + 3.0 * (height[head] - height[tail])
    potential = np.empty(8)
    assert find_potential(graph, cost, potential, np.empty(8, np.int32)) == -1
    assert (cost + potential[tail] - potential[head]).min() >= -1e-12
    assert find_potential(graph, np.abs(cost), potential, np.empty(8, np.int32)) == -1
    assert not potential.any()  # nonnegative costs need none


@settings(max_examples=40, deadline=None)
@given(road_networks(), st.randoms(use_true_random=False))
def test_a_mended_tree_is_as_short_as_a_new_one(network: Network, luck) -> None:
    graph, _ = graph_of(network, 1)
    still, space, fresh = np.zeros(network.nodes), tree_space(network.nodes), tree_space(network.nodes)
    count = grow_tree(0, graph, np.ones(network.links), still, space)
    links = space.order.copy()
    for _ in range(3):
        cost = np.array([luck.choice([0.0, 0.5, 1.0, 3.0]) for _ in range(network.links)])
        mend_tree(0, graph, cost, links, count, space)
        assert grow_tree(0, graph, cost, still, fresh) == count
        np.testing.assert_array_equal(space.distance, fresh.distance)
        reached = {0}
        for link in links[:count]:  # an order from the origin, and the tree itself
            assert graph.tail[link] in reached
            assert space.into[graph.head[link]] == link
            reached.add(int(graph.head[link]))
        assert len(reached) == count + 1
