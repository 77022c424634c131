"""Where answers are to be expected: on this side of a border between points told and points without an answer.

A simulation may not converge, or a market may not clear, on part of the set. Nothing is known of that part but points
in it, and no value is made up for them: the next queries stay on the near side of the plane that keeps the points told
furthest apart from those without an answer, as far as the trust region reaches. Where no plane does, they stay nearer
to the centre than to any point without an answer.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from pzos.base.errors import InvalidInput
from pzos.base.types import Matrix, Vector
from pzos.methods.solver import Task
from pzos.methods.trust_region.state import RegionState
from pzos.problem.intersections import Intersection
from pzos.problem.polyhedra import Polyhedron
from pzos.problem.sets import Domain

#: An answer from so many times nearer than the centre was contradicts a query without one: that failed by chance, or
#: at a border that has been found since.
_MUCH_NEARER = 0.25
#: Which share of the gap between the points told and those without an answer is entered; of what is entered after a
#: failure, or where queries fail often, this share.
_ENTERED = 0.3
#: With more decisions the search in such a part of the set takes too long: there the radius is halved, no more.
_MOST_DECISIONS = 60
#: How much it counts that shares sum to 1, in the size of the numbers that are shared.
_SUM = 1e3


def answering(task: Task, state: RegionState, radius: float) -> Domain:
    """Return the part of the set, within ``radius`` of the centre, where answers are to be expected."""
    past, domain = state.past, task.known.domain
    if not state.refused or state.x.size > _MOST_DECISIONS:
        return domain
    reach = radius * past.sizes
    refused = np.array([(refusal.point - state.x) / reach for refusal in state.refused if _counts(state, *refusal)])
    if refused.size == 0:
        return domain
    lengths = np.linalg.norm(refused, axis=1)
    if not lengths.all():  # a trust region so wide that all else is rounding beside it
        return domain
    reached = np.abs(refused).sum(axis=1) > _ENTERED * lengths**2  # by the trust region, a box: its plane below
    if not reached.any():
        return domain
    told = (past.points - state.x) / reach
    near = np.linalg.norm(told, axis=1) <= lengths[reached].max()
    share = _ENTERED ** (1 + state.failed + state.often_refused)
    normals, room = (
        _border(told, refused, share)
        or _border(told[near], refused[reached], share)
        or _nearer(refused[reached], share)
    )
    rows = normals / reach
    try:
        return Intersection([domain, Polyhedron(rows, room + rows @ state.x)])
    except InvalidInput:  # in a trust region so wide that rounding leaves no point between the planes
        return domain


def in_between(state: RegionState) -> Vector | None:
    """Return the point half way to the nearest one told, where an answer is as good as certain; None without another.

    After many failures in a row it tells a border, which is left again, from followers that answer no more.
    """
    others = np.delete(state.past.points, state.centre, axis=0)
    if len(others) == 0:
        return None
    nearest = others[int(np.argmin(np.linalg.norm((others - state.x) / state.past.sizes, axis=1)))]
    return np.asarray(0.5 * (state.x + nearest))


def _counts(state: RegionState, point: Vector, away: float) -> bool:
    """Tell whether no answer has come from much nearer to a point without one."""
    nearest = np.linalg.norm((state.past.points - point) / state.past.sizes, axis=1).min()
    return bool(nearest >= _MUCH_NEARER * away)


def _border(told: Matrix, refused: Matrix, share: float) -> tuple[Matrix, Vector] | None:
    """Return a plane across the way between the nearest points of the two hulls; None if none is in between."""
    hulls = np.concatenate([told, -refused]).T
    ours = np.arange(len(told) + len(refused)) < len(told)
    weight = _SUM * float(np.abs(hulls).max())
    sums = np.append(np.zeros(told.shape[1]), [weight, weight])
    shares, _ = nnls(np.vstack([hulls, weight * ours, weight * ~ours]), sums)
    way = -(hulls @ shares)
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return None
    normal = way / length
    ends, begins = float((told @ normal).max()), float((refused @ normal).min())
    return (normal[None], np.array([ends + share * (begins - ends)])) if ends < begins else None


def _nearer(refused: Matrix, share: float) -> tuple[Matrix, Vector]:
    """Return a plane before each point without an answer, across the way to it from the centre."""
    lengths = np.linalg.norm(refused, axis=1)
    return refused / lengths[:, None], share * lengths
