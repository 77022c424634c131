"""Answers before, in and after a run: those it begins with, those it keeps in memory, and all of them as a table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pzos.answers.table import Answers
from pzos.base.errors import InvalidInput
from pzos.base.types import Query, Response
from pzos.methods.solver import AnySolver, Task
from pzos.problem.follower import written
from pzos.problem.problem import Known
from pzos.study.events import Events, Row

#: Numbers a run may keep for its answers; 4 million are 32 MB.
_MOST = 4_000_000
_FLOAT_BYTES = 8
Pair = tuple[Query, Response]


def taken_up(solver: AnySolver, task: Task, answers: Answers | None) -> tuple[AnySolver, Task]:
    """Return solver and task of a run that begins with these answers; some may no longer be true."""
    told, old = ((), ()) if answers is None else answers.split(task.known)
    task = replace(task, told=told, old=old)
    if not old:
        return solver, task
    from pzos.methods.leaning import prepared

    return prepared(solver, task)


class Collected:
    """What was asked and answered, in order; nothing any more once it has become too much."""

    def __init__(self) -> None:
        self._pairs: list[Pair] = []
        self._again: list[Row] = []  # what a replay took since, in few words
        self._numbers = 0

    def take(self, queries: Sequence[Query], answers: Sequence[Response | None]) -> None:
        """Add the answered queries of a batch."""
        if not queries or self._numbers > _MOST:
            return
        self._write_out()
        for query, told in zip(queries, answers, strict=True):
            if told is not None:
                self._pairs.append((query, told))
                self._numbers += query.x.size + told.y.size
        if self._numbers > _MOST:
            self._pairs.clear()

    def take_again(self, rows: Sequence[Row]) -> None:
        """Add a batch of a replay, all of it answered and of one size."""
        if self._numbers > _MOST:
            return
        self._again.extend(rows)
        _, _, _, x, y, *_ = rows[0]
        self._numbers += len(rows) * (len(x) + len(y or b"")) // _FLOAT_BYTES
        if self._numbers > _MOST:
            self._pairs.clear()
            self._again.clear()

    def _write_out(self) -> None:
        if self._again:
            self._pairs += [(query, told) for query, told, *_ in Events(self._again) if told is not None]
            self._again.clear()

    def with_open(self, queries: Iterable[Query], answers: Sequence[Response | None]) -> tuple[Pair, ...] | None:
        """Return all so far, what is answered of an open batch included; None if it was too much to keep."""
        if self._numbers > _MOST:
            return None
        self._write_out()
        return (*self._pairs, *((q, told) for q, told in zip(queries, answers, strict=True) if told is not None))


def as_table(pairs: Sequence[Pair] | None, given: Answers | None, known: Known) -> Answers:
    """Return the answers of a run, after those it was begun with; InvalidInput if there are none."""
    if pairs is None:
        raise InvalidInput(
            "result.answers: the run has more answers than are kept in memory: expected a durable one; "
            'solve(..., path="a.study"), then pzos.Answers.open("a.study")'
        )
    width = next((told.y.size for _, told in pairs if not told.failure), 0)
    if not width:
        if given is None:
            raise InvalidInput("result.answers: no query was answered: expected a run that has asked; let it go on")
        return given
    own = Answers(
        np.array([query.x for query, _ in pairs]),
        np.array([np.full(width, np.nan) if told.failure else told.y for _, told in pairs]),
        seconds=[told.seconds for _, told in pairs],
        gap=[told.gap for _, told in pairs],
        failure=[told.failure for _, told in pairs],
        source=known.name or "a run",
        told=time.strftime("%Y-%m-%d"),
        follower=written(known.follower),
        decisions=known.decisions.of(known.dimension),
        responses=known.responses.of(width),
    )
    return own if given is None else given + own
