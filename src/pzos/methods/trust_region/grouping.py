"""Many decisions and few queries: decisions are moved together in groups, which are split where the answers move most.

With far more decisions than queries a direction drawn at random tells next to nothing, and x0 need not tell how far is
far. What is next to each other in the list of decisions is mostly alike (periods of a day, roads of a district), so all
are moved together first, as far as F falls, then blocks of them, halved once all were asked. Each of these queries may
be the next centre, and from all of them the model learns the slopes along the groups, which its minimiser combines.
Where a group moved the wrong way its halves go the other way: of so few answers the model knows too little to say.

How far groups are moved is their own scale, apart from the trust radius: single steps of the model may fail at every
small scale where moves of whole groups still lower F.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pzos.base.types import Vector
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task
from pzos.methods.trust_region.looking import region_of
from pzos.methods.trust_region.state import Group, Grouped, RegionState
from pzos.methods.trust_region.subproblem import Move, on_model

#: Up to this many decisions directions are asked one by one.
_MANY_DECISIONS = 300
#: Trials that fail before groups are asked at all; so many groups in a row for the next, doubled with each, up to 2^k.
_LOST, _DOUBLINGS = 2, 4
#: Where F fell: all decisions are moved on so many times as far, a block so many times.
_ALL_FURTHER, _FURTHER = 4.0, 2.0
#: The next group is moved further where F fell, less far where not, at least this share of the move of all together.
_WIDER, _NARROWER, _LEAST_SHARE = 1.25, 0.95, 0.25
#: Shorter than this share of what was meant: the set ends there. So many groups are tried for one that can move.
_MOVES, _TRIES = 0.1, 32
#: The share of the latest group in the mean of what moving one changes.
_LATEST = 0.3
_NAN = float("nan")


def due(state: RegionState, move: Move) -> bool:
    """Tell whether a group is asked next: because trials failed lately, or because groups bring more than the model."""
    if state.x.size <= _MANY_DECISIONS or not state.unstructured:
        return False
    if not state.groups:
        return state.losses >= _LOST or move.predicted <= 0.0
    turns = 2 ** min(state.losses - 1, _DOUBLINGS) if state.losses >= _LOST else 0
    return state.grouped < turns or move.predicted < state.effect


def grouped(task: Task, state: RegionState, model: ResponseModel) -> Grouped | None:
    """Return the next group and where it is moved to, on the side where f on the model is lower; None if none moves."""
    region = region_of(task, state, state.reach if state.groups else state.radius)
    objective = on_model(task.known.leader, task.known.sign, model)
    groups = state.groups or (Group(0, state.x.size),)
    for _ in range(_TRIES):
        chosen = _next(groups)
        if chosen is None:
            return None
        row, groups = chosen
        group, inside = groups[row], np.zeros(state.x.size)
        inside[group.first : group.last] = 1.0
        points = [(region.at(step, inside), step) for step in (group.step or 1.0, -(group.step or 1.0))]
        points = [(x, step) for x, step in points if region.size(x) > _MOVES * region.radius and not state.knows(x)]
        if points:
            x, step = points[0] if group.step else min(points, key=lambda at: objective(at[0])[0])
            return Grouped(x, row, _with(groups, row, replace(group, step=step)))
        groups = _with(groups, row, replace(group, moved=0.0))
    return None


def _with(groups: tuple[Group, ...], row: int, *instead: Group) -> tuple[Group, ...]:
    return (*groups[:row], *instead, *groups[row + 1 :])


def _next(groups: tuple[Group, ...]) -> tuple[int, tuple[Group, ...]] | None:
    """Return the first group not asked yet; where all were, half of the one that moved the answers most for its size.

    A small one moves them by chance alone, so that size counts, by its root.
    """
    for row, group in enumerate(groups):
        if np.isnan(group.moved):
            return row, groups
    divisible = [row for row, group in enumerate(groups) if group.size > 1]
    if not divisible:
        return None
    row = max(divisible, key=lambda row: groups[row].moved * groups[row].size ** 0.5)
    first, last, step = groups[row].first, groups[row].last, groups[row].step
    middle = (first + last) // 2
    return row, _with(groups, row, Group(first, middle, step), Group(middle, last, step))


def told(task: Task, before: RegionState, state: RegionState, asked: Grouped, x: Vector, y: Vector) -> RegionState:
    """Return the state with what the answer says about the group: further the same way where F fell, else the next."""
    leader, answer = task.known.leader, before.past.answers[before.centre]
    gain = task.known.sign * (before.value - leader.value(x, y))
    group = asked.groups[asked.row]
    everything = group.size == state.x.size
    reach, radius, least = state.reach if state.groups else before.radius, state.radius, state.least_reach
    if gain > 0.0:
        radius = max(radius, region_of(task, before).size(x))
        step = group.step * (_ALL_FURTHER if everything else _FURTHER)
        if everything:  # this is how far is far
            reach, step = reach * abs(group.step), step / abs(group.step)
            least = _LEAST_SHARE * reach
        else:
            reach *= _WIDER
        group = replace(group, step=step, moved=_NAN)
    else:
        moved = float(np.abs(leader(before.x, answer).grad_y * (y - answer)).sum())
        back = -group.step if abs(group.step) == 1.0 else 0.0  # further out, after F had fallen, it says nothing
        group = replace(group, step=back, moved=moved / abs(group.step))
        reach = reach if everything else max(_NARROWER * reach, least)
    effect = abs(gain) if not state.groups else (1.0 - _LATEST) * state.effect + _LATEST * abs(gain)
    return replace(
        state, groups=_with(asked.groups, asked.row, group), grouped=state.grouped + 1, effect=effect, reach=reach,
        least_reach=least, radius=radius,
    )  # fmt: skip
