"""Between a routing game and its compiled kernel: a solver per thread, its growth, and what it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pzos.base.errors import NotConverged
from pzos.base.types import Matrix, Vector
from pzos.games._compile import COMPILES, announce_compilation, table_of
from pzos.games._routing.active_set import FULL
from pzos.games._routing.kernel import respond
from pzos.games._routing.space import COLD, PERTURBED, RESPONSES, ROWS, TOTAL, Handle, Space, example, space_for

if TYPE_CHECKING:
    from pzos.games.routing import RoutingGame

FIRST_CAPACITY = 48


@cache
def _kernel() -> Callable[[Handle, Vector], int]:
    """Return the kernel, compiled (or loaded from numba's cache) by a first call without any row.

    What is returned is the compiled code itself, which does not look at the types of its arguments: an address and a
    flat array of doubles, contiguous. Numba's dispatcher would take as long as a third of a small response.
    """
    if not COMPILES:
        return respond
    table = table_of(example())
    with announce_compilation("routing follower"):
        respond(int(table.ctypes.data), np.empty(0))
    dispatcher: Any = respond
    (compiled,) = dispatcher.overloads.values()
    return cast(Callable[[Handle, Vector], int], compiled.entry_point)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Responses given, and how many of them needed a cold start or perturbed tolls."""

    responses: int
    cold: int
    perturbed: int

    @classmethod
    def of(cls, solvers: Iterable[RoutingSolver]) -> Statistics:
        """Add up the counts of the solvers of all threads."""
        counts = [solver.counts() for solver in list(solvers)]
        return cls(*(sum(column) for column in zip((0, 0, 0), *counts, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnFlow:
    """Flow of one class on one path, edges in the order of travel, or on a cycle of negative perceived tolls."""

    group: int
    edges: tuple[int, ...]
    flow: float
    is_cycle: bool


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium:
    """A Wardrop equilibrium: aggregate flow, relative gap, edge flows per class (rows) and flows on paths and cycles.

    ``cost`` is the least perceived cost of each class from its origin to its destination.
    """

    flow: Vector
    gap: float
    class_flow: Matrix
    cost: Vector
    columns: tuple[ColumnFlow, ...]

    def __repr__(self) -> str:
        return f"Equilibrium(edges={self.flow.size}, columns={len(self.columns)}, gap={self.gap:.1e})"


class RoutingSolver:
    """The solver of one game in one thread; what it keeps only speeds up the next response.

    ``kernel(space, tolls)`` replaces a flat array of tolls by responses; 0, or where and how it failed.
    """

    __slots__ = ("_game", "_named", "_table", "kernel", "shape", "space")

    def __init__(self, game: RoutingGame) -> None:
        self._game = game
        self.kernel = _kernel()
        self._use(space_for(game, min(FIRST_CAPACITY, self._most_columns()) + game.classes))
        self.shape = (game.edges,)

    def _use(self, named: Space) -> None:
        self._named, self._table = named, table_of(named)
        self.space: Handle = int(self._table.ctypes.data) if COMPILES else named

    def _most_columns(self) -> int:
        """Free columns are linearly independent vectors over the edges, and one more may be on its way in."""
        return self._game.edges + 2

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of responses, cold restarts and perturbed restarts."""
        tally = self._named.pool.tally
        return int(tally[RESPONSES]), int(tally[COLD]), int(tally[PERTURBED])

    def stack(self, tolls: Any) -> Matrix | None:
        """Return the responses to a stack of doubles in one compiled call; None where it needs a second look."""
        if not self._is_stack(tolls):
            return None
        flows: Matrix = tolls.copy()  # contiguous, and the kernel replaces tolls by flows
        code = self.kernel(self.space, flows.reshape(-1))
        return flows if code == 0 else self.second_look(flows, code)

    def certified_stack(self, tolls: Any) -> tuple[Matrix, Vector] | None:
        """Return the same with their gaps; None where a number is not finite, or for another shape."""
        if not self._is_stack(tolls):
            return None
        flows: Matrix = tolls.copy()
        code = self.kernel(self.space, flows.reshape(-1))
        if code == 0:
            return flows, self._named.gap[: len(flows)].copy()
        gaps = np.empty(len(flows))
        if not np.isfinite(flows).all():
            return None
        self._settle(flows, gaps, code)
        return flows, gaps

    def _is_stack(self, tolls: Any) -> bool:
        return tolls.ndim == 2 and tolls.shape[1:] == self.shape and len(tolls) <= ROWS

    def second_look(self, flows: Any, code: int) -> Any:
        """Go on with flows (tolls from the failed row on) after a call that ended with `code`; None if not finite."""
        rows = flows.reshape(-1, self._game.edges)
        if not np.isfinite(rows).all():
            return None
        self._settle(rows, np.empty(len(rows)), code)
        return flows

    def many(self, rows: Matrix) -> tuple[Matrix, Vector]:
        """Return the responses to a stack of finite tolls with their gaps."""
        flows, gaps = np.array(rows, dtype=np.float64, order="C"), np.empty(len(rows))
        for first in range(0, len(rows), ROWS):
            part = flows[first : first + ROWS]
            self._settle(part, gaps[first : first + ROWS], self.kernel(self.space, part.reshape(-1)))
        return flows, gaps

    def _settle(self, flows: Matrix, gaps: Vector, code: int) -> None:
        """Go on where a compiled call on these rows ended with `code`, until all are answered; note their gaps."""
        first = 0
        while code:
            done, status = divmod(code, 8)
            gaps[first : first + done] = self._named.gap[:done]
            first += done
            if status != FULL or self._named.pool.active.size >= self._most_columns() + self._game.classes:
                raise self._not_converged(flows[first])
            self._grow()
            code = self.kernel(self.space, flows[first:].reshape(-1))
        gaps[first:] = self._named.gap[: gaps.size - first]

    def _grow(self) -> None:
        pool = self._named.pool
        self._use(space_for(self._game, min(2 * pool.active.size, self._most_columns()) + self._game.classes))
        self._named.pool.tally[RESPONSES:] = pool.tally[RESPONSES:]  # from there on the statistics

    def _not_converged(self, tolls: Vector) -> NotConverged:
        slope = self._game.slope
        return NotConverged(
            "RoutingGame.response: no equilibrium could be certified, neither from the paths of the last answer, nor "
            "from a cold start, nor by way of slightly moved tolls: expected costs of used paths that agree to 1e-11; "
            f"check the scale of the data (tolls from {tolls.min():g} to {tolls.max():g}, slopes from {slope.min():g} "
            f"to {slope.max():g})"
        )

    def equilibrium(self, tolls: Vector) -> Equilibrium:
        """Return the response with its split into classes and columns."""
        flows, gaps = self.many(tolls.reshape(1, -1))
        columns = tuple(self._columns())
        latency = self._game.slope * flows[0] + self._game.intercept
        class_flow, cost = np.zeros((self._game.classes, self._game.edges)), np.zeros(self._game.classes)
        for column in columns:
            edges = list(column.edges)
            class_flow[column.group, edges] += column.flow
            if not column.is_cycle:
                cost[column.group] = (latency[edges] + tolls[edges] / self._game.sensitivity[column.group]).sum()
        return Equilibrium(flows[0], float(gaps[0]), class_flow, cost, columns)

    def _columns(self) -> Iterable[ColumnFlow]:
        pool = self._named.pool
        for slot in pool.active[: pool.tally[TOTAL]].tolist():
            edges = pool.edges[slot, : pool.length[slot]][::-1].tolist()
            yield ColumnFlow(
                int(pool.group[slot]), tuple(edges), max(float(pool.flow[slot]), 0.0), bool(pool.cycle[slot])
            )
