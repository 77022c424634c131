"""``pzos bench``: any of our methods and of peers on the same problems, with tables, CSV and figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pzos.base.checks import Faults
from testbed.cases import FAMILIES
from testbed.table import BUDGETS, METHODS, Curve, run_table, summary, write_csv

_QUICK = ("security-50", "security-50-declared", "routing-0.1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--suite", default="games", choices=("games", "real"), help="our games, or public simulators")
    parser.add_argument("--families", nargs="+", default=None, help="which problems, or all")
    parser.add_argument("--methods", nargs="+", default=["all"], help="which methods, or all")
    parser.add_argument("--instances", type=int, default=None, help="instances per family (games 3, real 5)")
    parser.add_argument("--queries", type=int, default=None, help="budget of every run (games 150, real 200)")
    parser.add_argument("--out", type=Path, default=None, help="folder for tables, and for the runs of --suite real")
    parser.add_argument("--figures", action="store_true", help="also draw figures into --out (needs pzos[plot])")
    games = parser.add_argument_group("only --suite games")
    games.add_argument("--first-seed", type=int, default=0, help="seeds from 100 up were used to fix constants")
    games.add_argument("--noise", type=float, default=0.0, help="relative noise on every entry of y*, e.g. 0.01")
    real = parser.add_argument_group("only --suite real (runs that are in --out already are not made again)")
    real.add_argument("--list", action="store_true", help="say which families there are, and why one is left out")
    real.add_argument(
        "--fresh", action="store_true", help="forget the stored runs of the chosen methods on the chosen families first"
    )
    real.add_argument("--limit", type=int, default=600, help="seconds of wall time per run (0: none)")
    real.add_argument("--freeze", type=Path, help="the folder docs: put table and pictures there, by family")
    real.add_argument("--starts", type=int, default=0, help="also search the best value from so many starts")


def run(args: argparse.Namespace) -> int:
    """Run the table and show it."""
    if args.suite == "real":
        from suite.command import run as run_suite

        return run_suite(args)
    families, methods = chosen("families", args.families or _QUICK, FAMILIES), chosen("methods", args.methods, METHODS)
    queries = 150 if args.queries is None else args.queries
    seeds = range(args.first_seed, args.first_seed + (3 if args.instances is None else args.instances))
    curves = run_table(families, methods, seeds, queries, args.noise, watch=_told)
    if "all" in args.methods:  # nobody has asked for what does not apply
        unsuited = dict.fromkeys(item.failure for item in curves if not item.suited)
        sys.stderr.writelines(f"left out: {reason}\n" for reason in unsuited)
        curves = [item for item in curves if item.suited]
    budgets = [budget for budget in BUDGETS if budget <= queries] or [queries]
    sys.stdout.write(shown(summary(curves, budgets)))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        write_csv(curves, args.out / "gaps.csv")
        if args.figures:
            from testbed.figures import draw

            draw(curves, queries, args.out)
    return 0


def chosen(what: str, names: Sequence[str], there: Mapping[str, Any]) -> list[str]:
    """Return the names, all of them for "all"; say which are unknown."""
    faults = Faults("bench")
    for name in names:
        faults.check(
            name == "all" or name in there, what, name, f"some of {', '.join(there)}, or all", "check the spelling"
        )
    faults.raise_if_any()
    return list(there) if "all" in names else list(names)


def _told(item: Curve) -> None:
    note = f" {'FAILED' if item.suited else 'left out:'} {item.failure}" if item.failure else ""
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
