"""Constraints on outcomes: queries to a feasible point within 1 %, ours against peers; whether the stated risk is kept.

    python benchmarks/constrained.py --seeds 0 1 2 --out results       # the table; goes on where it was killed
    python benchmarks/constrained.py --risk 200                         # how often trials violate, over 200 problems

Seeds from 100 up were used to fix constants. A told point is feasible if no constraint exceeds a millionth of its
scale; "within 1 %" is of the way from the start to the best feasible F known (by a white box from several starts, or
seen by any method). Peers may ask as often as ``--budget`` says, pzos as often as ``--own-budget``.
"""

from __future__ import annotations

import argparse
import contextlib
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import pzos
from pzos.methods.trust_region.state import Kind
from testbed.constrained import FAMILIES, METHODS, Asked, Case, Spent, first_good, missing, reference, small
from testbed.versions import versions

PACKAGES = ("numpy", "scipy", "cma", "optuna", "botorch")


def one_run(case: Case, method: str, budget: int) -> dict[str, Any]:
    """Run one method on one case, and return F and violation at every point asked."""
    asked, begin, end = Asked(case, budget), time.process_time(), None
    with contextlib.suppress(Spent):
        end = METHODS[method][0](asked, case.seed)
    took = (time.process_time() - begin) / max(len(asked.values), 1)
    told = {"values": asked.values, "violations": asked.violations, "seconds": took}
    if isinstance(end, pzos.Result):
        told["returned"] = case.violation(case.at(end.x)[1])
    return told


def table(args: argparse.Namespace) -> None:
    """Run what is missing, keep it, and print queries to 1 % by family and method."""
    args.out.mkdir(parents=True, exist_ok=True)
    for family in args.families:
        counts: dict[str, list[float]] = {method: [] for method in args.methods}
        costs, returned = [], []
        for seed in args.seeds:
            file = args.out / f"{family}-{seed}.json"
            kept = json.loads(file.read_text()) if file.exists() else {}
            case = FAMILIES[family](seed)
            if "best" not in kept:
                kept["best"] = reference(case)[0]
            for method in args.methods:
                if method not in kept and not missing(method):
                    budget = args.own_budget if method == "pzos" else args.budget
                    kept[method] = one_run(case, method, budget)
                    file.write_text(json.dumps(kept))
            runs = {method: kept[method] for method in METHODS if method in kept}
            seen = [
                v for run in runs.values() for v, g in zip(run["values"], run["violations"], strict=True) if g <= 1e-6
            ]
            best = min([kept["best"], *seen])
            for method in counts:
                if method in runs:
                    counts[method].append(first_good(case, runs[method], best) or np.inf)
            costs.append(runs["pzos"]["seconds"])
            returned.append(runs["pzos"]["returned"])
        said = " | ".join(f"{name} {_said(found)}" for name, found in counts.items() if found)
        print(
            f"{family}: {said} | {1000 * max(costs):.0f} ms a query, returned violation {max(returned):.1e}", flush=True
        )


def _said(found: list[float]) -> str:
    entries = "/".join("-" if np.isinf(count) else f"{count:.0f}" for count in found)
    return f"{entries} (median {np.median(found):.0f})" if np.isfinite(np.median(found)) else entries


def risk(args: argparse.Namespace) -> None:
    """Print how often trial points violate a constraint that is near its limit, after the first ten answers."""
    violated = pairs = broken = trials = 0
    stood = fell = 0  # trials once a feasible point was known, and those of them that broke any
    each = over = 0  # the constraints at those trials, near their limits or not, and those of them that were violated
    every = hit = 0  # all queries once a feasible point was known, whatever they were for, and those that broke any
    for seed in range(args.first, args.first + args.risk):
        case = small(seed)
        study = pzos.Study(case.problem.known(), pzos.ConstrainedTrustRegion(), seed=seed, queries=30)
        while not study.done:
            (query,) = study.ask()
            plan = study.solver.ask(study.task, study.state)  # a pure function: the plan that is open
            move, y = plan.move, case.respond(query.x)
            g = case.problem.outcomes.values(query.x, y) / study.state.scales.outcomes if study.queries else np.zeros(0)
            if study.queries >= 10 and study.result().violation <= 0.0:
                every += 1
                hit += bool((g > 1e-6).any())
            late = study.queries >= 10 and plan.kind is Kind.TRIAL
            if late and study.result().violation <= 0.0:
                stood += 1
                fell += bool((g > 1e-6).any())
                each += g.size
                over += int(np.count_nonzero(g > 1e-6))
            if late and getattr(move, "kept", False):
                near = move.foreseen > -3.0 * move.deviations - 1e-3
                violated += int(np.count_nonzero(g[near] > 1e-6))
                pairs += int(np.count_nonzero(near))
                broken += bool((g > 1e-6).any())
                trials += 1
            study.tell(query, y)
    print(f"{args.risk} problems, stated risk 5 %: {violated} of {pairs} constraints near their limits were violated "
          f"({100 * violated / max(pairs, 1):.1f} %); {broken} of {trials} trials violated any; "
          f"{fell} of {stood} trials ({100 * fell / max(stood, 1):.1f} %) did once one was feasible, with or without a "
          f"margin: {over} of {each} constraints ({100 * over / max(each, 1):.1f} %); {hit} of {every} queries "
          f"of all kinds ({100 * hit / max(every, 1):.1f} %)")  # fmt: skip


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--own-budget", type=int, default=120, help="queries of pzos, which need more time each")
    parser.add_argument("--out", type=Path, default=Path("constrained-results"))
    parser.add_argument("--risk", type=int, default=0, metavar="N", help="count violations over N small problems")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    args = parser.parse_args()
    print(versions(PACKAGES))
    for method in args.methods:
        if missing(method):
            print(f"{method} left out: {missing(method)} is not installed")
    risk(args) if args.risk else table(args)


if __name__ == "__main__":
    main()
