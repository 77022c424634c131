"""The relative gap computed by other means than the solver: scipy's shortest paths, and sums without rounding.

Nothing here shares code with the compiled solver, so that a mistake there cannot hide itself.
"""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.networks.assignment import checked_tolls, fixed_costs
from pzos.networks.demand import Demand, Indices
from pzos.networks.network import Network


def independent_gap(network: Network, class_flow: npt.ArrayLike, tolls: npt.ArrayLike | None = None) -> float:
    """Return (total cost - cost of all trips on shortest paths) / (sum of flow times |cost|) at these link flows.

    ``class_flow`` has one row per class (a single row may be given flat). That it carries the demand is checked
    first: an unbalanced flow has no gap.
    """
    flows = np.atleast_2d(np.array(class_flow, dtype=np.float64))
    if flow_imbalance(network, flows) > 1e-6:
        return float("inf")
    cost = network.latency.time(flows.sum(axis=0)) + fixed_costs(network, checked_tolls(network, tolls))
    demands = [group.demand for group in network.classes]
    least = [_shortest(network, row, each) * each.trips for row, each in zip(cost, demands, strict=True)]
    excess = fsum([*(cost * flows).ravel(), *(-np.concatenate(least))])
    return excess / fsum((np.abs(cost) * flows).ravel())


def flow_imbalance(network: Network, class_flow: Matrix) -> float:
    """Return the largest violation of flow balance at any node, relative to the total demand."""
    worst = 0.0
    for kind, group in enumerate(network.classes):
        net = np.zeros(network.nodes)
        np.add.at(net, network.tail, class_flow[kind])
        np.add.at(net, network.head, -class_flow[kind])
        np.add.at(net, group.demand.origin, -group.demand.trips)
        np.add.at(net, group.demand.destination, group.demand.trips)
        worst = max(worst, float(np.abs(net).max()) / group.demand.total)
    return worst


def _shortest(network: Network, cost: Vector, demand: Demand) -> Vector:
    """Return the cost of the shortest path of each pair; closed zones get a second node that traffic starts from."""
    from scipy.sparse.csgraph import bellman_ford, dijkstra

    closed = network.first_thru
    tail = np.where(network.tail < closed, network.tail + network.nodes, network.tail)
    graph = sparse_graph(tail, network.head, cost, network.nodes + closed)
    starts = np.unique(demand.origin)
    sources = np.where(starts < closed, starts + network.nodes, starts)
    method = dijkstra if cost.min() >= 0 else bellman_ford
    distance = np.atleast_2d(method(graph, indices=sources))
    result: Vector = distance[np.searchsorted(starts, demand.origin), demand.destination]
    return result


def sparse_graph(tail: Indices, head: Indices, cost: Vector, nodes: int) -> Any:
    """Return the links as scipy's matrix; of parallel links only the cheapest counts, while scipy would add them up."""
    from scipy.sparse import csr_array

    best = np.lexsort((cost, head, tail))
    new = np.ones(best.size, dtype=bool)
    new[1:] = (np.diff(tail[best]) != 0) | (np.diff(head[best]) != 0)
    keep = best[new]
    return csr_array((cost[keep], (tail[keep], head[keep])), shape=(nodes, nodes))
