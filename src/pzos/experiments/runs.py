"""One run of an experiment: build the instance, drive a study, keep what the figures need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from pzos.base.types import Vector
from pzos.experiments.descriptions import RunSpec
from pzos.games import RoutingGame, SecurityGame
from pzos.methods.schedules import Diminishing
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.problem.follower import Follower
from pzos.problem.problem import Problem
from pzos.problem.sets import Domain, Whole
from pzos.solving import solve


class RunOutcome(NamedTuple):
    """What is kept of a run: F(x_0), ..., F(x_T), |g_t|^2, and how often the constraints were active."""

    values: Vector
    gradient_norms_squared: Vector
    dimension: int
    projected_steps: int
    slack_answers: int


def execute(spec: RunSpec) -> RunOutcome:
    """Run one spec from nothing; a pure function of the spec."""
    problem, budget = _problem(spec)
    domain = CountingDomain(problem.domain)
    follower = WatchedFollower(problem.follower, budget)
    watched = Problem(problem.leader, follower, problem.x0, domain, problem.sense, problem.name)
    result = solve(watched, _solver(spec, problem.x0.size), steps=spec.steps, seed=spec.seed, progress=False)
    norms = result.trace["gradient_norm_squared"][: spec.steps]
    return RunOutcome(result.trace["value"], norms, int(problem.x0.size), domain.projected, follower.slack)


def _solver(spec: RunSpec, dimension: int) -> AnySolver:
    """Return the solver with the paper's step: a/sqrt(t) on security games, a/|E| on routing games."""
    step = Diminishing(spec.step_scale) if spec.family == "security" else spec.step_scale / dimension
    kind = PZOS if spec.variant.algorithm == "PZOS" else ZOS
    return kind(step=step, radius=spec.variant.radius, batch=spec.variant.batch)


def _problem(spec: RunSpec) -> tuple[Problem, float]:
    """Return the problem and the attacker's budget (infinite where there is none)."""
    if spec.family == "security":
        game = SecurityGame.random(spec.seed, targets=spec.targets)
        return game.problem(), game.budget
    return routing_game(spec.seed).problem(nonnegative=spec.variant.nonnegative), np.inf


@lru_cache(maxsize=4)
def routing_game(seed: int) -> RoutingGame:
    """Return the instance of this seed; consecutive runs of one instance share it."""
    return RoutingGame.random(seed)


class CountingDomain:
    """A set that counts how many projections moved their point (the paper says: none)."""

    def __init__(self, inner: Domain) -> None:
        self.inner = inner
        self.projected = 0

    def project(self, x: Vector) -> Vector:
        """Project, and count if that moved x."""
        projected = self.inner.project(x)
        if not isinstance(self.inner, Whole) and not np.array_equal(projected, x):
            self.projected += 1
        return projected

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Ask the set."""
        return self.inner.contains(x, tolerance)

    def faults(self, dimension: int) -> list[str]:
        """Ask the set."""
        return self.inner.faults(dimension)


class WatchedFollower(Follower):
    """A follower that counts the answers which leave some of the attacker's budget unspent."""

    batched = True

    def __init__(self, inner: Follower, budget: float) -> None:
        self.inner = inner
        self.budget = budget
        self.slack = 0

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Answer one point."""
        return self.respond_all([x])[0]

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Answer all points, and count."""
        answers = self.inner.respond_all(points)
        if self.budget < np.inf:
            self.slack += sum(float(answer.y.sum()) < self.budget * (1.0 - 1e-9) for answer in answers)
        return answers
