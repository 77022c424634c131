"""Followers given as any parametric variational inequality (paper, Sec. 2).

Given the leader's x, find y in Y with  <G(x, y), y' - y> >= 0  for all y' in Y. The user gives G and Y (a set of
:mod:`pzos.problem.sets`, a :class:`Polyhedron`, a :class:`Product`, or any object with ``project``); the answer comes
with the norm of its natural map y - P(y - G(x, y)), which is zero exactly at the solutions.

An adaptive projection method that converges for every monotone G (:mod:`._golden_ratio`) brings the iterate
near; semismooth Newton (:mod:`._vi_newton`) finishes where the derivative of the projection is known. Every
solve starts from the same point, so that the answer is a function of x alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, as_rows, frozen_vector
from pzos.base.errors import FollowerFailure, NotConverged
from pzos.base.types import Matrix, Sense, Vector, dot
from pzos.games import _golden_ratio as golden_ratio
from pzos.games._vi_newton import finite_difference_jacobian, natural_map, newton_finish
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader
from pzos.problem.problem import Problem
from pzos.problem.projections import Projector, projector_for
from pzos.problem.sets import Domain, Polyhedron as Polyhedron, Product as Product

OperatorFunction = Callable[[Vector, Vector], Any]
_FIRST_ROUND = 12


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An answer and why it is one: the norm of the natural map, and the work it took."""

    y: Vector
    residual: float
    iterations: int
    newton_steps: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariationalInequality:
    """Followers that solve VI(G(x, .), Y), assumed to have one solution for each x (Sec. 2).

    ``operator(x, y)`` returns G, an array of ``dimension`` entries; it is called at points of Y only, unless
    ``jacobian(x, y)`` (dG/dy, a matrix) is not given: differences then step out of Y by about 1e-8.
    ``tolerance`` bounds the norm of the natural map (relative to |y| where |y| > 1, if the norm also fell by 1e-8
    from where the solve began); an answer that misses it is an error, never a result. ``start`` is where every
    solve begins (default: the projection of 0).

    >>> from pzos.problem.sets import Nonnegative
    >>> game = VariationalInequality(lambda x, y: 2.0 * y - x, Nonnegative(), dimension=2)
    >>> game.response([4.0, -4.0])
    array([2., 0.])
    """

    operator: OperatorFunction
    feasible: Domain
    dimension: int
    jacobian: OperatorFunction | None = None
    tolerance: float = 1e-10
    max_iterations: int = 50_000
    start: Vector | None = None

    def __post_init__(self) -> None:
        faults = Faults("VariationalInequality")
        faults.check(callable(self.operator), "operator", self.operator, "a function G(x, y)", "pass the function")
        given = self.jacobian is None or callable(self.jacobian)
        faults.check(given, "jacobian", self.jacobian, "a function (x, y) -> matrix dG/dy", "or leave it out")
        whole = _whole_number(self.dimension)
        faults.check(whole, "dimension", self.dimension, "a whole number >= 1", "give the length of y")
        good = _whole_number(self.max_iterations)
        faults.check(good, "max_iterations", self.max_iterations, "a whole number >= 1", "try 50000")
        good = isinstance(self.tolerance, float) and 0.0 < self.tolerance < 1.0
        faults.check(good, "tolerance", self.tolerance, "a number between 0 and 1", "try tolerance=1e-10")
        is_set = isinstance(self.feasible, Domain)
        remedy = "use pzos.problem.sets, pzos.games.Polyhedron or pzos.games.Product"
        if faults.check(is_set, "feasible", self.feasible, "a set with project, contains and faults", remedy) and whole:
            for message in self.feasible.faults(self.dimension):
                faults.add(message)
        if self.start is not None:
            size = self.dimension if whole else None
            start = frozen_vector(faults, "start", self.start, size, minimum=-np.inf, strict=True)
            object.__setattr__(self, "start", start)
        faults.raise_if_any()

    def __repr__(self) -> str:
        name = type(self.feasible).__name__
        return f"VariationalInequality(dimension={self.dimension}, feasible={name}, tolerance={self.tolerance:g})"

    def response(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return y*(x) for one vector, or one row for each row of a stack."""
        rows, single = as_rows("VariationalInequality.response", x, None)
        answers = np.stack([self.solve(row).y for row in rows])
        return answers[0] if single else answers

    def solve(self, x: npt.ArrayLike) -> Solution:
        """Return y*(x) with its certificate; raises NotConverged, saying how far it got, if it has none."""
        rows, _ = as_rows("VariationalInequality.solve", x, None)
        return _Solve(self, rows[0]).run()

    def follower(self) -> Respondent:
        """Return these followers for a Problem; they report the natural-map residual as their gap."""
        return Respondent(self._rows_with_gaps)

    def _rows_with_gaps(self, rows: Matrix) -> tuple[Matrix, Vector]:
        solutions = [self.solve(row) for row in rows]
        return np.stack([s.y for s in solutions]), np.array([s.residual for s in solutions])

    def problem(
        self, leader: Leader, x0: npt.ArrayLike, domain: Domain | None = None, sense: Sense = "min",
        name: str = "variational inequality", structure: Iterable[Any] = (),
    ) -> Problem:  # fmt: skip
        """Return the problem of a leader above these followers."""
        return Problem(leader, self.follower(), x0, domain, sense, name, structure)


def variational_follower(
    operator: OperatorFunction, feasible: Domain, dimension: int, jacobian: OperatorFunction | None = None,
    tolerance: float = 1e-10,
) -> Respondent:  # fmt: skip
    """Return the follower that solves VI(G(x, .), Y); short for ``VariationalInequality(...).follower()``."""
    return VariationalInequality(operator, feasible, dimension, jacobian, tolerance).follower()


class _Solve:
    """One solve at one x: rounds of projection steps, each followed by an attempt to finish by Newton."""

    def __init__(self, game: VariationalInequality, x: Vector) -> None:
        self.game = game
        self.x = x
        self.projector: Projector = projector_for(game.feasible)
        self.iterations = 0
        self.newton_steps = 0
        self.first_residual = 0.0

    def run(self) -> Solution:
        """Alternate until the certificate holds; each round of projection steps is twice as long."""
        first = np.zeros(self.game.dimension) if self.game.start is None else self.game.start
        state = golden_ratio.start(self.value, self.projector, self.projector.project(first))
        best, best_residual = state.z_before, self.residual(state.z_before)
        self.first_residual = best_residual
        length = min(_FIRST_ROUND, self.game.max_iterations)
        while True:
            state = self._projection_round(state, length)
            residual = self.residual(state.z)
            finished = newton_finish(self.value, self.slope, self.projector, state.z)
            self.newton_steps += finished.steps
            finished_residual = self.residual(finished.y) if finished.steps else residual
            if finished_residual < 0.5 * residual:
                state = golden_ratio.start(self.value, self.projector, finished.y)
                residual, candidate = finished_residual, finished.y
            else:
                candidate = state.z
            if residual <= best_residual:
                best, best_residual = candidate, residual
            if self.certified(best, best_residual):
                return Solution(best, best_residual, self.iterations, self.newton_steps)
            if self.iterations >= self.game.max_iterations:
                raise NotConverged(self._how_far(best, best_residual))
            length = min(2 * length, self.game.max_iterations - self.iterations)

    def _projection_round(self, state: golden_ratio.GoldenState, length: int) -> golden_ratio.GoldenState:
        for k in range(1, length + 1):
            state = golden_ratio.advance(self.value, self.projector, state)
            self.iterations += 1
            if k % 16 == 0 and self.certified(state.z, self.residual(state.z)):
                break
        return state

    def certified(self, y: Vector, residual: float) -> bool:
        """Tell whether the natural map is small enough.

        Against |y| alone an iterate that runs away to infinity would pass at last, hence the second condition.
        """
        if residual <= self.game.tolerance:
            return True
        return residual <= min(self.game.tolerance * math.sqrt(dot(y, y)), 1e-8 * self.first_residual)

    def residual(self, y: Vector) -> float:
        """Return the norm of the natural map."""
        r = natural_map(self.value, self.projector, y)
        return math.sqrt(dot(r, r))

    def value(self, y: Vector) -> Vector:
        """Return G(x, y), checked; user code gets copies."""
        returned = np.asarray(self.game.operator(self.x.copy(), y.copy()), dtype=np.float64)
        if returned.shape != (self.game.dimension,):
            raise FollowerFailure(
                f"VariationalInequality: G(x, y) has shape {returned.shape}: expected ({self.game.dimension},); "
                "return one entry per entry of y"
            )
        if not np.isfinite(returned).all():
            entry = int(np.argmin(np.isfinite(returned)))
            raise FollowerFailure(
                f"VariationalInequality: G(x, y)[{entry}] = {returned[entry]} at y[{entry}] = {y[entry]:g}: expected a "
                "finite number; check G there, or restrict y by the set"
            )
        return returned

    def slope(self, y: Vector, value: Vector) -> Matrix:
        """Return dG/dy from the user or by differences."""
        if self.game.jacobian is None:
            return finite_difference_jacobian(self.value, y, value)
        returned = np.asarray(self.game.jacobian(self.x.copy(), y.copy()), dtype=np.float64)
        size = self.game.dimension
        if returned.shape != (size, size):
            raise FollowerFailure(
                f"VariationalInequality: jacobian(x, y) has shape {returned.shape}: expected ({size}, {size}); "
                "return dG_i/dy_j in row i, column j"
            )
        return returned

    def _how_far(self, best: Vector, residual: float) -> str:
        return (
            f"VariationalInequality: natural-map residual {residual:.3e} after {self.iterations} projection steps and "
            f"{self.newton_steps} Newton steps: expected at most {self.game.tolerance:.1e}; check that G is "
            "monotone in y and that a solution exists, raise max_iterations, or loosen tolerance"
        )


def _whole_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1
