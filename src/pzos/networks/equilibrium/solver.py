"""The equilibrium solver: a first loading, then rounds of column generation, sweeps and Newton steps.

It starts cold, or from the paths of a given equilibrium: its answer is a function of the network, the demand, the
tolls and that reference alone, the same bits everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix
from pzos.games._compile import compiled
from pzos.networks.equilibrium.newton import newton_step
from pzos.networks.equilibrium.paths import (
    Marks,
    Paths,
    Pool,
    Trees,
    Trips,
    add_up,
    new_marks,
    no_paths,
    pairs_with_choice,
    price,
    sweep,
    trace,
    with_room,
)
from pzos.networks.equilibrium.trees import Graph, Short, TreeSpace, find_potential, grow_tree, tree_space
from pzos.networks.latency import FLOW, TIME, Law, refresh

CONVERGED, TIRED, CYCLE = 0, 1, 2
"""How a run ended: at the gap asked for, without getting further, at a cycle of negative cost."""


class Effort(NamedTuple):
    """How hard to try.

    ``rounds`` of column generation at most, giving up after ``patience`` rounds without halving the gap (or with a
    negative cycle); in a round at most ``sweeps``, until the excess has fallen to ``early_drop`` times the round's
    gap, and to ``late_drop`` times it once the gap is below ``newton_below``: from then on sweeps alternate with
    Newton steps, to a relative ``accuracy`` in at most ``passes`` of ``products`` conjugate-gradient iterations.
    A Newton step that leaves more than ``stall`` of the excess ends the round: new paths pay more than another one.
    Above ``shift_above`` flow is shifted origin by origin while paths are found.
    """

    rounds: int = 400
    patience: int = 25
    sweeps: int = 20
    early_drop: float = 0.05
    late_drop: float = 0.001
    accuracy: float = 0.03
    products: int = 100
    passes: int = 60
    newton_below: float = 1e-2
    stall: float = 0.5
    shift_above: float = 1e-2


class Equilibration(NamedTuple):
    """What a run returns; ``into`` holds the links of a negative cycle that ends in ``node``, for class ``kind``."""

    paths: Paths
    state: Matrix
    gap: float
    rounds: int
    status: int
    node: int
    kind: int
    into: Short
    trees: Trees


@compiled
def _load(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, state: Matrix, pool: Pool, trees: Trees, space: TreeSpace
) -> Paths:
    """Put each pair on its shortest path, origin after origin, at the times the earlier origins have left.

    Costs below zero count as zero here: at free flow a subsidy may make a cycle negative that traffic then closes.
    """
    tail, into, longest, pairs = graph.tail, space.into, graph.first_out.size, trips.demand.size
    paths = no_paths(pairs, pairs, pool)
    still, cost = np.zeros(longest - 1), np.empty(tail.size)
    for group in range(trips.origin.size):
        extra, origin = fixed[trips.group_class[group]], trips.origin[group]
        for link in range(tail.size):
            cost[link] = max(state[link, TIME] + extra[link], 0.0)
        trees.size[group] = grow_tree(origin, graph, cost, still, space)
        for k in range(trees.size[group]):
            trees.links[group, k] = space.order[k]
        low, high = trips.first[group], trips.first[group + 1]
        paths, _ = with_room(paths, low, paths, pairs, (high - low) * longest)
        first, start, stop, pool, path_flow, path_fixed, filled = paths
        end = filled[0]
        for pair in range(low, high):
            demand = trips.demand[pair]
            start[pair] = end
            end, path_fixed[pair] = trace(origin, trips.destination[pair], tail, into, extra, end, pool)
            path_flow[pair], stop[pair], first[pair + 1] = demand, end, pair + 1
            for k in range(start[pair], end):
                state[pool[k], FLOW] += demand
        filled[0] = end
        refresh(law, state)
    return paths


@compiled
def _total_cost(paths: Paths, trips: Trips, cost: Matrix) -> float:
    """Return the sum over travellers of |cost| of every link they use: the denominator of the relative gap."""
    first, start, stop, pool, flow, _, _ = paths
    total = 0.0
    for group in range(trips.origin.size):
        of_class = cost[trips.group_class[group]]
        for path in range(first[trips.first[group]], first[trips.first[group + 1]]):
            length = 0.0
            for k in range(start[path], stop[path]):
                length += abs(of_class[pool[k]])
            total += length * flow[path]
    return total


@compiled
def _improve(
    paths: Paths, kind: Short, gap: float, total: float, law: Law, state: Matrix, marks: Marks, effort: Effort
) -> None:
    """Bring the known paths to equilibrium: sweeps, and in the end Newton steps between them."""
    choice = pairs_with_choice(paths)
    late = gap < effort.newton_below
    enough = (effort.late_drop if late else effort.early_drop) * min(gap, 1.0) * total
    least = np.inf
    for number in range(effort.sweeps):
        excess = sweep(choice, paths, 0.01 * enough / total, law, state, marks)
        if excess <= enough:
            return
        if late and number > 0:
            if excess > effort.stall * least:
                return
            least = excess
            newton_step(choice, kind, paths, law, state, marks, effort.accuracy, effort.products, effort.passes)


@compiled
def _link_costs(
    graph: Graph, fixed: Matrix, state: Matrix, cost: Matrix, potential: Matrix, into: Short
) -> tuple[int, int]:
    """Write costs and potentials of every class; return a class and a node with a negative cycle, or (-1, -1).

    The costs of a class with a negative cycle are cut off at zero: they still produce useful paths.
    """
    found_kind, found_node = -1, -1
    for kind in range(fixed.shape[0]):
        for link in range(state.shape[0]):
            cost[kind, link] = state[link, TIME] + fixed[kind, link]
        if found_node < 0:
            found_node = find_potential(graph, cost[kind], potential[kind], into)
            found_kind = kind if found_node >= 0 else -1
        if found_node >= 0:
            for link in range(state.shape[0]):
                cost[kind, link] = max(cost[kind, link], 0.0)
            for each in range(into.size):
                potential[kind, each] = 0.0
    return found_kind, found_node


@compiled
def equilibrate(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, effort: Effort, paths: Paths, trees: Trees
) -> Equilibration:
    """Compute the user equilibrium to the relative gap ``target``, from ``paths`` with their flow, or from none.

    The gap is that of a round in which nothing moves, at link flows added up from the path flows and frozen costs; the
    returned flows are those at which it was measured. ``paths`` and ``trees`` are overwritten.
    """
    nodes, links = graph.first_out.size - 1, graph.head.size
    space, marks, state = tree_space(nodes), new_marks(links), np.zeros((links, 3))
    cost, potential = np.zeros((fixed.shape[0], links)), np.zeros((fixed.shape[0], nodes))
    into = np.empty(nodes, np.int32)
    refresh(law, state)
    plain = fixed.min() >= 0.0 and state[:, TIME].min() >= 0.0  # else costs need potentials, which fit frozen ones only
    gap = 0.0  # unknown: measure first
    if paths.flow.size == 0:
        paths = _load(graph, trips, fixed, law, state, paths.pool, trees, space)
        gap = np.inf
    halved, since, number = np.inf, 0, 0
    while True:
        add_up(paths, state)
        refresh(law, state)
        kind, node = _link_costs(graph, fixed, state, cost, potential, into)
        total = _total_cost(paths, trips, cost)
        tired = since > effort.patience or number >= effort.rounds  # one more, to measure
        shifts = plain and not tired and gap > max(effort.shift_above, target)
        paths, excess = price(
            graph, trips, fixed, cost, state, potential, paths, trees, space, law, marks, plain, 0.0 if shifts else -1.0
        )
        gap = max(excess / total, 0.0) if total > 0.0 else 0.0
        if gap <= target and node < 0 and not shifts:
            return Equilibration(paths, state, gap, number, CONVERGED, node, kind, into, trees)
        number += 1
        if gap < 0.5 * halved and node < 0:
            halved, since = gap, 0
        else:
            since += 1
        if (since > effort.patience or number > effort.rounds) and not shifts:
            return Equilibration(paths, state, gap, number, CYCLE if node >= 0 else TIRED, node, kind, into, trees)
        _improve(paths, trips.pair_class, gap, total, law, state, marks, effort)
