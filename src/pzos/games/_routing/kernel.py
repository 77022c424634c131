"""The compiled entry point of the routing solver: warm, else cold, else perturbed; no answer without certificate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numba
import numpy as np
from numba import carray

from pzos.base.types import Matrix, Vector
from pzos.games._routing.active_set import (
    FAILED,
    FULL,
    OPTIMAL,
    balance,
    change_tolls,
    let_in,
    set_latency,
    set_prices,
    set_reduced,
)
from pzos.games._routing.batch import flow_scale, respond_together, steepest
from pzos.games._routing.columns import changed, fill_gram, invert
from pzos.games._routing.compile import FLOAT, compiled, inlined, merged, pointer, reordered, whole
from pzos.games._routing.lanes import WIDTH
from pzos.games._routing.layout import (
    CERTIFIED,
    COLD,
    FIRST,
    INVERTED,
    LENGTH,
    PAUSE,
    PERTURBED,
    READY,
    RESPONSES,
    SPARE,
    TINY_COST,
    TINY_FLOW,
    TOTAL,
    UNCHANGED,
    Integers,
)
from pzos.games._routing.polish import ZERO, exact_state, polish
from pzos.games._routing.pricing import (
    arrange_forest,
    correct_labels,
    label_forest,
    trace_cycle,
    trace_path,
    violations,
)
from pzos.games._routing.views import lane_views, views

__all__ = ["FAILED", "FULL", "NOT_FINITE", "OPTIMAL", "respond"]

NOT_FINITE = 3

WORTHWHILE = 3
"""To go side by side costs about as much as so many rows one after the other."""


@reordered
def toll_size(tolls: Vector) -> float:
    """Largest toll, given that all are finite."""
    largest = 0.0
    for e in range(tolls.size):
        largest = max(largest, abs(tolls[e]))
    return largest


@inlined
def are_finite(tolls: Vector) -> bool:
    """Whether every toll is a finite number."""
    finite = 0
    for e in range(tolls.size):
        finite += abs(tolls[e]) < np.inf
    return finite == tolls.size


@merged
def reset(
    tail: Integers,
    origin: Integers,
    destination: Integers,
    first_parent: Integers,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    parent: Integers,
    sequence: Integers,
    queue: Integers,
    slope: Vector,
    demand: Vector,
    flow: Vector,
    gram: Matrix,
    load: Matrix,
    mark: Vector,
) -> None:
    """Forget the past: all demand on the path with the fewest edges."""
    capacity, classes = active.size, demand.size
    for k in range(capacity):
        spare[k] = capacity - 1 - k
    count[SPARE], count[TOTAL], count[READY] = capacity - classes, classes, 1
    changed(count)
    for e in range(mark.size):
        mark[e] = load[0, e] = 0.0
    for i in range(classes):
        for vertex in range(parent.shape[1]):
            parent[i, vertex] = first_parent[i, vertex]
        arrange_forest(i, tail, parent, sequence, queue)
        active[i] = i
        trace_path(i, i, tail, origin, destination, parent, columns)
        flow[i] = demand[i]
        for k in range(FIRST, FIRST + columns[i, LENGTH]):
            load[0, columns[i, k]] += demand[i]
    for i in range(classes):
        fill_gram(i, classes, active, columns, slope, mark, gram)


@merged
def cheapest(i: int, tolerance: float, tolls: Vector, parts: Any) -> int:
    """Bring the forest of class i up to date: -1, or the edge that closes a negative cycle with it."""
    (tail, head, first_out, out_edge, _, _, _, _, _, _, _, parent, sequence, queue,
     _, _, _, rate, _, guard, _, _, _, _, _, _, _, _, latency, scratch, label, _) = parts  # fmt: skip
    cost, block, lane = scratch[1], i // WIDTH * tail.size, i % WIDTH
    for e in range(tail.size):
        cost[e] = latency[0, e] + tolls[e] * rate[0, i] + guard[block + e, lane]
    label_forest(i, tail, cost, parent, sequence, label)
    closing = correct_labels(i, tolerance, tail, head, first_out, out_edge, cost, parent, label, queue)
    arrange_forest(i, tail, parent, sequence, queue)
    label_forest(i, tail, cost, parent, sequence, label)
    return closing


@merged
def enlarge(
    tolerance: float, tolls: Vector, parts: Any, lane_cost: Matrix, lane_label: Matrix
) -> tuple[int, int, float]:
    """Price every class: how it went, the number of columns found too cheap, and the largest saving they offer."""
    (tail, head, _, _, origin, destination, _, count, active, spare, columns, parent, sequence, _, slope, _, demand,
     rate, rates, guard, flow, toll, price, reduced, step, gram, factor, _, latency, scratch, label,
     _) = parts  # fmt: skip
    found, saving, violated = 0, 0.0, 0
    set_prices(0, demand.size, active, columns, toll, latency, price, reduced)
    for i in range(demand.size):
        lane = i % WIDTH
        if lane == 0:
            violated = violations(
                i // WIDTH, tolerance, tolls, tail, head, parent, sequence, rates, guard, latency, lane_cost, lane_label
            )  # fmt: skip
        closing, least = -1, lane_label[destination[i], lane]
        if violated >> lane & 1:
            closing = cheapest(i, tolerance, tolls, parts)
            least = label[i, destination[i]]
        excess = price[0, active[i]] - least
        if closing < 0:
            saving = max(saving, excess)
            if excess <= tolerance:
                continue
        if count[SPARE] == 0:
            return FULL, found, saving
        count[SPARE] -= 1
        slot = spare[count[SPARE]]
        if closing >= 0:
            valid = trace_cycle(i, slot, closing, tail, head, parent, columns)
        else:
            valid = trace_path(i, slot, tail, origin, destination, parent, columns)
        if not valid:
            return FAILED, found, saving
        if found == 0:
            set_prices(0, count[TOTAL], active, columns, toll, latency, price, reduced)
        found += 1
        status = let_in(
            slot, tolerance, tolls, count, active, spare, columns, slope, rate, flow, toll, price, reduced, step, gram,
            factor, latency, scratch[0],
        )  # fmt: skip
        if status != OPTIMAL:
            return status, found, saving
    return OPTIMAL, found, saving


@reordered
def cost_scale(toll: float, rate: Matrix, latency: Matrix) -> float:
    """Bound on the size of a perceived edge cost at the present latencies."""
    largest, fastest = 0.0, 0.0
    for e in range(latency.shape[1]):
        largest = max(largest, abs(latency[0, e]))
    for i in range(rate.shape[1]):
        fastest = max(fastest, rate[0, i])
    return largest + toll * fastest


@merged
def lowest_flow(total: int, active: Integers, flow: Vector) -> float:
    """Most negative flow of an active column."""
    lowest = 0.0
    for position in range(total):
        lowest = min(lowest, flow[active[position]])
    return lowest


@compiled
def search(tolls: Vector, largest_toll: float, space: int) -> tuple[int, float]:
    """From the present columns to the equilibrium: how it went, and the certified relative gap."""
    parts, lanes = views(space), lane_views(space)
    (_, _, first_out, _, _, _, _, count, active, spare, columns, _, _, _, slope, intercept, demand, rate, _, _,
     flow, toll, price, reduced, step, gram, factor, load, latency, _, _, _) = parts  # fmt: skip
    flow_size = flow_scale(demand)
    lane_cost, lane_step, lane_label, inverse = lanes[5], lanes[9], lanes[10], lanes[11]
    if count[UNCHANGED] == 2:  # they seem to stay
        invert(count[TOTAL] - demand.size, factor, lane_step, inverse)
        count[INVERTED] = 1
    change_tolls(count[TOTAL], active, columns, tolls, rate, toll, price)
    set_reduced(count[TOTAL], active, columns, price, reduced)
    for _ in range(20 + 4 * active.size):
        status = balance(
            TINY_FLOW * flow_size, count, active, spare, columns, slope, intercept, rate, flow, toll, price, reduced,
            step, gram, factor, inverse, load, latency,
        )  # fmt: skip
        if status != OPTIMAL:
            return status, np.inf
        exact_state(count[TOTAL], active, columns, slope, intercept, demand, flow, price, load, latency)
        scale = cost_scale(largest_toll, rate, latency)
        status, found, saving = enlarge(TINY_COST * first_out.size * scale, tolls, parts, lane_cost, lane_label)
        if status != OPTIMAL:
            return status, np.inf
        if found == 0:
            residual = polish(
                count[TOTAL], CERTIFIED * flow_size, count, active, columns, toll, slope, intercept, demand, flow,
                price, reduced, step, factor, inverse, load, latency,
            )  # fmt: skip
            if residual < 0.0 or lowest_flow(count[TOTAL], active, flow) < -CERTIFIED * flow_size:
                return FAILED, np.inf
            count[UNCHANGED] += 1
            return OPTIMAL, max(saving, residual) / max(scale, steepest(slope))
    return FAILED, np.inf


@compiled
def restart(space: int) -> None:
    """Cold start."""
    parts = views(space)
    (tail, _, _, _, origin, destination, first_parent, count, active, spare, columns, parent, sequence, queue, slope,
     intercept, demand, _, _, _, flow, toll, price, reduced, _, gram, _, load, latency, scratch, _,
     _) = parts  # fmt: skip
    reset(
        tail, origin, destination, first_parent, count, active, spare, columns, parent, sequence, queue, slope, demand,
        flow, gram, load, scratch[0],
    )  # fmt: skip
    set_latency(slope, intercept, load, latency)
    for i in range(demand.size):
        toll[0, active[i]] = 0.0
    set_prices(0, demand.size, active, columns, toll, latency, price, reduced)


@merged
def perturb(size: float, tolls: Vector, moved: Vector) -> None:
    """Tolls moved a little, each by its own fixed share of `size`: ties are broken, the same way every time."""
    for e in range(tolls.size):
        share = (0.6180339887498949 * (e + 1)) % 1.0
        moved[e] = tolls[e] + size * (share - 0.5)


@merged
def solve(tolls: Vector, space: int, count: Integers, moved: Vector) -> tuple[int, float]:
    """One response: warm, else cold, else from the columns of slightly moved tolls."""
    if not are_finite(tolls):
        return NOT_FINITE, np.inf
    largest = toll_size(tolls)
    status, gap, warm = FAILED, np.inf, count[READY]
    for attempt in range(1 - warm, 5):
        if attempt > 0:
            restart(space)
            count[COLD if attempt == 1 else PERTURBED] += warm if attempt == 1 else 1
        for last in range(0 if attempt > 1 else 1, 2):
            asked = tolls
            if last == 0:
                asked = moved
                perturb(1e-13 * 100.0**attempt * (1.0 + largest), tolls, asked)
            status, gap = search(asked, largest, space)
            if status != OPTIMAL:
                break
        if status != FAILED:
            break
    if status == OPTIMAL:
        count[RESPONSES] += 1
    else:
        count[READY] = 0
    return status, gap


def source_stamp() -> int:
    """Checksum of the kernel's sources: numba's cache looks at the file of the entry point only."""
    stamp = 0
    for source in sorted(Path(__file__).parent.glob("_routing_*.py")):
        stamp = crc32(source.read_bytes(), stamp)
    return stamp


@merged
def respond_alone(row: int, rows: Vector, space: int, count: Integers, load: Matrix, moved: Vector, gap: Vector) -> int:
    """Replace the tolls of one row by the response."""
    edges = load.shape[1]
    tolls = carray(pointer(rows.ctypes.data, row * edges, FLOAT), (edges,))
    status, gap[row] = solve(tolls, space, count, moved)
    if status == OPTIMAL:
        for e in range(edges):
            tolls[e] = load[0, e]
    return status


@merged
def take_lane(
    lane: int, row: int, zero: float, rows: Vector, load: Matrix, difference: Matrix, scale: Matrix, gap: Vector
) -> None:
    """Replace the tolls of a row by the response in a lane."""
    for e in range(load.shape[0]):
        value = load[e, lane]
        rows[row * load.shape[0] + e] = value if value > zero else 0.0
    gap[row] = difference[0, lane] / scale[0, lane]


@merged
def together(row: int, number: int, count: Integers) -> int:
    """How many rows go side by side from here on; the first row alone, it brings the columns of its neighbourhood."""
    if row == 0 or count[READY] == 0 or number - row < WORTHWHILE:
        return 1
    if count[PAUSE] > 0:
        count[PAUSE] -= 1
        return 1
    return min(WIDTH, number - row)


def _build(stamp: int) -> Callable[[int, Vector], int]:
    def respond(space: int, rows: Vector) -> int:
        """Replace tolls, row after row in one flat array, by responses; 8 * row + status of the first that failed."""
        parts, lanes = views(space), lane_views(space)
        count, demand, load, moved, gap = parts[7], parts[16], parts[27], parts[29][2], parts[31]
        zero = ZERO * (CERTIFIED * flow_scale(demand))
        number, row = rows.size // load.shape[1], whole(0)
        if stamp < 0:
            return -1
        while row < number:
            block, mask, answered = together(row, number, count), 0, 0
            if block > 1:
                mask = respond_together(rows, row, block, space)
            for lane in range(block):
                if mask >> lane & 1:
                    take_lane(lane, row + lane, zero, rows, lanes[1], lanes[0], lanes[3], gap)
                    answered += 1
                    continue
                status = respond_alone(row + lane, rows, space, count, load, moved, gap)
                if status != OPTIMAL:
                    return 8 * (row + lane) + status
            if block > 1 and answered < WORTHWHILE:
                count[PAUSE] = 4 * WIDTH
            count[RESPONSES] += answered
            row += block
        return 0

    kernel = numba.njit(cache=True, nogil=True, error_model="numpy")(respond)
    return cast(Callable[[int, Vector], int], kernel)


respond = _build(source_stamp())
