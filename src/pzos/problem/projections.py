"""How projections are computed, apart from the sets they belong to, and what else methods ask of a set's projection.

* :func:`onto_sum` and :class:`HalfSpaces` are the exact algorithms behind the simplex and the polyhedron.
* :func:`project_near` projects onto the part of a set that lies in a trust region, {z in X, |z - c|_inf <= D}.
* :func:`projector_for` gives what Newton's method needs: P with an element of its generalised derivative.

A set that can do better than its bare projection says so by a method: ``derivative``, ``projector``,
``one_constraint``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pzos.base.errors import NotConverged
from pzos.base.types import Matrix, Vector

if TYPE_CHECKING:
    from pzos.problem.sets import Domain, Polyhedron, Product

_TOLERANCE = 1e-12
_DEPENDENT = 1e-9
_CACHE_LIMIT = 256
_HALVINGS = 60
_ALTERNATIONS = 100


def onto_sum(x: Vector, total: float) -> Vector:
    """Project onto {y >= 0, sum y = total} by the sorted-threshold rule (exact, O(n log n))."""
    shifted = x - x.max()  # a common shift leaves the projection as it is, and keeps small totals from drowning
    descending = np.sort(shifted)[::-1]
    excess = np.cumsum(descending) - total
    counts = np.arange(1, x.size + 1)
    active = int(np.nonzero(descending * counts > excess)[0][-1])
    threshold = excess[active] / (active + 1)
    projected: Vector = np.maximum(shifted - threshold, 0.0)
    return projected


def moving(mask: npt.NDArray[np.bool_]) -> Matrix:
    """Return diag(mask), the derivative of a projection that moves these entries freely and no other."""
    return np.diag(mask.astype(np.float64))


def moving_with_sum(used: npt.NDArray[np.bool_]) -> Matrix:
    """Return diag(m) - m m' / sum(m): entries in use move, their sum does not."""
    mask = used.astype(np.float64)
    derivative: Matrix = np.diag(mask) - np.outer(mask, mask) / mask.sum()
    return derivative


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The constraints ``normals @ t <= offsets``, each normal of length one, with the exact projection onto them.

    The dual active-set method (Goldfarb and Idnani, 1983) keeps a set W of constraints held as equations whose
    multipliers are >= 0, so that the current point is the projection onto those constraints alone; it adds violated
    constraints one at a time, drops those whose multiplier would turn negative, and ends after finitely many changes.
    The point is then computed once more from W alone, and returned only with its certificate: no constraint violated,
    no multiplier negative.
    """

    normals: Matrix
    offsets: Vector
    factors: dict[tuple[int, ...], tuple[Matrix, Matrix]] = field(default_factory=dict)

    def factor(self, working: tuple[int, ...]) -> tuple[Matrix, Matrix]:
        """Return Q and the inverse of R of the normals in ``working`` (as columns), remembered."""
        known = self.factors.get(working)
        if known is None:
            q, r = np.linalg.qr(self.normals[list(working)].T)
            known = (q, np.linalg.inv(r))
            if len(self.factors) >= _CACHE_LIMIT:
                self.factors.clear()
            self.factors[working] = known
        return known

    def on_face(self, point: Vector, working: tuple[int, ...]) -> tuple[Vector, Vector]:
        """Project onto the equations of ``working``; returns the projection and the multipliers."""
        if not working:
            return point, np.zeros(0)
        q, inverse = self.factor(working)
        shift = q.T @ point - inverse.T @ self.offsets[list(working)]
        return point - q @ shift, inverse @ shift

    def project(self, point: Vector, working: tuple[int, ...] = ()) -> tuple[Vector, tuple[int, ...]]:
        """Return the projection of ``point`` and the constraints it rests on; ``working`` is only a guess."""
        slack = _TOLERANCE * max(1.0, float(np.abs(point).max(initial=0.0)))
        working = self._dual_feasible(point, working)
        for _ in range(100 + 20 * len(self.offsets)):
            projected, _ = self.on_face(point, working)
            violation = self.normals @ projected - self.offsets
            if not (violation > slack).any():
                return projected, working
            working = self._add(point, working, int(np.argmax(violation)))
        raise NotConverged(
            f"projection onto a polyhedron: violation {violation.max():.2e} left after {100 + 20 * len(self.offsets)} "
            "changes of the active set; check the polyhedron for nearly parallel constraints"
        )

    def _dual_feasible(self, point: Vector, working: tuple[int, ...]) -> tuple[int, ...]:
        """Drop constraints from a guess until no multiplier is negative."""
        while working:
            _, multipliers = self.on_face(point, working)
            worst = int(np.argmin(multipliers))
            if multipliers[worst] >= 0.0:
                break
            working = working[:worst] + working[worst + 1 :]
        return working

    def _add(self, point: Vector, working: tuple[int, ...], entering: int) -> tuple[int, ...]:
        """Raise the multiplier of a violated constraint until it holds; constraints on the way may leave."""
        normal = self.normals[entering]
        projected, multipliers = self.on_face(point, working)
        while True:
            direction, exchange = normal, np.zeros(0)
            if working:
                q, inverse = self.factor(working)
                coordinates = q.T @ normal
                direction, exchange = normal - q @ coordinates, inverse @ coordinates
            squared = float(direction @ direction)
            blocking = np.flatnonzero(exchange > _DEPENDENT)
            limits = multipliers[blocking] / exchange[blocking]
            dual_step = float(limits.min(initial=np.inf))
            violation = float(normal @ projected - self.offsets[entering])
            full_step = violation / squared if squared > _DEPENDENT**2 else np.inf
            step = min(dual_step, full_step)
            if step == np.inf:
                raise NotConverged("projection onto a polyhedron: its constraints contradict each other")
            if full_step <= dual_step:
                return (*working, entering)
            projected = projected - step * direction if full_step < np.inf else projected
            leaving = int(blocking[np.argmin(limits)])
            multipliers = np.delete(multipliers - step * exchange, leaving)
            working = working[:leaving] + working[leaving + 1 :]


class OneConstraint(NamedTuple):
    """A set that has, besides bounds, one constraint: ``excess(z) <= 0``, or = 0 if it is an ``equation``.

    Such a set returns it by ``one_constraint(x, centre, radius)``, for x to be projected within ``radius`` of the
    centre. The projection within a region is ``point(multiplier)`` for the right one, between ``low`` and ``high``;
    ``excess(point(.))`` falls as the multiplier grows.
    """

    point: Callable[[float], Vector]
    excess: Callable[[Vector], float]
    low: float
    high: float
    equation: bool = False

    def root(self) -> Vector:
        """Halve the interval of the multiplier until the constraint holds with equality."""
        low, high = self.low, self.high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if self.excess(self.point(middle)) > 0.0:
                low = middle
            else:
                high = middle
        return self.point(high)


def project_near(x: Vector, centre: Vector, radius: float, domain: Domain) -> Vector:
    """Return the point of the set within ``radius`` of the centre that is nearest to x; the centre is in the set."""
    if hasattr(domain, "one_constraint"):
        constraint: OneConstraint = domain.one_constraint(x, centre, radius)
        inside = constraint.point(0.0)
        if not constraint.equation and constraint.excess(inside) <= 0.0:
            return inside
        found = constraint.root()
    else:
        found = _alternating(x, centre - radius, centre + radius, domain)
    return _kept(found, centre, radius, domain)


def _alternating(x: Vector, low: Vector, high: Vector, domain: Domain) -> Vector:
    """Dykstra's method: alternate between the region and a set that is known by its projection alone."""
    z = x
    set_part, box_part = np.zeros_like(x), np.zeros_like(x)
    for _ in range(_ALTERNATIONS):
        boxed = np.minimum(np.maximum(z + box_part, low), high)
        box_part = z + box_part - boxed
        inside = domain.project(boxed + set_part)
        set_part = boxed + set_part - inside
        moved = float(np.abs(inside - z).max())
        z = inside
        if moved <= 1e-10 * float(np.max(high - low)):
            break
    return z


def _kept(z: Vector, centre: Vector, radius: float, domain: Domain) -> Vector:
    """Draw z back so that set and region hold exactly: a chord from the centre to a point of the set lies in it."""
    z = domain.project(z)
    size = float(np.abs(z - centre).max())
    return z if size <= radius else centre + (radius / size) * (z - centre)


@runtime_checkable
class Projector(Protocol):
    """Projects, and differentiates the last projection; sets with a projection in closed form are projectors."""

    def project(self, x: Vector) -> Vector:
        """Return P(x)."""

    def derivative(self, x: Vector, projected: Vector) -> Matrix | None:
        """Return an element of the generalised derivative of P at x, given P(x); None if unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class ProjectorWithoutDerivative:
    """A set of the user's own, known by its projection alone."""

    feasible: Domain

    def project(self, x: Vector) -> Vector:
        """Return P(x)."""
        return self.feasible.project(x)

    def derivative(self, x: Vector, projected: Vector) -> Matrix | None:
        """Return None: unknown."""
        return None


class PolyhedronProjector:
    """A polyhedron whose active set is carried from one projection to the next, which makes near ones cheap."""

    def __init__(self, feasible: Polyhedron) -> None:
        self.feasible = feasible
        self.working: tuple[int, ...] = ()

    def project(self, x: Vector) -> Vector:
        """Return P(x), starting from the last active set."""
        projected, self.working = self.feasible.project_from(x, self.working)
        return projected

    def derivative(self, x: Vector, projected: Vector) -> Matrix | None:
        """Return the projector onto the directions within the active face."""
        self.project(x)
        return self.feasible.tangent(self.working)


class ProductProjector:
    """Block by block."""

    def __init__(self, feasible: Product) -> None:
        self.blocks = [(projector_for(part), block) for part, block in feasible.blocks()]

    def project(self, x: Vector) -> Vector:
        """Return P(x)."""
        return np.concatenate([part.project(x[block]) for part, block in self.blocks])

    def derivative(self, x: Vector, projected: Vector) -> Matrix | None:
        """Return the block-diagonal derivative, if every block has one."""
        whole = np.zeros((x.size, x.size))
        for part, block in self.blocks:
            piece = part.derivative(x[block], projected[block])
            if piece is None:
                return None
            whole[block, block] = piece
        return whole


def projector_for(feasible: Domain) -> Projector:
    """Return a fresh projector for any set: one that knows nothing yet, so that no answer depends on earlier ones.

    A set whose projections are cheaper in a row makes it by ``projector()``.
    """
    if hasattr(feasible, "projector"):
        fresh: Projector = feasible.projector()
        return fresh
    return feasible if isinstance(feasible, Projector) else ProjectorWithoutDerivative(feasible)
