"""Answers kept under their content: no query is ever paid twice, in this study or in the next.

The cache is an append-only file of frames (:mod:`pzos.base.frames`) beside the studies. It may be shared by several
threads and processes, and by all studies of the same follower. A query is recognised by the exact bits of x (and, for
noisy followers, by the address of its noise).
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from pzos.base.checks import Faults, Must, checked, note_fields
from pzos.base.errors import DamagedStudy, PzosError
from pzos.base.fingerprint import name_of
from pzos.base.frames import NOTHING_BEFORE, as_array, as_bytes, framed, lock, read_from, scan, unlock, write_at
from pzos.base.types import Vector
from pzos.problem.follower import Answer, Follower, as_follower

_KEY_BYTES = 20
_GAP = struct.Struct("<d")
_CACHE = b"pzcache1"
_stores: dict[tuple[int, str], _Store] = {}  # by process: a forked child must not share its parent's lock


def _may_be_made(path: Any) -> bool:
    return isinstance(path, str | os.PathLike) and Path(path).parent.is_dir() and not Path(path).is_dir()


@dataclass(frozen=True, eq=False)
class Cached(Follower):
    """A follower that looks its answers up in the file ``path`` before it is called, and puts them there after.

    ``name`` tells followers apart that share a file. A function at the top level of a module has one, and so has a
    frozen value with all it is made of; anything else (a lambda, a ``functools.partial``, a function that closes over
    something, an object with a state of its own) must be given one. Give another name if the function's meaning changes
    (another network, another version of the simulator). Only answers are kept, never failures, and only finite ones.

    A batched follower is looked up by whole batches, because its last bits depend on the shape of the batch.
    """

    follower: Any
    path: str | os.PathLike[str] = checked(
        Must(_may_be_made, "a file in a directory that exists", 'try "answers.cache"')
    )
    name: str = ""
    inner: Follower = field(init=False)

    def __post_init__(self) -> None:
        faults = Faults("Cached")
        note_fields(faults, self)
        inner = as_follower(self.follower)
        name = self.name or name_of(getattr(inner, "function", inner))
        expected = "one, because none can be derived for this follower"
        faults.check(bool(name), "name", self.name, expected, 'say what it is, as in name="demand of 2025"')
        faults.raise_if_any()
        set_field = object.__setattr__
        set_field(self, "inner", inner)
        set_field(self, "name", name)
        for flag in ("batched", "seeded", "common"):
            set_field(self, flag, getattr(inner, flag))

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Return the stored answer at x, or the follower's own, which is then stored."""
        key = self._key(as_bytes(x), _address(generator))
        known = self._store().known(key)
        if known is not None:
            return known
        answer = self.inner.respond(x, generator)
        self._keep(key, answer)
        return answer

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Look the whole batch up, or ask for the whole batch."""
        if not self.batched:
            return [self.respond(point, None) for point in points]
        batch = b"".join(map(as_bytes, points))
        keys = [self._key(as_bytes(point), batch + number.to_bytes(4, "little")) for number, point in enumerate(points)]
        known = [self._store().known(key) for key in keys]
        if all(answer is not None for answer in known):
            return known
        answers = self.inner.respond_all(points)
        for key, answer in zip(keys, answers, strict=True):
            self._keep(key, answer)
        return answers

    def _key(self, x: bytes, address: bytes) -> bytes:
        hashed = blake2b(self.name.encode(), digest_size=_KEY_BYTES)
        for part in (len(x).to_bytes(8, "little"), x, address):
            hashed.update(part)
        return hashed.digest()

    def _keep(self, key: bytes, returned: Any) -> None:
        answer = returned if isinstance(returned, Answer) else Answer(returned)
        try:
            vector = np.atleast_1d(np.array(answer.y, dtype=np.float64))
            gap = float(answer.gap)
        except (TypeError, ValueError):
            return  # no answer: the oracle will say so
        if vector.ndim == 1 and np.isfinite(vector).all():
            self._store().keep(key, key + _GAP.pack(gap) + as_bytes(vector))

    def _store(self) -> _Store:
        place = os.getpid(), os.path.realpath(self.path)
        return _stores.get(place) or _stores.setdefault(place, _Store(Path(self.path)))


class _Store:
    """The file of a cache as this process sees it: where each answer lies, as far as it has read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._descriptor = -1
        self._forget()

    def _forget(self) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end, self._number, self._last = 0, 0, NOTHING_BEFORE

    def known(self, key: bytes) -> Answer | None:
        """Return the answer that is kept under ``key``; one that was damaged since is none."""
        with self._guard:
            self._catch_up()
            start, end = self._places.get(key, (0, 0))
            data = read_from(self._descriptor, start, end - start)
        for frame in scan(data):
            if frame.payload[:_KEY_BYTES] == key:
                (gap,) = _GAP.unpack_from(frame.payload, _KEY_BYTES)
                return Answer(as_array(frame.payload[_KEY_BYTES + _GAP.size :]).copy(), gap, cached=True)
        return None

    def keep(self, key: bytes, payload: bytes) -> None:
        """Append an answer and return when it is on the disk."""
        with self._guard:
            self._catch_up()
            try:
                lock(self._descriptor, wait=True)
                try:
                    end = self._read_on()
                    frame, self._last = framed(_CACHE, self._number, self._last, payload)
                    write_at(self._descriptor, end, frame)
                finally:
                    unlock(self._descriptor)
            except OSError as error:
                raise _unusable(self.path, error) from error
            self._places[key] = end, end + len(frame)
            self._end, self._number = end + len(frame), self._number + 1

    def _catch_up(self) -> None:
        """Read what others have written, in the file that has the name now: it may have been moved away or replaced."""
        try:
            if self._descriptor < 0 or not self._is_there():
                if self._descriptor >= 0:
                    os.close(self._descriptor)
                self._forget()
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            self._read_on()
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _is_there(self) -> bool:
        return self.path.exists() and os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))

    def _read_on(self) -> int:
        """Note what has been written since; returns the size of the file, where a torn answer may be the last thing."""
        data = read_from(self._descriptor, self._end) if os.fstat(self._descriptor).st_size > self._end else b""
        begin, size = self._end, self._end + len(data)
        for frame in scan(data):
            if frame.file == _CACHE and len(frame.payload) >= _KEY_BYTES + _GAP.size:
                self._places[frame.payload[:_KEY_BYTES]] = begin + frame.start, begin + frame.end
                self._end, self._number, self._last = begin + frame.end, frame.number + 1, frame.checksum
        if size and not self._number:
            raise DamagedStudy(
                f"{self.path}: the cache is damaged (it does not begin as one does); move it away to start a new one"
            )
        return size


def _unusable(path: Path, error: OSError) -> PzosError:
    return PzosError(f"{path}: the cache cannot be used ({error.strerror}); check its directory and disk")


def _address(generator: Generator | None) -> bytes:
    """Return what tells one query's noise from another's: the state its generator starts from."""
    if generator is None:
        return b""
    state: Any = generator.bit_generator.state["state"]
    return b"".join(_bits(state[part]) for part in sorted(state))


def _bits(part: Any) -> bytes:
    """Return a part of a generator's state as bytes: an array, or a whole number of up to 128 bits (PCG64)."""
    return part.to_bytes(16, "little") if isinstance(part, int) else np.asarray(part).tobytes()
