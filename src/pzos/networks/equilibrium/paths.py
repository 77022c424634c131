"""The path sets of all origin-destination pairs: priced and completed by shortest paths, and swept to equilibrium.

Paths lie in a pool of link numbers, which only grows: a round lists the paths anew, in the order of the pairs, and
copies no links. The pool's numbers are as short as the network allows, and its unused end is never touched, so that it
takes no memory. Tuples of arrays are unpacked at the top of every compiled function, since reading an array out of a
tuple inside a loop costs more than the work itself.

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
from pzos.networks.equilibrium.trees import Graph, Long, Short, grow_tree, tree_space
from pzos.networks.latency import FLOW, SLOPE, TIME, Law, latency

Pool = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

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
    """Pair i has the paths first[i] .. first[i + 1]; path p the links pool[start[p] .. stop[p]].

    ``fixed`` is the part of a path's cost that does not depend on flow (tolls in units of time, weights); ``filled``
    is how much of the pool is in use.
    """

    first: Long
    start: Long
    stop: Long
    pool: Pool
    flow: Vector
    fixed: Vector
    filled: Long


@compiled
def no_paths(pairs: int, paths: int, pool: Pool) -> Paths:
    """Allocate empty path sets with room for so many paths, over a pool that is empty or holds other paths too."""
    return Paths(
        np.zeros(pairs + 1, np.int64),
        np.empty(paths, np.int64),
        np.empty(paths, np.int64),
        pool,
        np.empty(paths),
        np.empty(paths),
        np.zeros(1, np.int64),
    )


@compiled
def with_room(paths: Paths, used: int, others: Paths, done: int, links: int) -> tuple[Paths, Paths]:
    """Return the same path sets over a pool with room for so many more links.

    A pool that is too small is replaced: the first ``used`` of ``paths`` and those of ``others`` from ``done`` on are
    copied, and what else lay there is dropped.
    """
    if paths.filled[0] + links <= paths.pool.size:
        return paths, others
    live = 0
    for path in range(used):
        live += paths.stop[path] - paths.start[path]
    for path in range(done, others.first[others.first.size - 1]):
        live += others.stop[path] - others.start[path]
    pool = np.empty(2 * live + links, paths.pool.dtype)
    end = _copied(paths, 0, used, pool, 0)
    end = _copied(others, done, others.first[others.first.size - 1], pool, end)
    first, start, stop, _, flow, fixed, filled = paths
    filled[0] = end
    return Paths(first, start, stop, pool, flow, fixed, filled), Paths(
        others.first, others.start, others.stop, pool, others.flow, others.fixed, filled
    )


@compiled
def _copied(paths: Paths, low: int, high: int, pool: Pool, end: int) -> int:
    """Copy the links of the paths low .. high to the end of another pool, where they are from now on."""
    _, start, stop, old, _, _, _ = paths
    for path in range(low, high):
        begin = end
        for k in range(start[path], stop[path]):
            pool[end] = old[k]
            end += 1
        start[path], stop[path] = begin, end
    return end


@inlined
def link_code(link: Any) -> Any:
    """Return a scrambled number of a link, such that sums of them tell sets of links apart."""
    code = (link + 1) * -7046029254386353131
    code = (code ^ (code >> 31)) * -4658895280553007687
    return (code ^ (code >> 29)) * -7723592293110705685


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
def list_anew(
    low: int, high: int, origin: int, used: int, trips: Trips, graph: Graph, fixed: Vector, state: Matrix,
    old: Paths, new: Paths, distance: Vector, into: Short, choice: Long, several: int
) -> tuple[int, float, int]:  # fmt: skip
    """Carry the used paths of the pairs of one group over, add missing shortest ones, out of its tree.

    Returns the number of paths listed, the excess cost found, and ``several`` plus the number of pairs with several
    paths, which are written into ``choice`` from there.
    """
    old_first, old_start, old_stop, _, old_flow, old_fixed, _ = old
    first, start, stop, pool, flow, path_fixed, filled = new
    tail, destination = graph.tail, trips.destination
    excess, slack, end = 0.0, _SAME * tail.size, filled[0]
    for pair in range(low, high):
        shortest, cheapest = distance[destination[pair]], np.inf
        for path in range(old_first[pair], old_first[pair + 1]):
            begin, finish = old_start[path], old_stop[path]
            cost = along(begin, finish, pool, state, TIME) + old_fixed[path]
            if old_flow[path] <= 0.0 and cost > shortest + _KEEP * abs(shortest):
                continue
            cheapest = min(cheapest, cost)
            excess += old_flow[path] * (cost - shortest)
            start[used], stop[used], flow[used], path_fixed[used] = begin, finish, old_flow[path], old_fixed[path]
            used += 1
        if cheapest - shortest > slack * abs(shortest):
            start[used] = end
            end, path_fixed[used] = trace(origin, destination[pair], tail, into, fixed, end, pool)
            stop[used], flow[used] = end, 0.0
            used += 1
        first[pair + 1] = used
        if used - first[pair] > 1:
            choice[several] = pair
            several += 1
    filled[0] = end
    return used, excess, several


@compiled
def add_up(paths: Paths, state: Matrix) -> None:
    """Set the link flows to the sums of the path flows, in the order of the paths: the same bits always."""
    first, start, stop, pool, flow, _, _ = paths
    for link in range(state.shape[0]):
        state[link, FLOW] = 0.0
    for path in range(first[first.size - 1]):
        amount = flow[path]
        if amount > 0.0:
            for k in range(start[path], stop[path]):
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


@inlined
def widest(pairs: Long, first: Long) -> int:
    """Return the largest number of paths that one of the listed pairs has."""
    most = 0
    for pair in pairs:
        most = max(most, first[pair + 1] - first[pair])
    return most


@compiled
def sweep(pairs: Long, paths: Paths, tolerance: float, law: Law, state: Matrix, marks: Marks) -> float:
    """Equilibrate each listed pair once, in order; return the sum of the excess costs found on the way.

    Differences of less than ``tolerance`` times the cost are left alone: in the end those of nearly all pairs, which
    then cost no more than a look at their paths.
    """
    first, start, stop, pool, path_flow, fixed, _ = paths
    on_best, on_other, last = marks
    kind, coefficient, cost, slope = law
    excess, mark, prices = 0.0, last[0], np.empty(widest(pairs, first))
    for pair in pairs:
        low, high = first[pair], first[pair + 1]
        best, cheapest = low, np.inf
        for path in range(low, high):
            prices[path - low] = along(start[path], stop[path], pool, state, TIME) + fixed[path]
            if prices[path - low] < cheapest:
                best, cheapest = path, prices[path - low]
        of_best, begin, end = 0, start[best], stop[best]
        for path in range(low, high):
            flow = path_flow[path]
            if path == best or flow <= 0.0:
                continue
            above = prices[path - low] - cheapest
            if above <= tolerance * abs(cheapest):
                excess += above * flow
                continue
            if of_best == 0:
                mark += 1
                of_best = mark
                stamp(begin, end, pool, on_best, of_best)
            mark += 1
            a, b = start[path], stop[path]
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
def excess_of_known(pairs: Long, paths: Paths, state: Matrix) -> float:
    """Return what the flow of the listed pairs pays above the cheapest of their known paths."""
    first, start, stop, pool, flow, fixed, _ = paths
    excess = 0.0
    for pair in pairs:
        cheapest, paid, demand = np.inf, 0.0, 0.0
        for path in range(first[pair], first[pair + 1]):
            price = along(start[path], stop[path], pool, state, TIME) + fixed[path]
            cheapest = min(cheapest, price)
            paid += flow[path] * price
            demand += flow[path]
        excess += paid - demand * cheapest
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


@compiled
def price_fixed(trips: Trips, paths: Paths, fixed: Matrix) -> None:
    """Write the part of the paths' costs that does not depend on flow."""
    first, start, stop, pool, _, path_fixed, _ = paths
    for pair in range(trips.demand.size):
        extra = fixed[trips.pair_class[pair]]
        for path in range(first[pair], first[pair + 1]):
            path_fixed[path] = 0.0
            for k in range(start[path], stop[path]):
                path_fixed[path] += extra[pool[k]]


@compiled
def class_flows(trips: Trips, paths: Paths, classes: int, links: int) -> Matrix:
    """Return the flow of each class (row) on each link (column)."""
    first, start, stop, pool, flow, _, _ = paths
    result = np.zeros((classes, links))
    for pair in range(trips.demand.size):
        for path in range(first[pair], first[pair + 1]):
            for k in range(start[path], stop[path]):
                result[trips.pair_class[pair], pool[k]] += flow[path]
    return result
