"""``pzos export STUDY FILE``: the answers of a study file, or the steps of its trace, as CSV or Parquet."""

from __future__ import annotations

import argparse
import csv
import importlib
from pathlib import Path
from typing import Any

from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.rows import as_array
from pzos.cli.shared import add_json, described, emit, look_at
from pzos.durable.journal import open_journal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos export``."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="a study file, or its TOML file")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write: .csv or .parquet")
    parser.add_argument("--what", choices=("answers", "steps"), default="answers",
                        help="every answer (default), or one row per step (needs the TOML file)")  # fmt: skip
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the table; an existing file is replaced."""
    if args.file.suffix not in (".csv", ".parquet"):
        raise InvalidInput(
            f"export: FILE = {str(args.file)!r}: expected a name that ends in .csv or .parquet; rename it"
        )
    columns = _steps(args.study) if args.what == "steps" else _answers(args.study)
    count = len(next(iter(columns.values()))) if columns else 0
    if args.file.suffix == ".csv":
        _write_csv(args.file, columns)
    else:
        _write_parquet(args.file, columns)
    emit(args, {"file": str(args.file), "rows": count, "columns": list(columns)}, f"{args.file}: {count} rows")
    return 0


def _steps(study: Path) -> dict[str, list[Any]]:
    with look_at(described(study)) as opened:
        trace = opened.result().trace
    return {name: trace[name].tolist() for name in trace.columns}


def _answers(study: Path) -> dict[str, list[Any]]:
    journal = open_journal(described(study).path if study.suffix == ".toml" else study, read_only=True)
    try:
        rows = list(journal.all_answers())
    finally:
        journal.close()
    x, y = ([as_array(data) for data in part] for part in ([row.x for row in rows], [row.y for row in rows]))
    names = ("step", "index", "purpose", "gap", "seconds", "elapsed", "failure", "retried")
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in names}
    for letter, arrays in (("x", x), ("y", y)):
        for entry in range(max((array.size for array in arrays), default=0)):
            columns[f"{letter}{entry}"] = [float(a[entry]) if entry < a.size else float("nan") for a in arrays]
    return columns


def _write_csv(file: Path, columns: dict[str, list[Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(
            [repr(value) if isinstance(value, float) else value for value in row]
            for row in zip(*columns.values(), strict=True)
        )


def _write_parquet(file: Path, columns: dict[str, list[Any]]) -> None:
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet", "writing Parquet") from error
    parquet.write_table(pyarrow.table(columns), file)
