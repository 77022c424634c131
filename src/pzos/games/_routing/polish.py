"""The last solve, in twice the working precision, compiled: the answer does not remember how it was found.

The same equilibrium can be carried by different sets of paths, and each would round differently. So flows are refined
once with residuals of about 32 digits: what is returned is the exact edge flow of the equilibrium, rounded to double.
That is a function of the tolls alone, whatever columns, order or history led to it.
"""

from pzos.base.types import Matrix, Vector
from pzos.games._routing.columns import newton_step, reference_steps
from pzos.games._routing.compile import at, compiled, merged
from pzos.games._routing.layout import CYCLE, FIRST, GROUP, LENGTH, Integers
from pzos.games._routing.twice import two_product, two_sum

NEAR_MIDPOINT = 1.0 + 1e-7
"""Within 1e-7 of a rounding boundary the larger neighbour is taken, so that exact midpoints round one way."""

ZERO = 1e-10
"""Share of the tolerance below which a load is an exact zero that came out as rounding errors of 32 digits."""


@merged
def exact_rest(total: int, active: Integers, columns: Integers, demand: Vector, flow: Vector, price: Matrix) -> None:
    """Flows of the references: exactly the rest of the demand, the low part in `price[1]`."""
    for i in range(demand.size):
        flow[active[i]] = demand[i]
        price[1, active[i]] = 0.0
    for position in range(demand.size, total):
        slot = at(active[position])
        price[1, slot] = 0.0
        if columns[slot, CYCLE] == 0:
            base = at(active[at(columns[slot, GROUP])])
            flow[base], error = two_sum(flow[base], -flow[slot])
            price[1, base] += error


@merged
def exact_load(total: int, active: Integers, columns: Integers, flow: Vector, price: Matrix, load: Matrix) -> None:
    """Load of every edge by all active columns."""
    for e in range(load.shape[1]):
        load[0, e] = load[1, e] = 0.0
    for position in range(total):
        slot = at(active[position])
        high, low = flow[slot], price[1, slot]
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            edge = at(columns[slot, k])
            load[0, edge], error = two_sum(load[0, edge], high)
            load[1, edge] += error + low


@merged
def exact_latency(slope: Vector, intercept: Vector, load: Matrix, latency: Matrix) -> None:
    """Latency a_e F_e + b_e at the exact load."""
    for e in range(slope.size):
        product, error = two_product(slope[e], load[0, e])
        total, rest = two_sum(product, intercept[e])
        latency[0, e] = total
        latency[1, e] = rest + (error + slope[e] * load[1, e])


@merged
def exact_prices(
    total: int,
    active: Integers,
    columns: Integers,
    toll: Matrix,
    latency: Matrix,
    price: Matrix,
    reduced: Vector,
) -> None:
    """Perceived costs of the active columns, and their reduced costs to nearly full relative accuracy."""
    for position in range(total):
        slot = at(active[position])
        paid, paid_low = toll[0, slot], toll[1, slot]
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            edge = at(columns[slot, k])
            paid, error = two_sum(paid, latency[0, edge])
            paid_low += error + latency[1, edge]
        price[0, slot], price[1, slot] = paid, paid_low
        if columns[slot, CYCLE] == 0:
            base = at(active[at(columns[slot, GROUP])])
            paid, rest = two_sum(paid, -price[0, base])
            paid_low = rest + (paid_low - price[1, base])
        reduced[position] = paid + paid_low


@merged
def correct(total: int, active: Integers, columns: Integers, flow: Vector, step: Vector, load: Matrix) -> float:
    """Take the correction into the flows and the low part of the load; return its largest entry."""
    largest = 0.0
    for position in range(total):
        slot, change = at(active[position]), step[position]
        largest = max(largest, abs(change))
        flow[slot] += change
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            load[1, at(columns[slot, k])] += change
    return largest


@compiled
def exact_state(
    total: int,
    active: Integers,
    columns: Integers,
    slope: Vector,
    intercept: Vector,
    demand: Vector,
    flow: Vector,
    price: Matrix,
    load: Matrix,
    latency: Matrix,
) -> None:
    """Exact load and latency of the present flows of the free columns."""
    exact_rest(total, active, columns, demand, flow, price)
    exact_load(total, active, columns, flow, price, load)
    exact_latency(slope, intercept, load, latency)


@merged
def polish(
    total: int,
    tolerance: float,
    count: Integers,
    active: Integers,
    columns: Integers,
    toll: Matrix,
    slope: Vector,
    intercept: Vector,
    demand: Vector,
    flow: Vector,
    price: Matrix,
    reduced: Vector,
    step: Vector,
    factor: Matrix,
    inverse: Matrix,
    load: Matrix,
    latency: Matrix,
) -> float:
    """Refine flows and load to the correctly rounded optimum on the active columns.

    Call `exact_state` before. Returns the largest difference in cost between used columns before the last
    correction, -1 if it does not settle.
    """
    for attempt in range(4):
        if attempt > 0:
            exact_state(total, active, columns, slope, intercept, demand, flow, price, load, latency)
        exact_prices(total, active, columns, toll, latency, price, reduced)
        newton_step(total, demand.size, count, factor, inverse, reduced, step)
        reference_steps(total, demand.size, active, columns, step)
        if correct(total, active, columns, flow, step, load) <= tolerance:
            for e in range(slope.size):
                high, low = two_sum(load[0, e], load[1, e])
                rounded = max(high, high + NEAR_MIDPOINT * low)
                load[0, e] = rounded if rounded > ZERO * tolerance else 0.0
            residual = 0.0
            for position in range(demand.size, total):
                residual = max(residual, abs(reduced[position]))
            return residual
    return -1.0
