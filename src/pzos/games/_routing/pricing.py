"""Pricing: cheapest paths and negative cycles per class, compiled.

Each class keeps a forest of cheapest paths from one response to the next. Its labels are recomputed from the new
costs and checked on every edge; only where that fails labels are corrected. Perceived costs may be negative. A label
changes only by more than the tolerance, and never so that a vertex becomes its own ancestor: zero-cost cycles and exact
ties cannot corrupt the remembered forest, and a true negative cycle is recognised by it.
"""

from pzos.base.types import Vector
from pzos.games._compile import at, embedded, inlined, inner
from pzos.games._routing.space import Forest, Handle, Integers, RoutingNetwork, forest_of, loads_of, network_of, pool_of


@inlined
def cheapest(i: int, tolerance: float, tolls: Vector, space: Handle) -> int:
    """Bring the forest of class i up to date: -1, or the edge that closes a negative cycle with it."""
    network, forest, loads = network_of(space), forest_of(space), loads_of(space)
    cost, latency, rate, guard = forest.cost, loads.latency, network.rate[i], network.guard
    for e in range(cost.size):
        cost[e] = latency[e] + tolls[e] * rate + guard[i, e]
    label_forest(i, network, forest)
    if not can_be_shortened(i, tolerance, network, forest):
        return -1
    closing = correct_labels(i, tolerance, space)
    arrange_forest(i, space)
    label_forest(i, network, forest)
    return closing


@embedded
def label_forest(i: int, network: RoutingNetwork, forest: Forest) -> None:
    """Exact labels of the remembered forest of class i under the present costs."""
    tail, parent, sequence, label, cost = network.tail, forest.parent, forest.sequence, forest.label, forest.cost
    for k in range(label.shape[1]):
        vertex = at(sequence[i, k])
        edge = parent[i, vertex]
        label[i, vertex] = 0.0 if edge < 0 else label[i, at(tail[at(edge)])] + cost[at(edge)]


@embedded
def can_be_shortened(i: int, tolerance: float, network: RoutingNetwork, forest: Forest) -> bool:
    """Whether some edge would shorten a path of the forest by more than the tolerance."""
    tail, head, label, cost = network.tail, network.head, forest.label, forest.cost
    found = 0
    for e in range(tail.size):
        found += label[i, at(head[e])] - label[i, at(tail[e])] - cost[e] > tolerance
    return found > 0


@inlined
def is_ancestor(i: int, above: int, below: int, tail: Integers, parent: Integers) -> bool:
    """Whether vertex `above` lies on the forest path to vertex `below`."""
    vertex = below
    while vertex != above:
        edge = parent[i, vertex]
        if edge < 0:
            return False
        vertex = tail[edge]
    return True


@inlined
def enqueue(vertex: int, last: int, queue: Integers, waits: Integers) -> int:
    """Put a vertex at the end of the circular queue unless it waits already; return the new end."""
    if waits[vertex] == 1:
        return last
    waits[vertex] = 1
    queue[last % queue.size] = vertex
    return last + 1


@inner
def correct_labels(i: int, tolerance: float, space: Handle) -> int:
    """Label correction from the present forest; the edge that closes a negative cycle, or -1."""
    network, forest = network_of(space), forest_of(space)
    tail, head, first_out, out_edge = network.tail, network.head, network.first_out, network.out_edge
    cost, label, parent, queue, waits = forest.cost, forest.label, forest.parent, forest.queue, forest.waits
    for vertex in range(queue.size):
        waits[vertex] = 0
    first, last = 0, 0
    for e in range(tail.size):
        if cost[e] + label[i, tail[e]] - label[i, head[e]] < -tolerance:
            last = enqueue(tail[e], last, queue, waits)
    while first < last:
        vertex = queue[first % queue.size]
        first += 1
        waits[vertex] = 0
        for k in range(first_out[vertex], first_out[vertex + 1]):
            edge = out_edge[k]
            other = head[edge]
            offered = label[i, vertex] + cost[edge]
            if offered < label[i, other] - tolerance:
                if is_ancestor(i, other, vertex, tail, parent):
                    return int(edge)
                label[i, other] = offered
                parent[i, other] = edge
                last = enqueue(other, last, queue, waits)
    return -1


@inner
def arrange_forest(i: int, space: Handle) -> None:
    """Sequence of the vertices in which every vertex comes after its parent."""
    network, forest = network_of(space), forest_of(space)
    tail = network.tail
    parent, sequence, child, sibling = forest.parent, forest.sequence, forest.child, forest.sibling
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


@inner
def trace_path(i: int, slot: int, space: Handle) -> bool:
    """Write the forest path to the destination into a slot, from its end; False if it does not start at the origin."""
    network, forest, pool = network_of(space), forest_of(space), pool_of(space)
    tail, parent, edges = network.tail, forest.parent, pool.edges
    vertex = network.destination[i]
    length = 0
    while parent[i, vertex] >= 0:
        edge = parent[i, vertex]
        edges[slot, length] = edge
        length += 1
        vertex = tail[edge]
    pool.length[slot], pool.group[slot], pool.cycle[slot] = length, i, 0
    return bool(vertex == network.origin[i])


@inner
def trace_cycle(i: int, slot: int, closing: int, space: Handle) -> bool:
    """Write the cycle of edge `closing` and the forest path from its head to its tail into a slot."""
    network, forest, pool = network_of(space), forest_of(space), pool_of(space)
    tail, parent, edges = network.tail, forest.parent, pool.edges
    vertex = tail[closing]
    edges[slot, 0] = closing
    length = 1
    while vertex != network.head[closing]:
        edge = parent[i, vertex]
        if edge < 0:
            return False
        edges[slot, length] = edge
        length += 1
        vertex = tail[edge]
    pool.length[slot], pool.group[slot], pool.cycle[slot] = length, i, 1
    return True
