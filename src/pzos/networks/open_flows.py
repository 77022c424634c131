"""What an equilibrium leaves open: flows that can change while every traveller keeps a cheapest path.

Travel times, and the flow of every link whose time rises with its flow, are unique. Open are the flows of links with
constant cost where ways tie, and who of two classes takes which of two ways. Two equilibria differ by exchanges between
ways that cost the same such that no link with rising time feels them. With D the loops that close the cheapest links
of each origin (as an incidence, bundled where origins share them) and R its rows of links with rising times, these
are the D z with R z = 0. A z drawn at random and projected onto R z = 0 moves, with probability one, whatever can move.

That a way which nobody takes can only gain is not looked at: some flows that are named may in fact be fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pzos.base.keys import Keys
from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled, inlined
from pzos.networks.demand import Indices
from pzos.networks.equilibrium.paths import Paths, Trips, link_code
from pzos.networks.equilibrium.trees import Graph, Long, Short, TreeSpace, find_potential, grow_tree, tree_space
from pzos.networks.latency import CONSTANT
from pzos.networks.tariffs import link_names

if TYPE_CHECKING:
    from pzos.networks.assignment import Assignment
    from pzos.networks.network import Network

_TIE = 1e-7  # ways that cost the same but for this share tie
_MOVES = 1e-6  # of the largest move; less is rounding
_NAMED = 5


@dataclass(frozen=True, eq=False)
class OpenFlows:
    """The ``links`` whose flow is not determined, and for each class those whose flow of that class is not.

    ``change`` is one change of the flows, class by link, that leaves every traveller on a cheapest path.
    """

    network: Network
    links: Indices
    by_class: tuple[Indices, ...]
    change: Matrix

    def __bool__(self) -> bool:
        return bool(np.any(self.change))

    def matter(self, weights: Matrix | Vector) -> bool:
        """Tell whether the sum of weights times flows (one row per class, or one for all) is open too."""
        parts = np.broadcast_to(weights, self.change.shape) * self.change
        return bool(abs(parts.sum()) > _MOVES * np.abs(parts).sum())

    def sentences(self) -> list[str]:
        """Return what is open, in words: first the links, then the classes."""
        found = []
        if self.links.size:
            found.append(f"the flow of {self._named(self.links)} is not determined: ways of constant cost tie there")
        for group, links in zip(self.network.classes, self.by_class, strict=True):
            if links.size and len(self.by_class) > 1:
                found.append(f"how many of class {group.name!r} use {self._named(links)} is not determined")
        return found

    def _named(self, links: Indices) -> str:
        names = [link_names(self.network)[link] for link in links[:_NAMED].tolist()]
        more = f" and {links.size - _NAMED} more" if links.size > _NAMED else ""
        return f"{links.size} {'link' if links.size == 1 else 'links'} ({', '.join(names)}{more})"


def open_flows(answer: Assignment) -> OpenFlows:
    """Return what an equilibrium leaves open; see ``Assignment.open_flows``."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import lsqr

    network, ready = answer.network, answer.network.prepared
    kind, sizes, links, signs = _loops(answer)
    loops = csc_array((signs, links, np.append(0, np.cumsum(sizes))), shape=(network.links, kind.size)).tocsr()
    rising = loops[np.flatnonzero(ready.law.kind != CONSTANT)]
    drawn = Keys(0).direction(0, 0, max(kind.size, 1))[: kind.size]
    amount = drawn - lsqr(rising, np.asarray(rising @ drawn), atol=1e-14, btol=1e-14, iter_lim=20 * network.links)[0]
    change = np.zeros((len(network.classes), network.links))
    for each in range(change.shape[0]):
        change[each, ready.order] = loops @ np.where(kind == each, amount, 0.0)
    change[np.abs(change) <= _MOVES * np.abs(drawn).max(initial=0.0)] = 0.0
    total = np.abs(change.sum(axis=0)) > _MOVES * np.abs(change).max(initial=0.0)
    by_class = tuple(np.flatnonzero(row) for row in change)
    return OpenFlows(network, np.flatnonzero(total), by_class, change)


def _loops(answer: Assignment) -> tuple[Long, Long, Long, Vector]:
    """Return the loops of cheapest links: class and number of links of each, and the links with their signs."""
    network, ready = answer.network, answer.network.prepared
    cost = np.ascontiguousarray(answer.cost[:, ready.order])
    space, tree, potential = tree_space(network.nodes), np.empty(network.nodes, np.int32), np.zeros(network.nodes)
    seen: set[tuple[int, int]] = set()
    kinds: list[int] = []
    parts: list[Any] = []
    before = -1
    for group, kind in enumerate(ready.trips.group_class.tolist()):
        if kind != before:
            find_potential(ready.graph, cost[kind], potential, space.into)
            before = kind
        with np.errstate(over="ignore"):
            closing, codes = _ties(
                group, ready.graph, ready.trips, answer.path_sets, cost[kind], potential, space, tree
            )
        for link, code in zip(closing.tolist(), codes.tolist(), strict=True):
            if (kind, code) not in seen:
                seen.add((kind, code))
                kinds.append(kind)
                parts.append(_loop(link, ready.trips.origin[group], ready.graph, tree))
    sizes = np.array([links.size for links, _ in parts], dtype=np.int64)
    links, signs = (np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in (0, 1))
    return np.array(kinds, dtype=np.int64), sizes, links.astype(np.int64), signs


@compiled
def _ties(
    group: int, graph: Graph, trips: Trips, paths: Paths, cost: Vector, potential: Vector, space: TreeSpace, tree: Short
) -> tuple[Long, Long]:
    """Return the links that close a loop of cheapest links which flow of this group passes, and the loops' codes.

    ``tree`` becomes a tree of cheapest links, used ones where there is a choice. Loops of equal codes are equal.
    """
    first_out, tail, head, passable = graph
    origin, links = trips.origin[group], tail.size
    used = np.zeros(links, np.bool_)
    for path in range(paths.first[trips.first[group]], paths.first[trips.first[group + 1]]):
        if paths.flow[path] > 0.0:
            for k in range(paths.start[path], paths.stop[path]):
                used[paths.pool[k]] = True
    count = grow_tree(origin, graph, cost, potential, space)
    code, queue, flows = np.zeros(tree.size, np.int64), space.heap, np.zeros(tree.size, np.bool_)
    for node in range(tree.size):
        tree[node] = -1
    queue[0], size, done = origin, 1, 0
    while done < size:  # first along used links: where flow arrives, it can also be taken away
        for link in range(first_out[queue[done]], first_out[queue[done] + 1]):
            if used[link] and not flows[head[link]] and head[link] != origin:
                flows[head[link]], tree[head[link]] = True, link
                code[head[link]] = code[tail[link]] + link_code(np.int64(link))
                queue[size] = head[link]
                size += 1
        done += 1
    for k in range(count):
        link = space.order[k]
        if not flows[head[link]]:
            tree[head[link]] = link
            code[head[link]] = code[tail[link]] + link_code(np.int64(link))
    found, codes, size = np.empty(links, np.int64), np.empty(links, np.int64), 0
    for link in range(links):
        start, end = tail[link], head[link]
        if flows[end] and tree[end] != link and (passable[start] or start == origin):
            extra = space.distance[start] + cost[link] - space.distance[end]
            if used[link] or extra <= _TIE * abs(space.distance[end]):
                found[size], codes[size] = link, code[start] + link_code(np.int64(link)) - code[end]
                size += 1
    return found[:size].copy(), codes[:size].copy()


@compiled
def _loop(closing: int, origin: int, graph: Graph, tree: Short) -> tuple[Long, Vector]:
    """Return the links of the loop that a link closes: + on its side, - on the other, from where the two ways part."""
    tail, head = graph.tail, graph.head
    sign = np.zeros(tail.size, np.int64)
    sign[closing] = 1
    _walk(tail[closing], origin, tail, tree, sign, 1)
    _walk(head[closing], origin, tail, tree, sign, -1)
    links = np.flatnonzero(sign)
    return links, sign[links].astype(np.float64)


@inlined
def _walk(node: int, origin: int, tail: Short, tree: Short, sign: Long, amount: int) -> None:
    while node != origin:
        sign[tree[node]] += amount
        node = tail[tree[node]]
