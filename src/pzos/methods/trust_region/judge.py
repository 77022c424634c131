"""Judging a trial of the composite trust region: accept or not, and the next radius; with and without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pzos.base.types import Vector, dot
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import History
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, fitter, point_limit

_SHRINK = 0.7
_FLOOR = 1e-4
_SUSPECT_FROM = 5
_SPARE = 2
Told = Sequence[tuple[Vector, Vector]]


def judged(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Return the state after the answers ``told``: history, structure contest, centre and radius."""
    history, contest = state.history, state.contest
    if history is None or contest is None:
        raise TypeError("the state has no history yet")
    if plan.kind is not Kind.REPEAT and told[0][0] is plan.points[0] and history.count > 1:
        change = float(np.linalg.norm(told[0][1] - history.answers[state.centre]))
        if change > 4.0 * np.sqrt(state.variance * told[0][1].size):  # else noise would be the judge
            contest = contest.observe(_errors(plan, max(change, 1e-300), told[0][1]))
    for x, y in told:
        history = history.append(x, y)
    state = replace(state, history=history, contest=contest, suspect=False)
    state = replace(state, probes=state.probes + 1 if plan.kind is Kind.PROBE else 0)
    if plan.kind is Kind.REPEAT:
        return _repeated(task, state, history)
    if state.exact is False:
        state = _judged_noisy(task, state, plan, told, points)
    else:
        state = _judged_exact(task, state, plan, told)
    kept, centre = history.trimmed(state.centre, _SPARE * point_limit(task.known.dimension, points))
    return replace(state, history=kept, centre=centre)


def _errors(plan: TrialPlan, change: float, y: Vector) -> dict[Shape, float]:
    return {shape: float(np.linalg.norm(guess - y)) / change for shape, guess in plan.predictions.items()}


def _repeated(task: Task, state: RegionState, history: History) -> RegionState:
    """Conclude from a repeated query whether the followers are noisy."""
    size = float(np.abs(history.answers).max())
    exact = bool(history.variance <= (1e-12 * size) ** 2)
    value = task.known.leader.value(state.x, history.answers[state.centre])
    return replace(state, exact=exact, value=value, tuned=0 if not exact else state.tuned)


def _judged_exact(task: Task, state: RegionState, plan: TrialPlan, told: Told) -> RegionState:
    leader, sign = task.known.leader, task.known.sign
    values = [sign * leader.value(x, y) for x, y in told]
    current = sign * state.value
    radius, suspect = state.radius, False
    if plan.step is not None and plan.kind is Kind.TRIAL:
        ratio = (current - values[0]) / plan.step.predicted
        radius = next_radius(state, plan.step.size, ratio, smallest_radius(state))
        suspect = ratio < 0.1 and state.exact is None and len(_rows(state)) >= _SUSPECT_FROM
    best = int(np.argmin(values))
    if plan.kind is Kind.PROBE and values[best] >= current:
        radius = max(_SHRINK * radius, smallest_radius(state))  # look closer: what is left to gain may be small
    state = replace(state, radius=radius, suspect=suspect)
    if values[best] < current:
        return replace(_moved(state, told[best][0], sign * values[best]), stalled=0)
    return replace(state, stalled=state.stalled + 1)


def smallest_radius(state: RegionState) -> float:
    """Return the radius below which no trust region shrinks."""
    return _FLOOR * state.scale


def _rows(state: RegionState) -> Vector:
    return np.zeros(0) if state.history is None else state.history.repeats


def next_radius(state: RegionState, size: float, ratio: float, floor: float) -> float:
    """Shrink after a failure, grow after a success at the boundary (recipe 3b)."""
    if ratio < 0.1:
        return max(_SHRINK * min(state.radius, size), floor)
    if ratio > 0.7 and size > 0.99 * state.radius:
        return 2.0 * state.radius
    return state.radius


def _moved(state: RegionState, x: Vector, value: float) -> RegionState:
    history = state.history
    centre = None if history is None else history.index_of(x)
    return state if centre is None else replace(state, x=x, value=value, centre=centre)


# ---- noise ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Smoothed:
    """F by the model, which averages the noise out, at the centre and at the trial point."""

    centre: float
    trial: float
    slack: float


def _smoothed(task: Task, state: RegionState, model: ResponseModel, x: Vector) -> _Smoothed:
    known, sigma = task.known, float(np.sqrt(state.variance))
    there = known.leader.value(x, model.clipped(x))
    here = known.leader(state.x, model.clipped(state.x))
    slope = float(np.sqrt(dot(here.grad_y, here.grad_y)))
    return _Smoothed(known.sign * here.value, known.sign * there, sigma * slope)


def _judged_noisy(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Compare values of the refitted model; move only if the observed F did not rise beyond the noise."""
    history, contest = state.history, state.contest
    if history is None or contest is None or plan.step is None:
        return state
    shape = contest.winner
    fit = fitter(task, history, points)
    model = fit.fit(history, state.centre, shape, state.scales.get(shape), plan.priors.get(shape))
    sign = task.known.sign
    for x, y in told[:1]:
        seen = _smoothed(task, state, model, x)
        slack = 0.5 * seen.slack
        observed = sign * task.known.leader.value(x, y)
        radius = state.radius
        if plan.kind is Kind.TRIAL:
            ratio = (seen.centre - seen.trial + slack) / (plan.step.predicted + slack)
            if ratio > 0.7 and plan.step.predicted <= slack:
                ratio = 0.5  # a promise within the noise is no reason to trust the model further out
            radius = next_radius(state, plan.step.size, ratio, _noise_floor(state, model))
        radius = min(max(radius, _noise_floor(state, model)), 4.0 * state.scale)
        state = replace(state, radius=radius, value=sign * seen.centre, slack=slack)
        if seen.trial < seen.centre and observed <= seen.centre + 3.0 * seen.slack:
            state = _moved(state, x, sign * seen.trial)
    return state


def _noise_floor(state: RegionState, model: ResponseModel) -> float:
    """Return the radius at which the answers change by as much as the noise."""
    slope = model.slope_size()
    floor = smallest_radius(state)
    return max(floor, float(np.sqrt(state.variance)) / slope) if slope > 0 else floor
