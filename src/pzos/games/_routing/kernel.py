"""The compiled entry point of the routing solver: warm, else cold, else perturbed; no answer without certificate."""

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np

from pzos.base.types import Vector
from pzos.games._compile import compiled, inlined, inner, reordered, whole
from pzos.games._routing.active_set import FAILED, FULL, OPTIMAL, balance, change_tolls, let_in, set_latency, set_prices
from pzos.games._routing.columns import changed, fill_gram, invert
from pzos.games._routing.polish import exact_state, polish
from pzos.games._routing.pricing import arrange_forest, cheapest, trace_cycle, trace_path
from pzos.games._routing.space import (
    COLD,
    INVERTED,
    PERTURBED,
    READY,
    RESPONSES,
    SPARE,
    TOTAL,
    UNCHANGED,
    Handle,
    Integers,
    Pool,
    forest_of,
    gap_of,
    loads_of,
    network_of,
    pool_of,
)

NOT_FINITE = 3

CERTIFIED = 1e-11
"""Largest share of the demand that a certified flow may lie below zero."""

TINY_COST = 2e-14
"""Relative to the largest perceived edge cost, per vertex: cheaper by less than this is a tie."""

TINY_FLOW = 1e-14
"""Relative to the total demand: a flow within this of zero is zero."""


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


@inlined
def reset(space: Handle) -> None:
    """Forget the past: all demand on the path with the fewest edges."""
    network, forest, pool, loads = network_of(space), forest_of(space), pool_of(space), loads_of(space)
    tally, capacity, classes = pool.tally, pool.active.size, network.demand.size
    for k in range(capacity):
        pool.spare[k] = capacity - 1 - k
    tally[SPARE], tally[TOTAL], tally[READY] = capacity - classes, classes, 1
    changed(tally)
    for e in range(loads.load.size):
        loads.mark[e] = loads.load[e] = 0.0
    for i in range(classes):
        for vertex in range(forest.parent.shape[1]):
            forest.parent[i, vertex] = network.first_parent[i, vertex]
        arrange_forest(i, space)
        pool.active[i] = i
        trace_path(i, i, space)
        pool.flow[i] = network.demand[i]
        for k in range(pool.length[i]):
            loads.load[pool.edges[i, k]] += network.demand[i]
    for i in range(classes):
        fill_gram(i, classes, space)


@inlined
def enlarge(tolerance: float, tolls: Vector, space: Handle) -> tuple[int, int, float]:
    """Price every class: how it went, the number of columns found too cheap, and the largest saving they offer."""
    network, forest, pool, loads = network_of(space), forest_of(space), pool_of(space), loads_of(space)
    tally, classes, found, saving = pool.tally, network.demand.size, 0, 0.0
    set_prices(0, classes, loads.latency, pool)
    for i in range(classes):
        closing = cheapest(i, tolerance, tolls, space)
        if closing < 0:
            excess = pool.price[pool.active[i]] - forest.label[i, network.destination[i]]
            saving = max(saving, excess)
            if excess <= tolerance:
                continue
        if tally[SPARE] == 0:
            return FULL, found, saving
        tally[SPARE] -= 1
        slot = pool.spare[tally[SPARE]]
        valid = trace_cycle(i, slot, closing, space) if closing >= 0 else trace_path(i, slot, space)
        if not valid:
            return FAILED, found, saving
        if found == 0:
            set_prices(0, tally[TOTAL], loads.latency, pool)
        found += 1
        status = let_in(slot, tolerance, tolls, space)
        if status != OPTIMAL:
            return status, found, saving
    return OPTIMAL, found, saving


@reordered
def cost_scale(toll: float, fastest: float, latency: Vector) -> float:
    """Bound on the size of a perceived edge cost at the present latencies."""
    largest = 0.0
    for e in range(latency.size):
        largest = max(largest, abs(latency[e]))
    return largest + toll * fastest


@inlined
def lowest_flow(pool: Pool) -> float:
    """Most negative flow of an active column."""
    active, flow, lowest = pool.active, pool.flow, 0.0
    for position in range(pool.tally[TOTAL]):
        lowest = min(lowest, flow[active[position]])
    return lowest


@inner
def search(tolls: Vector, largest_toll: float, coarse: bool, space: Handle) -> tuple[int, float]:
    """From the present columns to the equilibrium: how it went, and the certified relative gap.

    A path is cheaper if it saves more than a share of the costs themselves; `coarse`: of what a gap is relative to.
    That is more where all costs are small beside the steepest slope, so that rounding of a flow shows in them.
    """
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    tally, flow_size = pool.tally, network.flow_size[0]
    if tally[UNCHANGED] == 2:  # they seem to stay
        invert(tally[TOTAL] - network.demand.size, pool.factor, pool.inverse)
        tally[INVERTED] = 1
    change_tolls(tolls, network, pool)
    for _ in range(20 + 4 * pool.active.size):
        status = balance(TINY_FLOW * flow_size, space)
        if status != OPTIMAL:
            return status, np.inf
        exact_state(space)
        scale = cost_scale(largest_toll, network.fastest[0], loads.latency)
        gap_scale = max(scale, network.steepest[0])
        tolerance = TINY_COST * network.first_out.size * (gap_scale if coarse else scale)
        status, found, saving = enlarge(tolerance, tolls, space)
        if status != OPTIMAL:
            return status, np.inf
        if found == 0:
            residual = polish(CERTIFIED * flow_size, space)
            if residual < 0.0 or lowest_flow(pool) < -CERTIFIED * flow_size:
                return FAILED, np.inf
            tally[UNCHANGED] += 1
            return OPTIMAL, max(saving, residual) / gap_scale
    return FAILED, np.inf


@inner
def restart(space: Handle) -> None:
    """Cold start."""
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    reset(space)
    set_latency(network, loads)
    for i in range(network.demand.size):
        pool.toll[pool.active[i]] = 0.0
    set_prices(0, network.demand.size, loads.latency, pool)


@inlined
def perturb(size: float, tolls: Vector, moved: Vector) -> None:
    """Tolls moved a little, each by its own fixed share of `size`: ties are broken, the same way every time."""
    for e in range(tolls.size):
        share = (0.6180339887498949 * (e + 1)) % 1.0
        moved[e] = tolls[e] + size * (share - 0.5)


@inlined
def solve(tolls: Vector, tally: Integers, moved: Vector, space: Handle) -> tuple[int, float]:
    """One response: warm, else cold, else from the columns of slightly moved tolls."""
    if not are_finite(tolls):
        return NOT_FINITE, np.inf
    largest = toll_size(tolls)
    status, gap, warm = FAILED, np.inf, tally[READY]
    for attempt in range(1 - warm, 5):
        if attempt > 0:
            restart(space)
            tally[COLD if attempt == 1 else PERTURBED] += warm if attempt == 1 else 1
        for last in range(0 if attempt > 1 else 1, 2):
            asked = tolls
            if last == 0:
                asked = moved
                perturb(1e-13 * 100.0**attempt * (1.0 + largest), tolls, asked)
            status, gap = search(asked, largest, attempt > 1, space)
            if status != OPTIMAL:
                break
        if status != FAILED:
            break
    if status == OPTIMAL:
        tally[RESPONSES] += 1
    else:
        tally[READY] = 0
    return status, gap


def source_stamp() -> int:
    """Checksum of the kernel's sources: numba's cache looks at the file of the entry point only."""
    return crc32(b"".join(source.read_bytes() for source in sorted(Path(__file__).parent.glob("*.py"))))


def _build(stamp: int) -> Callable[[Handle, Vector], int]:
    def respond(space: Handle, rows: Vector) -> int:
        """Replace tolls, row after row in one flat array, by responses; 8 * row + status of the first that failed."""
        pool, loads, gap = pool_of(space), loads_of(space), gap_of(space)
        load, moved, edges = loads.load, loads.moved, loads.load.size
        if stamp < 0:  # part of the key of numba's cache because it is used
            return -1
        for row in range(rows.size // edges):
            tolls = rows[row * edges : (row + 1) * edges]
            status, gap[row] = solve(tolls, pool.tally, moved, space)
            if status != OPTIMAL:
                return 8 * row + whole(status)
            for e in range(edges):
                tolls[e] = load[e]
        return 0

    return compiled(respond)


respond = _build(source_stamp())
