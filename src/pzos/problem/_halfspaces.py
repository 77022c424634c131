"""Exact projection onto {N t <= h} (unit rows) by a dual active-set method (Goldfarb and Idnani, 1983).

The method keeps a set W of constraints held as equations whose multipliers are >= 0, so that the current point
is the projection onto those constraints alone; it adds violated constraints one at a time, drops those whose
multiplier would turn negative, and ends after finitely many changes. The point is then computed once more from
W alone, and returned only with its certificate: no constraint violated, no multiplier negative.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pzos.base.errors import NotConverged
from pzos.base.types import Matrix, Vector

_TOLERANCE = 1e-12
_DEPENDENT = 1e-9
_CACHE_LIMIT = 256


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The constraints ``normals @ t <= offsets``, each normal of length one."""

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
