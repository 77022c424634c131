"""Find every intact answer in the bytes of a study file, whatever became of the rest of it.

The store's own reader needs its page tree; this one does not. It looks for the mark every row begins with, reads the
row around it as the SQLite file format lays it down (https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1),
and lets the row's checksum decide. The write-ahead log of a killed process is searched in the same way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pzos.base.rows import ANSWER_COLUMNS, ANSWER_MARK, HEADER_MARK, StoredAnswer, from_columns, text_checksum

#: Every study file has this page size, so that no damaged field is needed to know it.
PAGE_SIZE = 4096
_MAX_LOCAL = PAGE_SIZE - 35
_MIN_LOCAL = (PAGE_SIZE - 12) * 32 // 255 - 23
_OVERFLOW_DATA = PAGE_SIZE - 4
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_LONGEST_RECORD_HEADER = 60
_MOST_PAGES_TRIED = 50_000
_DOUBLE = struct.Struct(">d")  # records are big-endian


class Salvaged(NamedTuple):
    """What was found: header texts (the same one as a rule, none if it is damaged), and answers without doubles."""

    headers: list[str]
    answers: list[StoredAnswer]


class _Page(NamedTuple):
    """One page image: its bytes, and where the row's neighbours are looked up."""

    data: bytes
    number: int


def salvage(path: Path) -> Salvaged:
    """Return everything intact in ``path`` and in the write-ahead log beside it."""
    main = path.read_bytes() if path.exists() else b""
    log = path.with_name(path.name + "-wal")
    return carve(main, log.read_bytes() if log.exists() else b"")


def carve(main: bytes, log: bytes = b"") -> Salvaged:
    """Return every intact header and answer in the bytes of a study file and of its write-ahead log."""
    frames = list(_frames(log))
    latest = {page.number: page.data for page in frames}

    def newest(number: int) -> bytes:
        return latest.get(number) or page_of(main, number)

    def oldest(number: int) -> bytes:
        return page_of(main, number)

    lookups = (newest, oldest) if frames else (oldest,)
    page_count = max([len(main) // PAGE_SIZE, *(number for number in latest if number < _MOST_PAGES_TRIED)]) + 2
    headers: dict[str, None] = {}
    answers: dict[tuple[int, int, str, bytes], StoredAnswer] = {}
    for page in [*_pages(main), *frames]:
        for values in _rows_in(page, HEADER_MARK, 3, lookups, page_count, _is_header):
            headers[values[1]] = None
        for values in _rows_in(page, ANSWER_MARK, len(ANSWER_COLUMNS) + 1, lookups, page_count, _is_answer):
            row = from_columns(values[1:])
            if row is not None:
                answers[row.key] = row
    return Salvaged(list(headers), sorted(answers.values(), key=lambda row: row[:3]))


def page_of(main: bytes, number: int) -> bytes:
    """Return page ``number`` (counted from 1) of the main file; empty beyond its end."""
    return main[(number - 1) * PAGE_SIZE : number * PAGE_SIZE] if number > 0 else b""


def _pages(main: bytes) -> Iterator[_Page]:
    for start in range(0, len(main), PAGE_SIZE):
        yield _Page(main[start : start + PAGE_SIZE], start // PAGE_SIZE + 1)


def _frames(log: bytes) -> Iterator[_Page]:
    for start in range(_WAL_HEADER, len(log), _FRAME_HEADER + PAGE_SIZE):
        image = start + _FRAME_HEADER
        yield _Page(log[image : image + PAGE_SIZE], int.from_bytes(log[start : start + 4], "big"))


def _is_header(values: tuple[Any, ...]) -> bool:
    text, stored = values[1:]
    return isinstance(text, str) and text_checksum(text) == stored


def _is_answer(values: tuple[Any, ...]) -> bool:
    return from_columns(values[1:]) is not None


Lookup = Callable[[int], bytes]


def _rows_in(
    page: _Page,
    mark: str,
    columns: int,
    lookups: tuple[Lookup, ...],
    page_count: int,
    intact: Callable[[tuple[Any, ...]], bool],
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of every intact row that begins in this page."""
    at = page.data.find(mark.encode())
    while at >= 0:
        for begin, types in _record_headers(page.data, at, columns):
            for payload in payloads(page.data, begin, at, types, lookups, page_count):
                values = _values(payload[at - begin :], types)
                if values is not None and intact(values):
                    yield values
                    break
        at = page.data.find(mark.encode(), at + 1)


def _record_headers(data: bytes, at: int, columns: int) -> Iterator[tuple[int, list[int]]]:
    """Yield where the record may begin whose first non-empty value stands at ``at``, with its serial types."""
    for size in range(columns + 1, min(at, _LONGEST_RECORD_HEADER) + 1):
        begin = at - size
        if data[begin] == size:
            types = _serial_types(data[begin + 1 : at])
            if types is not None and len(types) == columns:
                yield begin, types


def _serial_types(data: bytes) -> list[int] | None:
    """Read variable-length integers until ``data`` ends; None if it ends inside one."""
    types, value, length = [], 0, 0
    for byte in data:
        value, length = (value << 7) | (byte & 0x7F), length + 1
        if not byte & 0x80:
            types.append(value)
            value = length = 0
        elif length > 8:
            return None
    return types if length == 0 else None


def _size(serial: int) -> int:
    if serial >= 12:
        return (serial - 12) // 2
    return 8 if serial == 7 else _INTEGER_SIZES.get(serial, 0)


def payloads(
    data: bytes, begin: int, at: int, types: list[int], lookups: tuple[Lookup, ...], page_count: int
) -> Iterator[bytes]:
    """Yield the record's bytes as each way of following it through its overflow pages gives them.

    The pages are followed by their links; where a link is damaged, a record's pages lie one behind the other.
    """
    total = at - begin + sum(_size(serial) for serial in types)
    if total <= _MAX_LOCAL:
        yield data[begin : begin + total]
        return
    local = _MIN_LOCAL + (total - _MIN_LOCAL) % _OVERFLOW_DATA
    local = local if local <= _MAX_LOCAL else _MIN_LOCAL
    link = int.from_bytes(data[begin + local : begin + local + 4], "big")
    head, missing = data[begin : begin + local], total - local
    for lookup in lookups:
        for linked in (True, False):
            yield head + _overflow(lookup, link, missing, linked=linked)
    for lookup in lookups:  # the first link itself is damaged: any page may be the one
        for first in range(2, min(page_count, _MOST_PAGES_TRIED)):
            yield head + _overflow(lookup, first, missing, linked=True)


def _overflow(lookup: Lookup, number: int, missing: int, *, linked: bool) -> bytes:
    parts = []
    while missing > 0:
        page = lookup(number)
        if len(page) <= 4:
            break
        parts.append(page[4 : 4 + min(missing, _OVERFLOW_DATA)])
        missing -= len(parts[-1])
        number = int.from_bytes(page[:4], "big") if linked else number + 1
    return b"".join(parts)


def _values(body: bytes, types: list[int]) -> tuple[Any, ...] | None:
    values, at = [], 0
    for serial in types:
        data = body[at : at + _size(serial)]
        if len(data) < _size(serial):
            return None
        values.append(_value(serial, data))
        at += len(data)
    return tuple(values)


def _value(serial: int, data: bytes) -> Any:
    if serial >= 12:
        return data if serial % 2 == 0 else data.decode("utf-8", "replace")
    if serial == 7:
        return float(_DOUBLE.unpack(data)[0])
    if serial in (8, 9):
        return serial - 8
    return int.from_bytes(data, "big", signed=True) if serial in _INTEGER_SIZES else None
