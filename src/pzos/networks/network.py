"""A road network: links with latencies, zones, and the travellers between them. A frozen description.

``Prepared`` is the same as the compiled solver reads it: links sorted by tail, demand by class and origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, at_least, frozen_array, frozen_indices, require, whole
from pzos.base.types import Matrix, Vector
from pzos.networks.demand import Demand, Indices, UserClass
from pzos.networks.equilibrium.paths import Trips, out_of_reach
from pzos.networks.equilibrium.trees import Graph
from pzos.networks.latency import Latency, Law

if TYPE_CHECKING:
    from pzos.networks.assignment import Assignment
    from pzos.networks.references import References
    from pzos.problem.problem import Problem


HOME, CONNECTOR = -1002, -1001
"""The types of links that are no roads: those of travellers who stay at home, and those from and to homes."""


@dataclass(frozen=True, eq=False)
class Network:
    """Links from node ``tail`` to node ``head`` (counted from 0), their latencies, and the classes of travellers.

    Nodes before ``first_thru`` are zones that traffic may leave and enter but not pass through. A class with value
    of time w pays on a link  time + (toll_factor * toll + x) / w + distance_factor * length,  in units of time,
    where x is the toll handed to :meth:`assign`. ``node_ids`` are the names of the nodes in messages and files.
    """

    tail: Indices
    head: Indices
    latency: Latency
    classes: tuple[UserClass, ...]
    nodes: int
    zones: int
    first_thru: int
    length: Vector
    toll: Vector
    toll_factor: float
    distance_factor: float
    node_ids: Indices
    coordinates: npt.NDArray[np.float64] | None
    link_type: Indices
    name: str

    @staticmethod
    def from_arrays(
        tail: npt.ArrayLike,
        head: npt.ArrayLike,
        latency: Latency,
        demand: Demand | npt.ArrayLike | Sequence[UserClass],
        *,
        nodes: int | None = None,
        zones: int | None = None,
        first_thru: int = 0,
        length: npt.ArrayLike = 0.0,
        toll: npt.ArrayLike = 0.0,
        toll_factor: float = 0.0,
        distance_factor: float = 0.0,
        node_ids: npt.ArrayLike | None = None,
        coordinates: npt.ArrayLike | None = None,
        link_type: npt.ArrayLike = 1,
        name: str = "network",
    ) -> Network:
        """Build a network from arrays with one entry per link; ``demand`` is a table of trips, or the classes."""
        faults = Faults("Network")
        start, end = frozen_indices(faults, "tail", tail), frozen_indices(faults, "head", head)
        if start is None or end is None:
            raise faults.error()
        classes = _as_classes(demand)
        last_zone = max(group.demand.highest for group in classes)
        last = int(max(start.max(initial=0), end.max(initial=0), last_zone))
        count = 1 + last if nodes is None else int(nodes)
        network = Network(
            tail=start, head=end, latency=latency, classes=classes, nodes=count,
            zones=1 + last_zone if zones is None else int(zones), first_thru=int(first_thru),
            length=_per_link(length, start.size), toll=_per_link(toll, start.size),
            toll_factor=float(toll_factor), distance_factor=float(distance_factor),
            node_ids=np.arange(count) if node_ids is None else np.array(node_ids, dtype=np.int64),
            coordinates=None if coordinates is None else np.array(coordinates, dtype=np.float64),
            link_type=np.ascontiguousarray(np.broadcast_to(np.asarray(link_type, dtype=np.int64), start.shape)),
            name=str(name),
        )  # fmt: skip
        _check(network)
        return network

    @property
    def links(self) -> int:
        """Return the number of links."""
        return int(self.tail.size)

    @property
    def roads(self) -> npt.NDArray[np.bool_]:
        """Tell which links are roads: all, unless demand is elastic."""
        return ~np.isin(self.link_type, (HOME, CONNECTOR))

    @property
    def demand(self) -> Demand:
        """Return the demand of all classes together."""
        return Demand.from_list(*_all_trips(self))

    @property
    def worth(self) -> Matrix:
        """Return the value of time of every class, one row each."""
        return np.array([[group.value_of_time] for group in self.classes])

    @cached_property
    def prepared(self) -> Prepared:
        """Return the network as the compiled solver reads it, checked and built once."""
        return _prepare(self)

    def with_classes(
        self, values_of_time: Iterable[float], shares: Iterable[float] | None = None, names: Iterable[str] = ()
    ) -> Network:
        """Return the network with its demand split into classes, one per value of time (equal shares by default)."""
        faults = Faults("Network.with_classes")
        worth = _listed(faults, "values_of_time", values_of_time)
        parts = [1.0 / max(len(worth), 1)] * len(worth) if shares is None else _listed(faults, "shares", shares)
        faults.raise_if_any()
        labels = list(names) or [f"class {i + 1}" for i in range(len(worth))]
        faults.check(len(worth) > 0, "values_of_time", worth, "at least one number", "one per class")
        faults.check(len(parts) == len(worth) == len(labels), "shares", parts, f"{len(worth)} numbers", "one per class")
        faults.check(abs(sum(parts) - 1.0) < 1e-9, "shares", parts, "shares that add up to 1", "rescale them")
        faults.raise_if_any()
        everyone = self.demand
        made = [UserClass(everyone.scaled(s), w, n) for s, w, n in zip(parts, worth, labels, strict=True)]
        return replace(self, classes=tuple(made))

    def link_number(self, link: Any) -> int:
        """Return the number of a link given by its number or by its (from, to) pair of node names."""
        if isinstance(link, tuple):
            found = np.flatnonzero((self.node_ids[self.tail] == link[0]) & (self.node_ids[self.head] == link[1]))
            require(found.size == 1, "link", "link", link, "the end nodes of exactly one link",
                    f"{found.size} links join these nodes; give the link's number")  # fmt: skip
            return int(found[0])
        last = self.links - 1
        words = f"a link number from 0 to {last} or a pair of nodes"
        whole(0, "see .tail", most=last, expected=words).require("link", "link", link)
        return int(link)

    def tolls_on(self, links: Indices, x: npt.ArrayLike) -> Vector:
        """Return the tolls ``x`` of some links as one toll per link, 0 on the others."""
        tolls = np.zeros(self.links)
        tolls[links] = x
        return tolls

    def assign(
        self,
        tolls: npt.ArrayLike | None = None,
        gap: float = 1e-10,
        *,
        rounds: int = 400,
        above_gap: Literal["raise", "return"] = "raise",
        reference: Assignment | References | None = None,
        threads: int = 1,
    ) -> Assignment:
        """Return the user equilibrium at ``tolls`` (one per link, or one row per class), to the relative ``gap``.

        The solver starts cold, or from the paths of ``reference``, another equilibrium of this network or several
        (``References``): the answer is a function of the tolls and the reference alone, bit for bit. An answer above
        the gap is an error (AboveGap) unless ``above_gap="return"``; then look at ``Assignment.converged``. More
        ``threads`` give the same bits; they pay where there are hundreds of origins and thousands of nodes; with more
        than 300,000 pairs one works alone.
        """
        from pzos.networks.assignment import assign

        return assign(self, tolls, gap, rounds, above_gap, reference, threads)

    def system_optimum(self, gap: float = 1e-10) -> Assignment:
        """Return the flows of least total travel time (the equilibrium under marginal-cost pricing)."""
        from pzos.networks.assignment import system_optimum

        return system_optimum(self, gap)

    def toll_problem(
        self,
        links: Any = None,
        objective: str | Mapping[str, float] | Callable[..., Any] = "revenue",
        **options: Any,
    ) -> Problem:
        """Return the leader's problem of choosing tolls; see :func:`pzos.networks.tolls.toll_problem`."""
        from pzos.networks.tolls import toll_problem

        return toll_problem(self, links, objective, **options)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is prepared from them holds compiled code, and is prepared again elsewhere."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return (
            f"Network {self.name!r}: {self.nodes} nodes, {self.links} links, {self.zones} zones, "
            f"{sum(c.demand.trips.size for c in self.classes)} pairs, "
            + ("1 class" if len(self.classes) == 1 else f"{len(self.classes)} classes")
        )


def _as_classes(demand: Any) -> tuple[UserClass, ...]:
    if isinstance(demand, Demand):
        return (UserClass(demand),)
    if isinstance(demand, Sequence) and demand and all(isinstance(item, UserClass) for item in demand):
        return tuple(demand)
    return (UserClass(Demand.from_matrix(demand)),)


def _listed(faults: Faults, name: str, values: Iterable[float]) -> list[float]:
    """Return the numbers of a list or of any other iterable, or note that they are none."""
    array = frozen_array(faults, name, list(values) if isinstance(values, Iterable) else values)
    if array is None or not faults.check(array.ndim == 1, name, array, "a list of numbers", "one per class"):
        return []
    return [float(value) for value in array]


def _all_trips(network: Network) -> list[npt.NDArray[Any]]:
    """Return origin, destination and trips of all classes, one after the other."""
    parts = [(group.demand.origin, group.demand.destination, group.demand.trips) for group in network.classes]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _per_link(values: npt.ArrayLike, links: int) -> Vector:
    array = np.array(values, dtype=np.float64)
    return np.full(links, float(array)) if array.ndim == 0 else array


def _check(network: Network) -> None:
    faults = Faults("Network")
    links, nodes = network.links, network.nodes
    faults.check(links > 0, "tail", network.tail, "at least one link", "give one entry per link")
    for name in ("head", "latency", "length", "toll"):
        size = len(getattr(network, name))
        faults.check(size == links, name, size, f"{links} entries, one per link, as tail has", "check the arrays")
    inside = bool(network.tail.min(initial=0) >= 0 and network.head.min(initial=0) >= 0)
    top = int(max(network.tail.max(initial=0), network.head.max(initial=0)))
    faults.check(inside and top < nodes, "tail, head", top, f"node numbers from 0 to {nodes - 1}", "count from 0")
    faults.check(1 <= network.zones <= nodes, "zones", network.zones, f"a number from 1 to {nodes}", "check the arrays")
    faults.check(0 <= network.first_thru <= nodes, "first_thru", network.first_thru, f"a number from 0 to {nodes}",
                 "0 lets traffic pass through every node")  # fmt: skip
    for group in network.classes:
        demand = group.demand
        faults.check(demand.highest < nodes, f"demand of class {group.name!r}", demand.highest,
                     f"nodes from 0 to {nodes - 1}", "check it")  # fmt: skip
        faults.check(demand.trips.size > 0, f"demand of class {group.name!r}", 0, "at least one trip", "add trips")
    for name in ("toll_factor", "distance_factor"):
        at_least(0, "a finite number >= 0", "0.0 ignores it").note(faults, name, getattr(network, name))
    faults.check(bool(np.isfinite(network.length).all() and np.isfinite(network.toll).all()), "length, toll",
                 "not finite", "finite numbers", "check the arrays")  # fmt: skip
    faults.check(network.node_ids.shape == (nodes,), "node_ids", network.node_ids, f"{nodes} names", "one per node")
    shape = None if network.coordinates is None else network.coordinates.shape
    faults.check(shape in (None, (nodes, 2)), "coordinates", shape, f"({nodes}, 2)", "one (x, y) per node")
    faults.raise_if_any()


# ---- as the compiled solver reads it ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prepared:
    """``order`` lists the links in the solver's order; ``base`` holds the costs without flow or toll, per class."""

    order: Indices
    graph: Graph
    trips: Trips
    law: Law
    base: Matrix


def _prepare(network: Network) -> Prepared:
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
    everyone = sum(group.demand.total for group in network.classes)
    network.latency.check_own(everyone)
    network.latency.check_range(everyone)
    priced = network.toll_factor * network.toll / network.worth + network.distance_factor * network.length
    return Prepared(order, graph, trips, law, np.ascontiguousarray(priced[:, order]))


def _trips(network: Network) -> Trips:
    origin, destination, trips = _all_trips(network)
    kind = np.repeat(np.arange(len(network.classes)), [group.demand.trips.size for group in network.classes])
    groups, first = np.unique(kind * network.nodes + origin, return_index=True)
    return Trips(
        np.append(first, origin.size).astype(np.int64),
        (groups // network.nodes).astype(np.int32),
        (groups % network.nodes).astype(np.int32),
        kind.astype(np.int32),
        destination.astype(np.int32),
        np.ascontiguousarray(trips),
    )


def _check_reach(network: Network, graph: Graph, trips: Trips) -> None:
    lost = out_of_reach(graph, trips)
    if lost.size:
        group = np.searchsorted(trips.first, lost[:5], side="right") - 1
        starts, ends = network.node_ids[trips.origin[group]], network.node_ids[trips.destination[lost[:5]]]
        pairs = ", ".join(f"{a} -> {b}" for a, b in zip(starts, ends, strict=True))
        require(False, "Network", "demand", f"{lost.size} pairs ({pairs}{', ...' if lost.size > 5 else ''})",
                "a path for every trip", "add links, drop these trips, or check first_thru")  # fmt: skip
