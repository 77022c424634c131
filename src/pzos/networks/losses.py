"""What a trip costs whom: the mean trip of every class of travellers, or of every zone of origin, in money."""

from __future__ import annotations

from math import fsum
from typing import Literal

import numpy as np

from pzos.base.types import Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import Network

By = Literal["class", "zone"]
"""Whose costs are compared: those of the classes, or those of the zones of origin."""


def origins(network: Network) -> Indices:
    """Return the nodes at which trips begin."""
    return np.unique(np.concatenate([group.demand.origin for group in network.classes]))


def group_names(network: Network, by: By) -> list[str]:
    """Return the names of the classes, or of the zones."""
    if by == "class":
        return [group.name for group in network.classes]
    return [f"zone {network.node_ids[node]}" for node in origins(network)]


def mean_costs(state: Assignment, by: By) -> Vector:
    """Return the cost of the mean trip in money, time and tolls together, one number per class or zone of origin."""
    network = state.network
    worth = [group.value_of_time for group in network.classes]
    if by == "class":
        totals = [fsum(row) for row in state.cost * state.class_flow]
        trips = [group.demand.total for group in network.classes]
        return np.array([each * total / count for each, total, count in zip(worth, totals, trips, strict=True)])
    money, count = np.zeros(network.nodes), np.zeros(network.nodes)
    for kind, group in enumerate(network.classes):
        demand, cost = group.demand, state.skim(kind)
        np.add.at(money, demand.origin, worth[kind] * demand.trips * cost[demand.origin, demand.destination])
        np.add.at(count, demand.origin, demand.trips)
    zones = origins(network)
    return np.asarray(money[zones] / count[zones])
