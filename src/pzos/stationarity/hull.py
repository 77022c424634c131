"""The sampled-hull certificate: gradients at points of the delta-ball, and the smallest norm in their convex hull.

At each sampled point z the response is differenced forwards and backwards along every coordinate with a tiny step h,
so kinks at z give two gradients. With the partial gradients of f kept at x the hull is an inner approximation of the
partial Goldstein subdifferential, eq. (goldstein_partial_F); with those at z, of the Goldstein subdifferential,
eq. (goldstein_full_F): a small norm certifies stationarity, a large one does not refute it. "Inner" is meant for the
radius delta + h and up to the error of the differences, which is exact for piecewise affine responses and for one
dimension, and of order h for smooth pieces; a kink that crosses the stencil of one z in several dimensions mixes
neighbouring pieces.

The smallest norm comes with a proof: for any x in the hull of points p_i, x.x - min_i p_i.x bounds |x - x*|^2, and
min_i p_i.x/|x| bounds the smallest norm from below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, checked, note_fields, positive, whole
from pzos.base.errors import NotConverged
from pzos.base.keys import Keys, Role
from pzos.base.threads import one_blas_thread
from pzos.base.types import LeaderValue, Matrix, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.solver import Task
from pzos.problem.problem import Known, Problem
from pzos.problem.sets import Whole
from pzos.stationarity.certificate import normal_near
from pzos.stationarity.one_batch import BatchState, OneBatch, report_on
from pzos.stationarity.theory import Notion

if TYPE_CHECKING:
    from concurrent.futures import Executor

_ALTERNATIONS = 100


@dataclass(frozen=True, slots=True, eq=False)
class MinNorm:
    """The nearest point of a hull to the origin: ``norm``, with proof that no point has a norm below ``at_least``."""

    point: Vector
    norm: float
    at_least: float
    weights: Vector


def min_norm_point(points: Matrix, tolerance: float = 1e-12) -> MinNorm:
    """Return the point of smallest norm in the hull of the rows, to |x - x*|^2 <= tolerance * max|p|^2.

    Weights w of sum 1 minimise |P'w| if and only if a multiple u >= 0 of w minimises |P'u|^2 + (1'u - 1)^2, which is
    a least-squares problem in non-negative numbers.

    >>> round(min_norm_point(np.array([[1.0, 1.0], [1.0, -1.0]])).norm, 12)
    1.0
    """
    from scipy.optimize import nnls

    faults = Faults("min_norm_point")
    array = points.ndim == 2 and points.shape[0] > 0
    faults.check(array and bool(np.isfinite(points).all()), "points", points, "finite rows", "one point per row")
    faults.raise_if_any()
    scale = float(np.sqrt(np.einsum("ij,ij->i", points, points).max()))
    if scale == 0.0:
        return MinNorm(points[0].copy(), 0.0, 0.0, np.eye(1, len(points))[0])
    unit = points / scale
    with one_blas_thread():
        multiple, _ = nnls(np.vstack([unit.T, np.ones(len(unit))]), np.append(np.zeros(unit.shape[1]), 1.0))
    weights = multiple / multiple.sum()
    x = np.einsum("i,ij->j", weights, unit)
    products = np.einsum("ij,j->i", unit, x)
    gap = dot(x, x) - float(products.min())
    if gap > tolerance:
        raise NotConverged(f"min_norm_point: the gap is {gap:.3g}: expected at most {tolerance:g}; widen it")
    norm = dot(x, x) ** 0.5
    lowest = float(products.min()) / norm if norm > 0.0 else 0.0
    return MinNorm(x * scale, norm * scale, max(0.0, lowest) * scale, weights)


@dataclass(frozen=True, slots=True, eq=False)
class HullReport:
    """The smallest norms found, with the gradients they were found among (one per row)."""

    x: Vector
    delta: float
    step: float
    partial: MinNorm
    full: MinNorm
    partial_gradients: Matrix
    full_gradients: Matrix
    queries: int
    projected: bool

    def bound(self, notion: Notion = "partial") -> MinNorm:
        """Return the smallest norm for one notion."""
        return self.partial if notion == "partial" else self.full

    def stationary(self, epsilon: float, notion: Notion = "partial") -> bool:
        """Tell whether (delta, epsilon)-stationarity is certified; False does not refute it."""
        return self.bound(notion).norm <= epsilon

    def __repr__(self) -> str:
        extra = " of the problem over its domain" if self.projected else ""
        return (
            f"x is ({self.delta:g}, {self.partial.norm:.4g})-partial-Goldstein stationary and "
            f"({self.delta:g}, {self.full.norm:.4g})-Goldstein stationary{extra},\n"
            f"by the hull of {len(self.partial_gradients)} sampled gradients ({self.queries} queries, difference step "
            f"{self.step:g}).\nThe hull is an inner approximation: a small norm certifies, a large one does not refute."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _HullPlan(Plan):
    """The sampled points z; block k of 2 d + 1 queries is z_k, z_k + h e_j, z_k - h e_j."""

    x: Vector
    centres: tuple[Vector, ...]
    step: float


@dataclass(frozen=True, slots=True, eq=False)
class HullSolver(OneBatch[HullReport]):
    """Ask, once, around x and around ``points`` - 1 points of the delta-ball: points * (2 d + 1) queries.

    Points come in opposite pairs, by turns on the sphere and inside the ball. ``step`` is the difference step h.
    """

    delta: float = checked(positive("the radius of the ball"))
    points: int = checked(whole(1, "try points=21"), default=21)
    step: float | None = checked(positive("or None").or_none(), default=None)
    projected: bool = True

    def __post_init__(self) -> None:
        faults = Faults("HullSolver")
        note_fields(faults, self)
        if not faults.messages and self.step is not None:
            faults.check(self.step <= self.delta, "step", self.step, f"at most delta = {self.delta}", "or None")
        faults.raise_if_any()

    def ask(self, task: Task, state: BatchState[HullReport]) -> Plan:
        """Plan the stencils."""
        x = state.x
        step = self.step if self.step is not None else min(self.delta, 1e-6 * max(1.0, float(np.abs(x).max())))
        centres = tuple(_centre(task.keys, x, self.delta, k) for k in range(self.points))
        points: list[Vector] = []
        for z in centres:
            points.append(z)
            for axis in range(x.size):
                for side in (step, -step):
                    moved = z.copy()
                    moved[axis] += side
                    points.append(moved)
        purposes = (Purpose.ITERATE,) + (Purpose.CERTIFICATE,) * (len(points) - 1)
        return _HullPlan(tuple(points), purposes, x, centres, step)

    def read(self, known: Known, plan: Plan, answers: Answers) -> HullReport | None:
        """Difference the answers and find the smallest norms."""
        plan = of_kind(_HullPlan, plan)
        if answers[0] is None:
            return None
        at_x = known.leader(plan.x, answers[0])
        partial: list[Vector] = []
        full: list[Vector] = []
        block = 2 * plan.x.size + 1
        for k, z in enumerate(plan.centres):
            stencil = answers[k * block : (k + 1) * block]
            centre = stencil[0]
            if centre is None:
                continue
            for transposed in _one_sided(plan, k * block, centre, stencil):
                partial.append(_chain(at_x, transposed))
                full.append(_chain(known.leader(z, centre), transposed))
        if not partial:
            return None
        constrained = self.projected and not isinstance(known.domain, Whole)
        finders = [_smallest(known, plan.x, np.array(g), self.delta, constrained) for g in (partial, full)]
        return HullReport(
            plan.x, self.delta, plan.step, finders[0], finders[1], np.array(partial), np.array(full),
            len(plan.points), constrained,
        )  # fmt: skip


def _centre(keys: Keys, x: Vector, delta: float, k: int) -> Vector:
    """Return z_k: x itself, then opposite pairs by turns on the sphere and inside the ball."""
    if k == 0:
        return x
    pair = (k - 1) // 2
    v = keys.direction(0, 2 * pair, x.size, Role.REGION)
    length = delta if pair % 2 == 0 else delta * keys.uniform(Role.REGION, 1, pair) ** (1.0 / x.size)
    return x + length * v if k % 2 == 1 else x - length * v


def _one_sided(plan: _HullPlan, first: int, centre: Vector, stencil: Answers) -> Iterator[Matrix]:
    """Yield the transposed forward and backward difference Jacobians (d_x rows), those that were answered."""
    z = plan.points[first]
    for side in (0, 1):
        rows: list[Vector] = []
        for axis in range(z.size):
            answer = stencil[1 + 2 * axis + side]
            if answer is None:
                break
            width = plan.points[first + 1 + 2 * axis + side][axis] - z[axis]  # the step as rounded
            rows.append((answer - centre) / width)
        else:
            yield np.array(rows)


def _chain(at: LeaderValue, transposed: Matrix) -> Vector:
    gradient: Vector = at.grad_x + np.einsum("ji,i->j", transposed, at.grad_y)
    return gradient


def _smallest(known: Known, x: Vector, gradients: Matrix, delta: float, constrained: bool) -> MinNorm:
    """Return the smallest |g + n|: alternate between the hull and the normals near x; any round is a certificate."""
    best = min_norm_point(gradients)
    if not constrained:
        return best
    current = best
    normal = np.zeros_like(x)
    for _ in range(_ALTERNATIONS):
        element = current.point - normal
        normal = known.sign * normal_near(known.domain, x, known.sign * element, delta)
        current = min_norm_point(gradients + normal)
        gain = best.norm - current.norm
        if gain > 0.0:
            best = replace(current, at_least=0.0)
        if gain <= 1e-12 * max(1.0, best.norm):
            break
    return best


def certify_hull(
    problem: Problem,
    x: npt.ArrayLike | None = None,
    *,
    delta: float,
    points: int = 21,
    step: float | None = None,
    projected: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> HullReport:
    """Certify x (x0 if None) by the hull of sampled gradients; arguments as for :class:`HullSolver`."""
    solver = HullSolver(delta, points, step, projected)
    return report_on("certify_hull", problem, solver, x, seed=seed, executor=executor)
