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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, at_least, check_entries, whole
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Nonnegative, Whole

if TYPE_CHECKING:
    from pzos.games._routing.solver import Equilibrium, RoutingSolver, Statistics

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Rule = tuple[Callable[[Any], Mask], str, str]
_ARRAY, _DOUBLE = np.ndarray, np.dtype(np.float64)


_FINITE: Rule = (np.isfinite, "a finite number", "correct it")
_VERTEX: Rule = (
    lambda array: (array >= 0.0) & (array < 2.0**31) & (array == np.floor(array)),
    "a vertex, a whole number >= 0",
    "number vertices 0, 1, ...",
)
_VERTICES: dict[str, Any] = {"unit": "vertices", "rules": (_VERTEX,)}


def _numbers(*rules: Rule) -> dict[str, Any]:
    """What a vector of numbers must be: rules (test, expectation, remedy) that every entry obeys."""
    return {"unit": "numbers", "rules": (_FINITE, *rules)}


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

    tail: Integers = field(metadata=_VERTICES)
    head: Integers = field(metadata=_VERTICES)
    slope: Vector = field(
        metadata=_numbers((lambda a: a > 0.0, "a slope > 0", "the equilibrium is unique only if latency rises"))
    )
    intercept: Vector = field(metadata=_numbers())
    origin: Integers = field(metadata=_VERTICES)
    destination: Integers = field(metadata=_VERTICES)
    demand: Vector = field(metadata=_numbers((lambda a: a >= 0.0, "a demand >= 0", "travellers cannot be negative")))
    sensitivity: Vector = field(metadata=_numbers((lambda a: a > 0.0, "a sensitivity > 0", "tolls are divided by it")))
    vertices: int = field(init=False)
    _threads: threading.local = field(init=False, default_factory=threading.local)
    _solvers: list[RoutingSolver] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        faults = Faults("RoutingGame")
        data = {name: _kept(faults, name, getattr(self, name), about) for name, about in _DATA.items()}
        names = list(data)
        for unit, parts in (("edge", names[:4]), ("class", names[4:])):
            _check_lengths(faults, unit, {name: data[name].size for name in parts})
        if not faults.messages:
            _check_reachable(faults, data["tail"], data["head"], data["origin"], data["destination"])
        faults.raise_if_any()
        for name, array in data.items():
            object.__setattr__(self, name, array)
        highest = max(int(ends.max()) for ends in (self.tail, self.head, self.origin, self.destination))
        object.__setattr__(self, "vertices", highest + 1)

    def __repr__(self) -> str:
        return f"RoutingGame(vertices={self.vertices}, edges={self.edges}, classes={self.classes})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description alone; workspaces are made anew where it arrives."""
        return RoutingGame, tuple(getattr(self, name) for name in _DATA)

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
        return cls(*_draw_data(seed, vertices, edges, classes))

    def response(self, tolls: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the aggregate edge flow F*(tau); ``tolls`` is one vector or a stack of rows, of any sign.

        The answer is a function of the tolls alone, bit for bit: the exact flow, rounded. It is returned only with a
        certificate (stationarity, demand, no cheaper path, no negative cycle); else :class:`pzos.NotConverged`.
        """
        try:
            solver: RoutingSolver = self._threads.solver
        except AttributeError:
            solver = self._solver()
        if type(tolls) is _ARRAY and tolls.dtype == _DOUBLE:
            if tolls.shape == solver.shape:  # the usual case, straight from here: every call costs
                flows = tolls.copy()
                code = solver.kernel(solver.space, flows)
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
        solver = self._solver()
        if type(tolls) is _ARRAY and tolls.dtype == _DOUBLE:
            certified = solver.certified_stack(tolls)  # the queries of a batch: the usual case
            if certified is not None:
                return certified
        rows, _ = checked_tolls("RoutingGame.certified_response", tolls, self.edges)
        return solver.many(rows)

    def equilibrium(self, tolls: npt.ArrayLike) -> Equilibrium:
        """Return flow, gap and the flows of every class on paths (and cycles of negative cost) for one toll vector.

        The edge flow is unique, its split into classes and paths need not be; this one is found from a cold start, so
        that it too is a function of the tolls alone.
        """
        rows, _ = checked_tolls("RoutingGame.equilibrium", tolls, self.edges)
        return self._new_solver().equilibrium(rows[0])

    def statistics(self) -> Statistics:
        """Return how many responses this object gave, over all threads, and how many needed a fall-back."""
        from pzos.games._routing.solver import Statistics

        return Statistics.of(self._solvers)

    def _solver(self) -> RoutingSolver:
        """Return the solver of this thread; what it keeps from one answer to the next is never shared."""
        solver: RoutingSolver | None = getattr(self._threads, "solver", None)
        if solver is None:
            solver = self._threads.solver = self._new_solver()
            self._solvers.append(solver)
        return solver

    def _new_solver(self) -> RoutingSolver:
        from pzos.games._routing.solver import RoutingSolver  # it loads the compiler: not before the first answer

        return RoutingSolver(self)

    def leader(self, regularisation: float = 1.0) -> Leader:
        """Return the authority: f(tau, F) = sum_e tau_e F_e - regularisation |tau|^2 with exact partial gradients."""
        must = at_least(0.0, "a finite number >= 0", "the paper uses 1")
        must.require("RoutingGame.leader", "regularisation", regularisation)
        revenue = _OneRevenue(float(regularisation))
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


_DATA = {about.name: about.metadata for about in fields(RoutingGame) if about.metadata}
"""What describes a game, in the order of its arguments: four fields of the edges, four of the classes."""


def _kept(faults: Faults, name: str, value: Any, about: Any) -> Any:
    """Return a read-only copy of the data of a field; faults are noted (then the array is of no use)."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        faults.check(False, name, value, f"a vector of {about['unit']}", "give one number per entry")
        return np.empty(0)
    if not faults.check(
        array.ndim == 1 and array.size > 0, name, array, f"a vector of {about['unit']}", "give at least one"
    ):
        return np.empty(0)
    good = np.ones(array.size, dtype=np.bool_)
    for holds, expected, remedy in about["rules"]:
        fits = holds(array) | ~good  # an entry is blamed once
        check_entries(faults, name, array, fits, expected, remedy)
        good &= fits
    kept = np.where(good, array, 0.0).astype(np.int64 if about["unit"] == "vertices" else np.float64)
    kept.flags.writeable = False
    return kept


def _check_lengths(faults: Faults, unit: str, sizes: dict[str, int]) -> None:
    given = {name: size for name, size in sizes.items() if size}
    if len(set(given.values())) > 1:
        listing = ", ".join(f"{name} {size}" for name, size in given.items())
        faults.add(f"lengths differ: {listing}: expected one entry per {unit} in each; make them equally long")


def _check_reachable(faults: Faults, tail: Integers, head: Integers, starts: Integers, ends: Integers) -> None:
    size = 1 + max(int(array.max()) for array in (tail, head, starts, ends))
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if not faults.check(start != end, f"destination[{i}]", end, "another vertex than the origin",
                            "drop the class, it does not travel"):  # fmt: skip
            continue
        reached = bool(reachable_from(size, tail, head, start)[end])
        faults.check(reached, f"destination[{i}]", end, f"a vertex that a path from origin[{i}] = {start} reaches",
                     "add edges or drop the class")  # fmt: skip


def reachable_from(vertices: int, tail: Integers, head: Integers, start: int) -> Mask:
    """Tell for every vertex whether a directed path leads there from ``start``."""
    reached = np.zeros(vertices, dtype=np.bool_)
    reached[start] = True
    while True:
        fresh = head[reached[tail] & ~reached[head]]
        if fresh.size == 0:
            return reached
        reached[fresh] = True


def checked_tolls(where: str, tolls: Any, edges: int) -> tuple[Matrix, bool]:
    """Return tolls as a stack of rows, and whether they were one vector; refuses other shapes and NaN."""
    faults = Faults(where)
    try:
        array = np.asarray(tolls, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: tolls: expected numbers, one per edge; got {type(tolls).__name__}") from None
    rows = np.atleast_2d(array)
    shaped = faults.check(array.ndim in (1, 2) and rows.shape[1] == edges, "tolls", array,
                          f"{edges} numbers, one per edge, or a stack of such rows, not shape {array.shape}",
                          "give every edge a toll, 0 where there is none")  # fmt: skip
    if shaped and not np.isfinite(array).all():
        entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        faults.check(False, f"tolls[{', '.join(map(str, entry))}]", float(array[entry]), "a finite number",
                     "correct it; infinite tolls cannot close an edge, leave the edge out instead")  # fmt: skip
    faults.raise_if_any()
    return rows, array.ndim == 1


def _draw_data(seed: int, vertices: int | None, edges: int | None, classes: int | None) -> tuple[Any, ...]:
    """Draw the data of :meth:`RoutingGame.random`."""
    draw = Keys(seed).generator(Role.INSTANCE)
    n, m, k = _draw_sizes(draw, vertices, edges, classes)
    tail, head = _draw_graph(draw, n, m)
    sources = np.unique(tail)
    joined = [
        (int(u), int(v)) for u in sources for v in np.flatnonzero(reachable_from(n, tail, head, int(u))) if u != v
    ]
    pairs = np.array([joined[i] for i in draw.integers(0, len(joined), k)])
    latency = draw.uniform(1.0, 5.0, m), draw.uniform(1.0, 10.0, m)
    demand, sensitivity = draw.integers(3, 13, k).astype(np.float64), draw.uniform(0.1, 2.0, k)
    return tail, head, *latency, *pairs.T, demand, sensitivity


def _draw_sizes(
    draw: np.random.Generator, vertices: int | None, edges: int | None, classes: int | None
) -> tuple[int, int, int]:
    drawn = int(draw.integers(6, 26)), draw.random(), int(draw.integers(2, 6))
    faults = Faults("RoutingGame.random")
    n = _chosen(faults, "vertices", drawn[0] if vertices is None else vertices, 2, 10**6)
    low, high = min(2 * n, n * (n - 1)), min(max(5 * n - 6, 2 * n), n * (n - 1))
    m = _chosen(faults, "edges", low + int(drawn[1] * (high - low + 1)) if edges is None else edges, n - 1, n * (n - 1))
    k = _chosen(faults, "classes", drawn[2] if classes is None else classes, 1, 10**6)
    faults.raise_if_any()
    return n, m, k


def random_edges(seed: int) -> int:
    """Return how many edges RoutingGame.random(seed) has, without drawing the rest of it."""
    return _draw_sizes(Keys(seed).generator(Role.INSTANCE), None, None, None)[1]


def _chosen(faults: Faults, name: str, value: Any, least: int, most: int) -> int:
    return int(value) if whole(least, "or leave it out", most=most).note(faults, name, value) else least


def _draw_graph(draw: np.random.Generator, vertices: int, edges: int) -> tuple[Integers, Integers]:
    """Join all vertices by a random recursive tree with random directions, then add uniform further edges."""
    names = draw.permutation(vertices)
    joined: dict[tuple[int, int], None] = {}
    for k in range(1, vertices):
        ends = int(names[k]), int(names[draw.integers(0, k)])
        joined[ends if draw.random() < 0.5 else ends[::-1]] = None
    while len(joined) < edges:
        tail, head = (int(v) for v in draw.integers(0, vertices, 2))
        if tail != head:
            joined.setdefault((tail, head))
    both = np.array(list(joined), dtype=np.int64)
    order = draw.permutation(edges)
    return both[order, 0], both[order, 1]


@dataclass(frozen=True, slots=True)
class Revenue:
    """sum_e tau_e F_e - lambda |tau|^2 and its gradients F - 2 lambda tau and tau; of rows, one number for each."""

    regularisation: float = 1.0

    def value(self, tolls: Vector, flow: Vector) -> Any:
        """Return the revenue less the penalty."""
        return np.einsum("...i,...i->...", tolls, flow - self.regularisation * tolls)

    def everything(self, tolls: Vector, flow: Vector) -> tuple[Any, Vector, Vector]:
        """Return the same with both exact partial gradients."""
        return self.value(tolls, flow), flow - 2.0 * self.regularisation * tolls, tolls


class _OneRevenue(Revenue):
    """The same of one vector of tolls."""

    def value(self, tolls: Vector, flow: Vector) -> float:
        return float(Revenue.value(self, tolls, flow))
