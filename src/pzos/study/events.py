"""What is kept of a study: one event per query, with the point it was asked at, and how a replay finds it again.

The state of a solver is a pure function of the problem, the seed and the answers, so a study is rebuilt by telling it
its events (:meth:`pzos.Study.replay`). An answer belongs to the point it was asked at. Another machine may compute that
point with other last bits; then the stored point is taken, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pzos.base.types import Purpose, Query, Response, Vector

_AT_ITERATE = (Purpose.ITERATE, Purpose.MONITOR)


class Event(NamedTuple):
    """One query, its answer or failure (None while it is open), and the study's clock when that was told."""

    query: Query
    response: Response | None = None
    elapsed: float = 0.0

    @property
    def closing(self) -> bool:
        """Whether this is the last query of a study, which asks for F at the last iterate."""
        return is_closing(self.query)


class Keeper(Protocol):
    """Where a study writes each answer before it takes it."""

    def asked(self, queries: Sequence[Query]) -> None:
        """Hear of the queries of a batch when it is opened."""
        ...

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Return when the answer is safe, or raise."""
        ...

    def close(self, stop: str = "") -> None:
        """Let others write; ``stop`` says why the study has ended, if it has."""
        ...


def is_closing(query: Query) -> bool:
    """Tell whether ``query`` is the one that ends a study."""
    return query.purpose is Purpose.MONITOR and query.index == 0


def event_of(query: Query, kept: Sequence[Event]) -> Event | None:
    """Return what was kept of ``query``: the event at the same bits of x, or else at the same place of the step.

    The closing query of a shorter run has the address of the first query of the step that now follows. It answers the
    query at the iterate of that step, wherever that stands in the batch; otherwise it is passed over. Answers go
    before queries that were only asked.
    """
    at_address = [event for event in kept if event.query.index == query.index]
    at_iterate = [event for event in kept if query.purpose in _AT_ITERATE and event.query.purpose in _AT_ITERATE]
    same_place = [event for event in at_address if event.closing == is_closing(query)]
    same_bits = [event for event in (*at_address, *at_iterate) if _same_bits(event.query.x, query.x)]
    found = same_bits + same_place + at_iterate
    return next((event for event in found if event.response is not None), found[0] if found else None)


def _same_bits(a: Vector, b: Vector) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def difference(stored: Vector, asked: Vector) -> float:
    """Return how far two points are apart, relative to the larger entry of either; infinite if of other lengths.

    >>> difference(np.array([2.0, 0.0]), np.array([2.0, 0.5]))
    0.25
    """
    if stored.shape != asked.shape:
        return float("inf")
    apart = float(np.abs(stored - asked).max(initial=0.0))
    return apart / max(float(np.abs(stored).max()), float(np.abs(asked).max())) if apart else 0.0
