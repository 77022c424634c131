"""Eight responses at once, compiled: rows of a batch that use the columns and forests at hand need no search.

Tolls of a batch lie near each other, and most of them are answered by the columns of the last response. So eight rows
go side by side, one per lane, through what the search does where it has nothing to search: one Newton step, pricing,
the last solve in twice the precision, the same certificate. Lanes where a flow would become negative, or where a path
or cycle is too cheap, are left to the search. Which rows go this way never shows: the exact flow, rounded, is unique.
"""

from pzos.base.types import Matrix, Vector
from pzos.games._routing.columns import triangular_solves
from pzos.games._routing.compile import at, compiled, inlined, merged, reordered
from pzos.games._routing.lanes import ALL, WIDTH, Lanes, below, fused, lanes_at, larger, magnitude, put_lanes
from pzos.games._routing.layout import (
    CERTIFIED,
    CYCLE,
    FIRST,
    GROUP,
    LENGTH,
    TINY_COST,
    TINY_FLOW,
    TOTAL,
    Integers,
)
from pzos.games._routing.polish import NEAR_MIDPOINT
from pzos.games._routing.twice import two_product, two_sum
from pzos.games._routing.views import lane_views, views

HUGE = 1e200
"""Lanes with larger numbers (or none) are left to the search."""


@inlined
def flow_scale(demand: Vector) -> float:
    """Size of flows that tolerances are relative to."""
    size = 1.0
    for i in range(demand.size):
        size += demand[i]
    return size


@inlined
def are_few(mask: int) -> bool:
    """Whether at most two lanes are left: one after the other is faster then."""
    without_one = mask & (mask - 1)
    return without_one & (without_one - 1) == 0


@reordered
def steepest(slope: Vector) -> float:
    """Cost of a unit of flow on the steepest edge: where nothing costs anything, gaps are relative to this."""
    largest = 0.0
    for e in range(slope.size):
        largest = max(largest, slope[e])
    return largest


@merged
def spread_tolls(rows: Vector, first: int, number: int, toll: Matrix) -> tuple[int, Lanes]:
    """Tolls of the rows into the lanes (the last row again into unused ones): which are finite, and their sizes."""
    edges = toll.shape[0]
    for lane in range(WIDTH):
        start = (first + min(lane, number - 1)) * edges
        for e in range(edges):
            toll[e, lane] = rows[start + e]
    good, largest = ALL, lanes_at(toll, 0) * 0.0
    for e in range(edges):
        size = magnitude(lanes_at(toll, e))
        good &= below(size, HUGE)
        largest = larger(largest, size)
    return good, largest


@merged
def first_flows(
    total: int, active: Integers, columns: Integers, rate: Matrix, flow: Vector, paid: Matrix, price: Matrix,
    factor: Matrix, toll: Matrix, flows: Matrix, prices: Matrix, step: Matrix,
) -> Lanes:  # fmt: skip
    """Flows of the optimum on the active columns, up to rounding; returns the lowest of them, with the sign turned."""
    classes = rate.shape[1]
    for position in range(total):
        slot = at(active[position])
        group = at(columns[slot, GROUP])
        tolls = lanes_at(toll, columns[slot, FIRST])
        for k in range(FIRST + 1, FIRST + columns[slot, LENGTH]):
            tolls = tolls + lanes_at(toll, columns[slot, k])
        cost = fused(tolls, rate[0, group], price[0, slot] - paid[0, slot])
        put_lanes(prices, position, cost)
        if position >= classes:
            base = lanes_at(prices, group) if columns[slot, CYCLE] == 0 else cost * 0.0
            put_lanes(step, position - classes, base - cost)
    triangular_solves(total - classes, factor, step)
    lowest = lanes_at(prices, 0) * 0.0
    for i in range(classes):
        put_lanes(flows, i, flow[active[i]])
    for position in range(classes, total):
        slot = at(active[position])
        change = lanes_at(step, position - classes)
        moved = change + flow[slot]
        put_lanes(flows, position, moved)
        lowest = larger(lowest, 0.0 - moved)
        if columns[slot, CYCLE] == 0:
            group = at(columns[slot, GROUP])
            put_lanes(flows, group, lanes_at(flows, group) - change)
    for i in range(classes):
        lowest = larger(lowest, 0.0 - lanes_at(flows, i))
    return lowest


@merged
def exact_loads(
    total: int, active: Integers, columns: Integers, demand: Vector, flows: Matrix, lows: Matrix, load: Matrix,
    load_low: Matrix,
) -> None:  # fmt: skip
    """Flows of the references, exactly the rest of the demand, and the load of every edge."""
    for i in range(demand.size):
        put_lanes(flows, i, demand[i])
        put_lanes(lows, i, 0.0)
    for position in range(demand.size, total):
        slot = at(active[position])
        if columns[slot, CYCLE] == 0:
            base = at(columns[slot, GROUP])
            rest, error = two_sum(lanes_at(flows, base), 0.0 - lanes_at(flows, position))
            put_lanes(flows, base, rest)
            put_lanes(lows, base, lanes_at(lows, base) + error)
    for e in range(load.shape[0]):
        put_lanes(load, e, 0.0)
        put_lanes(load_low, e, 0.0)
    for position in range(total):
        slot = at(active[position])
        high = lanes_at(flows, position)
        low = lanes_at(lows, position) if position < demand.size else high * 0.0
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            edge = at(columns[slot, k])
            moved, error = two_sum(lanes_at(load, edge), high)
            put_lanes(load, edge, moved)
            put_lanes(load_low, edge, lanes_at(load_low, edge) + (error + low))


@merged
def exact_latencies(
    slope: Vector, intercept: Vector, load: Matrix, load_low: Matrix, latency: Matrix, latency_low: Matrix
) -> Lanes:
    """Latency a_e F_e + b_e at the exact load; returns the largest size."""
    largest = lanes_at(load, 0) * 0.0
    for e in range(slope.size):
        product, error = two_product(lanes_at(load, e), slope[e])
        cost, rest = two_sum(product, intercept[e])
        put_lanes(latency, e, cost)
        put_lanes(latency_low, e, rest + fused(lanes_at(load_low, e), slope[e], error))
        largest = larger(largest, magnitude(cost))
    return largest


@merged
def savings(
    i: int, base: int, tail: Integers, head: Integers, destination: Integers, columns: Integers, parent: Integers,
    sequence: Integers, rate: Matrix, guard: Matrix, toll: Matrix, latency: Matrix, cost: Matrix, label: Matrix,
) -> tuple[Lanes, Lanes]:  # fmt: skip
    """What class i could save: by one edge outside the remembered forest at most, and by the path of the forest."""
    block, lane = i // WIDTH * tail.size, i % WIDTH
    for e in range(tail.size):
        put_lanes(cost, e, fused(lanes_at(toll, e), rate[0, i], lanes_at(latency, e)) + guard[block + e, lane])
    for k in range(label.shape[0]):
        vertex = at(sequence[i, k])
        edge = parent[i, vertex]
        if edge < 0:
            put_lanes(label, vertex, 0.0)
        else:
            put_lanes(label, vertex, lanes_at(label, at(tail[at(edge)])) + lanes_at(cost, at(edge)))
    by_edge = lanes_at(label, at(head[0])) - lanes_at(label, at(tail[0])) - lanes_at(cost, 0)
    for e in range(1, tail.size):
        saved = lanes_at(label, at(head[e])) - lanes_at(label, at(tail[e])) - lanes_at(cost, e)
        by_edge = larger(by_edge, saved)
    by_path = 0.0 - lanes_at(label, at(destination[i]))
    for k in range(FIRST, FIRST + columns[base, LENGTH]):
        by_path = by_path + lanes_at(cost, at(columns[base, k]))
    return by_edge, by_path


@merged
def exact_steps(
    total: int, active: Integers, columns: Integers, rate: Matrix, factor: Matrix, toll: Matrix, latency: Matrix,
    latency_low: Matrix, prices: Matrix, lows: Matrix, step: Matrix,
) -> Lanes:  # fmt: skip
    """Correction of the free flows from exact costs of the columns; returns the largest difference in cost."""
    classes = rate.shape[1]
    largest = lanes_at(prices, 0) * 0.0
    for position in range(total):
        slot = at(active[position])
        i = at(columns[slot, GROUP])
        paid, tolls = lanes_at(latency, 0) * 0.0, lanes_at(latency, 0) * 0.0
        paid_low, tolls_low = paid, paid
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            edge = at(columns[slot, k])
            paid, error = two_sum(paid, lanes_at(latency, edge))
            paid_low = paid_low + (error + lanes_at(latency_low, edge))
            tolls, error = two_sum(tolls, lanes_at(toll, edge))
            tolls_low = tolls_low + error
        perceived, error = two_product(tolls, rate[0, i])
        error = error + (tolls * rate[1, i] + tolls_low * rate[0, i])
        paid, rest = two_sum(paid, perceived)
        paid_low = paid_low + (error + rest)
        if position < classes:
            put_lanes(prices, position, paid)
            put_lanes(lows, position, paid_low)
        else:
            if columns[slot, CYCLE] == 0:
                paid, rest = two_sum(paid, 0.0 - lanes_at(prices, i))
                paid_low = rest + (paid_low - lanes_at(lows, i))
            excess = paid + paid_low
            put_lanes(step, position - classes, 0.0 - excess)
            largest = larger(largest, magnitude(excess))
    triangular_solves(total - classes, factor, step)
    return largest


@merged
def correct_loads(
    total: int, classes: int, active: Integers, columns: Integers, flows: Matrix, step: Matrix, change: Matrix,
    load: Matrix, load_low: Matrix,
) -> tuple[int, Lanes, Lanes]:  # fmt: skip
    """Round the corrected load: where it is finite, the largest correction of a flow, the lowest flow, sign turned."""
    for i in range(classes):
        put_lanes(change, i, 0.0)
    for position in range(classes, total):
        slot, moved = at(active[position]), lanes_at(step, position - classes)
        put_lanes(change, position, moved)
        if columns[slot, CYCLE] == 0:
            group = at(columns[slot, GROUP])
            put_lanes(change, group, lanes_at(change, group) - moved)
    largest = lanes_at(load, 0) * 0.0
    lowest = largest
    for position in range(total):
        slot, moved = at(active[position]), lanes_at(change, position)
        largest = larger(largest, magnitude(moved))
        lowest = larger(lowest, 0.0 - (lanes_at(flows, position) + moved))
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            edge = at(columns[slot, k])
            put_lanes(load_low, edge, lanes_at(load_low, edge) + moved)
    good = ALL
    for e in range(load.shape[0]):
        high, low = two_sum(lanes_at(load, e), lanes_at(load_low, e))
        rounded = larger(high, high + low * NEAR_MIDPOINT)
        good &= below(rounded, HUGE)
        put_lanes(load, e, rounded)
    return good, largest, lowest


@compiled
def respond_together(rows: Vector, first: int, number: int, space: int) -> int:
    """Answer rows first, ..., first + number - 1 side by side; mask of those answered.

    Their flows are left in `lane_load`, the first rows of `lane_toll` and `lane_latency` hold the differences in cost
    that are left, and the scale of costs; the search touches none of them.
    """
    (tail, head, first_out, _, _, destination, _, count, active, _, columns, parent, sequence, _, slope, intercept,
     demand, rate, _, guard, flow, paid, price, _, _, _, factor, _, _, _, _, _) = views(space)  # fmt: skip
    toll, load, load_low, latency, latency_low, cost, flows, prices, lows, step, label, _ = lane_views(space)
    total, classes = count[TOTAL], demand.size
    flow_size, fastest = flow_scale(demand), 0.0
    for i in range(classes):
        fastest = max(fastest, rate[0, i])
    mask, largest_toll = spread_tolls(rows, first, number, toll)
    lowest = first_flows(total, active, columns, rate, flow, paid, price, factor, toll, flows, prices, step)
    mask &= ~below(TINY_FLOW * flow_size, lowest)
    if are_few(mask):
        return 0
    exact_loads(total, active, columns, demand, flows, lows, load, load_low)
    scale = exact_latencies(slope, intercept, load, load_low, latency, latency_low) + largest_toll * fastest
    tolerance = scale * (TINY_COST * first_out.size)
    saving = scale * 0.0
    for i in range(classes):
        by_edge, by_path = savings(
            i, active[i], tail, head, destination, columns, parent, sequence, rate, guard, toll, latency, cost, label
        )
        saving = larger(saving, by_path)
        mask &= ~(below(tolerance, by_edge) | below(tolerance, by_path))
        if are_few(mask):
            return 0
    residual = exact_steps(
        total, active, columns, rate, factor, toll, latency, latency_low, prices, lows, step
    )  # fmt: skip
    finite, correction, lowest = correct_loads(total, classes, active, columns, flows, step, prices, load, load_low)
    mask &= finite & below(scale, HUGE)
    mask &= ~(below(CERTIFIED * flow_size, correction) | below(CERTIFIED * flow_size, lowest))
    put_lanes(toll, 0, larger(saving, residual))
    put_lanes(latency, 0, larger(scale, steepest(slope)))
    return mask
