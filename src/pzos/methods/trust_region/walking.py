"""Walks: from the best answer down the slope of f alone, where answers rest between jumps.

Whole numbers, plans, who buys where: between its jumps such a response stays as it is. There f(x, y) with the answer y
of the best point is F itself, and what is best lies at the edge of such a cell, where one step more would make the
answer jump. The model, which smooths jumps, leads to the neighbourhood of an edge, but does not see it. A walk is the
minimiser of f(x, y) in a box around the best point, with a length of its own for each decision: longer for those that
moved in a walk that gained, shorter for those that moved in one that did not. After a failure only some decisions move,
drawn at random, so that in the end each stands at an edge of its own. Measured in docs/contributing/experiments.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pzos.base.keys import Role
from pzos.base.types import Vector
from pzos.methods.response_model.history import Flags
from pzos.methods.solver import Task
from pzos.methods.trust_region.descent import Objective
from pzos.methods.trust_region.state import RegionState, Walk
from pzos.methods.trust_region.subproblem import Move, Region, Unmoved, bounds_of, minimise, on_model

#: Walks begin after so many queries for each decision, with this share of a typical move.
_FOR_EACH, _FIRST = 2, 0.2
#: Answers rest if among so many of the nearest ones this share of what matters to f is the same to the bit.
_NEAREST, _AT_REST = 8, 0.3
#: After a failure each decision moves with this chance; a decision that went by less than this share of its length
#: did not move.
_MOVES, _MOVED = 0.5, 0.1
_SHORTER, _LONGER = 0.5, 1.4
#: After one that gained, the next is the next query but one; after failures in a row, after so many queries.
_SOON, _WAITS = 2, (3, 5)


def walk(task: Task, state: RegionState, iterations: int, least: float = 0.0) -> Move | None:
    """Return the next walk if one is due; None where f alone promises no more than ``least``, or where x is known.

    In a box, where answers jump, repeat themselves as far as is known, and rest around the best one. Not under
    constraints on outcomes, where the lowest f is not what is looked for, nor once a query had no answer: walks know
    nothing of where the followers answer.
    """
    plain = task.known.outcomes is None and bounds_of(task.known.domain, state.x.size) is not None and not state.refused
    jumps = plain and state.jumps > 0.0 and state.exact is not False
    if not jumps or state.step < max(state.walk.turn, _FOR_EACH * state.x.size):
        return None
    row = None if state.lowest is None else state.past.index_of(state.lowest[0])
    if row is None or not _rests(task, state, row):
        return None
    start, still = state.past.points[row], Unmoved(state.past.answers[row])
    objective = on_model(task.known.leader, task.known.sign, still)
    if state.walk.failed:
        moving = task.keys.generator(Role.PROBE, state.step).random(start.size) < _MOVES
        objective = _of_some(objective, start, moving)
    move = minimise(objective, Region(start, 1.0, _lengths(state), task.known.domain), iterations)
    return move if move.predicted > least and not state.knows(move.x) else None


def told(task: Task, state: RegionState, x: Vector, y: Vector) -> RegionState:
    """Return the state after a walk that led to x."""
    if state.lowest is None:
        return state
    start, lowest = state.lowest
    lengths = _lengths(state)
    moved = np.abs(x - start) > _MOVED * lengths
    gained = task.known.sign * (task.known.leader.value(x, y) - lowest) < 0.0
    lengths = np.where(moved, (_LONGER if gained else _SHORTER) * lengths, lengths)
    if gained:
        failed = state.walk.failed and not moved.all()
        return replace(state, walk=Walk(lengths, failed, 0, state.step + _SOON))
    losses = state.walk.losses + 1
    return replace(state, walk=Walk(lengths, True, losses, state.step + _WAITS[min(losses, len(_WAITS)) - 1]))


def _lengths(state: RegionState) -> Vector:
    """Return how far the next walk may move each decision."""
    return _FIRST * state.scale * state.past.sizes if state.walk.lengths is None else state.walk.lengths


def _rests(task: Task, state: RegionState, row: int) -> bool:
    """Tell whether the answers nearest to this one are the same in a good part of what matters to f."""
    past = state.past
    away = np.linalg.norm((past.points - past.points[row]) / past.sizes, axis=1)
    nearest = np.argsort(away, kind="stable")[1 : _NEAREST + 1]
    worth = np.abs(task.known.leader(past.points[row], past.answers[row]).grad_y) * past.answers.std(axis=0)
    same = (past.answers[nearest] == past.answers[row]).mean(axis=0)
    return float(same @ worth) > _AT_REST * float(worth.sum())


def _of_some(objective: Objective, start: Vector, moving: Flags) -> Objective:
    """Return the objective with the other decisions held: its gradient has no part in them, so that they rest."""

    def held(x: Vector) -> tuple[float, Vector]:
        value, gradient = objective(np.where(moving, x, start))
        return value, np.where(moving, gradient, 0.0)

    return held
