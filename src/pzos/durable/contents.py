"""What a study file says: its header, its events and notes, frame by frame; whatever is no such thing is refused.

Nothing is believed: sizes and types are checked before they are used, and a note may be of any kind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from pzos.answers.table import Answers
from pzos.base.checks import counted
from pzos.base.columns import Column, Columns, read_columns
from pzos.base.errors import InvalidInput
from pzos.base.frames import as_array, as_bytes
from pzos.base.types import Purpose, Response, Vector
from pzos.durable.lock import holder
from pzos.methods.solver import Stop
from pzos.problem.leader import Leader
from pzos.study.events import AT_ONCE, Event, Events, Row, is_closing, place_of, rows_of, without, without_later

#: Written into each header; a file of another format is refused.
FORMAT = 2
HEADER, NOTE, ASKED, ANSWERED, GIVEN = b"h", b"n", b"q", b"a", b"g"
_EVENTS = (ANSWERED, ASKED)
# kind; step, index; gap, seconds, elapsed; how many bytes of purpose, x, y, failure, retried follow
_EVENT = struct.Struct("<cqqddd5I")
_FLOAT_BYTES = 8
_PURPOSES = {purpose.value.encode(): purpose.value for purpose in Purpose}
_STOPS = {stop.value: stop for stop in Stop}
_UNKNOWN = float("nan")
_NO_ANSWER = Response(0, 0, as_array(b""))
#: How many events may be looked through for answers that were taken back; opening a file must not take for ever.
_MOST_LOOKED_THROUGH = 10**6
#: A header and a note are short; what is longer would take many times its size in memory.
_MOST_JSON = 1 << 20
_MOST_PROCESSES = 1 << 31
_LENGTH = struct.Struct("<Q")
_GIVEN_NUMBERS = ("x", "y", "seconds", "gap")
_GIVEN_TEXTS = ("failure", "source", "told", "follower", "trust")


class StoredAnswer(NamedTuple):
    """One told answer (or failure) with the query it answers; ``elapsed`` is the study's clock when it was told."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    purpose: str
    x: Vector
    y: Vector
    gap: float
    seconds: float
    elapsed: float
    failure: str
    retried: str
    final: bool  # whether it is the answer to the last query of a study, which asks for F at the last iterate


class Contents:
    """What a study file says: its header (None if it was lost), its events, and notes between them.

    A note has a kind: ``opened`` (by whom, on which machine), ``closed`` (why), ``withdrawn`` (which answer, and why),
    ``leader`` (its value at an answer), ``gap`` (of a study whose answers come in any order: what follows is from after
    a damage).
    Kinds that are not known are kept, so that later versions may have more. ``events`` are what stands: without answers
    that were taken back. ``given`` are the answers from elsewhere that the study was begun with.
    """

    def __init__(self) -> None:
        self.header: dict[str, Any] | None = None
        self.rows: list[Row] = []
        self.events: Sequence[Event] = Events(self.rows)
        self.notes: list[dict[str, Any]] = []
        self.given: Answers | None = None
        self.withdrawn = 0
        self.lost = 0  # frames between those that were saved of a damaged study
        self._looked_through = 0
        self._after_gap = 0  # frames to come
        self._before_gap: dict[int, bytes] = {}  # the points of queries issued until there

    @property
    def answers(self) -> list[StoredAnswer]:
        """Return the answers of the run, in the order of telling."""
        return stored_answers(self.events)

    @property
    def in_any_order(self) -> bool:
        """Whether the answers of the study come in any order, so that the file keeps which query was issued when."""
        return ((self.header or {}).get("identity") or {}).get("order") == "told"

    @property
    def aside(self) -> int:
        """Return how many answers were set aside when one they depend on was taken back, or lost."""
        return sum(row[-1] is not None for row in rows_of(self.events))

    @property
    def difference(self) -> float:
        """Return the largest difference between a point as stored and as another machine computed it."""
        noted = [note["difference"] for note in self.notes if isinstance(note.get("difference"), float)]
        return max(noted, default=0.0)

    def columns(self, name: str) -> Columns:
        """Return what "decisions" or "responses" are called, as the study was begun with."""
        kept = (self.header or {}).get("columns")
        return read_columns(kept.get(name) if isinstance(kept, dict) else None)

    def remarks(self) -> list[tuple[str, str]]:
        """Return what the file notes besides answers, in words: followers, other machines, answers taken back."""
        rows = []
        follower = ((self.header or {}).get("identity") or {}).get("problem", {}).get("follower")
        if isinstance(follower, dict):
            lacks = f"; cannot be compared: {follower['unknown']!s:.200}" if "unknown" in follower else ""
            rows.append(("followers", f"{follower.get('name')!s:.80}{lacks}"))
        if self.difference:
            rows.append(("other machine", f"points moved by {self.difference:.2g} at most; the stored ones are used"))
        if self.given is not None:
            origin = ", ".join(dict.fromkeys(self.given.source))
            rows.append(("begun with", f"{counted(len(self.given), 'answer')} from {origin}"))
        if self.lost:
            rows.append(
                ("lost", f"{self.lost} entries of a damaged file; {self.aside} answers from after them are known")
            )
        if self.withdrawn:
            taken = counted(self.withdrawn, "answer")
            rows.append(("taken back", f"{taken}; set aside, because they depend on it: {self.aside}"))
        return rows

    @property
    def stop(self) -> Stop | None:
        """Return why the study has ended, as its last writer noted; None if he did not say that it has."""
        noted = self._last_note("opened", "closed", "withdrawn").get("stop")
        return _STOPS.get(noted) if isinstance(noted, str) else None

    @property
    def state(self) -> str:
        """Return in words that the study has ended and why, that it is being written, or that it is open.

        Where its last writer was killed, and in files of format 1, no reason is noted; the last look at F was the end.
        """
        if self.stop is not None:
            return self.stop.value if self.stop is Stop.INTERRUPTED else f"ended: {self.stop.value}"
        if self.being_written:
            return "being written now"
        looked_last = bool(self.events) and self.events[-1].closing and self.events[-1].response is not None
        return "ended" if looked_last else "open: more answers can be told"

    @property
    def writer(self) -> dict[str, Any]:
        """Return what the present writer noted of himself, as far as the file tells: nothing once he closed it."""
        session = self._last_note("opened", "closed")
        return session if session.get("kind") == "opened" else {}

    def notes_of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the notes of these kinds."""
        return [note for note in self.notes if note.get("kind") in kinds]

    def _last_note(self, *kinds: str) -> dict[str, Any]:
        return next(iter(self.notes_of(*kinds)[-1:]), {})

    @property
    def being_written(self) -> bool:
        """Whether the process that opened the study last is at work on this machine."""
        import psutil

        process, host = self.writer.get("pid"), self.writer.get("host")
        known = isinstance(process, int) and 0 < process < _MOST_PROCESSES
        return known and host == holder()["host"] and psutil.pid_exists(process)

    def take(self, payload: bytes) -> None:
        """Add what one frame says; ValueError if a study writes no such frame."""
        kind, after_gap = payload[:1], self._after_gap > 0
        self._after_gap -= after_gap
        if kind in _EVENTS:
            new = len(self.rows)
            _take_events(payload, self.rows)
            if after_gap:
                self.rows[new:] = self._beyond_gap(self.rows[new:])
            if isinstance(self.events, list):  # answers were taken back: what stands is no longer what was written
                self.events.extend(Events(self.rows[new:]))
            return
        if kind == GIVEN:
            self.given = unpack_given(payload[1:])
            return
        if len(payload) > _MOST_JSON:
            raise ValueError("it is longer than any header or note")
        try:
            told = json.loads(payload[1:])
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if kind == HEADER and _is_header(told):
            self.header = told
        elif kind == NOTE and isinstance(told, dict):
            self.notes.append(told)
            if told.get("kind") == "withdrawn":
                self._take_back(told.get("step"), told.get("index"))
            elif told.get("kind") == "gap":
                self._begin_gap(told.get("lost"), told.get("frames"))
        else:
            raise ValueError("no study writes such a frame")

    def _take_back(self, step: Any, index: Any) -> None:
        if not isinstance(step, int) or not isinstance(index, int):
            raise ValueError("it takes back an answer without an address")
        if self._looked_through > _MOST_LOOKED_THROUGH:
            raise ValueError("more answers are taken back than in any study")
        self.events = self.events if isinstance(self.events, list) else list(self.events)
        at = place_of(self.events, step, index)
        self._looked_through += len(self.events) - (at or 0)
        if at is not None:  # of a damaged file the answer itself may be lost
            self.events = self.without(step, index)
            self.withdrawn += 1

    def without(self, step: int, index: int) -> list[Event]:
        """Return the events that stand once an answer is taken back; InvalidInput if it is not there."""
        return (without_later if self.in_any_order else without)(self.events, step, index)

    def _begin_gap(self, lost: Any, frames: Any) -> None:
        if not isinstance(lost, int) or not isinstance(frames, int):
            raise ValueError("it does not say how much was lost")
        self.lost += lost
        if not frames:  # of an earlier damage, and after the next one: all that follows is beyond that
            return
        self._before_gap = {row[0]: row[3] for row in rows_of(self.events) if row[-1] is None}
        self._after_gap = frames

    def _beyond_gap(self, rows: list[Row]) -> list[Row]:
        """Return what stands of rows from after a gap.

        An answer to a query that was issued before it belongs to the run. Any other was asked for on the ground of what
        was lost: it is set aside, and known at once.
        """
        answered = [row for row in rows if row[4] is not None]
        return [row if self._before_gap.get(row[0]) == row[3] else (*row[:-1], AT_ONCE) for row in answered]


def gap_note(lost: int, frames: int) -> bytes:
    """Return the note that so many frames are lost, and so many follow from after that, as the bytes of a frame."""
    return said({"kind": "gap", "lost": lost, "frames": frames})


def within_gap(payload: bytes) -> bytes:
    """Return a frame from after a damage as it is to be kept: of an earlier damage only what was lost."""
    note = json.loads(payload[1:]) if payload[:1] == NOTE else {}
    return gap_note(note["lost"], 0) if note.get("kind") == "gap" else payload


def stored_answers(events: Iterable[Event]) -> list[StoredAnswer]:
    """Return the answers of the run among the events, each as one row."""
    rows = []
    for query, told, elapsed, aside in events:
        if told is not None and aside is None:
            numbers = told.gap, told.seconds, elapsed
            texts = told.failure, told.retried
            address = query.step, query.index, query.purpose.value
            rows.append(StoredAnswer(*address, query.x, told.y, *numbers, *texts, is_closing(query)))
    return rows


def as_used(rows: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    """Return the rows as the study uses them: the last look of a shorter run may answer the iterate of the next step.

    It does where that step went on without asking its first query.
    """
    asked: dict[int, set[int]] = {row.step: set() for row in rows if row.final}
    for row in rows:
        if row.step in asked and not row.final:
            asked[row.step].add(row.index)
    return [
        row._replace(purpose=Purpose.ITERATE.value, final=False)
        if row.final and asked[row.step] and 0 not in asked[row.step]
        else row
        for row in rows
    ]


def packed(events: Iterable[Event]) -> list[bytes]:
    """Return events as frames of a study that is still to be made."""
    return [pack(event) for event in events]


def pack(event: Event) -> bytes:
    """Return an event as the bytes of a frame."""
    query, response, elapsed = event.query, event.response or _NO_ANSWER, event.elapsed
    parts = (
        query.purpose.value.encode(),
        as_bytes(query.x),
        as_bytes(response.y),
        _plain(response.failure),
        _plain(response.retried),
    )
    numbers = float(response.gap), float(response.seconds), elapsed
    kind = ASKED if event.response is None else ANSWERED
    return b"".join((_EVENT.pack(kind, query.step, query.index, *numbers, *map(len, parts)), *parts))


def pack_given(answers: Answers) -> bytes:
    """Return the answers a study is begun with as the bytes of a frame: a copy of its own, with where they are from."""
    texts = {name: list(getattr(answers, name)) for name in _GIVEN_TEXTS}
    named = {name: [_column(column) for column in getattr(answers, name)] for name in ("decisions", "responses")}
    said = json.dumps({"shape": [len(answers), answers.x.shape[1], answers.y.shape[1]], **texts, **named}).encode()
    numbers = (as_bytes(getattr(answers, name)) for name in _GIVEN_NUMBERS)
    return b"".join((GIVEN, _LENGTH.pack(len(said)), said, *numbers))


def _column(column: Column) -> list[Any]:
    return list(column if column.digits is not None else column[:2])


def unpack_given(payload: bytes) -> Answers:
    """Return the table of :func:`pack_given`; ValueError if no study writes such a frame."""
    (length,) = _LENGTH.unpack_from(payload)
    begin = _LENGTH.size + length
    try:
        told = json.loads(payload[_LENGTH.size : begin])
        count, wide, high = (int(size) for size in told.pop("shape"))
        numbers = as_array(payload[begin:])
        ends = list(accumulate((count * wide, count * high, count, count)))
        if min(count, wide, high) < 1 or ends[-1] != numbers.size:
            raise ValueError("its parts are not as long as it says")
        x, y, seconds, gap, _ = np.split(numbers, ends)
        return Answers(x.reshape(count, wide), y.reshape(count, high), seconds=seconds, gap=gap, **told)
    except (AttributeError, InvalidInput, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"it holds no answers: {error}") from None


def value_of(leader: Leader, x: Vector, y: Vector) -> float | None:
    """Return f(x, y), or None where the leader cannot tell: a probe may lie outside its domain."""
    try:
        return leader.value(x, y)
    except Exception:  # noqa: BLE001  # whatever it is, it is no reason to lose an answer
        return None


def said(note: dict[str, Any]) -> bytes:
    """Return a note as the bytes of a frame."""
    return NOTE + json.dumps(note).encode()


def _take_events(payload: bytes, rows: list[Row]) -> None:
    """Add the events of one frame: one, or those of a batch that was answered as one."""
    at, end = 0, len(payload)
    while at < end:
        kind, step, index, gap, seconds, elapsed, in_purpose, in_x, in_y, in_failure, in_retried = _EVENT.unpack_from(
            payload, at
        )
        x = at + _EVENT.size + in_purpose
        y = x + in_x
        failure = y + in_y
        retried = failure + in_failure
        purpose, at = _PURPOSES.get(payload[x - in_purpose : x]), retried + in_retried
        if at > end or in_x % _FLOAT_BYTES or in_y % _FLOAT_BYTES:
            raise ValueError("its parts are not as long as it says")
        if purpose is None:
            raise ValueError("no query is asked for such a purpose")
        if kind == ASKED:
            rows.append((step, index, purpose, payload[x:y], None, _UNKNOWN, _UNKNOWN, 0.0, "", "", None))
        else:
            numbers = payload[x:y], payload[y:failure], gap, seconds, elapsed
            texts = str(payload[failure:retried], "utf-8"), str(payload[retried:at], "utf-8")
            rows.append((step, index, purpose, *numbers, *texts, None))


def _plain(text: str) -> bytes:
    """Return text that survives a file: no NUL, no half characters."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace") if text else b""


def _is_header(told: Any) -> bool:
    """Tell whether what others look into without looking twice is of the kind they expect."""
    if not isinstance(told, dict) or not isinstance(told.get("format"), int):
        return False
    identity, versions = told.get("identity"), told.get("versions")
    if not isinstance(identity, dict) or not isinstance(versions, dict) or not isinstance(versions.get("pzos"), str):
        return False
    problem = identity.get("problem")
    expected: tuple[tuple[Any, str, type], ...] = (
        (problem, "name", str), (problem, "sense", str), (identity, "solver", dict), (identity, "seed", int),
        (told, "created", str),
    )  # fmt: skip
    return isinstance(problem, dict) and all(isinstance(part.get(name, kind()), kind) for part, name, kind in expected)
