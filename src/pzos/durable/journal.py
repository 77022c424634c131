"""The durable record of a run: a header and the answers told so far, in one SQLite file.

``append`` returns only when the answer is on the disk. The state of a study is never written: it is replayed (see
:mod:`pzos.durable.replay`). Nothing in the file is executed or unpickled: it holds numbers, and text that is compared.

While a writer is at work the file has a write-ahead log beside it (one sync per answer, readers are never in the
way); a clean close folds it back, so that a study at rest is a single file that can be copied.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from pzos.base.errors import DamagedStudy, InvalidAnswer, InvalidInput, PzosError
from pzos.base.rows import (
    ANSWER_COLUMNS,
    HEADER_MARK,
    StoredAnswer,
    from_columns,
    stored_answer,
    text_checksum,
    to_columns,
)
from pzos.base.types import Query, Response
from pzos.durable.lock import WriterLock
from pzos.durable.salvage import PAGE_SIZE, salvage

#: Written into each file; a file of another format is refused.
FORMAT = 1
_APPLICATION = 0x707A6F73  # "pzos", for tools that tell files apart
_BUSY_SECONDS = 10.0
_LOG_SUFFIXES = ("-wal", "-shm", "-journal")
_TABLES = f"""
    PRAGMA page_size = {PAGE_SIZE};
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {FORMAT};
    CREATE TABLE header (mark TEXT, body TEXT, checksum BLOB);
    CREATE TABLE answers (seq INTEGER PRIMARY KEY, mark TEXT, step INTEGER, idx INTEGER, purpose TEXT, x BLOB, y BLOB,
                          gap REAL, seconds REAL, elapsed REAL, failure TEXT, retried TEXT, checksum BLOB);
"""
_INSERT = f"INSERT INTO answers ({', '.join(ANSWER_COLUMNS)}) VALUES ({', '.join('?' * len(ANSWER_COLUMNS))})"
_SELECT = f"SELECT {', '.join(ANSWER_COLUMNS)} FROM answers"


class Journal:
    """One study file, open for writing (the default) or for looking on."""

    def __init__(self, path: Path, connection: sqlite3.Connection, header: str | None, lock: WriterLock | None) -> None:
        self.path = path
        self.header = header
        self.read_only = lock is None
        self._connection = connection
        self._owner = os.getpid()
        self._step, self._told = -1, dict[tuple[int, int, str, bytes], StoredAnswer]()
        self._finalizer = weakref.finalize(self, _shut, connection, lock, self._owner)

    # ---- reading ------------------------------------------------------------------------------------------

    def sequence_by_step(self) -> dict[int, list[int]]:
        """Return where the answers of each step are; the answers themselves are read step by step."""
        found: dict[int, list[int]] = {}
        for sequence, step in self._connection.execute("SELECT seq, step FROM answers ORDER BY seq"):
            found.setdefault(step, []).append(sequence)
        return found

    def answers(self, sequences: Iterable[int]) -> list[StoredAnswer]:
        """Return the answers at these places."""
        rows = []
        for sequence in sequences:
            values = self._connection.execute(f"{_SELECT} WHERE seq = ?", (sequence,)).fetchone()
            row = from_columns(values) if values else None
            if row is None:
                raise damaged(self.path, f"answer {sequence} cannot be read")
            rows.append(row)
        return rows

    def all_answers(self) -> Iterator[StoredAnswer]:
        """Yield all answers in the order in which they were told."""
        for (sequence,) in self._connection.execute("SELECT seq FROM answers ORDER BY seq").fetchall():
            yield from self.answers([sequence])

    def start_writing(self) -> None:
        """Put the write-ahead log beside the file; until then not a byte of it is changed."""
        if not self.read_only:
            with contextlib.suppress(sqlite3.OperationalError):  # a reader is in the way: slower, and as safe
                self._connection.execute("PRAGMA journal_mode = WAL")

    # ---- writing ------------------------------------------------------------------------------------------

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Write one answer and return when it is on the disk."""
        if self.read_only:
            raise InvalidInput(f"{self.path}: was opened read-only: expected no answers; open it without read_only")
        if self._owner != os.getpid():
            raise PzosError(f"{self.path}: tell answers in the process that opened the study, not in a forked child")
        row = stored_answer(query, response, elapsed)
        if row.step != self._step:
            self._step, self._told = row.step, {}
        told = self._told.get(row.key)
        if told is None:
            self._insert([to_columns(row)])
            self._told[row.key] = row
        elif (told.y, told.failure) != (row.y, row.failure):  # the study turned it back because its leader failed
            raise InvalidAnswer(
                f"query {row.step}.{row.index}: was already answered differently: expected the answer in the file; "
                "open the study again"
            )

    def add(self, rows: Iterable[StoredAnswer]) -> None:
        """Write answers found elsewhere, all or none."""
        self._insert([to_columns(row) for row in rows])

    def adopt(self, header: str) -> None:
        """Give a recovered file whose header was lost the header of the study it proved to be."""
        self._connection.execute("INSERT INTO header VALUES (?, ?, ?)", (HEADER_MARK, header, text_checksum(header)))
        self.header = header

    def _insert(self, rows: list[tuple[object, ...]]) -> None:
        try:
            if len(rows) == 1:
                self._connection.execute(_INSERT, rows[0])
                return
            self._connection.execute("BEGIN")
            self._connection.executemany(_INSERT, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise PzosError(
                f"{self.path}: the answer could not be written ({error}) and was not taken; "
                "make room or repair the disk, then tell it again"
            ) from error

    def close(self) -> None:
        """Fold the log back into the file and let others write."""
        self._finalizer()


# ---- opening ------------------------------------------------------------------------------------------------


def create(path: Path, header: str | None) -> Journal:
    """Make a new study file, whole or not at all, and open it for writing."""
    lock = WriterLock(path)
    lock.take()
    try:
        if path.exists():
            raise InvalidInput(f"{path}: exists: expected a new file; open it, or choose another name")
        _write_new(path, header, ())
        return _writer(path, header, lock)
    except BaseException:
        lock.release()
        raise


def open_journal(path: Path, *, read_only: bool = False) -> Journal:
    """Open a study file after checking every bit that matters; DamagedStudy says what can be saved."""
    lock = None if read_only else WriterLock(path)
    if lock is not None:
        lock.take()
    try:
        killed = lock is not None and (_left_over(path, "-wal") or _left_over(path, "-journal"))
        found = salvage(path).answers if killed else []
        if _left_over(path, "-journal"):
            _undo_half_a_write(path, read_only=read_only)
        header, keys = _verified(path, keep_keys=killed)
        if lock is None:
            return Journal(path, _connect(path, read_only=True), header, None)
        journal = _writer(path, header, lock)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    # A damaged log ends, for the store, at its first bad page; intact answers behind it are not lost for us.
    missing = [row for row in found if row.key not in keys]
    if missing:
        journal.add(missing)
    return journal


def recover(damaged_path: Path, saved_path: Path) -> tuple[int, bool]:
    """Write every intact answer of a damaged study into a new file; returns how many, and whether the header is.

    The damaged file is left as it is.
    """
    if not damaged_path.exists():
        raise InvalidInput(f"{damaged_path}: expected a study file; check the name")
    if saved_path.exists():
        raise InvalidInput(f"{saved_path}: exists: expected a new file; choose another name with --out")
    lock = WriterLock(damaged_path)
    lock.take()  # a study that is being written is not damaged but unfinished
    try:
        salvaged = salvage(damaged_path)
        header = salvaged.headers[0] if len(salvaged.headers) == 1 else None
        if header is None and not salvaged.answers:
            raise DamagedStudy(f"{damaged_path}: nothing in this file can be saved: no header, no intact answer")
        _write_new(saved_path, header, salvaged.answers)
    finally:
        lock.release()
    return len(salvaged.answers), header is not None


def damaged(path: Path, reason: str) -> DamagedStudy:
    """Return the error that says what can be saved from ``path``."""
    try:
        salvaged = salvage(path)
    except OSError as error:
        return DamagedStudy(f"{path}: cannot be read ({error.strerror}); check the disk")
    if not salvaged.answers and not salvaged.headers:
        return DamagedStudy(
            f"{path}: is not a study file, or is damaged beyond repair ({reason}): no header and no intact answer "
            "was found in it; check the name, restore a copy, or delete it and start again"
        )
    header = "the header" if salvaged.headers else "no header"
    return DamagedStudy(
        f"{path}: is damaged ({reason}); {header} and {len(salvaged.answers)} answers are intact: "
        f"save them with  pzos recover {path}"
    )


def _write_new(path: Path, header: str | None, rows: Iterable[StoredAnswer]) -> None:
    """Write a file under another name, sync it, and only then give it its own."""
    draft = path.with_name(path.name + ".new")
    for suffix in ("", *_LOG_SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            draft.with_name(draft.name + suffix).unlink()
    try:
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(_TABLES)
            connection.execute("BEGIN")
            if header is not None:
                connection.execute("INSERT INTO header VALUES (?, ?, ?)", (HEADER_MARK, header, text_checksum(header)))
            connection.executemany(_INSERT, map(to_columns, rows))
            connection.execute("COMMIT")
        os.replace(draft, path)
        _sync_directory(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise PzosError(f"{path}: cannot be written ({error}); check that the directory exists and has room") from error


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    mode = "ro" if read_only else "rw"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _writer(path: Path, header: str | None, lock: WriterLock) -> Journal:
    try:
        connection = _connect(path, read_only=False)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")  # find out now, not at the first answer, whether the file can be written
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if os.access(path, os.W_OK):
            raise damaged(path, f"it cannot be written: {error}") from None
        raise PzosError(f"{path}: cannot be opened for writing ({error}); check its permissions") from error
    return Journal(path, connection, header, lock)


def _shut(connection: sqlite3.Connection, lock: WriterLock | None, owner: int) -> None:
    if owner != os.getpid():
        return  # a forked child must not touch its parent's file
    if lock is not None:
        with contextlib.suppress(sqlite3.Error):  # a reader is in the way: the log stays, and is read with the file
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    if lock is not None:
        lock.release()


def _left_over(path: Path, suffix: str) -> bool:
    log = path.with_name(path.name + suffix)
    return log.exists() and log.stat().st_size > 0


def _undo_half_a_write(path: Path, *, read_only: bool) -> None:
    """Let the store take back what a killed writer had begun; only a writer may."""
    try:
        with contextlib.closing(_connect(path, read_only=read_only)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        if not read_only:
            raise damaged(path, str(error)) from None
        raise PzosError(
            f"{path}: was left in the middle of a write by a process that was killed ({error}); "
            "open it once for writing (pzos resume) to put it right"
        ) from error


def _verified(path: Path, *, keep_keys: bool) -> tuple[str | None, set[tuple[int, int, str, bytes]]]:
    """Check the whole file without writing to it; return its header and, if asked for, the keys of its answers."""
    if not path.exists():
        raise InvalidInput(f"{path}: expected a study file; check the name, or make one with  pzos init")
    if path.stat().st_size == 0:  # the store would take it for a new file and throw away the log beside it
        raise damaged(path, "the file is empty")
    keys: set[tuple[int, int, str, bytes]] = set()
    try:
        with contextlib.closing(_connect(path, read_only=True)) as connection:
            _check_format(path, connection)
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise damaged(path, str(verdict).strip().splitlines()[-1])
            header = _checked_header(path, connection)
            for sequence, *values in connection.execute(f"{_SELECT.replace('SELECT', 'SELECT seq,')} ORDER BY seq"):
                row = from_columns(tuple(values))
                if row is None:
                    raise damaged(path, f"answer {sequence} is not as it was written")
                if keep_keys:
                    keys.add(row.key)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from None
    return header, keys


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == _APPLICATION and version != FORMAT and _intact_header_format(path) != FORMAT:
        raise InvalidInput(
            f"{path}: has format {version}: expected format {FORMAT}; open it with the version of pzos that wrote it"
        )


def _intact_header_format(path: Path) -> int:
    import json

    headers = salvage(path).headers
    return int(json.loads(headers[0]).get("format", 0)) if headers else 0


def _checked_header(path: Path, connection: sqlite3.Connection) -> str | None:
    rows = connection.execute("SELECT mark, body, checksum FROM header").fetchall()
    if not rows:
        return None  # recovered without its header: the replay shows whose answers these are
    mark, body, stored = rows[0]
    if len(rows) > 1 or mark != HEADER_MARK or not isinstance(body, str) or text_checksum(body) != stored:
        raise damaged(path, "the header is not as it was written")
    return body
