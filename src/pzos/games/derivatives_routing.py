"""Derivatives of the routing response, for reference only: the solvers never import this module.

They give the white-box optimum that the methods are measured against. On the active columns (paths minus the reference
path of their class, and cycles) the equilibrium flow is F = F_0 + U z with

    U' (diag(a) F + b) + R U' tau = 0,   R = diag(1 / s of the column's class),

so dF = -U (U' diag(a) U)^-1 R U' dtau. Away from kinks (a path that comes into use or falls out of it) this is the
derivative of F*(tau); at a kink it is the derivative of one adjacent piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.games._routing_data import checked_tolls
from pzos.games.routing import RoutingGame


@dataclass(frozen=True, slots=True, eq=False)
class RoutingJacobian:
    """The (generalised) Jacobian of the routing response at one toll vector, as -spread gain' with thin factors."""

    spread: Matrix
    gain: Matrix

    def times(self, v: npt.ArrayLike) -> Vector:
        """Return J v."""
        product: Vector = -(self.spread @ (self.gain.T @ np.asarray(v, dtype=np.float64)))
        return product

    def transpose_times(self, u: npt.ArrayLike) -> Vector:
        """Return J' u."""
        product: Vector = -(self.gain @ (self.spread.T @ np.asarray(u, dtype=np.float64)))
        return product

    def dense(self) -> Matrix:
        """Return J as a matrix."""
        return -(self.spread @ self.gain.T)


def routing_jacobian(game: RoutingGame, tolls: npt.ArrayLike) -> RoutingJacobian:
    """Return the Jacobian of ``game.response`` at one toll vector (Sec. 5.1)."""
    rows, _ = checked_tolls("routing_jacobian", tolls, game.edges)
    used = [column for column in game.equilibrium(rows[0]).columns if column.flow > 0.0]
    incidence = np.zeros((game.edges, len(used)))
    reference: dict[int, int] = {}
    for k, column in enumerate(used):
        incidence[list(column.edges), k] = 1.0
        if not column.is_cycle:
            reference.setdefault(column.group, k)
    free = [k for k in range(len(used)) if k not in reference.values()]
    moved = incidence[:, free].copy()
    for place, k in enumerate(free):
        if not used[k].is_cycle:
            moved[:, place] -= incidence[:, reference[used[k].group]]
    rate = np.array([1.0 / game.sensitivity[used[k].group] for k in free])
    hessian = moved.T @ (game.slope[:, None] * moved)
    spread: Matrix = np.zeros((game.edges, 0))
    if free:
        spread = np.linalg.solve(hessian, moved.T).T.astype(np.float64)
    return RoutingJacobian(spread, moved * rate)
