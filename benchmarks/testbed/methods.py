"""The methods of the test bed: each takes a case, a budget and a seed, and gives the true F at every query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from pzos.base.types import Vector
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.steps import Diminishing
from pzos.methods.trust_region.subproblem import Region, bounds_of, minimise
from testbed.cases import Case, Counter, Spent, Unsuited
from testbed.related import RELATED
from testbed.tuning import Grid, run_solver, tuned

Method = Callable[[Case, int, int], list[float]]


def default(case: Case, queries: int, seed: int) -> list[float]:
    """Run ``pzos.solve`` with nothing named."""
    from pzos.methods.default import choose

    return run_solver(choose(case.problem.known(), queries)[0], case, queries, seed)


def _paper_step(case: Case) -> tuple[float | Diminishing, float]:
    n = case.problem.x0.size
    if case.family.startswith("security"):
        return Diminishing(0.05 if n <= 100 else 0.03), 0.1
    return 0.7 / n, 0.5


def pzos_paper(case: Case, queries: int, seed: int) -> list[float]:
    """Run PZOS with the paper's steps and radii."""
    step, radius = _paper_step(case)
    return run_solver(PZOS(step=step, radius=radius), case, queries, seed)


def zos_paper(case: Case, queries: int, seed: int) -> list[float]:
    """Run ZOS with the paper's steps and radii."""
    step, radius = _paper_step(case)
    return run_solver(ZOS(step=step, radius=radius), case, queries, seed)


def _grid(kind: type[PZOS] | type[ZOS]) -> Grid:
    return lambda s: [kind(step=step, radius=s.radius) for step in s.steps]


_PZOS_GRID, _ZOS_GRID = _grid(PZOS), _grid(ZOS)


def pzos_tuned(case: Case, queries: int, seed: int) -> list[float]:
    """Run PZOS with the constant or diminishing step that was best at this budget on instances not reported."""
    return run_solver(tuned(_PZOS_GRID, case.name, case.noise, queries), case, queries, seed)


def zos_tuned(case: Case, queries: int, seed: int) -> list[float]:
    """Run ZOS with the constant or diminishing step that was best at this budget on instances not reported."""
    return run_solver(tuned(_ZOS_GRID, case.name, case.noise, queries), case, queries, seed)


def white_box(case: Case, queries: int, seed: int) -> list[float]:
    """Run L-BFGS-B with the followers' exact Jacobian: the limit no method that only queries can be asked to beat."""
    from scipy.optimize import Bounds, minimize

    gradient = case.white_box
    if gradient is None:
        raise Unsuited(f"white-box: {case.family}: expected a game with a known Jacobian; leave this method out")
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
    return run_solver(MemoryPZOS(), case, queries, seed)


def secant(case: Case, queries: int, seed: int) -> list[float]:
    """Run secant PZOS at its defaults."""
    return run_solver(SecantPZOS(), case, queries, seed)


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


#: Our methods, the two simplest baselines and the related work, by name.
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
    **RELATED,
}
