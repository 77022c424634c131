"""``pzos report STUDY...``: one self-contained page about one study or several, finished or running."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from pzos.base.checks import Faults
from pzos.cli.description import add_names, sources
from pzos.report.from_file import story_of_file
from pzos.report.page import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos report``."""
    parser.add_argument("studies", nargs="+", metavar="STUDY", type=Path, help="TOML files of studies, or study files")
    add_names(parser)
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page to write")


def run(args: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    faults = Faults("report")
    faults.check(not args.out.is_dir(), "--out", str(args.out), "a file", f"try --out {args.out}/report.html")
    faults.raise_if_any()
    found = sources("report", args.studies, args)
    stories = [story_of_file(source.path, source.problem, source.solver) for source in found]
    if len(stories) > 1:  # studies of one problem are told apart by their files
        stories = [
            replace(told, name=f"{source.path.stem}: {told.name}") for source, told in zip(found, stories, strict=True)
        ]
    place = write_report(stories, args.out)
    size = place.stat().st_size / 1e6
    sys.stdout.write(f"{place}: {len(stories)} {'study' if len(stories) == 1 else 'studies'}, {size:.1f} MB\n")
    return 0
