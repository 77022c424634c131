"""A progress bar on a terminal, silence in a pipe."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator

from pzos.base.errors import MissingExtra
from pzos.study.study import Study
from pzos.study.trace import Record

_REFRESH_SECONDS = 0.1


def watched(records: Iterator[Record], study: Study, progress: bool | None) -> Iterator[Record]:
    """Pass records through, showing them on a terminal (``progress=None``), always (True) or never (False)."""
    if not _wanted(progress):
        return records
    return _with_bar(records, study)


def _wanted(progress: bool | None) -> bool:
    installed = importlib.util.find_spec("rich") is not None
    if progress and not installed:
        raise MissingExtra("rich", "cli", "a progress bar")
    return bool(progress) if progress is not None else installed and sys.stderr is not None and sys.stderr.isatty()


def _with_bar(records: Iterator[Record], study: Study) -> Iterator[Record]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        TextColumn("F = {task.fields[value]:.6g}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    limits = study.limits
    totals = {"steps": limits.steps, "queries": limits.queries, "seconds": limits.seconds}
    unit, total = next((unit, total) for unit, total in totals.items() if total is not None)  # there is always one
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        name = study.known.name or type(study.solver).__name__
        task = bar.add_task(name, total=total, unit=unit, value=float("nan"))
        shown_at = 0.0
        for record in records:
            if time.monotonic() - shown_at > _REFRESH_SECONDS:
                shown_at = time.monotonic()
                done = {"steps": record.step + 1, "queries": record.queries, "seconds": record.seconds}[unit]
                bar.update(task, completed=min(done, total), value=record.value)
            yield record
