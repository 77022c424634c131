"""Append-only files of frames: bytes with their length and a checksum chained from the frame before.

A frame is a head (mark, id of the file, number, length, checksum of the frame before), a checksum over head and bytes,
and the bytes. So a frame can be judged by itself wherever it is found, and its place in the file by the one before:
what was cut, changed, swapped, doubled or brought in from another file shows. Reading takes time and memory
proportional to the size of the file, whatever is in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pzos.base.errors import InvalidInput
from pzos.base.types import Vector

#: The first bytes of every frame, and so of every file of frames.
MARK = b"pzos"
#: The first bytes of a study of format 1.
OLD_MARK = b"SQLite format 3\0"
#: What the first frame of a file has in place of the checksum of the frame before.
NOTHING_BEFORE = bytes(16)
_HEAD = struct.Struct("<4s8sQQ16s")
_HEAD_AND_CHECKSUM = struct.Struct(_HEAD.format + "16s")
#: How a frame begins: the mark, id and number, and a length below 2^40; so that looking for it is quick in any file.
_BEGINS = re.compile(MARK + rb".{21}\0\0\0", re.DOTALL)
_CHECKSUM_BYTES = 16
_SIZE = _HEAD_AND_CHECKSUM.size
_PATIENCE = 4  # how often as many bytes as there are may be hashed in search of intact frames
_LITTLE_ENDIAN = np.dtype("<f8")
_BEYOND_EVERY_FILE = 1 << 40


class Frame(NamedTuple):
    """An intact frame: whose it is, its number there, what came before it, and where it lies in the data."""

    file: bytes
    number: int
    previous: bytes
    checksum: bytes
    payload: bytes
    start: int
    end: int


def framed(file: bytes, number: int, previous: bytes, payload: bytes) -> tuple[bytes, bytes]:
    """Return a frame as it is written, and its checksum."""
    head = _HEAD.pack(MARK, file, number, len(payload), previous)
    checksum = _checksum(head, payload)
    return b"".join((head, checksum, payload)), checksum


def scan(data: bytes, at: int = 0) -> Iterator[Frame]:
    """Yield every intact frame from ``at`` on; what is between them is passed over."""
    view, size, budget = memoryview(data), len(data), _PATIENCE * len(data)
    while budget >= 0 and at <= size - _SIZE:
        mark, file, number, length, previous, checksum = _HEAD_AND_CHECKSUM.unpack_from(data, at)
        begin = at + _SIZE
        end = begin + length
        if mark == MARK and end <= size:
            payload = data[begin:end]
            if _checksum(view[at : at + _HEAD.size], payload) == checksum:
                yield Frame(file, number, previous, checksum, payload, at, end)
                at = end
                continue
            budget -= length
        if (found := _BEGINS.search(data, at + 1)) is None:
            return
        at = found.start()


def _checksum(head: bytes | memoryview, payload: bytes) -> bytes:
    hashed = blake2b(head, digest_size=_CHECKSUM_BYTES)
    hashed.update(payload)
    return hashed.digest()


def as_bytes(array: Vector) -> bytes:
    """Return the exact bits of an array, little-endian."""
    return np.ascontiguousarray(array, dtype=_LITTLE_ENDIAN).tobytes()


def as_array(data: bytes) -> Vector:
    """Return the array of :func:`as_bytes`, read-only, because it lies in ``data`` itself."""
    array = np.frombuffer(data, _LITTLE_ENDIAN)
    return array if _LITTLE_ENDIAN.isnative else array.astype(np.float64)


# ---- files -----------------------------------------------------------------------------------------------------


def read_from(descriptor: int, at: int, size: int = -1) -> bytes:
    """Return ``size`` bytes of the file from ``at`` on, or everything."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        file.seek(at)
        return file.read(size)


def write_at(descriptor: int, at: int, data: bytes) -> None:
    """Write at this place and return when it is on the disk; after an error the file ends where it was told to."""
    try:
        os.lseek(descriptor, at, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        sync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, at)
        raise


def spare_study(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` as a place to write something else to; InvalidInput if a study lies there."""
    place = Path(path)
    if is_study(place):
        raise InvalidInput(f"{place}: holds a study or a cache: expected another name; nothing is written onto one")
    return place


def is_study(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file begins as a study or a cache does."""
    place = Path(path)
    if not place.is_file():
        return False
    with place.open("rb") as file:
        begins = file.read(len(OLD_MARK))
    return begins.startswith(MARK) or begins == OLD_MARK


#: Return when what was written is on the disk.
sync = getattr(os, "fdatasync", os.fsync)

if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int, *, wait: bool) -> None:
        """Lock the file itself against other writers; BlockingIOError if another has it and we do not wait."""
        os.lseek(descriptor, _BEYOND_EVERY_FILE, os.SEEK_SET)  # readers must be able to read what is in the file
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from error

    def unlock(descriptor: int) -> None:
        """Let others write."""
        os.lseek(descriptor, _BEYOND_EVERY_FILE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def lock(descriptor: int, *, wait: bool) -> None:
        """Lock the file itself against other writers; BlockingIOError if another has it and we do not wait."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def unlock(descriptor: int) -> None:
        """Let others write."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
