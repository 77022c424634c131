"""The last solve, in twice the working precision, compiled: the answer does not remember how it was found.

The same equilibrium can be carried by different sets of paths, and each would round differently. So flows are refined
once with residuals of about 32 digits: what is returned is the exact edge flow of the equilibrium, rounded to double.
That is a function of the tolls alone, whatever columns, order or history led to it. `two_sum` and `two_product` are
exact (Knuth; a fused multiply-add).
"""

from pzos.base.types import Vector
from pzos.games._compile import at, embedded, fused, inlined, inner
from pzos.games._routing.columns import newton_step, reference_steps
from pzos.games._routing.space import TOTAL, Handle, Loads, Pool, RoutingNetwork, loads_of, network_of, pool_of

NEAR_MIDPOINT = 1.0 + 1e-7
"""Within 1e-7 of a rounding boundary the larger neighbour is taken, so that exact midpoints round one way."""

ZERO = 1e-10
"""Share of the tolerance below which a load is an exact zero that came out as rounding errors of 32 digits."""


@embedded
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as rounded sum and exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@embedded
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as rounded product and exact error."""
    product = a * b
    return product, fused(a, b, 0.0 - product)


@embedded
def exact_toll(slot: int, tolls: Vector, network: RoutingNetwork, pool: Pool) -> None:
    """Perceived toll of a column, the sum of tau_e / s_i over its edges."""
    edges, paid, low = pool.edges, 0.0, 0.0
    for k in range(pool.length[slot]):
        paid, error = two_sum(paid, tolls[at(edges[slot, k])])
        low += error
    i = at(pool.group[slot])
    perceived, error = two_product(paid, network.rate[i])
    pool.toll[slot] = perceived
    pool.toll_low[slot] = error + (paid * network.rate_low[i] + low * network.rate[i])


@inlined
def exact_rest(demand: Vector, pool: Pool) -> None:
    """Flows of the references: exactly the rest of the demand."""
    active, group, cycle, flow, flow_low = pool.active, pool.group, pool.cycle, pool.flow, pool.flow_low
    for i in range(demand.size):
        flow[at(active[i])] = demand[i]
        flow_low[at(active[i])] = 0.0
    for position in range(demand.size, pool.tally[TOTAL]):
        slot = at(active[position])
        flow_low[slot] = 0.0
        if cycle[slot] == 0:
            base = at(active[at(group[slot])])
            flow[base], error = two_sum(flow[base], -flow[slot])
            flow_low[base] += error


@inlined
def exact_load(pool: Pool, loads: Loads) -> None:
    """Load of every edge by all active columns."""
    active, length, edges, load, load_low = pool.active, pool.length, pool.edges, loads.load, loads.load_low
    for e in range(load.size):
        load[e] = load_low[e] = 0.0
    for position in range(pool.tally[TOTAL]):
        slot = at(active[position])
        high, low = pool.flow[slot], pool.flow_low[slot]
        for k in range(length[slot]):
            edge = at(edges[slot, k])
            load[edge], error = two_sum(load[edge], high)
            load_low[edge] += error + low


@inlined
def exact_latency(slope: Vector, intercept: Vector, loads: Loads) -> None:
    """Latency a_e F_e + b_e at the exact load."""
    load, load_low, latency, latency_low = loads.load, loads.load_low, loads.latency, loads.latency_low
    for e in range(slope.size):
        product, error = two_product(slope[e], load[e])
        total, rest = two_sum(product, intercept[e])
        latency[e] = total
        latency_low[e] = rest + (error + slope[e] * load_low[e])


@inner
def exact_state(space: Handle) -> None:
    """Exact load and latency of the present flows of the free columns."""
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    exact_rest(network.demand, pool)
    exact_load(pool, loads)
    exact_latency(network.slope, network.intercept, loads)


@inlined
def exact_prices(pool: Pool, loads: Loads) -> None:
    """Perceived costs of the active columns, and their reduced costs to nearly full relative accuracy."""
    active, group, length, edges, reduced = pool.active, pool.group, pool.length, pool.edges, pool.reduced
    price, price_low, latency, latency_low = pool.price, pool.price_low, loads.latency, loads.latency_low
    for position in range(pool.tally[TOTAL]):
        slot = at(active[position])
        paid, paid_low = pool.toll[slot], pool.toll_low[slot]
        for k in range(length[slot]):
            edge = at(edges[slot, k])
            paid, error = two_sum(paid, latency[edge])
            paid_low += error + latency_low[edge]
        price[slot], price_low[slot] = paid, paid_low
        if pool.cycle[slot] == 0:
            base = at(active[at(group[slot])])
            paid, rest = two_sum(paid, -price[base])
            paid_low = rest + (paid_low - price_low[base])
        reduced[position] = paid + paid_low


@inlined
def correct(pool: Pool, loads: Loads) -> float:
    """Take the correction into the flows and the low part of the load; return its largest entry."""
    active, length, edges, flow, step, load_low = (
        pool.active, pool.length, pool.edges, pool.flow, pool.step, loads.load_low,
    )  # fmt: skip
    largest = 0.0
    for position in range(pool.tally[TOTAL]):
        slot, change = at(active[position]), step[position]
        largest = max(largest, abs(change))
        flow[slot] += change
        for k in range(length[slot]):
            load_low[at(edges[slot, k])] += change
    return largest


@inlined
def polish(tolerance: float, space: Handle) -> float:
    """Refine flows and load to the correctly rounded optimum on the active columns.

    Call `exact_state` before. Returns the largest difference in cost between used columns before the last
    correction, -1 if it does not settle.
    """
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    total, classes = pool.tally[TOTAL], network.demand.size
    load, load_low, reduced = loads.load, loads.load_low, pool.reduced
    for attempt in range(4):
        if attempt > 0:
            exact_state(space)
        exact_prices(pool, loads)
        newton_step(total, classes, pool)
        reference_steps(total, classes, pool)
        if correct(pool, loads) <= tolerance:
            for e in range(load.size):
                high, low = two_sum(load[e], load_low[e])
                rounded = max(high, high + NEAR_MIDPOINT * low)
                load[e] = rounded if rounded > ZERO * tolerance else 0.0
            residual = 0.0
            for position in range(classes, total):
                residual = max(residual, abs(reduced[position]))
            return residual
    return -1.0
