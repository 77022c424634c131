"""The equilibrium at given tolls: link flows with their gap, and on request paths, costs, skims, money and time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_array, number, one_of, require, whole
from pzos.base.errors import InvalidInput, NotConverged
from pzos.base.types import Matrix, Vector
from pzos.networks.demand import Indices
from pzos.networks.equilibrium import bushes, solver
from pzos.networks.equilibrium.paths import Paths, class_flows
from pzos.networks.equilibrium.rounds import known_from, nothing_known
from pzos.networks.equilibrium.trees import find_potential, grow_tree, tree_space
from pzos.networks.latency import FLOW

if TYPE_CHECKING:
    from pzos.networks.derivatives import FlowDerivative
    from pzos.networks.network import Network
    from pzos.networks.open_flows import OpenFlows
    from pzos.networks.references import References

#: With more pairs than this, flow is kept by bushes, not by paths: memory then grows with origins times nodes.
MOST_PAIRS_FOR_PATHS = 300_000

Outcome = solver.Equilibration | bushes.BushEquilibration

_GAP = number(lambda gap: 0 < gap < 1, "a number between 0 and 1", "1e-10 is usual, 1e-14 about the end")


class NegativeCycle(InvalidInput):
    """Tolls (subsidies) make a round trip earn money at equilibrium; ``nodes`` names it, first node repeated."""

    def __init__(self, nodes: tuple[int, ...], cost: float, user_class: str) -> None:
        self.nodes = nodes
        way = " -> ".join(str(node) for node in nodes)
        super().__init__(
            f"tolls: the cycle {way} costs {cost:.6g} for class {user_class!r}: expected no cycle of negative cost; "
            "travellers would drive round it for ever, so raise the tolls (lower the subsidies) on its links"
        )


class AboveGap(NotConverged):
    """The equilibrium was not reached to the gap asked for; ``gap`` and ``rounds`` say how far it got."""

    def __init__(self, asked: float, gap: float, rounds: int) -> None:
        self.asked, self.gap, self.rounds = asked, gap, rounds
        super().__init__(
            f"assign: relative gap {gap:.3e} after {rounds} rounds, asked for {asked:.1e}; "
            "ask for a larger gap, allow more rounds, or pass above_gap='return' and look at Assignment.converged"
        )


class PathFlow(NamedTuple):
    """One used path: class, end nodes and links counted from 0, its travellers and its cost in units of time."""

    user_class: int
    origin: int
    destination: int
    links: Indices
    flow: float
    cost: float


@dataclass(frozen=True, eq=False)
class Assignment:
    """A user equilibrium.

    ``flow`` is the total flow of every link, ``gap`` the relative gap
    (sum of flow times cost above the shortest path) / (sum of flow times |cost|), ``objective`` the Beckmann
    objective  sum_e integral of t_e + sum over classes of fixed costs times flow,  ``seconds`` what it took.
    """

    network: Network
    tolls: Matrix
    flow: Vector
    gap: float
    rounds: int
    seconds: float
    converged: bool
    _outcome: Outcome

    @cached_property
    def class_flow(self) -> Matrix:
        """Return the flow of each class (row) on each link (column)."""
        ready, outcome = self.network.prepared, self._outcome
        result = np.empty((len(self.network.classes), self.network.links))
        if isinstance(outcome, bushes.BushEquilibration):
            result[:, ready.order] = bushes.bush_flows(ready.trips, outcome.bushes, *result.shape)
        else:
            result[:, ready.order] = class_flows(ready.trips, outcome.paths, *result.shape)
        return result

    @cached_property
    def path_sets(self) -> Paths:
        """Return the used paths of all pairs as the solver keeps them; taken out of the bushes where it has these."""
        if not isinstance(self._outcome, bushes.BushEquilibration):
            return self._outcome.paths
        ready = self.network.prepared
        fixed = fixed_costs(self.network, self.tolls)[:, ready.order]
        return bushes.paths_of(ready.graph, ready.trips, self._outcome.bushes, np.ascontiguousarray(fixed))

    @cached_property
    def time(self) -> Vector:
        """Return the travel time of every link."""
        return self.network.latency.time(self.flow)

    @cached_property
    def cost(self) -> Matrix:
        """Return what each class (row) pays on each link (column), in its units of time."""
        return self.time + fixed_costs(self.network, self.tolls)

    @property
    def largest_toll(self) -> Vector:
        """Return, per link, the toll that is largest in size over the classes."""
        row = np.argmax(np.abs(self.tolls), axis=0)
        largest: Vector = self.tolls[row, np.arange(self.network.links)]
        return largest

    @cached_property
    def objective(self) -> float:
        """Return the Beckmann objective that the equilibrium minimises, added up without rounding."""
        fixed = (fixed_costs(self.network, self.tolls) * self.class_flow).ravel()
        return fsum(self.network.latency.integral(self.flow)) + fsum(fixed)

    @property
    def total_travel_time(self) -> float:
        """Return the sum over travellers of their time on the road, tolls not counted."""
        return fsum(self.flow * self.time)

    @property
    def revenue(self) -> float:
        """Return the money taken: sum over classes and links of toll times flow (the handed tolls alone)."""
        return fsum((self.tolls * self.class_flow).ravel())

    @property
    def total_cost(self) -> float:
        """Return the sum over travellers of their generalised cost in units of time, tolls counted."""
        return fsum((self.cost * self.class_flow).ravel())

    def jacobian(self) -> FlowDerivative:
        """Return the exact derivative of the link flows in the tolls, as products; compute to a tight gap first."""
        from pzos.networks.derivatives import flow_derivative

        return flow_derivative(self)

    @cached_property
    def open_flows(self) -> OpenFlows:
        """Return which flows the equilibrium leaves open: on links of constant cost where ways tie, and of classes."""
        from pzos.networks.open_flows import open_flows

        return open_flows(self)

    def paths(self) -> Iterator[PathFlow]:
        """Yield every path that carries flow (path flows, unlike link flows, are not unique)."""
        ready, paths = self.network.prepared, self.path_sets
        for group in range(ready.trips.origin.size):
            kind, origin = int(ready.trips.group_class[group]), int(ready.trips.origin[group])
            for pair in range(int(ready.trips.first[group]), int(ready.trips.first[group + 1])):
                for path in range(int(paths.first[pair]), int(paths.first[pair + 1])):
                    if paths.flow[path] > 0.0:
                        # The solver keeps a path from its end to its start.
                        links = ready.order[paths.pool[paths.start[path] : paths.stop[path]][::-1]]
                        cost = fsum(self.cost[kind, links])
                        end = int(ready.trips.destination[pair])
                        yield PathFlow(kind, origin, end, links, float(paths.flow[path]), cost)

    def skim(self, user_class: int = 0, links: npt.ArrayLike | None = None) -> Matrix:
        """Return the table, zone by zone, of the cost of a class's cheapest path (infinite where there is none).

        ``links`` gives another quantity per link (length, time, toll) to add up along these same paths.
        """
        ready, zones = self.network.prepared, self.network.zones
        cost = np.ascontiguousarray(self.cost[user_class][ready.order])
        other = cost if links is None else np.array(links, dtype=np.float64)[ready.order]
        space, potential = tree_space(self.network.nodes), np.zeros(self.network.nodes)
        find_potential(ready.graph, cost, potential, np.empty(self.network.nodes, np.int32))
        table = np.full((zones, zones), np.inf)
        for origin in range(zones):
            grow_tree(origin, ready.graph, cost, potential, space)
            total = np.full(self.network.nodes, np.nan)
            total[origin] = 0.0
            for zone in range(zones):
                if np.isfinite(space.distance[zone]):
                    table[origin, zone] = _along_tree(zone, space.into, ready.graph.tail, other, total)
        return table


def _along_tree(
    node: int, into: npt.NDArray[np.int32], tail: npt.NDArray[np.int32], value: Vector, total: Vector
) -> float:
    """Return the sum of ``value`` from the root to ``node``, remembering the sums of all nodes on the way."""
    way = []
    while np.isnan(total[node]):
        way.append(node)
        node = int(tail[into[node]])
    for each in reversed(way):
        total[each] = total[tail[into[each]]] + value[into[each]]
    return float(total[way[0]] if way else total[node])


def fixed_costs(network: Network, tolls: Matrix) -> Matrix:
    """Return the part of each class's link costs that does not depend on flow, in units of time."""
    paid = network.toll_factor * network.toll + tolls
    fixed: Matrix = paid / network.worth + network.distance_factor * network.length
    return fixed


def checked_tolls(network: Network, tolls: npt.ArrayLike | None) -> Matrix:
    """Return the tolls as a table with one row per class, or say what is wrong with them."""
    shape = (len(network.classes), network.links)
    if tolls is None:
        return np.zeros(shape)
    faults = Faults("assign")
    array = frozen_array(faults, "tolls", tolls)
    if array is None:
        raise faults.error()
    require(array.shape in (shape, shape[1:]), "assign", "tolls", array, f"{shape[1]} numbers (or {shape[0]} rows)",
            "one toll per link; Network.link_number finds a link")  # fmt: skip
    for where in np.argwhere(~np.isfinite(array)).tolist():
        require(False, "assign", f"tolls{where}", float(array[tuple(where)]), "finite numbers", "check the tolls")
    return np.array(np.broadcast_to(array, shape), order="C")


def assign(
    network: Network,
    tolls: npt.ArrayLike | None,
    gap: float,
    rounds: int,
    above_gap: Literal["raise", "return"],
    reference: Assignment | References | None,
    threads: int,
) -> Assignment:
    """Compute the equilibrium; see :meth:`pzos.networks.Network.assign`."""
    faults = Faults("assign")
    _GAP.note(faults, "gap", gap)
    whole(1, "400 is usual").note(faults, "rounds", rounds)
    whole(1, "as many as processors are free").note(faults, "threads", threads)
    one_of(("raise", "return")).note(faults, "above_gap", above_gap)
    faults.check(reference is None or reference.network is network, "reference", reference,
                 "an equilibrium of this network", "compute it with the same network's assign")  # fmt: skip
    faults.raise_if_any()
    table = checked_tolls(network, tolls)
    ready = network.prepared
    begin = time.perf_counter()
    fixed = ready.base + (table / network.worth)[:, ready.order]
    outcome = _solved(network, fixed, float(gap), int(rounds), _known(reference, table), int(threads))
    seconds = time.perf_counter() - begin
    if isinstance(outcome, solver.Equilibration) and outcome.status == solver.CYCLE:
        raise _cycle(network, outcome, fixed)
    if outcome.status == solver.TIRED and above_gap == "raise":
        raise AboveGap(gap, outcome.gap, outcome.rounds)
    flow = np.empty(network.links)
    flow[ready.order] = outcome.state[:, FLOW]
    done = outcome.status == solver.CONVERGED
    return Assignment(network, table, flow, float(outcome.gap), int(outcome.rounds), seconds, done, outcome)


def _known(reference: Assignment | References | None, tolls: Matrix) -> tuple[Outcome | None, bool]:
    """Return the outcome to start from, and whether it knows detours."""
    if reference is None:
        return None, False
    if isinstance(reference, Assignment):
        return reference._outcome, False
    return reference.outcome(tolls), len(reference.answers) > 1


def _solved(
    network: Network, fixed: Matrix, gap: float, rounds: int, start_from: tuple[Outcome | None, bool], threads: int
) -> Outcome:
    """Solve by paths or by bushes, from what is known if that is of the same kind."""
    ready, (known, detours) = network.prepared, start_from
    with np.errstate(all="ignore"):  # compiled code does not warn; with JIT off NumPy would, of codes that wrap round
        if ready.trips.demand.size > MOST_PAIRS_FOR_PATHS and _plain(network, fixed):
            before = known.bushes if isinstance(known, bushes.BushEquilibration) else None
            return bushes.equilibrate(ready.graph, ready.trips, fixed, ready.law, gap, rounds, before)
        if isinstance(known, solver.Equilibration):
            start = known_from(known.paths, known.trees, ready.trips, fixed)
        else:
            start = nothing_known(ready.graph, ready.trips)
        effort = solver.Effort(rounds=rounds, detours=detours)
        return solver.equilibrate(ready.graph, ready.trips, fixed, ready.law, gap, effort, *start, threads)


def _plain(network: Network, fixed: Matrix) -> bool:
    """Tell whether no cost can be negative."""
    return bool(fixed.min() >= 0.0 and network.latency.time(np.zeros(network.links)).min() >= 0.0)


def _cycle(network: Network, outcome: solver.Equilibration, fixed: Matrix) -> NegativeCycle:
    """Walk back along the links until a node repeats, and name the cycle."""
    tail, into = network.prepared.graph.tail, outcome.into
    node = outcome.node
    for _ in range(network.nodes):
        node = int(tail[into[node]])
    nodes, cost, start = [node], 0.0, node
    while len(nodes) == 1 or node != start:
        link = into[node]
        cost += float(outcome.state[link, 1] + fixed[outcome.kind, link])
        node = int(tail[link])
        nodes.append(node)
    names = tuple(int(network.node_ids[each]) for each in reversed(nodes))
    return NegativeCycle(names, cost, network.classes[outcome.kind].name)


def system_optimum(network: Network, gap: float) -> Assignment:
    """Return the flows of least total travel time, as an equilibrium of the *original* network under its tolls.

    The tolls are the marginal external costs v t'(v); file tolls and lengths are not part of travel time.
    """
    social = replace(network, latency=network.latency.marginal(), toll_factor=0.0, distance_factor=0.0)
    best = social.assign(None, gap)
    tolls = best.flow * network.latency.slope(best.flow) * network.worth
    plain = replace(network, toll_factor=0.0, distance_factor=0.0)
    return replace(best, network=plain, tolls=np.ascontiguousarray(tolls))
