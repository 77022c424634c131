"""``pzos bench``: any of our methods and of peers on the same problems, with tables, CSV and figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.cases import FAMILIES
from testbed.table import BUDGETS, METHODS, Curve, run_table, summary, write_csv

_QUICK = ("security-50", "security-50-declared", "routing-0.1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--families", nargs="+", default=_QUICK, choices=[*FAMILIES, "all"], help="which problems")
    parser.add_argument("--methods", nargs="+", default=["all"], choices=[*METHODS, "all"], help="which methods")
    parser.add_argument("--instances", type=int, default=3, help="instances per family (seeds 0, 1, ...)")
    parser.add_argument("--first-seed", type=int, default=0, help="seeds from 100 up were used to fix constants")
    parser.add_argument("--queries", type=int, default=150, help="budget of every run")
    parser.add_argument("--noise", type=float, default=0.0, help="relative noise on every entry of y*, e.g. 0.01")
    parser.add_argument("--out", type=Path, default=None, help="folder for gaps.csv")
    parser.add_argument("--figures", action="store_true", help="also draw figures into --out (needs pzos[plot])")


def run(args: argparse.Namespace) -> int:
    """Run the table and show it."""
    families = list(FAMILIES) if "all" in args.families else list(args.families)
    methods = list(METHODS) if "all" in args.methods else list(args.methods)
    seeds = range(args.first_seed, args.first_seed + args.instances)
    curves = run_table(families, methods, seeds, args.queries, args.noise, watch=_told)
    if "all" in args.methods:  # nobody has asked for what does not apply
        unsuited = dict.fromkeys(item.failure for item in curves if not item.suited)
        sys.stderr.writelines(f"left out: {reason}\n" for reason in unsuited)
        curves = [item for item in curves if item.suited]
    budgets = [budget for budget in BUDGETS if budget <= args.queries] or [args.queries]
    sys.stdout.write(shown(summary(curves, budgets)))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        write_csv(curves, args.out / "gaps.csv")
        if args.figures:
            from testbed.figures import draw

            draw(curves, args.queries, args.out)
    return 0


def _told(item: Curve) -> None:
    note = f" FAILED {item.failure}" if item.failure else ""
    last = item.at(item.gaps.size) if item.gaps.size else float("nan")
    sys.stderr.write(f"{item.family}, {item.method}, seed {item.seed}: gap {last:.1e}, {item.seconds:.1f} s{note}\n")


def shown(rows: Sequence[dict[str, str]]) -> str:
    """Return the rows as a table of aligned columns; gaps are medians, the worst in brackets."""
    if not rows:
        return "nothing was run\n"
    names = list(rows[0])
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    lines = ["  ".join(name.ljust(widths[name]) for name in names)]
    lines += ["  ".join(row[name].ljust(widths[name]) for name in names) for row in rows]
    return "\n".join(line.rstrip() for line in lines) + "\n"
