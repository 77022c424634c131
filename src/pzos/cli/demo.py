"""``pzos demo``: the main job on embedded data. Ends with a table and a picture.

A defender protects 100 targets against an attacker whose response can only be queried (Sec. 5.2). The paper's two
methods, the estimator with memory and the default get the same number of queries.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.figures import BLACK, BLUE, GREEN, ORANGE, new_figure
from pzos.base.types import Vector
from pzos.games import SecurityGame
from pzos.methods.memory import MemoryPZOS
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Diminishing
from pzos.solving import solve
from pzos.study.result import Result

_QUERIES = 450
_DEFAULT = "default"
_LEVELS = (0.1, 0.01)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos demo``."""
    parser.add_argument("--out", type=Path, default=Path("demo-output"), metavar="DIR", help="folder for the picture")
    parser.add_argument("--seed", type=int, default=0, help="seed of the instance and of the directions")


def run(args: argparse.Namespace) -> int:
    """Solve one security game by several methods, print a table and draw a picture."""
    args.out.mkdir(parents=True, exist_ok=True)
    results = demo_results(args.seed)
    path = args.out / "demo.png"
    draw(results, path)
    sys.stdout.write(f"{table(results)}\n\n{_DEFAULT}: {results[_DEFAULT].explanation}\n\npicture: {path}\n")
    return 0


def demo_results(seed: int) -> dict[str, Result]:
    """Run every method on the same game with the same budget of queries; no step is tuned for it."""
    problem = SecurityGame.random(seed, targets=100).problem()
    step = Diminishing(0.05)  # the paper's
    solvers: dict[str, AnySolver | None] = {
        "ZOS": ZOS(step, radius=0.1),
        "PZOS": PZOS(step, radius=0.1),
        "PZOS with memory": MemoryPZOS(),
        _DEFAULT: None,
    }
    # ZOS does not learn F at its iterates: one query in three only watches it, and does not count against it here.
    budgets = {"ZOS": _QUERIES * 3 // 2}
    return {
        name: solve(problem, solver, queries=budgets.get(name, _QUERIES), seed=seed) for name, solver in solvers.items()
    }


def gaps(results: dict[str, Result]) -> dict[str, Vector]:
    """Return the part of the way to the lowest F found by any method that each has left, after each of its steps."""
    start = next(iter(results.values())).trace["value"][0]
    lowest = min(result.best_value for result in results.values())
    return {
        name: (np.fmin.accumulate(result.trace["value"]) - lowest) / (start - lowest)
        for name, result in results.items()
    }


def table(results: dict[str, Result]) -> str:
    """Return the results as an aligned table."""
    heads = "".join(f"{f'to {level:.0%}':>10}" for level in _LEVELS)
    lines = [f"{'method':<18}{'F at start':>12}{'lowest F':>12}{'queries':>10}{heads}{'seconds':>10}"]
    for name, gap in gaps(results).items():
        result = results[name]
        reached = "".join(f"{_queries_to(level, gap, result):>10}" for level in _LEVELS)
        lines.append(
            f"{name:<18}{result.trace['value'][0]:>12.4f}{result.best_value:>12.4f}{result.queries:>10}{reached}"
            f"{result.seconds:>10.2f}"
        )
    lines.append("to 10%, 1%: queries until so much of the way to the lowest F found was left (- : not reached)")
    return "\n".join(lines)


def _queries_to(level: float, gap: Vector, result: Result) -> str:
    reached = np.flatnonzero(gap <= level)
    return f"{result.trace['queries'][reached[0]]:.0f}" if reached.size else "-"


def draw(results: dict[str, Result], path: Path) -> None:
    """Draw the gap against queries for every method, and the leader's decision before and after."""
    figure, (left, right) = new_figure(10.0, 4.0, ncols=2)
    looks = zip((BLACK, BLUE, GREEN, ORANGE), (":", "--", "-.", "-"), strict=True)
    for (name, gap), (colour, line) in zip(gaps(results).items(), looks, strict=True):
        shown = np.maximum(gap, 1e-6)
        left.plot(results[name].trace["queries"], shown, color=colour, linestyle=line, linewidth=1.8, label=name)
    left.set(xscale="log", yscale="log", xlabel="queries to the attacker", ylabel="part of the way left")
    left.set_title("Security game with 100 targets: same queries for all", fontsize=10)
    left.legend(frameon=False)
    _draw_decision(right, results[_DEFAULT])
    figure.savefig(path, dpi=150)


def _draw_decision(axes: Any, result: Result) -> None:
    """Draw the protection of every target before and after, the best protected first."""
    start = np.asarray(result.x0)
    order = np.argsort(-result.best_x)
    targets = np.arange(1, order.size + 1)
    axes.plot(targets, start[order], ".", color=BLACK, markersize=4, label="at the start")
    axes.plot(targets, result.best_x[order], color=ORANGE, linewidth=2.0, label=f"decided by the {_DEFAULT} method")
    axes.set(xlabel="target, best protected first", ylabel="defender's effort x")
    axes.set_title("The leader's decision", fontsize=10)
    axes.legend(frameon=False)
