"""``pzos report STUDY...``: one self-contained page about one study or several, finished or running."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from pzos.errors import Faults
from pzos.report.from_file import story_of_file
from pzos.report.named import named_problem, named_solver
from pzos.report.page import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos report``."""
    parser.add_argument("studies", nargs="+", metavar="STUDY", type=Path, help="files of durable studies")
    parser.add_argument("--problem", metavar="FILE.py:NAME", help="the problem they were opened with: shows F")
    parser.add_argument("--solver", metavar="FILE.py:NAME", help="the solver they were opened with: shows its trace")
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page to write")


def run(args: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    faults = Faults("report")
    for study in args.studies:
        faults.check(study.is_file(), "STUDY", str(study), "the file of a study", "check the path")
    faults.check(not args.out.is_dir(), "--out", str(args.out), "a file", f"try --out {args.out}/report.html")
    faults.raise_if_any()
    problem, solver = named_problem("report", args.problem), named_solver("report", args.solver)
    stories = [story_of_file(study, problem, solver) for study in args.studies]
    if len(stories) > 1:  # studies of one problem are told apart by their files
        stories = [
            replace(told, name=f"{path.stem}: {told.name}") for path, told in zip(args.studies, stories, strict=True)
        ]
    place = write_report(stories, args.out)
    size = place.stat().st_size / 1e6
    sys.stdout.write(f"{place}: {len(stories)} {'study' if len(stories) == 1 else 'studies'}, {size:.1f} MB\n")
    return 0
