"""Studies of format 1: read whole or refused, their write-ahead log included, and never touched."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

import pzos
from pzos.durable.log import read_study
from pzos.durable.old_format import read_old

GOLDEN = Path(__file__).parents[1] / "data" / "format1.study"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN, tmp_path / "old.study"))


def test_everything_in_it_is_read_and_nothing_is_written(old: Path) -> None:
    before = old.read_bytes()
    header, events = read_old(old)
    assert header["format"] == 1
    assert len(events) == 17
    assert [event.query.x.size for event in events] == [3] * 17
    assert read_study(old).answers[0].y.size == 6
    assert old.read_bytes() == before
    assert [path.name for path in old.parent.iterdir()] == ["old.study"]


def test_the_log_of_a_killed_process_is_read_with_it(old: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed.study"
    with contextlib.closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("DELETE FROM answers WHERE seq = (SELECT max(seq) FROM answers)")
        shutil.copy(old, killed)
        shutil.copy(f"{old}-wal", f"{killed}-wal")
    assert len(read_old(killed)[1]) == 16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE answers SET y = zeroblob(48) WHERE seq = 4", r"answer \d\.\d is not as it was written"),
        ("UPDATE header SET body = '{}'", "its header is not as it was written"),
        ("DELETE FROM header", "not enough values"),
        ("DROP TABLE answers", "no such table"),
    ],
)
def test_what_was_changed_is_refused(old: Path, change: str, said: str) -> None:
    with contextlib.closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute(change)
    with pytest.raises(pzos.DamagedStudy, match=said):
        read_old(old)
