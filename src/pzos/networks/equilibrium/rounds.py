"""Rounds of column generation over all origins, in batches whose trees may be grown by several threads.

The trees of a batch are grown at the same costs; then its paths are listed and its flow is shifted, one origin after
the other, and the next batch meets the costs that this leaves. Batches depend on the network alone, and growing a tree
changes nothing but that tree: the answer has the same bits for any number of threads. Small networks have one origin
in a batch, since there every origin counts.

Functions that are `shared` set the order of work. They are compiled where one thread does it all, and run as Python
with a crew, which hands the trees of a batch out to its threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix
from pzos.games._compile import compiled, shared
from pzos.networks.equilibrium.paths import (
    Marks,
    Paths,
    Pool,
    Trips,
    link_code,
    list_anew,
    new_marks,
    no_paths,
    price_fixed,
    sweep,
    trace,
    with_room,
)
from pzos.networks.equilibrium.trees import Graph, Long, TreeSpace, grow_tree, mend_tree, tree_space
from pzos.networks.latency import FLOW, TIME, Law, refresh

_ROOM = 256  # links per pair that a pool is made for; memory that is never touched costs nothing
_BATCHES, _MANY = 48, 128  # at least so many batches, where there are many groups; else a group is a batch


class Trees(NamedTuple):
    """The tree of each group as it was last shortest: ``size`` of its ``links`` in an order from the origin."""

    links: npt.NDArray[np.int32]
    size: Long


class Batch(NamedTuple):
    """The trees of one batch, a row each: distance of every node, and the link by which the tree enters it."""

    distance: Matrix
    into: npt.NDArray[np.int32]


class Field(NamedTuple):
    """What a run works on: the network, what each class pays whatever the flow (``fixed``), the links' state, costs and
    potentials per class, the trees of all groups, those of the present batch, and working arrays.

    The law is not in it: Numba takes a millisecond to look at a tuple that has functions in it.
    """

    graph: Graph
    trips: Trips
    fixed: Matrix
    state: Matrix
    cost: Matrix
    potential: Matrix
    trees: Trees
    batch: Batch
    space: TreeSpace
    marks: Marks


@compiled
def new_field(graph: Graph, trips: Trips, law: Law, fixed: Matrix, trees: Trees) -> Field:
    """Allocate what is not given; no link has flow yet."""
    nodes, links, classes = graph.first_out.size - 1, graph.head.size, fixed.shape[0]
    size = trips.origin.size // _BATCHES if trips.origin.size >= _MANY else 1
    state = np.zeros((links, 3))
    refresh(law, state)
    batch = Batch(np.empty((size, nodes)), np.empty((size, nodes), np.int32))
    cost, potential = np.zeros((classes, links)), np.zeros((classes, nodes))
    return Field(graph, trips, fixed, state, cost, potential, trees, batch, tree_space(nodes), new_marks(links))


@compiled
def present_costs(low: int, high: int, field: Field, least: float) -> None:
    """Write the costs of the classes of the groups low .. high, cut off below at ``least``."""
    kind, fixed, state, cost = field.trips.group_class, field.fixed, field.state, field.cost
    for row in range(kind[low], kind[high - 1] + 1):
        for link in range(state.shape[0]):
            cost[row, link] = max(state[link, TIME] + fixed[row, link], least)


@compiled
def grow_trees(low: int, begin: int, end: int, field: Field, space: TreeSpace, mend: bool) -> None:
    """Write the trees of the groups begin .. end of a batch that begins at ``low``; mended if ``mend`` (costs >= 0)."""
    graph, kinds, origins, cost, potential = (
        field.graph, field.trips.group_class, field.trips.origin, field.cost, field.potential
    )  # fmt: skip
    _, _, key, heap, place, order = space
    distance, into = field.batch
    links, size = field.trees
    for group in range(begin, end):
        kind, own = kinds[group], TreeSpace(distance[group - low], into[group - low], key, heap, place, order)
        if mend:
            mend_tree(origins[group], graph, cost[kind], links[group], size[group], own)
        else:
            size[group] = grow_tree(origins[group], graph, cost[kind], potential[kind], own)
            for k in range(size[group]):
                links[group, k] = order[k]


@compiled
def _load(begin: int, end: int, grown: bool, field: Field, law: Law, paths: Paths) -> Paths:
    """Put the pairs of the groups begin .. end on their paths in the trees, which are grown here if not yet."""
    graph, trips, fixed, state = field.graph, field.trips, field.fixed, field.state
    tail, into, size, longest = graph.tail, field.batch.into, field.batch.into.shape[0], graph.first_out.size
    for low in range(begin, end, size):
        high = min(low + size, end)
        if not grown:
            present_costs(low, high, field, 0.0)
            grow_trees(low, low, high, field, field.space, False)
        for group in range(low, high):
            extra, origin = fixed[trips.group_class[group]], trips.origin[group]
            pairs = range(trips.first[group], trips.first[group + 1])
            paths, _ = with_room(paths, trips.first[group], paths, trips.demand.size, len(pairs) * longest)
            first, start, stop, pool, flow, path_fixed, filled = paths
            at = filled[0]
            for pair in pairs:
                demand, destination = trips.demand[pair], trips.destination[pair]
                start[pair] = at
                at, path_fixed[pair] = trace(origin, destination, tail, into[group - low], extra, at, pool)
                flow[pair], stop[pair], first[pair + 1] = demand, at, pair + 1
                for k in range(start[pair], at):
                    state[pool[k], FLOW] += demand
            filled[0] = at
        refresh(law, state)
    return paths


@shared
def load(field: Field, law: Law, pool: Pool, crew: Any) -> Paths:
    """Put each pair on its shortest path, batch after batch, at the times the earlier ones have left.

    Costs below zero count as zero here: at free flow a subsidy may make a cycle negative that traffic then closes.
    """
    pairs, groups, size = field.trips.demand.size, field.trips.origin.size, field.batch.into.shape[0]
    paths = no_paths(pairs, pairs, pool)
    if crew is None:
        return _load(0, groups, False, field, law, paths)
    for low in range(0, groups, size):
        high = min(low + size, groups)
        present_costs(low, high, field, 0.0)
        crew.grow_trees(low, high, field, False)
        paths = _load(low, high, True, field, law, paths)
    return paths


class Listing(NamedTuple):
    """The path sets of a round, ``used`` paths so far, the old ones they are made from, and the excess cost found."""

    new: Paths
    old: Paths
    used: int
    excess: float


@compiled
def _list_and_shift(
    begin: int, end: int, grown: bool, field: Field, law: Law, listing: Listing, choice: Long, mend: bool, shift: float
) -> Listing:
    """List the paths of the groups begin .. end, batch by batch, and shift their flow; see `price`."""
    graph, trips, fixed, state = field.graph, field.trips, field.fixed, field.state
    distance, into = field.batch
    new, old, used, excess = listing
    size, longest = into.shape[0], graph.first_out.size
    for low in range(begin, end, size):
        high, several = min(low + size, end), 0
        if not grown:
            if shift >= 0.0:
                present_costs(low, high, field, -np.inf)
            grow_trees(low, low, high, field, field.space, mend)
        for group in range(low, high):
            first, last, extra = trips.first[group], trips.first[group + 1], fixed[trips.group_class[group]]
            new, old = with_room(new, used, old, old.first[first], (last - first) * longest)
            used, more, several = list_anew(
                first, last, trips.origin[group], used, trips, graph, extra, state, old, new, distance[group - low],
                into[group - low], choice, several
            )  # fmt: skip
            excess += more
        if shift >= 0.0:
            sweep(choice[:several], new, shift, law, state, field.marks)
    return Listing(new, old, used, excess)


@shared
def price(field: Field, law: Law, old: Paths, mend: bool, shift: float, crew: Any) -> tuple[Paths, float]:
    """One round of column generation, at the costs in ``field``; trees are mended if ``mend``.

    Returns the path sets with the empty paths dropped that are far from shortest and the missing shortest paths added
    with no flow, and the total excess cost. With ``shift`` < 0 nothing moves, and the excess is the numerator of the
    relative gap; otherwise the flow of each batch is shifted as soon as its paths are known (differences below
    ``shift`` times the cost apart), and the next one meets the costs that this leaves.
    """
    pairs, groups, size = field.trips.demand.size, field.trips.origin.size, field.batch.into.shape[0]
    new, choice = no_paths(pairs, old.first[pairs] + pairs, old.pool), np.empty(pairs, np.int64)
    new.filled[0] = old.filled[0]
    listing = Listing(new, old, 0, 0.0)
    if crew is None:
        listing = _list_and_shift(0, groups, False, field, law, listing, choice, mend, shift)
    else:
        for low in range(0, groups, size):
            high = min(low + size, groups)
            if shift >= 0.0:
                present_costs(low, high, field, -np.inf)
            crew.grow_trees(low, high, field, mend)
            listing = _list_and_shift(low, high, True, field, law, listing, choice, mend, shift)
    return listing.new, listing.excess


def nothing_known(graph: Graph, trips: Trips) -> tuple[Paths, Trees]:
    """Return empty path sets and trees, from which the solver starts cold."""
    groups, nodes = trips.origin.size, graph.first_out.size - 1
    kind = np.uint16 if graph.head.size <= np.iinfo(np.uint16).max else np.uint32
    pool: Any = np.empty(_ROOM * trips.demand.size + nodes, kind)
    trees = Trees(np.empty((groups, nodes), np.int32), np.zeros(groups, np.int64))
    return no_paths(trips.demand.size, 0, pool), trees


def known_from(paths: Paths, trees: Trees, trips: Trips, fixed: Matrix) -> tuple[Paths, Trees]:
    """Return copies of path sets with their flow, priced by other ``fixed`` costs, and of trees: a warm start."""
    count, filled = int(paths.first[-1]), int(paths.filled[0])
    pool = np.empty_like(paths.pool)
    pool[:filled] = paths.pool[:filled]
    start, stop, flow = (paths.start[:count].copy(), paths.stop[:count].copy(), paths.flow[:count].copy())
    again = Paths(paths.first.copy(), start, stop, pool, flow, np.empty(count), paths.filled.copy())
    price_fixed(trips, again, fixed)
    return again, Trees(trees.links.copy(), trees.size.copy())


class Known(NamedTuple):
    """The paths of several equilibria, with a row of flows for each."""

    paths: Paths
    flows: Matrix


@compiled
def joined(known: Known, more: Paths) -> Known:
    """Return what is known with the used paths of one more equilibrium, whose flow is the last row."""
    paths, flows = known
    pairs, most = paths.first.size - 1, paths.first[paths.first.size - 1] + more.first[more.first.size - 1]
    live = 0
    for each in (paths, more):
        for path in range(each.first[pairs]):
            live += each.stop[path] - each.start[path]
    result, end = no_paths(pairs, most, np.empty(max(paths.pool.size, 2 * live), paths.pool.dtype)), 0
    first, filled = result.first, result.filled
    flow, codes, used, rows = np.zeros((flows.shape[0] + 1, most)), np.empty(most, np.int64), 0, flows.shape[0]
    for pair in range(pairs):
        for path in range(paths.first[pair], paths.first[pair + 1]):
            codes[used], end = _kept(paths, path, result, used, end)
            flow[:rows, used] = flows[:, path]
            used += 1
        for path in range(more.first[pair], more.first[pair + 1]):
            if more.flow[path] > 0.0:
                codes[used], after = _kept(more, path, result, used, end)
                at = first[pair]
                while codes[at] != codes[used]:
                    at += 1
                flow[rows, at] += more.flow[path]
                if at == used:
                    used, end = used + 1, after
        first[pair + 1] = used
    filled[0] = end
    return Known(result, flow[:, :used].copy())


@compiled
def _kept(paths: Paths, path: int, result: Paths, at: int, end: int) -> tuple[int, int]:
    """Copy a path to place ``at``, its links to ``end`` of the pool; return its code, and where the links end."""
    code, result.start[at] = 0, end
    for k in range(paths.start[path], paths.stop[path]):
        result.pool[end] = paths.pool[k]
        code += link_code(np.int64(paths.pool[k]))
        end += 1
    result.stop[at] = end
    return code, end
