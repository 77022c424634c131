"""The games of the library, with nothing declared about their followers."""

from __future__ import annotations

import numpy as np

import pzos
from testbed.unseen.instance import Cost, Draft, Vector, family

Rng = np.random.Generator


def _number(rng: Rng) -> int:
    """Return the number of a game no other benchmark of the project draws."""
    return int(rng.integers(10_000, 1_000_000))


def _draft(game: object, problem: pzos.Problem, search: str, unit: float) -> Draft:
    """Return a game as a draft to be minimised."""
    leader, sign = problem.leader, 1.0 if problem.sense == "min" else -1.0

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        at = leader(x, y)
        return sign * at.grad_x, sign * at.grad_y

    return Draft(
        Cost(lambda x, y: sign * leader.value(x, y), gradients), game.response, problem.x0, problem.domain,
        search=search, unit=unit,
    )  # type: ignore[attr-defined]  # fmt: skip


def _security(rng: Rng, targets: int) -> Draft:
    game = pzos.games.SecurityGame.random(_number(rng), targets)
    return _draft(game, game.problem(), "smooth", 1.0)


def _routing(rng: Rng, weight: float) -> Draft:
    game = pzos.games.RoutingGame.random(_number(rng))
    return _draft(game, game.problem(weight), "kinked", float(np.mean(game.response(game.problem().x0))) / weight)


@family("security-10", "games", "tune")
def security_10(rng: Rng) -> Draft:
    """The security game of the paper with 10 targets."""
    return _security(rng, 10)


@family("security-50", "games", "held")
def security_50(rng: Rng) -> Draft:
    """The security game of the paper with 50 targets."""
    return _security(rng, 50)


@family("security-100", "games", "tune")
def security_100(rng: Rng) -> Draft:
    """The security game of the paper with 100 targets."""
    return _security(rng, 100)


@family("routing-0.1", "games", "held")
def routing_0_1(rng: Rng) -> Draft:
    """The routing game of the paper, 18 to 116 edges, weight 0.1."""
    return _routing(rng, 0.1)


@family("routing-0.02", "games", "tune")
def routing_0_02(rng: Rng) -> Draft:
    """The routing game of the paper, weight 0.02: kinks decide."""
    return _routing(rng, 0.02)


@family("cournot", "games", "held")
def cournot(rng: Rng) -> Draft:
    """A leader among Cournot firms in three markets."""
    game = pzos.games.CournotGame.random(_number(rng))
    return _draft(game, game.problem(), "kinked", 1.0)
