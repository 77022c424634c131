"""Memory layout of the routing solver: two flat buffers, seen through named views.

A compiled call pays for every array it is handed, so a workspace is one integer and one float buffer, known by the
address of the first; `views` names their parts. Columns are paths or cycles of a class, kept in slots. The first
`classes` entries of `active` are the slots of the reference paths, one per class, which carry the rest of the demand;
the other active columns are free.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector

Integers = npt.NDArray[np.int64]

HEADER = 6
"""Leading integers of the buffer: vertices, edges, classes, capacity for columns, address of the float buffer, and
where in that the lanes begin."""

ROWS = 64
"""Most rows of tolls in one compiled call."""

LANES = 8
"""Rows of a batch that go side by side."""

TOTAL, SPARE, READY, DROPS, PAUSE, UNCHANGED, INVERTED, RESPONSES, COLD, PERTURBED, STEPS, ENTERED, COUNTS = range(13)
"""Places in `tally`: active columns, unused slots, whether there is a past, drops since the factor was fresh, how
many more rows are not worth trying side by side, responses since the columns changed, whether the inverse is up to
date; then statistics: responses, cold restarts, perturbed restarts,
Newton steps and columns let in."""

GROUP, CYCLE, LENGTH, FIRST = 0, 1, 2, 3
"""Places in a row of `columns`: class, 1 for a cycle, number of edges, then the edges."""

CERTIFIED = 1e-11
"""Largest share of the demand that a certified flow may lie below zero."""

TINY_COST = 2e-14
"""Relative to the largest perceived edge cost, per vertex: cheaper by less than this is a tie."""

TINY_FLOW = 1e-14
"""Relative to the total demand: a flow within this of zero is zero."""


class Views(NamedTuple):
    """The parts of both buffers."""

    tail: Integers
    head: Integers
    first_out: Integers
    out_edge: Integers
    origin: Integers
    destination: Integers
    first_parent: Integers
    """Cold start: per class and vertex the edge that enters it on a path with the fewest edges, -1 at roots."""
    tally: Integers
    active: Integers
    spare: Integers
    columns: Integers
    parent: Integers
    """Remembered forest of cheapest paths, per class; `sequence` lists its vertices, parents first."""
    sequence: Integers
    queue: Integers
    slope: Vector
    intercept: Vector
    demand: Vector
    rate: Matrix
    """1 / sensitivity, and what rounding took from it."""
    rates: Matrix
    """1 / sensitivity again, eight classes side by side."""
    guard: Matrix
    """Infinite where an edge leads from vertices the class cannot reach into those it can (never walked), else 0; eight
    classes side by side, the edges of the first eight classes first."""
    flow: Vector
    toll: Matrix
    """Perceived tolls of the columns, and what rounding took from them."""
    price: Matrix
    reduced: Vector
    step: Vector
    gram: Matrix
    """Slope-weighted overlap of every two columns."""
    factor: Matrix
    """Lower Cholesky factor of the reduced Hessian of the free columns; it does not depend on the tolls."""
    load: Matrix
    latency: Matrix
    scratch: Matrix
    """Rows: marks of a column (zero between uses), perceived costs of a class, perturbed tolls."""
    label: Matrix
    gap: Vector
    """Certified relative gaps of the rows answered last."""
    lane_toll: Matrix
    """From here on: eight rows of a batch side by side."""
    lane_load: Matrix
    lane_load_low: Matrix
    lane_latency: Matrix
    lane_latency_low: Matrix
    lane_cost: Matrix
    lane_flow: Matrix
    lane_price: Matrix
    lane_low: Matrix
    lane_step: Matrix
    lane_label: Matrix
    inverse: Matrix
    """Inverse of the reduced Hessian, eight columns side by side; made once the columns outlive a response."""


def shapes(vertices: int, edges: int, classes: int, capacity: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of the views in their order; the first 14 are of integers."""
    n, m, k, c = vertices, edges, classes, capacity
    b = -(-classes // LANES)
    ints = (
        (m,),
        (m,),
        (n + 1,),
        (m,),
        (k,),
        (k,),
        (k, n),
        (COUNTS,),
        (c,),
        (c,),
        (c, n + FIRST),
        (k, n),
        (k, n),
        (4, n),
    )
    floats = (
        (m,), (m,), (k,), (2, k), (b, LANES), (b * m, LANES), (c,), (2, c), (2, c), (c,), (c + LANES,), (c, c), (c, c),
        (2, m), (2, m), (3, m), (k, n), (ROWS,),
    )  # fmt: skip
    lanes = ((m, LANES),) * 6 + ((c, LANES),) * 4 + ((n, LANES), (-(-c // LANES) * c, LANES))
    return ints + floats + lanes


INTEGER_VIEWS, LANE_VIEWS = 14, 12
