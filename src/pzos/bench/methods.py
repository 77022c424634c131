"""The methods of the test bed: each takes a case, a budget and a seed, and gives the true F at every query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pzos.bench.cases import Case, Counter
from pzos.run import iterate, solve
from pzos.schedules import Diminishing
from pzos.solvers.base import AnySolver
from pzos.solvers.memory import MemoryPZOS, SecantPZOS
from pzos.solvers.smoothing import PZOS, ZOS
from pzos.solvers.trust_step import minimise
from pzos.study import Study
from pzos.types import Vector

Method = Callable[[Case, int, int], list[float]]


def default(case: Case, queries: int, seed: int) -> list[float]:
    """Run ``pzos.solve`` with nothing named."""
    from pzos.choose import choose
    from pzos.limits import Limits

    return _ours(choose(case.problem.known(), Limits(queries=queries))[0], case, queries, seed)


def _ours(solver: AnySolver, case: Case, queries: int, seed: int) -> list[float]:
    """Run one of our solvers; F at the iterate stands for every query of a step."""
    values: list[float] = []
    if case.clean is case.problem.follower:
        result = solve(case.problem, solver, queries=queries, seed=seed, progress=False)
        at = [int(q) for q in result.trace["queries"]]
        for q, value in zip(at, result.trace["value"], strict=True):
            values.extend([float(value)] * (max(q, len(values)) - len(values)))
        return values[:queries]
    from pzos.oracle import Oracle

    study = Study(case.problem.known(), solver, seed=seed, queries=queries, monitor=False)
    for record in iterate(study, Oracle(case.problem.follower, seed=seed)):
        values.extend([case.true_value(study.state.x)] * (record.queries - len(values)))
    return values


def _paper_step(case: Case) -> tuple[float | Diminishing, float]:
    n = case.problem.x0.size
    if case.family.startswith("security"):
        return Diminishing(0.05 if n <= 100 else 0.03), 0.1
    return 0.7 / n, 0.5


def pzos_paper(case: Case, queries: int, seed: int) -> list[float]:
    """Run PZOS with the paper's steps and radii."""
    step, radius = _paper_step(case)
    return _ours(PZOS(step=step, radius=radius), case, queries, seed)


def zos_paper(case: Case, queries: int, seed: int) -> list[float]:
    """Run ZOS with the paper's steps and radii."""
    step, radius = _paper_step(case)
    return _ours(ZOS(step=step, radius=radius), case, queries, seed)


def memory(case: Case, queries: int, seed: int) -> list[float]:
    """Run PZOS with memory, unbiased, at its defaults."""
    return _ours(MemoryPZOS(), case, queries, seed)


def secant(case: Case, queries: int, seed: int) -> list[float]:
    """Run secant PZOS at its defaults."""
    return _ours(SecantPZOS(), case, queries, seed)


def naive(case: Case, queries: int, seed: int) -> list[float]:
    """Iterate best responses: x <- argmin f(x, y) for the last answer y, as if the followers did not react."""
    problem, counter = case.problem, Counter(case, queries)
    leader, sign, x = problem.leader, case.sign, problem.x0
    for _ in range(queries):
        counter(x)
        y = counter.last

        def unanswered(z: Vector, y: Vector = y) -> tuple[float, Vector]:
            at = leader(z, y)
            return sign * at.value, sign * at.grad_x

        x = minimise(unanswered, x, 10.0 * max(1.0, float(np.abs(x).max())), problem.domain, 100).x
    return counter.values


#: Our methods and the two simplest baselines, by name.
OURS: dict[str, Method] = {
    "default": default,
    "pzos-memory": memory,
    "pzos-secant": secant,
    "pzos-paper": pzos_paper,
    "zos-paper": zos_paper,
    "naive": naive,
}
