"""Pairwise Newton sweeps: within each pair, flow moves from every dearer path to the cheapest one.

The amount moved is (difference of the two costs) / (sum of the slopes on the links that only one of them uses),
one Newton step on the Beckmann objective along that exchange, with link flows, times and slopes kept up to date
after every move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix
from pzos.networks.equilibrium.columns import Paths, Pool, along
from pzos.networks.equilibrium.compiled import compiled, inlined
from pzos.networks.equilibrium.law import FLOW, SLOPE, TIME, Law, latency
from pzos.networks.equilibrium.trees import Whole

_HALVINGS = 30


class Marks(NamedTuple):
    """Two marks per link that tell which of two paths uses it, and the last mark given out."""

    best: Whole
    other: Whole
    last: Whole


@compiled
def new_marks(links: int) -> Marks:
    """Allocate marks that no path carries yet."""
    return Marks(np.zeros(links, np.int64), np.zeros(links, np.int64), np.zeros(1, np.int64))


@inlined
def _move(
    start: int, end: int, pool: Pool, amount: float, marks: Whole, mark: int, state: Matrix,
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
def _apart(start: int, end: int, pool: Pool, marks: Whole, mark: int, state: Matrix) -> tuple[float, float]:
    """Return time and slope along the links of a stretch that do not carry ``mark``."""
    time, slope = 0.0, 0.0
    for k in range(start, end):
        link = pool[k]
        if marks[link] != mark:
            time += state[link, TIME]
            slope += state[link, SLOPE]
    return time, slope


@inlined
def _stamp(start: int, end: int, pool: Pool, marks: Whole, mark: int) -> None:
    for k in range(start, end):
        marks[pool[k]] = mark


@compiled
def sweep(pairs: Whole, paths: Paths, tolerance: float, law: Law, state: Matrix, marks: Marks) -> float:
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
        _stamp(begin, end, pool, on_best, of_best)
        for path in range(low, high):
            flow = path_flow[path]
            if path == best or flow <= 0.0:
                continue
            mark += 1
            a, b = start[path], start[path + 1]
            _stamp(a, b, pool, on_other, mark)
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
def pairs_with_choice(paths: Paths) -> Whole:
    """Return the numbers of the pairs that have more than one path."""
    first = paths.first
    found = np.empty(first.size - 1, np.int64)
    count = 0
    for pair in range(first.size - 1):
        if first[pair + 1] - first[pair] > 1:
            found[count] = pair
            count += 1
    return found[:count].copy()
