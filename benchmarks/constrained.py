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
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from numpy.typing import NDArray

import pzos
from pzos.methods.estimators import Plan
from pzos.methods.solver import Task
from pzos.methods.trust_region.constrained import ConstrainedState
from pzos.methods.trust_region.state import Kind, TrialPlan
from testbed.constrained import FAMILIES, FEASIBLE, METHODS, Asked, Case, Spent, first_good, reference, small
from testbed.versions import versions

#: The share of its margin from which a trial counts as one that keeps it.
NEARLY = 0.9
PACKAGES = ("numpy", "scipy", "cma", "optuna", "botorch")


def one_run(case: Case, method: str, budget: int) -> dict[str, Any]:
    """Run one method on one case, and return F and violation at every point asked."""
    asked, begin, end = Asked(case, budget), time.process_time(), None
    with contextlib.suppress(Spent):
        end = METHODS[method].run(asked, case.seed)
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
                peer = METHODS[method]
                if method not in kept and not peer.missing() and case.problem.x0.size <= peer.decisions:
                    budget = int(min(args.own_budget if method == "pzos" else args.budget, peer.queries))
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


class Watched(pzos.ConstrainedTrustRegion):
    """The solver, with the plan that is open in view."""

    plan: Plan

    def ask(self, task: Task, state: ConstrainedState) -> Plan:
        """Keep what is planned."""
        Watched.plan = super().ask(task, state)
        return Watched.plan


@dataclass
class Tally:
    """How many constraints were violated at how many queries of one kind."""

    queries: int = 0
    broken: int = 0
    constraints: int = 0
    violated: int = 0

    def count(self, over: NDArray[np.bool_]) -> None:
        """Count one query."""
        self.queries, self.broken = self.queries + 1, self.broken + bool(over.any())
        self.constraints, self.violated = self.constraints + over.size, self.violated + int(np.count_nonzero(over))

    def __str__(self) -> str:
        share, any_share = self.violated / max(self.constraints, 1), self.broken / max(self.queries, 1)
        return (f"{self.violated} of {self.constraints} constraints violated ({100 * share:.1f} %), any at "
                f"{self.broken} of {self.queries} ({100 * any_share:.1f} %)")  # fmt: skip


def _kinds(plan: TrialPlan, feasible: bool) -> list[str]:
    """Return what a query counts as; ``feasible`` if a feasible point was known before it."""
    trial = plan.kind is Kind.TRIAL
    if not feasible:
        return ["trials before a feasible point was known"] if trial else []
    margin = getattr(plan.move, "margin", 0.0)
    found = "trials that keep their margin" if margin >= NEARLY else "trials that do not"
    return ["trials", found, "all queries"] if trial else ["queries without a margin", "all queries"]


def risk(args: argparse.Namespace) -> None:
    """Print how often queries violate constraints after the first ten answers, and what is returned."""
    tallies, returned, infeasible = defaultdict(Tally), 0.0, 0
    for seed in range(args.first, args.first + args.risk):
        case = small(seed)
        study = pzos.Study(case.problem.known(), Watched(), seed=seed, queries=30)
        while not study.done:
            (query,) = study.ask()
            y = case.respond(query.x)
            if study.queries >= 10:
                g = case.problem.outcomes.values(query.x, y) / study.state.scales.outcomes
                for kind in _kinds(Watched.plan, study.result().violation <= 0.0):
                    tallies[kind].count(g > FEASIBLE)
            study.tell(query, y)
        result = study.result()
        if result.stop is pzos.Stop.INFEASIBLE:
            infeasible += 1
        else:
            returned = max(returned, case.violation(case.at(result.x)[1]))
    print(f"{args.risk} problems from {args.first}, stated risk 5 %, after ten answers:")
    for kind in ("trials", "trials that keep their margin", "trials that do not", "queries without a margin",
                 "all queries", "trials before a feasible point was known"):  # fmt: skip
        print(f"  {kind}: {tallies[kind]}")
    print(f"returned points violate by at most {returned:.1e} of a scale; no feasible point was found on {infeasible}")


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
        if METHODS[method].missing():
            print(f"{method} left out: {METHODS[method].package} is not installed")
    risk(args) if args.risk else table(args)


if __name__ == "__main__":
    main()
