"""Derivatives of the games' responses, for reference only: the solvers never import this module.

They give the white-box optimum that the methods are measured against. Away from kinks (a target that enters or leaves
the attack, a budget that starts to bind, x_i = 0; a path that comes into use or falls out of it) they are the
derivatives of y*(x); at a kink they are those of one adjacent piece, an element of the B-subdifferential in general.

Security: with a = x + b, z = a + y and the attacked targets i, differentiate w a / z^2 - c y - m = 0:

    dy_i = s_i (t_i dx_i - dm),   s_i = 1 / (2 w a / z^3 + c),   t_i = w (y - a) / z^3

and sum dy = 0 gives dm = sum s t dx / sum s where the budget binds, dm = 0 where it does not. Hence
J = diag(s t) - s (s t)' / sum s, a rank-one change of a diagonal: products cost O(n).

Routing: on the active columns (paths minus the reference path of their class, and cycles) the equilibrium flow is
F = F_0 + U z with

    U' (diag(a) F + b) + R U' tau = 0,   R = diag(1 / s of the column's class),

so dF = -U (U' diag(a) U)^-1 R U' dtau.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.checks import as_rows
from pzos.base.types import Matrix, Vector, dot
from pzos.games.routing import RoutingGame, checked_tolls
from pzos.games.security import SecurityGame


@dataclass(frozen=True, slots=True, eq=False)
class SecurityJacobian:
    """The (generalised) Jacobian of the security response at one point, in O(n) memory."""

    own_effect: Vector
    share: Vector

    def times(self, v: npt.ArrayLike) -> Vector:
        """Return J v."""
        moved = self.own_effect * np.asarray(v, dtype=np.float64)
        return moved - self.share * float(moved.sum())

    def transpose_times(self, u: npt.ArrayLike) -> Vector:
        """Return J' u."""
        weights = np.asarray(u, dtype=np.float64)
        return self.own_effect * (weights - dot(self.share, weights))

    def dense(self) -> Matrix:
        """Return J as a matrix (small n only)."""
        return np.diag(self.own_effect) - np.outer(self.share, self.own_effect)


def security_jacobian(game: SecurityGame, x: npt.ArrayLike) -> SecurityJacobian:
    """Return the Jacobian of ``game.response`` at x (Sec. 5.2)."""
    rows, _ = as_rows("security_jacobian", x, game.targets)
    answers, certificate = game.certified_response(rows[:1])
    point, y = rows[0], answers[0]
    strength = np.maximum(point, 0.0) + game.baseline
    total = strength + y
    pull = game.attacker_value * (strength / total) / total
    attacked = y > 0.0
    sensitivity = np.where(attacked, 1.0 / (2.0 * pull / total + game.attacker_cost), 0.0)
    own = sensitivity * game.attacker_value * (y - strength) / total / total / total
    own_effect = np.where(point >= 0.0, own, 0.0)
    binding = certificate.multiplier[0] > 0.0
    share = sensitivity / sensitivity.sum() if binding else np.zeros_like(sensitivity)
    return SecurityJacobian(own_effect, share)


def security_gradient(game: SecurityGame, x: npt.ArrayLike) -> tuple[float, Vector]:
    """Return F(x) and its gradient grad_x f + J' grad_y f: the white box no solver may look into."""
    rows, _ = as_rows("security_gradient", x, game.targets)
    y = game.response(rows[0])
    value, grad_x, grad_y = game.damage_and_gradients(rows[0], y)
    return value, grad_x + security_jacobian(game, rows[0]).transpose_times(grad_y)


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
