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
    sweep,
    with_room,
)
from pzos.networks.equilibrium.rounds import Trees, new_field, nothing_known, price
from pzos.networks.equilibrium.trees import grow_tree, tree_space
from pzos.networks.latency import FLOW, TIME, refresh
from roads import braess, road_networks


def priced(network: Network, paths: Paths, trees: Trees, state: np.ndarray, shift: float = -1.0) -> tuple[Paths, float]:
    """Price path sets at the times of ``state``; one class, no tolls."""
    ready = network.prepared
    field = new_field(ready.graph, ready.trips, ready.law, np.zeros((1, network.links)), trees)
    field = field._replace(cost=state[:, TIME].reshape(1, -1).copy(), state=state)
    return price(field, ready.law, paths, True, shift, None)


def start(network: Network) -> tuple[Paths, Trees, np.ndarray]:
    """Return the shortest paths at free flow, loaded with the whole demand, and the trees."""
    ready, state = network.prepared, np.zeros((network.links, 3))
    refresh(ready.law, state)
    paths, trees = nothing_known(ready.graph, ready.trips)
    space, still = tree_space(network.nodes), np.zeros(network.nodes)
    for group, origin in enumerate(ready.trips.origin):
        trees.size[group] = grow_tree(origin, ready.graph, state[:, TIME].copy(), still, space)
        trees.links[group] = space.order
    paths, _ = priced(network, paths, trees, state)
    pairs = ready.trips.demand.size
    assert paths.first.tolist() == list(range(pairs + 1))
    paths.flow[:pairs] = ready.trips.demand
    add_up(paths, state)
    refresh(ready.law, state)
    return paths, trees, state


def links_of(paths: Paths, path: int) -> list[int]:
    return paths.pool[paths.start[path] : paths.stop[path]].tolist()


def test_a_pool_grows_and_keeps_what_is_used() -> None:
    done, rest = (no_paths(2, 2, np.empty(6, np.uint16)) for _ in range(2))
    rest = rest._replace(pool=done.pool)
    done.pool[:6] = 7, 9, 1, 2, 3, 4
    done.start[0], done.stop[0], done.flow[0], done.filled[0] = 4, 6, 3.0, 6
    rest.start[:2], rest.stop[:2], rest.first[:] = (2, 0), (4, 2), (0, 1, 2)
    same, _ = with_room(done, 1, rest, 1, 0)
    assert np.shares_memory(same.pool, done.pool)
    more, others = with_room(done, 1, rest, 1, 10)
    assert more.pool.size == 2 * 4 + 10
    assert np.shares_memory(more.pool, others.pool)
    assert (links_of(more, 0), links_of(others, 1)) == ([3, 4], [7, 9])  # the path that is listed already is dropped
    assert (more.flow[0], more.filled[0]) == (3.0, 4)


def test_pricing_finds_the_new_shortest_path_of_braess_and_the_excess() -> None:
    network = braess()
    paths, trees, state = start(network)
    assert len(links_of(paths, 0)) == 3  # by the short cut
    # All six by the short cut: 60 + 16 + 60 = 136; the outer ways cost 60 + 50 = 110.
    more, excess = priced(network, paths, trees, state)
    assert excess == pytest.approx(6 * (136.0 - 110.0))
    assert more.first.tolist() == [0, 2]
    assert more.flow[:2].tolist() == [6.0, 0.0]
    assert len(links_of(more, 1)) == 2
    assert pairs_with_choice(more).tolist() == [0]
    assert pairs_with_choice(paths).size == 0


def test_pricing_drops_empty_paths_that_are_far_from_shortest() -> None:
    network = braess()
    paths, trees, state = start(network)
    more, _ = priced(network, paths, trees, state)
    more.flow[:2] = 0.0, 6.0  # leave the short cut empty, and load one outer way
    add_up(more, state)
    refresh(network.prepared.law, state)
    again, _ = priced(network, more, trees, state)
    assert again.flow[: again.first[1]].tolist() == [6.0, 0.0]
    assert len(links_of(again, 0)) == 2  # the loaded path comes first; what follows is shortest now


def test_shifting_moves_flow_while_it_prices() -> None:
    network = braess()
    paths, trees, state = start(network)
    still, _ = priced(network, paths, trees, state.copy())
    moved, _ = priced(network, paths, trees, state, 0.0)
    assert still.flow[:2].tolist() == [6.0, 0.0]
    assert moved.flow[:2].sum() == pytest.approx(6.0)
    assert moved.flow[1] > 0.0


@settings(max_examples=30, deadline=None)
@given(road_networks())
def test_sweeps_keep_the_demand_and_lower_the_objective(network: Network) -> None:
    paths, trees, state = start(network)
    marks, trips = new_marks(network.links), network.prepared.trips
    order = network.prepared.order

    def objective() -> float:
        flow = np.empty(network.links)
        flow[order] = state[:, FLOW]
        return float(network.latency.integral(flow).sum())

    for _ in range(3):
        paths, _ = priced(network, paths, trees, state)
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
    paths, trees, state = start(network)
    paths, _ = priced(network, paths, trees, state)
    found = sweep(np.array([0]), paths, 0.0, network.prepared.law, state, new_marks(5))
    assert found == pytest.approx(6 * 26.0)
    # One Newton step is exact for straight roads: 10 v + (10 + v) = 50 + (6 - v) on what only one of them uses.
    time, short, outer = state[:, TIME], links_of(paths, 0), links_of(paths, 1)
    assert time[short].sum() == pytest.approx(time[outer].sum())
    assert paths.flow[:2].sum() == pytest.approx(6.0)


def test_differences_below_the_tolerance_are_left_alone() -> None:
    network = braess()
    paths, trees, state = start(network)
    paths, _ = priced(network, paths, trees, state)
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
