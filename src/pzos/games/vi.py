"""Followers given as any parametric variational inequality (paper, Sec. 2).

Given the leader's x, find y in Y with  <G(x, y), y' - y> >= 0  for all y' in Y. The user gives G and Y (a set of
:mod:`pzos.problem.sets`, a :class:`Polyhedron`, a :class:`Product`, or any object with ``project``); the answer comes
with the norm of its natural map y - P(y - G(x, y)), which is zero exactly at the solutions.

Every solve starts from the same point, so that the answer is a function of x alone. Two methods take turns:

The adaptive golden ratio algorithm (Malitsky, Math. Program. 184, 2020, Alg. 1: aGRAAL) brings the iterate near. One
operator value and one projection per iteration, no line search, no Lipschitz constant, G evaluated at points of the set
only, and convergence for every monotone, locally Lipschitz G:

    step_k  = min(rho step_{k-1},  phi theta_{k-1} |z_k - z_{k-1}|^2 / (4 step_{k-1} |G_k - G_{k-1}|^2))
    mean_k  = ((phi - 1) z_k + mean_{k-1}) / phi
    z_{k+1} = P(mean_k - step_k G_k),      theta_k = phi step_k / step_{k-1},      rho = 1/phi + 1/phi^2

Semismooth Newton on the natural map r(y) = y - P(y - g G(y)) finishes where the derivative of the projection is known.
With D in the generalised derivative of P at y - g G(y), a step solves (I - D (I - g G'(y))) s = -r. Where the set is
polyhedral, P is piecewise affine: once the active face is right, this is Newton on the face, and one step is exact when
G is affine. A step is taken only if it shrinks r; what cannot be improved is handed back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, Must, as_rows, checked, frozen_vector, instance_of, note_fields, number, whole
from pzos.base.errors import FollowerFailure, NotConverged
from pzos.base.types import Matrix, Sense, Vector, dot
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader
from pzos.problem.polyhedra import Polyhedron as Polyhedron
from pzos.problem.problem import Problem
from pzos.problem.projections import Projector, projector_for
from pzos.problem.sets import Domain, Product as Product

OperatorFunction = Callable[[Vector, Vector], Any]
Operator = Callable[[Vector], Vector]

_FIRST_ROUND = 12
_PHI = 1.5
_RHO = 1.0 / _PHI + 1.0 / _PHI**2
_LARGEST_STEP = 1e7
_NEWTON_LIMIT = 50
_SHRINK = 0.7
_LONGEST = 1e8
_LINE_SEARCH = (1.0, 0.5, 0.25, 0.1)


_COUNT = whole(1, "try 50000", expected="a whole number >= 1")
_TOLERANCE = number(lambda value: 0.0 < value < 1.0, "a number between 0 and 1", "try tolerance=1e-10")
_A_SET = instance_of(
    Domain,
    "a set with project, contains and faults",
    "use pzos.problem.sets, pzos.games.Polyhedron or pzos.games.Product",
)


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

    operator: OperatorFunction = checked(Must(callable, "a function G(x, y)", "pass the function"))
    feasible: Domain = checked(_A_SET)
    dimension: int = checked(_COUNT._replace(remedy="give the length of y"))
    jacobian: OperatorFunction | None = checked(
        Must(callable, "a function (x, y) -> matrix dG/dy", "or leave it out").or_none(), default=None
    )
    tolerance: float = checked(_TOLERANCE, default=1e-10)
    max_iterations: int = checked(_COUNT, default=50_000)
    start: Vector | None = None

    def __post_init__(self) -> None:
        faults = Faults("VariationalInequality")
        note_fields(faults, self)
        sized = _COUNT.holds(self.dimension)
        if sized and isinstance(self.feasible, Domain):
            faults.messages += self.feasible.faults(self.dimension)
        if self.start is not None:
            size = self.dimension if sized else None
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
        state = begin(self.value, self.projector, self.projector.project(first))
        best, best_residual = state.z_before, self.residual(state.z_before)
        self.first_residual = best_residual
        length = min(_FIRST_ROUND, self.game.max_iterations)
        while True:
            state = self._projection_round(state, length)
            residual = self.residual(state.z)
            finished, steps = newton_finish(self.value, self.slope, self.projector, state.z)
            self.newton_steps += steps
            finished_residual = self.residual(finished) if steps else residual
            candidate = state.z
            if finished_residual < 0.5 * residual:
                state = begin(self.value, self.projector, finished)
                residual, candidate = finished_residual, finished
            if residual <= best_residual:
                best, best_residual = candidate, residual
            if self.certified(best, best_residual):
                return Solution(best, best_residual, self.iterations, self.newton_steps)
            if self.iterations >= self.game.max_iterations:
                raise NotConverged(
                    f"VariationalInequality: natural-map residual {best_residual:.3e} after {self.iterations} "
                    f"projection steps and {self.newton_steps} Newton steps: expected at most "
                    f"{self.game.tolerance:.1e}; check that G is monotone in y and that a solution exists, raise "
                    "max_iterations, or loosen tolerance"
                )
            length = min(2 * length, self.game.max_iterations - self.iterations)

    def _projection_round(self, state: GoldenState, length: int) -> GoldenState:
        for k in range(1, length + 1):
            state = advance(self.value, self.projector, state)
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
        size = self.game.dimension
        returned = self._asked("G", self.game.operator, y, (size,), "return one entry per entry of y")
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
        shape = (self.game.dimension, self.game.dimension)
        return self._asked("jacobian", self.game.jacobian, y, shape, "return dG_i/dy_j in row i, column j")

    def _asked(
        self, name: str, function: OperatorFunction, y: Vector, shape: tuple[int, ...], remedy: str
    ) -> npt.NDArray[np.float64]:
        returned = np.asarray(function(self.x.copy(), y.copy()), dtype=np.float64)
        if returned.shape != shape:
            raise FollowerFailure(
                f"VariationalInequality: {name}(x, y) has shape {returned.shape}: expected {shape}; {remedy}"
            )
        return returned


@dataclass(frozen=True, slots=True, eq=False)
class GoldenState:
    """The iterate z with its operator value, and what the next step size is made of."""

    z: Vector
    value: Vector
    mean: Vector
    z_before: Vector
    value_before: Vector
    step: float
    theta: float


def begin(operator: Operator, projector: Projector, z: Vector) -> GoldenState:
    """Begin at z, with a step size from one short trial move."""
    value = operator(z)
    size = dot(value, value) ** 0.5
    length = 1e-4 * max(1.0, dot(z, z) ** 0.5) / size if size > 0.0 else 1.0
    trial = projector.project(z - length * value)
    trial_value = operator(trial)
    moved, changed = trial - z, trial_value - value
    ratio = dot(moved, moved) / dot(changed, changed) if changed.any() else 1.0
    step = min(max(0.5 * ratio**0.5, 1e-12), _LARGEST_STEP)
    return GoldenState(trial, trial_value, trial, z, value, step, 1.0)


def advance(operator: Operator, projector: Projector, state: GoldenState) -> GoldenState:
    """Return the state after one iteration."""
    moved, changed = state.z - state.z_before, state.value - state.value_before
    change = dot(changed, changed)
    bound = _PHI * state.theta / (4.0 * state.step) * dot(moved, moved) / change if change > 0.0 else np.inf
    step = float(min(_RHO * state.step, bound, _LARGEST_STEP))
    step = step if step > 0.0 else state.step
    mean = ((_PHI - 1.0) * state.z + state.mean) / _PHI
    z = projector.project(mean - step * state.value)
    return GoldenState(z, operator(z), mean, state.z, state.value, step, _PHI * step / state.step)


def natural_map(operator: Operator, projector: Projector, y: Vector, scale: float = 1.0) -> Vector:
    """Return y - P(y - scale G(y)); zero exactly at the solutions."""
    return y - projector.project(y - scale * operator(y))


def finite_difference_jacobian(operator: Operator, y: Vector, value: Vector) -> Matrix:
    """Return G'(y) column by column by forward differences; backward where forward has no finite value."""
    jacobian = np.empty((y.size, y.size))
    for i in range(y.size):
        for sign in (1.0, -1.0):
            moved = y.copy()
            moved[i] += sign * 1.5e-8 * max(1.0, abs(float(y[i])))
            jacobian[:, i] = (operator(moved) - value) / (moved[i] - y[i])
            if np.isfinite(jacobian[:, i]).all():
                break
    return jacobian


def newton_finish(
    operator: Operator, jacobian: Callable[[Vector, Vector], Matrix], projector: Projector, y: Vector
) -> tuple[Vector, int]:
    """Run Newton from y until the natural map stops shrinking; returns where, and after how many accepted steps.

    G' is asked for once per step.
    """
    value = operator(y)
    slope = jacobian(y, value)
    if not np.isfinite(slope).all():
        return y, 0
    # a scale that balances both parts of the natural map, kept for the whole run: it defines the merit
    norm = (np.abs(slope).sum(axis=0).max() * np.abs(slope).sum(axis=1).max()) ** 0.5
    scale = 1.0 / norm if norm > 0.0 else 1.0
    residual = natural_map(operator, projector, y, scale)
    steps = 0
    while steps < _NEWTON_LIMIT and residual.any() and np.isfinite(slope).all():
        derivative = projector.derivative(y - scale * value, y - residual)
        if derivative is None:
            break
        matrix = np.eye(y.size) - derivative @ (np.eye(y.size) - scale * slope)
        better = _improve(operator, projector, y, residual, matrix, scale)
        if better is None:
            break
        y, residual = better
        value = operator(y)
        slope = jacobian(y, value)
        steps += 1
    return y, steps


def _improve(
    operator: Operator, projector: Projector, y: Vector, residual: Vector, matrix: Matrix, scale: float
) -> tuple[Vector, Vector] | None:
    """Try the Newton step, then the least-norm one (singular systems), each shortened if need be."""
    merit = math.sqrt(dot(residual, residual))
    for solve in (np.linalg.solve, _least_norm):
        try:
            direction: Vector = solve(matrix, -residual).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            continue
        if not np.abs(direction).max() <= _LONGEST * (1.0 + np.abs(y).max()):
            continue  # a nearly singular system: the direction is rounding noise
        for length in _LINE_SEARCH:
            trial = projector.project(y + length * direction)
            trial_residual = natural_map(operator, projector, trial, scale)
            if math.sqrt(dot(trial_residual, trial_residual)) <= _SHRINK * merit:
                return trial, trial_residual
    return None


def _least_norm(matrix: Matrix, right: Vector) -> Any:
    return np.linalg.lstsq(matrix, right, rcond=1e-10)[0]
