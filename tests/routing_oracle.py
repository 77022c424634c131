"""An oracle for the routing follower: an interior-point method on edge flows, slow, dense and independent.

It shares no code with the compiled solver: a primal-dual predictor-corrector method (Mehrotra) finds which class uses
which edge, and the equations of that support are then solved by least squares.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.games.routing import RoutingGame, reachable_from

Mask = npt.NDArray[np.bool_]


class Programme:
    """min f'Qf / 2 + c'f over f >= 0, Nf = r: one variable per class and edge that the class can use at all."""

    def __init__(self, game: RoutingGame, tolls: Vector) -> None:
        self.group, self.edge = np.nonzero(usable_edges(game))
        self.edges = game.edges
        self.hessian: Matrix = np.where(self.edge[:, None] == self.edge[None, :], game.slope[self.edge][:, None], 0.0)
        self.cost: Vector = game.intercept[self.edge] + tolls[self.edge] / game.sensitivity[self.group]
        rows = np.zeros((game.classes, game.vertices, self.edge.size))
        variable = np.arange(self.edge.size)
        np.add.at(rows, (self.group, game.tail[self.edge], variable), 1.0)
        np.add.at(rows, (self.group, game.head[self.edge], variable), -1.0)
        supply = np.zeros((game.classes, game.vertices))
        np.add.at(supply, (np.arange(game.classes), game.origin), game.demand)
        np.add.at(supply, (np.arange(game.classes), game.destination), -game.demand)
        kept = independent_rows(rows.reshape(-1, self.edge.size))
        self.balance: Matrix = rows.reshape(-1, self.edge.size)[kept]
        self.supply: Vector = supply.reshape(-1)[kept]

    def load(self, flow: Vector) -> Vector:
        """Aggregate flow of every edge."""
        load: Vector = np.bincount(self.edge, weights=flow, minlength=self.edges).astype(np.float64)
        return load


def usable_edges(game: RoutingGame) -> Mask:
    """Classes by edges: whether an edge lies on a way from origin to destination or on a cycle."""
    n = game.vertices
    reach = np.array([reachable_from(n, game.tail, game.head, v) for v in range(n)])
    on_cycle = reach[game.head, game.tail]
    on_way = reach[game.origin][:, game.tail] & reach[:, game.destination].T[:, game.head]
    mask: Mask = on_way | on_cycle
    return mask


def independent_rows(matrix: Matrix) -> npt.NDArray[np.int64]:
    """Rows of a stack of incidence matrices that span all of them (one row per connected part is redundant)."""
    from scipy.linalg import qr

    triangle, order = qr(matrix.T, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > 1e-9))
    return np.sort(order[:rank])


def interior_equilibrium(game: RoutingGame, tolls: Vector) -> tuple[Vector, float]:
    """Return the aggregate flow and its relative gap (infinite where the method fails)."""
    programme = Programme(game, tolls)
    flow, slack = interior_point(programme)
    if not np.isfinite(flow).all():
        return np.full(game.edges, np.nan), np.inf
    rough = programme.load(flow)
    scale = float(np.abs(programme.cost).max() + (game.slope * rough).max())
    used = flow * scale > slack * (1.0 + game.demand.sum())
    exact = on_support(programme, used)
    gap = wardrop_gap(game, tolls, exact, programme, np.where(used, flow, 0.0), scale)
    if gap <= 1e-11 and np.abs(exact - rough).max() <= 1e-4 * (1.0 + game.demand.sum()):
        return exact, gap
    return rough, wardrop_gap(game, tolls, rough, programme, flow, scale)


def wardrop_gap(
    game: RoutingGame, tolls: Vector, load: Vector, programme: Programme, flow: Vector, scale: float
) -> float:
    """Most that a unit of demand overpays, or that a negative cycle would save, relative to the cost scale."""
    latency = game.slope * load + game.intercept
    worst, size = 0.0, (1.0 + game.demand.sum()) * max(scale, 1e-300)
    for i in range(game.classes):
        cost = latency + tolls / game.sensitivity[i]
        reached = reachable_from(game.vertices, game.tail, game.head, int(game.origin[i]))
        walked = reached[game.tail] == reached[game.head]
        tail, head, cost = game.tail[walked], game.head[walked], np.where(walked, cost, 0.0)
        label = np.where(reached, np.inf, 0.0)
        label[game.origin[i]] = 0.0
        for _ in range(game.vertices):
            np.minimum.at(label, head, label[tail] + cost[walked])
        reduced = cost + np.where(walked, label[game.tail] - label[game.head], 0.0)
        own = programme.group == i
        paid = float(flow[own] @ np.maximum(reduced[programme.edge[own]], 0.0))
        worst = max(worst, paid / size, -float(reduced.min(initial=0.0)) / max(scale, 1e-300))
    return worst


def interior_point(programme: Programme, rounds: int = 200) -> tuple[Vector, Vector]:
    """Flows and reduced costs near the optimum, both positive."""
    size, rows = programme.cost.size, programme.supply.size
    flow = np.full(size, 1.0 + float(np.abs(programme.supply).max()))
    slack = np.full(size, 1.0 + float(np.abs(programme.cost).max()))
    dual = np.zeros(rows)
    system = np.zeros((size + rows, size + rows))
    system[:size, size:] = programme.balance.T
    system[size:, :size] = programme.balance
    start = float(flow @ slack) / size
    for _ in range(rounds):
        stationarity = programme.hessian @ flow + programme.cost + programme.balance.T @ dual - slack
        conservation = programme.balance @ flow - programme.supply
        centre = float(flow @ slack) / size
        if centre <= 1e-15 * start and np.abs(conservation).max() <= 1e-12 * start:
            break
        system[:size, :size] = programme.hessian + np.diag(slack / flow)
        target = -flow * slack
        for phase in range(2):
            right = np.concatenate([-stationarity + target / flow, -conservation])
            try:
                step = np.linalg.solve(system, right)
            except np.linalg.LinAlgError:  # so near the boundary that slack / flow overflows: as far as it goes
                return flow, slack
            d_flow = step[:size]
            d_slack = (target - slack * d_flow) / flow
            length = min(_to_boundary(flow, d_flow), _to_boundary(slack, d_slack))
            if phase == 0:
                after = float((flow + length * d_flow) @ (slack + length * d_slack)) / size
                target = (after / centre) ** 3 * centre - flow * slack - d_flow * d_slack
        length = min(1.0, 0.99 * length)
        flow, slack, dual = flow + length * d_flow, slack + length * d_slack, dual + length * step[size:]
        if not np.isfinite(flow).all():
            break
    return flow, slack


def _to_boundary(value: Vector, change: Vector) -> float:
    falling = change < 0.0
    return float(np.min(-value[falling] / change[falling], initial=1.0))


def on_support(programme: Programme, used: Mask) -> Vector:
    """Load that solves the equations of a support, by least squares (flows of the classes need not be unique)."""
    size, rows = int(used.sum()), programme.supply.size
    system = np.zeros((size + rows, size + rows))
    system[:size, :size] = programme.hessian[np.ix_(used, used)]
    system[:size, size:] = programme.balance[:, used].T
    system[size:, :size] = programme.balance[:, used]
    right = np.concatenate([-programme.cost[used], programme.supply])
    solution = np.linalg.lstsq(system, right, rcond=1e-13)[0]
    solution += np.linalg.lstsq(system, right - system @ solution, rcond=1e-13)[0]
    flow = np.zeros(programme.cost.size)
    flow[used] = solution[:size]
    return programme.load(flow)
