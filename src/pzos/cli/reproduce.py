"""``pzos reproduce``: every figure and every claim of the paper, resumable, in one command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pzos
from pzos.answers.cluster import as_executor
from pzos.answers.workers import Workers
from pzos.base.checks import Faults, counted, one_of, whole
from pzos.experiments import goldstein as goldstein_figure, routing as routing_figures, security as security_figures
from pzos.experiments.claims import Judged, counts, judge
from pzos.experiments.descriptions import FULL, QUICK, Scale
from pzos.experiments.runs import RunStore, compute_missing
from pzos.experiments.tables import Context, write_columns
from pzos.report.page import page_template, write_reproduction

FIGURES = security_figures.FIGURES | routing_figures.FIGURES | goldstein_figure.FIGURES
_VERSIONED = ("numpy", "scipy", "numba", "matplotlib")
_FIGURE = one_of(tuple(FIGURES), "check the spelling", f"one of {', '.join(FIGURES)}")
_JOBS = whole(1, "try --jobs 2")
_SEEDS = whole(1, "try --seeds 5")
_SEED = whole(0, "try --seed 0", most=2**40 - 1, expected="a whole number from 0 to below 2**40")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos reproduce``."""
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"default all of: {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="a small version of every experiment")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="worker processes")
    parser.add_argument("--dask", metavar="ADDRESS",
                        help="compute on this Dask cluster instead (local:4 starts one here)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of all instances and directions")
    parser.add_argument("--seeds", type=int, default=1, metavar="N",
                        help="judge every claim from N seeds, the first being --seed (5 give an interval)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("reproduction"), metavar="DIR", help="output folder")


def run(args: argparse.Namespace) -> int:
    """Compute missing runs, draw the figures, check the claims, write the page."""
    _check(args)
    names = tuple(args.figures) or tuple(FIGURES)
    scale = QUICK if args.quick else FULL
    args.out.mkdir(parents=True, exist_ok=True)
    seeds = range(args.seed, args.seed + args.seeds)
    specs = [spec for seed in seeds for name in names for spec in FIGURES[name].needs(scale, seed)]
    with _workers(args.jobs, len(specs)) as workers:
        with (
            closing(RunStore(_store(args.out, scale))) as store,
            nullcontext(workers) if args.dask is None else as_executor(args.dask) as executor,
        ):
            executed = compute_missing(specs, store, executor)
        # Figures are drawn here also where runs are computed elsewhere: a cluster may not have this folder.
        list((workers.map if workers else map)(partial(make_figure, scale, seeds, args.out), names))
    reports = _read_reports(args.out)
    claims = [claim for report in reports for claim in report["claims"]]
    write_columns(args.out / "claims.csv", {name: [_cell(claim[name]) for claim in claims] for name in Judged._fields})
    summary = counts(claims)
    write_reproduction(args.out, reports, summary, _command((), scale, args.seed, args.seeds))
    gone = dict.fromkeys(sentence for report in reports for sentence in report.get("diverged", ()))
    lines = [f"{counted(executed, 'run')} computed, {counted(len(names), 'figure')} drawn; {summary}"]
    lines += [f"{sentence}, and count as the worst from there on" for sentence in gone]
    sys.stdout.write("\n".join([*lines, f"open {args.out / 'index.html'}", ""]))
    return 0


def _cell(value: Any) -> str:
    """Return a field of a claim as a cell: nothing for what is not there, several numbers one after another."""
    return " ".join(map(_cell, value)) if isinstance(value, list) else "" if value is None else str(value)


def _check(args: argparse.Namespace) -> None:
    faults = Faults("reproduce")
    for name in args.figures:
        _FIGURE.note(faults, "FIGURE", name)
    _JOBS.note(faults, "--jobs", args.jobs)
    _SEED.note(faults, "--seed", args.seed)
    _SEEDS.note(faults, "--seeds", args.seeds)
    faults.check(not args.out.is_file(), "--out", str(args.out), "a folder", "name another place")
    faults.raise_if_any()
    page_template()  # a package that the page needs is missed before the runs, not after them


def _command(names: tuple[str, ...], scale: Scale, seed: int, seeds: int) -> str:
    words = ["pzos", "reproduce", *names]
    words += ["--quick"] if scale.name == "quick" else []
    words += ["--seed", str(seed)] if seed else []
    words += ["--seeds", str(seeds)] if seeds > 1 else []
    return " ".join(words)


def _workers(jobs: int, runs: int) -> AbstractContextManager[Workers | None]:
    """Return as many worker processes as are of use; none where one job at a time is enough."""
    return Workers(jobs) if min(jobs, runs) > 1 else nullcontext()


def _store(folder: Path, scale: Scale) -> Path:
    return folder / f"runs-{scale.name}.sqlite"


def make_figure(scale: Scale, seeds: Sequence[int], folder: Path, name: str) -> None:
    """Draw a figure from the first seed; write its numbers, its configuration and the claims of all seeds beside it."""
    figure, seed = FIGURES[name], seeds[0]
    with closing(RunStore(_store(folder, scale))) as store:
        contexts = [Context(scale, one, folder, store) for one in seeds]
        measured = [figure.measure(context) for context in contexts]
        measured[0].draw()
    write_columns(folder / f"{name}_figure.csv", measured[0].columns)
    claims = [judge(of_all_seeds) for of_all_seeds in zip(*(one.claims for one in measured), strict=True)]
    content = {
        "name": name,
        "title": figure.title,
        "caption": figure.caption.format(scale=scale),
        "claims": [claim.report() for claim in claims],
        "choices": list(figure.choices),
        "diverged": [sentence for context in contexts for sentence in context.diverged()],
        "rerun": _command((name,), scale, seed, len(seeds)),
        "seeds": list(seeds),
        "scale": asdict(scale),
        "versions": {"pzos": pzos.__version__, "python": sys.version.split()[0]}
        | {package: version(package) for package in _VERSIONED},
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _read_reports(folder: Path) -> list[dict[str, Any]]:
    """Read the reports of all figures made in this folder so far, in the paper's order."""
    return [
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in FIGURES
        if (folder / f"{name}.json").exists() and (folder / f"{name}.png").exists()
    ]
