"""Random instances that satisfy the paper's assumptions, with the constants known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pzos
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector


class Instance(NamedTuple):
    """y* = P_[-1,1](A x + b), f = sqrt(1 + |x - p + K y|^2): L_f, L_g and L_y are what is stated."""

    problem: pzos.Problem
    A: Matrix
    b: Vector
    L_f: float
    L_g: float
    L_y: float

    def jacobian(self, x: Vector) -> Matrix:
        inside = np.abs(self.A @ x + self.b) < 1.0
        return inside[:, None] * self.A


def random_instance(seed: int, d_x: int = 3, d_y: int = 4) -> Instance:
    draw = Keys(seed).generator(Role.INSTANCE)
    A, b = draw.standard_normal((d_y, d_x)), draw.standard_normal(d_y)
    K, p = 0.5 * draw.standard_normal((d_x, d_y)), draw.standard_normal(d_x)

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        r = x - p + K @ y
        value = float(np.sqrt(1.0 + r @ r))
        return value, r / value, K.T @ r / value

    leader = pzos.leader_from_functions(lambda x, y: everything(x, y)[0], value_and_gradients=everything)
    problem = pzos.Problem(leader, pzos.batched(lambda X: np.clip(X @ A.T + b, -1.0, 1.0)), draw.standard_normal(d_x))
    size = float(np.linalg.norm(K, 2))
    L_g = float(np.linalg.norm(np.hstack([np.eye(d_x), K]), 2) ** 2)
    return Instance(problem, A, b, max(1.0, size), L_g, float(np.linalg.norm(A, 2)))


def linear_problem(d: int, share: float, seed: int = 0) -> tuple[pzos.Problem, float, float]:
    """y* = A x, f = |x|^2/2 + c.y at a point with |E g| = share |A'c|; returns problem, |E g| and |A'c|."""
    draw = Keys(seed).generator(Role.INSTANCE)
    A, c = draw.standard_normal((7, d)) / 4.0, draw.standard_normal(7)
    w = A.T @ c
    x0 = share * np.linalg.norm(w) * Keys(seed).direction(0, 1, d, Role.INSTANCE) - w
    leader = pzos.leader_from_functions(
        lambda x, y: float(0.5 * x @ x + c @ y), lambda x, y: x.copy(), lambda x, y: c.copy()
    )
    problem = pzos.Problem(leader, pzos.batched(lambda X: X @ A.T), x0)
    return problem, float(np.linalg.norm(x0 + w)), float(np.linalg.norm(w))


def kinked_problem(d: int, share: float, delta: float, seed: int = 0) -> tuple[pzos.Problem, float, float]:
    """y* = |x| with kinks inside the ball; J y_mu is diagonal and known through the incomplete beta function."""
    from scipy.special import betainc

    draw = Keys(seed).generator(Role.INSTANCE)
    x0, c = delta * draw.uniform(-0.5, 0.5, d), draw.uniform(0.5, 1.5, d)
    response = c * np.sign(x0) * betainc(0.5, (d + 1) / 2, np.minimum(1.0, (x0 / delta) ** 2))
    wanted = share * np.linalg.norm(response) * Keys(seed).direction(0, 1, d, Role.INSTANCE)
    linear = wanted - response
    leader = pzos.leader_from_functions(
        lambda x, y: float(linear @ x + c @ y), lambda x, y: linear.copy(), lambda x, y: c.copy()
    )
    problem = pzos.Problem(leader, pzos.batched(np.abs), x0)
    return problem, float(np.linalg.norm(wanted)), float(np.linalg.norm(response))
