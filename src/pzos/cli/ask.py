"""``pzos ask STUDY.toml``: the open queries as CSV or JSON, for whoever can answer them."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path

from pzos.base.types import Query
from pzos.cli.shared import add_json, add_study, described, limits_of, open_study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos ask``."""
    add_study(parser)
    add_json(parser)
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="write here (.csv or .json) instead")
    parser.add_argument("--steps", type=int, default=None, help="go on until this many steps in all")


def run(args: argparse.Namespace) -> int:
    """Print the open queries; none, with a note on standard error, if the study has ended."""
    with open_study(described(args.study), read_only=True, **limits_of(args)) as study:
        queries = [] if study.done else study.ask()
        if not queries:
            sys.stderr.write(f"nothing to ask: {study.stop.value}\n")
    as_json = args.json or (args.out is not None and args.out.suffix == ".json")
    text = as_json_text(queries) if as_json else as_csv_text(queries)
    if args.out is None:
        sys.stdout.write(text)
    else:
        args.out.write_text(text, encoding="utf-8")
    return 0


def as_json_text(queries: list[Query]) -> str:
    """Return the queries as JSON; add ``"y"`` to each and give the file to ``pzos tell``."""
    rows = [
        {"step": q.step, "index": q.index, "purpose": q.purpose.value, "x": [float(entry) for entry in q.x]}
        for q in queries
    ]
    return json.dumps({"queries": rows}, indent=1) + "\n"


def as_csv_text(queries: list[Query]) -> str:
    """Return the queries as CSV, all digits; add columns y0, y1, ... and give the file to ``pzos tell``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    width = queries[0].x.size if queries else 0
    writer.writerow(["step", "index", "purpose", *(f"x{number}" for number in range(width))])
    for query in queries:
        writer.writerow([query.step, query.index, query.purpose.value, *(repr(float(entry)) for entry in query.x)])
    return buffer.getvalue()
