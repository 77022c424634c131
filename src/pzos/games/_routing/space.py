"""What the routing solver works on: named arrays, one set per thread, made from the game's data.

Columns are paths or cycles of a class, kept in slots of the `Pool`. The first `classes` entries of `active` are the
slots of the reference paths, one per class, which carry the rest of the demand; the other active columns are free.
A name that ends in `_low` is what rounding took from its namesake: both together have twice the working precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.games._compile import openers

if TYPE_CHECKING:
    from pzos.games.routing import RoutingGame

Integers = npt.NDArray[np.int64]

ROWS = 64
"""Most rows of tolls in one compiled call."""

TOTAL, SPARE, READY, DROPS, UNCHANGED, INVERTED, RESPONSES, COLD, PERTURBED, STEPS, ENTERED, COUNTS = range(12)
"""Places in `tally`: active columns, unused slots, whether there is a past, drops since the factor was fresh,
responses since the columns changed, whether the inverse is up to date; then statistics: responses, cold restarts,
perturbed restarts, Newton steps and columns let in."""


class RoutingNetwork(NamedTuple):
    """Edges and classes; nothing here ever changes."""

    tail: Integers
    head: Integers
    first_out: Integers
    """The edges that leave vertex v are out_edge[first_out[v] : first_out[v + 1]]."""
    out_edge: Integers
    origin: Integers
    destination: Integers
    first_parent: Integers
    """Cold start: per class and vertex the edge that enters it on a path with the fewest edges, -1 at roots."""
    guard: Matrix
    """Per class: infinite where an edge leads from vertices the class cannot reach into those it can, else 0."""
    slope: Vector
    intercept: Vector
    demand: Vector
    rate: Vector
    """1 / sensitivity."""
    rate_low: Vector
    flow_size: Vector
    """One entry: the size of flows that tolerances are relative to."""
    steepest: Vector
    """One entry: the cost of a unit of flow on the steepest edge; gaps are relative to this where nothing costs."""
    fastest: Vector
    """One entry: the largest rate."""


class Forest(NamedTuple):
    """Remembered cheapest paths of every class, and what is needed to mend them."""

    parent: Integers
    """Per class and vertex the edge that enters it, -1 at roots; `sequence` lists the vertices, parents first."""
    sequence: Integers
    label: Matrix
    cost: Vector
    """Perceived costs of the class that is priced."""
    queue: Integers
    waits: Integers
    child: Integers
    sibling: Integers


class Pool(NamedTuple):
    """Columns in slots, their flows and costs (per slot), and the equations of the active ones (per position)."""

    tally: Integers
    active: Integers
    spare: Integers
    group: Integers
    """Class of the column; `cycle` is 1 where it is no path, `edges` its first `length` edges, the last one first."""
    cycle: Integers
    length: Integers
    edges: Integers
    flow: Vector
    flow_low: Vector
    toll: Vector
    """Perceived tolls of the columns."""
    toll_low: Vector
    price: Vector
    price_low: Vector
    reduced: Vector
    """What the active columns cost more than the references of their classes."""
    step: Vector
    gram: Matrix
    """Slope-weighted overlap of every two columns."""
    factor: Matrix
    """Lower Cholesky factor of the reduced Hessian of the free columns; it does not depend on the tolls."""
    inverse: Matrix
    """Inverse of the reduced Hessian; made once the columns outlive a response."""


class Loads(NamedTuple):
    """Flow and latency of every edge; `mark` is zero between uses, `moved` holds perturbed tolls."""

    load: Vector
    load_low: Vector
    latency: Vector
    latency_low: Vector
    mark: Vector
    moved: Vector


class Space(NamedTuple):
    """Everything one solver needs; `gap` are the certified relative gaps of the rows answered last.

    Helpers that are merged into their callers are handed the parts they need; those that are called are handed a
    `Handle` of all and take what they need, which costs less than handing over a dozen arrays.
    """

    network: RoutingNetwork
    forest: Forest
    pool: Pool
    loads: Loads
    gap: Vector


def space_for(game: RoutingGame, capacity: int) -> Space:
    """Return a workspace without a past, with room for so many columns."""
    n, m, k = game.vertices, game.edges, game.classes
    forest = Forest(
        parent=_whole(k, n), sequence=_whole(k, n), label=np.zeros((k, n)), cost=np.zeros(m),
        queue=_whole(n), waits=_whole(n), child=_whole(n), sibling=_whole(n),
    )  # fmt: skip
    c, square = capacity, (capacity, capacity)
    pool = Pool(
        tally=_whole(COUNTS), active=_whole(c), spare=_whole(c), group=_whole(c), cycle=_whole(c), length=_whole(c),
        edges=_whole(c, n), flow=np.zeros(c), flow_low=np.zeros(c), toll=np.zeros(c), toll_low=np.zeros(c),
        price=np.zeros(c), price_low=np.zeros(c), reduced=np.zeros(c), step=np.zeros(c),
        gram=np.zeros(square), factor=np.zeros(square), inverse=np.zeros(square),
    )  # fmt: skip
    loads = Loads(
        load=np.zeros(m), load_low=np.zeros(m), latency=np.zeros(m), latency_low=np.zeros(m), mark=np.zeros(m),
        moved=np.zeros(m),
    )  # fmt: skip
    return Space(network=_network(game), forest=forest, pool=pool, loads=loads, gap=np.zeros(ROWS))


def _whole(*shape: int) -> Integers:
    return np.zeros(shape, dtype=np.int64)


def example() -> Space:
    """Return the workspace of one edge and one class: compiled code learns from it what it will be handed."""
    one, here, there = np.ones(1), _whole(1), _whole(1) + 1
    edge: Any = SimpleNamespace(vertices=2, edges=1, classes=1, slope=one, intercept=one, demand=one, sensitivity=one,
                                tail=here, head=there, origin=here, destination=there)  # fmt: skip
    return space_for(edge, 1)


def _network(game: RoutingGame) -> RoutingNetwork:
    out_edge = np.argsort(game.tail, kind="stable").astype(np.int64)
    first_out = np.searchsorted(game.tail[out_edge], np.arange(game.vertices + 1)).astype(np.int64)
    exact = [1 / Fraction(sensitivity) for sensitivity in game.sensitivity.tolist()]
    rate = np.array([float(value) for value in exact])
    first_parent, guard = _whole(game.classes, game.vertices), np.zeros((game.classes, game.edges))
    for i, origin in enumerate(game.origin.tolist()):
        first_parent[i], reached = _breadth_first(first_out, out_edge, game.head, origin)
        guard[i, ~reached[game.tail] & reached[game.head]] = np.inf
    return RoutingNetwork(
        tail=game.tail.copy(), head=game.head.copy(), first_out=first_out, out_edge=out_edge,
        origin=game.origin.copy(), destination=game.destination.copy(), first_parent=first_parent, guard=guard,
        slope=game.slope.copy(), intercept=game.intercept.copy(), demand=game.demand.copy(), rate=rate,
        rate_low=np.array([float(value - Fraction(float(value))) for value in exact]),
        flow_size=np.array([sum(game.demand.tolist(), start=1.0)]),
        steepest=np.array([game.slope.max()]),
        fastest=np.array([rate.max()]),
    )  # fmt: skip


def _breadth_first(
    first_out: Integers, out_edge: Integers, head: Integers, origin: int
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Entering edge of every vertex on a path with the fewest edges (-1 at the origin and where there is none)."""
    vertices = first_out.size - 1
    parent, reached = np.full(vertices, -1, dtype=np.int64), np.zeros(vertices, dtype=np.bool_)
    reached[origin] = True
    waiting = [origin]
    for vertex in waiting:
        for edge in out_edge[first_out[vertex] : first_out[vertex + 1]].tolist():
            other = int(head[edge])
            if not reached[other]:
                reached[other] = True
                parent[other] = edge
                waiting.append(other)
    return parent, reached


Handle: TypeAlias = Any
"""What stands for a workspace in a call: the address of the table of its arrays (where nothing is compiled, itself)."""

network_of: Callable[[Handle], RoutingNetwork]
forest_of: Callable[[Handle], Forest]
pool_of: Callable[[Handle], Pool]
loads_of: Callable[[Handle], Loads]
gap_of: Callable[[Handle], Vector]
network_of, forest_of, pool_of, loads_of, gap_of = openers(example())
