"""A study on disk: one append-only file, a header and a frame per event; an answer is on the disk before it is used.

The state of a study is never written: it is replayed (see :mod:`pzos.durable.replay`). Nothing in the file is executed
or unpickled: it holds numbers, text, and JSON that is compared. A kill or a full disk leaves at most a torn frame at
the end, which the next writer sets aside; what is damaged further in is refused, and :func:`recover` takes what is
intact before and after it into a new file. What a batched follower has answered as one is one frame.
The frames themselves are those of :mod:`pzos.base.frames`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import struct
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from pzos.base.errors import DamagedStudy, InvalidAnswer, InvalidInput, PzosError
from pzos.base.frames import NOTHING_BEFORE, Frame, as_array, as_bytes, framed, read_from, scan, write_at
from pzos.base.types import Purpose, Query, Response, Vector
from pzos.durable.lock import busy, holder, let_go, lock_out_writers, open_to_read, open_to_write
from pzos.durable.old_format import OLD_MARK, read_old
from pzos.problem.leader import Leader
from pzos.study.events import Event, is_closing, without

#: Written into each header; a file of another format is refused.
FORMAT = 2
_HEADER, _NOTE, _ASKED, _ANSWERED = b"h", b"n", b"q", b"a"
# kind; step, index; gap, seconds, elapsed; how many bytes of purpose, x, y, failure, retried follow
_EVENT = struct.Struct("<cqqddd5I")
_NO_ANSWER = Response(0, 0, as_array(b""))
#: How many events may be looked through for answers that were taken back; opening a file must not take for ever.
_MOST_LOOKED_THROUGH = 10**7


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
        return isinstance(process, int) and host == holder()["host"] and psutil.pid_exists(process)

    def take(self, payload: memoryview) -> None:
        """Add what one frame says; ValueError if a study writes no such frame."""
        kind = bytes(payload[:1])
        if kind in (_ASKED, _ANSWERED):
            self.events.extend(_events(payload))
            return
        try:
            said = json.loads(bytes(payload[1:]))
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if kind == _HEADER and _is_header(said):
            self.header = said
        elif kind == _NOTE and isinstance(said, dict):
            self.notes.append(said)
            if said.get("kind") == "withdrawn":
                self._take_back(said.get("step"), said.get("index"))
        else:
            raise ValueError("no study writes such a frame")

    def _take_back(self, step: Any, index: Any) -> None:
        if not isinstance(step, int) or not isinstance(index, int):
            raise ValueError("it takes back an answer without an address")
        self._looked_through += len(self.events)
        if self._looked_through > _MOST_LOOKED_THROUGH:
            raise ValueError("more answers are taken back than in any study")
        with contextlib.suppress(InvalidInput):  # of a damaged file the answer itself may be lost
            self.events = without(self.events, step, index)
            self.withdrawn += 1


class Log:
    """One study file, open for writing or (``read_only``) for looking on while another writes."""

    def __init__(self, path: Path, descriptor: int, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.contents = Contents()
        self.set_aside: Path | None = None
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._study, self._number, self._last, self._end, self._torn = b"", 0, NOTHING_BEFORE, 0, b""
        self._asked: dict[tuple[int, int], Query] = {}
        self._step, self._told = -1, dict[tuple[int, Purpose, bytes], Response]()
        self._answers = 0  # told so far
        self.leader: Leader | None = None
        self._noted = False
        self._finalizer = weakref.finalize(self, let_go, descriptor, self._owner)

    # ---- reading ----------------------------------------------------------------------------------------------

    def more(self) -> list[Event]:
        """Take in what was written since the last time; returns the events among it."""
        before, data, at = len(self.contents.events), read_from(self._descriptor, self._end), 0
        if self._end == 0 and data.startswith(OLD_MARK):
            if not self.read_only:
                raise InvalidInput(
                    f"{self.path}: has format 1: expected format {FORMAT}; "
                    f"turn it into a new file with  pzos recover {self.path} --out NEW"
                )
            old, self.contents.events = read_old(self.path)
            self.contents.header = {**old, "format": FORMAT, "converted from": old.get("format")}
            return self.contents.events
        for frame in scan(data):
            if not self._follows(frame, at):
                raise self._damaged(f"what is at byte {self._end + at} is not as it was written")
            try:
                self.contents.take(frame.payload)
            except (ValueError, struct.error) as error:
                raise self._damaged(f"frame {frame.number} cannot be read: {error}") from None
            self._study, self._number, self._last, at = frame.file, frame.number + 1, frame.checksum, frame.end
        if not self._number:
            raise self._damaged("it is empty" if not data else "it does not begin as a study does")
        header = self.contents.header
        if header is not None and header.get("format") != FORMAT:
            raise InvalidInput(
                f"{self.path}: has format {header.get('format')!s:.20}: expected format {FORMAT}; "
                "open it with the version of pzos that wrote it"
            )
        self._end, self._torn = self._end + at, data[at:]
        new = self.contents.events[before:]
        self._answers += sum(event.response is not None for event in new)
        return new

    def _follows(self, frame: Frame, at: int) -> bool:
        known = self._study or frame.file
        return (frame.start, frame.file, frame.number, frame.previous) == (at, known, self._number, self._last)

    def _damaged(self, reason: str) -> DamagedStudy:
        return damaged(self.path, read_from(self._descriptor, 0), reason)

    # ---- writing ----------------------------------------------------------------------------------------------

    def asked(self, queries: Sequence[Query]) -> None:
        """Remember queries that were handed out; those still open when the study is closed are kept with it."""
        self._asked = {(query.step, query.index): query for query in queries}

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Write one answer or failure with the point it was asked at, and return when it is on the disk."""
        self._require_writing()
        if query.step != self._step:
            self._step, self._told = query.step, {}
        key = query.index, query.purpose, as_bytes(query.x)
        told = self._told.get(key)
        if told is None:
            self._answers += 1
            self.write([_packed(Event(query, response, elapsed)), *self._witnessed(query, response)])
            self._told[key] = response
            self._asked.pop(query[:2], None)
        elif (as_bytes(told.y), told.failure) != (as_bytes(response.y), response.failure):
            # the study turned the first answer back because its leader failed
            raise InvalidAnswer(
                f"query {query.step}.{query.index}: was already answered differently: expected the answer in the file; "
                "take that one back first: study.withdraw(query)"
            )

    def append_all(self, told: Sequence[tuple[Query, Response]], elapsed: float) -> None:
        """Write the answers of a batch in one frame, so that all or none are kept; returns when it is on the disk."""
        self._require_writing()
        payloads = [b"".join(_packed(Event(query, response, elapsed)) for query, response in told)]
        for query, response in told:
            self._answers += 1
            payloads += self._witnessed(query, response)
        self.write(payloads)
        if told[0][0].step != self._step:
            self._step, self._told = told[0][0].step, {}
        for query, response in told:
            self._told[query.index, query.purpose, as_bytes(query.x)] = response
            self._asked.pop(query[:2], None)

    def _witnessed(self, query: Query, response: Response) -> list[bytes]:
        """Return the leader's value at the first answer, the second, the fourth, ...: another machine compares it."""
        if self.leader is None or response.failure or self._answers & (self._answers - 1):
            return []
        value = value_of(self.leader, query.x, response.y)
        noted = {"kind": "leader", "step": query.step, "index": query.index, "value": value}
        return [] if value is None else [_said(noted)]

    def withdraw(self, step: int, index: int, why: str) -> list[Event]:
        """Write down that the answer to ``step.index`` was taken back, and return the events that then stand."""
        self._require_writing()
        again = Contents()
        for frame in scan(read_from(self._descriptor, 0)[: self._end]):
            again.take(frame.payload)
        left = without(again.events, step, index)
        self.note("withdrawn", step=step, index=index, why=why)
        self._told.clear()
        return left

    def _require_writing(self) -> None:
        if self.read_only:
            raise InvalidInput(f"{self.path}: was opened read-only: expected no changes; open it without read_only")

    def opened(self, **facts: Any) -> None:
        """Note that this process writes from now on, until it closes the study."""
        self.note("opened", **holder(), **facts)
        self._noted = True

    def note(self, kind: str, **facts: Any) -> None:
        """Write down what is no event of the study: who opened it, why it stopped."""
        said = {"kind": kind, **facts}
        self.write([_said(said)])
        self.contents.notes.append(said)

    def adopt(self, header: dict[str, Any]) -> None:
        """Write the header: of a new file, or of a recovered one that proved to be this study."""
        header = {**header, "study": self._study.hex()}
        self.write([_HEADER + json.dumps(header).encode()])
        self.contents.header = header

    def write(self, payloads: list[bytes]) -> None:
        """Append frames with these payloads, all or none, and return when they are on the disk."""
        if self._owner != os.getpid():
            raise PzosError(f"{self.path}: tell answers in the process that opened the study, not in a forked child")
        frames, last = list[bytes](), self._last
        for number, payload in enumerate(payloads, self._number):
            frame, last = framed(self._study, number, last, payload)
            frames.append(frame)
        data = b"".join(frames)
        try:
            if self._torn:
                self._set_aside(self._torn)
            write_at(self._descriptor, self._end, data)
        except OSError as error:
            raise PzosError(
                f"{self.path}: the answer could not be written ({error.strerror or error}) and was not taken; "
                "make room or repair the disk, then tell it again"
            ) from error
        self._number, self._last, self._end = self._number + len(payloads), last, self._end + len(data)

    def _set_aside(self, torn: bytes) -> None:
        """Keep the torn end of a write that was killed under another name, and let the study end before it."""
        self.set_aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.torn")
        descriptor = os.open(self.set_aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_at(descriptor, 0, torn)
        finally:
            os.close(descriptor)
        os.ftruncate(self._descriptor, self._end)
        self._torn = b""

    def close(self, stop: str = "") -> None:
        """Keep what was asked and not answered, note why the study ended if it has, and let others write."""
        if self._finalizer.alive and self._noted and self._owner == os.getpid():
            known = {(event.query[:2], as_bytes(event.query.x)) for event in self._last_asked()}
            asked = [query for query in self._asked.values() if (query[:2], as_bytes(query.x)) not in known]
            closed = {"kind": "closed", **({"stop": stop} if stop else {})}
            with contextlib.suppress(PzosError):  # what is asked can be computed again
                self.write([*(_packed(Event(query)) for query in asked), _said(closed)])
        self._finalizer()

    def _last_asked(self) -> Iterator[Event]:
        """Yield the queries of the last step that an earlier session has kept."""
        steps = {query.step for query in self._asked.values()}
        return takewhile(lambda event: event.query.step in steps, reversed(self.contents.events))


# ---- opening ----------------------------------------------------------------------------------------------------


def create(path: Path, header: dict[str, Any] | None, known: Sequence[bytes] = ()) -> Log:
    """Make a new study file, whole or not at all, and open it for writing; ``known`` are frames it begins with."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        log = Log(path, open_to_write(draft, new=True), read_only=False)
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    try:
        log._study = secrets.token_bytes(8)
        if header is None:
            log.note("recovered")
        else:
            log.adopt(header)
        if known:
            log.write(list(known))
        _give_name(draft, path)
    except BaseException as error:
        log.close()
        draft.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            raise InvalidInput(f"{path}: exists: expected a new file; open it, or choose another name") from None
        if isinstance(error, OSError):
            raise _cannot_be_made(path, error) from error
        raise
    return log


def _give_name(draft: Path, path: Path) -> None:
    """Let the finished file appear under its name; FileExistsError if something has that name."""
    try:
        os.link(draft, path)
        draft.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError from None
        draft.rename(path)
    if os.name == "posix":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_be_made(path: Path, error: OSError) -> PzosError:
    return PzosError(f"{path}: cannot be written ({error.strerror}); check that the directory exists and has room")


def open_log(path: Path, *, read_only: bool = False) -> Log:
    """Open a study file after checking every bit of it; DamagedStudy says what can be saved."""
    try:
        descriptor = open_to_read(path) if read_only else open_to_write(path)
    except FileNotFoundError:
        raise InvalidInput(f"{path}: expected a study file; check the name, or make one with  pzos init") from None
    except BlockingIOError:
        raise busy(path, _writer_of(path)) from None
    except OSError as error:
        what = "read" if read_only else "opened for writing"
        raise PzosError(f"{path}: cannot be {what} ({error.strerror}); check its permissions") from error
    log = Log(path, descriptor, read_only=read_only)
    try:
        log.more()
    except BaseException:
        log.close()
        raise
    return log


def read_study(path: str | os.PathLike[str]) -> Contents:
    """Return what is in a study file, also while another process writes it."""
    log = open_log(Path(path), read_only=True)
    log.close()
    return log.contents


def _writer_of(path: Path) -> dict[str, Any]:
    with contextlib.suppress(PzosError, OSError):
        return read_study(path).writer
    return {}


def take_back(path: Path, step: int, index: int, why: str) -> Contents:
    """Take one answer of a study back, also of one that cannot be replayed because of it; returns what stands then."""
    log = open_log(path)
    try:
        log.contents.events = log.withdraw(step, index, why)
    finally:
        log.close()
    return log.contents


# ---- damage -----------------------------------------------------------------------------------------------------


def salvage(data: bytes) -> tuple[Contents, list[bytes]]:
    """Return everything intact in the bytes of a study file, in the order in which it was written, and its frames.

    Where frames of several studies are mixed, those of one are taken: the one that has most.
    """
    intact, found, taken = list(scan(data)), Contents(), list[bytes]()
    counts = Counter(frame.file for frame in intact)
    study = max(counts, key=counts.__getitem__, default=b"")
    frames = {frame.number: frame for frame in reversed(intact) if frame.file == study}
    for number in sorted(frames):
        with contextlib.suppress(ValueError, struct.error):
            payload = frames[number].payload
            found.take(payload)
            if payload[:1] != _HEADER:
                taken.append(bytes(payload))
    return found, taken


def recover(damaged_path: Path, saved_path: Path) -> tuple[int, bool]:
    """Write every intact answer of a damaged study, or of one of format 1, into a new file; the old one stays as it is.

    Returns how many answers there are, and whether the header is.
    """
    if not damaged_path.exists():
        raise InvalidInput(f"{damaged_path}: expected a study file; check the name")
    if saved_path.exists():
        raise InvalidInput(f"{saved_path}: exists: expected a new file; choose another name with --out")
    descriptor = open_to_read(damaged_path)
    try:
        lock_out_writers(damaged_path, descriptor)
        data = read_from(descriptor, 0)
        if data.startswith(OLD_MARK):
            found = read_study(damaged_path)
            frames = packed(found.events)
        else:
            found, frames = salvage(data)
        if found.header is None and not found.events:
            raise DamagedStudy(f"{damaged_path}: nothing in this file can be saved: no header, no intact answer")
        create(saved_path, found.header, frames).close()
    finally:
        os.close(descriptor)
    return len(found.answers), found.header is not None


def damaged(path: Path, data: bytes, reason: str) -> DamagedStudy:
    """Return the error that says what can be saved of ``data``, the bytes at ``path``."""
    found, _ = salvage(data)
    if found.header is None and not found.events:
        return DamagedStudy(
            f"{path}: is not a study file, or is damaged beyond repair ({reason}): no header and no intact answer "
            "was found in it; check the name, restore a copy, or delete it and start again"
        )
    header = "the header" if found.header is not None else "no header"
    return DamagedStudy(
        f"{path}: is damaged ({reason}); {header} and {len(found.answers)} answers are intact: "
        f"save them with  pzos recover {path}"
    )


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


# ---- what frames say --------------------------------------------------------------------------------------------


def packed(events: Iterable[Event]) -> list[bytes]:
    """Return events as frames of a study that is still to be made."""
    return [_packed(event) for event in events]


def _packed(event: Event) -> bytes:
    query, response, elapsed = event.query, event.response or _NO_ANSWER, event.elapsed
    parts = (
        query.purpose.value.encode(),
        as_bytes(query.x),
        as_bytes(response.y),
        _plain(response.failure),
        _plain(response.retried),
    )
    numbers = float(response.gap), float(response.seconds), elapsed
    kind = _ASKED if event.response is None else _ANSWERED
    return b"".join((_EVENT.pack(kind, query.step, query.index, *numbers, *map(len, parts)), *parts))


def value_of(leader: Leader, x: Vector, y: Vector) -> float | None:
    """Return f(x, y), or None where the leader cannot tell: a probe may lie outside its domain."""
    try:
        return leader.value(x, y)
    except Exception:  # noqa: BLE001  # whatever it is, it is no reason to lose an answer
        return None


def _said(note: dict[str, Any]) -> bytes:
    return _NOTE + json.dumps(note).encode()


def _events(payload: memoryview) -> Iterator[Event]:
    """Yield the events of one frame: one, or those of a batch that was answered as one."""
    at = 0
    while at < len(payload):
        size = _EVENT.size + sum(_EVENT.unpack_from(payload, at)[6:])
        if at + size > len(payload):
            raise ValueError("its parts are not as long as it says")
        yield _event(payload[at : at + size])
        at += size


def _event(payload: memoryview) -> Event:
    kind, step, index, gap, seconds, elapsed, *sizes = _EVENT.unpack_from(payload)
    parts, at = list[memoryview](), _EVENT.size
    for size in sizes:
        parts.append(payload[at : at + size])
        at += size
    purpose, x, y, failure, retried = parts
    point = as_array(x)
    point.setflags(write=False)
    query = Query(step, index, point, Purpose(str(purpose, "utf-8")))
    if kind == _ASKED:
        return Event(query)
    texts = str(failure, "utf-8"), str(retried, "utf-8")
    return Event(query, Response(step, index, as_array(y), gap, seconds, *texts), elapsed)


def _plain(text: str) -> bytes:
    """Return text that survives a file: no NUL, no half characters."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace") if text else b""


def _is_header(said: Any) -> bool:
    """Tell whether what others look into without looking twice is of the kind they expect."""
    if not isinstance(said, dict) or not isinstance(said.get("format"), int):
        return False
    identity, versions = said.get("identity"), said.get("versions")
    return (
        isinstance(identity, dict)
        and isinstance(identity.get("problem"), dict)
        and isinstance(versions, dict)
        and isinstance(versions.get("pzos"), str)
    )
