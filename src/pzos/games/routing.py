"""The routing game of the paper (Sec. 5.1): an authority sets tolls, classes of travellers choose their ways.

Followers, given tolls tau of any sign: the aggregate edge flow F = sum_i f_i of the Wardrop equilibrium, in which
class i uses only paths of least perceived cost, an edge costing it a_e F_e + b_e + tau_e / s_i. It solves the
convex programme

    min  sum_e (a_e F_e^2 / 2 + b_e F_e) + sum_{i,e} tau_e f_{i,e} / s_i   over  f_i >= 0 that carry demand d_i

over *edge* flows: where tolls make a cycle's perceived cost negative, a circulation on it is part of the answer.
F is unique because a > 0.    Leader: max_tau  sum_e tau_e F_e - lambda |tau|^2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Matrix, Vector
from pzos.games._routing.solver import Equilibrium, Solver, Statistics
from pzos.games._routing_data import checked_edges, checked_tolls, checked_travellers, draw_instance
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Nonnegative, Whole

Integers = npt.NDArray[np.int64]
_FIELDS = ("tail", "head", "slope", "intercept", "origin", "destination", "demand", "sensitivity")
_ARRAY, _DOUBLE = np.ndarray, np.dtype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class RoutingGame:
    """A network of edges tail -> head (parallel edges allowed) and classes of travellers; vertices are 0, 1, ...

    ``slope`` > 0 and ``intercept`` are the affine latency a F + b of each edge; each class has an ``origin``, a
    ``destination``, a ``demand`` and a toll ``sensitivity`` > 0.

    >>> game = RoutingGame([0, 0], [1, 1], [1.0, 1.0], [1.0, 3.0], [0], [1], [4.0], [1.0])
    >>> game
    RoutingGame(vertices=2, edges=2, classes=1)
    >>> game.response([0.0, 0.0])
    array([3., 1.])
    >>> game.response([[0.0, 0.0], [2.0, 0.0]])
    array([[3., 1.],
           [2., 2.]])
    """

    tail: Integers
    head: Integers
    slope: Vector
    intercept: Vector
    origin: Integers
    destination: Integers
    demand: Vector
    sensitivity: Vector
    vertices: int = field(init=False)
    _threads: threading.local = field(init=False, default_factory=threading.local)
    _solvers: list[Solver] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        faults = Faults("RoutingGame")
        edges = checked_edges(faults, self.tail, self.head, self.slope, self.intercept)
        travellers = checked_travellers(faults, self.origin, self.destination, self.demand, self.sensitivity, edges)
        faults.raise_if_any()
        for name, value in zip(_FIELDS, (*edges, *travellers), strict=True):
            object.__setattr__(self, name, value)
        highest = max(int(ends.max()) for ends in (self.tail, self.head, self.origin, self.destination))
        object.__setattr__(self, "vertices", highest + 1)

    def __repr__(self) -> str:
        return f"RoutingGame(vertices={self.vertices}, edges={self.edges}, classes={self.classes})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description alone; workspaces are made anew where it arrives."""
        return RoutingGame, tuple(getattr(self, name) for name in _FIELDS)

    @cached_property
    def edges(self) -> int:
        """Return the number of edges |E| = d_x = d_y."""
        return int(self.tail.size)

    @cached_property
    def classes(self) -> int:
        """Return the number of classes k."""
        return int(self.demand.size)

    @classmethod
    def random(
        cls, seed: int, vertices: int | None = None, edges: int | None = None, classes: int | None = None
    ) -> RoutingGame:
        """Draw an instance of the paper's sizes and ranges (Sec. 5.1, baseline and setup).

        6-25 vertices n, 2n to 5n - 6 edges (that is 12-119), 2-5 classes, each uniform unless given; a_e ~ U[1, 5],
        b_e ~ U[1, 10], demands uniform on {3, ..., 12}, sensitivities ~ U[0.1, 2]. The paper does not say how its
        graphs were drawn. Here: a random recursive tree, each edge in a random direction, joins all vertices; the
        other edges are uniform among the ordered pairs not yet joined (no parallel edges, no loops); each class gets
        an origin and a destination uniform among the ordered pairs of vertices that a directed path joins.
        """
        return cls(*draw_instance(seed, vertices, edges, classes))

    def response(self, tolls: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the aggregate edge flow F*(tau); ``tolls`` is one vector or a stack of rows, of any sign.

        The answer is a function of the tolls alone, bit for bit: the exact flow, rounded. It is returned only with a
        certificate (stationarity, demand, no cheaper path, no negative cycle); else :class:`pzos.NotConverged`.
        """
        try:
            solver: Solver = self._threads.solver
        except AttributeError:
            solver = self._solver()
        if type(tolls) is _ARRAY and tolls.dtype == _DOUBLE:
            if tolls.shape == solver.shape:  # the usual case, straight from here: every call costs
                flows = tolls.copy()
                code = solver.kernel(solver.address, flows)
                if code == 0:
                    return flows
                answers: npt.NDArray[np.float64] | None = solver.second_look(flows, code)
            else:
                answers = solver.stack(tolls)
            if answers is not None:
                return answers
        rows, is_single = checked_tolls("RoutingGame.response", tolls, self.edges)
        answers, _ = solver.many(rows)
        return answers[0] if is_single else answers

    def certified_response(self, tolls: npt.ArrayLike) -> tuple[Matrix, Vector]:
        """Return the responses to a stack of rows (or one vector, as one row) and the relative equilibrium gap of each.

        The gap is the most that any traveller could save by another path, relative to the largest perceived edge
        cost (or to the cost of a unit of flow on the steepest edge, if that is more).
        """
        rows, _ = checked_tolls("RoutingGame.certified_response", tolls, self.edges)
        return self._solver().many(rows)

    def equilibrium(self, tolls: npt.ArrayLike) -> Equilibrium:
        """Return flow, gap and the flows of every class on paths (and cycles of negative cost) for one toll vector.

        The edge flow is unique, its split into classes and paths need not be; this one is found from a cold start, so
        that it too is a function of the tolls alone.
        """
        rows, _ = checked_tolls("RoutingGame.equilibrium", tolls, self.edges)
        return Solver(self).equilibrium(rows[0])

    def statistics(self) -> Statistics:
        """Return how many responses this object gave, over all threads, and how many needed a fall-back."""
        return Statistics.of(self._solvers)

    def _solver(self) -> Solver:
        solver: Solver | None = getattr(self._threads, "solver", None)
        if solver is None:
            solver = self._threads.solver = Solver(self)
            self._solvers.append(solver)
        return solver

    def leader(self, regularisation: float = 1.0) -> Leader:
        """Return the authority: f(tau, F) = sum_e tau_e F_e - regularisation |tau|^2 with exact partial gradients."""
        faults = Faults("RoutingGame.leader")
        number = isinstance(regularisation, int | float | np.number) and 0.0 <= float(regularisation) < np.inf
        faults.check(number, "regularisation", regularisation, "a finite number >= 0", "the paper uses 1")
        faults.raise_if_any()
        revenue = _Revenue(float(regularisation))
        return leader_from_functions(revenue.value, value_and_gradients=revenue.everything, name="toll revenue")

    def problem(
        self,
        regularisation: float = 1.0,
        nonnegative: bool = False,
        *,
        x0: npt.ArrayLike | None = None,
        structure: Iterable[Any] = (),
    ) -> Problem:
        """Return the toll problem: maximise revenue from tau = 0 (Sec. 5.1), over tau >= 0 if asked (App. A)."""
        start = np.zeros(self.edges) if x0 is None else x0
        domain = Nonnegative() if nonnegative else Whole()
        name = f"routing game, {self.edges} edges"
        return Problem(
            self.leader(regularisation), Respondent(self.certified_response), start, domain, "max", name, structure
        )


@dataclass(frozen=True, slots=True)
class _Revenue:
    """sum_e tau_e F_e - lambda |tau|^2 and its gradients F - 2 lambda tau and tau."""

    regularisation: float

    def value(self, tolls: Vector, flow: Vector) -> float:
        return float(np.einsum("i,i->", tolls, flow - self.regularisation * tolls))

    def everything(self, tolls: Vector, flow: Vector) -> tuple[float, Vector, Vector]:
        return self.value(tolls, flow), flow - 2.0 * self.regularisation * tolls, tolls
