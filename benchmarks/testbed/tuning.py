"""Running solvers on the test bed, and tuning them all the same way: on two instances that are never reported.

A grid has twelve candidates whatever the method, six sizes of the step times two of another setting. The candidate with
the least mean gap at the end of the budget is run on the instances that are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.base.errors import PzosError
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Diminishing
from pzos.solving import solve
from pzos.study.run import iterate
from pzos.study.study import Study
from testbed.cases import Case, make

TUNING_SEEDS = (100, 101)
SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class Setting(NamedTuple):
    """What a grid is made for: the radius and step of the paper, a length of the family's solutions, the budget."""

    radius: float
    length: float
    dimension: int
    queries: int

    @property
    def steps(self) -> list[float | Diminishing]:
        """Return the sizes, each as a constant and as a diminishing step."""
        return [step for size in SIZES for step in (size, Diminishing(size))]


Grid = Callable[[Setting], Sequence[AnySolver]]


def run_solver(solver: AnySolver, case: Case, queries: int, seed: int) -> list[float]:
    """Run one of our solvers; F at the point it would return stands for every query of a step."""
    found: list[float] = []
    if case.clean is case.problem.follower:
        result = solve(case.problem, solver, queries=queries, seed=seed, progress=False, certificate=False)
        at = [int(q) for q in result.trace["queries"]]
        for q, value in zip(at, result.trace["value"], strict=True):
            found.extend([float(value)] * (max(q, len(found)) - len(found)))
        return found[:queries]
    study = Study(case.problem.known(), solver, seed=seed, queries=queries, monitor=False)
    for record in iterate(study, Oracle(case.problem.follower, seed=seed)):
        found.extend([case.true_value(study.state.x)] * (record.queries - len(found)))
    return found


def setting(case: Case, queries: int) -> Setting:
    """Return the setting of a case's family."""
    security = case.family.startswith("security")
    return Setting(0.1 if security else 0.5, 5.0 if security else 100.0, case.problem.x0.size, queries)


def same(case: Case) -> Case:
    """Return the case as it is."""
    return case


@cache
def tuning_cases(name: str, noise: float) -> tuple[Case, ...]:
    """Return the instances of a family on which constants are fixed."""
    return tuple(make(name, seed, noise) for seed in TUNING_SEEDS)


@cache
def tuned(grid: Grid, name: str, noise: float, queries: int, ready: Callable[[Case], Case] = same) -> AnySolver:
    """Return the candidate of a grid with the least mean gap after this budget; ``ready`` prepares each case."""
    cases = [ready(case) for case in tuning_cases(name, noise)]
    candidates = grid(setting(cases[0], queries))
    gaps = [float(np.mean([_least_gap(solver, case, queries) for case in cases])) for solver in candidates]
    return candidates[int(np.argmin(gaps))]


def _least_gap(solver: AnySolver, case: Case, queries: int) -> float:
    """Return the best gap of a run; infinity where a step so long was taken that the followers broke."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = run_solver(solver, case, queries, case.seed)
    except PzosError:
        return float("inf")
    start = case.true_value(case.problem.x0)
    return min((case.gap(value, start) for value in found if np.isfinite(value)), default=np.inf)
