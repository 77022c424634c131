"""A Newton step on all pairs at once, where pairwise sweeps converge only linearly.

Pairs by the thousand choose between the same two stretches of road. Moving one of them from stretch to stretch has
the same effect on the links, and the same gain for every traveller of a class, as moving another: what counts is
how much they move together, within what all of them can give up. So exchanges of flow between two paths are bundled
into swaps, one for all pairs of a class that differ alike; some hundred swaps stand for all exchanges.

The swaps are the variables of the step. The Hessian of the Beckmann objective is D' S D with D the links' incidence
in the swaps and S the slopes: a product needs one pass over the swaps' links (links that always come together are one
stretch), and no matrix is ever formed. The quadratic model is minimised between the bounds: Gauss-Seidel sweeps find
which swaps end at a bound, conjugate gradients move the others, those with room before those without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled, inlined
from pzos.networks.equilibrium.paths import Marks, Paths, Pool, link_code, stamp, widest
from pzos.networks.equilibrium.trees import Long, Short
from pzos.networks.latency import FLOW, SLOPE, TIME, Law, refresh


class Exchanges(NamedTuple):
    """Exchange j moves flow from path other[j], at most most[j], to path path[j], or at most back[j] the other way.

    sign[j] times what it moves is in swap[j].
    """

    path: Long
    other: Long
    swap: Long
    sign: Vector
    most: Vector
    back: Vector


class Swaps(NamedTuple):
    """Swap s adds to the links own[start[s] .. middle[s]] and takes from own[middle[s] .. start[s + 1]].

    ``fixed`` is what the path costs differ by apart from travel time; the amount lies between ``lower`` and ``upper``.
    """

    start: Long
    middle: Long
    own: Pool
    fixed: Vector
    lower: Vector
    upper: Vector


@compiled
def path_codes(pairs: Long, paths: Paths, state: Matrix, prices: Vector, codes: Long) -> None:
    """Write cost and code (the sum of the codes of its links) of every path of the listed pairs."""
    first, start, stop, pool, _, fixed, _ = paths
    of_link, times = np.empty(state.shape[0], np.int64), state[:, TIME].copy()
    for link in range(of_link.size):
        of_link[link] = link_code(np.int64(link))
    for pair in pairs:
        for path in range(first[pair], first[pair + 1]):
            time, code = fixed[path], 0
            for k in range(start[path], stop[path]):
                time += times[pool[k]]
                code += of_link[pool[k]]
            prices[path], codes[path] = time, code


@inlined
def _nearest(
    path: int, low: int, high: int, full: int, start: Long, stop: Long, pool: Pool, flow: Vector, on_path: Long,
    mark: int
) -> int:  # fmt: skip
    """Return the path with the most links in common, of those of the pair low .. high that carry more flow."""
    stamp(start[path], stop[path], pool, on_path, mark)
    nearest, fewest = full, np.int64(1 << 60)
    for other in range(low, high):
        ahead = flow[other] > flow[path] or (flow[other] == flow[path] and other < path)
        if other == path or flow[other] <= 0.0 or not (ahead or other == full):
            continue
        apart = stop[path] - start[path] + stop[other] - start[other]
        for k in range(start[other], stop[other]):
            if on_path[pool[k]] == mark:
                apart -= 2
        if apart < fewest:
            fewest, nearest = apart, other
    return nearest


@compiled
def list_exchanges(
    pairs: Long, kind: Short, paths: Paths, prices: Vector, codes: Long, marks: Marks
) -> tuple[Exchanges, Long, Vector]:
    """List the exchanges of each path that has flow, or is cheaper, with the most similar one that has more flow.

    Similar paths differ by short stretches, which more pairs have in common. Also returns the exchanges' keys, and
    what their fixed costs differ by. In the difference of two paths' codes the links that both use cancel; an exchange
    and its opposite get one key and two signs, classes have keys of their own.
    """
    first, start, stop, pool, flow, fixed, _ = paths
    on_path, _, last = marks
    size = 0
    for pair in pairs:
        size += first[pair + 1] - first[pair]
    path_of, other_of, key = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    sign, most, back, differ = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    degree, count, mark = np.zeros(widest(pairs, first), np.int64), 0, last[0]
    for pair in pairs:
        low, high, before = first[pair], first[pair + 1], count
        full = low
        for path in range(low, high):
            degree[path - low] = 0
            full = path if flow[path] > flow[full] else full
        for path in range(low, high):
            if path == full or (flow[path] <= 0.0 and prices[path] >= prices[full]):
                continue
            other = full
            if high - low > 2:
                mark += 1
                other = _nearest(path, low, high, full, start, stop, pool, flow, on_path, mark)
            code = codes[path] - codes[other]
            sign[count] = 1.0 if code > 0 else -1.0
            key[count] = abs(code) ^ (np.int64(kind[pair]) * -7046029254386353131)
            path_of[count], other_of[count] = path, other
            differ[count] = sign[count] * (fixed[path] - fixed[other])
            degree[path - low] += 1
            degree[other - low] += 1
            count += 1
        for j in range(before, count):  # a path shares what it has between its exchanges
            most[j] = flow[other_of[j]] / degree[other_of[j] - low]
            back[j] = flow[path_of[j]] / degree[path_of[j] - low]
    last[0] = mark
    listed = Exchanges(
        path_of[:count], other_of[:count], np.empty(count, np.int64), sign[:count], most[:count], back[:count]
    )
    return listed, key[:count], differ[:count]


@compiled
def _number(key: Long, swap: Long) -> Long:
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
def _one_sided(begin: int, end: int, pool: Pool, marks: Long, mark: int, own: Pool, used: int) -> int:
    """Collect the links of a path that do not carry ``mark``; return how far ``own`` is filled."""
    for k in range(begin, end):
        if marks[pool[k]] != mark:
            own[used] = pool[k]
            used += 1
    return used


@compiled
def bundle(exchanges: Exchanges, key: Long, differ: Vector, paths: Paths, marks: Marks) -> Swaps:
    """Bundle the exchanges with equal keys into swaps, and write their numbers into ``exchanges.swap``."""
    path_of, other_of, swap, sign, most, back = exchanges
    _, start, stop, pool, _, _, _ = paths
    on_plus, on_minus, last = marks
    leader = _number(key, swap)
    count, room = leader.size, 0
    for j in leader:
        room += stop[path_of[j]] - start[path_of[j]] + stop[other_of[j]] - start[other_of[j]]
    begin, middle, own = np.zeros(count + 1, np.int64), np.empty(count, np.int64), np.empty(room, np.uint32)
    fixed, lower, upper, mark = np.empty(count), np.zeros(count), np.zeros(count), last[0]
    for s in range(count):
        j = leader[s]
        plus, minus = (path_of[j], other_of[j]) if sign[j] > 0.0 else (other_of[j], path_of[j])
        mark += 1
        stamp(start[plus], stop[plus], pool, on_plus, mark)
        stamp(start[minus], stop[minus], pool, on_minus, mark)
        middle[s] = _one_sided(start[plus], stop[plus], pool, on_minus, mark, own, begin[s])
        begin[s + 1] = _one_sided(start[minus], stop[minus], pool, on_plus, mark, own, middle[s])
        fixed[s] = differ[j]
    last[0] = mark
    for j in range(swap.size):
        more, less = most[j], back[j]
        if sign[j] < 0.0:
            more, less = less, more
        upper[swap[j]] += more
        lower[swap[j]] -= less
    return Swaps(begin, middle, own, fixed, lower, upper)


@compiled
def merge_stretches(swaps: Swaps, slope: Vector) -> tuple[Swaps, Vector]:
    """Return the swaps in terms of stretches, links that the same swaps use alike, and the stretches' slopes.

    A stretch has the sum of its links' slopes: the model is the same, at a fraction of the work.
    """
    start, middle, own, fixed, lower, upper = swaps
    signature, links, count = np.zeros(slope.size, np.int64), np.empty(slope.size, np.int64), 0
    number = np.full(slope.size, -1, np.int64)
    for j in range(fixed.size):
        code = link_code(np.int64(j))
        for k in range(start[j], start[j + 1]):
            signature[own[k]] += code if k < middle[j] else -code
            if number[own[k]] < 0:
                number[own[k]], links[count] = count, own[k]
                count += 1
    stretch = np.empty(count, np.int64)
    rate = np.zeros(_number(signature[links[:count]], stretch).size)
    for i in range(count):
        rate[stretch[i]] += slope[links[i]]
    begin, half = np.zeros(fixed.size + 1, np.int64), np.empty(fixed.size, np.int64)
    parts, seen, filled = np.empty(own.size, np.uint32), np.full(rate.size, -1, np.int64), 0
    for j in range(fixed.size):
        half[j] = filled
        for k in range(start[j], start[j + 1]):
            part = stretch[number[own[k]]]
            if seen[part] != j:
                seen[part], parts[filled] = j, part
                filled += 1
            if k < middle[j]:
                half[j] = filled
        begin[j + 1] = filled
    return Swaps(begin, half, parts[:filled], fixed, lower, upper), rate


@compiled
def carry_out(amount: Vector, share: float, exchanges: Exchanges, swaps: Swaps, flow: Vector) -> None:
    """Change the path flows by ``share`` of the swaps, each exchange in proportion to what it can give up."""
    path_of, other_of, swap, sign, most, back = exchanges
    lower, upper = swaps.lower, swaps.upper
    for j in range(swap.size):
        s = swap[j]
        if amount[s] == 0.0:
            continue
        part = share * (amount[s] / upper[s] if amount[s] > 0.0 else amount[s] / lower[s])
        path, other = path_of[j], other_of[j]
        forth = (amount[s] > 0.0) == (sign[j] > 0.0)
        moved = part * most[j] if forth else -part * back[j]
        flow[path] = max(flow[path] + moved, 0.0)
        flow[other] = max(flow[other] - moved, 0.0)


# ---- the step --------------------------------------------------------------------------------------------------------


_SHIFT, _FLAT, _SECANTS, _AHEAD = 1e-6, 1e-200, 10, 10.0


@inlined
def _push(swap: int, value: float, start: Long, middle: Long, own: Pool, load: Vector) -> None:
    """Add ``value`` to the links on one side of a swap, take it from those on the other."""
    for k in range(start[swap], middle[swap]):
        load[own[k]] += value
    for k in range(middle[swap], start[swap + 1]):
        load[own[k]] -= value


@compiled
def _spread(amount: Vector, swaps: Swaps, load: Vector) -> None:
    """Write the change of the link flows, D amount, into ``load``."""
    start, middle, own = swaps.start, swaps.middle, swaps.own
    for link in range(load.size):
        load[link] = 0.0
    for j in range(amount.size):
        if amount[j] != 0.0:
            _push(j, amount[j], start, middle, own, load)


@compiled
def _gather(load: Vector, swaps: Swaps, result: Vector) -> None:
    """Write D' load into ``result``."""
    start, middle, own = swaps.start, swaps.middle, swaps.own
    for j in range(result.size):
        value = 0.0
        for k in range(start[j], middle[j]):
            value += load[own[k]]
        for k in range(middle[j], start[j + 1]):
            value -= load[own[k]]
        result[j] = value


@compiled
def _curve(amount: Vector, swaps: Swaps, slope: Vector, load: Vector, product: Vector) -> None:
    """Write the Hessian times ``amount``, D' S D amount, into ``product``."""
    _spread(amount, swaps, load)
    for link in range(load.size):
        load[link] *= slope[link]
    _gather(load, swaps, product)


@compiled
def _settle(amount: Vector, swaps: Swaps, gradient: Vector, diagonal: Vector, slope: Vector, load: Vector) -> float:
    """One Gauss-Seidel sweep over the swaps on the model, between the bounds; return the decrease it found."""
    start, middle, own, _, lower, upper = swaps
    found = 0.0
    for j in range(amount.size):
        rise = gradient[j]
        for k in range(start[j], middle[j]):
            rise += slope[own[k]] * load[own[k]]
        for k in range(middle[j], start[j + 1]):
            rise -= slope[own[k]] * load[own[k]]
        new = amount[j] - rise / diagonal[j]
        new = min(max(new, lower[j]), upper[j])
        moved = new - amount[j]
        if moved == 0.0:
            continue
        found -= moved * (rise + 0.5 * moved * diagonal[j])
        amount[j] = new
        _push(j, moved, start, middle, own, load)
    return found


@inlined
def _weights(amount: Vector, swaps: Swaps, residual: Vector, diagonal: Vector) -> Vector:
    """Return the preconditioner: the inverse diagonal, less where a bound is nearer than the steps that are due.

    Swaps depend on each other: what one with little room would do, others can. Were it asked to, its bound would cut
    the step of all.
    """
    far, weight = 0.0, np.empty(diagonal.size)
    for j in range(diagonal.size):
        far = max(far, abs(residual[j]) / diagonal[j])
    for j in range(diagonal.size):
        room = min(amount[j] - swaps.lower[j], swaps.upper[j] - amount[j])
        weight[j] = min(1.0, room / (_AHEAD * far)) / diagonal[j] if far > 0.0 else 1.0 / diagonal[j]
    return weight


@compiled
def _free_direction(
    free: Vector, amount: Vector, swaps: Swaps, residual: Vector, diagonal: Vector, slope: Vector, accuracy: float,
    products: int
) -> Vector:  # fmt: skip
    """Solve the Newton equations for the swaps with free = 1 by conjugate gradients; overwrites ``residual``."""
    count = free.size
    load, product, direction, search = np.empty(slope.size), np.empty(count), np.zeros(count), np.empty(count)
    for j in range(count):
        residual[j] *= free[j]
    weight = _weights(amount, swaps, residual, diagonal)
    size = 0.0
    for j in range(count):
        search[j] = residual[j] * weight[j]
        size += residual[j] * search[j]
    goal = accuracy * accuracy * size
    for _ in range(products):
        if size <= goal:
            break
        _curve(search, swaps, slope, load, product)
        curvature = 0.0
        for j in range(count):
            product[j] += _SHIFT * diagonal[j] * search[j]
            curvature += search[j] * product[j]
        step, before, size = size / curvature, size, 0.0
        for j in range(count):
            direction[j] += step * search[j]
            residual[j] -= free[j] * step * product[j]
            size += residual[j] * residual[j] * weight[j]
        for j in range(count):
            search[j] = residual[j] * weight[j] + size / before * search[j]
    return direction


@compiled
def _model(amount: Vector, swaps: Swaps, gradient: Vector, slope: Vector, load: Vector) -> float:
    """Return the quadratic model at ``amount``; write D amount into ``load``."""
    _spread(amount, swaps, load)
    value = 0.0
    for j in range(amount.size):
        value += gradient[j] * amount[j]
    for link in range(load.size):
        value += 0.5 * slope[link] * load[link] * load[link]
    return value


@compiled
def _clipped(amount: Vector, direction: Vector, share: float, swaps: Swaps) -> Vector:
    """Return amount + share * direction, cut off at the bounds."""
    result = np.empty(amount.size)
    for j in range(amount.size):
        result[j] = min(max(amount[j] + share * direction[j], swaps.lower[j]), swaps.upper[j])
    return result


@inlined
def _to_first_bound(amount: Vector, direction: Vector, swaps: Swaps) -> float:
    """Return the largest share of ``direction``, at most 1, that crosses no bound."""
    share = 1.0
    for j in range(amount.size):
        if direction[j] < 0.0:
            share = min(share, (swaps.lower[j] - amount[j]) / direction[j])
        elif direction[j] > 0.0:
            share = min(share, (swaps.upper[j] - amount[j]) / direction[j])
    return share


@compiled
def best_swaps(
    swaps: Swaps, gradient: Vector, diagonal: Vector, slope: Vector, accuracy: float, products: int, passes: int
) -> Vector:
    """Minimise  gradient'y + y' D' S D y / 2  over the swaps y between their bounds."""
    count = gradient.size
    amount, load, trial_load = np.zeros(count), np.zeros(slope.size), np.empty(slope.size)
    free, residual = np.empty(count), np.empty(count)
    most = 0.0
    for _ in range(passes):
        found = _settle(amount, swaps, gradient, diagonal, slope, load)
        found += _settle(amount, swaps, gradient, diagonal, slope, load)
        most = max(most, found)
        if found <= accuracy * accuracy * most:
            break
        _curve(amount, swaps, slope, trial_load, residual)
        for j in range(count):
            residual[j] = -gradient[j] - residual[j]
            free[j] = 1.0 if swaps.lower[j] < amount[j] < swaps.upper[j] and diagonal[j] > _FLAT else 0.0
        direction = _free_direction(free, amount, swaps, residual, diagonal, slope, accuracy, products)
        here = _model(amount, swaps, gradient, slope, load)
        share = _to_first_bound(amount, direction, swaps)
        best = _clipped(amount, direction, share, swaps)
        value = _model(best, swaps, gradient, slope, load)
        longer = 1.0
        while longer > 4.0 * share:
            trial = _clipped(amount, direction, longer, swaps)
            other = _model(trial, swaps, gradient, slope, trial_load)
            if other < value:
                best, value = trial, other
                break
            longer *= 0.25
        most = max(most, here - value)
        amount = best
        _spread(amount, swaps, load)
    return amount


@compiled
def _place(share: float, old_flow: Vector, load: Vector, law: Law, state: Matrix) -> None:
    """Set the links to ``share`` of the way along ``load``."""
    for link in range(load.size):
        state[link, FLOW] = max(old_flow[link] + share * load[link], 0.0)
    refresh(law, state)


@compiled
def _slope_along(amount: Vector, swaps: Swaps, state: Matrix, rise: Vector) -> float:
    """Write the gradient of the Beckmann objective; return its derivative along ``amount``."""
    _gather(state[:, TIME].copy(), swaps, rise)
    total = 0.0
    for j in range(amount.size):
        rise[j] += swaps.fixed[j]
        total += amount[j] * rise[j]
    return total


@compiled
def _search(amount: Vector, swaps: Swaps, before: float, law: Law, state: Matrix) -> float:
    """Move the links along ``amount`` to about the lowest point of the objective; return the share moved.

    The derivative goes from ``before`` < 0 at none to whatever it is at all; secants close in on its zero, cut off
    where they would hardly shorten the interval, as they do on steep latencies.
    """
    old_flow, load, rise = state[:, FLOW].copy(), np.empty(state.shape[0]), np.empty(amount.size)
    _spread(amount, swaps, load)
    _place(1.0, old_flow, load, law, state)
    after = _slope_along(amount, swaps, state, rise)
    low, high, at_low, at_high, share = 0.0, 1.0, before, after, 1.0
    for _ in range(_SECANTS):
        if (share == 1.0 and after <= 0.0) or abs(after) <= 0.1 * abs(before):
            break
        share = low + min(max(at_low / (at_low - at_high), 0.1), 0.9) * (high - low)
        _place(share, old_flow, load, law, state)
        after = _slope_along(amount, swaps, state, rise)
        if after > 0.0:
            high, at_high = share, after
        else:
            low, at_low = share, after
    return share


@compiled
def newton_step(
    pairs: Long, kind: Short, paths: Paths, law: Law, state: Matrix, marks: Marks, accuracy: float, products: int,
    passes: int
) -> bool:  # fmt: skip
    """Take one Newton step with a line search; return whether it led downhill (else nothing is changed)."""
    prices, codes = np.empty(paths.flow.size), np.empty(paths.flow.size, np.int64)
    path_codes(pairs, paths, state, prices, codes)
    exchanges, key, differ = list_exchanges(pairs, kind, paths, prices, codes, marks)
    swaps = bundle(exchanges, key, differ, paths, marks)
    count, slope = swaps.fixed.size, state[:, SLOPE].copy()
    start, own, gradient, diagonal = swaps.start, swaps.own, np.zeros(count), np.empty(count)
    _slope_along(gradient, swaps, state, gradient)
    for j in range(count):
        diagonal[j] = _FLAT
        for k in range(start[j], start[j + 1]):
            diagonal[j] += slope[own[k]]
    stretches, rate = merge_stretches(swaps, slope)
    amount = best_swaps(stretches, gradient, diagonal, rate, accuracy, products, passes)
    before = 0.0
    for j in range(count):
        before += amount[j] * gradient[j]
    if not before < 0.0:
        return False
    share = _search(amount, swaps, before, law, state)
    carry_out(amount, share, exchanges, swaps, paths.flow)
    return True
