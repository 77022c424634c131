"""Columns (paths and cycles of a class) and the Cholesky factor of their reduced Hessian, compiled.

With one reference path per class carrying the rest of the demand, the flows of the other columns are free and the
Hessian of the routing programme in them is U' diag(a) U, where a column of U is path minus reference (a cycle stands
alone). It depends on the network only, never on the tolls. Row r of the factor belongs to `active[classes + r]`; its
diagonal holds reciprocals.
"""

from math import sqrt

from numba import carray

from pzos.base.types import Matrix, Vector
from pzos.games._routing.compile import FLOAT, at, compiled, inlined, merged, pointer, reordered, whole
from pzos.games._routing.lanes import WIDTH, fused, lanes_at, put_lanes
from pzos.games._routing.layout import CYCLE, DROPS, FIRST, GROUP, INVERTED, LENGTH, SPARE, TOTAL, UNCHANGED, Integers

DEPENDENT = 1e-11
"""A pivot below this share of the column's own size means: a combination of the columns already there."""

FRESH = 64
"""The factor is built anew after so many downdates."""


@compiled
def fill_gram(
    slot: int, total: int, active: Integers, columns: Integers, slope: Vector, mark: Vector, gram: Matrix
) -> None:
    """Overlaps of the column in `slot` with itself and the first `total` active columns."""
    own = 0.0
    for k in range(FIRST, FIRST + columns[slot, LENGTH]):
        edge = at(columns[slot, k])
        mark[edge] = slope[edge]
        own += slope[edge]
    for position in range(total):
        other = active[position]
        shared = 0.0
        for k in range(FIRST, FIRST + columns[other, LENGTH]):
            shared += mark[at(columns[other, k])]
        gram[slot, other] = shared
        gram[other, slot] = shared
    gram[slot, slot] = own
    for k in range(FIRST, FIRST + columns[slot, LENGTH]):
        mark[at(columns[slot, k])] = 0.0


@compiled
def factor_row(row: int, classes: int, active: Integers, columns: Integers, gram: Matrix, factor: Matrix) -> bool:
    """Row of the Cholesky factor; False where the column is a combination of those before it."""
    slot = active[classes + row]
    base = -1 if columns[slot, CYCLE] == 1 else active[columns[slot, GROUP]]
    for k in range(row + 1):
        other = active[classes + k]
        other_base = -1 if columns[other, CYCLE] == 1 else active[columns[other, GROUP]]
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


@compiled
def refactor(
    first: int, classes: int, count: Integers, active: Integers, columns: Integers, gram: Matrix, factor: Matrix
) -> bool:
    """Rows of the factor from `first` on."""
    changed(count)
    if first == 0:
        count[DROPS] = 0
    independent = True
    for row in range(first, count[TOTAL] - classes):
        independent = independent and factor_row(row, classes, active, columns, gram, factor)
    return independent


@compiled
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


@reordered
def back_substitute(rows: int, classes: int, factor: Matrix, step: Vector) -> None:
    """Solve factor' y = step in place."""
    for row in range(rows - 1, -1, -1):
        value = step[classes + row] * factor[row, row]
        step[classes + row] = value
        for k in range(row):
            step[classes + k] -= factor[row, k] * value


@compiled
def triangular_solves(rows: int, factor: Matrix, step: Matrix) -> None:
    """Solve (factor factor') y = step in place, eight right sides side by side."""
    for k in range(rows):
        value = lanes_at(step, k) * factor[k, k]
        put_lanes(step, k, value)
        for row in range(k + 1, rows):
            put_lanes(step, row, fused(-factor[row, k], value, lanes_at(step, row)))
    for row in range(rows - 1, -1, -1):
        value = lanes_at(step, row) * factor[row, row]
        put_lanes(step, row, value)
        for k in range(row):
            put_lanes(step, k, fused(-factor[row, k], value, lanes_at(step, k)))


@compiled
def invert(rows: int, factor: Matrix, unit: Matrix, inverse: Matrix) -> None:
    """Inverse of the Hessian, eight columns after eight columns; `unit` is scratch."""
    for block in range((rows + WIDTH - 1) // WIDTH):
        for row in range(rows):
            put_lanes(unit, row, 0.0)
        for lane in range(min(WIDTH, rows - block * WIDTH)):
            unit[block * WIDTH + lane, lane] = 1.0
        triangular_solves(rows, factor, unit)
        for row in range(rows):
            put_lanes(inverse, block * factor.shape[0] + row, lanes_at(unit, row))


@inlined
def newton_step(
    total: int, classes: int, count: Integers, factor: Matrix, inverse: Matrix, reduced: Vector, step: Vector
) -> None:
    """step = -(U' diag(a) U)^-1 reduced costs: to the optimum of the programme on the active columns."""
    if count[INVERTED] == 0:
        substitute(total, classes, factor, reduced, step)
        return
    rows = total - classes
    for block in range((rows + WIDTH - 1) // WIDTH):
        first = block * factor.shape[0]
        value = lanes_at(inverse, first) * (0.0 - reduced[classes])
        for row in range(1, rows):
            value = fused(lanes_at(inverse, first + row), 0.0 - reduced[classes + row], value)
        put_lanes(carray(pointer(step.ctypes.data, classes + block * WIDTH, FLOAT), (1, WIDTH)), 0, value)


@reordered
def substitute(total: int, classes: int, factor: Matrix, reduced: Vector, step: Vector) -> None:
    """The Newton step by the triangular factor."""
    for row in range(total - classes):
        value = -reduced[classes + row]
        for k in range(row):
            value -= factor[row, k] * step[classes + k]
        step[classes + row] = value * factor[row, row]
    back_substitute(total - classes, classes, factor, step)


@inlined
def reference_steps(total: int, classes: int, active: Integers, columns: Integers, step: Vector) -> None:
    """What the reference paths take back of the steps of the free ones."""
    for i in range(classes):
        step[i] = 0.0
    for position in range(classes, total):
        slot = active[position]
        if columns[slot, CYCLE] == 0:
            step[columns[slot, GROUP]] -= step[position]


@compiled
def forget(position: int, count: Integers, active: Integers) -> None:
    """Take a free column out of the list of active ones (its slot is not released)."""
    changed(count)
    count[TOTAL] -= 1
    for k in range(position, count[TOTAL]):
        active[k] = active[k + 1]


@inlined
def changed(count: Integers) -> None:
    """The active columns are others now: the inverse is out of date."""
    count[INVERTED] = count[UNCHANGED] = 0


@compiled
def release(slot: int, count: Integers, spare: Integers) -> None:
    """Hand a slot back."""
    spare[count[SPARE]] = slot
    count[SPARE] += 1


@merged
def successor(group: int, classes: int, total: int, active: Integers, columns: Integers, flow: Vector) -> int:
    """Position of the most used free path of a class, -1 if there is none."""
    best = whole(-1)
    for position in range(classes, total):
        slot = active[position]
        is_heir = columns[slot, GROUP] == group and columns[slot, CYCLE] == 0
        if is_heir and (best < 0 or flow[slot] > flow[active[best]]):
            best = position
    return best


@compiled
def drop(
    position: int,
    classes: int,
    count: Integers,
    active: Integers,
    spare: Integers,
    columns: Integers,
    flow: Vector,
    gram: Matrix,
    factor: Matrix,
) -> bool:
    """Make an active column inactive; where it is a reference, the most used path of its class takes its place."""
    release(active[position], count, spare)
    if position < classes:
        heir = successor(position, classes, count[TOTAL], active, columns, flow)
        if heir < 0:
            return False
        active[position] = active[heir]
        forget(heir, count, active)
        return refactor(whole(0), classes, count, active, columns, gram, factor)
    forget(position, count, active)
    count[DROPS] += 1
    if count[DROPS] >= FRESH:
        return refactor(whole(0), classes, count, active, columns, gram, factor)
    downdate(position - classes, count[TOTAL] - classes, factor)
    return True
