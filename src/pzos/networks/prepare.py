"""A network as the compiled solver reads it: links sorted by tail, demand by class and origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pzos.base.checks import Faults
from pzos.base.types import Matrix
from pzos.networks.demand import Indices
from pzos.networks.equilibrium.columns import Trips
from pzos.networks.equilibrium.compiled import compiled
from pzos.networks.equilibrium.law import Law
from pzos.networks.equilibrium.trees import Graph, Whole, grow_tree, tree_space
from pzos.networks.latency import Latency

if TYPE_CHECKING:
    from pzos.networks.network import Network


@dataclass(frozen=True, eq=False)
class Prepared:
    """``order`` lists the links in the solver's order; ``base`` holds the costs without flow or toll, per class."""

    order: Indices
    graph: Graph
    trips: Trips
    law: Law
    base: Matrix


def prepare(network: Network) -> Prepared:
    """Sort, check that every trip has a way, and build the compiled latencies."""
    order = np.argsort(network.tail, kind="stable").astype(np.int64)
    tail, head = network.tail[order], network.head[order]
    graph = Graph(
        np.searchsorted(tail, np.arange(network.nodes + 1)).astype(np.int64),
        tail.astype(np.int32),
        head.astype(np.int32),
        (np.arange(network.nodes) >= network.first_thru).astype(np.int8),
    )
    trips = _trips(network)
    _check_reach(network, graph, trips)
    law = network.latency.law(order)
    _check_own(network)
    worth = np.array([[group.value_of_time] for group in network.classes])
    priced = network.toll_factor * network.toll / worth + network.distance_factor * network.length
    return Prepared(order, graph, trips, law, np.ascontiguousarray(priced[:, order]))


def _trips(network: Network) -> Trips:
    kinds, origins, destinations, amounts = [], [], [], []
    for kind, group in enumerate(network.classes):
        kinds.append(np.full(group.demand.trips.size, kind))
        origins.append(group.demand.origin)
        destinations.append(group.demand.destination)
        amounts.append(group.demand.trips)
    kind_of, origin = np.concatenate(kinds), np.concatenate(origins)
    groups, first = np.unique(kind_of * network.nodes + origin, return_index=True)
    return Trips(
        np.append(first, origin.size).astype(np.int64),
        (groups // network.nodes).astype(np.int32),
        (groups % network.nodes).astype(np.int32),
        np.concatenate(destinations).astype(np.int32),
        np.ascontiguousarray(np.concatenate(amounts)),
    )


@compiled
def _out_of_reach(graph: Graph, trips: Trips) -> Whole:
    """Return the numbers of the pairs that no path joins."""
    nodes = graph.first_out.size - 1
    space, still, cost = tree_space(nodes), np.zeros(nodes), np.ones(graph.head.size)
    found, count = np.empty(trips.demand.size, np.int64), 0
    for group in range(trips.origin.size):
        grow_tree(trips.origin[group], graph, cost, still, space)
        for pair in range(trips.first[group], trips.first[group + 1]):
            if space.distance[trips.destination[pair]] == np.inf:
                found[count] = pair
                count += 1
    return found[:count].copy()


def _check_reach(network: Network, graph: Graph, trips: Trips) -> None:
    lost = _out_of_reach(graph, trips)
    if lost.size:
        group = np.searchsorted(trips.first, lost[:5], side="right") - 1
        starts, ends = network.node_ids[trips.origin[group]], network.node_ids[trips.destination[lost[:5]]]
        pairs = ", ".join(f"{a} -> {b}" for a, b in zip(starts, ends, strict=True))
        faults = Faults("Network")
        faults.check(False, "demand", f"{lost.size} pairs ({pairs}{', ...' if lost.size > 5 else ''})",
                     "a path for every trip", "add links, drop these trips, or check first_thru")  # fmt: skip
        faults.raise_if_any()


def _check_own(network: Network) -> None:
    """Try the user's own latencies at a few flows: finite, not falling, slope not negative."""
    latency: Latency = network.latency
    if latency.own is None:
        return
    faults = Faults("Latency.with_own")
    most = sum(group.demand.total for group in network.classes)
    before = None
    for share in (0.0, 0.01, 0.1, 0.5, 1.0):
        flow = np.full(network.links, share * most)
        time, slope = latency.time(flow)[latency.own.links], latency.slope(flow)[latency.own.links]
        good = np.isfinite(time) & np.isfinite(slope) & (slope >= 0) & (time >= (-np.inf if before is None else before))
        if not good.all():
            which = int(np.argmin(good))
            faults.check(False, f"latency of link {int(latency.own.links[which])} at flow {share * most:g}",
                         (float(time[which]), float(slope[which])), "finite, increasing times and slopes >= 0",
                         "check cost and slope for flows from 0 to the whole demand")  # fmt: skip
            break
        before = time * (1.0 - 1e-12)
    faults.raise_if_any()
