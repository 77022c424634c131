"""A generated city: a grid of streets with arterials and a ring road, and trips drawn towards the centre.

It is the embedded default where no data are at hand; every number is a pure function of the seed.
"""

from __future__ import annotations

import numpy as np

from pzos.base.checks import Faults, is_whole, positive, whole
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.networks.demand import Demand, Indices
from pzos.networks.gap import sparse_graph
from pzos.networks.latency import Latency
from pzos.networks.network import Network

STREET, ARTERIAL, RING = 1, 2, 3
"""The link types of a generated city."""

_SPEED = {STREET: 30.0, ARTERIAL: 50.0, RING: 80.0}
_CAPACITY = {STREET: 800.0, ARTERIAL: 1800.0, RING: 3600.0}


def generated_city(
    rows: int = 7, columns: int = 7, *, zones: int = 16, congestion: float = 1.0, seed: int = 0
) -> Network:
    """Return a city of ``rows`` by ``columns`` crossings about 1 km apart, times in minutes, capacities per hour.

    Every third street is an arterial, the outermost streets form the ring. ``zones`` crossings, spread at random,
    send and attract trips by a gravity rule; at ``congestion`` 1 the average link is about half full.
    """
    faults = Faults("generated_city")
    whole_sides = is_whole(rows, 2) and is_whole(columns, 2)
    faults.check(whole_sides, "rows, columns", (rows, columns), "whole numbers, at least 2 each", "try 7, 7")
    crossings = rows * columns if is_whole(rows) and is_whole(columns) else None
    whole(2, "at most one per crossing", most=crossings).note(faults, "zones", zones)
    positive("try 1.0").note(faults, "congestion", congestion)
    faults.raise_if_any()
    draw = Keys(seed).generator(Role.INSTANCE)
    x, y = np.meshgrid(np.arange(columns, dtype=np.float64), np.arange(rows, dtype=np.float64))
    places = np.stack([x.ravel(), y.ravel()], axis=1) + draw.uniform(-0.2, 0.2, (rows * columns, 2))
    # Zones come first, as TNTP wants them.
    order = draw.permutation(rows * columns)
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    tail, head, kind = _streets(rows, columns).T
    tail, head = number[tail], number[head]
    places = places[order]
    length = np.sqrt(((places[tail] - places[head]) ** 2).sum(axis=1))
    free = 60.0 * length / np.array([_SPEED[int(k)] for k in kind])
    capacity = np.array([_CAPACITY[int(k)] for k in kind]) * draw.uniform(0.8, 1.2, kind.size)
    trips = _gravity(places[:zones], draw.uniform(0.5, 1.5, (2, zones)))
    trips *= congestion * _filling(tail, head, free, capacity, trips)
    return Network.from_arrays(
        tail, head, Latency.bpr(free, 0.15, capacity, 4.0), Demand.from_matrix(trips), nodes=rows * columns,
        zones=zones, length=length, node_ids=np.arange(1, rows * columns + 1), coordinates=places, link_type=kind,
        name=f"generated city {rows}x{columns}, seed {seed}",
    )  # fmt: skip


def _streets(rows: int, columns: int) -> Indices:
    """Return tail, head and type of every link, one row each, sorted by tail and head."""
    places = [(row, column, row * columns + column) for row in range(rows) for column in range(columns)]
    ends = [(here, here + 1, _kind(row, rows)) for row, column, here in places if column + 1 < columns]
    ends += [(here, here + columns, _kind(column, columns)) for row, column, here in places if row + 1 < rows]
    return np.array(sorted(ends + [(head, tail, kind) for tail, head, kind in ends]), dtype=np.int64)


def _kind(line: int, lines: int) -> int:
    if line in (0, lines - 1):
        return RING
    return ARTERIAL if line % 3 == 0 else STREET


def _gravity(places: Matrix, weight: Matrix) -> Matrix:
    """Return trips that grow with both zones' weight and towards the centre, and fade with distance."""
    centre = places.mean(axis=0)
    pull = weight[1] * np.exp(-0.3 * np.sqrt(((places - centre) ** 2).sum(axis=1)))
    distance = np.sqrt(((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2))
    table: Matrix = weight[0][:, None] * pull[None, :] * np.exp(-0.1 * distance)
    np.fill_diagonal(table, 0.0)
    return table


def _filling(tail: Indices, head: Indices, free: Vector, capacity: Vector, trips: Matrix) -> float:
    """Return the factor that fills the average link, by free-flow paths, to half its capacity."""
    from scipy.sparse.csgraph import dijkstra

    graph = sparse_graph(tail, head, free, 1 + int(max(tail.max(), head.max())))
    times = dijkstra(graph, indices=np.arange(trips.shape[0]))[:, : trips.shape[0]]
    return float(0.5 * np.sum(capacity * free) / np.sum(trips * times))
