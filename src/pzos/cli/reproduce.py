"""``pzos reproduce``: every figure and every claim of the paper, resumable, in one command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pzos
from pzos.answers.cluster import as_executor
from pzos.base.checks import Faults, one_of, whole
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
    with closing(RunStore(args.out / f"runs-{scale.name}.sqlite")) as store:
        specs = [spec for seed in seeds for name in names for spec in FIGURES[name].needs(scale, seed)]
        with nullcontext() if args.dask is None else as_executor(args.dask) as executor:
            executed = compute_missing(specs, store, jobs=args.jobs, executor=executor)
        contexts = [Context(scale, seed, args.out, store) for seed in seeds]
        for name in names:
            _make(name, contexts)
    reports = _read_reports(args.out)
    claims = [claim for report in reports for claim in report["claims"]]
    write_columns(args.out / "claims.csv", {name: [_cell(claim[name]) for claim in claims] for name in Judged._fields})
    summary = counts(claims)
    write_reproduction(args.out, reports, summary, _command((), scale, args.seed, args.seeds))
    sys.stdout.write(
        f"{executed} runs computed, {len(names)} figures drawn; {summary}\nopen {args.out / 'index.html'}\n"
    )
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


def _make(name: str, contexts: Sequence[Context]) -> None:
    """Draw a figure from the first seed; write its numbers, its configuration and the claims of all seeds beside it."""
    figure, first = FIGURES[name], contexts[0]
    scale, seed = first.scale, first.seed
    measured = [figure.measure(context) for context in contexts]
    measured[0].draw()
    write_columns(first.folder / f"{name}_figure.csv", measured[0].columns)
    claims = [judge(of_all_seeds) for of_all_seeds in zip(*(one.claims for one in measured), strict=True)]
    content = {
        "name": name,
        "title": figure.title,
        "caption": figure.caption.format(scale=scale),
        "claims": [claim.report() for claim in claims],
        "choices": list(figure.choices),
        "rerun": _command((name,), scale, seed, len(contexts)),
        "seeds": [context.seed for context in contexts],
        "scale": asdict(scale),
        "versions": {"pzos": pzos.__version__, "python": sys.version.split()[0]}
        | {package: version(package) for package in _VERSIONED},
    }
    (first.folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _read_reports(folder: Path) -> list[dict[str, Any]]:
    """Read the reports of all figures made in this folder so far, in the paper's order."""
    return [
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in FIGURES
        if (folder / f"{name}.json").exists() and (folder / f"{name}.png").exists()
    ]
