"""Answers kept under their content: no query is ever paid twice, in this study or in the next.

The cache is a SQLite file beside the studies. It may be shared by several processes, and by all studies of the same
follower. A query is recognised by the exact bits of x (and, for noisy followers, by the address of its noise).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from pzos.base.checks import Faults
from pzos.base.errors import DamagedStudy, PzosError
from pzos.base.fingerprint import describe_function
from pzos.base.rows import as_array, as_bytes
from pzos.base.types import Vector
from pzos.problem.follower import Answer, Follower, as_follower

_TABLE = """
    CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, follower TEXT, x BLOB, y BLOB, gap REAL, checksum BLOB)
    WITHOUT ROWID
"""
_BUSY_SECONDS = 60.0
_own = threading.local()  # each thread has connections of its own, and they end with it


@dataclass(frozen=True, eq=False)
class Cached(Follower):
    """A follower that looks its answers up in the file ``path`` before it is called, and puts them there after.

    ``name`` tells followers apart that share a file; by default it is the function's module and name, so give one if
    the function's meaning changes (another network, another version of the simulator). Only answers are kept, never
    failures, and only finite ones.

    A batched follower is looked up by whole batches, because its last bits depend on the shape of the batch.
    """

    follower: Any
    path: str | os.PathLike[str]
    name: str = ""
    inner: Follower = field(init=False)

    def __post_init__(self) -> None:
        faults = Faults("Cached")
        path = self.path
        ok = isinstance(path, str | os.PathLike) and Path(path).parent.is_dir() and not Path(path).is_dir()
        faults.check(ok, "path", path, "a file in a directory that exists", 'try "answers.cache"')
        faults.raise_if_any()
        inner = as_follower(self.follower)
        set_field = object.__setattr__
        set_field(self, "inner", inner)
        set_field(self, "name", self.name or describe_function(getattr(inner, "function", inner)))
        for flag in ("batched", "seeded", "common"):
            set_field(self, flag, getattr(inner, flag))

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Return the stored answer at x, or the follower's own, which is then stored."""
        key = self._key(as_bytes(x), _address(generator))
        known = self._known(key)
        if known is not None:
            return known
        answer = self.inner.respond(x, generator)
        self._keep(key, x, answer)
        return answer

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Look the whole batch up, or ask for the whole batch."""
        if not self.batched:
            return [self.respond(point, None) for point in points]
        batch = b"".join(map(as_bytes, points))
        keys = [self._key(as_bytes(point), batch + number.to_bytes(4, "little")) for number, point in enumerate(points)]
        known = [self._known(key) for key in keys]
        if all(answer is not None for answer in known):
            return known
        answers = self.inner.respond_all(points)
        for key, point, answer in zip(keys, points, answers, strict=True):
            self._keep(key, point, answer)
        return answers

    def _key(self, x: bytes, address: bytes) -> bytes:
        hashed = blake2b(self.name.encode(), digest_size=20)
        for part in (len(x).to_bytes(8, "little"), x, address):
            hashed.update(part)
        return hashed.digest()

    def _known(self, key: bytes) -> Answer | None:
        with self._store() as store:
            row = store.execute("SELECT y, gap, checksum FROM cache WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        y, gap, checksum = row
        if not isinstance(y, bytes) or _checksum(key, y, gap) != checksum:
            return None  # a damaged entry is no entry
        return Answer(as_array(y), float("nan") if gap is None else float(gap), cached=True)

    def _keep(self, key: bytes, x: Vector, returned: Any) -> None:
        answer = returned if isinstance(returned, Answer) else Answer(returned)
        try:
            vector = np.atleast_1d(np.array(answer.y, dtype=np.float64))
            gap = None if float(answer.gap) != float(answer.gap) else float(answer.gap)
        except (TypeError, ValueError):
            return  # no answer: the oracle will say so
        if vector.ndim != 1 or not np.isfinite(vector).all():
            return
        y = as_bytes(vector)
        with self._store() as store:
            row = (key, self.name, as_bytes(x), y, gap, _checksum(key, y, gap))
            store.execute("INSERT OR REPLACE INTO cache VALUES (?, ?, ?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _store(self) -> Any:
        """Lend the connection of this thread of this process (neither may share one)."""
        try:
            yield _connection(os.path.realpath(self.path))
        except sqlite3.OperationalError as error:
            raise PzosError(f"{self.path}: the cache cannot be used ({error}); check its directory and disk") from error
        except sqlite3.DatabaseError as error:
            raise DamagedStudy(
                f"{self.path}: the cache is damaged ({error}); move it away to start a new one"
            ) from None


def _connection(path: str) -> sqlite3.Connection:
    """Return the connection of this thread; a new one after a fork, and where the file was moved away or replaced."""
    held: dict[tuple[int, str], tuple[sqlite3.Connection, int]] = _own.__dict__.setdefault("held", {})
    place = (os.getpid(), path)
    if place in held:
        connection, file = held[place]
        if os.path.exists(path) and os.stat(path).st_ino == file:
            return connection
        connection.close()
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_TABLE)
    except sqlite3.Error:
        connection.close()
        raise
    held[place] = connection, os.stat(path).st_ino
    return connection


def _address(generator: Generator | None) -> bytes:
    """Return what tells one query's noise from another's: the state its generator starts from."""
    if generator is None:
        return b""
    state: Any = generator.bit_generator.state["state"]
    return b"".join(np.asarray(state[part]).tobytes() for part in sorted(state))


def _checksum(key: bytes, y: bytes, gap: float | None) -> bytes:
    return blake2b(key + repr(None if gap is None else float(gap)).encode() + y, digest_size=16).digest()
