"""Tables as files: CSV with all digits, and Parquet; what :class:`pzos.Answers` and ``pzos export`` write.

A column of x is ``x0``, ``x1``, ... or, where it has a name, ``x.name [unit]``; those of y likewise.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pzos.answers.table import Answers
from pzos.base.checks import FileFaults, printable, shown
from pzos.base.columns import Column
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.frames import spare_study

_TEXTS = ("failure", "source", "told", "follower", "trust")
_NUMBERS = ("seconds", "gap")
#: Cells that hold text somebody else may have written.
_GUARDED = ("purpose", "retried", *_TEXTS)
_FORMULA = ("=", "+", "-", "@")
_HEAD = re.compile(r"([xy])(?:(\d{1,9})|\.(.+?)(?: \[(.+)\])?)")


# ---- writing ----------------------------------------------------------------------------------------------------


def write_table(table: Answers, path: str | os.PathLike[str]) -> Path:
    """Write a table of answers by the ending of its name."""
    place = spare_study(path)
    columns: dict[str, list[Any]] = {name: list(getattr(table, name)) for name in _TEXTS}
    columns |= {name: getattr(table, name).tolist() for name in _NUMBERS}
    for letter, names, numbers in (("x", table.decisions, table.x), ("y", table.responses, table.y)):
        columns |= {column.head(letter, at): numbers[:, at].tolist() for at, column in enumerate(names)}
    write_columns(place, columns)
    return place


def write_columns(file: Path, columns: dict[str, list[Any]]) -> None:
    """Write columns as .csv or .parquet; an existing file is replaced."""
    if file.suffix == ".csv":
        _write_csv(file, columns)
    elif file.suffix == ".parquet":
        pyarrow, parquet = _parquet("writing Parquet")
        parquet.write_table(pyarrow.table(columns), file)
    else:
        raise InvalidInput(f"FILE = {str(file)!r}: expected a name that ends in .csv or .parquet; rename it")


def _write_csv(file: Path, columns: dict[str, list[Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        guarded = {name: [_guarded(cell) for cell in columns[name]] for name in _GUARDED if name in columns}
        columns = {**columns, **guarded}
        writer.writerows(zip(*columns.values(), strict=True))  # floats come out with all their digits


def _guarded(cell: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    cell = printable(cell)
    return "'" + cell if cell.lstrip()[:1] in _FORMULA else cell


def _plain(cell: str) -> str:
    """Return the text that was guarded."""
    return cell[1:] if cell[:1] == "'" and cell[1:].lstrip()[:1] in _FORMULA else cell


def _parquet(purpose: str) -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet", purpose) from error


# ---- reading ----------------------------------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str], x: Sequence[str] = (), y: Sequence[str] = ()) -> Answers:
    """Read answers from CSV or Parquet; all that is wrong with the file is said at once."""
    place = Path(path)
    columns = _read_parquet(place) if place.suffix == ".parquet" else _read_csv(place)
    faults = FileFaults(place)
    named = {"x": _found(faults, "x", x, columns), "y": _found(faults, "y", y, columns)}
    for letter, found in named.items():
        if not found:
            faults.at(
                None, f"has no column of {letter}: expected {letter}0, {letter}1, ...; or say which: {letter}=[...]"
            )
    faults.raise_if_any()
    failure = [_plain(str(cell or "")) for cell in columns.get("failure", [])] or [""] * len(columns[named["y"][0][0]])
    if not failure:
        faults.at(None, "has no rows: expected one per answer")
    optional = {"x": [False] * len(failure), "y": list(map(bool, failure))}
    numbers = {
        head: _numbers(faults, head, columns[head], optional[letter]) for letter in named for head, _ in named[letter]
    }
    known = [True] * len(failure)
    numbers |= {name: _numbers(faults, name, columns[name], known) for name in _NUMBERS if name in columns}
    faults.raise_if_any()
    texts = {name: [_plain(str(cell or "")) for cell in columns[name]] for name in _TEXTS if name in columns}
    if not any(texts.get("source", ())):
        texts["source"] = [place.name] * len(failure)
    facts: dict[str, Any] = {**texts, **{name: numbers[name] for name in _NUMBERS if name in numbers}}
    rows = {letter: list(zip(*(numbers[head] for head, _ in heads), strict=True)) for letter, heads in named.items()}
    return Answers(
        rows["x"],
        rows["y"],
        **facts,
        decisions=[column for _, column in named["x"]],
        responses=[column for _, column in named["y"]],
    )


def _found(
    faults: FileFaults, letter: str, wanted: Sequence[str], columns: dict[str, list[Any]]
) -> list[tuple[str, Column]]:
    """Return the columns of x or of y, with what they are called: those wanted, or those that say so."""
    if wanted:
        for name in wanted:
            if name not in columns:
                faults.at(None, f"has no column {shown(name)}: expected one of {', '.join(map(shown, columns))}")
        return [(name, Column(name)) for name in wanted if name in columns]
    matches = [found for head in columns if (found := _HEAD.fullmatch(head)) is not None and found[1] == letter]
    numbered = sorted((found for found in matches if found[2]), key=lambda found: int(found[2]))
    if [int(found[2]) for found in numbered] != list(range(len(numbered))):
        faults.at(
            None, f"columns {', '.join(found[0] for found in numbered)}: expected {letter}0, {letter}1, ..., each once"
        )
    ordered = numbered if len(numbered) == len(matches) else matches
    return [(found[0], _column(found)) for found in ordered]


def _column(found: re.Match[str]) -> Column:
    name = found[3] or ""
    return Column("" if name.isdecimal() else name, found[4] or "")


def _numbers(faults: FileFaults, head: str, cells: Iterable[Any], optional: Sequence[bool]) -> list[float]:
    """Return a column as numbers, NaN for a blank cell where it is optional."""
    numbers = []
    for row, cell in enumerate(cells):
        text = "" if cell is None else str(cell).strip()
        blank = text.lower() in ("", "nan")
        try:
            number = float("nan") if blank else float(text.replace("_", "no number"))
        except ValueError:
            number, blank = float("nan"), False
            faults.at(row + 2, f"{head} = {shown(text)}: expected a number; correct it")
        if blank and not optional[row]:
            faults.at(row + 2, f"{head} is blank: expected a number; fill it in, or give a failure for this row")
        numbers.append(number)
    return numbers


def _read_csv(path: Path) -> dict[str, list[Any]]:
    faults = FileFaults(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(
            f"{path}: cannot be read as a table ({error}); give a .csv, .parquet or study file"
        ) from None
    heads = [head.strip() for head in rows[0]] if rows else []
    for head in {head for head in heads if heads.count(head) > 1}:
        faults.at(1, f"column {shown(head)} is there more than once: expected each once")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(heads):
            faults.at(line, f"has {len(row)} cells: expected {len(heads)}, one under each name")
    faults.raise_if_any()
    return {head: [row[at] for row in rows[1:]] for at, head in enumerate(heads)}


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    pyarrow, parquet = _parquet("reading Parquet")
    try:
        found: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet ({error}); check the file") from None
    return found
