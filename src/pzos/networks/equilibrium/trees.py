"""Shortest-path trees from one origin, for costs of any sign as long as no cycle is negative.

Dijkstra's method on the keys  distance - potential.  With nonnegative costs the potential is zero; otherwise it
is the Bellman-Ford distance from an imagined source that reaches every node for free, which makes all reduced
costs nonnegative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Vector
from pzos.games._compile import compiled, inlined

Long = npt.NDArray[np.int64]
Short = npt.NDArray[np.int32]


class Graph(NamedTuple):
    """Links sorted by tail. ``passable`` is 0 at zones that traffic may leave and enter but not pass through."""

    first_out: Long
    tail: Short
    head: Short
    passable: npt.NDArray[np.int8]


class TreeSpace(NamedTuple):
    """Working arrays of one tree; ``into`` is the link by which the tree enters each node.

    ``order`` lists these links such that each comes after the one before it on the way from the origin.
    """

    distance: Vector
    into: Short
    key: Vector
    heap: Short
    place: Short
    order: Short


@compiled
def tree_space(nodes: int) -> TreeSpace:
    """Allocate the working arrays for a graph with so many nodes."""
    return TreeSpace(
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )


@inlined
def _rise(position: int, node: int, key: Vector, heap: Short, place: Short) -> None:
    """Move ``node`` from ``position`` of the heap towards the top."""
    value = key[node]
    while position > 0:
        above = (position - 1) >> 1
        other = heap[above]
        if key[other] <= value:
            break
        heap[position] = other
        place[other] = position
        position = above
    heap[position] = node
    place[node] = position


@inlined
def _sink(node: int, size: int, key: Vector, heap: Short, place: Short) -> None:
    """Put ``node`` at the top of the heap and move it down to where it belongs."""
    value = key[node]
    position = 0
    while True:
        below = 2 * position + 1
        if below >= size:
            break
        if below + 1 < size and key[heap[below + 1]] < key[heap[below]]:
            below += 1
        other = heap[below]
        if key[other] >= value:
            break
        heap[position] = other
        place[other] = position
        position = below
    heap[position] = node
    place[node] = position


@compiled
def grow_tree(origin: int, graph: Graph, cost: Vector, potential: Vector, space: TreeSpace) -> int:
    """Write the shortest-path tree from ``origin`` into ``space``; return the number of its links.

    The distance is infinite where nothing leads.
    """
    first_out, _, head, passable = graph
    distance, into, key, heap, place, order = space
    for each in range(distance.size):
        distance[each], into[each], place[each] = np.inf, -1, -1
    distance[origin] = 0.0
    node, size, count = origin, 0, 0
    while True:
        place[node] = -2  # settled for good
        if passable[node] or node == origin:
            here = distance[node]
            for link in range(first_out[node], first_out[node + 1]):
                other = head[link]
                there = here + cost[link]
                if there < distance[other] and place[other] != -2:
                    distance[other] = there
                    key[other] = there - potential[other]
                    into[other] = link
                    if place[other] == -1:
                        place[other] = size
                        size += 1
                    _rise(place[other], other, key, heap, place)
        if size == 0:
            return count
        node = heap[0]
        order[count] = into[node]
        count += 1
        size -= 1
        if size > 0:
            _sink(heap[size], size, key, heap, place)


@compiled
def mend_tree(origin: int, graph: Graph, cost: Vector, links: Short, count: int, space: TreeSpace) -> None:
    """As `grow_tree` for costs >= 0, from the tree of ``count`` links (in an ``order``) that was shortest at others.

    Its distances at the new costs are upper bounds. Where a link leads to less, the bound falls, and from there as in
    Dijkstra's method; most of the tree is not touched. ``links`` becomes the new tree.
    """
    first_out, tail, head, passable = graph
    distance, into, _, heap, place, order = space
    for each in range(distance.size):
        distance[each], into[each], place[each] = np.inf, -1, -1
    distance[origin] = 0.0
    for k in range(count):
        link = links[k]
        distance[head[link]] = distance[tail[link]] + cost[link]
        into[head[link]] = link
    size, scanned, changed = 0, 0, False
    while True:
        if scanned < distance.size:  # every node once, in any order; then those that fell
            node = scanned
            scanned += 1
        elif size > 0:
            node = int(heap[0])
            place[node] = -1
            size -= 1
            if size > 0:
                _sink(heap[size], size, distance, heap, place)
        else:
            break
        here = distance[node]
        if (passable[node] or node == origin) and here < np.inf:
            for link in range(first_out[node], first_out[node + 1]):
                other = head[link]
                there = here + cost[link]
                if there < distance[other]:
                    changed = True
                    distance[other] = there
                    into[other] = link
                    if place[other] == -1:
                        place[other] = size
                        size += 1
                    _rise(place[other], other, distance, heap, place)
    if changed:
        _reorder(origin, tail, head, into, links, count, heap, place, order)


@inlined
def _reorder(
    origin: int, tail: Short, head: Short, into: Short, links: Short, count: int, stack: Short, place: Short,
    order: Short
) -> None:  # fmt: skip
    """Overwrite the links of a tree by those of ``into``, each after the one before it, else as they were."""
    place[origin] = -2
    filled = 0
    for k in range(count):
        node, depth = head[links[k]], 0
        while place[node] != -2:
            place[node] = -2
            stack[depth] = node
            depth += 1
            node = tail[into[node]]
        while depth > 0:
            depth -= 1
            order[filled] = into[stack[depth]]
            filled += 1
    for k in range(count):
        links[k] = order[k]


@compiled
def find_potential(graph: Graph, cost: Vector, potential: Vector, into: Short) -> int:
    """Write Bellman-Ford potentials; return -1, or a node on (or behind) a negative cycle, walkable by ``into``.

    Links that leave a zone which may not be passed through lie on no cycle a traveller could drive, so they are
    left out.
    """
    lowest = 0.0
    for each in range(potential.size):
        potential[each], into[each] = 0.0, -1
    for link in range(cost.size):
        lowest = min(lowest, cost[link])
    if lowest >= 0.0:
        return -1
    changed = -1
    for _ in range(potential.size + 1):
        changed = -1
        for link in range(cost.size):
            tail = graph.tail[link]
            if graph.passable[tail]:
                there = potential[tail] + cost[link]
                head = graph.head[link]
                if there < potential[head] - 1e-14 * (1.0 + abs(there)):
                    potential[head] = there
                    into[head] = link
                    changed = head
        if changed < 0:
            return -1
    return changed
