"""Active-set search over columns, compiled: which paths and cycles are used at these tolls.

`balance` goes to the optimum of the programme on the active columns, dropping those whose flow would become negative;
`let_in` makes a column active that pricing found too cheap. The objective falls in every round, so the search ends.
"""

from pzos.base.types import Vector
from pzos.games._compile import at, embedded, inlined, inner
from pzos.games._routing.columns import (
    back_substitute,
    changed,
    drop,
    factor_row,
    fill_gram,
    newton_step,
    refactor,
    reference_steps,
    release,
)
from pzos.games._routing.polish import exact_toll
from pzos.games._routing.space import (
    ENTERED,
    STEPS,
    TOTAL,
    Handle,
    Loads,
    Pool,
    RoutingNetwork,
    loads_of,
    network_of,
    pool_of,
)

OPTIMAL, FAILED, FULL = 0, 1, 2
"""How a search ends; FULL: the workspace has no room for another column."""

ROUNDING = 1e-9
"""Shares of a combination of columns below this are rounding errors of zero."""

UNBOUNDED = 1e100
"""Longer than any step that flows allow; finite, because infinity times a zero change is not a number."""


@inlined
def change_tolls(tolls: Vector, network: RoutingNetwork, pool: Pool) -> None:
    """Perceived tolls of all active columns, with them their prices, and what they cost more than their references."""
    active, group, toll, price, reduced = pool.active, pool.group, pool.toll, pool.price, pool.reduced
    for position in range(pool.tally[TOTAL]):
        slot = at(active[position])
        before = toll[slot]
        exact_toll(slot, tolls, network, pool)
        price[slot] += toll[slot] - before
    for position in range(pool.tally[TOTAL]):
        slot = at(active[position])
        base = at(active[at(group[slot])])
        reduced[position] = price[slot] - (price[base] if pool.cycle[slot] == 0 else 0.0)


@embedded
def set_prices(first: int, total: int, latency: Vector, pool: Pool) -> None:
    """Perceived costs of the active columns from position `first` on, and what they cost more than their references."""
    active, group, length, edges, price = pool.active, pool.group, pool.length, pool.edges, pool.price
    for position in range(first, total):
        slot = at(active[position])
        paid = pool.toll[slot]
        for k in range(length[slot]):
            paid += latency[at(edges[slot, k])]
        price[slot] = paid
        if pool.cycle[slot] == 0:
            paid -= price[at(active[at(group[slot])])]
        pool.reduced[position] = paid


@embedded
def set_latency(network: RoutingNetwork, loads: Loads) -> None:
    """Latencies a_e F_e + b_e at the present load."""
    slope, intercept, load, latency = network.slope, network.intercept, loads.load, loads.latency
    for e in range(slope.size):
        latency[e] = slope[e] * load[e] + intercept[e]


@embedded
def longest_step(total: int, limit: float, tolerance: float, pool: Pool) -> tuple[float, int]:
    """Largest share of the step (at most `limit`) that keeps flows nonnegative, and the position that stops it."""
    active, flow, step = pool.active, pool.flow, pool.step
    share, place = limit, -1
    for position in range(total):
        present, change = flow[at(active[position])], step[position]
        if change < 0.0 and present + share * change < -tolerance:
            share, place = max(present, 0.0) / -change, position
    return share, place


@embedded
def move_flows(total: int, share: float, pool: Pool) -> None:
    """Move flows along the step; the load follows by `move_load`, or anew from the flows."""
    active, flow, step = pool.active, pool.flow, pool.step
    for position in range(total):
        flow[at(active[position])] += share * step[position]


@inlined
def move_load(total: int, share: float, load: Vector, pool: Pool) -> None:
    """Move the load along the step."""
    active, length, edges, step = pool.active, pool.length, pool.edges, pool.step
    for position in range(total):
        slot, change = at(active[position]), share * step[position]
        for k in range(length[slot]):
            load[at(edges[slot, k])] += change


@inlined
def balance(tolerance: float, space: Handle) -> int:
    """Flows of the optimum on the active columns, after dropping every column that would get negative flow.

    The reduced costs must be those of the present flows; the load is left where the last column was dropped.
    """
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    classes, tally = network.demand.size, pool.tally
    for _ in range(2 * pool.active.size):
        total = tally[TOTAL]
        newton_step(total, classes, pool)
        tally[STEPS] += 1
        reference_steps(total, classes, pool)
        share, place = longest_step(total, 1.0, tolerance, pool)
        move_flows(total, share, pool)
        if place < 0:
            return OPTIMAL
        move_load(total, share, loads.load, pool)
        set_latency(network, loads)
        if not drop(place, space):
            return FAILED
        set_prices(0, tally[TOTAL], loads.latency, pool)
    return FAILED


@inlined
def exchange(slot: int, tolerance: float, space: Handle) -> int:
    """Let in a column that is a combination of active ones: shift flow to it until one of them is empty.

    The edge flows stay what they are, the perceived tolls paid fall. Row `rows` of the factor holds the column.
    """
    network, pool = network_of(space), pool_of(space)
    classes, tally, reduced, step, factor = network.demand.size, pool.tally, pool.reduced, pool.step, pool.factor
    total = tally[TOTAL]
    rows = total - classes
    for row in range(rows):
        step[classes + row] = factor[rows, row]
    back_substitute(rows, classes, factor, step)
    gain = reduced[total]
    for position in range(classes, total):
        share = -step[position] if abs(step[position]) > ROUNDING else 0.0
        gain += share * reduced[position]
        step[position] = share
    if gain >= -tolerance:
        release(slot, tally, pool.spare)
        return OPTIMAL
    step[total] = 1.0
    reference_steps(total + 1, classes, pool)
    for i in range(classes):
        step[i] = step[i] if abs(step[i]) > ROUNDING else 0.0
    share, place = longest_step(total + 1, UNBOUNDED, 0.0, pool)
    if place < 0:
        return FAILED
    move_flows(total + 1, share, pool)
    tally[TOTAL] = total + 1
    return OPTIMAL if drop_any(place, space) else FAILED


@inlined
def drop_any(place: int, space: Handle) -> bool:
    """Drop a column although the factor's last row is missing: rows are computed anew."""
    network, pool = network_of(space), pool_of(space)
    classes, tally, active = network.demand.size, pool.tally, pool.active
    if place < classes:
        return drop(place, space)
    release(active[place], tally, pool.spare)
    tally[TOTAL] -= 1
    active[place] = active[tally[TOTAL]]
    return refactor(place - classes, space)


@inner
def let_in(slot: int, tolerance: float, tolls: Vector, space: Handle) -> int:
    """Make a new column active with no flow yet, or exchange it where it is a combination of active ones."""
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    classes, tally = network.demand.size, pool.tally
    total = tally[TOTAL]
    pool.flow[slot] = 0.0
    pool.active[total] = slot
    exact_toll(slot, tolls, network, pool)
    set_prices(total, total + 1, loads.latency, pool)
    fill_gram(slot, total, space)
    tally[ENTERED] += 1
    changed(tally)
    if factor_row(total - classes, space):
        tally[TOTAL] = total + 1
        return OPTIMAL
    status = exchange(slot, tolerance, space)
    set_prices(0, tally[TOTAL], loads.latency, pool)
    return status
