"""The methods of the test bed: each takes a case, a budget and a seed, and gives the true F at every query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache

import numpy as np

from pzos.base.errors import InvalidInput, PzosError
from pzos.base.types import Vector
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Diminishing
from pzos.methods.trust_region.subproblem import Region, bounds_of, minimise
from pzos.solving import solve
from pzos.study.run import iterate
from pzos.study.study import Study
from testbed.cases import Case, Counter, Spent, make

Method = Callable[[Case, int, int], list[float]]


def default(case: Case, queries: int, seed: int) -> list[float]:
    """Run ``pzos.solve`` with nothing named."""
    from pzos.methods.default import choose

    return _ours(choose(case.problem.known(), queries)[0], case, queries, seed)


def _ours(solver: AnySolver, case: Case, queries: int, seed: int) -> list[float]:
    """Run one of our solvers; F at the iterate stands for every query of a step."""
    values: list[float] = []
    if case.clean is case.problem.follower:
        result = solve(case.problem, solver, queries=queries, seed=seed, progress=False, certificate=False)
        at = [int(q) for q in result.trace["queries"]]
        for q, value in zip(at, result.trace["value"], strict=True):
            values.extend([float(value)] * (max(q, len(values)) - len(values)))
        return values[:queries]
    from pzos.answers.oracle import Oracle

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


_TUNING_SEEDS = (100, 101)
_TUNING_STEPS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def pzos_tuned(case: Case, queries: int, seed: int) -> list[float]:
    """Run PZOS with the constant or diminishing step that was best at this budget on instances not reported."""
    return _ours(_tuned("PZOS", case, queries), case, queries, seed)


def zos_tuned(case: Case, queries: int, seed: int) -> list[float]:
    """Run ZOS with the constant or diminishing step that was best at this budget on instances not reported."""
    return _ours(_tuned("ZOS", case, queries), case, queries, seed)


def _tuned(kind: str, case: Case, queries: int) -> PZOS | ZOS:
    return _tuned_for(kind, case.name, case.noise, queries)


@cache
def _tuned_for(kind: str, name: str, noise: float, queries: int) -> PZOS | ZOS:
    """Return the best of a grid of steps by its mean final gap on two instances of the family."""
    cases = [make(name, seed, noise) for seed in _TUNING_SEEDS]
    radius = _paper_step(cases[0])[1]
    scores: dict[PZOS | ZOS, float] = {}
    for size in _TUNING_STEPS:
        for step in (size, Diminishing(size)):
            solver = (PZOS if kind == "PZOS" else ZOS)(step=step, radius=radius)
            scores[solver] = float(np.mean([_end(solver, case, queries) for case in cases]))
    return min(scores, key=lambda solver: scores[solver])


def _end(solver: AnySolver, case: Case, queries: int) -> float:
    """Return the best gap of a run; infinity where a step so long was taken that the followers broke."""
    try:
        values = _ours(solver, case, queries, case.seed)
    except PzosError:
        return float("inf")
    start = case.true_value(case.problem.x0)
    return min((case.gap(value, start) for value in values if np.isfinite(value)), default=np.inf)


def white_box(case: Case, queries: int, seed: int) -> list[float]:
    """Run L-BFGS-B with the followers' exact Jacobian: the limit no method that only queries can be asked to beat."""
    from scipy.optimize import Bounds, minimize

    gradient = case.white_box
    if gradient is None:
        raise InvalidInput(f"white-box: {case.family}: expected a game with a known Jacobian; leave this method out")
    counter, problem = Counter(case, queries), case.problem
    box = bounds_of(problem.domain, problem.x0.size)

    def objective(x: Vector) -> tuple[float, Vector]:
        counter(x)
        return gradient(x)

    x = problem.x0
    with contextlib.suppress(Spent):
        for _ in range(4):  # kinks end a run early; a fresh one goes on
            limits = None if box is None else Bounds(*box)
            x = minimize(
                objective, x, jac=True, method="L-BFGS-B", bounds=limits,
                options={"maxiter": 10_000, "maxfun": 10 * queries, "ftol": 1e-15, "gtol": 1e-12},
            ).x  # fmt: skip
    return counter.values


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

        reach = 10.0 * max(1.0, float(np.abs(x).max()))
        x = minimise(unanswered, Region(x, reach, np.ones_like(x), problem.domain), 100).x
    return counter.values


#: Our methods and the two simplest baselines, by name.
OURS: dict[str, Method] = {
    "default": default,
    "pzos-memory": memory,
    "pzos-secant": secant,
    "pzos-paper": pzos_paper,
    "zos-paper": zos_paper,
    "pzos-tuned": pzos_tuned,
    "zos-tuned": zos_tuned,
    "naive": naive,
    "white-box": white_box,
}
