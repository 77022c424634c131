"""How projections are computed, apart from the sets they belong to, and what else methods ask of a set's projection.

* :func:`onto_sum` and :class:`HalfSpaces` are the exact projections behind the simplex and the polyhedron.
* :func:`project_near` projects onto the part of a set that lies in a trust region, {z in X, |z - c|_inf <= D}.
* :func:`projector_for` gives what Newton's method needs: P with an element of its generalised derivative.

A set that can do better than its bare projection says so by a method: ``derivative``, ``projector``,
``one_constraint``, ``project_within``, ``linear``.
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
    from pzos.problem.polyhedra import Polyhedron
    from pzos.problem.sets import Domain, Product

_TOLERANCE = 1e-12
#: Least distance programming: changes of the active set per constraint, the residual of contradictory constraints, how
#: often a point is mended, and the violation, relative to the size of the point, that may remain.
_CHANGES, _CONTRADICTED, _POLISHINGS, _ROUNDING = 10, 1e-9, 3, 1e-9
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

    Which constraints the projection rests on is a problem of nonnegative least squares, solved by SciPy (least distance
    programming: Lawson and Hanson, 1974, ch. 23). The point is then computed from those constraints alone.
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
        for guess in dict.fromkeys((working, ())):
            projected, multipliers = self.on_face(point, guess)
            if self._excess(projected) <= slack and float(multipliers.min(initial=0.0)) >= 0.0:
                return projected, guess
        working = self._supporting(point)
        projected, _ = self.on_face(point, working)
        projected, _ = self.on_face(projected, working)  # once more: from far away its last digits were lost
        for _ in range(_POLISHINGS):
            if self._excess(projected) <= slack:
                return projected, working
            # What rounding left of nearly parallel constraints is a small projection of its own.
            projected, _ = self.on_face(projected, self._supporting(projected))
        excess = self._excess(projected)
        if excess > _ROUNDING * max(1.0, float(np.abs(point).max())):
            raise NotConverged(
                f"projection onto a polyhedron: violation {excess:.2e} left; check it for nearly parallel constraints"
            )
        return projected, working

    def _excess(self, point: Vector) -> float:
        return float((self.normals @ point - self.offsets).max(initial=0.0))

    def _supporting(self, point: Vector) -> tuple[int, ...]:
        """Return the constraints that the projection of ``point`` rests on."""
        from scipy.optimize import nnls

        violation = self.normals @ point - self.offsets
        unit = float(violation.max())
        system = np.vstack([-self.normals.T, violation / unit])
        target = np.zeros(point.size + 1)
        target[-1] = 1.0
        weights, distance = nnls(system, target, maxiter=_CHANGES * (violation.size + 1))
        if distance < _CONTRADICTED:
            raise NotConverged("projection onto a polyhedron: its constraints contradict each other")
        return tuple(np.flatnonzero(weights > 0.0).tolist())


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


def project_near(x: Vector, centre: Vector, radius: float | Vector, domain: Domain) -> Vector:
    """Return the point of the set within ``radius`` of the centre that is nearest to x; the centre is in the set.

    Flat sets and intersections also take a radius for each entry, all others the largest of them.
    """
    if hasattr(domain, "project_within"):
        within: Vector = domain.project_within(x, centre - radius, centre + radius)
        return within
    radius = float(np.max(radius))
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
