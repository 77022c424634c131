"""What a study file says: its header, its events and notes, frame by frame; whatever is no such thing is refused.

Nothing is believed: sizes and types are checked before they are used, and a note may be of any kind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from pzos.base.frames import as_array, as_bytes
from pzos.base.types import Purpose, Query, Response, Vector
from pzos.durable.lock import holder
from pzos.problem.leader import Leader
from pzos.study.events import Event, is_closing, place_of, without, without_later

#: Written into each header; a file of another format is refused.
FORMAT = 2
HEADER, NOTE, ASKED, ANSWERED = b"h", b"n", b"q", b"a"
# kind; step, index; gap, seconds, elapsed; how many bytes of purpose, x, y, failure, retried follow
_EVENT = struct.Struct("<cqqddd5I")
_FLOAT_BYTES = 8
_PURPOSES = {purpose.value.encode(): purpose for purpose in Purpose}
_NO_ANSWER = Response(0, 0, as_array(b""))
#: How many events may be looked through for answers that were taken back; opening a file must not take for ever.
_MOST_LOOKED_THROUGH = 10**6
#: A header and a note are short; what is longer would take many times its size in memory.
_MOST_JSON = 1 << 20
_MOST_PROCESSES = 1 << 31


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
    ``leader`` (its value at an answer).
    Kinds that are not known are kept, so that later versions may have more. ``events`` are what stands: without answers
    that were taken back.
    """

    def __init__(self) -> None:
        self.header: dict[str, Any] | None = None
        self.events: list[Event] = []
        self.notes: list[dict[str, Any]] = []
        self.withdrawn = 0
        self._looked_through = 0

    @property
    def answers(self) -> list[StoredAnswer]:
        """Return the answers of the run, in the order of telling."""
        return stored_answers(self.events)

    @property
    def aside(self) -> int:
        """Return how many answers were set aside when one they depend on was taken back."""
        return sum(event.aside is not None for event in self.events)

    @property
    def difference(self) -> float:
        """Return the largest difference between a point as stored and as another machine computed it."""
        noted = [note["difference"] for note in self.notes if isinstance(note.get("difference"), float)]
        return max(noted, default=0.0)

    def remarks(self) -> list[tuple[str, str]]:
        """Return what the file notes besides answers, in words: followers, other machines, answers taken back."""
        rows = []
        follower = ((self.header or {}).get("identity") or {}).get("problem", {}).get("follower")
        if isinstance(follower, dict):
            lacks = f"; cannot be compared: {follower['unknown']!s:.200}" if "unknown" in follower else ""
            rows.append(("followers", f"{follower.get('name')!s:.80}{lacks}"))
        if self.difference:
            rows.append(("other machine", f"points moved by {self.difference:.2g} at most; the stored ones are used"))
        if self.withdrawn:
            rows.append(("taken back", f"{self.withdrawn} answers; {self.aside} that depend on them were set aside"))
        return rows

    @property
    def stop(self) -> str:
        """Return why the study has ended, as its last writer noted; empty if it may go on."""
        return str(self._last_note("opened", "closed", "withdrawn").get("stop", ""))

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

    def take(self, payload: memoryview) -> None:
        """Add what one frame says; ValueError if a study writes no such frame."""
        kind = bytes(payload[:1])
        if kind in (ANSWERED, ASKED):
            _take_events(payload, self.events)
            return
        if len(payload) > _MOST_JSON:
            raise ValueError("it is longer than any header or note")
        try:
            told = json.loads(bytes(payload[1:]))
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if kind == HEADER and _is_header(told):
            self.header = told
        elif kind == NOTE and isinstance(told, dict):
            self.notes.append(told)
            if told.get("kind") == "withdrawn":
                self._take_back(told.get("step"), told.get("index"))
        else:
            raise ValueError("no study writes such a frame")

    def _take_back(self, step: Any, index: Any) -> None:
        if not isinstance(step, int) or not isinstance(index, int):
            raise ValueError("it takes back an answer without an address")
        if self._looked_through > _MOST_LOOKED_THROUGH:
            raise ValueError("more answers are taken back than in any study")
        at = place_of(self.events, step, index)
        self._looked_through += len(self.events) - (at or 0)
        if at is not None:  # of a damaged file the answer itself may be lost
            self.events = self.without(step, index)
            self.withdrawn += 1

    def without(self, step: int, index: int) -> list[Event]:
        """Return the events that stand once an answer is taken back; InvalidInput if it is not there."""
        in_any_order = ((self.header or {}).get("identity") or {}).get("order") == "told"
        return (without_later if in_any_order else without)(self.events, step, index)


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


def value_of(leader: Leader, x: Vector, y: Vector) -> float | None:
    """Return f(x, y), or None where the leader cannot tell: a probe may lie outside its domain."""
    try:
        return leader.value(x, y)
    except Exception:  # noqa: BLE001  # whatever it is, it is no reason to lose an answer
        return None


def said(note: dict[str, Any]) -> bytes:
    """Return a note as the bytes of a frame."""
    return NOTE + json.dumps(note).encode()


def _take_events(payload: memoryview, events: list[Event]) -> None:
    """Add the events of one frame: one, or those of a batch that was answered as one."""
    at, end = 0, len(payload)
    while at < end:
        kind, step, index, gap, seconds, elapsed, *sizes = _EVENT.unpack_from(payload, at)
        purpose, x, y, failure, retried, at = accumulate(sizes, initial=at + _EVENT.size)
        if at > end or (y - x) % _FLOAT_BYTES:
            raise ValueError("its parts are not as long as it says")
        numbers, width = as_array(payload[x:failure]), (y - x) // _FLOAT_BYTES
        numbers.setflags(write=False)
        why = _PURPOSES.get(bytes(payload[purpose:x]))
        if why is None:
            raise ValueError("no query is asked for such a purpose")
        query = Query(step, index, numbers[:width], why)
        if kind == ASKED:
            events.append(Event(query))
            continue
        texts = (
            ("", "") if failure == at else (str(payload[failure:retried], "utf-8"), str(payload[retried:at], "utf-8"))
        )
        events.append(Event(query, Response(step, index, numbers[width:], gap, seconds, *texts), elapsed))


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
