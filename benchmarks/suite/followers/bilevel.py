"""Classical bilevel problems of the literature whose follower has one answer, with their best known values.

Only problems without constraints of the leader on the follower's variables, or where such a constraint is a bound of x
(said beside it). The followers are solved exactly: in closed form, or as small convex quadratic programs. Every value
was checked by a dense search (``suite/test_suite.py`` does it again on the scalar ones). Names are those of the library
BOLIB; the papers are listed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import pzos
from suite.family import Family
from testbed.unseen.instance import Vector
from testbed.unseen.rough import Quadratic


@dataclass(frozen=True, eq=False)
class Classic:
    """One problem: F, its gradients in x and y, the follower's answer, where x lies and starts, the best value."""

    name: str
    cost: Callable[[Vector, Vector], float]
    gradients: Callable[[Vector, Vector], tuple[list[float], list[float]]]
    answer: Callable[[Vector], list[float] | Vector]
    domain: Any
    x0: list[float]
    best: float


def _clip(value: float, lower: float, upper: float) -> float:
    return float(min(max(value, lower), upper))


def _quadratic(Q: list[list[float]], c: list[float], G: list[list[float]], h: list[float]) -> Vector:
    """Return the minimiser of y'Qy/2 + c'y under Gy <= h."""
    return Quadratic(np.array(Q), np.array(G), np.array(h))(-np.array(c))


# ---- one decision ---------------------------------------------------------------------------------------------------


def _outrata(x: Vector) -> Vector:
    """(1 + x/5) y1^2/2 + (1 + x/10) y2^2/2 - (3 + 4x/3) y1 - x y2, y2 - y1/3 <= 1 - x/10, |y|^2 <= 9 + x/10, y >= 0.

    The circle's multiplier is found by Brent's method, to the last bits.
    """
    from scipy.optimize import brentq

    (t,) = x

    def within(multiplier: float) -> Vector:
        H = [[1.0 + 0.2 * t + 2.0 * multiplier, 0.0], [0.0, 1.0 + 0.1 * t + 2.0 * multiplier]]
        G = [[-0.333, 1.0], [-1.0, 0.0], [0.0, -1.0]]
        return _quadratic(H, [-(3.0 + 1.333 * t), -t], G, [1.0 - 0.1 * t, 0.0, 0.0])

    def excess(multiplier: float) -> float:
        return float(np.sum(within(multiplier) ** 2)) - 9.0 - 0.1 * t

    return within(0.0 if excess(0.0) <= 0.0 else brentq(excess, 0.0, 100.0, xtol=1e-15, rtol=1e-14))


SCALAR = [
    Classic(
        "Bard1988Ex1",
        lambda x, y: (x[0] - 5.0) ** 2 + (2.0 * y[0] + 1.0) ** 2,
        lambda x, y: ([2.0 * (x[0] - 5.0)], [4.0 * (2.0 * y[0] + 1.0)]),
        lambda x: [_clip(1.0 + 0.75 * x[0], max(0.0, 2.0 * x[0] - 8.0), min(3.0 * x[0] - 3.0, 7.0 - x[0]))],
        pzos.Box(1.0, 5.0), [4.0], 17.0,
    ),
    Classic(
        "ShimizuAiyoshi1981Ex1",  # the leader's y <= x is x >= 10
        lambda x, y: x[0] ** 2 + (y[0] - 10.0) ** 2,
        lambda x, y: ([2.0 * x[0]], [2.0 * (y[0] - 10.0)]),
        lambda x: [_clip(0.5 * (30.0 - x[0]), 0.0, 20.0 - x[0])],
        pzos.Box(10.0, 15.0), [14.0], 100.0,
    ),
    Classic(
        "ClarkWesterberg1990a",
        lambda x, y: (x[0] - 3.0) ** 2 + (y[0] - 2.0) ** 2,
        lambda x, y: ([2.0 * (x[0] - 3.0)], [2.0 * (y[0] - 2.0)]),
        lambda x: [_clip(5.0, 0.5 * x[0] + 1.0, min(2.0 * x[0] + 1.0, 7.0 - 0.5 * x[0]))],
        pzos.Box(0.0, 6.0), [5.5], 5.0,
    ),
    Classic(
        "LiuHart1994",
        lambda x, y: -x[0] - 3.0 * y[0],
        lambda x, y: ([-1.0], [-3.0]),
        lambda x: [max(0.0, 4.0 * x[0] - 12.0)],
        pzos.Box(0.0, 4.0), [1.0], -16.0,
    ),
    Classic(
        "MuuQuy2003Ex1",
        lambda x, y: y[0] ** 2 + y[1] ** 2 + x[0] ** 2 - 4.0 * x[0],
        lambda x, y: ([2.0 * x[0] - 4.0], [2.0 * y[0], 2.0 * y[1]]),
        lambda x: _quadratic(
            [[2.0, 1.0], [1.0, 1.0]], [1.0 - 3.0 * x[0], 1.0 + x[0]],
            [[2.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0 + 2.0 * x[0], 0.0, 0.0],
        ),
        pzos.Box(0.0, 2.0), [1.8], -27.0 / 13.0,
    ),
    Classic(
        "GumusFloudas2001Ex1",  # the leader's y <= 4 x is x >= 4
        lambda x, y: 16.0 * x[0] ** 2 + 9.0 * y[0] ** 2,
        lambda x, y: ([32.0 * x[0]], [18.0 * y[0]]),
        lambda x: [_clip(20.0 - x[0], 0.0, 50.0 - 4.0 * x[0])],
        pzos.Box(4.0, 12.5), [8.0], 2250.0,
    ),
    Classic(
        "TuyEtal2007",
        lambda x, y: x[0] ** 2 + y[0] ** 2,
        lambda x, y: ([2.0 * x[0]], [2.0 * y[0]]),
        lambda x: [min(15.0 - 3.0 * x[0], 7.0 - x[0], (15.0 - x[0]) / 3.0)],
        pzos.Box(0.0, 5.0), [3.0], 22.5,
    ),
    Classic(
        "Outrata1993Ex32",
        lambda x, y: 0.5 * (y[0] - 3.0) ** 2 + 0.5 * (y[1] - 4.0) ** 2,
        lambda x, y: ([0.0], [y[0] - 3.0, y[1] - 4.0]),
        _outrata,
        pzos.Box(0.0, 10.0), [9.0], 3.2077,
    ),
    Classic(
        "Colson2002BIPA1",
        lambda x, y: (10.0 - x[0]) ** 3 + (10.0 - y[0]) ** 3,
        lambda x, y: ([-3.0 * (10.0 - x[0]) ** 2], [-3.0 * (10.0 - y[0]) ** 2]),
        lambda x: [_clip(0.5 * (15.0 - x[0]), 0.0, x[0])],
        pzos.Box(0.0, 5.0), [1.0], 250.0,
    ),
]  # fmt: skip


# ---- several decisions ----------------------------------------------------------------------------------------------


def _resources(x: Vector) -> Vector:
    """Two firms near (4, 13) and (35, 2), each under two resources of the leader."""
    x = np.maximum(x, 1e-9)  # nothing at all leaves a single point, which the quadratic program would not find
    first = _quadratic(
        [[2.0, 0.0], [0.0, 2.0]], [-8.0, -26.0],
        [[0.4, 0.7], [0.6, 0.3], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [x[0], x[1], 0.0, 0.0, 20.0, 20.0],
    )  # fmt: skip
    second = _quadratic(
        [[2.0, 0.0], [0.0, 2.0]], [-70.0, -4.0],
        [[0.4, 0.7], [0.6, 0.3], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [x[2], x[3], 0.0, 0.0, 40.0, 40.0],
    )  # fmt: skip
    return np.concatenate([first, second])


def _sales(x: Vector, y: Vector) -> float:
    one, two = y[0] + y[2], y[1] + y[3]
    return float(-(200.0 - one) * one - (160.0 - two) * two)


def _sales_slopes(x: Vector, y: Vector) -> tuple[list[float], list[float]]:
    one, two = 2.0 * (y[0] + y[2]) - 200.0, 2.0 * (y[1] + y[3]) - 160.0
    return [0.0] * 4, [one, two, one, two]


def _following(lower: float, upper: float) -> Callable[[Vector], list[float]]:
    return lambda x: [_clip(x[0], lower, upper), _clip(x[1], lower, upper)]


SEVERAL = [
    Classic(
        "Bard1988Ex2", _sales, _sales_slopes, _resources,
        pzos.Intersection([pzos.Box([0.0] * 4, [10.0, 5.0, 15.0, 20.0]), pzos.Polyhedron([[1.0] * 4], [40.0])]),
        [5.0, 2.5, 7.5, 10.0], -6600.0,
    ),
    Classic(
        "ShimizuAiyoshi1981Ex2",
        lambda x, y: (x[0] - 30.0) ** 2 + (x[1] - 20.0) ** 2 - 20.0 * y[0] + 20.0 * y[1],
        lambda x, y: ([2.0 * (x[0] - 30.0), 2.0 * (x[1] - 20.0)], [-20.0, 20.0]),
        _following(0.0, 10.0),
        pzos.Polyhedron(
            [[-1.0, -2.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [-30.0, 25.0, 15.0, 0.0, 0.0]
        ),
        [5.0, 14.0], 225.0,
    ),
    Classic(
        "FalkLiu1995",  # the paper has -2.1962, a point that is not optimal
        lambda x, y: float(x @ x - 3.0 * x.sum() + y @ y),
        lambda x, y: (list(2.0 * x - 3.0), list(2.0 * y)),
        _following(0.5, 1.5),
        pzos.Box(0.0, 3.0), [2.5, 0.2], -2.25,
    ),
    Classic(
        "DeSilva1978",
        lambda x, y: float(x @ x - 2.0 * x.sum() + y @ y),
        lambda x, y: (list(2.0 * x - 2.0), list(2.0 * y)),
        _following(0.5, 1.5),
        pzos.Box(0.0, 3.0), [2.5, 0.1], -1.0,
    ),
    Classic(
        "MuuQuy2003Ex2",
        lambda x, y: y[0] ** 2 + y[2] ** 2 - y[0] * y[2] - 4.0 * y[1] - 7.0 * x[0] + 4.0 * x[1],
        lambda x, y: ([-7.0, 4.0], [2.0 * y[0] - y[2], -4.0, 2.0 * y[2] - y[0]]),
        lambda x: _quadratic(
            [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1.0 - 3.0 * x[0], 1.0 + x[1], 0.0],
            [[2.0, 1.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]],
            [2.0 * x[1] - x[0] - 2.0, 0.0, 0.0, 0.0],
        ),
        pzos.Budget(1.0), [0.1, 0.1], 23.0 / 36.0,
    ),
]  # fmt: skip


def _classic(problems: list[Classic], seed: int) -> Classic:
    """Return a problem by number; from 100 on (for fixing constants) the first ones again, from other starts."""
    if seed < 100:
        return problems[seed]
    item = problems[seed % 100]
    moved = np.array(item.x0) * np.random.default_rng(seed).uniform(0.5, 1.0, len(item.x0))
    return replace(item, x0=item.domain.project(moved).tolist())


def _make(problems: list[Classic], seed: int) -> pzos.Problem:
    item = _classic(problems, seed)

    def all_at_once(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        grad_x, grad_y = item.gradients(x, y)
        return float(item.cost(x, y)), np.array(grad_x, dtype=np.float64), np.array(grad_y, dtype=np.float64)

    leader = pzos.leader_from_functions(item.cost, value_and_gradients=all_at_once, name=item.name)
    return pzos.Problem(leader, lambda x: np.array(item.answer(x), dtype=np.float64), item.x0, item.domain,
                        name=item.name)  # fmt: skip


def _family(name: str, problems: list[Classic], about: str) -> Family:
    return Family(
        name, "", "", partial(_make, problems), "kinked", about, best=lambda seed: _classic(problems, seed).best,
        instances=len(problems), kept=False,
    )  # fmt: skip


FAMILIES = [
    _family("bilevel-scalar", SCALAR, "nine bilevel problems of the literature with one decision and kinks"),
    _family("bilevel-several", SEVERAL, "five bilevel problems of the literature with two or four decisions"),
]
