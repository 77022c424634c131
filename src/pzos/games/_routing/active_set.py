"""Active-set search over columns, compiled: which paths and cycles are used at these tolls.

`balance` goes to the optimum of the programme on the active columns, dropping those whose flow would become negative;
`let_in` makes a column active that pricing found too cheap. The objective falls in every round, so the search ends.
"""

from pzos.base.types import Matrix, Vector
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
from pzos.games._routing.compile import at, compiled, inlined, merged
from pzos.games._routing.layout import CYCLE, ENTERED, FIRST, GROUP, LENGTH, STEPS, TOTAL, Integers
from pzos.games._routing.twice import two_product, two_sum

OPTIMAL, FAILED, FULL = 0, 1, 2
"""How a search ends; FULL: the workspace has no room for another column."""

ROUNDING = 1e-9
"""Shares of a combination of columns below this are rounding errors of zero."""

UNBOUNDED = 1e100
"""Longer than any step that flows allow; finite, because infinity times a zero change is not a number."""


@inlined
def exact_toll(slot: int, columns: Integers, tolls: Vector, rate: Matrix, toll: Matrix) -> None:
    """Perceived toll of a column, the sum of tau_e / s_i over its edges, in twice the precision."""
    paid, low = 0.0, 0.0
    for k in range(FIRST, FIRST + columns[slot, LENGTH]):
        paid, error = two_sum(paid, tolls[at(columns[slot, k])])
        low += error
    i = at(columns[slot, GROUP])
    perceived, error = two_product(paid, rate[0, i])
    toll[0, slot], toll[1, slot] = perceived, error + (paid * rate[1, i] + low * rate[0, i])


@inlined
def change_tolls(
    total: int, active: Integers, columns: Integers, tolls: Vector, rate: Matrix, toll: Matrix, price: Matrix
) -> None:
    """Perceived tolls of all active columns, and with them their prices."""
    for position in range(total):
        slot = at(active[position])
        before = toll[0, slot]
        exact_toll(slot, columns, tolls, rate, toll)
        price[0, slot] += toll[0, slot] - before


@inlined
def set_reduced(total: int, active: Integers, columns: Integers, price: Matrix, reduced: Vector) -> None:
    """What the active columns cost more than the references of their classes."""
    for position in range(total):
        slot = at(active[position])
        base = at(active[at(columns[slot, GROUP])])
        reduced[position] = price[0, slot] - (price[0, base] if columns[slot, CYCLE] == 0 else 0.0)


@inlined
def set_prices(
    first: int,
    total: int,
    active: Integers,
    columns: Integers,
    toll: Matrix,
    latency: Matrix,
    price: Matrix,
    reduced: Vector,
) -> None:
    """Perceived costs of the active columns from position `first` on, and what they cost more than their references."""
    for position in range(first, total):
        slot = at(active[position])
        paid = toll[0, slot]
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            paid += latency[0, at(columns[slot, k])]
        price[0, slot] = paid
        if columns[slot, CYCLE] == 0:
            paid -= price[0, at(active[at(columns[slot, GROUP])])]
        reduced[position] = paid


@inlined
def set_latency(slope: Vector, intercept: Vector, load: Matrix, latency: Matrix) -> None:
    """Latencies a_e F_e + b_e at the present load."""
    for e in range(slope.size):
        latency[0, e] = slope[e] * load[0, e] + intercept[e]


@inlined
def longest_step(
    total: int, limit: float, tolerance: float, active: Integers, flow: Vector, step: Vector
) -> tuple[float, int]:
    """Largest share of the step (at most `limit`) that keeps flows nonnegative, and the position that stops it."""
    share, place = limit, -1
    for position in range(total):
        present, change = flow[at(active[position])], step[position]
        if change < 0.0 and present + share * change < -tolerance:
            share, place = max(present, 0.0) / -change, position
    return share, place


@inlined
def move_flows(total: int, share: float, active: Integers, flow: Vector, step: Vector) -> None:
    """Move flows along the step; the load follows by `move_load`, or anew from the flows."""
    for position in range(total):
        flow[at(active[position])] += share * step[position]


@inlined
def move_load(total: int, share: float, active: Integers, columns: Integers, step: Vector, load: Matrix) -> None:
    """Move the load along the step."""
    for position in range(total):
        slot, change = at(active[position]), share * step[position]
        for k in range(FIRST, FIRST + columns[slot, LENGTH]):
            load[0, at(columns[slot, k])] += change


@merged
def balance(
    tolerance: float,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    slope: Vector,
    intercept: Vector,
    rate: Matrix,
    flow: Vector,
    toll: Matrix,
    price: Matrix,
    reduced: Vector,
    step: Vector,
    gram: Matrix,
    factor: Matrix,
    inverse: Matrix,
    load: Matrix,
    latency: Matrix,
) -> int:
    """Flows of the optimum on the active columns, after dropping every column that would get negative flow.

    The reduced costs must be those of the present flows; the load is left where the last column was dropped.
    """
    classes = rate.shape[1]
    for _ in range(2 * active.size):
        total = count[TOTAL]
        newton_step(total, classes, count, factor, inverse, reduced, step)
        count[STEPS] += 1
        reference_steps(total, classes, active, columns, step)
        share, place = longest_step(total, 1.0, tolerance, active, flow, step)
        move_flows(total, share, active, flow, step)
        if place < 0:
            return OPTIMAL
        move_load(total, share, active, columns, step, load)
        set_latency(slope, intercept, load, latency)
        if not drop(place, classes, count, active, spare, columns, flow, gram, factor):
            return FAILED
        set_prices(0, count[TOTAL], active, columns, toll, latency, price, reduced)
    return FAILED


@merged
def exchange(
    slot: int,
    tolerance: float,
    classes: int,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    flow: Vector,
    reduced: Vector,
    step: Vector,
    gram: Matrix,
    factor: Matrix,
) -> int:
    """Let in a column that is a combination of active ones: shift flow to it until one of them is empty.

    The edge flows stay what they are, the perceived tolls paid fall. Row `rows` of the factor holds the column.
    """
    total = count[TOTAL]
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
        release(slot, count, spare)
        return OPTIMAL
    step[total] = 1.0
    reference_steps(total + 1, classes, active, columns, step)
    for i in range(classes):
        step[i] = step[i] if abs(step[i]) > ROUNDING else 0.0
    share, place = longest_step(total + 1, UNBOUNDED, 0.0, active, flow, step)
    if place < 0:
        return FAILED
    move_flows(total + 1, share, active, flow, step)
    count[TOTAL] = total + 1
    if not drop_any(place, classes, count, active, spare, columns, flow, gram, factor):
        return FAILED
    return OPTIMAL


@merged
def drop_any(
    place: int,
    classes: int,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    flow: Vector,
    gram: Matrix,
    factor: Matrix,
) -> bool:
    """Drop a column although the factor's last row is missing: rows are computed anew."""
    if place < classes:
        return drop(place, classes, count, active, spare, columns, flow, gram, factor)
    release(active[place], count, spare)
    count[TOTAL] -= 1
    active[place] = active[count[TOTAL]]
    return refactor(place - classes, classes, count, active, columns, gram, factor)


@compiled
def let_in(
    slot: int,
    tolerance: float,
    tolls: Vector,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    slope: Vector,
    rate: Matrix,
    flow: Vector,
    toll: Matrix,
    price: Matrix,
    reduced: Vector,
    step: Vector,
    gram: Matrix,
    factor: Matrix,
    latency: Matrix,
    mark: Vector,
) -> int:
    """Make a new column active with no flow yet, or exchange it where it is a combination of active ones."""
    classes, total = rate.shape[1], count[TOTAL]
    flow[slot] = 0.0
    active[total] = slot
    exact_toll(slot, columns, tolls, rate, toll)
    set_prices(total, total + 1, active, columns, toll, latency, price, reduced)
    fill_gram(slot, total, active, columns, slope, mark, gram)
    count[ENTERED] += 1
    changed(count)
    if factor_row(total - classes, classes, active, columns, gram, factor):
        count[TOTAL] = total + 1
        return OPTIMAL
    status = exchange(
        slot, tolerance, classes, count, active, spare, columns, flow, reduced, step, gram, factor
    )  # fmt: skip
    set_prices(0, count[TOTAL], active, columns, toll, latency, price, reduced)
    return status
