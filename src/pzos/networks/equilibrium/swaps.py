"""Exchanges of flow between two paths, bundled into swaps: one for all pairs of a class that differ alike.

Pairs by the thousand choose between the same two stretches of road. Moving one of them from stretch to stretch has
the same effect on the links, and the same gain for every traveller of a class, as moving another: what counts is
how much they move together, within what all of them can give up. Some hundred swaps stand for all exchanges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.networks.equilibrium.columns import Paths, Pool
from pzos.networks.equilibrium.compiled import compiled, inlined
from pzos.networks.equilibrium.law import TIME
from pzos.networks.equilibrium.sweeps import Marks
from pzos.networks.equilibrium.trees import Short, Whole


class Exchanges(NamedTuple):
    """Exchange j moves flow from path full[j], at most most[j], to path path[j]; sign[j] times that is in swap[j]."""

    path: Whole
    full: Whole
    swap: Whole
    sign: Vector
    most: Vector


class Swaps(NamedTuple):
    """Swap s adds to the links own[start[s] .. middle[s]] and takes from own[middle[s] .. start[s + 1]].

    ``fixed`` is what the path costs differ by apart from travel time; the amount lies between ``lower`` and ``upper``.
    """

    start: Whole
    middle: Whole
    own: Pool
    fixed: Vector
    lower: Vector
    upper: Vector


@inlined
def _code(link: Any) -> Any:
    """Return a scrambled number of a link, such that sums of them tell sets of links apart."""
    code = (link + 1) * -7046029254386353131
    code = (code ^ (code >> 31)) * -4658895280553007687
    return (code ^ (code >> 29)) * -7723592293110705685


@compiled
def path_codes(pairs: Whole, paths: Paths, state: Matrix, prices: Vector, codes: Whole) -> None:
    """Write cost and code (the sum of the codes of its links) of every path of the listed pairs."""
    first, start, pool, _, fixed = paths
    for pair in pairs:
        for path in range(first[pair], first[pair + 1]):
            time, code = fixed[path], 0
            for k in range(start[path], start[path + 1]):
                link = np.int64(pool[k])
                time += state[link, TIME]
                code += _code(link)
            prices[path], codes[path] = time, code


@compiled
def list_exchanges(
    pairs: Whole, kind: Short, paths: Paths, prices: Vector, codes: Whole
) -> tuple[Exchanges, Whole, Vector]:
    """List the exchanges of each pair's fullest path with those that have flow, or are cheaper.

    Also returns their keys, and what their fixed costs differ by. In the difference of two paths' codes the links
    that both use cancel; an exchange and its opposite get one key and two signs, classes have keys of their own.
    """
    first, _, _, flow, fixed = paths
    size = 0
    for pair in pairs:
        size += first[pair + 1] - first[pair]
    path_of, full_of, key = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    sign, most, differ = np.empty(size), np.empty(size), np.empty(size)
    count = 0
    for pair in pairs:
        low, high, before = first[pair], first[pair + 1], count
        full = low
        for path in range(low + 1, high):
            full = path if flow[path] > flow[full] else full
        for path in range(low, high):
            if path == full or (flow[path] <= 0.0 and prices[path] >= prices[full]):
                continue
            code = codes[path] - codes[full]
            sign[count] = 1.0 if code > 0 else -1.0
            key[count] = abs(code) ^ (kind[pair] * -7046029254386353131)
            path_of[count], full_of[count] = path, full
            differ[count] = sign[count] * (fixed[path] - fixed[full])
            count += 1
        for j in range(before, count):
            most[j] = flow[full] / (count - before)
    swap = np.empty(count, np.int64)
    return Exchanges(path_of[:count], full_of[:count], swap, sign[:count], most[:count]), key[:count], differ[:count]


@compiled
def _number(key: Whole, swap: Whole) -> Whole:
    """Number equal keys alike, in the order of their first appearance; return where each first appears."""
    size = 16
    while size < 2 * key.size:
        size *= 2
    table, leader, count = np.full(size, -1, np.int64), np.empty(key.size, np.int64), 0
    for j in range(key.size):
        slot = key[j] & (size - 1)
        while table[slot] >= 0 and key[leader[table[slot]]] != key[j]:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot], leader[count] = count, j
            count += 1
        swap[j] = table[slot]
    return leader[:count]


@inlined
def _one_sided(begin: int, end: int, pool: Pool, marks: Whole, mark: int, own: Pool, used: int) -> int:
    """Collect the links of a path that do not carry ``mark``; return how far ``own`` is filled."""
    for k in range(begin, end):
        if marks[pool[k]] != mark:
            own[used] = pool[k]
            used += 1
    return used


@compiled
def bundle(exchanges: Exchanges, key: Whole, differ: Vector, paths: Paths, marks: Marks) -> Swaps:
    """Bundle the exchanges with equal keys into swaps, and write their numbers into ``exchanges.swap``."""
    path_of, full_of, swap, sign, most = exchanges
    _, start, pool, flow, _ = paths
    on_plus, on_minus, last = marks
    leader = _number(key, swap)
    count, room = leader.size, 0
    for j in leader:
        room += start[path_of[j] + 1] - start[path_of[j]] + start[full_of[j] + 1] - start[full_of[j]]
    begin, middle, own = np.zeros(count + 1, np.int64), np.empty(count, np.int64), np.empty(room, np.uint32)
    fixed, lower, upper, mark = np.empty(count), np.zeros(count), np.zeros(count), last[0]
    for s in range(count):
        j = leader[s]
        plus, minus = (path_of[j], full_of[j]) if sign[j] > 0.0 else (full_of[j], path_of[j])
        mark += 1
        for k in range(start[plus], start[plus + 1]):
            on_plus[pool[k]] = mark
        for k in range(start[minus], start[minus + 1]):
            on_minus[pool[k]] = mark
        middle[s] = _one_sided(start[plus], start[plus + 1], pool, on_minus, mark, own, begin[s])
        begin[s + 1] = _one_sided(start[minus], start[minus + 1], pool, on_plus, mark, own, middle[s])
        fixed[s] = differ[j]
    last[0] = mark
    for j in range(swap.size):
        more, less = most[j], flow[path_of[j]]
        if sign[j] < 0.0:
            more, less = less, more
        upper[swap[j]] += more
        lower[swap[j]] -= less
    return Swaps(begin, middle, own, fixed, lower, upper)


@compiled
def carry_out(amount: Vector, share: float, exchanges: Exchanges, swaps: Swaps, flow: Vector) -> None:
    """Change the path flows by ``share`` of the swaps, each exchange in proportion to what it can give up."""
    path_of, full_of, swap, sign, most = exchanges
    lower, upper = swaps.lower, swaps.upper
    for j in range(swap.size):
        s = swap[j]
        if amount[s] == 0.0:
            continue
        part = share * (amount[s] / upper[s] if amount[s] > 0.0 else amount[s] / lower[s])
        path, full = path_of[j], full_of[j]
        forth = (amount[s] > 0.0) == (sign[j] > 0.0)
        moved = part * most[j] if forth else -part * flow[path]
        flow[path] = max(flow[path] + moved, 0.0)
        flow[full] = max(flow[full] - moved, 0.0)
