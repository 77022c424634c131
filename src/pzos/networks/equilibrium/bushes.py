"""Equilibria by bushes, for more pairs than paths could be kept of: Dial's algorithm B.

All flow from one origin (of one class) lies on an acyclic set of links, its bush. A bush is kept as its links, node by
node in an order in which every link comes after those into its tail, with the flow of each: labels of all nodes are
one pass over this list, and memory grows with origins times nodes, whatever the number of pairs. Low labels are the
costs of the cheapest ways in the bush, high labels those of the dearest ways that carry flow. Node by node, from the
last, flow moves from the dearest to the cheapest way, from where the two part, by a Newton step; the next move meets
the new costs. Links without flow leave a bush. A link enters if it shortens the low label of its head and leads to a
higher high label: no link leads to a lower one, so no cycle can close.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled, inlined
from pzos.networks.equilibrium.paths import Paths, Trips, price_fixed
from pzos.networks.equilibrium.solver import CONVERGED, TIRED
from pzos.networks.equilibrium.trees import Graph, Long, Short, TreeSpace, grow_tree, mend_tree, tree_space
from pzos.networks.latency import FLOW, SLOPE, TIME, Law, latency, refresh

_ROOM = 2  # links per node that a bush has room for; memory that is never touched costs nothing
_HALVINGS = 30
_STRICT = 1e-13  # labels that differ by less are the same
_ROUNDING = 1e-12


class Bushes(NamedTuple):
    """Group g has size[g] links with their flow, such that the links into a node are together, after all before it."""

    links: npt.NDArray[np.int32]
    flow: Matrix
    size: Long


class Labels(NamedTuple):
    """Per node: cheapest and dearest used cost, where in the bush the last links of these ways are, and the order."""

    low: Vector
    high: Vector
    low_at: Short
    high_at: Short
    place: Short


class Builder(NamedTuple):
    """What a bush is built with: the links by head, the members and their flow, how many are still to come per node."""

    first_in: Long
    into: Short
    member: npt.NDArray[np.bool_]
    flow: Vector
    missing: Short
    order: Short


class BushEffort(NamedTuple):
    """How hard to try: ``rounds`` and ``patience`` as for paths; in a round each bush is rebuilt and improved, then
    improved ``again`` up to so many times, until it pays too much by a ``share`` of the last gap, which is taken to be
    ``first`` in the beginning. It is measured when what new bushes pay too much is at most ``sure`` times the target.
    """

    rounds: int = 400
    patience: int = 25
    again: int = 20
    share: float = 0.25
    first: float = 0.1
    sure: float = 1.2


@compiled
def new_labels(nodes: int) -> Labels:
    """Allocate labels of so many nodes."""
    return Labels(
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )


@compiled
def new_builder(graph: Graph) -> Builder:
    """Sort the links by head, and allocate the rest."""
    nodes, links = graph.first_out.size - 1, graph.head.size
    first, into, filled = np.zeros(nodes + 1, np.int64), np.empty(links, np.int32), np.zeros(nodes, np.int64)
    for link in range(links):
        first[graph.head[link] + 1] += 1
    for node in range(nodes):
        first[node + 1] += first[node]
    for link in range(links):
        node = graph.head[link]
        into[first[node] + filled[node]] = link
        filled[node] += 1
    return Builder(
        first,
        into,
        np.zeros(links, np.bool_),
        np.zeros(links),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
    )


@compiled
def relabel(origin: int, links: Short, flow: Vector, size: int, graph: Graph, cost: Vector, labels: Labels) -> float:
    """Write the labels of a bush at the present costs; return what its flow pays above the cheapest ways in it."""
    tail, head = graph.tail, graph.head
    low, high, low_at, high_at, place = labels
    for node in range(low.size):
        low[node], high[node], low_at[node], high_at[node], place[node] = np.inf, np.inf, -1, -1, -1
    low[origin] = high[origin] = 0.0
    excess, k = 0.0, 0
    while k < size:
        node, begin = head[links[k]], k
        least, most, paid, arriving = np.inf, -np.inf, 0.0, 0.0
        while k < size and head[links[k]] == node:
            link = links[k]
            reached = low[tail[link]] + cost[link]
            if reached < least:
                least = reached
                low_at[node] = k
            if high_at[tail[link]] < 0 and tail[link] != origin:
                flow[k] = 0.0  # what rounding has left behind a node that nothing flows into
            if flow[k] > 0.0:
                paid += flow[k] * reached
                arriving += flow[k]
                if high[tail[link]] + cost[link] > most:
                    most = high[tail[link]] + cost[link]
                    high_at[node] = k
            k += 1
        if high_at[node] < 0:
            link = links[low_at[node]]
            most = high[tail[link]] + cost[link]
        low[node], high[node], place[node] = least, most, begin
        excess += paid - arriving * least
    return excess


@inlined
def _add(
    node: int, end: int, into: Short, links: Short, tail: Short, flow: Vector, amount: float, fixed: Vector,
    state: Matrix, price: Vector, kind: npt.NDArray[np.int64], coefficient: Matrix, cost: Any, slope: Any
) -> float:  # fmt: skip
    """Add ``amount`` along the links ``into`` from ``end`` to ``node``; return what they cost now."""
    total = 0.0
    while node != end:
        k = into[node]
        link = links[k]
        flow[k] = max(flow[k] + amount, 0.0)
        moved = max(state[link, FLOW] + amount, 0.0)
        time, rate = latency(link, moved, kind, coefficient, cost, slope)
        state[link, FLOW], state[link, TIME], state[link, SLOPE] = moved, time, rate
        price[link] = time + fixed[link]
        total += price[link]
        node = tail[link]
    return total


@compiled
def shift(
    links: Short, flow: Vector, size: int, graph: Graph, fixed: Vector, law: Law, state: Matrix, price: Vector,
    labels: Labels
) -> None:  # fmt: skip
    """Move flow at every node, from the last, from the dearest used way to the cheapest one.

    ``price`` is the cost of every link, kept up to date like its ``state``.
    """
    tail, head = graph.tail, graph.head
    _, _, low_at, high_at, place = labels
    kind, coefficient, cost, slope = law
    k = size - 1
    while k > 0:
        node = head[links[k]]
        k = place[node] - 1
        if high_at[node] < 0 or high_at[node] == low_at[node]:
            continue
        a, b = node, node
        difference, rate, most = 0.0, 0.0, np.inf
        while True:  # back to where the two ways part, always along the one that is further on
            if place[a] >= place[b]:
                link = links[high_at[a]]
                most = min(most, flow[high_at[a]])
                difference += price[link]
                a = tail[link]
            else:
                link = links[low_at[b]]
                difference -= price[link]
                b = tail[link]
            rate += state[link, SLOPE]
            if a == b:
                break
        if most <= 0.0 or difference <= 0.0:
            continue
        step = most if difference >= rate * most else difference / rate
        left = _add(node, a, high_at, links, tail, flow, -step, fixed, state, price, kind, coefficient, cost, slope)
        left -= _add(node, a, low_at, links, tail, flow, step, fixed, state, price, kind, coefficient, cost, slope)
        for _ in range(_HALVINGS):
            if left >= -0.5 * difference:
                break
            back = min(left / (left - difference), 0.5) * step  # beyond equality, as in a sweep over paths
            left = _add(node, a, high_at, links, tail, flow, back, fixed, state, price, kind, coefficient, cost, slope)
            left -= _add(node, a, low_at, links, tail, flow, -back, fixed, state, price, kind, coefficient, cost, slope)
            step -= back


@compiled
def rebuild(
    origin: int, links: Short, flow: Vector, size: int, graph: Graph, cost: Vector, labels: Labels, builder: Builder
) -> tuple[int, bool]:
    """Drop the links without flow but one into each node, add those that shorten a way.

    The labels must be those of the present costs. Returns the new size, and whether anything has changed.
    """
    first_out, _, head, passable = graph
    low, high, low_at, high_at, _ = labels
    kept = 0
    for k in range(size):
        link = links[k]
        if flow[k] > 0.0 or (high_at[head[link]] < 0 and low_at[head[link]] == k):
            links[kept], flow[kept] = link, flow[k]
            kept += 1
    count = kept
    for start in range(low.size):
        if low[start] == np.inf or not (passable[start] or start == origin):
            continue
        for link in range(first_out[start], first_out[start + 1]):
            end, reached = head[link], low[start] + cost[link]
            if reached < (1.0 - _STRICT) * low[end] and high[start] < high[end] and count < links.size:
                links[count], flow[count] = link, 0.0  # none of those kept: these are no shorter than the low label
                count += 1
    if count > kept:  # else the order is good as it is
        _reorder(origin, links, flow, count, graph, builder)
    return count, count > kept or kept < size


@compiled
def _reorder(origin: int, links: Short, flow: Vector, size: int, graph: Graph, builder: Builder) -> None:
    """List the links of a bush in an order from the origin."""
    first_out, _, head, _ = graph
    first_in, into, member, held, missing, order = builder
    member[:], missing[:] = False, 0
    for k in range(size):
        link = links[k]
        member[link], held[link] = True, flow[k]
        missing[head[link]] += 1
    order[0], done, ready, filled = origin, 0, 1, 0
    while done < ready:
        node = order[done]
        done += 1
        for k in range(first_in[node], first_in[node + 1]):
            if member[into[k]]:
                links[filled], flow[filled] = into[k], held[into[k]]
                filled += 1
        for link in range(first_out[node], first_out[node + 1]):
            if member[link]:
                missing[head[link]] -= 1
                if missing[head[link]] == 0:
                    order[ready] = head[link]
                    ready += 1


# ---- all bushes ------------------------------------------------------------------------------------------------------


@compiled
def _load(graph: Graph, trips: Trips, fixed: Matrix, law: Law, state: Matrix, bushes: Bushes, space: TreeSpace) -> None:
    """Put all trips on cheapest trees, origin after origin, at the times the earlier origins have left."""
    tail, head = graph.tail, graph.head
    still, cost, through = np.zeros(graph.first_out.size - 1), np.empty(tail.size), np.empty(graph.first_out.size - 1)
    for group in range(trips.origin.size):
        links, flow = bushes.links[group], bushes.flow[group]
        for link in range(tail.size):
            cost[link] = state[link, TIME] + fixed[trips.group_class[group], link]
        count = grow_tree(trips.origin[group], graph, cost, still, space)
        through[:] = 0.0
        for pair in range(trips.first[group], trips.first[group + 1]):
            through[trips.destination[pair]] += trips.demand[pair]
        for k in range(count - 1, -1, -1):
            link = space.order[k]
            links[k], flow[k] = link, through[head[link]]
            through[tail[link]] += flow[k]
            state[link, FLOW] += flow[k]
        bushes.size[group] = count
        refresh(law, state)


@compiled
def bush_flows(trips: Trips, bushes: Bushes, classes: int, links: int) -> Matrix:
    """Return the flow of each class (row) on each link (column)."""
    result = np.zeros((classes, links))
    for group in range(trips.origin.size):
        own = result[trips.group_class[group]]
        for k in range(bushes.size[group]):
            own[bushes.links[group, k]] += bushes.flow[group, k]
    return result


@compiled
def _measure(
    graph: Graph, trips: Trips, cost: Matrix, class_flow: Matrix, bushes: Bushes, labels: Labels, space: TreeSpace
) -> float:
    """Return the relative gap at these costs, by shortest paths in the whole network (the bushes are a first guess)."""
    tree, head = np.empty(space.order.size, np.int32), graph.head
    paid, total, least = 0.0, 0.0, 0.0
    for kind in range(cost.shape[0]):
        for link in range(head.size):
            paid += class_flow[kind, link] * cost[kind, link]
            total += class_flow[kind, link] * abs(cost[kind, link])
    for group in range(trips.origin.size):
        links, size, of_class = bushes.links[group], bushes.size[group], cost[trips.group_class[group]]
        low, count, k = labels.low, 0, 0
        low[trips.origin[group]] = 0.0
        while k < size:
            node = head[links[k]]
            low[node] = np.inf
            while k < size and head[links[k]] == node:
                if low[graph.tail[links[k]]] + of_class[links[k]] < low[node]:
                    low[node] = low[graph.tail[links[k]]] + of_class[links[k]]
                    tree[count] = links[k]
                k += 1
            count += 1
        mend_tree(trips.origin[group], graph, of_class, tree, count, space)
        for pair in range(trips.first[group], trips.first[group + 1]):
            least += trips.demand[pair] * space.distance[trips.destination[pair]]
    return max((paid - least) / total, 0.0) if total > 0.0 else 0.0


@compiled
def _improve(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, state: Matrix, bushes: Bushes, labels: Labels,
    builder: Builder, anew: bool, least: float, unfinished: npt.NDArray[np.bool_]
) -> tuple[float, int]:  # fmt: skip
    """Improve the unfinished bushes once, or rebuild and improve all if ``anew``.

    A bush is finished if it pays less than the share ``least`` too much. Returns the excess found on the way, and how
    many bushes were not finished.
    """
    excess, count, before, price = 0.0, 0, -1, np.empty(graph.head.size)
    for group in range(trips.origin.size):
        if not (anew or unfinished[group]):
            continue
        if trips.group_class[group] != before:
            before = trips.group_class[group]
            for link in range(price.size):
                price[link] = state[link, TIME] + fixed[before, link]
        links, flow, extra = bushes.links[group], bushes.flow[group], fixed[before]
        origin = trips.origin[group]
        found, cheapest = relabel(origin, links, flow, bushes.size[group], graph, price, labels), 0.0
        if anew:
            size, changed = rebuild(origin, links, flow, bushes.size[group], graph, price, labels, builder)
            bushes.size[group] = size
            if changed:
                found = relabel(origin, links, flow, size, graph, price, labels)
        for pair in range(trips.first[group], trips.first[group + 1]):
            cheapest += trips.demand[pair] * labels.low[trips.destination[pair]]
        excess += found
        unfinished[group] = found > least * cheapest
        if unfinished[group]:
            count += 1
            shift(links, flow, bushes.size[group], graph, extra, law, state, price, labels)
    return excess, count


@compiled
def _equilibrate(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, effort: BushEffort, bushes: Bushes
) -> tuple[Matrix, float, int, bool]:
    """Improve the bushes until the gap is ``target``; return the links' state at which it was measured, the gap, the
    rounds, and whether the target was reached.

    The gap is measured, at flows added up anew and frozen costs, when what new bushes pay too much is small enough.
    """
    nodes, links = graph.first_out.size - 1, graph.head.size
    space, labels, builder, state = tree_space(nodes), new_labels(nodes), new_builder(graph), np.zeros((links, 3))
    refresh(law, state)
    cost, halved, since, number, found = np.empty(fixed.shape), np.inf, 0, 0, 0.0  # of known bushes, measure first
    cold = bushes.size.max() == 0
    if cold:
        _load(graph, trips, fixed, law, state, bushes, space)
    unfinished = np.ones(trips.origin.size, np.bool_)
    while True:
        class_flow = bush_flows(trips, bushes, fixed.shape[0], links)
        total = 0.0
        for link in range(links):
            state[link, FLOW] = class_flow[:, link].sum()
        refresh(law, state)
        for kind in range(fixed.shape[0]):
            for link in range(links):
                cost[kind, link] = state[link, TIME] + fixed[kind, link]
                total += cost[kind, link] * class_flow[kind, link]
        tired = since > effort.patience or number >= effort.rounds
        if number == 0 and cold:
            found = effort.first * total
        elif tired or found <= effort.sure * target * total:
            gap = _measure(graph, trips, cost, class_flow, bushes, labels, space)
            if gap <= target or tired:
                return state, gap, number, gap <= target
            found = gap * total
        number += 1
        least = effort.share * found / total
        found, left = _improve(graph, trips, fixed, law, state, bushes, labels, builder, True, least, unfinished)
        for _ in range(effort.again):
            if left == 0:
                break
            _, left = _improve(graph, trips, fixed, law, state, bushes, labels, builder, False, least, unfinished)
        since += 1
        if found < 0.5 * halved:
            halved, since = found, 0


class BushEquilibration(NamedTuple):
    """What a run returns."""

    bushes: Bushes
    state: Matrix
    gap: float
    rounds: int
    status: int


def equilibrate(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, rounds: int, known: Bushes | None
) -> BushEquilibration:
    """Compute the user equilibrium to the relative gap ``target``, from known bushes or cold; no cost may be < 0."""
    groups, room = trips.origin.size, min(graph.head.size, _ROOM * (graph.first_out.size - 1))
    bushes = Bushes(np.empty((groups, room), np.int32), np.empty((groups, room)), np.zeros(groups, np.int64))
    if known is not None:
        bushes.size[:] = known.size
        for group, size in enumerate(known.size.tolist()):  # and not the room that was never touched
            bushes.links[group, :size] = known.links[group, :size]
            bushes.flow[group, :size] = known.flow[group, :size]
    state, gap, number, done = _equilibrate(graph, trips, fixed, law, target, BushEffort(rounds=rounds), bushes)
    return BushEquilibration(bushes, state, gap, number, CONVERGED if done else TIRED)


# ---- paths -----------------------------------------------------------------------------------------------------------


def paths_of(graph: Graph, trips: Trips, bushes: Bushes, fixed: Matrix) -> Paths:
    """Take paths out of the bushes, for those who ask for paths: the most flow first, so that there are few."""
    parts = [_paths_of_one(group, graph, trips, bushes) for group in range(trips.origin.size)]
    pair, length, flow, links = (np.concatenate(column) for column in zip(*parts, strict=True))
    stop = np.cumsum(length)
    first = np.searchsorted(pair, np.arange(trips.demand.size + 1)).astype(np.int64)
    paths = Paths(first, stop - length, stop, links, flow, np.empty(flow.size), np.array([links.size]))
    price_fixed(trips, paths, fixed)
    return paths


@compiled
def _paths_of_one(
    group: int, graph: Graph, trips: Trips, bushes: Bushes
) -> tuple[Long, Long, Vector, npt.NDArray[np.uint32]]:
    """Return pair, number of links and flow of the paths of one bush, and all their links, each from its end."""
    links, size, origin = bushes.links[group], bushes.size[group], trips.origin[group]
    rest, place = bushes.flow[group, :size].copy(), np.full(graph.first_out.size - 1, -1)
    for k in range(size - 1, -1, -1):
        place[graph.head[links[k]]] = k
    low, high = trips.first[group], trips.first[group + 1]
    most = high - low + size  # each path but the last of a pair empties a link
    pair_of, length, flow = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    pool, filled, count = np.empty(64 * most, np.uint32), 0, 0
    for pair in range(low, high):
        demand = trips.demand[pair]
        while demand > 0.0:
            if filled + graph.first_out.size > pool.size:
                pool = np.append(pool, np.empty(pool.size + graph.first_out.size, np.uint32))
            node, amount, begin = trips.destination[pair], demand, filled
            while node != origin:
                best = place[node]
                for k in range(place[node], size):
                    if graph.head[links[k]] != node:
                        break
                    best = k if rest[k] > rest[best] else best
                pool[filled] = best
                filled += 1
                amount = min(amount, rest[best])
                node = graph.tail[links[best]]
            if amount <= _ROUNDING * trips.demand[pair]:
                amount = demand  # what is left is rounding
            for k in range(begin, filled):
                rest[pool[k]] = max(rest[pool[k]] - amount, 0.0)
                pool[k] = links[pool[k]]
            pair_of[count], length[count], flow[count] = pair, filled - begin, amount
            demand -= amount
            count += 1
    return pair_of[:count].copy(), length[:count].copy(), flow[:count].copy(), pool[:filled].copy()
