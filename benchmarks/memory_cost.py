"""What remembering costs: own time per query and memory held, from d = 10 to d = 100 000.

    python benchmarks/memory_cost.py

The follower is a componentwise |x| that costs next to nothing and is included, as are study and oracle. Times are the
best of three runs.
"""

from __future__ import annotations

import platform
import time
import tracemalloc

import numpy as np

from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.predictions import PairMemory, SecantMemory
from pzos.methods.smoothing import PZOS
from pzos.methods.solver import AnySolver
from pzos.problem.leader import leader_from_functions
from pzos.problem.problem import Problem
from pzos.solving import solve

CASES = ((10, 200), (100, 200), (300, 100), (1000, 40), (100_000, 60))


def problem(dimension: int) -> Problem:
    leader = leader_from_functions(
        lambda x, y: float(np.sum((x - 1) ** 2) + np.sum(y * y)), lambda x, y: 2 * (x - 1), lambda x, y: 2 * y
    )
    return Problem(leader, np.abs, np.full(dimension, 0.3))


def solvers(dimension: int) -> dict[str, AnySolver]:
    methods: dict[str, AnySolver] = {"PZOS": PZOS(), "MemoryPZOS (default)": MemoryPZOS()}
    if dimension <= 1000:
        methods |= {"MemoryPZOS, SecantMemory": MemoryPZOS(prediction=SecantMemory()), "SecantPZOS": SecantPZOS()}
    return methods | {"MemoryPZOS, PairMemory(20)": MemoryPZOS(prediction=PairMemory(20))}


def seconds_per_query(case: Problem, solver: AnySolver, queries: int) -> float:
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        result = solve(case, solver, queries=queries, monitor=False, progress=False)
        best = min(best, (time.perf_counter() - start) / result.queries)
    return best


def megabytes(case: Problem, solver: AnySolver, queries: int) -> float:
    tracemalloc.start()
    solve(case, solver, queries=queries, monitor=False, progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    print(f"python {platform.python_version()}, numpy {np.__version__}")
    for dimension, queries in CASES:
        case = problem(dimension)
        for name, solver in solvers(dimension).items():
            own = seconds_per_query(case, solver, queries)
            peak = megabytes(case, solver, queries)
            print(f"d = {dimension:6d}  {name:28s} {1e3 * own:8.3f} ms per query   peak {peak:7.1f} MB")


if __name__ == "__main__":
    main()
