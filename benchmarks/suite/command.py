"""``pzos bench --suite real``: make the runs that are missing, then show the table, the bars and every loss."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.family import found
from suite.methods import METHODS
from suite.runs import BUDGETS, Run, plan, run as make
from suite.table import Row, baselines, cells, markdown, read_csv, rows, shown, verdict, write_csv
from testbed.command import chosen
from testbed.unseen.runs import Store
from testbed.versions import versions

PEERS = ("numpy", "scipy", "cma", "nevergrad", "Py-BOBYQA", "DFO-LS", "ibcdfo", "botorch")


def run(args: argparse.Namespace) -> int:
    """List the families, or run them."""
    families = found()
    asked = [families[name] for name in chosen("families", args.families or ["all"], families)]
    methods = chosen("methods", args.methods, METHODS)
    reasons = {family.name: family.missing() for family in asked}
    if args.list:
        sys.stdout.write("".join(f"{f.name:<24}{f.kind:<8} {reasons[f.name] or f.about}\n" for f in asked))
        return 0
    for reason in filter(None, reasons.values()):
        sys.stderr.write(f"skipped {reason}\n")
    here = [family for family in asked if not reasons[family.name]]
    out = Path("suite-results") if args.out is None else args.out
    sys.stdout.write(versions((*PEERS, *dict.fromkeys(family.package for family in here if family.package))) + "\n")
    store = Store(out, Run)
    for method in methods if args.fresh else ():
        store.drop(method, [family.name for family in here])
    instances = max((f.instances for f in here), default=0) if args.instances is None else args.instances
    queries = BUDGETS[-1] if args.queries is None else args.queries
    jobs = plan(here, methods, instances=instances, queries=queries, limit=args.limit, starts=args.starts)
    there = store.read()
    jobs = [job for job in jobs if job.key not in there]
    for k, job in enumerate(jobs, 1):
        made = make(job, out)
        store.keep(made)
        note = f" {'unfit' if made.unfit else 'BROKEN'}: {made.failure[:80]}" if made.failure else ""
        sys.stderr.write(
            f"{k}/{len(jobs)} {made.family}/{made.seed} {made.method} @{made.budget}: {len(made.values)} queries, "
            f"{made.simulated} simulated in {made.simulator_s:.1f} s, own {made.own_s:.1f} s{note}\n"
        )
        sys.stderr.flush()
    names = {family.name for family in here}
    kept = {key: item for key, item in store.read().items() if item.family in names and item.seed < instances}
    table = rows(kept)
    write_csv(table, out / "suite.csv")
    sys.stdout.write("\n".join([*shown(table), "", *verdict(cells(table))]) + "\n")
    if args.figures:
        from suite.figures import draw

        draw(table, out)
    if args.freeze is not None:
        freeze(table, args.freeze)
    return 0


def freeze(table: Sequence[Row], docs: Path) -> None:
    """Put the rows among those of the documentation, in place of older ones of the same families, and draw them."""
    from suite.figures import draw

    frozen = docs / "_static" / "suite.csv"
    before = read_csv(frozen) if frozen.exists() else []
    new = {row.family for row in table}
    merged = sorted([*table, *(row for row in before if row.family not in new)], key=lambda row: row.family)
    write_csv(merged, frozen)
    draw(merged, docs / "_static")
    names = {row.family for row in merged}
    packages = dict.fromkeys(item.package for item in found().values() if item.package and item.name in names)
    losses = "\n".join(f"* {text.strip()}" for text in verdict(cells(merged)))
    (docs / "suite_table.md").write_text(
        f"{markdown(merged)}\n{losses}\n\n{baselines(merged)}\nLast run with {versions((*PEERS, *packages))}.\n",
        encoding="utf-8",
    )
