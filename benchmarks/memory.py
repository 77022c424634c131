"""Unbiased memory at its default (untuned) step against PZOS with the best step of a grid, at equal queries.

Security games of the paper (n = 100, 900 queries by default). PZOS gets every step of the grid, constant and
diminishing, on the *reported* instances, and its best median is taken: a tuning that no user could do. MemoryPZOS and
SecantPZOS run with their defaults alone. ``--variants`` adds every prediction, difference, direction and step rule.

    python benchmarks/memory.py [--variants] [--targets 100] [--queries 900] [--instances 11] [--first-seed 7000]

gap = (best F at an iterate, the last included, - F_best) / (F_0 - F_best), with F_best the lowest value of a long
white-box descent (central differences of the exact follower, L-BFGS-B) and of all runs here.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence

import numpy as np
import scipy
from scipy.optimize import minimize

from pzos.base.types import Matrix, Vector
from pzos.games.security import SecurityGame
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.predictions import BlendPrediction, LeaderPrediction, PairMemory, SecantMemory, ZeroPrediction
from pzos.methods.probes import Central, Cycled, Independent, Midpoint, OneSided, Orthogonal
from pzos.methods.smoothing import PZOS
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Constant, Diminishing, DoG, DoWG
from pzos.solving import solve

STEPS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)
RADII = (0.1, 0.01)


def white_box_value(game: SecurityGame) -> float:
    """Return the value a long descent on exact differences of F ends with."""
    n, width = game.targets, 1e-5

    def values(points: Matrix) -> Vector:
        return np.array([game.damage(x, y) for x, y in zip(points, game.response(points), strict=True)])

    def value_and_gradient(x: Vector) -> tuple[float, Vector]:
        shifts = width * np.eye(n)
        f = values(np.vstack([x[None], x + shifts, x - shifts]))
        return float(f[0]), (f[1 : n + 1] - f[n + 1 :]) / (2 * width)

    options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(value_and_gradient, game.start(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * n,
                     options=options)  # fmt: skip
    return float(found.fun)


def solvers() -> dict[str, AnySolver]:
    tuned = {
        f"PZOS {schedule.__name__}({step}) radius {radius}": PZOS(schedule(step), radius)
        for schedule in (Constant, Diminishing)
        for step in STEPS
        for radius in RADII
    }
    return {**tuned, "MemoryPZOS()": MemoryPZOS(), "SecantPZOS() [biased]": SecantPZOS()}


def variants() -> dict[str, AnySolver]:
    """Return one departure from the default at a time, none of them tuned."""
    parts: dict[str, AnySolver] = {
        "memory: LeaderPrediction": MemoryPZOS(prediction=LeaderPrediction()),
        "memory: ZeroPrediction": MemoryPZOS(prediction=ZeroPrediction()),
        "memory: BlendPrediction": MemoryPZOS(prediction=BlendPrediction()),
        "memory: SecantMemory": MemoryPZOS(prediction=SecantMemory()),
        "memory: PairMemory(20)": MemoryPZOS(prediction=PairMemory(20)),
        "memory: Central": MemoryPZOS(differences=Central()),
        "memory: Midpoint [biased]": MemoryPZOS(differences=Midpoint()),
        "memory: OneSided(inside)": MemoryPZOS(differences=OneSided(inside=True)),
        "memory: Cycled": MemoryPZOS(directions=Cycled()),
        "memory: Orthogonal, batch 4": MemoryPZOS(directions=Orthogonal(), batch=4),
        "memory: Independent, batch 4": MemoryPZOS(batch=4),
        "memory: DoWG": MemoryPZOS(step=DoWG()),
        "memory: DoG(0.001)": MemoryPZOS(step=DoG(0.001)),
        "memory: DoG(1)": MemoryPZOS(step=DoG(1.0)),
        "memory: step 0.05": MemoryPZOS(step=0.05),
        "secant: SecantMemory [biased]": SecantPZOS(prediction=SecantMemory()),
        "secant: Independent [biased]": SecantPZOS(directions=Independent()),
        "secant: DoWG [biased]": SecantPZOS(step=DoWG()),
    }
    return parts


def main(arguments: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description="memory at its default step against tuned PZOS")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--queries", type=int, default=900)
    parser.add_argument("--instances", type=int, default=11)
    parser.add_argument("--first-seed", type=int, default=7000)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    games = [SecurityGame.random(options.first_seed + i, options.targets) for i in range(options.instances)]
    problems = [game.problem() for game in games]
    first = np.array([game.damage(p.x0, game.response(p.x0)) for game, p in zip(games, problems, strict=True)])
    lowest = np.array([white_box_value(game) for game in games])
    found: dict[str, Vector] = {}
    methods = solvers() | (variants() if options.variants else {})
    for name, solver in methods.items():
        runs = [solve(p, solver, queries=options.queries, seed=i, progress=False) for i, p in enumerate(problems)]
        found[name] = np.array([run.best_value for run in runs])
    lowest = np.minimum(lowest, np.min(list(found.values()), axis=0))
    gaps = {name: (values - lowest) / (first - lowest) for name, values in found.items()}
    return report(gaps, options, time.perf_counter() - start)


def report(gaps: dict[str, Vector], options: argparse.Namespace, seconds: float) -> float:
    """Print medians and worst cases, and return the ratio of the bar."""
    print(f"security n = {options.targets}, {options.queries} queries, {options.instances} instances from seed "
          f"{options.first_seed}; python {platform.python_version()}, numpy {np.__version__}, "
          f"scipy {scipy.__version__}; {seconds:.0f} s")  # fmt: skip
    tuned = sorted((name for name in gaps if name.startswith("PZOS ")), key=lambda name: np.median(gaps[name]))
    for name in [*tuned[:3], *(name for name in gaps if name not in tuned)]:
        print(f"  {name:36s} median gap {np.median(gaps[name]):.2e}   worst {gaps[name].max():.2e}")
    best = float(np.median(gaps[tuned[0]]))
    ratio = best / float(np.median(gaps["MemoryPZOS()"]))
    print(f"best-tuned PZOS / MemoryPZOS(): {ratio:.1f}x (bar: 5x)")
    return ratio


if __name__ == "__main__":
    main()
