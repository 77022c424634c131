"""Frames: what was written is found again bit for bit, and nothing else ever is."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base import frames
from pzos.base.frames import MARK, NOTHING_BEFORE, as_array, as_bytes, framed, lock, read_from, scan, unlock, write_at

FILE = b"one file"


def chain(payloads: list[bytes], file: bytes = FILE) -> bytes:
    data, last = b"", NOTHING_BEFORE
    for number, payload in enumerate(payloads):
        frame, last = framed(file, number, last, payload)
        data += frame
    return data


def payloads(data: bytes) -> list[bytes]:
    return [bytes(frame.payload) for frame in scan(data)]


contents = st.lists(st.binary(max_size=40), max_size=6)


@given(contents)
def test_what_was_written_is_read_in_its_order(written: list[bytes]) -> None:
    data = chain(written)
    found = list(scan(data))
    assert [bytes(frame.payload) for frame in found] == written
    assert [frame.number for frame in found] == list(range(len(written)))
    assert all(after.previous == before.checksum for before, after in pairwise(found))
    assert (found[-1].end if found else 0) == len(data)


@settings(max_examples=200)
@given(contents.filter(bool), st.data())
def test_one_flipped_bit_costs_one_frame_and_no_other(written: list[bytes], draw: st.DataObject) -> None:
    data = bytearray(chain(written))
    at = draw.draw(st.integers(0, len(data) - 1))
    hit = next(frame.number for frame in scan(bytes(data)) if frame.start <= at < frame.end)
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    assert payloads(bytes(data)) == written[:hit] + written[hit + 1 :]


@given(contents, st.binary(max_size=60), st.binary(max_size=60))
def test_junk_before_between_and_behind_is_passed_over(written: list[bytes], before: bytes, behind: bytes) -> None:
    assert payloads(before + MARK + chain(written) + behind) == written


@given(contents.filter(bool), st.integers(1, 10**6))
def test_a_cut_end_loses_what_was_cut(written: list[bytes], cut: int) -> None:
    data = chain(written)
    kept = data[: -(cut % len(data)) or None]
    whole = [frame for frame in scan(data) if frame.end <= len(kept)]
    assert payloads(kept) == [bytes(frame.payload) for frame in whole]


def test_a_file_made_to_be_slow_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head at every place, each of which claims all the rest: hashing each would take hours."""
    size, hashed = 200_000, 0
    head, _ = framed(FILE, 0, NOTHING_BEFORE, bytes(size))
    hostile = head[:60] * (4 * size // 60)

    def counting(head: bytes, payload: bytes) -> bytes:
        nonlocal hashed
        hashed += len(payload)
        return checksum(head, payload)

    checksum = frames._checksum
    monkeypatch.setattr(frames, "_checksum", counting)
    assert payloads(hostile) == []
    assert len(hostile) < hashed < 6 * len(hostile)


@given(st.lists(st.floats(width=64), max_size=5))
def test_arrays_keep_every_bit(numbers: list[float]) -> None:
    array = np.array(numbers, dtype=np.float64)
    back = as_array(as_bytes(array))
    assert back.tobytes() == array.tobytes()
    assert not back.flags.writeable
    assert back.flags.aligned


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    write_at(descriptor, 0, b"first")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(frames, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        write_at(descriptor, 5, b"second")
    assert read_from(descriptor, 0) == b"first"
    assert read_from(descriptor, 1, 2) == b"ir"
    os.close(descriptor)


def test_locks_belong_to_the_file_not_to_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    first = os.open(tmp_path / "file", os.O_RDWR)
    lock(first, wait=False)
    os.link(tmp_path / "file", tmp_path / "link")
    (tmp_path / "file").rename(tmp_path / "renamed")
    for name in ("link", "renamed"):
        second = os.open(tmp_path / name, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            lock(second, wait=False)
        os.close(second)
    unlock(first)
    again = os.open(tmp_path / "link", os.O_RDWR)
    lock(again, wait=True)
    os.close(again)
    os.close(first)
