"""Pricing: cheapest paths and negative cycles per class, compiled.

Each class keeps a forest of cheapest paths from one response to the next. Its labels are recomputed from the new
costs and checked on every edge, eight classes side by side; only where that fails labels are corrected. Perceived
costs may be negative. A label changes only by more than the tolerance, and never so that a vertex becomes its own
ancestor: zero-cost cycles and exact ties cannot corrupt the remembered forest, and a true negative cycle is recognised
by it.
"""

from pzos.base.types import Matrix, Vector
from pzos.games._routing.compile import at, compiled, inlined, merged
from pzos.games._routing.lanes import WIDTH, below, fused, lanes_at, larger, put_lanes
from pzos.games._routing.layout import CYCLE, FIRST, GROUP, LENGTH, Integers


@inlined
def label_forest(i: int, tail: Integers, cost: Vector, parent: Integers, sequence: Integers, label: Matrix) -> None:
    """Exact labels of the remembered forest of class i under the present costs."""
    for k in range(label.shape[1]):
        vertex = at(sequence[i, k])
        edge = parent[i, vertex]
        label[i, vertex] = 0.0 if edge < 0 else label[i, at(tail[at(edge)])] + cost[at(edge)]


@merged
def violations(
    block: int,
    tolerance: float,
    tolls: Vector,
    tail: Integers,
    head: Integers,
    parent: Integers,
    sequence: Integers,
    rates: Matrix,
    guard: Matrix,
    latency: Matrix,
    cost: Matrix,
    label: Matrix,
) -> int:
    """Mask of the classes 8 block, ..., whose remembered forest some edge would shorten by more than the tolerance.

    The labels of the forests are left in `label`, one lane per class.
    """
    edges, first = tail.size, block * WIDTH
    rate = lanes_at(rates, block)
    for e in range(edges):
        put_lanes(cost, e, fused(rate, tolls[e], latency[0, e]) + lanes_at(guard, block * edges + e))
    for i in range(first, min(first + WIDTH, parent.shape[0])):
        lane = at(i - first)
        for k in range(parent.shape[1]):
            vertex = at(sequence[i, k])
            edge = parent[i, vertex]
            label[vertex, lane] = 0.0 if edge < 0 else label[at(tail[at(edge)]), lane] + cost[at(edge), lane]
    saved = rate * 0.0
    for e in range(edges):
        by_edge = lanes_at(label, at(head[e])) - lanes_at(label, at(tail[e])) - lanes_at(cost, e)
        saved = larger(saved, by_edge)
    return below(tolerance, saved)


@merged
def is_ancestor(i: int, above: int, below: int, tail: Integers, parent: Integers) -> bool:
    """Whether vertex `above` lies on the forest path to vertex `below`."""
    vertex = below
    while vertex != above:
        edge = parent[i, vertex]
        if edge < 0:
            return False
        vertex = tail[edge]
    return True


@merged
def enqueue(vertex: int, last: int, queue: Integers) -> int:
    """Put a vertex at the end of the circular queue unless it waits already; return the new end."""
    if queue[1, vertex] == 1:
        return last
    queue[1, vertex] = 1
    queue[0, last % queue.shape[1]] = vertex
    return last + 1


@compiled
def correct_labels(
    i: int,
    tolerance: float,
    tail: Integers,
    head: Integers,
    first_out: Integers,
    out_edge: Integers,
    cost: Vector,
    parent: Integers,
    label: Matrix,
    queue: Integers,
) -> int:
    """Label correction from the present forest; the edge that closes a negative cycle, or -1."""
    for vertex in range(queue.shape[1]):
        queue[1, vertex] = 0
    first, last = 0, 0
    for e in range(tail.size):
        if cost[e] + label[i, tail[e]] - label[i, head[e]] < -tolerance:
            last = enqueue(tail[e], last, queue)
    while first < last:
        vertex = queue[0, first % queue.shape[1]]
        first += 1
        queue[1, vertex] = 0
        for k in range(first_out[vertex], first_out[vertex + 1]):
            edge = out_edge[k]
            other = head[edge]
            offered = label[i, vertex] + cost[edge]
            if offered < label[i, other] - tolerance:
                if is_ancestor(i, other, vertex, tail, parent):
                    return int(edge)
                label[i, other] = offered
                parent[i, other] = edge
                last = enqueue(other, last, queue)
    return -1


@compiled
def arrange_forest(i: int, tail: Integers, parent: Integers, sequence: Integers, queue: Integers) -> None:
    """Sequence of the vertices in which every vertex comes after its parent."""
    child, sibling = queue[2], queue[3]
    filled = 0
    for vertex in range(child.size):
        child[vertex] = -1
    for vertex in range(child.size):
        edge = parent[i, vertex]
        if edge < 0:
            sequence[i, filled] = vertex
            filled += 1
        else:
            sibling[vertex] = child[tail[edge]]
            child[tail[edge]] = vertex
    k = 0
    while k < filled:
        vertex = child[sequence[i, k]]
        k += 1
        while vertex >= 0:
            sequence[i, filled] = vertex
            filled += 1
            vertex = sibling[vertex]


@compiled
def trace_path(
    i: int, slot: int, tail: Integers, origin: Integers, destination: Integers, parent: Integers, columns: Integers
) -> bool:
    """Write the forest path to the destination into a slot, from its end; False if it does not start at the origin."""
    vertex = destination[i]
    length = 0
    while parent[i, vertex] >= 0:
        edge = parent[i, vertex]
        columns[slot, FIRST + length] = edge
        length += 1
        vertex = tail[edge]
    columns[slot, LENGTH] = length
    columns[slot, GROUP] = i
    columns[slot, CYCLE] = 0
    return bool(vertex == origin[i])


@merged
def trace_cycle(
    i: int, slot: int, closing: int, tail: Integers, head: Integers, parent: Integers, columns: Integers
) -> bool:
    """Write the cycle of edge `closing` and the forest path from its head to its tail into a slot."""
    vertex = tail[closing]
    columns[slot, FIRST] = closing
    length = 1
    while vertex != head[closing]:
        edge = parent[i, vertex]
        if edge < 0:
            return False
        columns[slot, FIRST + length] = edge
        length += 1
        vertex = tail[edge]
    columns[slot, LENGTH] = length
    columns[slot, GROUP] = i
    columns[slot, CYCLE] = 1
    return True
