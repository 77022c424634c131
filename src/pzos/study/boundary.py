"""What every study shows to the outside, whichever way it takes its answers: is it over, ask one, tell, fail, close."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt

from pzos.base.types import Query, Response, Vector
from pzos.methods.solver import Stop
from pzos.study.admission import check_address, told_vector
from pzos.study.events import Keeper
from pzos.study.result import Record, Selection

_UNKNOWN = float("nan")
_EMPTY: Vector = np.empty(0)


class Boundary(ABC):
    """A clock, a file if there is one, and the words ask and tell."""

    _start: float
    _keeper: Keeper | None
    _stop: Stop | None
    _finished: bool
    _selected: Selection
    _step: int
    _handed_out: set[tuple[int, int]]

    # ---- over or not --------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""
        self.ask()
        return self._finished

    @property
    def stop(self) -> Stop:
        """Why the study ended, or RUNNING."""
        return self._selected.ended(self._stop or Stop.RUNNING)

    @property
    def step(self) -> int:
        """How many steps are closed."""
        return self._step

    @property
    def finished(self) -> bool:
        """Whether the study has ended; unlike :attr:`done` this opens no batch."""
        return self._finished

    @property
    def elapsed(self) -> float:
        """How many seconds the study has been going."""
        return time.perf_counter() - self._start

    def set_clock(self, elapsed: float) -> None:
        """Go on as if ``elapsed`` seconds had passed since the start (earlier sessions count)."""
        self._start = time.perf_counter() - elapsed

    @property
    def journal(self) -> Keeper | None:
        """Where answers are kept, if they are."""
        return self._keeper

    def close(self) -> None:
        """Close the file of a durable study; a study in memory has nothing to close."""
        if self._keeper is not None:
            self._keeper.close(self.stop.value if self._finished else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- asking and telling -------------------------------------------------------------------------------

    @abstractmethod
    def ask(self) -> list[Query]:
        """Return the open queries, none if the study is over."""

    @abstractmethod
    def receive(self, response: Response) -> Record | None:
        """Take a response as an oracle gives it."""

    @abstractmethod
    def _own(self, address: Query | Response) -> Query | None:
        """Return the open query that has this address."""

    def ask_one(self) -> Query | None:
        """Return an open query that this did not return before; None as long as answers are missing, or at the end."""
        query = next((query for query in self.ask() if query[:2] not in self._handed_out), None)
        if query is not None:
            self._handed_out.add(query[:2])
        return query

    def tell(
        self, query: Query | Response, y: npt.ArrayLike, *, gap: float = _UNKNOWN, seconds: float = _UNKNOWN
    ) -> Record | None:
        """Take the answer y to ``query``, in any order; returns the record if this closed a step.

        The same answer twice is ignored. A different one, one to a query that is not open, a wrong shape or a
        number that is not finite is an error, and changes nothing.
        """
        check_address(query, self._own)
        return self.receive(Response(query.step, query.index, told_vector(query, y), gap, seconds))

    def fail(self, query: Query | Response, reason: str) -> Record | None:
        """Record that ``query`` will get no answer; the solver goes on with the answers there are."""
        check_address(query, self._own)
        return self.receive(Response(query.step, query.index, _EMPTY, failure=reason or "no reason given"))
