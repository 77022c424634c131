"""``pzos status STUDY``: how far a study is, also while it runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pzos.cli.shared import add_json, described, emit, look_at, result_data, sparkline
from pzos.durable.replay import summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos status``."""
    parser.add_argument("study", type=Path, nargs="?", default=Path("study.toml"), metavar="STUDY",
                        help="the TOML file (study.toml), or a study file, which says less")  # fmt: skip
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print a table and a sparkline of F."""
    if args.study.suffix != ".toml":
        return _of_file(args)
    description = described(args.study)
    with look_at(description) as study:
        result = study.result()
        data = {"study": str(description.path), **result_data(study, result)}
    rows = [("study", str(description.path)), *result.rows()]
    if data["open"]:
        rows.append(("open queries", ", ".join(data["open"][:8]) + (", ..." if len(data["open"]) > 8 else "")))
    values = result.trace["value"]
    line = sparkline(values)
    if line:
        rows.append(("F by step", line))
    emit(args, data, _table(rows))
    return 0


def _of_file(args: argparse.Namespace) -> int:
    found = summary(args.study)
    data = {"study": str(args.study), **found._asdict()}
    identity = found.header.get("identity", {})
    rows = [
        ("study", str(args.study)),
        ("problem", identity.get("problem", {}).get("name") or "unnamed"),
        ("solver", json.dumps(identity.get("solver", "unknown (the header was lost)"))),
        ("answers", f"{found.answers}, {found.failures} of them failures"),
        ("steps", f"{found.steps}"),
        ("seconds", f"{found.seconds:.3g}"),
    ]
    emit(args, data, _table(rows))
    return 0


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
