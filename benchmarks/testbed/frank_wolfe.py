"""Followers whose equilibrium is a Frank-Wolfe run of a fixed number of steps, as in arXiv 2602.23277.

Each step sends everybody to a best response to the present flow and mixes it in with weight 2/(k + 2); the error of the
equilibrium decays as 1/steps. Answers are a function of x alone: every run starts from the first best response.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from pzos.base.types import Matrix, Vector
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.networks import Network

#: Steps of a run: more would be more exact, and slower. An attacker of many targets needs many.
SECURITY_STEPS, ROUTING_STEPS, PATH_STEPS = 500, 60, 100
#: A road costs at least this: where tolls make travelling pay, a shortest path would run in circles.
_LEAST_COST = 1e-6


def security_by_frank_wolfe(game: SecurityGame, steps: int = SECURITY_STEPS) -> Callable[[Vector], Vector]:
    """Return an attacker who moves his whole budget to the target that pays most at the margin."""

    def respond(x: Vector) -> Vector:
        strength = np.maximum(x, 0.0) + game.baseline
        y = np.zeros_like(strength)
        for k in range(steps):
            margin = game.attacker_value * strength / (strength + y) ** 2 - game.attacker_cost * y
            target = int(np.argmax(margin))
            y *= 1.0 - 2.0 / (k + 2)
            if margin[target] > 0.0:
                y[target] += 2.0 / (k + 2) * game.budget
        return y

    return respond


def routing_by_frank_wolfe(game: RoutingGame, steps: int = ROUTING_STEPS) -> Callable[[Vector], Vector]:
    """Return travellers of whom each class is assigned, all or nothing, to its cheapest path at the present flow.

    The network has no parallel edges, as those that :meth:`RoutingGame.random` draws.
    """
    edge = np.zeros((game.vertices, game.vertices), dtype=int)
    edge[game.tail, game.head] = np.arange(game.edges)

    def respond(tolls: Vector) -> Vector:
        flow = np.zeros(game.edges)
        paid = tolls / game.sensitivity[:, None]
        for k in range(steps):
            costs = np.maximum(game.slope * flow + game.intercept + paid, _LEAST_COST)
            flow += 2.0 / (k + 2) * (_all_or_nothing(game, edge, costs) - flow)
        return flow

    return respond


def _all_or_nothing(game: RoutingGame, edge: npt.NDArray[np.int_], costs: Matrix) -> Vector:
    """Return the flow of every class on a cheapest path for its own costs: Bellman-Ford, all classes at once."""
    groups = np.arange(game.classes)
    lengths = np.full((game.classes, game.vertices, game.vertices), np.inf)
    lengths[:, game.tail, game.head] = costs
    lengths[:, np.arange(game.vertices), np.arange(game.vertices)] = 0.0
    distance = lengths[groups, game.origin]
    for _ in range(game.vertices):
        nearer = (distance[:, :, None] + lengths).min(axis=1)
        if (nearer == distance).all():
            break
        distance = nearer
    lengths[:, np.arange(game.vertices), np.arange(game.vertices)] = np.inf
    before = (distance[:, :, None] + lengths).argmin(axis=1)
    flow = np.zeros(game.edges)
    for group in groups:
        at = game.destination[group]
        while at != game.origin[group]:
            flow[edge[before[group, at], at]] += game.demand[group]
            at = before[group, at]
    return flow


class Travellers:
    """Those between two zones of a network, who find their equilibrium by Frank-Wolfe."""

    def __init__(self, network: Network, origin: int, destination: int) -> None:
        self.network, self.origin, self.destination = network, origin, destination
        # No path passes through another zone.
        self.usable = np.flatnonzero((network.tail >= network.first_thru) | (network.tail == origin))
        self.ends = network.tail[self.usable], network.head[self.usable]
        ends = zip(*(side.tolist() for side in self.ends), strict=True)
        self.link = dict(zip(ends, self.usable.tolist(), strict=True))

    def cheapest(self, cost: Vector) -> list[int]:
        """Return the links of a cheapest path."""
        graph = csr_array((cost[self.usable] + 1e-9, self.ends), shape=(self.network.nodes,) * 2)
        before = dijkstra(graph, indices=self.origin, return_predecessors=True)[1].tolist()
        links, node = [], self.destination
        while node != self.origin:
            links.append(self.link[before[node], node])
            node = before[node]
        return links

    def flow(self, trips: float, paid: Vector) -> Vector:
        """Return the flow after the steps of Frank-Wolfe, from the quickest path on."""
        flow = np.zeros(self.network.links)
        for k in range(PATH_STEPS):
            path = self.cheapest(self.network.latency.time(flow) + paid)
            flow *= 1.0 - 2.0 / (k + 2)
            flow[path] += 2.0 / (k + 2) * trips
        return flow
