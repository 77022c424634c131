"""The problems of the test bed, each with the best value known: the optimum a white box finds from several starts.

Instances are drawn by number. Numbers from 100 up were used to fix constants; reported tables use others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import Query, Vector
from pzos.games.cournot import CournotGame
from pzos.games.derivatives import routing_jacobian, security_gradient
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.problem.follower import Follower, seeded
from pzos.problem.problem import Problem
from pzos.problem.structure import conserved, own_effect
from testbed.frank_wolfe import routing_by_frank_wolfe, security_by_frank_wolfe

WhiteBox = Callable[[Vector], tuple[float, Vector]]
Residuals = Callable[[Vector, Vector], Vector]
_STARTS = 3


class Unsuited(InvalidInput):
    """A method is not made for a case; the message says what it needs."""


@dataclass(frozen=True, eq=False)
class Case:
    """One problem with its reference value; ``clean`` answers without the noise that ``problem`` may have.

    ``white_box`` is x -> sign F with its gradient, where the followers' Jacobian is known; ``residuals`` is (x, y) -> r
    with f = |r|^2, where the cost is a sum of squares; ``frank_wolfe`` are followers who answer by a Frank-Wolfe run,
    where they have a model; all three are for reference methods only. ``name`` and ``noise`` are what :func:`make` was
    given.
    """

    family: str
    seed: int
    problem: Problem
    reference: Callable[[], float]
    clean: Follower
    white_box: WhiteBox | None = None
    residuals: Residuals | None = None
    frank_wolfe: Callable[[Vector], Vector] | None = None
    name: str = ""
    noise: float = 0.0

    @property
    def best(self) -> float:
        """Return the best value known; found at the first call, since that takes longer than all else."""
        return self.reference()

    @property
    def sign(self) -> float:
        """Return +1 to minimise, -1 to maximise."""
        return self.problem.known().sign

    def true_value(self, x: Vector) -> float:
        """Return F(x) without noise."""
        return self.problem.leader.value(x, answer(self.clean, x))

    def gap(self, value: float, start: float) -> float:
        """Return (F - F_best)/(F_0 - F_best), in the sense of the problem."""
        return self.sign * (value - self.best) / max(self.sign * (start - self.best), 1e-300)


def answer(follower: Follower, x: Vector) -> Vector:
    """Return y*(x) from a follower without noise."""
    return next(iter(Oracle(follower).answer([Query(0, 0, np.array(x))]))).y


def noisy(problem: Problem, level: float) -> Problem:
    """Return the problem with every entry of y* multiplied by 1 + level N(0, 1), repeatably."""
    clean = problem.follower

    def respond(x: Vector, generator: np.random.Generator) -> Vector:
        y = answer(clean, x)
        return y * (1.0 + level * generator.standard_normal(y.size))

    return Problem(
        problem.leader, seeded(respond), problem.x0, problem.domain, problem.sense, problem.name, problem.structure
    )


def security(seed: int, targets: int, *, declared: bool = False, noise: float = 0.0) -> Case:
    """Return the security game of the paper (Sec. 5.2), with own effects and conservation declared or not."""
    game = SecurityGame.random(seed, targets)
    problem = game.problem(structure=[own_effect(), conserved()] if declared else ())

    def white_box(x: Vector) -> tuple[float, Vector]:
        return security_gradient(game, x)

    def residuals(x: Vector, y: Vector) -> Vector:
        success = game.defender_value * y / (np.maximum(x, 0.0) + y + game.baseline)
        return np.concatenate([np.sqrt(np.maximum(success, 0.0)), np.sqrt(0.5 * game.defender_cost) * x])

    best = partial(_reference, white_box, problem, seed, lower=0.0)
    name = f"security n={targets}{' declared' if declared else ''}"
    return _case(name, seed, problem, best, noise, white_box, residuals, security_by_frank_wolfe(game))


def routing(seed: int, regularisation: float, *, noise: float = 0.0) -> Case:
    """Return the routing game of the paper (Sec. 5.1), 18-116 edges, with any weight of the regularisation."""
    game = RoutingGame.random(seed)
    problem = game.problem(regularisation)
    leader = game.leader(regularisation)

    def white_box(x: Vector) -> tuple[float, Vector]:
        at = leader(x, game.response(x))
        return -at.value, -(at.grad_x + routing_jacobian(game, x).transpose_times(at.grad_y))

    spread = game.response(problem.x0) / (2.0 * regularisation)

    def best() -> float:
        return -_reference(white_box, problem, seed, spread=spread)

    name = f"routing lambda={regularisation:g}"
    return _case(name, seed, problem, best, noise, white_box, frank_wolfe=routing_by_frank_wolfe(game))


def cournot(seed: int, *, noise: float = 0.0) -> Case:
    """Return the Cournot leader; its reference is the best of two runs, polished by differences (no white box)."""
    from scipy.optimize import minimize

    from pzos.solving import solve

    problem = CournotGame.random(seed).problem()

    def loss(x: Vector) -> float:
        point = problem.domain.project(x)
        return -problem.leader.value(point, answer(problem.follower, point))

    def best() -> float:
        lowest = np.inf
        for start in range(2):
            x = solve(problem, queries=60, seed=start, progress=False, certificate=False).best_x
            for _ in range(3):
                x = minimize(loss, x, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).x
            lowest = min(lowest, loss(x))
        return -lowest

    return _case("cournot", seed, problem, best, noise)


def _case(
    family: str,
    seed: int,
    problem: Problem,
    best: Callable[[], float],
    noise: float,
    white_box: WhiteBox | None = None,
    residuals: Residuals | None = None,
    frank_wolfe: Callable[[Vector], Vector] | None = None,
) -> Case:
    clean = problem.follower
    if noise != 0.0:
        family, problem = f"{family} noise {noise:g}", noisy(problem, noise)
    return Case(family, seed, problem, cache(best), clean, white_box, residuals, frank_wolfe)


def _reference(
    white_box: WhiteBox, problem: Problem, seed: int, *, lower: float | None = None, spread: Vector | None = None
) -> float:
    """Return the lowest value L-BFGS-B finds with exact Jacobians from x0 and random points; restarts pass kinks."""
    from scipy.optimize import minimize

    n = problem.x0.size
    best = np.inf
    for start in range(_STARTS):
        x = problem.x0
        if start:
            draw = Keys(seed).generator(Role.INSTANCE, 1, start).random(n)
            x = x + (2.0 * draw if spread is None else 1.5 * spread * draw)
        for _ in range(4):
            found = minimize(
                white_box, x, jac=True, method="L-BFGS-B", bounds=[(lower, None)] * n,
                options={"maxiter": 300, "maxfun": 400, "ftol": 1e-14, "gtol": 1e-9},
            )  # fmt: skip
            x = np.asarray(found.x, dtype=np.float64)
        best = min(best, float(found.fun))
    return best


#: Every family by the name the command line knows.
FAMILIES: dict[str, Callable[[int, float], Case]] = {
    **{
        f"security-{n}": (lambda seed, noise, n=n: security(seed, n, noise=noise))  # type: ignore[misc]
        for n in (10, 50, 100, 300)
    },
    **{
        f"security-{n}-declared": (lambda seed, noise, n=n: security(seed, n, declared=True, noise=noise))  # type: ignore[misc]
        for n in (10, 50, 100, 300)
    },
    **{
        f"routing-{weight:g}": (lambda seed, noise, weight=weight: routing(seed, weight, noise=noise))  # type: ignore[misc]
        for weight in (1.0, 0.1, 0.02)
    },
    "cournot": lambda seed, noise: cournot(seed, noise=noise),
}


def make(family: str, seed: int, noise: float = 0.0) -> Case:
    """Return one case by the name of its family."""
    faults = Faults("bench")
    faults.check(family in FAMILIES, "family", family, f"one of {', '.join(FAMILIES)}", "check the spelling")
    faults.raise_if_any()
    return replace(FAMILIES[family](seed, noise), name=family, noise=noise)


class Spent(Exception):
    """The query budget is spent; raised through a peer to end it."""


class Counter:
    """sign F with a count of queries; noise, where there is any, comes by address from the case's own seed."""

    def __init__(self, case: Case, budget: int) -> None:
        self.case = case
        self.budget = budget
        self.values: list[float] = []
        self.last: Vector = np.zeros(0)
        self._oracle = Oracle(case.problem.follower, seed=case.seed)

    def __call__(self, x: Any) -> float:
        """Query x, moved into the domain, and return sign F there."""
        if len(self.values) >= self.budget:
            raise Spent
        point = self.case.problem.domain.project(np.array(x, dtype=np.float64))
        y = self.last = next(iter(self._oracle.answer([Query(len(self.values), 0, point)]))).y
        self.values.append(self.case.true_value(point) if self.noisy else self.case.problem.leader.value(point, y))
        return self.case.sign * self.case.problem.leader.value(point, y)

    @property
    def noisy(self) -> bool:
        """Whether values must be measured apart from what the method saw."""
        return self.case.clean is not self.case.problem.follower
