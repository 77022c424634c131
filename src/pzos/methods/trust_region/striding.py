"""Strides: down the slope of the model, further than the trust region reaches, where steps inside it keep failing.

The trust region is a box, and its minimisers are corners: every decision moves as far as it may, however little its
slope is worth. Where many decisions have kinks, or slopes hardly known, some of these moves spoil the step at any
radius. A stride moves each decision by as much as its slope says: it is the minimiser of

    f(x + s, M(x + s)) + w |s|^2 / 2,    w so that without curvature the longest move is the size of the stride,

and its size is told by strides alone. Measured on routing games in docs/contributing/experiments.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pzos.base.types import Vector
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.descent import Objective
from pzos.methods.trust_region.state import RegionState
from pzos.methods.trust_region.subproblem import Move, minimise, on_model

#: With fewer decisions corners are near enough to the slope, and slopes that are lost are asked for anew.
_MANY_DECISIONS = 20
#: Strides take turns with steps in the trust region after so many failures in a row, and are so many times as wide.
_FAILURES, _WIDER = 2, 4.0
#: A stride fails if it keeps less than the first share of its promise, and the next is wider if it keeps the second.
_KEPT, _GOOD = 0.1, 0.4


def due(task: Task, state: RegionState) -> bool:
    """Tell whether it is the turn of a stride: after every second failure in a row, and until one fails.

    Not under noise, with a structure, or under constraints on outcomes: none of these was measured.
    """
    turn = state.succeeded and state.losses >= _FAILURES and state.losses % 2 == 0
    plain = task.known.outcomes is None and state.unstructured and not state.rough
    return turn and plain and state.x.size > _MANY_DECISIONS


def stride(task: Task, state: RegionState, model: ResponseModel, iterations: int) -> Move | None:
    """Return the next stride, or None where the model promises nothing."""
    objective, size = on_model(task.known.leader, task.known.sign, model), _size(state)
    value, gradient = objective(state.x)
    slopes = gradient * state.past.sizes
    steepest = float(np.abs(slopes).max())
    if steepest == 0.0:
        return None
    region = looking.region_of(task, state, size)
    x = minimise(_held(objective, state, steepest / size), region, iterations, region.at(-1.0, slopes / steepest)).x
    predicted = value - objective(x)[0]
    return Move(x, predicted, region.size(x)) if predicted > 0.0 else None


def told(state: RegionState, ratio: float) -> RegionState:
    """Return the state after a stride that kept this share of its promise."""
    if ratio < _KEPT:
        return replace(state, stride=0.5 * _size(state), losses=state.losses + 1)
    return replace(state, stride=(2.0 if ratio > _GOOD else 1.0) * _size(state))


def _size(state: RegionState) -> float:
    return max(state.stride, _WIDER * state.radius)


def _held(objective: Objective, state: RegionState, weight: float) -> Objective:
    """Return the objective plus weight/2 |s|^2, s being the way from the centre."""
    sizes = state.past.sizes

    def held(x: Vector) -> tuple[float, Vector]:
        value, gradient = objective(x)
        s = (x - state.x) / sizes
        return value + 0.5 * weight * float(s @ s), gradient + weight * s / sizes

    return held
