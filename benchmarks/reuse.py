"""Answers kept when the cost changes: queries to 1 % with them and from scratch, family by family.

    python benchmarks/reuse.py                                  # families of the half "tune": for building
    python benchmarks/reuse.py --half held --first-seed 100     # families and instances kept apart: for a report

Each instance is solved with ``--queries`` queries; then its cost changes, and it is solved again, once with those
answers and once without. f'(x, y) = f(x, y) + a g u.y with u uniform in [-1, 1] and g the median size of an entry of
grad_y f over those answers: the worth of each answer changes, by a = 10 % (*small*) or 100 % (*large*). The gap is
(best F' seen - F'*)/(F'(x0) - F'*), F'* the best value that a search or any run has found.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import platform
import sys
import time
import zlib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pzos
from testbed.unseen.families import FAMILIES, make
from testbed.unseen.instance import Cost, Door, Instance, Vector
from testbed.unseen.reference import Best, best_value

CHANGES = {"small": 0.1, "large": 1.0}
GAP = 0.01
EFFORT = 0.2
#: Families of one half: smooth and kinked responses without structure, sets, and the games.
KINDS = ("smooth", "domains", "kinked", "games")


def changed(instance: Instance, answers: pzos.Answers, change: str) -> Instance:
    """Return the instance with another cost over the same followers."""
    cost = instance.draft.cost
    sizes = [float(np.sqrt(np.mean(cost.gradients(x, y)[1] ** 2))) for x, y in answers.pairs()]
    rng = np.random.default_rng([zlib.crc32(instance.family.encode()), instance.seed, 11])
    worth = CHANGES[change] * float(np.median(sizes)) * rng.uniform(-1.0, 1.0, answers.y.shape[1])

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_x, grad_y = cost.gradients(x, y)
        return grad_x, grad_y + worth

    other = Cost(lambda x, y: cost.value(x, y) + float(worth @ y), gradients)
    return replace(instance, family=f"{instance.family}~{change}", draft=replace(instance.draft, cost=other))


def solved(instance: Instance, queries: int, target: float | None, answers: pzos.Answers | None) -> pzos.Result:
    """Return a run of the default that ends when ``target`` is reached."""
    door = Door(instance, 10**9)
    return pzos.solve(
        instance.problem(door), queries=queries, target=target, answers=answers, certificate=False, progress=False
    )


class Outcome(tuple):
    """Queries to 1 %: (with the answers kept, from scratch), infinite where it was not reached."""


def reference(instance: Instance, best: Best) -> float:
    """Return the best value of an instance, found by a shorter search than the protocol's: it is one of many."""
    key = f"{instance.family}/{instance.seed}"
    if key not in best.known:
        best.known[key] = best_value(instance, EFFORT)
        best.write()
    return best.known[key]


def measured(instance: Instance, answers: pzos.Answers, change: str, best: Best, queries: int) -> Outcome:
    """Return the queries that both ways need after the change."""
    other = changed(instance, answers, change)
    start = other.true_value(other.draft.x0)
    found = reference(other, best)
    counts = []
    for known in (answers, None):
        result = solved(other, queries, found + GAP * (start - found), known)
        counts.append(result.queries if result.stop is pzos.Stop.TARGET else np.inf)
        if result.best_value < found:
            best.lower(other.family, other.seed, result.best_value)
    return Outcome(counts)


def main() -> None:
    """Print one line per family, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "held"), default="tune")
    parser.add_argument("--families", nargs="*", default=None, help="only these")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=100, help="before the change, and at most after it")
    parser.add_argument("--best", type=Path, default=Path("reuse-best.json"), help="file of references")
    args = parser.parse_args()
    print(f"pzos {pzos.__version__}, numpy {np.__version__}, scipy {version('scipy')}, "
          f"Python {platform.python_version()}, {platform.machine()}")  # fmt: skip
    names = args.families or [
        family.name for family in FAMILIES.values() if family.half == args.half and family.kind in KINDS
    ]
    best = Best(args.best)
    print(f"{'family':<16}" + "".join(f"{change + ' kept':>22}{change + ' scratch':>22}" for change in CHANGES))
    for name in names:
        began, rows = time.perf_counter(), {change: [] for change in CHANGES}
        for seed in range(args.first_seed, args.first_seed + args.instances):
            instance = make(name, seed)
            answers = solved(instance, args.queries, None, None).answers
            for change in CHANGES:
                rows[change].append(measured(instance, answers, change, best, args.queries))
        cells = [_cell([row[k] for row in rows[change]]) for change in CHANGES for k in (0, 1)]
        print(f"{name:<16}" + "".join(f"{cell:>22}" for cell in cells) + f"   {time.perf_counter() - began:.0f} s",
              flush=True)  # fmt: skip
    best.write()


def _cell(counts: list[float]) -> str:
    shown = "/".join("-" if count == np.inf else f"{count:.0f}" for count in counts)
    median = float(np.median(counts))
    return f"{shown}  [{'-' if median == np.inf else f'{median:g}'}]"


if __name__ == "__main__":
    main()
