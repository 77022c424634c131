"""The runs of an experiment: many of them over processes, and the file that keeps them.

No finished run is ever computed twice: a killed reproduction goes on where it was.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from pathlib import Path

import numpy as np

import pzos
from pzos.answers.oracle import abandon
from pzos.base.errors import InvalidInput
from pzos.experiments.descriptions import RunSpec
from pzos.experiments.lockstep import RunOutcome, dimension_of, execute

_FORMAT = "pzos experiment runs 1"
_LITTLE = np.dtype("<f8")
#: How many instances a job has at most: more would not be faster, and a killed call loses the job in flight.
_INSTANCES = 8


# ---- the file of finished runs ----------------------------------------------------------------------------------


class RunStore:
    """Outcomes by run key. Arrays are exact little-endian float64; a run is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = sqlite3.connect(path)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
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
            self.close()
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
            *blobs, dimension, projected, slack = self._database.execute(query, (key,)).fetchone()
            values, norms = (np.frombuffer(blob, dtype=_LITTLE).astype(np.float64) for blob in blobs)
            outcomes.append(RunOutcome(values, norms, dimension, projected, slack))
        return outcomes

    def close(self) -> None:
        """Close the file."""
        self._database.close()


# ---- many runs --------------------------------------------------------------------------------------------------


def compute_missing(specs: Sequence[RunSpec], store: RunStore, executor: Executor | None = None) -> int:
    """Execute every run that the store lacks, on ``executor`` or else here; returns how many were.

    A run is a pure function of its spec, so where it is computed does not change a bit of it.
    """
    finished = store.finished()
    missing = [spec for spec in dict.fromkeys(specs) if spec.key not in finished]
    for key, outcome in _watched(_completed(jobs(missing), executor), len(missing)):
        store.add(key, outcome)
    return len(missing)


def jobs(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Put runs together that can go in lockstep: all on a few instances of one dimension.

    Long jobs come first, so that no worker is left alone with one at the end.
    """
    instances: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    found: dict[tuple[str, int, int], list[RunSpec]] = defaultdict(list)
    for spec in specs:
        alike = spec.family, dimension_of(spec)
        number = instances[alike].setdefault(spec.seed, len(instances[alike]))
        found[*alike, number // _INSTANCES].append(spec)
    return sorted(found.values(), key=lambda job: -sum(spec.steps * max(dimension_of(spec), 40) for spec in job))


def _completed(found: Sequence[list[RunSpec]], workers: Executor | None) -> Iterator[tuple[str, RunOutcome]]:
    """Yield runs as their jobs finish."""
    if workers is None:
        for job in found:
            yield from _named(job, execute(job))
        return
    futures = {workers.submit(execute, job): job for job in found}
    try:
        for future in as_completed(futures):
            yield from _named(futures[future], future.result())
    finally:
        abandon(futures)


def _named(job: Sequence[RunSpec], outcomes: Sequence[RunOutcome]) -> Iterator[tuple[str, RunOutcome]]:
    return zip((spec.key for spec in job), outcomes, strict=True)


def _watched(runs: Iterator[tuple[str, RunOutcome]], total: int) -> Iterable[tuple[str, RunOutcome]]:
    """Show a bar with the time left on a terminal; stay quiet in a pipe."""
    if total == 0 or not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield from runs
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("runs"), progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn(),
        progress.TextColumn("left"), progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(runs, total=total)
