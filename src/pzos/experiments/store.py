"""The finished runs of a reproduction, in one SQLite file: no finished run is ever computed twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import pzos
from pzos.base.errors import InvalidInput
from pzos.experiments.runs import RunOutcome

_FORMAT = "pzos experiment runs 1"
_LITTLE = np.dtype("<f8")


class RunStore:
    """Outcomes by run key. Arrays are exact little-endian float64; a run is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = sqlite3.connect(path)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"reproduce: {path.name}: expected a store of finished runs ({error}); "
                "delete the file to compute all runs again"
            ) from error

    def _prepare(self) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("CREATE TABLE IF NOT EXISTS header (format TEXT, version TEXT)")
        row = database.execute("SELECT format, version FROM header").fetchone()
        expected = (_FORMAT, pzos.__version__)
        if row is None:
            database.execute("INSERT INTO header VALUES (?, ?)", expected)
        elif tuple(row) != expected:
            raise InvalidInput(
                f"reproduce: {self.path.name} was written by {row}: expected {expected}; "
                "choose another --out, or delete the file to compute all runs again"
            )
        database.execute(
            "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, amounts BLOB, norms BLOB, "
            "dimension INTEGER, projected INTEGER, slack INTEGER)"
        )
        database.commit()

    def finished(self) -> set[str]:
        """Return the keys of all finished runs."""
        return {key for (key,) in self._database.execute("SELECT key FROM runs")}

    def add(self, key: str, outcome: RunOutcome) -> None:
        """Keep a finished run."""
        blobs = [np.ascontiguousarray(a, dtype=_LITTLE).tobytes() for a in outcome[:2]]
        self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", (key, *blobs, *outcome[2:]))
        self._database.commit()

    def load(self, keys: Iterable[str]) -> list[RunOutcome]:
        """Return the outcomes of these runs, in order."""
        query = "SELECT amounts, norms, dimension, projected, slack FROM runs WHERE key = ?"
        outcomes = []
        for key in keys:
            amounts, norms, *counts = self._database.execute(query, (key,)).fetchone()
            outcomes.append(RunOutcome(_array(amounts), _array(norms), *counts))
        return outcomes

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _array(blob: bytes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.frombuffer(blob, dtype=_LITTLE).astype(np.float64)
