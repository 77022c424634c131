"""A study answered by people: ``pzos ask`` writes the open queries, ``pzos tell`` takes the answers from a file.

CSV has the columns ``step``, ``index`` and ``y0``, ``y1``, ... (``y.name [unit]`` where the answers have names, in any
order); if wanted ``gap``, ``failure``, and the ``x`` columns of ``pzos ask``, which are then compared. JSON has the
same: ``{"queries": [{"step": 0, "index": 1, "y": [...]}]}``.
Telling the same file again changes nothing. ``pzos untell`` takes an answer back.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pzos.base.checks import Faults, counted, shown, whole
from pzos.base.columns import Columns
from pzos.base.errors import InvalidAnswer, InvalidInput
from pzos.base.frames import as_bytes, spare_study
from pzos.base.types import Query, Vector
from pzos.cli.description import read_description
from pzos.cli.printing import add_json, emit
from pzos.cli.studies import add_study, limits_of, open_study
from pzos.durable.contents import StoredAnswer
from pzos.durable.log import Log, read_study, take_back
from pzos.problem.problem import NAMELESS, Known
from pzos.study.admission import check_taken
from pzos.study.study import Study


class Told(NamedTuple):
    """One answer as a file gives it; ``x`` is None where the file does not repeat it."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    y: Vector
    x: Vector | None
    gap: float
    failure: str


# ---- pzos ask -----------------------------------------------------------------------------------------------------


def add_ask(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos ask``."""
    add_study(parser)
    add_json(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write here (.csv or .json) instead")
    parser.add_argument("--steps", type=int, help="go on until this many steps in all")
    parser.add_argument("--count", type=int, metavar="N", help="hand out N queries; in a study of order told (see pzos "
                        "run) as many as are wanted, in any other those of the step")  # fmt: skip


def ask(args: argparse.Namespace) -> int:
    """Print the open queries; none, with a note on standard error, if the study has ended."""
    whole(1, "try --count 5").or_none().require("ask", "--count", args.count)
    description = read_description(args.study)
    in_any_order = description.settings.get("order") == "told"
    # What is handed out of a study of order told is kept: the next answer may change what would be asked.
    with open_study(description, read_only=not in_any_order, **limits_of(args)) as study:
        queries = [] if study.done else study.ask()
        while in_any_order and len(queries) < (args.count or 1) and (query := study.ask_one()) is not None:
            queries.append(query)
        queries = queries[: args.count]
        if not queries:
            sys.stderr.write(f"nothing to ask: {study.stop.value}\n")
        elif len(queries) < (args.count or 1) and not in_any_order:
            told = 'a study of the default method with  order = "told"  in its TOML file hands out as many as wanted'
            sys.stderr.write(f"the step has no more than {counted(len(queries), 'query')}; {told}\n")
    as_json = args.json or (args.out is not None and args.out.suffix == ".json")
    known = description.problem.known()
    text = (as_json_text if as_json else as_csv_text)(queries, known.decisions, known.responses)
    if args.out is None:
        sys.stdout.write(text)
    else:
        spare_study(args.out).write_text(text, encoding="utf-8")
    return 0


def as_json_text(queries: list[Query], decisions: Columns = NAMELESS, responses: Columns = NAMELESS) -> str:
    """Return the queries as JSON; add ``"y"`` to each and give the file to ``pzos tell``."""
    rows = [
        {"step": q.step, "index": q.index, "purpose": q.purpose.value, "x": [float(entry) for entry in q.x]}
        for q in queries
    ]
    named = {"decisions": decisions, "responses": responses}
    called = {name: [str(column) for column in columns.each] for name, columns in named.items() if columns.each}
    return json.dumps({**called, "queries": rows}, indent=1) + "\n"


def as_csv_text(queries: list[Query], decisions: Columns = NAMELESS, responses: Columns = NAMELESS) -> str:
    """Return the queries as CSV, all digits; fill in the columns of y (or add them) and give it to ``pzos tell``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    asked, told = (decisions.of(queries[0].x.size), responses.each) if queries else ((), ())
    heads = [column.head(letter, at) for letter, row in (("x", asked), ("y", told)) for at, column in enumerate(row)]
    writer.writerow(["step", "index", "purpose", *heads])
    for query in queries:
        numbers = [repr(float(entry)) for entry in query.x]
        writer.writerow([query.step, query.index, query.purpose.value, *numbers, *("" for _ in told)])
    return buffer.getvalue()


# ---- pzos tell ----------------------------------------------------------------------------------------------------


def add_tell(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos tell``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="answers as CSV or JSON")
    add_study(parser)
    parser.add_argument("--steps", type=int, help="go on until this many steps in all")
    add_json(parser)


def tell(args: argparse.Namespace) -> int:
    """Check every answer in the file, then take those that are new."""
    if args.file.suffix == ".toml" and args.study.suffix != ".toml":  # the other commands name the study first
        args.file, args.study = args.study, args.file
    description = read_description(args.study)
    answers = read_answers(args.file, description.problem.known())
    with open_study(description, **limits_of(args)) as study:
        fresh = taken(str(args.file), study, answers)
        left = 0 if study.done else len(study.ask())
        step, done = study.step, study.done
    data = {"taken": len(fresh), "known": len(answers) - len(fresh), "open": left, "steps": step, "done": done}
    state = "the study has ended" if done else f"open: {counted(left, 'query')}"
    told = f"{counted(len(fresh), 'answer')} taken, {data['known']} known before"
    emit(args, data, f"{told}; {counted(step, 'step')} taken, {state}")
    return 0


def taken(where: str, study: Study, answers: list[Told]) -> list[Told]:
    """Tell the study those answers that are new, and return them; one error lists all faults before any is taken."""
    fresh = _checked(where, study, answers)
    for told in fresh:
        query = next(query for query in study.ask() if (query.step, query.index) == (told.step, told.index))
        if told.failure:
            study.fail(query, told.failure)
        else:
            study.tell(query, told.y, gap=told.gap)
    return fresh


def _checked(where: str, study: Study, answers: list[Told]) -> list[Told]:
    """Return the answers that are new; one error lists all that cannot be taken, before any is."""
    faults = Faults(where)
    asked = {} if study.done else {(query.step, query.index): query for query in study.ask()}
    stored = _stored(study)
    fresh: dict[tuple[int, int], Told] = {}
    for (step, index), times in Counter((told.step, told.index) for told in answers).items():
        if times > 1:
            faults.add(f"answer {step}.{index}: is there {times} times: expected one answer to a query; remove others")
    length = next((row.y.size for rows in stored.values() for row in rows if row.y.size), None)
    for told in answers:
        what, address = f"answer {told.step}.{told.index}", (told.step, told.index)
        length = told.y.size if length is None and not told.failure else length
        if address in asked:
            _check_new(faults, what, told, asked[address], length, study)
            fresh[address] = told
        elif address in stored:
            same = any(
                as_bytes(row.y) == as_bytes(told.y) and bool(row.failure) == bool(told.failure)
                for row in stored[address]
            )
            faults.check(same, what, told.y, "the answer told before", "a query has one answer: remove this row")
        else:
            faults.add(f"{what}: expected an open query; ask again with  pzos ask")
    faults.raise_if_any()
    return list(fresh.values())


def _check_new(faults: Faults, where: str, told: Told, query: Query, length: int | None, study: Study) -> None:
    if told.x is not None:
        same = as_bytes(told.x) == as_bytes(query.x)
        faults.check(same, f"{where}: x", told.x, "the x that was asked", "answer the queries of this study")
    if not told.failure:
        finite = bool(np.isfinite(told.y).all())
        faults.check(finite, where, told.y, "finite numbers", "or give a failure instead")
        fits = told.y.size == length
        faults.check(fits, where, told.y, f"{length} numbers", "every answer has the same length")
        if finite and fits:
            try:
                check_taken(study.known, study.state.x, query, told.y)
            except InvalidAnswer as error:
                faults.add(str(error))


def _stored(study: Study) -> dict[tuple[int, int], list[StoredAnswer]]:
    found: dict[tuple[int, int], list[StoredAnswer]] = {}
    if isinstance(study.journal, Log):
        for row in read_study(study.journal.path).answers:
            found.setdefault((row.step, row.index), []).append(row)
    return found


# ---- pzos untell --------------------------------------------------------------------------------------------------


def add_untell(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos untell``."""
    add_study(parser, "STUDY", "the TOML file (study.toml), or the study file", required=True)
    parser.add_argument("query", metavar="STEP.INDEX", help="the query whose answer is taken back, as in 3.1")
    parser.add_argument("--why", default="", metavar="TEXT", help="the reason; it is kept with the study")
    add_json(parser)


def untell(args: argparse.Namespace) -> int:
    """Take an answer back; also where the study cannot be opened because of it."""
    found = re.fullmatch(r"(\d{1,18})\.(\d{1,18})", args.query, re.ASCII)
    if found is None:
        raise InvalidInput(f"untell: STEP.INDEX = {args.query!r}: expected two whole numbers and a point; try 3.1")
    path = read_description(args.study).path if args.study.suffix == ".toml" else args.study
    left = take_back(path, int(found[1]), int(found[2]), args.why)
    data = {"study": str(path), "query": args.query, "answers": len(left.answers), "aside": left.aside}
    later = f"; set aside, because they depend on it: {left.aside}" if left.aside else ""
    emit(args, data, f"answer {args.query} taken back; standing: {counted(data['answers'], 'answer')}{later}")
    return 0


# ---- reading ----------------------------------------------------------------------------------------------------


def read_answers(file: Path, known: Known | None = None) -> list[Told]:
    """Read answers from CSV or JSON (told by the first character); ``known`` says what their columns are called."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: cannot be read ({error}); give a CSV or JSON file of answers") from None
    if not text.strip():
        raise InvalidInput(f"{file}: is empty: expected answers; start from the file that  pzos ask  writes")
    try:
        if text.lstrip()[:1] in ("{", "["):
            data: Any = json.loads(text)
            rows: Any = data["queries"] if isinstance(data, dict) else data
            return [_from_json(row) for row in rows]
        table = csv.DictReader(text.splitlines())
        places = {letter: _places(letter, table.fieldnames or (), known) for letter in "xy"}
        return [_from_csv(row, places) for row in table]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"{file}: cannot be read as answers ({said}): expected step, index and y; "
            "start from the file that  pzos ask  writes"
        ) from None


def _from_json(row: dict[str, Any]) -> Told:
    address = row["step"], row["index"]
    if not all(type(number) is int and number >= 0 for number in address):
        raise ValueError(f"{address[0]}.{address[1]} is no address: step and index are whole numbers")
    failure = str(row.get("failure") or "")
    y = np.empty(0) if failure else _vector(row["y"])
    x = _vector(row["x"]) if row.get("x") is not None else None
    gap = row.get("gap")
    return Told(*address, y, x, float("nan") if gap is None else float(_vector([gap])[0]), failure)


def _vector(entries: Any) -> Vector:
    """Return the numbers of one answer; a number alone is an answer of one entry."""
    numbers = entries if isinstance(entries, list) else [entries]
    if not all(type(entry) in (int, float) for entry in numbers):
        raise ValueError(f"{shown(entries)} is no list of numbers")
    return np.array(numbers, dtype=np.float64)


def _places(letter: str, heads: Sequence[str], known: Known | None) -> list[str]:
    """Return the heads of the columns of x or y in the order of their entries."""
    columns = NAMELESS if known is None else known.decisions if letter == "x" else known.responses
    entries = {column.head(letter, at): at for at, column in enumerate(columns.each)}
    found = {head: entries[head] for head in heads if head in entries}
    for head in heads:
        number = re.fullmatch(rf"{letter}(\d{{1,9}})", head)
        if number is not None and head not in found:
            found[head] = int(number[1])
        elif number is None and head.startswith(f"{letter}.") and head not in found:
            raise ValueError(f"column {shown(head)} is none of {', '.join(entries) or 'x0, x1, ..., y0, y1, ...'}")
    if sorted(found.values()) != list(range(len(found))):
        raise ValueError(f"columns {', '.join(found)} are not {letter}0, {letter}1, ..., each once")
    return sorted(found, key=found.__getitem__)


def _from_csv(row: dict[str, str], places: dict[str, list[str]]) -> Told:
    where = f"row {row['step']}.{row['index']}"
    if None in row or None in row.values():
        raise ValueError(f"{where} has more or fewer cells than the first line has names")
    failure = row.get("failure", "").strip()
    y, x = ([row[head].strip() for head in places[letter]] for letter in "yx")
    if not failure and not y:
        raise ValueError(f"{where} has no y0, y1, ...")
    if not failure and "" in y:
        raise ValueError(f"{where} has a blank cell; fill it in, or give a failure instead")
    return _from_json(
        {
            "step": _whole(row["step"]),
            "index": _whole(row["index"]),
            "y": [] if failure else [number(text) for text in y],
            "x": None if "" in x or not x else [number(text) for text in x],
            "gap": number(row["gap"].strip()) if row.get("gap", "").strip() else None,
            "failure": failure,
        }
    )


def _whole(text: str) -> int:
    if re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII) is None:
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def number(text: str) -> float:
    """Return a number as spreadsheets write it: not ``1_000``, which Python would take."""
    if "_" in text:
        raise ValueError(f"{text!r} is no number")
    return float(text)
