"""The subproblem under outcome constraints: the known f and g on the model, near the centre, inside the set.

    min over x, t of  sign f(x, M(x))/s_f + mu t   subject to   (g_k(x, M(x)) + m_k(x))/s_k <= t,   t >= 0,
                                                                |x - c|_inf <= D,   x in X

By SLSQP with exact gradients, no queries. Constraints may give way by t, so there is always a solution; with a large
enough mu it keeps them all if that is possible on the model. The margin m_k is a quantile of how far g_k may lie from
what the model says. Only constraints that come near their limit are passed on: the rest would cost time and change
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.trust_region.subproblem import Move, Region, bounds_of, minimise
from pzos.problem.leader import Leader
from pzos.problem.linear import Linear, bounded
from pzos.problem.outcomes import Outcomes
from pzos.problem.problem import Known
from pzos.problem.sets import Domain, linear_form

T = TypeVar("T")
#: Aim this far inside a constraint, in units of its scale: what is told is to be feasible within its tolerance.
_INSIDE = 5e-7
#: A solution on the model that gives way by less keeps the constraints.
KEPT = 1e-6
#: A constraint this near its limit, in units of its scale, is active.
ACTIVE = 1e-4
#: Constraints within this distance of their limit are passed on; those that then turn out violated follow.
_NEAR, _ROUNDS = 0.1, 4
#: Most that is paid for a violation, the least share of what can be gained in feasibility, and how fast it is paid.
MOST, _SHARE, _DEARER = 30.0, 0.3, 3.0
#: A margin is at most this share of the scale of its constraint.
_WIDEST = 0.2
#: Where less than this share of a margin is kept, a shorter step that nearly keeps it is preferred, if it promises at
#: least this share.
_LITTLE, _NEARLY, _WORTH = 0.5, 0.9, 0.25
#: How often margins are set anew where the search ended.
_MARGINS = 2
#: The share of the trust region that a step counts as at least.
_TELLING = 0.2
_SMOOTHINGS = (0.1, 0.01, 1e-3)
_INFEASIBLE = 1e6
#: How many points cost and constraints are remembered of: a search comes back to where it began and to its best.
_REMEMBERED = 64


class Scales(NamedTuple):
    """What a typical change of the cost, and of each constraint, is."""

    cost: float
    outcomes: Vector


@dataclass(frozen=True, slots=True, eq=False)
class ElasticMove(Move):
    """A move with the price ``mu`` of violations that it is to be judged by.

    ``margin`` is the share of their margins that all constraints keep there on the model (1: all of it), ``foreseen``
    what the model says of them and ``deviations`` how far that may be off, in their scales; ``multipliers`` are the
    problem's own. ``bold`` is the move without margins.
    """

    mu: float
    margin: float
    foreseen: Vector
    deviations: Vector
    multipliers: Vector
    bold: Move


def merit_of(known: Known, outcomes: Outcomes, scales: Scales, mu: float) -> Leader:
    """Return sign f/s_f + mu max_k (g_k/s_k)+ as a cost to minimise: what a told answer is judged by."""
    weight = known.sign / scales.cost

    def value(x: Vector, y: Vector) -> float:
        excess = float((outcomes.values(x, y) / scales.outcomes).max())
        return weight * known.leader.value(x, y) + mu * max(excess, 0.0)

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at, excess = known.leader(x, y), outcomes.values(x, y) / scales.outcomes
        worst = int(np.argmax(excess))
        total, grad_x, grad_y = weight * at.value, weight * at.grad_x, weight * at.grad_y
        if excess[worst] <= 0.0:
            return total, grad_x, grad_y
        unit = np.zeros(len(outcomes))
        unit[worst] = mu / scales.outcomes[worst]
        pull_x, pull_y = outcomes.pull(x, y, unit)
        return total + mu * float(excess[worst]), grad_x + pull_x, grad_y + pull_y

    return Leader(value, everything, "merit")


class _Point(NamedTuple):
    """Cost and constraints on the model at one x, in their scales."""

    cost: float
    gradient: Vector
    excess: Vector
    answer: Vector
    pull: Callable[[Vector], Vector] | None


def remembered(values: dict[bytes, T], x: Vector, compute: Callable[[Vector], T]) -> T:
    """Return the value at x, computed unless it is among the latest."""
    key = x.tobytes()
    if key not in values:
        if len(values) >= _REMEMBERED:
            del values[next(iter(values))]
        values[key] = compute(x)
    return values[key]


class OnModel:
    """The known cost and constraints on a model of the response; what was computed last is remembered."""

    def __init__(self, known: Known, outcomes: Outcomes, scales: Scales, model: ResponseModel) -> None:
        self.known, self.outcomes, self.scales, self.model = known, outcomes, scales, model
        self._points: dict[bytes, _Point] = {}
        self._deviations: dict[bytes, Vector] = {}

    def at(self, x: Vector) -> _Point:
        """Return what the model says at x; a point where cost or constraints are not defined is infeasible."""
        return remembered(self._points, x, self._evaluated)

    def _evaluated(self, x: Vector) -> _Point:
        y, pull = self.model.response_and_pull(x)
        weight = self.known.sign / self.scales.cost
        try:
            with np.errstate(all="ignore"):
                at, g = self.known.leader(x, y), self.outcomes.values(x, y)
        except (ArithmeticError, ValueError):
            lost = np.full(len(self.outcomes), _INFEASIBLE)
            return _Point(_INFEASIBLE, np.zeros_like(x), lost, y, None)
        return _Point(weight * at.value, weight * (at.grad_x + pull(at.grad_y)), g / self.scales.outcomes, y, pull)

    def slopes(self, x: Vector, chosen: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Return the gradients of the chosen constraints in x, on the model, and those in y alone; one row each."""
        here = self.at(x)
        if here.pull is None:
            return np.zeros((len(chosen), x.size)), np.zeros((len(chosen), here.answer.size))
        weights = np.zeros((len(chosen), len(self.outcomes)))
        weights[np.arange(len(chosen)), chosen] = 1.0 / self.scales.outcomes[list(chosen)]
        own, in_y = self.outcomes.pulls(x, here.answer, weights)
        return own + here.pull(in_y), in_y

    def merit(self, x: Vector, mu: float) -> float:
        """Return the merit of x on the model."""
        here = self.at(x)
        return here.cost + mu * max(float(here.excess.max()), 0.0)

    def deviations(self, x: Vector) -> Vector:
        """Return how far each constraint may lie from what the model says at x: one deviation, in its scale."""
        return remembered(self._deviations, x, self._deviated)

    def _deviated(self, x: Vector) -> Vector:
        model, every = self.model, range(len(self.outcomes))
        if model.variances.size == 0:
            return np.full(len(self.outcomes), np.inf)
        squared = self.slopes(x, every)[1] ** 2
        known = squared @ np.maximum(model.variances_at(x), 0.0) * model.spread(x)[0]
        deviations: Vector = np.sqrt(np.maximum(known + squared @ model.untold, 0.0))
        return deviations


class _Margin(NamedTuple):
    """What every constraint is kept away from its limit, in its scale: z sqrt(c_k v(x) + n_k), at most the widest.

    v is the variance of the process, n that of noise. With ``fixed`` it is that of one point, wherever the search goes.
    """

    quantile: float
    process: Vector
    noise: Vector
    fixed: Vector | None = None

    def at(self, model: ResponseModel, x: Vector) -> tuple[Vector, Matrix]:
        """Return the margins and their gradients; one that has reached the widest stays there."""
        if self.fixed is not None:
            return self.fixed, np.zeros((self.fixed.size, x.size))
        variance, slope = model.spread(x)
        size = self.quantile * np.sqrt(self.process * (variance + 1e-16) + self.noise)
        steep = np.where((size < _WIDEST) & (size > 0.0), 0.5 * self.quantile**2 * self.process, 0.0)
        return np.minimum(size, _WIDEST), np.outer(steep / np.maximum(size, 1e-300), slope)


def elastic_move(on: OnModel, region: Region, mu: float, iterations: int, quantile: float) -> ElasticMove:
    """Return the solution of the subproblem, with margins of ``quantile`` deviations.

    Where the constraints cannot all be kept, violations are made dearer until a good share of what can be gained in
    feasibility is.
    """
    centre = on.at(region.centre)
    search = _Search(on, region, iterations)
    x, t = search.solve(mu, region.centre)
    if t <= KEPT:
        mu = max(mu, 2.0 * float(scaled_multipliers(on, x, region).sum()))
    else:
        before = max(float(centre.excess.max()), 0.0)
        least = search.solve(MOST, region.centre)
        while mu < MOST and before - t < _SHARE * (before - least[1]):
            mu = min(_DEARER * mu, MOST)
            x, t = search.solve(mu, x) if mu < MOST else least
    return _kept_apart(on, search, mu, (x, t), quantile)


def hopeful_move(
    on: OnModel, region: Region, move: ElasticMove, iterations: int, quantile: float, hope: float, start: Vector
) -> ElasticMove:
    """Return the solution for a cost that is lower by ``hope`` deviations of what the model does not know.

    Hope is for the cost; the constraints keep their margins.
    """
    search = _Search(on, region, iterations, hope)
    return replace(_kept_apart(on, search, move.mu, (start, 0.0), quantile), bold=move.bold)


def _kept_apart(on: OnModel, search: _Search, mu: float, found: tuple[Vector, float], quantile: float) -> ElasticMove:
    """Solve once more, with the margins of what was found."""
    x, t = found
    mark = on.merit(search.region.centre, mu)
    bold = Move(x, mark - on.merit(x, mu), search.region.size(x))
    if on.model.variances.size:
        squared = on.slopes(x, range(len(on.outcomes)))[1] ** 2
        process = squared @ np.maximum(on.model.variances_at(x), 0.0)
        moving = _Margin(quantile, process, squared @ on.model.untold)
        fixed = moving.at(on.model, x)[0]
        for _ in range(_MARGINS):
            x, t = search.solve(mu, x, moving._replace(fixed=fixed))
            needed = moving.at(on.model, x)[0]
            if ((on.at(x).excess + needed <= t) | (needed <= 1.1 * fixed)).all():
                break
            fixed = np.maximum(fixed, needed)
        if on.merit(x, mu) >= mark:  # a shorter step needs a smaller margin; where none helps, feasibility comes first
            feasible = min(float(on.at(search.region.centre).excess.max()), found[1]) <= KEPT
            x, t = search.solve(mu, x, moving) if feasible else found
        x = _warier(on, search, mu, x, moving)
    predicted, size = mark - on.merit(x, mu), search.region.size(x)
    if size > 0.0:  # a short step that fails says little about the whole region
        size = max(size, _TELLING * search.region.radius)
    excess, deviations = on.at(x).excess, on.deviations(x)
    margin = _share_kept(on, x, quantile)
    return ElasticMove(x, predicted, size, mu, margin, excess, deviations, multipliers_at(on, x), bold)


def _warier(on: OnModel, search: _Search, mu: float, x: Vector, moving: _Margin) -> Vector:
    """Return x; where it keeps little of its margin, a point near a feasible centre that does, if that is worth it."""
    centre = search.region.centre
    if _share_kept(on, x, moving.quantile) >= _LITTLE or on.at(centre).excess.max() > KEPT:
        return x
    shorter, _ = search.solve(MOST, centre, moving)
    mark = on.merit(centre, mu)
    worth = mark - on.merit(shorter, mu) >= _WORTH * (mark - on.merit(x, mu))
    return shorter if worth and _share_kept(on, shorter, moving.quantile) >= _NEARLY else x


def _share_kept(on: OnModel, x: Vector, quantile: float) -> float:
    """Return the least share of its margin that a constraint keeps at x: 1 if all keep theirs, 0 if one keeps none."""
    if on.model.variances.size == 0:
        return 0.0
    margins = np.maximum(quantile * on.deviations(x), KEPT)
    return float(np.clip((KEPT - on.at(x).excess) / margins, 0.0, 1.0).min())


class _Search:
    """SLSQP on the elastic problem, in radii from the centre, for whichever constraints come near their limits."""

    def __init__(self, on: OnModel, region: Region, iterations: int, hope: float = 0.0) -> None:
        self.on, self.region, self.iterations, self.hope = on, region, iterations, hope
        self.reach = region.radius * region.sizes
        self.linear = linear_form(region.domain, region.centre.size)

    def solve(self, mu: float, start: Vector, margin: _Margin | None = None) -> tuple[Vector, float]:
        """Return the best x found and by how much constraints (with their margins) give way there."""
        if self.linear is None:
            x = self._projected(mu, start, margin)
            return x, max(float(self._excess(x, margin).max()), 0.0)
        nearest = np.maximum(self._excess(self.region.centre, margin), self._excess(start, margin))
        chosen = np.nonzero(nearest > -_NEAR)[0]
        x = start
        for _ in range(_ROUNDS):
            x = self._slsqp(self.linear, mu, x, chosen, margin)
            excess = self._excess(x, margin)
            give = max(float(excess[chosen].max(initial=0.0)), 0.0)
            missed = np.setdiff1d(np.nonzero(excess > give + KEPT)[0], chosen)
            if missed.size == 0:
                break
            chosen = np.union1d(chosen, missed)
        return x, max(float(self._excess(x, margin).max()), 0.0)

    def _excess(self, x: Vector, margin: _Margin | None) -> Vector:
        excess = self.on.at(x).excess + _INSIDE
        return excess if margin is None else excess + margin.at(self.on.model, x)[0]

    def _cost(self, x: Vector) -> tuple[float, Vector]:
        """Return the cost on the model, less what is hoped for."""
        at = self.on.at(x)
        if self.hope == 0.0:
            return at.cost, at.gradient
        variance, slope = self.on.model.spread(x)
        deviation = float(np.sqrt(variance + 1e-14))
        return at.cost - self.hope * deviation, at.gradient - (0.5 * self.hope / deviation) * slope

    def _slsqp(self, linear: Linear, mu: float, start: Vector, chosen: Any, margin: _Margin | None) -> Vector:
        from scipy.optimize import minimize

        on, centre, reach, n = self.on, self.region.centre, self.reach, start.size
        here = on.at(centre).cost
        lower, upper = linear.lower, linear.upper
        low, high = np.maximum((lower - centre) / reach, -1.0), np.minimum((upper - centre) / reach, 1.0)

        def point(z: Vector) -> Vector:
            return centre + z[:n] * reach

        def cost(z: Vector) -> tuple[float, Vector]:
            value, gradient = self._cost(point(z))
            return value - here + mu * float(z[n]), np.append(gradient * reach, mu)

        def room(z: Vector) -> Vector:
            return np.asarray(z[n] - self._excess(point(z), margin)[chosen])

        def room_slopes(z: Vector) -> Matrix:
            x = point(z)
            slopes = on.slopes(x, chosen)[0]
            if margin is not None:
                slopes = slopes + margin.at(on.model, x)[1][chosen]
            return np.column_stack([-slopes * reach, np.ones(len(chosen))])

        constraints: list[Any] = []
        if len(chosen):
            constraints.append({"type": "ineq", "fun": room, "jac": room_slopes})
        for kind, (left, right) in (("ineq", (linear.A, linear.b)), ("eq", (linear.C, linear.d))):
            if len(right):
                scaled = np.column_stack([-left * reach, np.zeros(len(right))])
                rest = right - left @ centre
                constraints.append({"type": kind, "fun": lambda z, a=scaled, b=rest: a @ z + b,
                                    "jac": lambda z, a=scaled: a})  # fmt: skip
        begin = np.minimum(np.maximum((start - centre) / reach, low), high)
        give = max(float(self._excess(start, margin)[chosen].max(initial=0.0)), 0.0)
        found = minimize(
            cost, np.append(begin, give), jac=True, method="SLSQP", constraints=constraints,
            bounds=[*zip(low, high, strict=True), (0.0, None)], options={"maxiter": self.iterations, "ftol": 1e-12},
        )  # fmt: skip
        x = np.minimum(np.maximum(point(found.x), lower), upper)
        if not np.isfinite(x).all():
            return start
        return x if bounds_of(self.region.domain, n) is not None else self.region.domain.project(x)

    def _projected(self, mu: float, start: Vector, margin: _Margin | None) -> Vector:
        """Minimise the merit with the largest violation rounded off, less and less, in any set that can be projected
        onto."""
        on, every = self.on, range(len(self.on.outcomes))
        x = start
        for width in _SMOOTHINGS:

            def rounded(x: Vector, width: float = width) -> tuple[float, Vector]:
                (cost, gradient), excess = self._cost(x), self._excess(x, margin)
                top = max(float(excess.max()), 0.0)
                shares = np.exp((excess - top) / width)
                total = float(np.exp(-top / width) + shares.sum())
                slopes = on.slopes(x, every)[0]
                if margin is not None:
                    slopes = slopes + margin.at(on.model, x)[1]
                value = cost + mu * (top + width * float(np.log(total)))
                return value, gradient + (mu / total) * (shares @ slopes)

            x = minimise(rounded, self.region, self.iterations, x).x
        return x


# ---- multipliers ----------------------------------------------------------------------------------------------------


def scaled_multipliers(on: OnModel, x: Vector, region: Region | None = None) -> Vector:
    """Return lambda >= 0 that, with normals of the set, come nearest to grad f + sum_k lambda_k grad g_k = 0.

    On the model, in the scales of cost and constraints; zero for constraints away from their limits. With a ``region``
    its bounds count as bounds of the set.
    """
    from scipy.optimize import nnls

    here = on.at(x)
    lambdas = np.zeros(len(on.outcomes))
    active: Any = np.nonzero(here.excess > -ACTIVE)[0]
    if active.size == 0:
        return lambdas
    sizes = on.model.geometry.sizes if region is None else region.sizes
    columns = np.vstack([on.slopes(x, active)[0], _normals(on.known.domain, x, region)]) * sizes
    scale = np.maximum(np.linalg.norm(columns, axis=1), 1e-300)
    found = nnls((columns / scale[:, None]).T, -here.gradient * sizes, maxiter=30 * len(columns))[0] / scale
    lambdas[active] = found[: active.size]
    return lambdas


def multipliers_at(on: OnModel, x: Vector) -> Vector:
    """Return the multipliers in the units of the problem: by how much F improves per unit of room in each g."""
    lambdas: Vector = scaled_multipliers(on, x) * on.scales.cost / on.scales.outcomes
    return lambdas


def _normals(domain: Domain, x: Vector, region: Region | None) -> Matrix:
    """Return outward normals of the set, and of the region, at x, one per row."""
    linear = linear_form(domain, x.size) or bounded(x.size)
    lower, upper = linear.lower, linear.upper
    if region is not None:
        reach = region.radius * region.sizes
        lower, upper = np.maximum(lower, region.centre - reach), np.minimum(upper, region.centre + reach)
    slack = 1e-9 * np.maximum(np.abs(x), 1e-3)
    unit = np.eye(x.size)
    tight = linear.A @ x >= linear.b - 1e-9 * np.maximum(np.abs(linear.b), 1e-3)
    return np.vstack([-unit[x <= lower + slack], unit[x >= upper - slack], linear.A[tight], linear.C, -linear.C])
