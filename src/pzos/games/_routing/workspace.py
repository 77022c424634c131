"""Workspaces of the routing solver: one per thread, made from the game's data, thrown away on pickling."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pzos.base.types import Vector
from pzos.games._routing.layout import HEADER, INTEGER_VIEWS, LANE_VIEWS, LANES, Integers, Views, shapes

if TYPE_CHECKING:
    from pzos.games.routing import RoutingGame


class Workspace:
    """The buffers of one thread, with their named views; they live as long as this object keeps their address."""

    __slots__ = ("address", "capacity", "floats", "ints", "views")

    def __init__(self, game: RoutingGame, capacity: int) -> None:
        self.capacity = capacity
        sizes = shapes(game.vertices, game.edges, game.classes, capacity)
        integers = HEADER + sum(prod(shape) for shape in sizes[:INTEGER_VIEWS])
        self.ints: Integers = np.zeros(integers, dtype=np.int64)
        self.floats: Vector = np.zeros(sum(prod(shape) for shape in sizes[INTEGER_VIEWS:]))
        lanes = self.floats.size - sum(prod(shape) for shape in sizes[-LANE_VIEWS:])
        self.ints[:HEADER] = game.vertices, game.edges, game.classes, capacity, self.floats.ctypes.data, lanes
        self.address = int(self.ints.ctypes.data)
        self.views = Views(
            *parts(self.ints[HEADER:], sizes[:INTEGER_VIEWS]), *parts(self.floats, sizes[INTEGER_VIEWS:])
        )
        fill_network(self.views, game)


def parts(buffer: Any, sizes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Cut a flat buffer into consecutive views of the given shapes."""
    ends = np.cumsum([prod(shape) for shape in sizes])
    return [buffer[end - prod(shape) : end].reshape(shape) for shape, end in zip(sizes, ends, strict=True)]


def fill_network(network: Views, game: RoutingGame) -> None:
    """Write the game's data into the views."""
    for name in ("tail", "head", "slope", "intercept", "origin", "destination", "demand"):
        getattr(network, name)[:] = getattr(game, name)
    for i, sensitivity in enumerate(game.sensitivity.tolist()):
        exact = 1 / Fraction(sensitivity)
        network.rate[0, i] = float(exact)
        network.rate[1, i] = float(exact - Fraction(float(exact)))
    outgoing = np.argsort(game.tail, kind="stable")
    network.out_edge[:] = outgoing
    network.first_out[:] = np.searchsorted(game.tail[outgoing], np.arange(game.vertices + 1))
    for i in range(game.classes):
        parent, reached = breadth_first(network, int(game.origin[i]))
        network.first_parent[i] = parent
        block, lane = divmod(i, LANES)
        network.rates[block, lane] = network.rate[0, i]
        network.guard[block * game.edges : (block + 1) * game.edges, lane] = np.where(
            ~reached[game.tail] & reached[game.head], np.inf, 0.0
        )


def breadth_first(network: Views, origin: int) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Entering edge of every vertex on a path with the fewest edges (-1 at the origin and where there is none)."""
    vertices = network.first_out.size - 1
    parent = np.full(vertices, -1, dtype=np.int64)
    reached = np.zeros(vertices, dtype=np.bool_)
    reached[origin] = True
    waiting = [origin]
    for vertex in waiting:
        for k in range(network.first_out[vertex], network.first_out[vertex + 1]):
            edge = int(network.out_edge[k])
            other = int(network.head[edge])
            if not reached[other]:
                reached[other] = True
                parent[other] = edge
                waiting.append(other)
    return parent, reached
