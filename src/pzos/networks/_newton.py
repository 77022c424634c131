"""A Newton step on all pairs at once, by conjugate gradients, where pairwise sweeps converge only linearly.

Variables are the exchanges between a pair's paths and its fullest path. The Hessian of the Beckmann objective is
D' S D with D the links' incidence in the exchanges and S the slopes: a product needs one pass over the links that
only one of the two paths uses, and no matrix is ever formed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pzos.networks._columns import Paths, Pool, along
from pzos.networks._compiled import compiled, inlined
from pzos.networks._law import FLOW, SLOPE, TIME, Law, refresh
from pzos.networks._sweeps import Marks
from pzos.networks._trees import Whole
from pzos.types import Matrix, Vector

_SHIFT, _PASSES = 1e-4, 8


class Exchanges(NamedTuple):
    """Exchange j moves flow from path full[j] to path path[j].

    It adds to the links own[start[j] .. middle[j]] and takes from own[middle[j] .. start[j + 1]]. ``gradient`` is
    the difference of the two costs and ``diagonal`` the sum of the slopes on these links.
    """

    path: Whole
    full: Whole
    start: Whole
    middle: Whole
    own: Pool
    gradient: Vector
    diagonal: Vector


@compiled
def excess_cost(pairs: Whole, paths: Paths, state: Matrix, prices: Vector) -> float:
    """Write the cost of every path of the listed pairs; return the sum of flow times cost above the cheapest."""
    first, start, pool, flow, fixed = paths
    excess = 0.0
    for pair in pairs:
        low, high = first[pair], first[pair + 1]
        cheapest = np.inf
        for path in range(low, high):
            prices[path] = along(start[path], start[path + 1], pool, state, TIME) + fixed[path]
            cheapest = min(cheapest, prices[path])
        for path in range(low, high):
            excess += flow[path] * (prices[path] - cheapest)
    return excess


@inlined
def _fullest(low: int, high: int, flow: Vector) -> int:
    full = low
    for path in range(low + 1, high):
        if flow[path] > flow[full]:
            full = path
    return full


@inlined
def _one_sided(
    begin: int, end: int, pool: Pool, marks: Whole, mark: int, state: Matrix, own: Pool, used: int
) -> tuple[int, float]:
    """Collect the links of a path that do not carry ``mark``; return how far ``own`` is filled, and their slopes."""
    slope = 0.0
    for k in range(begin, end):
        link = pool[k]
        if marks[link] != mark:
            own[used] = link
            used += 1
            slope += state[link, SLOPE]
    return used, slope


@compiled
def exchanges(pairs: Whole, paths: Paths, state: Matrix, prices: Vector, marks: Marks) -> Exchanges:
    """List the exchanges that are free to move: paths with flow, and empty ones cheaper than the fullest."""
    first, start, pool, flow, _ = paths
    on_full, on_other, last = marks
    size, room = 0, 0
    for pair in pairs:
        low, high = first[pair], first[pair + 1]
        size += high - low
        room += (high - low) * (start[high] - start[low])
    path_of, full_of, middle = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    begin, own = np.zeros(size + 1, np.int64), np.empty(room, np.uint32)
    gradient, diagonal = np.empty(size), np.empty(size)
    count, mark = 0, last[0]
    for pair in pairs:
        low, high = first[pair], first[pair + 1]
        full = _fullest(low, high, flow)
        mark += 1
        of_full = mark
        for k in range(start[full], start[full + 1]):
            on_full[pool[k]] = of_full
        for path in range(low, high):
            if path == full or (flow[path] <= 0.0 and prices[path] >= prices[full]):
                continue
            mark += 1
            for k in range(start[path], start[path + 1]):
                on_other[pool[k]] = mark
            half, slope = _one_sided(start[path], start[path + 1], pool, on_full, of_full, state, own, begin[count])
            used, more = _one_sided(start[full], start[full + 1], pool, on_other, mark, state, own, half)
            if slope + more > 0.0:
                path_of[count], full_of[count], middle[count], begin[count + 1] = path, full, half, used
                gradient[count], diagonal[count] = prices[path] - prices[full], slope + more
                count += 1
    last[0] = mark
    return Exchanges(
        path_of[:count], full_of[:count], begin[: count + 1], middle[:count], own, gradient[:count], diagonal[:count]
    )


@compiled
def _spread(amount: Vector, moves: Exchanges, load: Vector) -> None:
    """Write the change of the link flows, D amount, into ``load``."""
    start, middle, own = moves.start, moves.middle, moves.own
    for link in range(load.size):
        load[link] = 0.0
    for j in range(amount.size):
        value = amount[j]
        for k in range(start[j], middle[j]):
            load[own[k]] += value
        for k in range(middle[j], start[j + 1]):
            load[own[k]] -= value


@compiled
def _gather(load: Vector, moves: Exchanges, result: Vector) -> None:
    """Write D' load into ``result``."""
    start, middle, own = moves.start, moves.middle, moves.own
    for j in range(result.size):
        value = 0.0
        for k in range(start[j], middle[j]):
            value += load[own[k]]
        for k in range(middle[j], start[j + 1]):
            value -= load[own[k]]
        result[j] = value


@compiled
def _newton_direction(moves: Exchanges, state: Matrix, accuracy: float, iterations: int) -> Vector:
    """Solve D' S D direction = -gradient by conjugate gradients with the diagonal as preconditioner."""
    gradient, diagonal, count, links = moves.gradient, moves.diagonal, moves.gradient.size, state.shape[0]
    load, product = np.empty(links), np.empty(count)
    direction, residual, search = np.zeros(count), np.empty(count), np.empty(count)
    size = 0.0
    for j in range(count):
        residual[j] = -gradient[j]
        search[j] = residual[j] / diagonal[j]
        size += residual[j] * search[j]
    goal = accuracy * accuracy * size
    for _ in range(iterations):
        if size <= goal:
            break
        _spread(search, moves, load)
        for link in range(links):
            load[link] *= state[link, SLOPE]
        _gather(load, moves, product)
        curvature, norm = 0.0, 0.0
        for j in range(count):
            curvature += search[j] * product[j]
            norm += search[j] * search[j] * diagonal[j]
        if curvature <= 1e-13 * norm:
            break  # a direction without curvature, along links of constant cost, is for the sweeps
        step, before, size = size / curvature, size, 0.0
        for j in range(count):
            direction[j] += step * search[j]
            residual[j] -= step * product[j]
            size += residual[j] * residual[j] / diagonal[j]
        for j in range(count):
            search[j] = residual[j] / diagonal[j] + size / before * search[j]
    return direction


@compiled
def _bounded_direction(
    moves: Exchanges, flow: Vector, state: Matrix, accuracy: float, iterations: int, shift: float, passes: int
) -> Vector:
    """Solve the Newton equations with paths that would fall below zero held at zero, and the others solved again.

    ``shift`` times the diagonal is added, so that swaps without curvature become long steps to such bounds.
    """
    gradient, diagonal, path_of = moves.gradient, moves.diagonal, moves.path
    count, links = gradient.size, state.shape[0]
    load, product = np.empty(links), np.empty(count)
    direction, residual, search = np.zeros(count), np.empty(count), np.empty(count)
    held = np.zeros(count, np.bool_)
    first = 0.0
    for number in range(passes):
        if number > 0:
            _curve(direction, moves, state, load, product)
        size = 0.0
        for j in range(count):
            residual[j] = 0.0 if held[j] else -gradient[j] - (product[j] if number > 0 else 0.0)
            search[j] = residual[j] / diagonal[j]
            size += residual[j] * search[j]
        first = size if number == 0 else first
        goal = accuracy * accuracy * first
        for _ in range(iterations):
            if size <= goal:
                break
            _curve(search, moves, state, load, product)
            curvature = 0.0
            for j in range(count):
                product[j] += shift * diagonal[j] * search[j]
                curvature += search[j] * product[j]
            step, before, size = size / curvature, size, 0.0
            for j in range(count):
                if not held[j]:
                    direction[j] += step * search[j]
                    residual[j] -= step * product[j]
                    size += residual[j] * residual[j] / diagonal[j]
            for j in range(count):
                search[j] = 0.0 if held[j] else residual[j] / diagonal[j] + size / before * search[j]
        more = 0
        for j in range(count):
            if not held[j] and direction[j] < -flow[path_of[j]]:
                direction[j], held[j] = -flow[path_of[j]], True
                more += 1
        if more == 0:
            break
    return direction


@compiled
def _curve(amount: Vector, moves: Exchanges, state: Matrix, load: Vector, product: Vector) -> None:
    """Write the Hessian times ``amount``, D' S D amount, into ``product``."""
    _spread(amount, moves, load)
    for link in range(load.size):
        load[link] *= state[link, SLOPE]
    _gather(load, moves, product)


@compiled
def _apply(direction: Vector, moves: Exchanges, paths: Paths) -> None:
    """Change the path flows along ``direction``, no path and no fullest path below zero."""
    path_of, full_of, flow = moves.path, moves.full, paths.flow
    low = 0
    while low < direction.size:
        high, needed, full = low, 0.0, full_of[low]
        while high < direction.size and full_of[high] == full:
            direction[high] = max(direction[high], -flow[path_of[high]])
            needed += direction[high]
            high += 1
        if needed > flow[full]:
            for j in range(low, high):
                direction[j] *= flow[full] / needed
            needed = flow[full]
        for j in range(low, high):
            flow[path_of[j]] += direction[j]
        flow[full] = max(flow[full] - needed, 0.0)
        low = high


@compiled
def _shorten(direction: Vector, moves: Exchanges, paths: Paths) -> None:
    """Shorten the direction as a whole so that no path falls below zero: exchanges that belong together stay so."""
    path_of, full_of, flow = moves.path, moves.full, paths.flow
    share, low = 1.0, 0
    while low < direction.size:
        high, needed, full = low, 0.0, full_of[low]
        while high < direction.size and full_of[high] == full:
            if direction[high] < 0.0:
                share = min(share, -flow[path_of[high]] / direction[high])
            needed += direction[high]
            high += 1
        if needed > 0.0:
            share = min(share, flow[full] / needed)
        low = high
    for j in range(direction.size):
        direction[j] *= share


@compiled
def _slope_along(direction: Vector, moves: Exchanges, prices: Vector) -> float:
    """Return the derivative of the Beckmann objective along ``direction`` at the given path costs."""
    path_of, full_of = moves.path, moves.full
    total = 0.0
    for j in range(direction.size):
        total += direction[j] * (prices[path_of[j]] - prices[full_of[j]])
    return total


@compiled
def _place(share: float, old_flow: Vector, load: Vector, law: Law, state: Matrix) -> None:
    """Set the links to ``share`` of the way along ``load``."""
    for link in range(load.size):
        state[link, FLOW] = max(old_flow[link] + share * load[link], 0.0)
    refresh(law, state)


@compiled
def _search(
    direction: Vector, moves: Exchanges, pairs: Whole, paths: Paths, prices: Vector, law: Law, state: Matrix
) -> bool:
    """Move along ``direction`` with a secant line search; return False, and change nothing, if it leads uphill."""
    flow = paths.flow
    kept = flow.copy()
    _apply(direction, moves, paths)
    before = _slope_along(direction, moves, prices)
    if not before < 0.0:
        for path in range(flow.size):
            flow[path] = kept[path]
        return False
    old_flow, load = state[:, FLOW].copy(), np.empty(state.shape[0])
    _spread(direction, moves, load)
    _place(1.0, old_flow, load, law, state)
    excess_cost(pairs, paths, state, prices)
    after = _slope_along(direction, moves, prices)
    if after > 0.1 * abs(before):  # beyond the lowest point: back to where the secant puts it
        share = before / (before - after)
        for path in range(flow.size):
            flow[path] = kept[path] + share * (flow[path] - kept[path])
        _place(share, old_flow, load, law, state)
    return True


@compiled
def newton_step(
    pairs: Whole, paths: Paths, law: Law, state: Matrix, marks: Marks, accuracy: float, iterations: int, whole: bool
) -> bool:
    """Take one Newton step with a line search; return whether it led downhill (else nothing is changed).

    Paths that would fall below zero are held at zero, or (``whole``) the step is shortened as a whole: slower by far
    where many paths empty, but able to follow swaps between pairs that hardly change the flow.
    """
    prices = np.empty(paths.flow.size)
    excess_cost(pairs, paths, state, prices)
    moves = exchanges(pairs, paths, state, prices, marks)
    if whole:
        direction = _newton_direction(moves, state, accuracy, iterations)
        _shorten(direction, moves, paths)
    else:
        direction = _bounded_direction(moves, paths.flow, state, accuracy, iterations, _SHIFT, _PASSES)
    return _search(direction, moves, pairs, paths, prices, law, state)


@compiled
def repeat_step(
    pairs: Whole, paths: Paths, law: Law, state: Matrix, marks: Marks, earlier: Vector, times: float
) -> bool:
    """Repeat the change since the path flows were ``earlier``, up to so many times, with a line search.

    Where classes of travellers can swap roads without changing the flow, sweeps creep along a straight line at
    constant speed; this goes to its end.
    """
    prices, flow = np.empty(paths.flow.size), paths.flow
    excess_cost(pairs, paths, state, prices)
    moves = exchanges(pairs, paths, state, prices, marks)
    path_of = moves.path
    direction = np.empty(path_of.size)
    for j in range(direction.size):
        direction[j] = times * (flow[path_of[j]] - earlier[path_of[j]])
    return _search(direction, moves, pairs, paths, prices, law, state)
