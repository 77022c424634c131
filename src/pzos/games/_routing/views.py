"""The parts of a workspace, seen from compiled code."""

from typing import Any

from numba import carray

from pzos.games._routing.compile import FLOAT, INTEGER, merged, pointer
from pzos.games._routing.layout import COUNTS, FIRST, HEADER, LANES, ROWS


@merged
def views(space: int) -> Any:
    """The parts of the workspace at an address but for the lanes, in the order of `Views`."""
    header = carray(pointer(space, 0, INTEGER), (HEADER,))
    n, m, k, c, floats = header[0], header[1], header[2], header[3], header[4]
    i = HEADER
    tail, head, i = carray(pointer(space, i, INTEGER), (m,)), carray(pointer(space, i + m, INTEGER), (m,)), i + 2 * m
    first_out, i = carray(pointer(space, i, INTEGER), (n + 1,)), i + n + 1
    out_edge, i = carray(pointer(space, i, INTEGER), (m,)), i + m
    origin, i = carray(pointer(space, i, INTEGER), (k,)), i + k
    destination, i = carray(pointer(space, i, INTEGER), (k,)), i + k
    first_parent, i = carray(pointer(space, i, INTEGER), (k, n)), i + k * n
    count, i = carray(pointer(space, i, INTEGER), (COUNTS,)), i + COUNTS
    active, spare, i = carray(pointer(space, i, INTEGER), (c,)), carray(pointer(space, i + c, INTEGER), (c,)), i + 2 * c
    columns, i = carray(pointer(space, i, INTEGER), (c, n + FIRST)), i + c * (n + FIRST)
    parent, i = carray(pointer(space, i, INTEGER), (k, n)), i + k * n
    sequence, i = carray(pointer(space, i, INTEGER), (k, n)), i + k * n
    queue = carray(pointer(space, i, INTEGER), (4, n))
    j = 0
    slope, j = carray(pointer(floats, j, FLOAT), (m,)), j + m
    intercept, j = carray(pointer(floats, j, FLOAT), (m,)), j + m
    demand, j = carray(pointer(floats, j, FLOAT), (k,)), j + k
    rate, j = carray(pointer(floats, j, FLOAT), (2, k)), j + 2 * k
    b = (k + LANES - 1) // LANES
    rates, j = carray(pointer(floats, j, FLOAT), (b, LANES)), j + b * LANES
    guard, j = carray(pointer(floats, j, FLOAT), (b * m, LANES)), j + b * m * LANES
    flow, j = carray(pointer(floats, j, FLOAT), (c,)), j + c
    toll, j = carray(pointer(floats, j, FLOAT), (2, c)), j + 2 * c
    price, j = carray(pointer(floats, j, FLOAT), (2, c)), j + 2 * c
    reduced, j = carray(pointer(floats, j, FLOAT), (c,)), j + c
    step, j = carray(pointer(floats, j, FLOAT), (c + LANES,)), j + c + LANES
    gram, j = carray(pointer(floats, j, FLOAT), (c, c)), j + c * c
    factor, j = carray(pointer(floats, j, FLOAT), (c, c)), j + c * c
    load, j = carray(pointer(floats, j, FLOAT), (2, m)), j + 2 * m
    latency, j = carray(pointer(floats, j, FLOAT), (2, m)), j + 2 * m
    scratch, j = carray(pointer(floats, j, FLOAT), (3, m)), j + 3 * m
    label, j = carray(pointer(floats, j, FLOAT), (k, n)), j + k * n
    gap = carray(pointer(floats, j, FLOAT), (ROWS,))
    return (
        tail, head, first_out, out_edge, origin, destination, first_parent, count, active, spare, columns, parent,
        sequence, queue, slope, intercept, demand, rate, rates, guard, flow, toll, price, reduced, step, gram, factor,
        load, latency, scratch, label, gap,
    )  # fmt: skip


@merged
def lane_views(space: int) -> Any:
    """The parts for eight rows side by side, in the order of `Views`: they lie at the end of the float buffer."""
    header = carray(pointer(space, 0, INTEGER), (HEADER,))
    n, m, c, floats = header[0], header[1], header[3], header[4]
    j = header[5]
    lane_toll, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_load, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_load_low, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_latency, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_latency_low, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_cost, j = carray(pointer(floats, j, FLOAT), (m, LANES)), j + LANES * m
    lane_flow, j = carray(pointer(floats, j, FLOAT), (c, LANES)), j + LANES * c
    lane_price, j = carray(pointer(floats, j, FLOAT), (c, LANES)), j + LANES * c
    lane_low, j = carray(pointer(floats, j, FLOAT), (c, LANES)), j + LANES * c
    lane_step, j = carray(pointer(floats, j, FLOAT), (c, LANES)), j + LANES * c
    lane_label, j = carray(pointer(floats, j, FLOAT), (n, LANES)), j + LANES * n
    b = (c + LANES - 1) // LANES
    inverse = carray(pointer(floats, j, FLOAT), (b * c, LANES))
    return (
        lane_toll, lane_load, lane_load_low, lane_latency, lane_latency_low, lane_cost, lane_flow, lane_price, lane_low,
        lane_step, lane_label, inverse,
    )  # fmt: skip
