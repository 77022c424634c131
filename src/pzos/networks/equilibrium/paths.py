"""The path sets of all origin-destination pairs: priced and completed by shortest paths, and swept to equilibrium.

Paths lie one after the other in a pool of link numbers, in the order of the pairs, and the pool is rebuilt in
every round: no holes, and sweeps read memory from front to back. Tuples of arrays are unpacked at the top of
every compiled function, since reading an array out of a tuple inside a loop costs more than the work itself.

A sweep moves flow, within each pair, from every dearer path to the cheapest one. The amount moved is (difference of
the two costs) / (sum of the slopes on the links that only one of them uses), one Newton step on the Beckmann objective
along that exchange, with link flows, times and slopes kept up to date after every move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled, inlined
from pzos.networks.equilibrium.trees import Graph, Long, Short, TreeSpace, grow_tree, tree_space
from pzos.networks.latency import FLOW, SLOPE, TIME, Law, latency

Pool = npt.NDArray[np.uint32]

_SAME = 4e-16
_KEEP = 1e-4  # empty paths this close to the shortest stay: many are wanted again in the next round


class Trips(NamedTuple):
    """Demand sorted by (class, origin); group g holds the pairs first[g] .. first[g + 1] of one such couple."""

    first: Long
    group_class: Short
    origin: Short
    pair_class: Short
    destination: Short
    demand: Vector


@compiled
def out_of_reach(graph: Graph, trips: Trips) -> Long:
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


class Paths(NamedTuple):
    """Pair i has the paths first[i] .. first[i + 1]; path p the links pool[start[p] .. start[p + 1]].

    ``fixed`` is the part of a path's cost that does not depend on flow (tolls in units of time, weights).
    """

    first: Long
    start: Long
    pool: Pool
    flow: Vector
    fixed: Vector


@compiled
def no_paths(pairs: int, paths: int, links: int) -> Paths:
    """Allocate empty path sets with room for so many paths and so many links in all of them."""
    return Paths(
        np.zeros(pairs + 1, np.int64),
        np.zeros(paths + 1, np.int64),
        np.empty(links, np.uint32),
        np.empty(paths),
        np.empty(paths),
    )


@compiled
def with_room(paths: Paths, used: int, more_paths: int, more_links: int) -> Paths:
    """Return the same path sets with room for so many more paths and links behind the first ``used``."""
    first, start, pool, flow, fixed = paths
    filled = start[used]
    if filled + more_links > pool.size:
        pool = np.empty(filled + filled // 2 + more_links, np.uint32)
        for k in range(filled):  # a slice assignment would drag in half of numba's string code
            pool[k] = paths.pool[k]
    if used + more_paths > flow.size:
        room = used + used // 2 + more_paths
        flow, fixed, start = np.empty(room), np.empty(room), np.zeros(room + 1, np.int64)
        for path in range(used):
            start[path + 1] = paths.start[path + 1]
            flow[path] = paths.flow[path]
            fixed[path] = paths.fixed[path]
    return Paths(first, start, pool, flow, fixed)


@inlined
def along(start: int, end: int, pool: Pool, state: Matrix, column: int) -> float:
    """Return the sum of one column of the links' state along a stretch of the pool."""
    total = 0.0
    for k in range(start, end):
        total += state[pool[k], column]
    return total


@inlined
def trace(
    origin: int, destination: int, tail: Short, into: Short, fixed: Vector, end: int, pool: Pool
) -> tuple[int, float]:
    """Write the tree's path to ``destination`` into the pool at ``end``; return the new end and its fixed cost."""
    total = 0.0
    node = destination
    while node != origin:
        link = into[node]
        pool[end] = link
        total += fixed[link]
        end += 1
        node = tail[link]
    return end, total


@compiled
def _rebuild(
    low: int, high: int, origin: int, used: int, trips: Trips, graph: Graph, fixed: Vector, state: Matrix,
    old: Paths, new: Paths, space: TreeSpace
) -> tuple[int, float, int]:  # fmt: skip
    """Carry the used paths of the pairs of one group over, add missing shortest ones; (count, excess, added)."""
    old_first, old_start, old_pool, old_flow, old_fixed = old
    first, start, pool, flow, path_fixed = new
    tail, into, distance, destination = graph.tail, space.into, space.distance, trips.destination
    excess, added, slack = 0.0, 0, _SAME * tail.size
    for pair in range(low, high):
        shortest, cheapest = distance[destination[pair]], np.inf
        for path in range(old_first[pair], old_first[pair + 1]):
            begin, stop = old_start[path], old_start[path + 1]
            cost = along(begin, stop, old_pool, state, TIME) + old_fixed[path]
            if old_flow[path] <= 0.0 and cost > shortest + _KEEP * abs(shortest):
                continue
            cheapest = min(cheapest, cost)
            excess += old_flow[path] * (cost - shortest)
            end = start[used]
            for k in range(begin, stop):
                pool[end] = old_pool[k]
                end += 1
            flow[used], path_fixed[used] = old_flow[path], old_fixed[path]
            used += 1
            start[used] = end
        if cheapest - shortest > slack * abs(shortest):
            end, extra = trace(origin, destination[pair], tail, into, fixed, start[used], pool)
            flow[used], path_fixed[used] = 0.0, extra
            used += 1
            added += 1
            start[used] = end
        first[pair + 1] = used
    return used, excess, added


@compiled
def price(
    graph: Graph, trips: Trips, fixed: Matrix, cost: Matrix, state: Matrix, potential: Matrix, old: Paths,
    space: TreeSpace
) -> tuple[Paths, float, int]:  # fmt: skip
    """One round of column generation at frozen costs.

    ``cost`` holds one row per class. Returns the path sets with the empty paths dropped that are far from shortest
    and the missing shortest paths added with no flow, the total excess cost (the numerator of the relative gap),
    and the number added.
    """
    new = no_paths(trips.demand.size, old.flow.size, old.pool.size)
    used, excess, added, longest = 0, 0.0, 0, graph.first_out.size
    for group in range(trips.origin.size):
        kind, origin = trips.group_class[group], trips.origin[group]
        grow_tree(origin, graph, cost[kind], potential[kind], space)
        low, high = trips.first[group], trips.first[group + 1]
        known = old.first[high] - old.first[low]
        filled = old.start[old.first[high]] - old.start[old.first[low]]
        new = with_room(new, used, known + high - low, filled + (high - low) * longest)
        used, more, fresh = _rebuild(low, high, origin, used, trips, graph, fixed[kind], state, old, new, space)
        excess += more
        added += fresh
    return new, excess, added


@compiled
def add_up(paths: Paths, state: Matrix) -> None:
    """Set the link flows to the sums of the path flows, in the order of the paths: the same bits always."""
    first, start, pool, flow, _ = paths
    for link in range(state.shape[0]):
        state[link, FLOW] = 0.0
    for path in range(first[first.size - 1]):
        amount = flow[path]
        if amount > 0.0:
            for k in range(start[path], start[path + 1]):
                state[pool[k], FLOW] += amount


# ---- sweeps ----------------------------------------------------------------------------------------------------------


_HALVINGS = 30


class Marks(NamedTuple):
    """Two marks per link that tell which of two paths uses it, and the last mark given out."""

    best: Long
    other: Long
    last: Long


@compiled
def new_marks(links: int) -> Marks:
    """Allocate marks that no path carries yet."""
    return Marks(np.zeros(links, np.int64), np.zeros(links, np.int64), np.zeros(1, np.int64))


@inlined
def _move(
    start: int, end: int, pool: Pool, amount: float, marks: Long, mark: int, state: Matrix,
    kind: npt.NDArray[np.int64], coefficient: Matrix, cost: Any, slope: Any
) -> float:  # fmt: skip
    """Add ``amount`` to the links of a stretch of the pool that do not carry ``mark``; return the path's time."""
    total = 0.0
    for k in range(start, end):
        link = pool[k]
        if marks[link] != mark:
            moved = max(state[link, FLOW] + amount, 0.0)
            time, rate = latency(link, moved, kind, coefficient, cost, slope)
            state[link, FLOW] = moved
            state[link, TIME] = time
            state[link, SLOPE] = rate
        total += state[link, TIME]
    return total


@inlined
def _apart(start: int, end: int, pool: Pool, marks: Long, mark: int, state: Matrix) -> tuple[float, float]:
    """Return time and slope along the links of a stretch that do not carry ``mark``."""
    time, slope = 0.0, 0.0
    for k in range(start, end):
        link = pool[k]
        if marks[link] != mark:
            time += state[link, TIME]
            slope += state[link, SLOPE]
    return time, slope


@inlined
def stamp(start: int, end: int, pool: Pool, marks: Long, mark: int) -> None:
    """Mark the links of a stretch of the pool."""
    for k in range(start, end):
        marks[pool[k]] = mark


@compiled
def sweep(pairs: Long, paths: Paths, tolerance: float, law: Law, state: Matrix, marks: Marks) -> float:
    """Equilibrate each listed pair once, in order; return the sum of the excess costs found on the way.

    Differences of less than ``tolerance`` times the cost are left alone.
    """
    first, start, pool, path_flow, fixed = paths
    on_best, on_other, last = marks
    kind, coefficient, cost, slope = law
    excess, mark = 0.0, last[0]
    for pair in pairs:
        low, high = first[pair], first[pair + 1]
        best, cheapest = low, np.inf
        for path in range(low, high):
            price = along(start[path], start[path + 1], pool, state, TIME) + fixed[path]
            if price < cheapest:
                best, cheapest = path, price
        mark += 1
        of_best, begin, end = mark, start[best], start[best + 1]
        stamp(begin, end, pool, on_best, of_best)
        for path in range(low, high):
            flow = path_flow[path]
            if path == best or flow <= 0.0:
                continue
            mark += 1
            a, b = start[path], start[path + 1]
            stamp(a, b, pool, on_other, mark)
            time, rate = _apart(a, b, pool, on_best, of_best, state)
            best_time, best_rate = _apart(begin, end, pool, on_other, mark, state)
            difference = time - best_time + fixed[path] - fixed[best]
            excess += max(difference, 0.0) * flow
            if difference <= tolerance * abs(cheapest):
                continue
            step = flow if difference >= (rate + best_rate) * flow else difference / (rate + best_rate)
            left = _move(a, b, pool, -step, on_best, of_best, state, kind, coefficient, cost, slope)
            left -= _move(begin, end, pool, step, on_other, mark, state, kind, coefficient, cost, slope)
            left += fixed[path] - fixed[best]
            for _ in range(_HALVINGS):
                if left >= -0.5 * difference:
                    break
                # Beyond equality: back to where the secant says the costs meet, or half way where it would end
                # short of half, as it does on steep latencies.
                back = min(left / (left - difference), 0.5) * step
                left = _move(a, b, pool, back, on_best, of_best, state, kind, coefficient, cost, slope)
                left -= _move(begin, end, pool, -back, on_other, mark, state, kind, coefficient, cost, slope)
                left += fixed[path] - fixed[best]
                step -= back
            path_flow[path] = flow - step
            path_flow[best] += step
    last[0] = mark
    return excess


@compiled
def pairs_with_choice(paths: Paths) -> Long:
    """Return the numbers of the pairs that have more than one path."""
    first = paths.first
    found = np.empty(first.size - 1, np.int64)
    count = 0
    for pair in range(first.size - 1):
        if first[pair + 1] - first[pair] > 1:
            found[count] = pair
            count += 1
    return found[:count].copy()
