"""Between a routing game and its compiled kernel: one solver per thread, growth, fall-backs and their count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pzos.base.errors import NotConverged
from pzos.base.types import Matrix, Vector
from pzos.games._routing.layout import ROWS
from pzos.games._routing.workspace import Workspace

if TYPE_CHECKING:
    from pzos.games.routing import RoutingGame

FIRST_CAPACITY = 48
_GROUP, _CYCLE, _LENGTH, _FIRST = 0, 1, 2, 3
_FULL = 2


@cache
def _kernel() -> Callable[[int, Vector], int]:
    """Return the kernel, compiled (or loaded from numba's cache) by a first call without any row.

    What is returned is the compiled code itself, which does not look at the types of its arguments: an address and a
    flat array of doubles, contiguous. Numba's dispatcher would take as long as a third of a small response.
    """
    from pzos.games._compile import announce_compilation
    from pzos.games._routing.kernel import respond

    empty = np.zeros(16, dtype=np.int64)
    empty[1] = 1  # one edge, no class
    with announce_compilation("routing follower"):
        respond(int(empty.ctypes.data), np.empty(0))
    dispatcher: Any = respond
    (compiled,) = dispatcher.overloads.values()
    return cast(Callable[[int, Vector], int], compiled.entry_point)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Responses given, and how many of them needed a cold start, perturbed tolls or the interior-point method."""

    responses: int
    cold: int
    perturbed: int
    interior: int

    @classmethod
    def of(cls, solvers: Iterable[Solver]) -> Statistics:
        """Add up the counts of the solvers of all threads."""
        counts = [(*solver.counts(), solver.interior) for solver in list(solvers)]
        return cls(*(sum(column) for column in zip(*counts, strict=True))) if counts else cls(0, 0, 0, 0)


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


class Solver:
    """The solver of one game in one thread; what it keeps only speeds up the next response.

    ``kernel(address, tolls)`` replaces a flat array of tolls by responses; 0, or where and how it failed.
    """

    __slots__ = ("_game", "_space", "address", "interior", "kernel", "shape")

    def __init__(self, game: RoutingGame) -> None:
        self._game = game
        self.kernel = _kernel()
        self._use(Workspace(game, min(FIRST_CAPACITY, self._most_columns()) + game.classes))
        self.shape = (game.edges,)
        self.interior = 0

    def _use(self, space: Workspace) -> None:
        self._space, self.address = space, space.address

    def _most_columns(self) -> int:
        """Free columns are linearly independent vectors over the edges, and one more may be on its way in."""
        return self._game.edges + 2

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of responses, cold restarts and perturbed restarts."""
        from pzos.games._routing.layout import COLD, PERTURBED, RESPONSES

        count = self._space.views.tally
        return int(count[RESPONSES]) + self.interior, int(count[COLD]), int(count[PERTURBED])

    def stack(self, tolls: Any) -> Matrix | None:
        """Return the responses to a stack of doubles in one compiled call; None where it needs a second look."""
        if tolls.ndim != 2 or tolls.shape[1:] != self.shape or len(tolls) > ROWS:
            return None
        flows: Matrix = tolls.copy()  # contiguous, and the kernel replaces tolls by flows
        code = self.kernel(self.address, flows.reshape(-1))
        return flows if code == 0 else self.second_look(flows, code)

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
            self._settle(part, gaps[first : first + ROWS], self.kernel(self.address, part.reshape(-1)))
        return flows, gaps

    def _settle(self, flows: Matrix, gaps: Vector, code: int) -> None:
        """Go on where a compiled call on these rows ended with `code`, until all are answered; note their gaps."""
        first = 0
        while True:
            done = code // 8 if code else gaps.size - first
            gaps[first : first + done] = self._space.views.gap[:done]
            first += done
            if first == gaps.size:
                return
            if code % 8 == _FULL and self._space.capacity < self._most_columns() + self._game.classes:
                self._grow()
            else:
                flows[first], gaps[first] = self._fall_back(flows[first])
                first += 1
            code = 0 if first == gaps.size else self.kernel(self.address, flows[first:].reshape(-1))

    def _grow(self) -> None:
        from pzos.games._routing.layout import RESPONSES

        tally = self._space.views.tally
        free = min(2 * self._space.capacity, self._most_columns())
        self._use(Workspace(self._game, free + self._game.classes))
        self._space.views.tally[RESPONSES:] = tally[RESPONSES:]  # from there on the statistics

    def _fall_back(self, tolls: Vector) -> tuple[Vector, float]:
        from pzos.games._routing.interior import interior_equilibrium

        self.interior += 1
        flow, gap = interior_equilibrium(self._game, tolls)
        if not gap <= 1e-9:
            raise NotConverged(
                f"RoutingGame.response: relative equilibrium gap {gap:.1e} after the active-set and the interior-point "
                f"method: expected at most 1e-9; check the scale of the data (tolls from {tolls.min():g} to "
                f"{tolls.max():g}, slopes from {self._game.slope.min():g} to {self._game.slope.max():g})"
            )
        return flow, gap

    def equilibrium(self, tolls: Vector) -> Equilibrium:
        """Return the response with its split into classes and columns."""
        flows, gaps = self.many(tolls.reshape(1, -1))
        if self.interior:
            raise NotConverged(
                "RoutingGame.equilibrium: the edge flow was found by the interior-point method only, which gives no "
                "path flows: expected an answer of the active-set method; ask `response` for the edge flow instead"
            )
        columns = tuple(self._columns())
        class_flow = np.zeros((self._game.classes, self._game.edges))
        for column in columns:
            class_flow[column.group, list(column.edges)] += column.flow
        latency = self._game.slope * flows[0] + self._game.intercept
        cost = np.zeros(self._game.classes)
        for column in columns:
            if not column.is_cycle:
                edges = list(column.edges)
                cost[column.group] = (latency[edges] + tolls[edges] / self._game.sensitivity[column.group]).sum()
        return Equilibrium(flows[0], float(gaps[0]), class_flow, cost, columns)

    def _columns(self) -> Iterable[ColumnFlow]:
        views = self._space.views
        for slot in views.active[: views.tally[0]].tolist():
            column = views.columns[slot]
            edges = column[_FIRST : _FIRST + column[_LENGTH]][::-1].tolist()
            flow = max(float(views.flow[slot]), 0.0)
            yield ColumnFlow(int(column[_GROUP]), tuple(edges), flow, bool(column[_CYCLE]))
