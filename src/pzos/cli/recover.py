"""``pzos recover STUDY``: save every intact answer of a damaged study into a new file."""

from __future__ import annotations

import argparse
from pathlib import Path

from pzos.cli.shared import add_json, emit
from pzos.durable.journal import recover


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos recover``."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the damaged study file (it is left as it is)")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="where to write what was saved")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Save what is intact."""
    out = args.out or args.study.with_name(f"{args.study.stem}.recovered{args.study.suffix}")
    saved, has_header = recover(args.study, out)
    header = (
        "" if has_header else "; the header was lost: it is written anew when the study is opened and proves to fit"
    )
    data = {"study": str(args.study), "saved_to": str(out), "answers": saved, "header": has_header}
    emit(args, data, f"{out}: {saved} answers saved{header}; move it to the study's name and resume")
    return 0
