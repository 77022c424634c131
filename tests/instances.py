"""Small problems the tests share: a smooth leader and followers with kinks. Everything is at module level, because
processes of a pool must find it by name."""

from __future__ import annotations

import numpy as np

import pzos
from pzos.base.types import Matrix, Vector

D_X, D_Y = 5, 4
MIXING: Matrix = np.sin(np.arange(1.0, D_X * D_Y + 1)).reshape(D_Y, D_X)
WEIGHTS: Vector = np.cos(np.arange(1.0, D_Y + 1))
GOAL: Vector = np.linspace(-1.0, 1.0, D_X)
START: Vector = np.linspace(0.2, 1.0, D_X)


def response(x: Vector) -> Vector:
    """Return |M x|, Lipschitz with kinks."""
    return np.abs(np.array([row @ x for row in MIXING]))


def responses(points: Matrix) -> Matrix:
    """Return |X M'| in one product: its last bits depend on the shape."""
    return np.abs(points @ MIXING.T)


def noisy(x: Vector, generator: np.random.Generator) -> Vector:
    """Return the response with a little noise."""
    return response(x) + 0.01 * generator.standard_normal(D_Y)


def cost(x: Vector, y: Vector) -> float:
    return float(0.5 * (x - GOAL) @ (x - GOAL) + WEIGHTS @ y + 0.1 * (y @ y))


def cost_x(x: Vector, y: Vector) -> Vector:
    return x - GOAL


def cost_y(x: Vector, y: Vector) -> Vector:
    return WEIGHTS + 0.2 * y


LEADER = pzos.leader_from_functions(cost, cost_x, cost_y)


def negated() -> pzos.Leader:
    """Return the leader with every sign turned, for maximisation."""
    return pzos.leader_from_functions(lambda x, y: -cost(x, y), lambda x, y: -cost_x(x, y), lambda x, y: -cost_y(x, y))


def problem(follower: object = response, **settings: object) -> pzos.Problem:
    return pzos.Problem(LEADER, follower, START, **settings)  # type: ignore[arg-type]


def iterates(study: pzos.Study, oracle: pzos.Oracle) -> Matrix:
    """Run a study to its end and return the iterates x_0, ..., x_T, bit for bit."""
    points = [record.x for record in pzos.iterate(study, oracle) if record.step < study.step]
    return np.array([*points, study.state.x])
