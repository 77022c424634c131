"""Composite trust region: the known f is minimised on a model of the response that remembers every answer.

Each step asks one query, at the minimiser of f(x, M(x)) within a trust region around the best point seen, where M
interpolates all answers so far (:mod:`pzos.methods.response_model`).
A failed step is corrected by the very query that failed.
Far fewer queries than the paper's methods, but no theorem: certify the end point (:mod:`pzos.stationarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import os
import numpy as np

from pzos.base.checks import check_fields, checked, one_of, positive, whole
from pzos.base.keys import Role
from pzos.base.threads import one_blas_thread
from pzos.base.types import LeaderValue, Matrix, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import first
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Foresight, Outcome, Stop, Task
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, models, opening_contest, point_limit, retuned, wide_model
from pzos.methods.trust_region.subproblem import (
    Move,
    Objective,
    Region,
    bounds_of,
    first_radius,
    minimise,
    on_model,
    typical_sizes,
)
from pzos.problem.structure import declared

Told = Sequence[tuple[Vector, Vector]]

_COUNT = whole(1, "or leave it out")
_NAN = float("nan")
_FAILURES = 5
_REFIT = 4
_ROUNDING = 0.01
_ROUNDING_BY_RADIUS = 0.03
_NEGLIGIBLE = 1e-14
_SHRINK = 0.7
_FLOOR = 1e-4
_SUSPECT_FROM = 5
_SPARE = 2
#: How much of the deviation of the model counts as hope; promises that unknown directions must outweigh; how near
#: the centre they are asked, in trust radii.
_HOPE = 0.3
_OUTWEIGHS = 0.3
_NEAR = float(os.environ.get('PZ_N','0.2'))
_TRIALS_BEFORE = 6

_LOST = int(os.environ.get('PZ_LOST','1'))
_FEW_DECISIONS = 40
#: How far beside the centre the followers are asked whether they repeat themselves, in trust radii.
_BESIDE = 1e-5
_STEEPER = 5.0
#: An answer so many deviations off, and by this share of how much answers vary, is asked for once more; the second
#: agrees with the first if it differs by less than this share of the surprise.
_WILD, _NOTABLE, _AGREES = 8.0, 1e-2, 0.1
#: After so many steps that gained less than this share of all that was gained, spare queries look far away.
_IDLE, _GAINS, _LOOKS, _CANDIDATES = 8, float(os.environ.get('PZ_G','1e-3')), int(os.environ.get('PZ_LOOKS','4')), 3000
_AFRESH, _NOTHING, _APART = 0.3, 1e-7, 0.05
_CERTIFIED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class CompositeTrustRegion:
    """One query per step, at the minimiser of the known f on a remembered response; ``batch`` > 1 asks several.

    ``points`` limits how many answers the model uses (default: 2 d_x, between 100 and 400), ``radius`` is the
    first trust radius (default: from the set, x0 and f), ``iterations`` those of the subproblem, and ``noisy``
    says whether the followers are (default: found out by one repeated query when a step first fails).
    """

    batch: int = checked(_COUNT, default=1)
    points: int | None = checked(whole(2, "or leave it out").or_none(), default=None)
    radius: float | None = checked(positive("or leave it out").or_none(), default=None)
    iterations: int = checked(_COUNT, default=16)
    noisy: bool | None = checked(one_of((None, True, False), "leave it out", "True, False or None"), default=None)

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, task: Task) -> RegionState:
        """Start at x0, with nothing known about the followers but what is declared."""
        declared(task.known.structure)
        return RegionState(task.known.x0, exact=None if self.noisy is None else not self.noisy)

    def stop(self, task: Task, state: RegionState) -> Stop | None:
        """Stop when probes all around the point, ever closer, found nothing to gain, or when queries keep failing."""
        if state.failed >= _FAILURES:
            return Stop.FAILURES
        ended = state.probes > task.known.dimension + 5 and state.radius <= smallest_radius(state)
        return Stop.CONVERGED if ended else None

    # ---- asking -------------------------------------------------------------------------------------------

    @one_blas_thread()
    def ask(self, task: Task, state: RegionState) -> TrialPlan:
        """Plan the model's minimiser; or x0, a repeated query, or a probe where the model promises nothing."""
        history = state.history
        if history is None:
            return TrialPlan((state.x,), (Kind.START.purpose,), Kind.START)
        unmeasured = state.exact is False and history.freedom == 0
        if unmeasured or (state.suspect and state.exact is None):
            return TrialPlan((_beside(task, state, state.x),), (Kind.REPEAT.purpose,), Kind.REPEAT)
        if state.surprise is not None:
            return TrialPlan((_beside(task, state, state.surprise),), (Kind.CHECK.purpose,), Kind.CHECK)
        rivals = models(task, state, self.points, state.shapes, state.priors, state.step % _REFIT == 0)
        model = rivals[state.shapes[0]]
        move = self._move(task, state, model, state.radius)
        doubt = _doubt(task, state, model)
        free = state.shapes[0] is Shape.FREE and state.unstructured
        unseen = self._unseen_worth(task, state, model, move, doubt) if free else None
        if model.factor is not None and state.unstructured and _looks_far(state):
            kind, point = Kind.LOOK, _far_look(task, state, self.points)
        elif unseen is not None:
            kind, point = Kind.EXPLORE, _explored(task, state, model, unseen)
        elif move.predicted <= _negligible(state) or move.size < 1e-9 * state.scale:
            kind, point = Kind.PROBE, _probe(task, state, model, 0)
        elif state.rough and state.step % 2 and (move.predicted < state.slack or (state.jumps > 0 < state.losses)):
            kind, point = Kind.SURVEY, _survey(task, state, move.x) if state.exact is False else _anywhere(task, state)
        elif free and not state.rough and history.count > task.known.dimension and doubt > 0.0:
            kind, move = Kind.TRIAL, self._hopeful(task, state, model, move, doubt)
            point = move.x
        else:
            kind, point = Kind.TRIAL, move.x
        if state.exact is not False and history.index_of(point) is not None:
            kind, point = Kind.PROBE, _anywhere(task, state)
        further = self._further(task, state, model, point)
        purposes = (kind.purpose,) + (Purpose.TRIAL,) * len(further)
        predictions = {shape: rival.clipped(point) for shape, rival in rivals.items()}
        priors = {shape: rival.prior for shape, rival in rivals.items()}
        deviation = model.deviation(point)
        return TrialPlan((point, *further), purposes, kind, move, predictions, priors, deviation)

    def _move(self, task: Task, state: RegionState, model: ResponseModel, radius: float) -> Move:
        known, region = task.known, _region(task, state, radius)
        objective = on_model(known.leader, known.sign, model)
        if model.kinked:
            # The model itself has kinks at the bounds of the answers, where a smooth minimiser stalls.
            corner = min(_ROUNDING * float(np.abs(model.base).mean()), _ROUNDING_BY_RADIUS * radius)
            rounded = on_model(known.leader, known.sign, model.rounded(corner))
            start = minimise(rounded, region, self.iterations).x
            move = minimise(objective, region, max(self.iterations // 3, 1), start)
            if move.predicted > _negligible(state):
                return move
        return minimise(objective, region, self.iterations)

    def _unseen_worth(
        self, task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float
    ) -> Vector | None:
        """Return a direction never asked that is worth a query, once a step has shown how far the model reaches."""
        n, count = task.known.dimension, state.past.count
        if not 1 < count <= n or not (state.succeeded or state.trials >= _TRIALS_BEFORE):
            return None
        unseen = _unseen(task, state, model)
        if unseen is None:
            return None
        lost = state.losses >= _LOST and n - count < 20
        return unseen if lost or _worth_exploring(task, state, model, move, doubt, unseen) else None

    def _hopeful(self, task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float) -> Move:
        """Return where f on the model, less a share of what the model does not know of it, is lowest."""
        known = task.known
        objective = on_model(known.leader, known.sign, model)

        signs = task.keys.generator(Role.REGION, state.step).uniform(-1.0, 1.0, state.x.size)
        region = _region(task, state)
        start = known.domain.project(move.x + 1e-3 * state.radius * signs * region.sizes)
        x = minimise(hopeful(objective, model, _HOPE * doubt), region, self.iterations, start).x
        here, there = objective(state.x)[0], objective(x)[0]
        return Move(x, here - there, region.size(x))

    def _further(self, task: Task, state: RegionState, model: ResponseModel, x: Vector) -> tuple[Vector, ...]:
        """Return batch - 1 more points: minimisers for other radii, probes where those coincide."""
        points = [x]
        for index in range(1, self.batch):
            factor = 2.0 ** (-(index + 1) // 2) if index % 2 else 2.0 ** (index // 2)
            other = self._move(task, state, model, factor * state.radius).x
            region = _region(task, state)
            apart = min(replace(region, centre=point).size(other) for point in points)
            if min(apart, region.size(other)) < 1e-2 * state.radius:
                other = _probe(task, state, model, index)
            points.append(other)
        return tuple(points[1:])

    # ---- telling ------------------------------------------------------------------------------------------

    @one_blas_thread()
    def tell(self, task: Task, state: RegionState, plan: Plan, answers: Answers) -> tuple[RegionState, Outcome]:
        """Take the answers into the history, judge the step, and move if F is lower there."""
        plan = of_kind(TrialPlan, plan)
        told = [(x, y) for x, y in zip(plan.points, answers, strict=True) if y is not None]
        if not told:
            radius = 0.5 * state.radius
            failed = replace(state, step=state.step + 1, radius=radius, failed=state.failed + 1)
            return failed, Outcome(plan.points[0], _NAN, _NAN, plan.move.size)
        x, y = told[0]
        value = task.known.leader.value(x, y)
        if plan.kind is Kind.START:
            moved = self._started(task, state, y, value)
        else:
            moved = judged(task, state, plan, told, self.points)
        moved = retuned(
            task, replace(moved, step=state.step + 1, failed=0, priors=plan.priors or state.priors), self.points
        )
        extras = {"radius": state.radius, "predicted": plan.move.predicted, "probe": float(plan.kind is not Kind.TRIAL)}
        if plan.kind is Kind.TRIAL:
            extras["accepted"] = float(moved.x is not state.x)
        return moved, Outcome(x, value, _NAN, plan.move.size, extras)

    def _started(self, task: Task, state: RegionState, y: Vector, value: float) -> RegionState:
        known = task.known
        sizes = typical_sizes(known.leader, known.x0, y, known.domain)
        scale = first_radius(known.leader, known.sign, known.x0, y, known.domain, sizes)
        return replace(
            state,
            value=value,
            first=value,
            history=first(known.x0, y, sizes),
            radius=scale if self.radius is None else self.radius,
            scale=scale if self.radius is None else self.radius,
            contest=opening_contest(task, y.size),
        )

    def informed(self, task: Task, state: RegionState, answers: Told) -> RegionState:
        """Take answers from elsewhere into the history, and move to the lowest F among them if it is lower."""
        history = state.past
        fresh = [(x, y) for x, y in answers if history.index_of(x) is None]
        for x, y in fresh:
            history = history.append(x, y)
        state, sign = replace(state, history=history), task.known.sign
        values = [sign * task.known.leader.value(x, y) for x, y in fresh]
        if values and state.exact is not False and min(values) < sign * state.value:
            state = _moved(state, fresh[int(np.argmin(values))][0], sign * min(values))
        kept, centre = history.trimmed(state.centre, _SPARE * point_limit(task.known.dimension, self.points))
        return replace(state, history=kept, centre=centre)

    # ---- for a certificate --------------------------------------------------------------------------------

    def foresight(self, task: Task, state: RegionState) -> Foresight | None:
        """Return (x, at) -> (dM/dx)' grad_y f at x: the model's prediction of J' grad_y f."""
        if state.history is None:
            return None
        (model,) = models(task, state, None, (state.contest.winner,), state.priors).values()

        @one_blas_thread()
        def predicted(x: Vector, at: LeaderValue) -> Vector:
            return model.response_and_pull(x)[1](at.grad_y)

        return predicted

    def certifying_radius(self, state: RegionState) -> float | None:
        """Return a hundredth of the scale of x that was found, and under noise at least the trust radius."""
        if state.history is None:
            return None
        return max(_CERTIFIED_SHARE * state.scale, state.radius if state.exact is False else 0.0)


def _region(task: Task, state: RegionState, radius: float | None = None) -> Region:
    radius = state.radius if radius is None else radius
    return Region(state.x, radius, state.past.sizes, task.known.domain)


def _negligible(state: RegionState) -> float:
    """Return the promise below which a minimiser of the model is not worth a query."""
    return _NEGLIGIBLE * max(abs(state.value), 1e-3)


def _probe(task: Task, state: RegionState, model: ResponseModel, index: int) -> Vector:
    """Return a point at the trust radius in a random direction, kept away from directions already asked."""
    v = task.keys.direction(state.step, index, state.x.size, Role.PROBE)
    seen = model.geometry
    if 0 < seen.count < state.x.size:
        gram = seen.gram + 1e-8 * np.eye(seen.count)
        v = v - np.linalg.solve(gram, seen.units @ v) @ seen.units
        v /= float(np.linalg.norm(v))
    direction: Vector = v / max(float(np.abs(v).max()), 1e-300)
    return _region(task, state).at(0.5, direction)


def _doubt(task: Task, state: RegionState, model: ResponseModel) -> float:
    """Return the deviation of F that a unit slope of unknown direction stands for: sqrt(sum_j var_j (df/dy_j)^2)."""
    if model.variances.size == 0:
        return 0.0
    pull = task.known.leader(state.x, state.past.answers[state.centre]).grad_y
    return float(np.sqrt(np.maximum(model.variances, 0.0) @ (pull * pull)))


def _unseen(task: Task, state: RegionState, model: ResponseModel) -> Vector | None:
    """Return a random unit direction orthogonal to all that were asked from the centre; None if there is none."""
    v = task.keys.direction(state.step, 0, state.x.size, Role.PROBE)
    units = model.geometry.units
    for _ in range(2):  # once more, because of rounding
        v = v - np.linalg.lstsq(units.T, v, rcond=None)[0] @ units
    size = float(np.linalg.norm(v))
    return v / size if size > 1e-6 else None


def _worth_exploring(
    task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float, unseen: Vector
) -> bool:
    """Tell whether what a direction never asked may bring outweighs the promise of those that were.

    It brings at most what half a deviation of its slope is worth, less what f and the model lose on the way.
    """
    if doubt == 0.0:
        return True
    known = task.known
    objective = on_model(known.leader, known.sign, model)
    at_best = objective(move.x)[0]
    region = replace(_region(task, state), centre=move.x)
    gain = 0.0
    for share in (1.0, 0.5, 0.25, 0.125, 0.0625):
        for sign in (1.0, -1.0):
            point = region.at(sign * share * 0.5 * float(np.sqrt(state.x.size)), unseen)
            way = float(np.linalg.norm((point - move.x) / region.sizes))
            gain = max(gain, 0.5 * doubt * way - (objective(point)[0] - at_best))
    patience = max(_OUTWEIGHS, (state.x.size - state.past.count) / _FEW_DECISIONS)
    return gain > patience * move.predicted


def _explored(task: Task, state: RegionState, model: ResponseModel, unseen: Vector) -> Vector:
    """Return a point close to the centre in a direction never asked: a clean slope, taken where F looks lower."""
    known = task.known
    region, share = _region(task, state), _telling_share(state) * 3.0 ** min(state.flat, 6)
    objective = on_model(known.leader, known.sign, model)
    points = [region.at(sign * share, unseen) for sign in (1.0, -1.0)]
    moved = [region.size(point) for point in points]
    if min(moved) < 0.1 * max(moved):
        return points[int(np.argmax(moved))]
    return points[int(np.argmin([objective(point)[0] for point in points]))]


def _looks_far(state: RegionState) -> bool:
    """Tell whether it is the turn of far looks: after some idle steps, in turns with local ones."""
    idle = state.idle - min(_IDLE, state.x.size)
    local = _LOOKS if idle < 4 * _LOOKS else 1
    return idle >= 0 and idle % (_LOOKS + local) < _LOOKS and state.x.size <= _FEW_DECISIONS


def _telling_share(state: RegionState) -> float:
    """Return how many trust radii away an answer tells a slope: near for a clean one, further out under noise."""
    if not state.rough:
        return _NEAR
    slope = state.past.steepness(state.centre, state.variance)
    telling = 4.0 * float(np.sqrt(state.variance)) / max(slope * state.radius, 1e-300)
    return min(max(telling, _NEAR), 1.0)


def _far_look(task: Task, state: RegionState, limit: int | None) -> Vector:
    """Return a point anywhere in the set where F may be lowest: on the model, less a deviation of what it does not know.

    The best of random points (in the box, at its corners, around the best point), and what is best near it.
    """
    known, sizes = task.known, state.past.sizes
    reach = max(float(np.max(np.abs(state.x - known.x0) / sizes)), state.scale)
    model = wide_model(task, state, _APART * reach, limit)
    points = np.array([known.domain.project(x) for x in _candidates(task, state, reach)])
    answers, variances = model.at_many(points)
    scores, doubts = np.full(len(points), np.inf), np.zeros(len(points))
    for k, (x, y) in enumerate(zip(points, answers, strict=True)):
        try:
            with np.errstate(all="ignore"):
                at = known.leader(x, y)
        except (ArithmeticError, ValueError):
            continue
        doubts[k] = np.sqrt(np.maximum(model.variances, 0.0) @ (at.grad_y * at.grad_y))
        scores[k] = known.sign * at.value - doubts[k] * np.sqrt(variances[k])
    best = int(np.argmin(scores))
    region = Region(points[best], 0.5 * reach, sizes, known.domain)
    lowered = hopeful(on_model(known.leader, known.sign, model), model, float(doubts[best]))
    return minimise(lowered, region, 8).x


def _candidates(task: Task, state: RegionState, reach: float) -> Matrix:
    """Draw points all over a bounded box, at its corners, and around the best point as far as the search has come."""
    n = state.x.size
    draw = task.keys.generator(Role.REGION, state.step, 1)
    count = int(min(max(_CANDIDATES / n, 10), 100))
    around = state.x + reach * state.past.sizes * draw.standard_normal((count, n))
    bounds = bounds_of(task.known.domain, n)
    if bounds is None or not np.isfinite(bounds[1] - bounds[0]).all():
        return around
    width = bounds[1] - bounds[0]
    inside = bounds[0] + width * draw.random((count, n))
    corners = bounds[0] + width * np.round(draw.random((count, n)))
    return np.concatenate([around, inside, corners])


def hopeful(objective: Objective, model: ResponseModel, doubt: float) -> Objective:
    """Return f on the model less ``doubt`` times the deviation of the process."""

    def lowered(x: Vector) -> tuple[float, Vector]:
        value, gradient = objective(x)
        variance, slope = model.spread(x)
        deviation = doubt * float(np.sqrt(variance))
        if variance <= 1e-14:
            return value - deviation, gradient
        return value - deviation, gradient - (0.5 * deviation / variance) * slope

    return lowered


def _beside(task: Task, state: RegionState, x: Vector) -> Vector:
    """Return a point so close to x that a continuous response can hardly tell them apart; x itself under noise."""
    if state.exact is False:
        return x
    direction = task.keys.direction(state.step, 0, state.x.size, Role.PROBE)
    return replace(_region(task, state), centre=x).at(_BESIDE, direction / float(np.abs(direction).max()))


def _anywhere(task: Task, state: RegionState) -> Vector:
    """Return a random point of the trust region."""
    signs = task.keys.generator(Role.PROBE, state.step, 1).uniform(-1.0, 1.0, state.x.size)
    return _region(task, state).at(1.0, signs)


def _survey(task: Task, state: RegionState, x: Vector) -> Vector:
    """Return a corner of the trust region around x: under noise only far points tell slopes."""
    signs: Vector = 2.0 * task.keys.generator(Role.PROBE, state.step).integers(0, 2, x.size).astype(np.float64) - 1.0
    return replace(_region(task, state), centre=x).at(1.0, signs)


# ---- judging: accept or not, and the next radius ------------------------------------------------------------------


def judged(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Return the state after the answers ``told``: history, structure contest, centre and radius."""
    history, contest = state.past, state.contest
    x, y = told[0]
    if plan.kind is not Kind.REPEAT and x is plan.points[0] and history.count > 1:
        change = float(np.linalg.norm(y - history.answers[state.centre]))
        if change > 4.0 * np.sqrt(state.variance * y.size):  # else noise would be the judge
            missed = {shape: float(np.linalg.norm(guess - y)) / max(change, 1e-300) for shape, guess in plan.predictions.items()}
            if plan.kind is Kind.TRIAL:
                v = task.known.leader.value(x, y)
                span = max(abs(v - state.value), abs(plan.move.predicted), 1e-300)
                for shape, guess in plan.predictions.items():
                    try:
                        e = abs(task.known.leader.value(x, guess) - v) / span
                    except (ArithmeticError, ValueError):
                        e = 10.0
                    missed[shape] = float(np.sqrt(missed[shape] * min(e, 100.0)))
            contest = contest.observe(missed)
    unmoved = bool((y == history.answers[state.centre]).all())
    if plan.kind is Kind.REPEAT:
        return _repeated(task, state, x, y)
    if plan.kind is Kind.CHECK:
        return _checked(task, state, y)
    state = _surprised(state, plan, x, y)
    for x, y in told:
        history = history.append(x, y)
    probes = state.probes + 1 if plan.kind is Kind.PROBE else 0
    state = replace(state, history=history, contest=contest, suspect=False, probes=probes)
    state = replace(state, flat=state.flat + 1 if unmoved else 0)
    state = replace(state, jumps=0.0 if state.exact is False else max(history.jumpiness(), state.blur))
    before = task.known.sign * state.value
    if state.rough:
        state = _judged_noisy(task, state, plan, told, points)
    else:
        state = _judged_exact(task, state, plan, told)
    gain, gained = before - task.known.sign * state.value, task.known.sign * (state.first - state.value)
    if gain > _GAINS * gained:
        state = replace(state, idle=0)
    elif plan.kind is not Kind.TRIAL or state.losses > 0 or plan.move.predicted < _NOTHING * gained:
        state = replace(state, idle=state.idle + 1)
    if plan.kind is Kind.LOOK and gain > 0.0:
        state = replace(state, radius=max(state.radius, _AFRESH * state.scale))
    kept, centre = history.trimmed(state.centre, _SPARE * point_limit(task.known.dimension, points))
    return replace(state, history=kept, centre=centre)


def _repeated(task: Task, state: RegionState, x: Vector, y: Vector) -> RegionState:
    """Conclude from a query at the centre, or just beside it, whether the followers are noisy.

    Beside it an answer may change by what slopes like those seen so far account for. What changes by far more is
    noise, or so rough that it must be treated like noise; then the answer counts as one more at the centre.
    """
    history = state.past
    change = float(np.sqrt(np.mean((y - history.answers[state.centre]) ** 2)))
    moved = float(np.linalg.norm((x - state.x) / history.sizes))
    squared, distances = history.rises(state.centre)
    slope = float(np.max(np.sqrt(squared) / distances, initial=0.0))
    rounding = 1e-12 * float(np.abs(history.answers).max())
    noisy = state.exact is False or change > max(_STEEPER * slope * moved, rounding)
    history = history.append(state.x if noisy else x, y)
    value = task.known.leader.value(state.x, history.answers[state.centre])
    return replace(state, history=history, exact=not noisy, suspect=False, value=value, tuned=0 if noisy else state.tuned)


def _surprised(state: RegionState, plan: TrialPlan, x: Vector, y: Vector) -> RegionState:
    """Note an answer that is many deviations away from what the model expected: it will be asked for once more."""
    guess = plan.predictions.get(state.shapes[0])
    if guess is None or state.past.count < _SUSPECT_FROM or x is not plan.points[0]:
        return state
    miss = float(np.sqrt(np.mean((y - guess) ** 2)))
    spread = float(np.sqrt(np.mean(np.var(state.past.answers, axis=0))))
    wild = miss > _WILD * plan.deviation > 0.0 and miss > _NOTABLE * spread
    return replace(state, surprise=x, miss=miss) if wild else state


def _checked(task: Task, state: RegionState, y: Vector) -> RegionState:
    """Conclude from a second answer to a surprising query whether the first was right; else it takes its place."""
    leader, sign, history = task.known.leader, task.known.sign, state.past
    row = None if state.surprise is None else history.index_of(state.surprise)
    state = replace(state, surprise=None, tuned=0)
    if row is None or float(np.sqrt(np.mean((y - history.answers[row]) ** 2))) <= _AGREES * state.miss:
        return state
    history = history.replaced(row, y)
    values = [sign * leader.value(x, y) for x, y in zip(history.points, history.answers, strict=True)]
    best = int(np.argmin(values))
    return replace(state, history=history, x=history.points[best], value=sign * values[best], centre=best)


def _judged_exact(task: Task, state: RegionState, plan: TrialPlan, told: Told) -> RegionState:
    """Compare F at the trial with what the model promised, and move to the lowest F that was seen."""
    leader, sign = task.known.leader, task.known.sign
    values = [sign * leader.value(x, y) for x, y in told]
    current = sign * state.value
    radius, suspect = state.radius, False
    if plan.kind is Kind.TRIAL:
        ratio = (current - values[0]) / max(plan.move.predicted, 1e-300)
        state = tried(state, ratio)
        radius = next_radius(state, plan.move.size, ratio, smallest_radius(state))
        suspect = state.losses >= int(os.environ.get('PZ_S','1')) and state.exact is None and state.past.count >= _SUSPECT_FROM
    best = int(np.argmin(values))
    if plan.kind is Kind.PROBE and values[best] >= current:
        radius = max(_SHRINK * radius, smallest_radius(state))  # look closer: what is left to gain may be small
    state = replace(state, radius=radius, suspect=suspect)
    if values[best] < current:
        return replace(_moved(state, told[best][0], sign * values[best]), stalled=0)
    return replace(state, stalled=state.stalled + 1)


def _judged_noisy(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Compare F by the refitted model, which averages noise out; move only if F as observed did not clearly rise."""
    leader, sign = task.known.leader, task.known.sign
    (model,) = models(task, state, points, (state.contest.winner,), plan.priors).values()
    x, y = told[0]
    here = leader(state.x, model.clipped(state.x))
    centre, trial = sign * here.value, sign * leader.value(x, model.clipped(x))
    sigma = float(np.sqrt(state.variance))
    noise = sigma * float(np.sqrt(dot(here.grad_y, here.grad_y)))  # of F, to first order
    slack, slope = 0.5 * noise, state.past.steepness(state.centre, state.variance)
    # Below this radius the answers change by less than the noise.
    reach = (4.0 if state.jumps > 0.0 else 1.0) * sigma
    floor = max(smallest_radius(state), reach / slope) if slope > 0 else smallest_radius(state)
    radius = state.radius
    if plan.kind is Kind.TRIAL:
        ratio = (centre - trial + slack) / (plan.move.predicted + slack)
        if ratio > 0.7 and plan.move.predicted <= slack:
            ratio = 0.5  # a promise within the noise is no reason to trust the model further out
        state = tried(state, ratio)
        radius = next_radius(state, plan.move.size, ratio, floor)
    radius = min(max(radius, floor), 4.0 * state.scale)
    state = replace(state, radius=radius, value=sign * centre, slack=slack)
    lower = trial < centre and sign * leader.value(x, y) <= centre + 3.0 * noise
    return _moved(state, x, sign * trial) if lower else state


def smallest_radius(state: RegionState) -> float:
    """Return the radius below which no trust region shrinks."""
    return _FLOOR * state.scale


def tried(state: RegionState, ratio: float) -> RegionState:
    """Count trials, and those in a row that did not keep their promise."""
    failed = ratio < 0.1
    losses = state.losses + 1 if failed else 0
    return replace(state, losses=losses, trials=state.trials + 1, succeeded=state.succeeded or not failed)


def next_radius(state: RegionState, size: float, ratio: float, floor: float) -> float:
    """Shrink after a failure, grow after a success at the boundary (recipe 3b).

    Without structure a short step that fails says little about the whole region; but until a first step has
    succeeded the region may be far too wide, and shrinks to where a parabola through the failure has its minimum.
    """
    if ratio < 0.1:
        shrunk = _SHRINK * min(state.radius, size)
        if state.unstructured:
            kept = 0.3 if state.succeeded else 0.1
            worse = ratio < float(os.environ.get('PZ_W','-1.0'))
            factor = _SHRINK if state.succeeded and not worse else min(max(0.5 / (1.0 - ratio), kept), _SHRINK)
            shrunk = max(factor * min(state.radius, size), kept * state.radius)
        return max(shrunk, floor)
    if ratio > 0.7 and size > 0.99 * state.radius:
        return 2.0 * state.radius
    return state.radius


def _moved(state: RegionState, x: Vector, value: float) -> RegionState:
    centre = state.past.index_of(x)
    return state if centre is None else replace(state, x=x, value=value, centre=centre)
