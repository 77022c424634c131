"""From decisions to tolls, a linear map: one toll per link, per group of links, per class of travellers, or all of it.

A toll for a group of links (a corridor), for entering an area (a cordon) or for driving in it, for one class of
travellers or for one time of day is a decision that concerns several entries of the table of tolls, class by link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pzos.base.checks import Faults, frozen_indices, require
from pzos.base.types import Matrix, Vector
from pzos.networks.demand import Indices
from pzos.networks.network import Network


@dataclass(frozen=True, eq=False)
class Tariff:
    """Decision ``decision[i]`` is added to what class ``kind[i]`` pays on link ``link[i]``; one name per decision."""

    names: tuple[str, ...]
    decision: Indices
    kind: Indices
    link: Indices
    classes: int
    links: int

    def __len__(self) -> int:
        return len(self.names)

    def tolls(self, x: Vector) -> Matrix:
        """Return the table of tolls, one row per class, one column per link."""
        table = np.zeros((self.classes, self.links))
        np.add.at(table, (self.kind, self.link), np.asarray(x)[self.decision])
        return table

    def payers(self, class_flow: Matrix) -> Vector:
        """Return how many pay each decision's toll: the transpose of the map."""
        counted = np.bincount(self.decision, weights=class_flow[self.kind, self.link], minlength=len(self))
        return counted.astype(np.float64)

    @cached_property
    def alike(self) -> bool:
        """Tell whether all classes pay the same, so that the flow of all links says who pays."""
        concerned = Counter(zip(self.decision.tolist(), self.link.tolist(), strict=True))
        return all(count == self.classes for count in concerned.values())

    @property
    def tolled(self) -> Indices:
        """Return the links that have a toll, in the order in which they were named."""
        return np.array(list(dict.fromkeys(self.link.tolist())), dtype=np.int64)

    @property
    def paying(self) -> tuple[int, ...]:
        """Return the classes that pay any toll."""
        return tuple(np.unique(self.kind).tolist())

    def only(self, decisions: Sequence[int]) -> Tariff:
        """Return the tariff of some of the decisions, in their order."""
        place = {old: new for new, old in enumerate(decisions)}
        kept = np.isin(self.decision, list(decisions))
        moved = np.array([place[old] for old in self.decision[kept].tolist()], dtype=np.int64)
        names = tuple(self.names[old] for old in decisions)
        return Tariff(names, moved, self.kind[kept], self.link[kept], self.classes, self.links)


@dataclass(frozen=True, eq=False)
class Response:
    """Where what is in an answer: the flow of all links, who pays which toll (if that is not said by it), costs."""

    network: Network
    tariff: Tariff

    @property
    def costs(self) -> int:
        """Return where the costs of groups begin."""
        return self.network.links + (0 if self.tariff.alike else len(self.tariff))

    def payers(self, y: Vector) -> Vector:
        """Return how many pay each toll."""
        if not self.tariff.alike:
            return np.asarray(y[self.network.links : self.costs])
        first = self.tariff.kind == 0  # every class pays: one of them names each link once
        decision, link = self.tariff.decision[first], self.tariff.link[first]
        return np.bincount(decision, weights=y[link], minlength=len(self.tariff)).astype(np.float64)

    def paid(self, x: Vector, y: Vector) -> Vector:
        """Return the gradient of the revenue with respect to the answer: the tolls, beside those who pay them."""
        grad = np.zeros(y.size)
        if self.tariff.alike:
            grad[: self.network.links] = self.tariff.tolls(x)[0]
        else:
            grad[self.network.links : self.costs] = x
        return grad


def tariff(
    network: Network, links: Any = None, *, classes: Sequence[int] | None = None, by_class: bool = False
) -> Tariff:
    """Return one toll for each of ``links``, or one common toll for each group of a mapping from names to links.

    Links are numbers or (from, to) pairs; all links by default. ``classes`` says who pays (all by default); with
    ``by_class`` each of them has a toll of its own.

    >>> from pzos.networks import generated_city
    >>> city = generated_city(3, 3, zones=4)
    >>> tariff(city, {"bridge": [0, 1], "tunnel": [5]}).names
    ('bridge', 'tunnel')
    """
    if isinstance(links, Tariff):
        return links
    faults = Faults("toll_problem")
    paying = paying_classes(faults, network, classes)
    faults.raise_if_any()
    if isinstance(links, Mapping):
        require(len(links) > 0, "toll_problem", "links", {}, "at least one group", "name groups of links")
        groups = {str(name): chosen_links(network, part) for name, part in links.items()}
    else:
        chosen, names = chosen_links(network, links), link_names(network)
        groups = {names[link]: np.array([link]) for link in chosen.tolist()}
    kinds = [(kind,) for kind in paying] if by_class else [paying]
    named: list[str] = []
    parts = []
    for group, numbers in groups.items():
        for who in kinds:
            kind, link = (part.ravel() for part in np.meshgrid(who, numbers, indexing="ij"))
            parts.append((np.full(kind.size, len(named)), kind, link))
            named.append(f"{group}, {network.classes[who[0]].name}" if by_class else group)
    decision, kind, link = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return Tariff(tuple(named), decision, kind, link, len(network.classes), network.links)


def cordon_links(network: Network, nodes: Iterable[int]) -> Indices:
    """Return the links that enter the area of these nodes (by their names): where a cordon toll is paid."""
    inside = _inside("cordon_links", network, nodes)
    return _some("cordon_links", np.flatnonzero(~inside[network.tail] & inside[network.head]), "enters")


def area_links(network: Network, nodes: Iterable[int]) -> Indices:
    """Return the links between nodes of an area (by their names): where a zone toll is paid."""
    inside = _inside("area_links", network, nodes)
    return _some("area_links", np.flatnonzero(inside[network.tail] & inside[network.head]), "lies in")


def _inside(where: str, network: Network, nodes: Iterable[int]) -> Any:
    wanted = list(nodes)
    strange = [node for node in wanted if node not in network.node_ids]
    require(not strange, where, "nodes", strange[:5], "names of nodes of the network", "see .node_ids")
    return np.isin(network.node_ids, wanted)


def _some(where: str, links: Indices, verb: str) -> Indices:
    require(links.size > 0, where, "nodes", "an area", f"one that a link {verb}", "name more nodes, or others")
    return links


def chosen_links(network: Network, links: Iterable[Any] | None) -> Indices:
    """Return the numbers of the tolled links, checked, in the order given."""
    if links is None:
        return np.flatnonzero(network.roads)
    require(
        isinstance(links, Iterable), "toll_problem", "links", links, "a list of links", "leave it out for all links"
    )
    numbers = np.array([network.link_number(link) for link in links], dtype=np.int64)
    faults = Faults("toll_problem")
    faults.check(numbers.size > 0, "links", [], "at least one link", "leave it out for all links")
    faults.check(np.unique(numbers).size == numbers.size, "links", numbers, "each link once", "drop the repeated ones")
    faults.raise_if_any()
    return numbers


def paying_classes(faults: Faults, network: Network, classes: Sequence[int] | None) -> tuple[int, ...]:
    """Return the numbers of the classes that pay, all by default; what cannot be is noted."""
    known = list(range(len(network.classes)))
    wanted = frozen_indices(faults, "classes", known if classes is None else classes)
    faults.raise_if_any()
    paying = () if wanted is None else tuple(wanted.tolist())
    fine = bool(paying) and set(paying) <= set(known)
    faults.check(fine, "classes", classes, f"numbers out of {known}", "see .classes")
    return paying


def link_names(network: Network) -> list[str]:
    """Return the links by the names of their ends; of links between the same two also the number."""
    ids = network.node_ids
    names = [f"{ids[tail]} → {ids[head]}" for tail, head in zip(network.tail, network.head, strict=True)]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} (link {link})" for link, name in enumerate(names)]
