"""The subproblem of the composite trust region: minimise the known f on the model, near the centre, inside the set.

    min over x of  f(x, M(x))   subject to   |x - c|_inf <= D,  x in X

Exact gradients, no queries. Boxes go to quasi-Newton steps (:mod:`pzos.methods.trust_region.descent`), polyhedra to
SLSQP; any other set to spectral projected gradients, with projections onto its intersection with the trust region
(:mod:`pzos.problem.projections`). The first radius D comes from the set, x0, the known f and the number of answers; no
scale is asked of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pzos.base.types import Vector
from pzos.methods.trust_region.descent import Objective, descend
from pzos.problem.leader import Leader
from pzos.problem.problem import Known
from pzos.problem.projections import project_near
from pzos.problem.sets import Box, Domain, Nonnegative, Whole, linear_form

_GROWTH = 4.0
_TRIES = 12
#: Projected gradients take more iterations than quasi-Newton steps; they may rise, above the lowest of so many.
_PROJECTED, _WORST_OF = 4, 6
#: Up to this many decisions the curvature of f is measured one by one.
_MOST_MEASURED = 2000
#: Up to this many decisions a polyhedron goes to SLSQP, whose steps cost their third power.
_MOST_BY_SLSQP = 60
#: Of F at x0, what f alone promises must be more than this to tell a first radius below this share of half the width.
_NEXT_TO_NOTHING, _OF_CAP = 1e-3, 0.1
#: In a box of up to so many decisions a first trial goes at most this share of half of its width.
_FEW_IN_BOX, _FIRST_SHARE = 12, 0.3
#: A set that is known by its projection alone is as wide as the ends of moves of so many times x0 stay apart; bounds
#: count if they are nearer to each other than this share of such a move.
_LONG, _BOUNDED = 1e6, 0.5
#: Axes along which the width of a set is looked for that is known by its projection alone.
_AXES = 40


class Pullable(Protocol):
    """A model of the response with transposed Jacobian products."""

    def response_and_pull(self, x: Vector) -> tuple[Vector, Callable[[Vector], Vector]]:
        """Return M(x) and the map g -> (dM/dx)' g."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Where the model is lowest, and by how much it is lower there than at the centre."""

    x: Vector
    predicted: float
    size: float


def on_model(leader: Leader, sign: float, model: Pullable) -> Objective:
    """Return x -> sign f(x, M(x)) with its exact gradient.

    Where f is not defined on what the model answers (a logarithm of a negative number, say), the point is infeasible
    for the model: worse than anything seen so far, and flat, so that a line search turns back.
    """
    worst = 0.0

    def objective(x: Vector) -> tuple[float, Vector]:
        nonlocal worst
        y, pull = model.response_and_pull(x)
        try:
            with np.errstate(all="ignore"):
                at = leader(x, y)
        except (ArithmeticError, ValueError):
            return worst + abs(worst) + 1.0, np.zeros_like(x)
        worst = max(worst, sign * at.value)
        return sign * at.value, sign * (at.grad_x + pull(at.grad_y))

    return objective


@dataclass(frozen=True, slots=True, eq=False)
class Unmoved:
    """Followers who do not react."""

    y: Vector

    def response_and_pull(self, x: Vector) -> tuple[Vector, Callable[[Vector], Vector]]:
        """Return the same answer everywhere, which depends on nothing."""
        return self.y, lambda g: np.zeros_like(x)


def bounds_of(domain: Domain, size: int) -> tuple[Vector, Vector] | None:
    """Return the bounds of a set that is a box; None for any other set."""
    if isinstance(domain, Whole):
        return np.full(size, -np.inf), np.full(size, np.inf)
    if isinstance(domain, Nonnegative):
        return np.zeros(size), np.full(size, np.inf)
    if isinstance(domain, Box):
        lower: Vector = np.broadcast_to(domain.lower, (size,))
        upper: Vector = np.broadcast_to(domain.upper, (size,))
        return lower, upper
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Where the next query may lie: in the set, and within ``radius`` of the centre in units of ``sizes``."""

    centre: Vector
    radius: float
    sizes: Vector
    domain: Domain

    @property
    def reach(self) -> float | Vector:
        """Return how far each decision may move; one number where they are alike, as in sets that are no boxes."""
        return self.radius if (self.sizes == 1.0).all() else self.radius * self.sizes

    def size(self, x: Vector) -> float:
        """Return how far x lies from the centre."""
        return float((np.abs(x - self.centre) / self.sizes).max())

    def at(self, share: float, direction: Vector) -> Vector:
        """Return the point of the set at ``share`` radii from the centre along a direction in units of ``sizes``."""
        return self.domain.project(self.centre + (share * self.radius) * (self.sizes * direction))


def minimise(objective: Objective, region: Region, iterations: int, start: Vector | None = None) -> Move:
    """Return the best point found in the region, searching from ``start`` (else the centre).

    In a box x is in radii from the centre and f in units of the steepest slope there: nothing depends on the units of
    x or of f.
    """
    here, slope = objective(region.centre)
    centre, reach = region.centre, region.radius * region.sizes
    bounds = bounds_of(region.domain, centre.size)
    begin = centre if start is None else start
    if bounds is None:
        x, value = _in_polyhedron(objective, here, slope, begin, region, iterations) or _projected(
            objective, begin, region, iterations
        )
        return Move(x, here - value, region.size(x))
    unit = float(np.abs(slope * reach).max()) or 1.0
    per_unit = reach / unit

    def scaled(u: Vector) -> tuple[float, Vector]:
        value, gradient = objective(centre + u * reach)
        return (value - here) / unit, gradient * per_unit

    lower = np.maximum((bounds[0] - centre) / reach, -1.0)
    upper = np.minimum((bounds[1] - centre) / reach, 1.0)
    at_start = np.minimum(np.maximum((begin - centre) / reach, lower), upper)
    known = (0.0, slope * per_unit) if start is None else scaled(at_start)
    found, value = descend(scaled, at_start, known, lower, upper, iterations)
    x = np.minimum(np.maximum(centre + found * reach, bounds[0]), bounds[1])
    return Move(x, -value * unit, region.size(x))


def _in_polyhedron(
    objective: Objective, here: float, slope: Vector, start: Vector, region: Region, iterations: int
) -> tuple[Vector, float] | None:
    """Return what SLSQP finds in a polyhedron of not too many decisions, in radii; None where it finds nothing lower.

    Only constraints that the region reaches are passed on.
    """
    from scipy.optimize import Bounds, LinearConstraint, minimize

    centre, reach = region.centre, region.reach
    if centre.size > _MOST_BY_SLSQP or not hasattr(region.domain, "project_within"):
        return None
    linear = linear_form(region.domain, centre.size)
    if linear is None:
        return None
    room, rows = linear.b - linear.A @ centre, reach * linear.A
    near = np.abs(rows).sum(axis=1) >= room
    constraints = [LinearConstraint(rows[near], -np.inf, room[near])] if near.any() else []
    if linear.d.size:
        constraints.append(LinearConstraint(reach * linear.C, 0.0, 0.0))
    unit = float(np.abs(slope * reach).max()) or 1.0

    def scaled(u: Vector) -> tuple[float, Vector]:
        value, gradient = objective(centre + reach * u)
        return (value - here) / unit, gradient * (reach / unit)

    lower = np.maximum((linear.lower - centre) / reach, -1.0)
    upper = np.minimum((linear.upper - centre) / reach, 1.0)
    found = minimize(
        scaled, np.minimum(np.maximum((start - centre) / reach, lower), upper), jac=True, method="SLSQP",
        bounds=Bounds(np.minimum(lower, 0.0), np.maximum(upper, 0.0)), constraints=constraints,
        options={"maxiter": iterations, "ftol": 1e-12},
    )  # fmt: skip
    if not np.isfinite(found.x).all():
        return None
    x = project_near(centre + reach * found.x, centre, reach, region.domain)
    value = objective(x)[0]
    return (x, value) if value < here else None


def _projected(objective: Objective, start: Vector, region: Region, iterations: int) -> tuple[Vector, float]:
    """Spectral projected gradients; the search along the chord compares with the worst of the last few values."""
    x = project_near(start, region.centre, region.reach, region.domain)
    value, gradient = objective(x)
    best, lowest, recent = x, value, [value]
    step = region.radius / max(float(np.abs(gradient).max()), 1e-300)
    for _ in range(_PROJECTED * iterations):
        direction = project_near(x - step * gradient, region.centre, region.reach, region.domain) - x
        slope = float(gradient @ direction)
        if slope >= -1e-14 * max(abs(value), 1e-300):
            break
        moved = _armijo(objective, x, max(recent[-_WORST_OF:]), direction, slope)
        if moved is None:
            break
        fraction, value, new_gradient = moved
        recent.append(value)
        change = fraction * direction
        curvature = float(change @ (new_gradient - gradient))
        length = float(change @ change)
        step = length / curvature if curvature > 1e-12 * length else 4.0 * step
        x, gradient = x + change, new_gradient
        if value < lowest:
            best, lowest = x, value
    return best, lowest


def _armijo(
    objective: Objective, x: Vector, value: float, direction: Vector, slope: float
) -> tuple[float, float, Vector] | None:
    fraction = 1.0
    for _ in range(12):
        trial, gradient = objective(x + fraction * direction)
        if trial <= value + 1e-4 * fraction * slope:
            return fraction, trial, gradient
        fraction *= 0.3
    return None


def typical_sizes(leader: Leader, x0: Vector, y0: Vector, domain: Domain) -> Vector:
    """Return what a typical move of each decision is, of geometric mean 1; all 1 where nothing says otherwise.

    The widths of a box say it if they differ; else the curvature of the known f, a decision of which moves the less
    the more f bends along it. Only boxes: any other set is projected onto in its own units.
    """
    bounds, ones = bounds_of(domain, x0.size), np.ones(x0.size)
    if bounds is None:
        return ones
    widths = bounds[1] - bounds[0]
    if np.isfinite(widths).all() and widths.max() > 3.0 * widths.min() > 0.0:
        return widths / float(np.exp(np.log(widths).mean()))
    if x0.size > _MOST_MEASURED:
        return ones
    curvature = np.zeros(x0.size)
    here = leader(x0, y0).grad_x
    steps = 1e-3 * np.maximum(np.abs(x0), 1e-3 * (float(np.abs(x0).mean()) or 1.0))
    for i in range(x0.size):
        x = x0.copy()
        x[i] += steps[i]
        try:
            with np.errstate(all="ignore"):
                curvature[i] = abs(leader(x, y0).grad_x[i] - here[i]) / (x[i] - x0[i])
        except (ArithmeticError, ValueError):  # f is not defined there
            return ones
    if not np.isfinite(curvature).all() or curvature.min() <= 0.0 or curvature.max() < 100.0 * curvature.min():
        return ones
    sizes = 1.0 / np.sqrt(curvature)
    return sizes / float(np.exp(np.log(sizes).mean()))


def first_radius(known: Known, x0: Vector, y0: Vector, sizes: Vector) -> float:
    """Return how far a first trial may go: as far as the leader would move if the followers did not react.

    In a box of up to twelve decisions at most three tenths of half its width (that of the widest decision, in units of
    ``sizes``): f alone, say the money that is spent, often leads to its edge, and what followers do there tells nothing
    of what they do around x0. Not where there are as many answers as decisions: own effects, which show in most such
    games, foretell further. Nor under constraints on outcomes, which keep such a step short where they bind.
    """
    alone, domain = _size_alone(known.leader, known.sign, x0, y0, known.domain, sizes), known.domain
    if x0.size > _FEW_IN_BOX or y0.size == x0.size or known.outcomes is not None or bounds_of(domain, x0.size) is None:
        return alone
    return min(alone, _FIRST_SHARE * half_width(domain, x0, sizes))


def _size_alone(leader: Leader, sign: float, x0: Vector, y0: Vector, domain: Domain, sizes: Vector) -> float:
    """Return how far the leader would move if the followers did not react, within the set.

    f(., y0) is minimised in growing boxes until the minimiser lies inside one. Where f(., y0) has no minimiser,
    or x0 is one already, the size of x0 takes its place; a bounded set caps both.
    """
    unanswered = on_model(leader, sign, Unmoved(y0))
    size0 = float((np.abs(x0) / sizes).mean())
    cap = half_width(domain, x0, sizes)
    typical = min(size0 if size0 > 0.0 else 1.0, cap)
    here = abs(leader.value(x0, y0))
    smallest = 1e-9 * here
    radius = typical
    for _ in range(_TRIES):
        move = minimise(unanswered, Region(x0, radius, sizes, domain), 50)
        if move.size < 0.9 * radius or radius >= cap:
            told = move.size > 1e-3 * typical or (move.size > 0.0 and move.predicted > smallest)
            # Where next to nothing is promised, as by a small fee, the width of a bounded set says how far is far.
            least = _OF_CAP * cap if np.isfinite(cap) and move.predicted < _NEXT_TO_NOTHING * here else 0.0
            return max(move.size, least) if told else min(0.5 * typical, cap)
        radius = min(_GROWTH * radius, cap)
    return min(0.5 * typical, cap)


def half_width(domain: Domain, x0: Vector, sizes: Vector) -> float:
    """Return half of how wide the set is, in units of ``sizes``; infinite where it has no bounds, or none that count.

    Bounds so much further apart than x0 is from 0 stand for none.
    """
    bounds, typical = bounds_of(domain, x0.size), max(1.0, float(np.abs(x0 / sizes).max()))
    if bounds is None:
        # The set is seen through its projection: how far do two opposite long moves stay apart?
        reach = _LONG * typical
        there, back = domain.project(x0 + reach), domain.project(x0 - reach)
        along = [domain.project(x0 + reach * axis) for axis in np.eye(min(x0.size, _AXES), x0.size)]
        width = max(float(np.abs(there - back).max()), float(np.abs(along - x0).max()))
    else:
        width = float(np.max((bounds[1] - bounds[0]) / sizes))
    return 0.5 * width if 0.0 < width < _BOUNDED * _LONG * typical else float("inf")
