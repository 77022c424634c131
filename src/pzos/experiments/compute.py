"""Compute what is missing: many runs over processes or a cluster, each kept as soon as it is finished."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager

from pzos.answers.oracle import abandon
from pzos.answers.workers import Workers
from pzos.experiments.descriptions import RunSpec
from pzos.experiments.runs import RunOutcome, execute
from pzos.experiments.store import RunStore


def compute_missing(specs: Sequence[RunSpec], store: RunStore, *, jobs: int, executor: Executor | None = None) -> int:
    """Execute every run that the store lacks, on ``executor`` or ``jobs`` worker processes; returns how many were.

    A run is a pure function of its spec, so where it is computed does not change a bit of it.
    """
    finished = store.finished()
    missing = [spec for spec in dict.fromkeys(specs) if spec.key not in finished]
    # Long runs first, so that no worker is left alone with one at the end; neighbours share an instance.
    missing.sort(key=lambda spec: (-spec.steps * max(spec.targets, 40), spec.family, spec.instance))
    with _progress(len(missing)) as advance, _workers(jobs, executor, len(missing)) as workers:
        for key, outcome in _completed(missing, workers):
            store.add(key, outcome)
            advance()
    return len(missing)


def execute_named(spec: RunSpec) -> tuple[str, RunOutcome]:
    """Execute one run; this is what a worker is sent."""
    return spec.key, execute(spec)


def _completed(specs: Sequence[RunSpec], workers: Executor | None) -> Iterator[tuple[str, RunOutcome]]:
    """Yield runs as they finish; one run per job, so that a killed call loses only what was in flight."""
    if workers is None:
        yield from map(execute_named, specs)
        return
    futures = [workers.submit(execute_named, spec) for spec in specs]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        abandon(futures)


@contextmanager
def _workers(jobs: int, executor: Executor | None, runs: int) -> Iterator[Executor | None]:
    """Yield the executor given, worker processes, or None to work here."""
    if executor is not None or jobs == 1 or runs <= 1:
        yield executor
        return
    with Workers(min(jobs, runs)) as workers:
        yield workers


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left on a terminal; stay quiet in a pipe."""
    if total == 0 or not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total)
        yield lambda: bar.advance(task)
