"""The only loop of the package: a study and an oracle, driven to the end, with a progress bar on a terminal."""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
from collections.abc import Iterator

from pzos.answers.oracle import Oracle
from pzos.base.errors import MissingExtra
from pzos.base.types import Query, Response
from pzos.study.result import Record, Result
from pzos.study.study import Study

#: The library's logger: silent unless the program that uses the library configures logging.
logger = logging.getLogger("pzos")
logger.addHandler(logging.NullHandler())
_REFRESH_SECONDS = 0.1


def iterate(study: Study, oracle: Oracle) -> Iterator[Record]:
    """Drive a study to its end, yielding one record per step.

    Progress bars, logging, early stopping and live plots are consumers of this generator.
    """
    while queries := study.ask():
        for response in _responses(study, oracle, queries):
            record = study.receive(response)
            if record is not None:
                yield record


def _responses(study: Study, oracle: Oracle, queries: list[Query]) -> Iterator[Response]:
    """Have the open queries answered.

    A batched follower is asked for the whole batch even where a study that was rebuilt has part of its answers,
    because the last bits of a batched answer depend on the shape of the batch.
    """
    if not oracle.follower.batched:
        return oracle.answer(queries)
    open_now = {query.index for query in queries}
    return (response for response in oracle.answer(study.batch()) if response.index in open_now)


def drive(study: Study, oracle: Oracle, *, progress: bool | None = None) -> Result:
    """Exhaust :func:`iterate` and return the result; Ctrl-C ends the study where it is."""
    logger.debug("start: %s, %r, %r", study.known.name or "unnamed problem", study.solver, study.limits)
    try:
        for _ in watched(iterate(study, oracle), study, progress):
            pass
    except KeyboardInterrupt:
        study.interrupt()
    result = study.result()
    logger.info(
        "%s after %d steps and %d queries: F = %.8g", result.stop.value, result.steps, result.queries, result.value
    )
    return result


def watched(records: Iterator[Record], study: Study, progress: bool | None) -> Iterator[Record]:
    """Pass records through, showing them on a terminal (``progress=None``), always (True) or never (False)."""
    return _with_bar(records, study) if _wanted(progress) else records


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
