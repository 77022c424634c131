"""Path sets: room, sums, pricing and sweeps, seen on networks small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.networks import Network
from pzos.networks.equilibrium.paths import (
    Paths,
    add_up,
    new_marks,
    no_paths,
    out_of_reach,
    pairs_with_choice,
    price,
    sweep,
    with_room,
)
from pzos.networks.equilibrium.trees import tree_space
from pzos.networks.latency import FLOW, TIME, refresh
from roads import braess, road_networks


def priced(network: Network, paths: Paths, state: np.ndarray) -> tuple[Paths, float, int]:
    """Price path sets at the times of ``state``; one class, no tolls."""
    ready = network.prepared
    cost, potential = state[:, TIME].reshape(1, -1).copy(), np.zeros((1, network.nodes))
    space = tree_space(network.nodes)
    return price(ready.graph, ready.trips, np.zeros_like(cost), cost, state, potential, paths, space)


def start(network: Network) -> tuple[Paths, np.ndarray]:
    """Return the shortest paths at free flow, loaded with the whole demand."""
    state = np.zeros((network.links, 3))
    refresh(network.prepared.law, state)
    pairs = network.prepared.trips.demand.size
    paths, _, added = priced(network, no_paths(pairs, pairs, 0), state)
    assert added == pairs
    paths.flow[:pairs] = network.prepared.trips.demand
    add_up(paths, state)
    refresh(network.prepared.law, state)
    return paths, state


def test_room_grows_and_keeps_what_is_there() -> None:
    paths = no_paths(2, 1, 2)
    paths.start[1], paths.pool[:2], paths.flow[0], paths.fixed[0] = 2, (7, 9), 3.0, 0.5
    same = with_room(paths, 1, 0, 0)
    assert same.pool is paths.pool or np.shares_memory(same.pool, paths.pool)
    more = with_room(paths, 1, 4, 10)
    assert (more.flow.size, more.start.size, more.pool.size) == (5, 6, 13)
    assert more.pool[:2].tolist() == [7, 9]
    assert (more.flow[0], more.fixed[0], more.start[1]) == (3.0, 0.5, 2)


def test_pricing_finds_the_new_shortest_path_of_braess_and_the_excess() -> None:
    network = braess()
    paths, state = start(network)
    assert paths.start[1] == 3  # by the short cut
    # All six by the short cut: 60 + 16 + 60 = 136; the outer ways cost 60 + 50 = 110.
    more, excess, added = priced(network, paths, state)
    assert added == 1
    assert excess == pytest.approx(6 * (136.0 - 110.0))
    assert more.first.tolist() == [0, 2]
    assert more.flow[:2].tolist() == [6.0, 0.0]
    assert more.start[2] - more.start[1] == 2
    assert pairs_with_choice(more).tolist() == [0]
    assert pairs_with_choice(paths).size == 0


def test_pricing_drops_empty_paths_that_are_far_from_shortest() -> None:
    network = braess()
    paths, state = start(network)
    more, _, _ = priced(network, paths, state)
    more.flow[:2] = 0.0, 6.0  # leave the short cut empty, and load one outer way
    add_up(more, state)
    refresh(network.prepared.law, state)
    again, _, added = priced(network, more, state)
    kept = [again.start[k + 1] - again.start[k] for k in range(again.first[1])]
    assert again.flow[: again.first[1]].sum() == 6.0
    assert added == 1
    assert kept[0] == 2  # the loaded path comes first; what follows is shortest now


@settings(max_examples=30, deadline=None)
@given(road_networks())
def test_sweeps_keep_the_demand_and_lower_the_objective(network: Network) -> None:
    paths, state = start(network)
    marks, trips = new_marks(network.links), network.prepared.trips
    order = network.prepared.order

    def objective() -> float:
        flow = np.empty(network.links)
        flow[order] = state[:, FLOW]
        return float(network.latency.integral(flow).sum())

    for _ in range(3):
        paths, _, _ = priced(network, paths, state)
        before = objective()
        sweep(pairs_with_choice(paths), paths, 0.0, network.prepared.law, state, marks)
        carried = [paths.flow[paths.first[i] : paths.first[i + 1]].sum() for i in range(trips.demand.size)]
        np.testing.assert_allclose(carried, trips.demand, rtol=1e-12)
        kept = state[:, FLOW].copy()
        add_up(paths, state)
        np.testing.assert_allclose(kept, state[:, FLOW], atol=1e-9)  # kept up to date on the way
        refresh(network.prepared.law, state)
        assert objective() <= before * (1 + 1e-9)


def test_one_sweep_meets_the_costs_of_two_straight_roads() -> None:
    network = braess()
    paths, state = start(network)
    paths, _, _ = priced(network, paths, state)
    found = sweep(np.array([0]), paths, 0.0, network.prepared.law, state, new_marks(5))
    assert found == pytest.approx(6 * 26.0)
    # One Newton step is exact for straight roads: 10 v + (10 + v) = 50 + (6 - v) on what only one of them uses.
    time, short = state[:, TIME], paths.pool[paths.start[0] : paths.start[1]]
    outer = paths.pool[paths.start[1] : paths.start[2]]
    assert time[short].sum() == pytest.approx(time[outer].sum())
    assert paths.flow[:2].sum() == pytest.approx(6.0)


def test_differences_below_the_tolerance_are_left_alone() -> None:
    network = braess()
    paths, state = start(network)
    paths, _, _ = priced(network, paths, state)
    before = paths.flow.copy()
    sweep(np.array([0]), paths, 1.0, network.prepared.law, state, new_marks(5))
    np.testing.assert_array_equal(paths.flow[:2], before[:2])


@settings(max_examples=30, deadline=None)
@given(road_networks(), st.integers(0, 5))
def test_pairs_out_of_reach_are_those_without_a_way(network: Network, shut: int) -> None:
    ready = network.prepared
    assert out_of_reach(ready.graph, ready.trips).size == 0
    # Cut every link into one node: exactly the trips to it are lost.
    node = shut % network.nodes
    graph = ready.graph._replace(head=np.where(ready.graph.head == node, ready.graph.tail, ready.graph.head))
    lost = out_of_reach(graph, ready.trips)
    assert set(lost.tolist()) == set(np.flatnonzero(ready.trips.destination == node).tolist())
