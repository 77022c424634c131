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
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from pzos.base.checks import printable
from pzos.base.errors import DamagedStudy, InvalidAnswer, InvalidInput, PzosError, StudyGone
from pzos.base.frames import NOTHING_BEFORE, OLD_MARK, as_bytes, framed, read_from, scan, write_at
from pzos.base.types import Purpose, Query, Response
from pzos.durable.contents import FORMAT, HEADER, Contents, gap_note, pack, packed, said, value_of, within_gap
from pzos.durable.lock import BINARY, busy, holder, let_go, lock_out_writers, open_to_read, open_to_write
from pzos.durable.old_format import read_old
from pzos.methods.solver import Stop
from pzos.problem.leader import Leader
from pzos.study.events import Event

#: A header is shorter.
_HEADER_BYTES = 1 << 21


class Log:
    """One study file, open for writing or (``read_only``) for looking on while another writes."""

    def __init__(self, path: Path, descriptor: int, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.contents = Contents()
        self.set_aside: Path | None = None
        self._descriptor = descriptor
        self._inode = _inode(os.fstat(descriptor))
        self._owner = os.getpid()
        self._study, self._number, self._last, self._end, self._torn = b"", 0, NOTHING_BEFORE, 0, b""
        self._asked: dict[tuple[int, int], Query] = {}
        self._issued: list[Query] = []  # those the file does not have yet
        self._step, self._told = -1, dict[tuple[int, Purpose, bytes], Response]()
        self._answers = 0  # told so far
        self.leader: Leader | None = None
        self._noted, self._number_opened = False, 0
        self._ended: Stop | None = None
        self._in_place = False  # whether the file has its name, which a new one is given when it is whole
        self._finalizer = weakref.finalize(self, let_go, descriptor, self._owner)

    # ---- reading ----------------------------------------------------------------------------------------------

    def more(self) -> None:
        """Take in what was written since the last time."""
        data, at = read_from(self._descriptor, self._end), 0
        if self._end == 0 and data.startswith(OLD_MARK):
            if not self.read_only:
                raise InvalidInput(
                    f"{self.path}: has format 1: expected format {FORMAT}; "
                    f"turn it into a new file with  pzos recover {self.path} --out NEW"
                )
            old, self.contents.events = read_old(self.path)
            self.contents.header = {**old, "format": FORMAT, "converted from": old.get("format")}
            return
        study, number, last, take = self._study, self._number, self._last, self.contents.take
        for file, count, previous, checksum, payload, start, end in scan(data):  # of a long study there are many
            study = study or file
            if start != at or count != number or previous != last or file != study:
                raise self._damaged(f"what is at byte {self._end + at} is not as it was written")
            try:
                take(payload)
            except (ValueError, struct.error) as error:
                raise self._damaged(f"frame {number} cannot be read: {error}") from None
            number, last, at = number + 1, checksum, end
        self._study, self._number, self._last = study, number, last
        if not self._number:
            raise self._damaged("it is empty" if not data else "it does not begin as a study does")
        header = self.contents.header
        if header is not None and header.get("format") != FORMAT:
            raise InvalidInput(
                f"{self.path}: has format {printable(str(header.get('format')))!s:.20}: expected format {FORMAT}; "
                "open it with the version of pzos that wrote it"
            )
        self._end, self._torn = self._end + at, data[at:]
        self._answers = len(self.contents.rows)

    def _damaged(self, reason: str) -> DamagedStudy:
        return damaged(self.path, read_from(self._descriptor, 0), reason)

    # ---- writing ----------------------------------------------------------------------------------------------

    def asked(self, queries: Sequence[Query]) -> None:
        """Remember queries that were handed out; those still open when the study is closed are kept with it."""
        self._asked = {(query.step, query.index): query for query in queries}

    def issued(self, query: Query) -> None:
        """Remember a query with a number of its own; it is written with the next answer, before it, or at the end."""
        if not self.read_only:
            self._issued.append(query)

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Write one answer or failure with the point it was asked at, and return when it is on the disk."""
        self._require_writing()
        if query.step != self._step:
            self._step, self._told = query.step, {}
        key = query.index, query.purpose, as_bytes(query.x)
        told = self._told.get(key)
        if told is None:
            self._answers += 1
            before = [pack(Event(issued)) for issued in self._issued]
            self.write([*before, pack(Event(query, response, elapsed)), *self._witnessed(query, response)])
            self._issued.clear()
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
        payloads = [b"".join(pack(Event(query, response, elapsed)) for query, response in told)]
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
        return [] if value is None else [said(noted)]

    def withdraw(self, step: int, index: int, why: str) -> list[Event]:
        """Write down that the answer to ``step.index`` was taken back, and return the events that then stand."""
        self._require_writing()
        again = Contents()
        for frame in scan(read_from(self._descriptor, 0)[: self._end]):
            again.take(frame.payload)
        left = again.without(step, index)
        self._issued.clear()
        self.note("withdrawn", step=step, index=index, why=why)
        self._told.clear()
        return left

    def _require_writing(self) -> None:
        if self.read_only:
            raise InvalidInput(f"{self.path}: was opened read-only: expected no changes; open it without read_only")

    def opened(self, **facts: Any) -> None:
        """Note that this process writes from now on, until it closes the study."""
        self._ended = self.contents.stop
        self.note("opened", **holder(), **facts)
        self._noted, self._number_opened = True, self._number

    def note(self, kind: str, **facts: Any) -> None:
        """Write down what is no event of the study: who opened it, why it stopped."""
        noted = {"kind": kind, **facts}
        self.write([said(noted)])
        self.contents.notes.append(noted)

    def adopt(self, header: dict[str, Any]) -> None:
        """Write the header: of a new file, or of a recovered one that proved to be this study."""
        header = {**header, "study": self._study.hex()}
        self.write([HEADER + json.dumps(header).encode()])
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
        if self._in_place and not self._is_there():
            raise self._gone(data)
        try:
            if self._torn:
                self._set_aside(self._torn)
            write_at(self._descriptor, self._end, data)
        except OSError as error:
            raise PzosError(
                f"{self.path}: could not be written ({error.strerror or error}): what was told before is kept, and "
                "this was not taken; make room or repair the disk, then do it again"
            ) from error
        self._number, self._last, self._end = self._number + len(payloads), last, self._end + len(data)

    def _is_there(self) -> bool:
        try:
            return _inode(os.stat(self.path)) == self._inode
        except FileNotFoundError:
            return False

    def _gone(self, data: bytes) -> StudyGone:
        """Write all there is, ``data`` included, beside where the file was, and return the error that says so."""
        self._in_place = self._noted = False
        everything = read_from(self._descriptor, 0)[: self._end] + data
        for folder in (self.path.parent, Path.cwd(), Path(tempfile.gettempdir())):
            place = folder / f"{self.path.name}.{secrets.token_hex(4)}.saved"
            with contextlib.suppress(OSError):
                descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
                try:
                    write_at(descriptor, 0, everything)
                finally:
                    os.close(descriptor)
                return StudyGone(
                    f"{self.path}: was deleted or moved while the study was being written: everything told so far is "
                    f"in {place}; move it to the study's name and go on"
                )
        return StudyGone(f"{self.path}: was deleted or moved, and what was told cannot be written anywhere; make room")

    def _set_aside(self, torn: bytes) -> None:
        """Keep the torn end of a write that was killed under another name, and let the study end before it."""
        self.set_aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.torn")
        descriptor = os.open(self.set_aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
        try:
            write_at(descriptor, 0, torn)
        except OSError:
            self.set_aside.unlink(missing_ok=True)
            self.set_aside = None
            raise
        finally:
            os.close(descriptor)
        os.ftruncate(self._descriptor, self._end)
        self._torn = b""

    def close(self, stop: str = "") -> None:
        """Keep what was asked and not answered, note why the study ended if it has, and let others write."""
        if self._finalizer.alive and self._noted and self._owner == os.getpid():
            known = {(event.query[:2], as_bytes(event.query.x)) for event in self._last_asked()}
            asked = [query for query in self._asked.values() if (query[:2], as_bytes(query.x)) not in known]
            asked += self._issued
            if not stop and not asked and self._number == self._number_opened and self._ended is not None:
                stop = self._ended.value  # nothing has changed
            closed = {"kind": "closed", **({"stop": stop} if stop else {})}
            try:
                self.write([*(pack(Event(query)) for query in asked), said(closed)])
            except StudyGone:
                self._finalizer()
                raise
            except PzosError:
                pass  # what is asked can be computed again
        self._finalizer()

    def _last_asked(self) -> Iterator[Event]:
        """Yield the queries of the last step that an earlier session has kept."""
        steps = {query.step for query in self._asked.values()}
        return takewhile(lambda event: event.query.step in steps, reversed(self.contents.events))


def _inode(found: os.stat_result) -> tuple[int, int]:
    """Return which file was found, whatever its name."""
    return found.st_dev, found.st_ino


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
        log._in_place = True
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
        remedy = "check its permissions" if read_only else "check its permissions, or look on with read_only=True"
        raise PzosError(f"{path}: cannot be {what} ({error.strerror}); {remedy}") from error
    log = Log(path, descriptor, read_only=read_only)
    log._in_place = not read_only
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


def header_at(path: Path) -> dict[str, Any] | None:
    """Return the header at the beginning of a study file, without reading the rest; None if there is none."""
    with path.open("rb") as file:
        beginning, found = file.read(_HEADER_BYTES), Contents()
    with contextlib.suppress(ValueError, struct.error):
        for frame in scan(beginning):
            if frame.start == 0:
                found.take(frame.payload)
            break
    return found.header


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

    Where frames of several studies are mixed, those of one are taken: the one that has most. Where answers come in any
    order, what follows the first gap was asked for on the ground of what is lost, and a note among the frames says so.
    """
    intact, found, taken = list(scan(data)), Contents(), list[bytes]()
    counts = Counter(frame.file for frame in intact)
    study = max(counts, key=counts.__getitem__, default=b"")
    frames = {frame.number: frame for frame in reversed(intact) if frame.file == study}
    numbers = sorted(frames)
    gap = next((at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1), None)
    for at, number in enumerate(numbers):
        with contextlib.suppress(ValueError, struct.error):
            if at == gap and found.in_any_order:
                lost = numbers[-1] + 1 - numbers[0] - len(numbers)
                taken.append(gap_note(lost, len(numbers) - at))
                found.take(taken[-1])
            payload = frames[number].payload
            if gap is not None and at > gap:
                payload = within_gap(payload)
            found.take(payload)
            if payload[:1] != HEADER:
                taken.append(payload)
    return found, taken


class Saved(NamedTuple):
    """What was saved of a damaged study: answers of the run, the header, answers known beside it, and what is lost.

    ``lost`` counts the entries that are missing before the last one; only a study whose answers come in any order must
    know, because there all that was asked later depends on them.
    """

    answers: int
    header: bool
    known: int
    lost: int


def recover(damaged_path: Path, saved_path: Path) -> Saved:
    """Write every intact answer of a damaged study, or of one of format 1, into a new file; the old one stays."""
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
    return Saved(len(found.answers), found.header is not None, found.aside if found.lost else 0, found.lost)


def damaged(path: Path, data: bytes, reason: str) -> DamagedStudy:
    """Return the error that says what can be saved of ``data``, the bytes at ``path``."""
    found, _ = salvage(data)
    if found.header is None and not found.events:
        return DamagedStudy(
            f"{path}: is not a study file, or is damaged beyond repair ({reason}): no header and no intact answer "
            "was found in it; check the name, restore a copy, or delete it and start again"
        )
    header = "the header" if found.header is not None else "no header"
    answers = len(found.answers) + (found.aside if found.lost else 0)
    return DamagedStudy(
        f"{path}: is damaged ({reason}); {header} and {answers} answers are intact: save them with  pzos recover {path}"
    )
