"""The same city with demand that answers to costs, or at several times of day: again networks, solved like any other.

*Elastic demand* by the excess-demand formulation: every pair of zones has a link for staying at home, whose cost is the
inverse demand. With trips d0 at today's cost c0 and elasticity e, the demand is  d(c) = d0 (1 + e (1 - c / c0)),  so
that d0 (1 + e) may travel and s of them stay at home at the cost  c0 s / (e d0).  Homes and goals are nodes of their
own, so that nobody else can pass. *Times of day* are copies of the network that share nothing but the tariff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, positive
from pzos.base.types import Matrix, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Demand, Indices, UserClass
from pzos.networks.latency import Latency
from pzos.networks.network import CONNECTOR, HOME, Network


def with_elastic_demand(network: Network, elasticity: float, *, gap: float = 1e-10) -> Network:
    """Return the network in which fewer travel as trips become dearer: by ``elasticity`` per cent for one per cent.

    The roads keep their numbers; links of type HOME and CONNECTOR come after them.
    """
    positive("0.3 is usual: 1 % dearer, 0.3 % fewer trips").require("with_elastic_demand", "elasticity", elasticity)
    faults = Faults("with_elastic_demand")
    faults.check(network.latency.own is None, "network.latency", "own functions", "BPR or affine latencies",
                 "own functions know links by their numbers")  # fmt: skip
    faults.raise_if_any()
    free, zones = network.assign(gap=gap), max(group.demand.highest for group in network.classes) + 1
    # A zone that may not be passed through is cut in two: roads leave the old node and arrive at a new one.
    closed = network.first_thru
    head = np.where(network.head < closed, network.nodes + network.head, network.head)
    arrival = np.where(np.arange(zones) < closed, network.nodes, 0) + np.arange(zones)
    nodes = network.nodes + closed
    tails, heads, slopes, classes = [network.tail], [head], [], []
    kinds = [network.link_type]
    for kind, group in enumerate(network.classes):
        home, goal, demand = nodes + np.arange(zones), nodes + zones + np.arange(zones), group.demand
        nodes += 2 * zones
        cost = np.maximum(free.skim(kind)[demand.origin, demand.destination], 1e-9)
        tails += [home, arrival, home[demand.origin]]
        heads += [np.arange(zones), goal, goal[demand.destination]]
        slopes += [np.zeros(2 * zones), cost / (elasticity * demand.trips)]
        kinds += [np.full(2 * zones, CONNECTOR), np.full(demand.trips.size, HOME)]
        willing = Demand(home[demand.origin], goal[demand.destination], (1.0 + elasticity) * demand.trips)
        classes.append(UserClass(willing, group.value_of_time, group.name))
    steep = np.concatenate(slopes)
    return replace(
        network, tail=np.concatenate(tails), head=np.concatenate(heads), latency=_longer(network.latency, steep),
        classes=tuple(classes), nodes=nodes, zones=nodes, first_thru=0, length=_padded(network.length, steep.size),
        toll=_padded(network.toll, steep.size), node_ids=_more_ids(network.node_ids, nodes),
        coordinates=None if network.coordinates is None else _more_places(network, nodes, zones),
        link_type=np.concatenate(kinds), name=f"{network.name}, elasticity {elasticity:g}",
    )  # fmt: skip


def _longer(latency: Latency, slope: Vector) -> Latency:
    more = Latency.affine(np.zeros(slope.size), slope)
    return Latency(
        np.concatenate([latency.base, more.base]), np.concatenate([latency.rise, more.rise]),
        np.concatenate([latency.capacity, more.capacity]), np.concatenate([latency.power, more.power]),
    )  # fmt: skip


def _padded(values: Vector, more: int) -> Vector:
    return np.concatenate([values, np.zeros(more)])


def _more_ids(ids: Indices, nodes: int) -> Indices:
    return np.concatenate([ids, ids.max() + 1 + np.arange(nodes - ids.size)])


def _more_places(network: Network, nodes: int, zones: int) -> npt.NDArray[np.float64]:
    """Return the coordinates with those of new nodes, which are where their zones are."""
    places = np.full((0, 2), np.nan) if network.coordinates is None else network.coordinates
    copies = (nodes - network.nodes - network.first_thru) // zones
    return np.concatenate([places, places[: network.first_thru], *([places[:zones]] * copies)])


def trips_made(state: Assignment) -> list[Vector]:
    """Return how many travel between each pair of zones, one array per class; others stay at home."""
    network = state.network
    home = np.flatnonzero(network.link_type == HOME)
    counts = [group.demand.trips.size for group in network.classes]
    if home.size == 0:
        return [group.demand.trips for group in network.classes]
    stayed = np.split(state.flow[home], np.cumsum(counts)[:-1])
    return [group.demand.trips - each for group, each in zip(network.classes, stayed, strict=True)]


def surplus(state: Assignment) -> Vector | None:
    """Return the surplus of each class in money, half of  s d^2  over its pairs; None where demand is not elastic."""
    network = state.network
    home = np.flatnonzero(network.link_type == HOME)
    if home.size == 0:
        return None
    made = trips_made(state)
    slopes = np.split(network.latency.rise[home], np.cumsum([each.size for each in made])[:-1])
    worth = network.worth.ravel()
    return np.array([0.5 * w * float(s @ d**2) for w, s, d in zip(worth, slopes, made, strict=True)])


def with_time_slices(network: Network, shares: Mapping[str, float]) -> Network:
    """Return one network of copies, one for each time of day, whose demand is this share of the network's.

    Link e of the k-th slice is link e + k * links; its nodes are named by those of the network plus k times the same
    power of ten. Flows of different slices do not meet; each slice is as long as the network's demand is meant for.
    """
    faults = Faults("with_time_slices")
    faults.check(len(shares) > 0, "shares", {}, "at least one time of day", 'try {"morning": 1.0, "noon": 0.6}')
    for name, share in shares.items():
        positive("the share of the network's demand").note(faults, f"shares[{name!r}]", share)
    faults.check(network.latency.own is None, "network.latency", "own functions", "BPR or affine latencies",
                 "own functions know links by their numbers")  # fmt: skip
    faults.raise_if_any()
    count, step = len(shares), 10 ** len(str(int(network.node_ids.max())))
    slices = range(count)

    # Node n of slice k is n * count + k: closed nodes and zones stay in front.
    def at(nodes: Indices, k: int) -> Indices:
        return nodes * count + k

    def tiled(values: Vector) -> Vector:
        return np.tile(values, count)

    classes = []
    for group in network.classes:
        day = group.demand
        origin, destination = (np.concatenate([at(ends, k) for k in slices]) for ends in (day.origin, day.destination))
        trips = np.concatenate([share * day.trips for share in shares.values()])
        classes.append(UserClass(Demand.from_list(origin, destination, trips), group.value_of_time, group.name))
    old = network.latency
    latency = Latency(tiled(old.base), tiled(old.rise), tiled(old.capacity), tiled(old.power))
    ids = np.stack([network.node_ids + k * step for k in slices], axis=1).ravel()
    places: Matrix | None = None if network.coordinates is None else np.repeat(network.coordinates, count, axis=0)
    return replace(
        network, tail=np.concatenate([at(network.tail, k) for k in slices]),
        head=np.concatenate([at(network.head, k) for k in slices]), latency=latency, classes=tuple(classes),
        nodes=count * network.nodes, zones=count * network.zones, first_thru=count * network.first_thru,
        length=tiled(network.length), toll=tiled(network.toll), node_ids=ids, coordinates=places,
        link_type=np.tile(network.link_type, count), name=f"{network.name}, {', '.join(shares)}",
    )  # fmt: skip
