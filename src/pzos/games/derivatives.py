"""Derivatives of the attacker's response, for reference only: the solvers never import this module.

They give the white-box optimum that the methods are measured against. Away from kinks (a target that enters
or leaves the attack, a budget that starts to bind, x_i = 0) they are the derivatives of y*(x); at a kink they
are the derivatives of one adjacent piece, an element of the B-subdifferential in general.

With a = x + b, z = a + y and the attacked targets i, differentiate w a / z^2 - c y - m = 0:

    dy_i = s_i (t_i dx_i - dm),   s_i = 1 / (2 w a / z^3 + c),   t_i = w (y - a) / z^3

and sum dy = 0 gives dm = sum s t dx / sum s where the budget binds, dm = 0 where it does not. Hence
J = diag(s t) - s (s t)' / sum s, a rank-one change of a diagonal: products cost O(n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.checks import as_rows
from pzos.base.types import Matrix, Vector, dot
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
