"""What a study file keeps of one answer, and how every bit of it is guarded.

Arrays are exact little-endian float64. Each row carries a checksum over all its fields, so that it can be judged on
its own, wherever it is found: in a sound table, in a damaged file, in the write-ahead log of a killed process.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from pzos.base.types import Purpose, Query, Response, Vector

#: The first field of every row: how rows are found in a damaged file. Part of the file format.
ANSWER_MARK = "pzos-answer"
HEADER_MARK = "pzos-header"
ANSWER_COLUMNS = (
    "mark", "step", "idx", "purpose", "x", "y", "gap", "seconds", "elapsed", "failure", "retried", "checksum",
)  # fmt: skip

_CHECKSUM_BYTES = 16
_NUMBERS = struct.Struct("<qqdddqqqqq")
_UNKNOWN = float("nan")
_LITTLE_ENDIAN = np.dtype("<f8")
_NO_BYTES = b""


class StoredAnswer(NamedTuple):
    """One told answer (or failure) with the query it answers; ``elapsed`` is the study's clock when it was told."""

    step: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    purpose: str
    x: bytes
    y: bytes
    gap: float
    seconds: float
    elapsed: float
    failure: str
    retried: str

    @property
    def final(self) -> bool:
        """Whether this answers the last query of a study, which asks for F at the last iterate."""
        return self.purpose == Purpose.MONITOR.value and self.index == 0

    @property
    def key(self) -> tuple[int, int, str, bytes]:
        """Return what makes the row unique in a study."""
        return self.step, self.index, self.purpose, self.x

    def response(self) -> Response:
        """Return the answer as it was told."""
        return Response(self.step, self.index, as_array(self.y), self.gap, self.seconds, self.failure, self.retried)


def stored_answer(query: Query, response: Response, elapsed: float) -> StoredAnswer:
    """Return what is kept of ``response``; numbers and text are brought into the form the file gives back."""
    return StoredAnswer(
        query.step,
        query.index,
        query.purpose.value,
        as_bytes(query.x),
        as_bytes(response.y),
        float(response.gap) + 0.0,  # a negative zero would come back as zero
        float(response.seconds) + 0.0,
        elapsed + 0.0,
        plain_text(response.failure) if response.failure else "",
        plain_text(response.retried) if response.retried else "",
    )


def as_bytes(array: Vector) -> bytes:
    """Return the exact bits of an array, little-endian."""
    return np.ascontiguousarray(array, dtype=_LITTLE_ENDIAN).tobytes() if array.size else _NO_BYTES


def as_array(data: bytes) -> Vector:
    """Return the array of :func:`as_bytes`, in a buffer of its own."""
    return np.frombuffer(data, dtype=_LITTLE_ENDIAN).astype(np.float64)


def plain_text(text: str) -> str:
    """Return text that survives a file: no NUL, no half characters."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


def checksum(row: StoredAnswer) -> bytes:
    """Return the checksum over every field of ``row``."""
    purpose, failure, retried = row.purpose.encode(), row.failure.encode(), row.retried.encode()
    numbers = _NUMBERS.pack(
        row.step,
        row.index,
        _one_nan(row.gap),
        _one_nan(row.seconds),
        _one_nan(row.elapsed),
        len(purpose),
        len(failure),
        len(retried),
        len(row.x),
        len(row.y),
    )
    hashed = blake2b(numbers, digest_size=_CHECKSUM_BYTES)
    for part in (purpose, failure, retried, row.x, row.y):
        hashed.update(part)
    return hashed.digest()


def text_checksum(text: str) -> bytes:
    """Return the checksum of a header's text."""
    return blake2b(text.encode(), digest_size=_CHECKSUM_BYTES).digest()


def to_columns(row: StoredAnswer) -> tuple[Any, ...]:
    """Return the values of :data:`ANSWER_COLUMNS` (the store itself writes NaN as NULL)."""
    return (ANSWER_MARK, *row, checksum(row))


def from_columns(values: tuple[Any, ...]) -> StoredAnswer | None:
    """Return the row of :data:`ANSWER_COLUMNS`, or None unless every bit of it is as it was written."""
    mark, step, index, purpose, x, y, gap, seconds, elapsed, failure, retried, stored_checksum = values
    types_fit = (
        mark == ANSWER_MARK
        and all(isinstance(value, int) for value in (step, index))
        and all(isinstance(value, str) for value in (purpose, failure, retried))
        and all(isinstance(value, bytes) for value in (x, y, stored_checksum))
        and all(value is None or isinstance(value, int | float) for value in (gap, seconds, elapsed))
    )
    if not types_fit or len(x) % 8 or len(y) % 8:
        return None
    row = StoredAnswer(step, index, purpose, x, y, _number(gap), _number(seconds), _number(elapsed), failure, retried)
    return row if checksum(row) == stored_checksum else None


def _one_nan(value: float) -> float:
    return _UNKNOWN if isnan(value) else value


def _number(value: float | None) -> float:
    return _UNKNOWN if value is None else float(value)
