"""Choosing tolls: the default solver for toll problems, and the uniform toll every proposal must beat."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from pzos.errors import Faults, FollowerFailure
from pzos.oracle import Oracle
from pzos.problem import Problem
from pzos.result import Result
from pzos.run import solve
from pzos.solvers.memory import SecantPZOS
from pzos.types import Purpose, Query, Vector


class Uniform(NamedTuple):
    """The best toll that is the same on all chosen links, with its value and the queries it took."""

    toll: float
    value: float
    queries: int


def default_solver(radius: float | None = None) -> Any:
    """Return the most query-efficient solver of the package; ``radius`` is the toll difference worth probing."""
    try:
        room = importlib.import_module("pzos.solvers.trust_region")
    except ModuleNotFoundError:
        return SecantPZOS(radius=0.1 if radius is None else radius)
    return room.CompositeTrustRegion()


def optimise_tolls(problem: Problem, solver: Any = None, *, queries: int = 200, seed: int = 0, **limits: Any) -> Result:
    """Solve a toll problem with ``solver`` (default: :func:`default_solver`) within so many queries."""
    chosen = default_solver() if solver is None else solver
    return solve(problem, chosen, queries=queries, seed=seed, monitor=False, **limits)


def value_at(problem: Problem, x: Vector, seed: int = 0) -> float:
    """Return F(x), by one query."""
    oracle = Oracle(problem.follower, seed=seed)
    response = next(oracle.answer([Query(0, 0, np.asarray(x, dtype=np.float64), Purpose.MONITOR)]))
    if response.failure:
        raise FollowerFailure(f"the followers did not answer at x = {x}: {response.failure}")
    return problem.leader.value(x, response.y)


def best_uniform(problem: Problem, highest: float, points: int = 11, seed: int = 0) -> Uniform:
    """Try equal tolls from 0 to ``highest`` on all links (projected onto the problem's set); return the best."""
    faults = Faults("best_uniform")
    faults.check(bool(0 < highest < np.inf), "highest", highest, "a positive number", "try twice a typical link time")
    faults.check(points >= 2, "points", points, "at least 2", "try 11")
    faults.raise_if_any()
    sign = 1.0 if problem.sense == "min" else -1.0
    tried = []
    for toll in np.linspace(0.0, highest, points):
        x = problem.domain.project(np.full(problem.x0.size, toll))
        tried.append((sign * value_at(problem, x, seed), float(toll)))
    value, toll = min(tried)
    return Uniform(toll, sign * value, points)
