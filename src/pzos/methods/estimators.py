"""Two-point estimators of the gradient of F. Plan and estimate are apart.

One plan (the points to query around x) serves both estimators of the paper, so the partial (PZOS) and the
black-box (ZOS) estimate can be computed from the same answers: a paired comparison costs no further query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import LeaderValue, Purpose, Vector, dot
from pzos.problem.leader import Leader
from pzos.problem.room import Room, room_near
from pzos.problem.sets import Domain

T = TypeVar("T")
#: Draws directions on the sphere of a given dimension.
Directed: TypeAlias = Callable[[int], Sequence[Vector]]

#: One entry per planned point; None where the follower failed and the failure policy lets the run go on.
Answers: TypeAlias = Sequence[Vector | None]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Points to query, each with its purpose; solvers extend it with what they need to read the answers."""

    points: tuple[Vector, ...]
    purposes: tuple[Purpose, ...]

    def first(self, count: int) -> Plan | None:
        """Return a plan of the first ``count`` queries alone, for the rest of a budget; None if that is of no use."""
        return None


P = TypeVar("P", bound=Plan)


def of_kind(kind: type[P], plan: Plan) -> P:
    """Return ``plan`` if it is of the kind that a solver makes itself."""
    if not isinstance(plan, kind):
        raise TypeError(f"expected a {kind.__name__}, got {type(plan).__name__}")
    return plan


@dataclass(frozen=True, slots=True, eq=False)
class TwoPointPlan(Plan):
    """The points x (if ``centred``) and x +- radius v_q for the directions v_1, ..., v_Q.

    With ``room`` the pairs lie around its centre, and the directions along its basis.
    """

    x: Vector
    radius: float
    directions: tuple[Vector, ...]
    centred: bool
    room: Room | None = None

    @property
    def dimension(self) -> int:
        """Return d: of how many dimensions the sphere is that the directions lie on."""
        return self.x.shape[-1] if self.room is None else self.room.dimension

    def along(self, direction: Vector) -> Vector:
        """Return a vector that is given in the coordinates of the room's directions."""
        return direction if self.room is None else self.room.along(direction)

    def coordinates(self, vector: Vector) -> Vector:
        """Return the part of a vector along the room's directions, in their coordinates."""
        return vector if self.room is None else self.room.coordinates(vector)


class Estimate(NamedTuple):
    """An estimate of the gradient with what it was made of.

    ``value`` is F(x) where the plan queried y*(x), else NaN; ``pairs`` counts the directions used.
    """

    gradient: Vector
    value: float
    pairs: int


def two_point_plan(x: Vector, radius: float, directions: Sequence[Vector], *, centred: bool) -> TwoPointPlan:
    """Plan the queries x (if centred), x + mu v_1, x - mu v_1, x + mu v_2, ... (Alg. PZOS-B and ZOS-B)."""
    points: list[Vector] = [x] if centred else []
    for v in directions:
        offset = radius * v
        points.append(x + offset)
        np.subtract(x, offset, out=offset)
        points.append(offset)
    return TwoPointPlan(tuple(points), _purposes(len(directions), centred), x, radius, tuple(directions), centred)


@cache
def _purposes(pairs: int, centred: bool) -> tuple[Purpose, ...]:
    return (Purpose.ITERATE,) * centred + (Purpose.PROBE,) * (2 * pairs)


def plan_inside(x: Vector, radius: float, directions: Directed, domain: Domain, *, centred: bool) -> TwoPointPlan:
    """Plan differences that never leave the set, in a ball of it within ``radius`` of x (:mod:`pzos.problem.room`).

    ``directions`` draws those on the sphere of a given dimension.
    """
    room = room_near(domain, x, radius)
    drawn = tuple(room.along(v) for v in directions(room.dimension))
    around = two_point_plan(room.centre, room.radius, drawn, centred=False)
    points = (x, *around.points) if centred else around.points
    return TwoPointPlan(points, _purposes(len(drawn), centred), x, room.radius, drawn, centred, room)


def sphere_directions(keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
    """Draw v_{t,1}, ..., v_{t,Q}, independent and uniform on the unit sphere; more extend fewer."""
    if count == 1:
        return (keys.direction(step, 0, dimension),)
    return tuple(keys.direction(step, index, dimension) for index in range(count))


def partial_estimate(leader: Leader, plan: TwoPointPlan, answers: Answers) -> Estimate | None:
    """Return the PZOS estimate, eq. (4) with the average Jacobian of Alg. PZOS-B.

        g = grad_x f + d/(2 mu Q) sum_q (grad_y f . (y_q+ - y_q-)) v_q,   partial gradients at (x, y*(x))

    The Jacobian estimate H is never formed. Failed pairs are left out; None if y*(x) or every pair failed.
    """
    if not plan.centred:
        raise InvalidInput(
            "partial_estimate: plan = a plan without y*(x): expected a centred plan; plan with centred=True"
        )
    centre = answers[0]
    if centre is None:
        return None
    at = leader(plan.x, centre)
    pairs = list(answered_pairs(plan.directions, answers[1:]))
    if not pairs:
        return None
    scale = plan.dimension / (2.0 * plan.radius * len(pairs))
    gradient = at.grad_x  # the leader's array: the first term makes a new one
    for v, plus, minus in pairs:
        term = (scale * dot(at.grad_y, plus - minus)) * v
        term += gradient
        gradient = term
    return Estimate(gradient, at.value, len(pairs))


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One answered difference: the response rose by ``rise`` over the length ``run`` along the unit vector v."""

    direction: Vector
    rise: Vector
    run: float

    @property
    def slope(self) -> Vector:
        """Return rise / run, an estimate of J v."""
        return self.rise / self.run


def predicted_estimate(at: LeaderValue, prediction: Vector, probes: Sequence[Probe]) -> Vector:
    """Return the family of estimates around a prediction h of the gradient, averaged over the probes.

        g = h + d/Q sum_q (D_q - h . v_q) v_q,   D_q = grad_x f . v_q + grad_y f . (rise_q / run_q)

    ``prediction`` is p = h - grad_x f, the part of h that foresees J' grad_y f; in terms of p, which loses no digits,

        g = grad_x f + p + d/Q sum_q (grad_y f . (rise_q / run_q) - p . v_q) v_q.

    *Unbiased for every p fixed before the directions are drawn.* Let v be uniform on the sphere, independent of
    x, p and the past, and s(v) = rise/run. Then E[d v v'] = I and, by the lemma on H_t (App. C; for one-sided
    differences see :class:`pzos.methods.probes.OneSided`), E[d s(v) v'] = J y_mu(x), so that

        E[g | past] = grad_x f + p + E[d s(v) v']' grad_y f - E[d v v'] p = grad_x f + J y_mu(x)' grad_y f,

    whatever p is: an element of the partial Goldstein set for mu <= delta, as for PZOS (p = 0, the same bits as
    :func:`partial_estimate`). Where the response is linear the noise is d |J' grad_y f - p|^2 instead of
    d |J' grad_y f|^2. A theorem holds under further conditions (docs/theory.md): central differences, a bound on |p|,
    and a step that does not depend on g.
    """
    gradient = at.grad_x + prediction
    count = len(probes)
    weight = prediction.size / count
    for probe in probes:
        measured = (prediction.size / (probe.run * count)) * dot(at.grad_y, probe.rise)
        foreseen = weight * dot(prediction, probe.direction)
        gradient += (measured - foreseen) * probe.direction
    return gradient


def black_box_estimate(leader: Leader, plan: TwoPointPlan, answers: Answers) -> Estimate | None:
    """Return the ZOS estimate, eq. (2) averaged over the batch as in Alg. ZOS-B.

        g = d/(2 mu Q) sum_q [f(x + mu v_q, y_q+) - f(x - mu v_q, y_q-)] v_q

    A centred plan serves as well: its first answer then gives F(x) at no further query.
    """
    centre = answers[0] if plan.centred else None
    probes = plan.points[plan.centred :]
    asked = zip(plan.directions, probes[::2], probes[1::2], strict=True)
    pairs = list(answered_pairs(asked, answers[plan.centred :]))
    if not pairs:
        return None
    gradient = np.zeros_like(plan.x)
    scale = plan.dimension / (2.0 * plan.radius * len(pairs))
    for (v, ahead, behind), plus, minus in pairs:
        rise = leader.value(ahead, plus) - leader.value(behind, minus)
        gradient += (scale * rise) * v
    value = float("nan") if centre is None else leader.value(plan.x, centre)
    return Estimate(gradient, value, len(pairs))


def answered_pairs(items: Iterable[T], answers: Answers) -> Iterator[tuple[T, Vector, Vector]]:
    """Yield each item (a direction, say) with the answers of its pair, where both answered."""
    for item, plus, minus in zip(items, answers[::2], answers[1::2], strict=True):
        if plus is not None and minus is not None:
            yield item, plus, minus
