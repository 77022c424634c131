"""What ``pzos dashboard`` knows and does: the studies of a folder, their open queries, answers told and taken back.

Nothing here speaks of the web. Everything is done by the same functions as ``pzos ask``, ``tell`` and ``untell``, one
at a time, and an answer is on the disk before anybody hears that it was taken.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pzos.base.checks import shown
from pzos.base.columns import Column, Columns
from pzos.base.errors import InvalidInput, PzosError
from pzos.base.frames import as_array, as_bytes
from pzos.base.types import Query, Vector
from pzos.cli.by_hand import Told, as_csv_text, number, taken
from pzos.cli.description import Description, read_description
from pzos.cli.studies import open_study
from pzos.durable.contents import Contents, StoredAnswer
from pzos.durable.log import read_study, take_back
from pzos.durable.replay import summary
from pzos.report.from_file import story_of_file
from pzos.report.page import page
from pzos.report.story import Story

#: A TOML file that says neither is about something else.
_ABOUT_STUDIES = ("leader", "problem")
_LONGEST_REASON = 500
#: A longer study is told without its solver's own trace, which would have to be replayed.
_REPLAYED_AT_MOST = 5_000
#: Seconds for which what was seen of a file that has not changed is believed.
_FRESH = 10.0
T = TypeVar("T")


class Entry(NamedTuple):
    """One study of the folder, by the file that describes it (or, without one, by its own); ``fault`` is why not."""

    name: str
    path: Path
    description: Description | None = None
    fault: str = ""


class Open(NamedTuple):
    """A query that waits for an answer, as a form shows it."""

    query: Query
    decisions: tuple[Column, ...]
    responses: tuple[Column, ...]

    @property
    def address(self) -> str:
        """Return how it is called."""
        return f"{self.query.step}.{self.query.index}"

    @property
    def point(self) -> str:
        """Return the bits of x: an answer belongs to the point it was asked at, whatever it is called."""
        return as_bytes(self.query.x).hex()

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Return the decision: names and numbers as people read them."""
        return [
            (column.label("x", at), column.shown(value))
            for at, (column, value) in enumerate(zip(self.decisions, self.query.x, strict=True))
        ]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the names of the fields to fill in, each with what it is called; one for all where none is known."""
        if not self.responses:
            return [("y", "the answer: all its numbers, with blanks between them")]
        return [(f"y{at}", column.label("y", at)) for at, column in enumerate(self.responses)]


class Answered(PzosError):
    """Somebody else has answered the query meanwhile."""


@dataclass
class Desk:
    """The studies of one folder. One thing is done at a time: user code is imported, and files have one writer."""

    folder: Path
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _read: dict[Path, tuple[int, Entry]] = field(default_factory=dict)
    _seen: dict[tuple[str, Path], tuple[Any, Any]] = field(default_factory=dict)

    def entries(self) -> list[Entry]:
        """Return all studies, by name: those a TOML file describes, and study files that none does."""
        with self._lock:
            described = [
                entry
                for path in sorted(self.folder.glob("*.toml"))
                if path.is_file() and (entry := self._described(path)) is not None
            ]
            known = {entry.path.resolve() for entry in described}
            files = [path for path in sorted(self.folder.glob("*.study")) if path.is_file()]
            return described + [Entry(path.name, path) for path in files if path.resolve() not in known]

    def entry(self, name: str) -> Entry | None:
        """Return the study of that name; no other file can be named."""
        return next((entry for entry in self.entries() if entry.name == name), None)

    def _described(self, path: Path) -> Entry | None:
        changed = path.stat().st_mtime_ns
        seen = self._read.get(path)
        if seen is None or seen[0] != changed:
            entry = self._looked_at(path)
            if entry is None:
                return None
            self._read[path] = seen = changed, entry
        return seen[1]

    def _looked_at(self, path: Path) -> Entry | None:
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            return Entry(path.name, path.with_suffix(".study"), fault=f"cannot be read as TOML ({error})")
        if not any(name in table for name in _ABOUT_STUDIES):
            return None
        try:
            description = read_description(path)
        except PzosError as error:
            return Entry(path.name, path.with_suffix(".study"), fault=str(error))
        return Entry(path.name, description.path, description)

    # ---- looking ----------------------------------------------------------------------------------------------

    def story(self, entry: Entry) -> Story:
        """Return the story of a study, of its stored answers alone: the method is not replayed.

        Whether a point keeps constraints on outcomes is known to a replay only.
        """
        about = entry.description
        constrained = about is not None and about.problem.outcomes is not None
        return self._unless_changed("story", entry, lambda: self._told(entry, replayed=constrained))

    def _told(self, entry: Entry, *, replayed: bool) -> Story:
        about = entry.description
        if about is None:
            return story_of_file(entry.path)
        short = replayed and summary(entry.path).answers <= _REPLAYED_AT_MOST
        return story_of_file(entry.path, about.problem, about.solver if short else None)

    def _unless_changed(self, what: str, entry: Entry, make: Callable[[], T], *, lasting: bool = False) -> T:
        """Return what was made of the file as it is now; many look at once, and a long study takes long to replay.

        Unless it is ``lasting``, it is made anew from time to time: whether its writer still lives is not in the file.
        """
        with self._lock:
            found, key = entry.path.stat(), (what, entry.path)
            period = None if lasting else time.monotonic() // _FRESH
            stamp = found.st_mtime_ns, found.st_size, id(entry.description), period
            seen = self._seen.get(key)
            if seen is None or seen[0] != stamp:
                self._seen[key] = seen = stamp, make()
            made: T = seen[1]
            return made

    def contents(self, entry: Entry) -> Contents:
        """Return what the study file says."""
        return read_study(entry.path)

    def report(self, entry: Entry) -> str:
        """Return the whole report as a page."""
        return self._unless_changed("report", entry, lambda: page([self._told(entry, replayed=True)]))

    def open_queries(self, entry: Entry) -> list[Open]:
        """Return the queries that wait for an answer; nothing is written."""
        about = entry.description
        if about is None:
            return []
        return self._unless_changed("open", entry, lambda: self._open(entry, about), lasting=True)

    def look_around(self) -> None:
        """Read all studies, so that the first page that is asked for opens as fast as the others."""
        for entry in self.entries():
            if not entry.fault and entry.path.exists():
                with contextlib.suppress(PzosError, OSError):  # the page itself says why it cannot be opened
                    self.open_queries(entry)

    def _open(self, entry: Entry, about: Description) -> list[Open]:
        with open_study(about, read_only=True) as study:
            queries = [] if study.done else study.ask()
            known = study.known
        answered = next((row.y.size for row in self.contents(entry).answers if row.y.size), 0)
        size = answered or len(known.responses.each)
        return [Open(query, known.decisions.of(known.dimension), known.responses.of(size)) for query in queries]

    def form(self, entry: Entry) -> str:
        """Return the open queries as the CSV file that ``pzos ask`` writes."""
        known = None if entry.description is None else entry.description.problem
        queries = [one.query for one in self.open_queries(entry)]
        return "" if known is None else as_csv_text(queries, known.decisions, known.responses)

    def answers(self, entry: Entry) -> list[tuple[str, str, str]]:
        """Return what was told, the last first: the query, why it was asked, and the answer."""
        contents = self.contents(entry)
        named = contents.columns("responses") if entry.description is None else entry.description.problem.responses
        return [
            (
                f"{row.step}.{row.index}",
                row.purpose,
                f"failed: {row.failure}" if row.failure else named.in_words(row.y),
            )
            for row in reversed(contents.answers)
        ]

    # ---- changing ---------------------------------------------------------------------------------------------

    def tell(self, entry: Entry, given: Mapping[str, str]) -> str:
        """Take one answer from a form and return which query it was; nothing is taken if anything is wrong with it."""
        if entry.description is None:
            raise InvalidInput(f"{entry.name}: answers can be told where a TOML file describes the study; add one")
        step, index = _address(given.get("query", ""))
        told = Told(step, index, _numbers(given), _point(given), float("nan"), _reason(given, "failure"))
        if not told.failure and not told.y.size:
            raise InvalidInput(f"query {step}.{index}: the answer is empty: fill it in, or say why it failed")
        with self._lock:
            stored = [row for row in self.contents(entry).answers if (row.step, row.index) == (step, index)]
            if stored and not _same(stored[-1], told):
                named = entry.description.problem.responses
                raise Answered(
                    f"Query {step}.{index} was answered meanwhile: {_said(stored[-1], named)}. Your answer, "
                    f"{_said(told, named)}, was not taken and nothing was changed; if the other is wrong, take it back."
                )
            with open_study(entry.description) as study:
                taken(f"query {step}.{index}", study, [told])
        return f"{step}.{index}"

    def hand_out(self, entry: Entry) -> None:
        """Hand out one more query of a study that takes its answers in any order."""
        if entry.description is None or entry.description.settings.get("order") != "told":
            raise InvalidInput(f'{entry.name}: expected a study of order "told"; answer the queries that are open')
        with self._lock, open_study(entry.description) as study:
            study.ask_one()

    def take_back(self, entry: Entry, given: Mapping[str, str]) -> str:
        """Take an answer back, with the reason, and return which query is open again."""
        step, index = _address(given.get("query", ""))
        why = _reason(given, "why")
        if not why:
            raise InvalidInput(f"query {step}.{index}: taking an answer back needs a reason: it is kept with the study")
        with self._lock:
            take_back(entry.path, step, index, why)
        return f"{step}.{index}"


def _said(told: StoredAnswer | Told, named: Columns) -> str:
    return f"failed: {told.failure}" if told.failure else named.in_words(told.y)


def _same(stored: StoredAnswer, told: Told) -> bool:
    return as_bytes(stored.y) == as_bytes(told.y) and bool(stored.failure) == bool(told.failure)


def _address(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,18})\.(\d{1,18})", text, re.ASCII)
    if found is None:
        raise InvalidInput(f"query = {shown(text)}: expected two whole numbers and a point; open the page again")
    return int(found[1]), int(found[2])


def _point(given: Mapping[str, str]) -> Vector:
    try:
        return as_array(bytes.fromhex(given.get("x", "")))
    except ValueError:
        raise InvalidInput("x: expected the point that was asked about; open the page again") from None


def _reason(given: Mapping[str, str], name: str) -> str:
    text = " ".join(given.get(name, "").split())
    if len(text) > _LONGEST_REASON:
        raise InvalidInput(f"{name}: {len(text)} characters: expected at most {_LONGEST_REASON}; shorten it")
    return text


def _numbers(given: Mapping[str, str]) -> Vector:
    """Return the answer of a form: a field for each entry, or one with all of them."""
    if _reason(given, "failure"):
        return np.empty(0)
    names = sorted((name for name in given if re.fullmatch(r"y\d{1,6}", name)), key=lambda name: int(name[1:]))
    texts: Sequence[tuple[str, Any]] = [(name, given[name]) for name in names]
    if "y" in given:
        texts = [(f"y{at}", text) for at, text in enumerate(given["y"].replace(";", " ").split())]
    found = []
    for name, text in texts:
        try:
            found.append(number(text.strip()))
        except ValueError:
            raise InvalidInput(
                f"{name} = {shown(text)}: expected a number such as 3.5; correct it, or say why it failed"
            ) from None
    return np.array(found, dtype=np.float64)
