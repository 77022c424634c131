"""Studies of format 1, which were SQLite files: read here, so that ``pzos recover`` can turn them into new ones."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import struct
import tempfile
from hashlib import blake2b
from math import isnan
from pathlib import Path
from typing import Any

from pzos.base.errors import DamagedStudy
from pzos.base.frames import as_array
from pzos.base.types import Purpose, Query, Response
from pzos.study.events import Event

_COLUMNS = "step, idx, purpose, x, y, gap, seconds, elapsed, failure, retried, checksum"
_NUMBERS = struct.Struct("<qqdddqqqqq")
_UNKNOWN = float("nan")


def read_old(path: Path) -> tuple[dict[str, Any], list[Event]]:
    """Return the header and the answers of a study of format 1, the log of a killed process included."""
    try:
        with tempfile.TemporaryDirectory() as folder:  # the store would write beside the file; a copy may be written to
            copy = Path(folder, "old.study")
            shutil.copyfile(path, copy)
            log = path.with_name(path.name + "-wal")
            if log.exists():
                shutil.copyfile(log, copy.with_name("old.study-wal"))
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                (text, kept), *more = connection.execute("SELECT body, checksum FROM header").fetchall()
                rows = connection.execute(f"SELECT {_COLUMNS} FROM answers ORDER BY seq").fetchall()
            if more or blake2b(text.encode(), digest_size=16).digest() != kept:
                raise ValueError("its header is not as it was written")
            return json.loads(text), [_event(*row) for row in rows]
    except (sqlite3.Error, ValueError, TypeError, AttributeError, OverflowError, struct.error) as error:
        raise DamagedStudy(
            f"{path}: is not a study file, or a damaged one of format 1 ({error}): no header and no intact answer "
            "can be taken from it; restore a copy, or recover it with pzos 0.1"
        ) from None


def _event(
    step: int, index: int, purpose: str, x: bytes, y: bytes, *rest: Any
) -> Event:  # the columns of one row, in their order
    *numbers, failure, retried, kept = rest
    gap, seconds, elapsed = (_UNKNOWN if value is None or isnan(value) else float(value) for value in numbers)
    texts = [text.encode() for text in (purpose, failure, retried)]
    sizes = (len(part) for part in (*texts, x, y))
    hashed = blake2b(_NUMBERS.pack(step, index, gap, seconds, elapsed, *sizes), digest_size=16)
    for part in (*texts, x, y):
        hashed.update(part)
    if hashed.digest() != kept:
        raise ValueError(f"answer {step}.{index} is not as it was written")
    query = Query(step, index, as_array(x), Purpose(purpose))
    return Event(query, Response(step, index, as_array(y), gap, seconds, failure, retried), elapsed)
