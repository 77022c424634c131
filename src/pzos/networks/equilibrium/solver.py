"""The equilibrium solver: a first loading, then rounds of column generation, sweeps and Newton steps.

It starts cold, or from the paths of a given equilibrium: its answer is a function of the network, the demand, the
tolls and that reference alone, the same bits everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pzos.base.types import Matrix
from pzos.games._compile import compiled, shared
from pzos.networks.equilibrium.crew import Crew
from pzos.networks.equilibrium.newton import newton_step
from pzos.networks.equilibrium.paths import Marks, Paths, Trips, add_up, excess_of_known, pairs_with_choice, sweep
from pzos.networks.equilibrium.rounds import Field, Trees, load, new_field, price
from pzos.networks.equilibrium.trees import Graph, Short, find_potential
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
    Above ``shift_above`` flow is shifted origin by origin while paths are found. If the known paths have ``detours``
    among them, that is those of other tolls, they are brought to equilibrium before others are looked for.
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
    detours: bool = False


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
def _total_cost(paths: Paths, trips: Trips, cost: Matrix, state: Matrix, plain: bool) -> float:
    """Return the sum over travellers of |cost| of every link they use: the denominator of the relative gap.

    No cost is negative if ``plain``: then time is added up link by link, where it is paid, and the rest path by path.
    """
    first, start, stop, pool, flow, fixed, _ = paths
    total = 0.0
    if plain:
        for link in range(state.shape[0]):
            total += state[link, FLOW] * state[link, TIME]
        for path in range(first[first.size - 1]):
            total += flow[path] * fixed[path]
        return total
    for group in range(trips.origin.size):
        of_class = cost[trips.group_class[group]]
        for path in range(first[trips.first[group]], first[trips.first[group + 1]]):
            length = 0.0
            for k in range(start[path], stop[path]):
                length += abs(of_class[pool[k]])
            total += length * flow[path]
    return total


@compiled
def _known_gap(paths: Paths, field: Field, law: Law, plain: bool) -> tuple[float, float]:
    """Return a lower bound of the relative gap, from the known paths alone, and the total cost; set the links to their
    flow.
    """
    trips, fixed, state = field.trips, field.fixed, field.state
    add_up(paths, state)
    refresh(law, state)
    cost = np.empty_like(field.cost)
    for kind in range(fixed.shape[0]):
        cost[kind] = state[:, TIME] + fixed[kind]
    total = _total_cost(paths, trips, cost, state, plain)
    excess = excess_of_known(pairs_with_choice(paths), paths, state)
    return (max(excess / total, 0.0) if total > 0.0 else 0.0), total


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


@shared
def _equilibrate(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, effort: Effort, paths: Paths, trees: Trees,
    crew: Any
) -> Equilibration:  # fmt: skip
    """As `equilibrate`, with ``crew`` None in compiled code."""
    field = new_field(graph, trips, law, fixed, trees)
    state, cost, marks, into = field.state, field.cost, field.marks, np.empty(graph.first_out.size - 1, np.int32)
    plain = fixed.min() >= 0.0 and state[:, TIME].min() >= 0.0  # else costs need potentials, which fit frozen ones only
    gap = np.inf
    if paths.flow.size == 0:
        paths = load(field, law, paths.pool, crew)
    else:
        known, total = _known_gap(paths, field, law, plain)
        if effort.detours and target < known < effort.newton_below:
            _improve(paths, trips.pair_class, known, total, law, state, marks, effort)
            known = 0.0
        gap = 0.0 if known <= target else np.inf  # as far as is known: measure first, or shift while paths are found
    halved, since, number = np.inf, 0, 0
    while True:
        add_up(paths, state)
        refresh(law, state)
        kind, node = _link_costs(graph, fixed, state, cost, field.potential, into)
        total = _total_cost(paths, trips, cost, state, plain)
        tired = since > effort.patience or number >= effort.rounds  # one more, to measure
        shifts = plain and not tired and gap > max(effort.shift_above, target)
        paths, excess = price(field, law, paths, plain, 0.0 if shifts else -1.0, crew)
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


@compiled
def _alone(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, effort: Effort, paths: Paths, trees: Trees
) -> Equilibration:
    return _equilibrate(graph, trips, fixed, law, target, effort, paths, trees, None)


def equilibrate(
    graph: Graph, trips: Trips, fixed: Matrix, law: Law, target: float, effort: Effort, paths: Paths, trees: Trees,
    threads: int = 1
) -> Equilibration:  # fmt: skip
    """Compute the user equilibrium to the relative gap ``target``, from ``paths`` with their flow, or from none.

    The gap is that of a round in which nothing moves, at link flows added up from the path flows and frozen costs; the
    returned flows are those at which it was measured, the same bits for any number of threads. ``paths`` and ``trees``
    are overwritten.
    """
    if threads == 1:
        return _alone(graph, trips, fixed, law, target, effort, paths, trees)
    with Crew(threads, graph.first_out.size - 1) as crew:
        return _equilibrate(graph, trips, fixed, law, target, effort, paths, trees, crew)
