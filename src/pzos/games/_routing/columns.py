"""Columns (paths and cycles of a class) and the Cholesky factor of their reduced Hessian, compiled.

With one reference path per class carrying the rest of the demand, the flows of the other columns are free and the
Hessian of the routing programme in them is U' diag(a) U, where a column of U is path minus reference (a cycle stands
alone). It depends on the network only, never on the tolls. Row r of the factor belongs to `active[classes + r]`; its
diagonal holds reciprocals.
"""

from math import sqrt

from pzos.base.types import Matrix, Vector
from pzos.games._compile import at, embedded, inlined, inner, reordered, whole
from pzos.games._routing.space import (
    DROPS,
    INVERTED,
    SPARE,
    TOTAL,
    UNCHANGED,
    Handle,
    Integers,
    Pool,
    loads_of,
    network_of,
    pool_of,
)

DEPENDENT = 1e-11
"""A pivot below this share of the column's own size means: a combination of the columns already there."""

FRESH = 64
"""The factor is built anew after so many downdates."""


@inner
def fill_gram(slot: int, total: int, space: Handle) -> None:
    """Overlaps of the column in `slot` with itself and the first `total` active columns."""
    network, pool, loads = network_of(space), pool_of(space), loads_of(space)
    slope, mark = network.slope, loads.mark
    active, length, edges, gram = pool.active, pool.length, pool.edges, pool.gram
    own = 0.0
    for k in range(length[slot]):
        edge = at(edges[slot, k])
        mark[edge] = slope[edge]
        own += slope[edge]
    for position in range(total):
        other = active[position]
        shared = 0.0
        for k in range(length[other]):
            shared += mark[at(edges[other, k])]
        gram[slot, other] = shared
        gram[other, slot] = shared
    gram[slot, slot] = own
    for k in range(length[slot]):
        mark[at(edges[slot, k])] = 0.0


@inner
def factor_row(row: int, space: Handle) -> bool:
    """Row of the Cholesky factor; False where the column is a combination of those before it."""
    network, pool = network_of(space), pool_of(space)
    classes = network.demand.size
    active, group, cycle, gram, factor = pool.active, pool.group, pool.cycle, pool.gram, pool.factor
    slot = active[classes + row]
    base = -1 if cycle[slot] == 1 else active[group[slot]]
    for k in range(row + 1):
        other = active[classes + k]
        other_base = -1 if cycle[other] == 1 else active[group[other]]
        entry = gram[slot, other]
        if base >= 0:
            entry -= gram[base, other]
            if other_base >= 0:
                entry += gram[base, other_base]
        if other_base >= 0:
            entry -= gram[slot, other_base]
        size = entry
        for j in range(k):
            entry -= factor[row, j] * factor[k, j]
        if k < row:
            factor[row, k] = entry * factor[k, k]
        elif entry <= DEPENDENT * size:
            return False
        else:
            factor[row, row] = 1.0 / sqrt(entry)
    return True


@inner
def refactor(first: int, space: Handle) -> bool:
    """Rows of the factor from `first` on."""
    network, pool = network_of(space), pool_of(space)
    tally = pool.tally
    changed(tally)
    if first == 0:
        tally[DROPS] = 0
    independent = True
    for row in range(first, tally[TOTAL] - network.demand.size):
        independent = independent and factor_row(row, space)
    return independent


@inner
def downdate(first: int, rows: int, factor: Matrix) -> None:
    """Factor of the Hessian without row and column `first`, by Givens rotations; `rows` is the number left."""
    for row in range(first, rows):
        for k in range(row + 1):
            factor[row, k] = factor[row + 1, k]
        factor[row, row + 1] = 1.0 / factor[row + 1, row + 1]
    for k in range(first, rows):
        pivot = factor[k, k]
        size = sqrt(pivot * pivot + factor[k, k + 1] * factor[k, k + 1])
        cosine, sine = pivot / size, factor[k, k + 1] / size
        factor[k, k] = 1.0 / size
        for row in range(k + 1, rows):
            left, right = factor[row, k], factor[row, k + 1]
            factor[row, k] = cosine * left + sine * right
            factor[row, k + 1] = cosine * right - sine * left


@inner
def invert(rows: int, factor: Matrix, inverse: Matrix) -> None:
    """Inverse of the Hessian from its factor, all columns side by side."""
    for row in range(rows):
        for k in range(rows):
            inverse[row, k] = 0.0
        inverse[row, row] = 1.0
    for k in range(rows):
        scale_row(k, k + 1, factor[k, k], inverse)
        for row in range(k + 1, rows):
            take_row(row, k, k + 1, factor[row, k], inverse)
    for row in range(rows - 1, -1, -1):
        scale_row(row, rows, factor[row, row], inverse)
        for k in range(row):
            take_row(k, row, rows, factor[row, k], inverse)


@reordered
def scale_row(row: int, size: int, share: float, matrix: Matrix) -> None:
    """Multiply the first entries of a row."""
    for k in range(size):
        matrix[row, k] *= share


@reordered
def take_row(row: int, other: int, size: int, share: float, matrix: Matrix) -> None:
    """Subtract a multiple of the first entries of another row."""
    for k in range(size):
        matrix[row, k] -= share * matrix[other, k]


@reordered
def newton_step(total: int, classes: int, pool: Pool) -> None:
    """step = -(U' diag(a) U)^-1 reduced costs: to the optimum of the programme on the active columns."""
    tally, reduced, step, factor, inverse = pool.tally, pool.reduced, pool.step, pool.factor, pool.inverse
    rows = total - classes
    if tally[INVERTED] == 1:
        for row in range(rows):
            value = 0.0
            for k in range(rows):
                value -= inverse[row, k] * reduced[classes + k]
            step[classes + row] = value
        return
    for row in range(rows):
        value = -reduced[classes + row]
        for k in range(row):
            value -= factor[row, k] * step[classes + k]
        step[classes + row] = value * factor[row, row]
    back_substitute(rows, classes, factor, step)


@reordered
def back_substitute(rows: int, classes: int, factor: Matrix, step: Vector) -> None:
    """Solve factor' y = step in place."""
    for row in range(rows - 1, -1, -1):
        value = step[classes + row] * factor[row, row]
        step[classes + row] = value
        for k in range(row):
            step[classes + k] -= factor[row, k] * value


@embedded
def reference_steps(total: int, classes: int, pool: Pool) -> None:
    """What the reference paths take back of the steps of the free ones."""
    active, group, cycle, step = pool.active, pool.group, pool.cycle, pool.step
    for i in range(classes):
        step[i] = 0.0
    for position in range(classes, total):
        slot = at(active[position])
        if cycle[slot] == 0:
            step[at(group[slot])] -= step[position]


@embedded
def changed(tally: Integers) -> None:
    """The active columns are others now: the inverse is out of date."""
    tally[INVERTED] = tally[UNCHANGED] = 0


@inlined
def forget(position: int, tally: Integers, active: Integers) -> None:
    """Take a free column out of the list of active ones (its slot is not released)."""
    changed(tally)
    tally[TOTAL] -= 1
    for k in range(position, tally[TOTAL]):
        active[k] = active[k + 1]


@inlined
def release(slot: int, tally: Integers, spare: Integers) -> None:
    """Hand a slot back."""
    spare[tally[SPARE]] = slot
    tally[SPARE] += 1


@inlined
def successor(group: int, classes: int, pool: Pool) -> int:
    """Position of the most used free path of a class, -1 if there is none."""
    active, flow = pool.active, pool.flow
    best = whole(-1)
    for position in range(classes, pool.tally[TOTAL]):
        slot = active[position]
        is_heir = pool.group[slot] == group and pool.cycle[slot] == 0
        if is_heir and (best < 0 or flow[slot] > flow[active[best]]):
            best = position
    return best


@inner
def drop(position: int, space: Handle) -> bool:
    """Make an active column inactive; where it is a reference, the most used path of its class takes its place."""
    network, pool = network_of(space), pool_of(space)
    classes, tally, active = network.demand.size, pool.tally, pool.active
    release(active[position], tally, pool.spare)
    if position < classes:
        heir = successor(position, classes, pool)
        if heir < 0:
            return False
        active[position] = active[heir]
        forget(heir, tally, active)
        return refactor(whole(0), space)
    forget(position, tally, active)
    tally[DROPS] += 1
    if tally[DROPS] >= FRESH:
        return refactor(whole(0), space)
    downdate(position - classes, tally[TOTAL] - classes, pool.factor)
    return True
