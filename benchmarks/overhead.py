"""What the engine itself costs, as ratios inside one run on one thread.

Run:  make bench      (installs the peers), or  python benchmarks/overhead.py  where they are installed.

Every figure is the best of several interleaved rounds, because other programs can only make a round slower.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np

import pzos


def constant_problem(d: int) -> pzos.Problem:
    """A follower that returns a constant array and a leader that costs next to nothing."""
    answer, zeros = np.ones(d), np.zeros(d)
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: zeros, lambda x, y: answer)
    return pzos.Problem(leader, lambda x: answer, np.zeros(d))


def pzos_seconds_per_query(d: int, queries: int) -> float:
    problem, solver = constant_problem(d), pzos.PZOS(step=0.05, radius=0.1)
    start = time.perf_counter()
    result = pzos.solve(problem, solver, steps=max(1, queries // 3), seed=0)
    return (time.perf_counter() - start) / result.queries


def cma_seconds_per_query(d: int, queries: int) -> float:
    import cma

    strategy = cma.CMAEvolutionStrategy(np.zeros(d), 0.5, {"verbose": -9, "maxiter": 10**9, "seed": 1})
    asked, start = 0, time.perf_counter()
    while asked < queries:
        points = strategy.ask()
        strategy.tell(points, [0.0] * len(points))
        asked += len(points)
    return (time.perf_counter() - start) / asked


def nevergrad_seconds_per_query(d: int, queries: int) -> float:
    import nevergrad

    array = nevergrad.p.Array(init=np.zeros(d))
    optimiser = nevergrad.optimizers.OnePlusOne(parametrization=array, budget=10**6)
    start = time.perf_counter()
    for _ in range(queries):
        optimiser.tell(optimiser.ask(), 0.0)
    return (time.perf_counter() - start) / queries


def best_of(rounds: int, *measures: Callable[[], float]) -> list[float]:
    results = [[measure() for measure in measures] for _ in range(rounds)]
    return [min(column) for column in zip(*results, strict=True)]


def against_peers(d: int, queries: int, wanted: dict[str, float]) -> None:
    peers: dict[str, Callable[[], float]] = {}
    for name, measure in (("cma", cma_seconds_per_query), ("nevergrad", nevergrad_seconds_per_query)):
        if name in wanted and installed(name):
            peers[name] = lambda measure=measure: measure(d, queries)
    ours, *theirs = best_of(15, lambda: pzos_seconds_per_query(d, 3 * queries), *peers.values())
    print(f"d = {d}: pzos {ours * 1e6:.1f} us per query")
    for name, seconds in zip(peers, theirs, strict=True):
        label = {"cma": "pycma", "nevergrad": "nevergrad OnePlusOne"}[name]
        report(f"  {label}: {seconds * 1e6:.1f} us", seconds / ours, wanted[name], "x below", at_least=True)


def report(text: str, figure: float, bar: float, unit: str, *, at_least: bool) -> None:
    met = figure >= bar if at_least else figure <= bar
    sign = ">=" if at_least else "<="
    print(f"{text}: {figure:.2f} {unit} (bar {sign} {bar:g}): {'met' if met else 'NOT MET'}")


def large_steps() -> None:
    d, steps = 10**6, 10

    def step_seconds() -> float:
        problem = constant_problem(d)
        start = time.perf_counter()
        pzos.solve(problem, pzos.PZOS(step=0.05, radius=0.1), steps=steps, monitor=False)
        return (time.perf_counter() - start) / steps

    def draw_seconds() -> float:
        generator = np.random.default_rng(0)
        start = time.perf_counter()
        for _ in range(steps):
            v = generator.standard_normal(d)
            v /= np.linalg.norm(v)
        return (time.perf_counter() - start) / steps

    step, draw = best_of(5, step_seconds, draw_seconds)
    print(f"d = {d}: one PZOS step {step * 1e3:.1f} ms, one direction {draw * 1e3:.1f} ms")
    report("  step against drawing and normalising one direction", step / draw, 4.0, "x", at_least=False)


def peak_memory() -> None:
    d = 10**6
    problem = constant_problem(d)
    pzos.solve(constant_problem(10), pzos.PZOS(), steps=2)
    tracemalloc.start()
    pzos.solve(problem, pzos.PZOS(step=0.05, radius=0.1), steps=20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report("  peak memory of 20 steps", peak / (8 * d), 25.0, "arrays of that size", at_least=False)


def growth() -> None:
    sizes = (10**4, 10**5, 10**6)
    per_step = [3 * min(pzos_seconds_per_query(d, 3 * 20) for _ in range(3)) for d in sizes]
    slope, intercept = np.polyfit(np.log10(sizes), np.log10(per_step), 1)
    listing = ", ".join(f"{d:g}: {seconds * 1e3:.2f} ms" for d, seconds in zip(sizes, per_step, strict=True))
    print(f"cost per step {listing}; fit seconds = 10^{intercept:.2f} d^{slope:.2f}")
    report("  exponent of the growth from 1e4 to 1e6", slope, 1.15, "", at_least=False)


def import_cost() -> None:
    def seconds(module: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - start

    nothing, numpy_alone, ours = best_of(7, lambda: seconds("sys"), lambda: seconds("numpy"), lambda: seconds("pzos"))
    used = "numpy; import pzos; pzos.solve; pzos.PZOS; pzos.Study; pzos.leader_from_functions"
    core = min(seconds(used) for _ in range(5))
    print(f"import: python alone {nothing * 1e3:.0f} ms, numpy {numpy_alone * 1e3:.0f} ms, pzos {ours * 1e3:.0f} ms")
    report("  import pzos against import numpy", ours / numpy_alone, 2.0, "x", at_least=False)
    report("  and with its core names used", core / numpy_alone, 2.0, "x", at_least=False)


def installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        print(f"  ({package} is not installed: skipped; run `make bench`)")
        return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")  # peers warn about optional packages of theirs
    for package in ("numpy", "cma", "nevergrad"):
        if installed(package):
            print(f"{package} {version(package)}", end="  ")
    print(f"pzos {pzos.__version__}  python {sys.version.split()[0]}")
    against_peers(100, 600, {"cma": 5.0, "nevergrad": 10.0})
    against_peers(1000, 150, {"cma": 20.0})
    large_steps()
    peak_memory()
    growth()
    import_cost()


if __name__ == "__main__":
    main()
