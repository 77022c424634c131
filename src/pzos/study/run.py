"""The only loop of the package: a study and an oracle, driven to the end, with a progress bar on a terminal.

Ctrl-C is heard at once while followers answer. While a study keeps its books it is heard right after, so that whatever
was answered is counted and the result is true; only a second Ctrl-C does not wait.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from pzos.answers.oracle import Oracle
from pzos.base.errors import InvalidAnswer, MissingExtra
from pzos.base.types import Query, Response
from pzos.methods.solver import Stop
from pzos.study.result import Record, Result
from pzos.study.study import Study

#: The library's logger: silent unless the program that uses the library configures logging.
logger = logging.getLogger("pzos")
logger.addHandler(logging.NullHandler())
_REFRESH_SECONDS = 0.1
Callback = Callable[[Record], object]


class CtrlC:
    """Ctrl-C between ``with CtrlC() as ctrl_c:`` and its end; inside another one, in the same thread, it is that one.

    Where signals cannot be had (in other threads, or where a program has its own ideas about them) nothing changes.
    """

    _active = threading.local()

    def __init__(self) -> None:
        self.heard = False
        self._listening = False
        self._before: Any = None

    def __enter__(self) -> CtrlC:
        outer: CtrlC | None = getattr(self._active, "ctrl_c", None)
        if outer is not None:
            return outer
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._hear)
            self._active.ctrl_c = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._active.ctrl_c = None
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, *_: object) -> None:
        if self._listening or self.heard:
            raise KeyboardInterrupt
        self.heard = True

    def next(self, answers: Iterator[list[Response]]) -> list[Response] | None:
        """Wait for the next answers; None after the last ones."""
        self._listening = True
        try:
            if self.heard:
                raise KeyboardInterrupt
            return next(answers, None)
        finally:
            self._listening = False


def iterate(study: Study, oracle: Oracle, workers: Callable[[], int] = lambda: 1) -> Iterator[Record]:
    """Drive a study to its end, yielding one record per step; ``workers`` says how many may be kept busy at a time.

    Progress bars, logging, early stopping and live plots are consumers of this generator.
    """
    return _records(study, oracle, CtrlC(), workers)


def _records(study: Study, oracle: Oracle, ctrl_c: CtrlC, workers: Callable[[], int]) -> Iterator[Record]:
    oracle.judge = study.check
    while queries := study.ask():
        answers = _answers(oracle, queries) if study.order == "asked" else _one_by_one(study, oracle, queries, workers)
        while (together := ctrl_c.next(answers)) is not None:
            if study.journal is not None and len(together) > 1:
                with contextlib.suppress(InvalidAnswer):  # said below, when the one at fault is received
                    study.keep_together(together)
            for response in together:
                record = study.receive(response)
                if record is not None:
                    yield record


def _answers(oracle: Oracle, queries: list[Query]) -> Iterator[list[Response]]:
    """Have the open queries answered, one after the other, or as one by a batched follower.

    The last bits of a batched answer depend on the shape of the batch, so its answers are kept together: a run that
    was killed has all of them or none.
    """
    if oracle.follower.batched:
        yield list(oracle.answer(queries))
    else:
        for response in oracle.answer(queries):
            yield [response]


def _one_by_one(
    study: Study, oracle: Oracle, queries: list[Query], workers: Callable[[], int]
) -> Iterator[list[Response]]:
    """Have the open queries answered, and one more whenever a worker is free; nothing waits for anything else."""
    waiting = deque(queries)
    for response in oracle.answer_all(lambda: waiting.popleft() if waiting else study.ask_one(), workers):
        yield [response]
        if study.finished:  # what is still being computed is of no use any more
            return


def drive(
    study: Study,
    oracle: Oracle,
    *,
    progress: bool | None = None,
    workers: Callable[[], int] = lambda: 1,
    callback: Callback | None = None,
) -> Result:
    """Exhaust :func:`iterate` and return the result; Ctrl-C ends the study where it is, and so does ``callback``.

    It hears of every step by its record, and ends the study by returning True or raising StopIteration.
    """
    logger.debug("start: %s, %r, %r", study.known.name or "unnamed problem", study.solver, study.limits)
    with CtrlC() as ctrl_c:
        try:
            for record in watched(_records(study, oracle, ctrl_c, workers), study, progress):
                if callback is not None and _ends(callback, record):
                    study.interrupt(Stop.CALLBACK)
                    break
        except KeyboardInterrupt:
            ctrl_c.heard = True
            study.interrupt()
        result = study.result()
    logger.info(
        "%s after %d steps and %d queries: F = %.8g", result.stop.value, result.steps, result.queries, result.value
    )
    return result


def _ends(callback: Callback, record: Record) -> bool:
    try:
        return callback(record) is True
    except StopIteration:
        return True


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
