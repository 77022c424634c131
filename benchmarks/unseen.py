"""Followers nobody has seen: ours against the peers, 114 families in five parts, 5 instances, at 20/50/150 queries.

    python benchmarks/unseen.py --out results --methods peers --half tune      # once; goes on where it was killed
    python benchmarks/unseen.py --out results --methods default --half tune    # whenever the default changes (--fresh)
    python benchmarks/unseen.py --out results --methods mine --solver my.module:SOLVER --half tune
    python benchmarks/unseen.py --out results --half tune --table              # the table of what is there
    python benchmarks/unseen.py --out checks --methods default --half all --instances 15 --budget 40 --check

Every run is a line of JSON in ``--out``: the true F at every asked point. ``tune`` is for building, ``held`` is looked
at only for a report, ``fresh`` was written after the method was frozen; ``shown`` and ``apart`` were written by an
examiner who did not know the method, the one to learn from and the other for a report. References (the best F known of
each instance) are found when first needed and kept in ``--best``.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testbed.unseen import table
from testbed.unseen.families import FAMILIES, of_half
from testbed.unseen.instance import HALVES, INSTANCES, KINDS
from testbed.unseen.reference import Best
from testbed.unseen.runs import BUDGETS, PEERS, Store, make_all, plan
from testbed.versions import versions

PACKAGES = ("numpy", "scipy", "cma", "nevergrad", "Py-BOBYQA", "DFO-LS", "ibcdfo", "botorch")
QUICK = ("tanh-15", "qp-12", "rounded-10", "relative-12", "security-10")


def options() -> argparse.ArgumentParser:
    """Declare the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs, one file of JSON lines per method")
    parser.add_argument(
        "--methods", nargs="*", default=[], help="'default', any label for --solver, names of peers, 'peers'"
    )
    parser.add_argument(
        "--solver", default="", help="module:attribute of a solver object, run under the label in --methods"
    )
    parser.add_argument("--half", choices=(*HALVES, "all"), default="tune")
    parser.add_argument("--families", nargs="*", default=None, help="only these")
    parser.add_argument("--kinds", nargs="*", default=None, choices=KINDS, help="only these classes")
    parser.add_argument("--instances", type=int, default=INSTANCES)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=BUDGETS[-1])
    parser.add_argument("--separate", action="store_true", help="ours once per budget, not one run for all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=int, default=300, help="seconds of wall time per run (0: none)")
    parser.add_argument("--fresh", action="store_true", help="forget stored runs of the chosen methods first")
    parser.add_argument("--quick", action="store_true", help="five families, two instances, 50 queries")
    parser.add_argument("--table", action="store_true", help="show the table, also when nothing was run")
    parser.add_argument("--check", action="store_true", help="count crashes, repeats and false claims, without a table")
    parser.add_argument("--ours", default=None, help="which method the table is about")
    parser.add_argument("--best", type=Path, default=None, help="file of references (default: OUT/best.json)")
    return parser


def main() -> None:
    """Make the missing runs, then show the table."""
    args = options().parse_args()
    names = [item.name for item in of_half(args.half)] if args.families is None else args.families
    if args.quick:
        names, args.instances, args.budget = [n for n in QUICK if n in names or args.families is None], 2, 50
    names = [name for name in names if args.kinds is None or FAMILIES[name].kind in args.kinds]
    methods = [name for chosen in args.methods for name in (PEERS if chosen == "peers" else (chosen,))]
    print(versions(PACKAGES), flush=True)
    store = Store(args.out)
    for method in methods if args.fresh else ():
        store.drop(method)
    seeds = range(args.first_seed, args.first_seed + args.instances)
    jobs = plan(names, seeds, methods, args.budget, solver=args.solver, separate=args.separate, limit=args.limit)
    there = store.read(methods)
    jobs = [job for job in jobs if job.key not in there]
    for k, made in enumerate(make_all(jobs, args.jobs), 1):
        store.keep(made)
        note = f" {'unfit' if made.unfit else 'BROKEN'}: {made.failure[:80]}" if made.failure else ""
        print(f"{k}/{len(jobs)} {made.family}/{made.seed} {made.method} @{made.budget}: {len(made.values)} queries, "
              f"{made.wall_s} s{note}", file=sys.stderr, flush=True)  # fmt: skip
    ours = args.ours or next((name for name in methods if name not in PEERS), "default")
    best = Best(args.best or args.out / "best.json")
    if args.check:
        print("\n".join(checked(store, ours, best)))
    elif args.table or not methods:
        show(store, names, seeds, ours, best, args.budget)


def checked(store: Store, ours: str, best: Best) -> list[str]:
    """Return how one method behaved in all its runs; references are found only where it claims to have converged."""
    runs = store.read([ours])
    scale, _ = table.scales({key: run for key, run in runs.items() if run.stop == "CONVERGED"}, best)
    return table.behaviour(runs, scale, ours)


def show(store: Store, names: list[str], seeds: range, ours: str, best: Best, budget: int) -> None:
    """Print the whole table."""
    kept = {key: run for key, run in store.read().items() if run.family in names and run.seed in seeds
            and (run.method in PEERS or run.method == ours)}  # fmt: skip
    scale, beaten = table.scales(kept, best)
    cells = table.cells(kept, scale, [b for b in BUDGETS if b <= budget])
    for lines in (
        table.cell_lines(cells, ours), table.shares(cells, ours), table.bars(cells, ours), table.ranking(cells),
        table.behaviour(kept, scale, ours), table.queries_to(kept, scale, ours, budget),
    ):  # fmt: skip
        print("\n".join(lines) + "\n")
    print(f"references beaten by a run, and lowered: {len(beaten)}")
    print("\n".join(f"  {text}" for text in beaten))


if __name__ == "__main__":
    main()
