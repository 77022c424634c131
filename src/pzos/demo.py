"""``pzos demo``: the main job on embedded data. Ends with a table and a picture.

A defender protects 100 targets against an attacker whose response can only be queried (Sec. 5.2). The paper's two
methods get the same number of queries and the same random directions.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pzos.games import SecurityGame
from pzos.plots import BLACK, BLUE, GREEN, new_figure, tidy
from pzos.result import Result
from pzos.run import solve
from pzos.schedules import Diminishing
from pzos.solvers.base import AnySolver
from pzos.solvers.smoothing import PZOS, ZOS

_QUERIES = 600


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
    sys.stdout.write(f"{table(results)}\n\npicture: {path}\n")
    return 0


def demo_results(seed: int) -> dict[str, Result]:
    """Run every method on the same game with the same budget of queries."""
    problem = SecurityGame.random(seed, targets=100).problem()
    step = Diminishing(0.05)
    solvers: dict[str, AnySolver] = {"ZOS": ZOS(step, radius=0.1), "PZOS": PZOS(step, radius=0.1)}
    return {name: solve(problem, solver, queries=_QUERIES, seed=seed) for name, solver in solvers.items()}


def table(results: dict[str, Result]) -> str:
    """Return the results as an aligned table."""
    start = next(iter(results.values())).trace["value"][0]
    lines = [f"{'method':<8}{'F at start':>12}{'lowest F':>12}{'queries':>10}{'seconds':>10}"]
    lines += [
        f"{name:<8}{start:>12.4f}{result.best_value:>12.4f}{result.queries:>10}{result.seconds:>10.2f}"
        for name, result in results.items()
    ]
    return "\n".join(lines)


def draw(results: dict[str, Result], path: Path) -> None:
    """Draw F against queries for every method."""
    colours = dict(zip(results, (BLACK, BLUE, GREEN), strict=False))
    figure, axes = new_figure()
    for name, result in results.items():
        axes.plot(result.trace["queries"], result.trace["value"], color=colours[name], linewidth=1.8, label=name)
    axes.set_xlabel("queries to the attacker")
    axes.set_ylabel("defender's cost F(x)")
    axes.set_title("Security game with 100 targets: same queries, same random directions", fontsize=10)
    axes.legend(frameon=False)
    tidy(axes)
    figure.savefig(path, dpi=150)
