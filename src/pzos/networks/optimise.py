"""Choosing tolls: good places to start from, the uniform toll every proposal must beat, and the search itself.

Marginal-cost tolls x = v t'(v), averaged over a few responses, are where a leader who knows the latencies starts:
with all links tolled and one class they lead to the system optimum. Elsewhere they are only a start.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults
from pzos.base.errors import FollowerFailure
from pzos.base.types import Purpose, Query, Vector
from pzos.networks.tolls import TollFollower, marginal_cost_tolls
from pzos.problem.problem import Problem
from pzos.solving import solve
from pzos.study.result import Result


class Uniform(NamedTuple):
    """The best toll that is the same on all chosen links, with its value and the queries it took."""

    toll: float
    value: float
    queries: int


class Trial(NamedTuple):
    """Tolls that were tried before the search, and what they are worth."""

    x: Vector
    value: float
    what: str


@dataclass(frozen=True, eq=False)
class TollSearch:
    """The best tolls found; ``start`` says from where the search began, ``queries`` counts everything asked."""

    x: Vector
    value: float
    start: Trial
    uniform: Uniform
    untolled: float
    queries: int
    seconds: float
    result: Result

    def choices(self) -> dict[str, Vector]:
        """Return the tolls worth comparing by name: none, the best uniform ones, and those found."""
        uniform = np.full_like(self.x, self.uniform.toll)
        return {"no tolls": np.zeros_like(self.x), f"uniform {self.uniform.toll:g}": uniform, "optimised": self.x}


def optimise_tolls(
    problem: Problem, highest: float, solver: Any = None, *, queries: int = 200, uniform: int = 8, marginal: int = 6,
    seed: int = 0, **limits: Any
) -> TollSearch:  # fmt: skip
    """Search the tolls within so many queries, from the best of some uniform and marginal-cost tolls.

    ``uniform`` equal tolls from 0 to ``highest`` are tried, and ``marginal`` steps of averaged marginal-cost tolls
    where the followers are an equilibrium model; the rest of the budget is the solver's (default: the package's).
    """
    faults = Faults("optimise_tolls")
    faults.check(uniform >= 2, "uniform", uniform, "at least 2", "no tolls and the highest")
    faults.check(marginal >= 0, "marginal", marginal, "a number >= 0", "0 tries none")
    faults.check(queries > uniform + marginal, "queries", queries, f"more than {uniform + marginal}",
                 "the first ones find a place to start from")  # fmt: skip
    faults.raise_if_any()
    begin, sign = time.perf_counter(), 1.0 if problem.sense == "min" else -1.0
    levels = np.append(0.0, highest * 0.5 ** np.arange(uniform - 2, -1, -1.0))  # finer where tolls are low
    equal = list(_uniform_trials(problem, highest, levels, seed))
    others = list(marginal_cost_trials(problem, marginal)) if marginal else []
    start = min([*equal, *others], key=lambda trial: sign * trial.value)
    spent = len(equal) + len(others)
    moved = Problem(problem.leader, problem.follower, start.x, problem.domain, problem.sense, problem.name,
                    problem.structure)  # fmt: skip
    result = solve(moved, solver, queries=queries - spent, seed=seed, monitor=False, **limits)
    better = sign * result.best_value < sign * start.value
    x, value = (result.best_x, result.best_value) if better else (start.x, start.value)
    return TollSearch(
        x, value, start, _best(equal, sign), equal[0].value, spent + result.queries, time.perf_counter() - begin, result
    )


def value_at(problem: Problem, x: Vector, seed: int = 0) -> float:
    """Return F(x), by one query."""
    return problem.leader.value(x, _response(problem, x, seed))


def _response(problem: Problem, x: Vector, seed: int) -> Vector:
    oracle = Oracle(problem.follower, seed=seed)
    response = next(oracle.answer([Query(0, 0, np.asarray(x, dtype=np.float64), Purpose.MONITOR)]))
    if response.failure:
        raise FollowerFailure(f"the followers did not answer at x = {x}: {response.failure}")
    return response.y


def best_uniform(problem: Problem, highest: float, points: int = 11, seed: int = 0) -> Uniform:
    """Try equal tolls from 0 to ``highest`` on all links (projected onto the problem's set); return the best."""
    faults = Faults("best_uniform")
    faults.check(points >= 2, "points", points, "at least 2", "try 11")
    faults.raise_if_any()
    trials = list(_uniform_trials(problem, highest, np.linspace(0.0, highest, points), seed))
    return _best(trials, 1.0 if problem.sense == "min" else -1.0)


def _best(trials: list[Trial], sign: float) -> Uniform:
    best = min(trials, key=lambda trial: sign * trial.value)
    return Uniform(float(best.x.max()), best.value, len(trials))


def _uniform_trials(problem: Problem, highest: float, levels: Vector, seed: int) -> Iterator[Trial]:
    faults = Faults("uniform tolls")
    faults.check(bool(0 < highest < np.inf), "highest", highest, "a positive number", "try twice a typical link time")
    faults.raise_if_any()
    for toll in levels:
        x = problem.domain.project(np.full(problem.x0.size, float(toll)))
        yield Trial(x, value_at(problem, x, seed), f"a uniform toll of {toll:.4g}" if toll else "no tolls")


def marginal_cost_trials(problem: Problem, steps: int) -> Iterator[Trial]:
    """Try averaged marginal-cost tolls (:func:`pzos.networks.tolls.marginal_cost_tolls`).

    Nothing is tried where the followers are not the package's own equilibrium, whose latencies are known.
    """
    travellers = getattr(problem.follower, "function", None)
    if isinstance(travellers, TollFollower):
        for step, (x, y) in enumerate(marginal_cost_tolls(travellers, problem.domain, steps), 1):
            yield Trial(x, problem.leader.value(x, y), f"marginal-cost tolls after {step} steps")
