"""Composite trust region: the known f is minimised on a model of the response that remembers every answer.

Each step asks one query, at the minimiser of f(x, M(x)) within a trust region around the best point seen, where M
interpolates all answers so far (:mod:`pzos.methods.response_model`).
A failed step is corrected by the very query that failed.
Far fewer queries than the paper's methods, but no theorem: certify the end point (:mod:`pzos.stationarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pzos.base.checks import check_fields, checked, one_of, positive, whole
from pzos.base.keys import Role
from pzos.base.threads import one_blas_thread
from pzos.base.types import LeaderValue, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.response_model.history import History, first
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Foresight, Outcome, Stop, Task
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, models, opening_contest, point_limit, retuned
from pzos.methods.trust_region.subproblem import Move, first_radius, minimise, on_model
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
            return TrialPlan((state.x,), (Kind.REPEAT.purpose,), Kind.REPEAT)
        rivals = models(task, state, self.points, state.shapes, state.priors, state.step % _REFIT == 0)
        model = rivals[state.shapes[0]]
        move = self._move(task, state, model, state.radius)
        if move.predicted <= _negligible(state) or move.size < 1e-9 * state.scale:
            kind, point = Kind.PROBE, _probe(task, state, model, 0)
        elif state.exact is False and move.predicted < state.slack and state.step % 2:
            kind, point = Kind.SURVEY, _survey(task, state, move.x)
        else:
            kind, point = Kind.TRIAL, move.x
        further = self._further(task, state, model, point)
        purposes = (kind.purpose,) + (Purpose.TRIAL,) * len(further)
        predictions = {shape: rival.clipped(point) for shape, rival in rivals.items()}
        priors = {shape: rival.prior for shape, rival in rivals.items()}
        return TrialPlan((point, *further), purposes, kind, move, predictions, priors)

    def _move(self, task: Task, state: RegionState, model: ResponseModel, radius: float) -> Move:
        known = task.known
        objective = on_model(known.leader, known.sign, model)
        if model.kinked:
            # The model itself has kinks at the bounds of the answers, where a smooth minimiser stalls.
            corner = min(_ROUNDING * float(np.abs(model.base).mean()), _ROUNDING_BY_RADIUS * radius)
            rounded = on_model(known.leader, known.sign, model.rounded(corner))
            start = minimise(rounded, state.x, radius, known.domain, self.iterations).x
            move = minimise(objective, state.x, radius, known.domain, max(self.iterations // 3, 1), start)
            if move.predicted > _negligible(state):
                return move
        return minimise(objective, state.x, radius, known.domain, self.iterations)

    def _further(self, task: Task, state: RegionState, model: ResponseModel, x: Vector) -> tuple[Vector, ...]:
        """Return batch - 1 more points: minimisers for other radii, probes where those coincide."""
        points = [x]
        for index in range(1, self.batch):
            factor = 2.0 ** (-(index + 1) // 2) if index % 2 else 2.0 ** (index // 2)
            other = self._move(task, state, model, factor * state.radius).x
            apart = min(float(np.abs(other - point).max()) for point in points)
            near_centre = float(np.abs(other - state.x).max())
            if min(apart, near_centre) < 1e-2 * state.radius:
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
        scale = first_radius(known.leader, known.sign, known.x0, y, known.domain)
        return replace(
            state,
            value=value,
            history=first(known.x0, y),
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


def _negligible(state: RegionState) -> float:
    """Return the promise below which a minimiser of the model is not worth a query."""
    return _NEGLIGIBLE * max(abs(state.value), 1e-3)


def _probe(task: Task, state: RegionState, model: ResponseModel, index: int) -> Vector:
    """Return a point at the trust radius in a random direction, kept away from directions already asked."""
    domain, keys = task.known.domain, task.keys
    v = keys.direction(state.step, index, state.x.size, Role.PROBE)
    seen = model.geometry
    if 0 < seen.count < state.x.size:
        gram = seen.gram + 1e-8 * np.eye(seen.count)
        v = v - np.linalg.solve(gram, seen.units @ v) @ seen.units
        v /= float(np.linalg.norm(v))
    reach = state.radius / max(float(np.abs(v).max()), 1e-300) * 0.5
    return domain.project(state.x + reach * v)


def _survey(task: Task, state: RegionState, x: Vector) -> Vector:
    """Return a corner of the trust region around x: under noise only far points tell slopes."""
    signs = 2.0 * task.keys.generator(Role.PROBE, state.step).integers(0, 2, x.size) - 1.0
    return task.known.domain.project(x + state.radius * signs)


# ---- judging: accept or not, and the next radius ------------------------------------------------------------------


def judged(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Return the state after the answers ``told``: history, structure contest, centre and radius."""
    history, contest = state.past, state.contest
    x, y = told[0]
    if plan.kind is not Kind.REPEAT and x is plan.points[0] and history.count > 1:
        change = float(np.linalg.norm(y - history.answers[state.centre]))
        if change > 4.0 * np.sqrt(state.variance * y.size):  # else noise would be the judge
            missed = {shape: float(np.linalg.norm(guess - y)) for shape, guess in plan.predictions.items()}
            contest = contest.observe({shape: miss / max(change, 1e-300) for shape, miss in missed.items()})
    for x, y in told:
        history = history.append(x, y)
    probes = state.probes + 1 if plan.kind is Kind.PROBE else 0
    state = replace(state, history=history, contest=contest, suspect=False, probes=probes)
    if plan.kind is Kind.REPEAT:
        return _repeated(task, state, history)
    if state.exact is False:
        state = _judged_noisy(task, state, plan, told, points)
    else:
        state = _judged_exact(task, state, plan, told)
    kept, centre = history.trimmed(state.centre, _SPARE * point_limit(task.known.dimension, points))
    return replace(state, history=kept, centre=centre)


def _repeated(task: Task, state: RegionState, history: History) -> RegionState:
    """Conclude from a repeated query whether the followers are noisy."""
    size = float(np.abs(history.answers).max())
    exact = bool(history.variance <= (1e-12 * size) ** 2)
    value = task.known.leader.value(state.x, history.answers[state.centre])
    return replace(state, exact=exact, value=value, tuned=0 if not exact else state.tuned)


def _judged_exact(task: Task, state: RegionState, plan: TrialPlan, told: Told) -> RegionState:
    """Compare F at the trial with what the model promised, and move to the lowest F that was seen."""
    leader, sign = task.known.leader, task.known.sign
    values = [sign * leader.value(x, y) for x, y in told]
    current = sign * state.value
    radius, suspect = state.radius, False
    if plan.kind is Kind.TRIAL:
        ratio = (current - values[0]) / plan.move.predicted
        radius = next_radius(state, plan.move.size, ratio, smallest_radius(state))
        suspect = ratio < 0.1 and state.exact is None and state.past.count >= _SUSPECT_FROM
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
    slack, slope = 0.5 * noise, model.slope_size()
    # Below this radius the answers change by less than the noise.
    floor = max(smallest_radius(state), sigma / slope) if slope > 0 else smallest_radius(state)
    radius = state.radius
    if plan.kind is Kind.TRIAL:
        ratio = (centre - trial + slack) / (plan.move.predicted + slack)
        if ratio > 0.7 and plan.move.predicted <= slack:
            ratio = 0.5  # a promise within the noise is no reason to trust the model further out
        radius = next_radius(state, plan.move.size, ratio, floor)
    radius = min(max(radius, floor), 4.0 * state.scale)
    state = replace(state, radius=radius, value=sign * centre, slack=slack)
    lower = trial < centre and sign * leader.value(x, y) <= centre + 3.0 * noise
    return _moved(state, x, sign * trial) if lower else state


def smallest_radius(state: RegionState) -> float:
    """Return the radius below which no trust region shrinks."""
    return _FLOOR * state.scale


def next_radius(state: RegionState, size: float, ratio: float, floor: float) -> float:
    """Shrink after a failure, grow after a success at the boundary (recipe 3b)."""
    if ratio < 0.1:
        return max(_SHRINK * min(state.radius, size), floor)
    if ratio > 0.7 and size > 0.99 * state.radius:
        return 2.0 * state.radius
    return state.radius


def _moved(state: RegionState, x: Vector, value: float) -> RegionState:
    centre = state.past.index_of(x)
    return state if centre is None else replace(state, x=x, value=value, centre=centre)
