"""What is kept of a study: one event per query, with the point it was asked at, and how a replay finds it again.

The state of a solver is a pure function of the problem, the seed and the answers, so a study is rebuilt by telling it
its events (:meth:`pzos.Study.replay`). An answer belongs to the point it was asked at. Another machine may compute that
point with other last bits; then the stored point is taken, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, overload

import numpy as np

from pzos.base.errors import InvalidInput
from pzos.base.frames import as_array, as_bytes
from pzos.base.types import CACHED_SECONDS, Purpose, Query, Response, Vector, all_finite

#: (the query asked now, the point it was asked at then, their relative difference)
Differs = Callable[[Query, Vector, float], None]
_AT_ITERATE = (Purpose.ITERATE, Purpose.MONITOR)
_PURPOSES = {purpose.value: purpose for purpose in Purpose}
_MONITOR = Purpose.MONITOR.value
_OPEN = Response(0, 0, np.empty(0))
#: Where an answer is set aside that is known as soon as F is known anywhere.
AT_ONCE = -1


class Event(NamedTuple):
    """One query, its answer or failure (None while it is open), and the study's clock when that was told.

    ``aside`` is None for an event of the run itself. An answer that was asked for on the ground of one that was taken
    back is set aside: it stays true of its point, and is known again once step ``aside`` has been answered anew.
    """

    query: Query
    response: Response | None = None
    elapsed: float = 0.0
    aside: int | None = None

    @property
    def closing(self) -> bool:
        """Whether this is the last query of a study, which asks for F at the last iterate."""
        return is_closing(self.query)


#: An event in few words: step, index, purpose, bits of x, bits of y (None while it is open), gap, seconds, elapsed,
#: failure, retried, aside. A long study has very many, and most are only compared.
Row = tuple[int, int, str, bytes, bytes | None, float, float, float, str, str, int | None]


class Events(Sequence[Event]):
    """Events kept in few words; each is made when it is looked at."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return repr(list(self))

    def __iter__(self) -> Iterator[Event]:
        return map(_event, self.rows)

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> list[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | list[Event]:
        return [_event(row) for row in self.rows[at]] if isinstance(at, slice) else _event(self.rows[at])


def _event(row: Row) -> Event:
    step, index, purpose, x, y, gap, seconds, elapsed, failure, retried, aside = row
    response = None if y is None else Response(step, index, as_array(y), gap, seconds, failure, retried)
    return Event(Query(step, index, as_array(x), _PURPOSES[purpose]), response, elapsed, aside)


def rows_of(events: Iterable[Event]) -> Iterable[Row]:
    """Return events in few words."""
    return events.rows if isinstance(events, Events) else map(_row, events)


def _row(event: Event) -> Row:
    query, response, elapsed, aside = event
    told = response or _OPEN
    asked = query.step, query.index, query.purpose.value, as_bytes(query.x)
    y = None if response is None else as_bytes(told.y)
    return (*asked, y, told.gap, told.seconds, elapsed, told.failure, told.retried, aside)


class Keeper(Protocol):
    """Where a study writes each answer before it takes it."""

    def asked(self, queries: Sequence[Query]) -> None:
        """Hear of the queries of a batch when it is opened."""
        ...

    def issued(self, query: Query) -> None:
        """Hear of a query that has a number of its own; it is kept before the next answer is."""
        ...

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Return when the answer is safe, or raise; one that is kept already is not kept twice."""
        ...

    def append_all(self, told: Sequence[tuple[Query, Response]], elapsed: float) -> None:
        """Return when all these answers are safe, or raise and keep none."""
        ...

    def withdraw(self, step: int, index: int, why: str) -> list[Event]:
        """Write down that an answer was taken back, and return what is then left of the study."""
        ...

    def close(self, stop: str = "") -> None:
        """Let others write; ``stop`` says why the study has ended, if it has."""
        ...


def is_closing(query: Query) -> bool:
    """Tell whether ``query`` is the one that ends a study."""
    return query.purpose is Purpose.MONITOR and query.index == 0


def closes(kept: Sequence[Row]) -> bool:
    """Tell whether nothing but the query that ends a study was kept of a step."""
    return all(row[2] == _MONITOR and row[1] == 0 for row in kept)


def without(events: Sequence[Event], step: int, index: int) -> list[Event]:
    """Return what is left once the answer to query ``step.index`` was taken back; InvalidInput if it has none.

    The query itself is open again. What was asked later, on the ground of that answer, is set aside: answers stay
    known, and open queries go.
    """
    at = place_of(events, step, index)
    if at is None:
        raise InvalidInput(f"query {step}.{index}: has no answer that could be taken back: expected an answered query")
    gone = events[at]
    since, left = _effective(gone), list(events[:at])
    if gone.aside is None:
        left.append(Event(gone.query))
    for event in events[at + 1 :]:  # what depends on an answer was told after it
        if _effective(event) <= since:
            left.append(event)
        elif event.response is not None:
            left.append(event._replace(aside=since))
    return left


def without_later(events: Sequence[Event], step: int, index: int) -> list[Event]:
    """Return the same for a study whose answers come in any order: later is what was asked after it was told."""
    at = place_of(events, step, index)
    if at is None:
        raise InvalidInput(f"query {step}.{index}: has no answer that could be taken back: expected an answered query")
    if events[at].aside is not None:
        return [*events[:at], *events[at + 1 :]]
    before = {event.query.step for event in events[:at] if event.aside is None}
    left = list(events[:at])
    for event in events[at + 1 :]:
        if event.aside is not None or (event.response is not None and event.query.step in before):
            left.append(event)
        elif event.response is not None:
            left.append(event._replace(aside=step))
    return left


def place_of(events: Sequence[Event], step: int, index: int) -> int | None:
    """Return where the answer to ``step.index`` stands: that of the run, else the last one that was set aside."""
    aside = None
    for at in range(len(events) - 1, -1, -1):
        query, response, _, since = events[at]
        if query.index == index and query.step == step and response is not None:
            if since is None:
                return at
            aside = at if aside is None else aside
    return aside


def _effective(event: Event) -> int:
    """Return the last step that does not depend on this answer."""
    return event.query.step if event.aside is None else event.aside


def event_of(query: Query, kept: Sequence[Event]) -> Event | None:
    """Return what was kept of ``query``: the event at the same bits of x, or else at the same place of the step.

    The closing query of a shorter run has the address of the first query of the step that now follows. It answers the
    query at the iterate of that step, wherever that stands in the batch; otherwise it is passed over. What was set
    aside is taken at the same bits only. Answers go before queries that were only asked, later ones before earlier.
    """
    kept = kept[::-1]
    at_address = [event for event in kept if event.query.index == query.index]
    at_iterate = [event for event in kept if query.purpose in _AT_ITERATE and event.query.purpose in _AT_ITERATE]
    same_place = [event for event in at_address if event.closing == is_closing(query)]
    same_bits = [event for event in (*at_address, *at_iterate) if _same_bits(event.query.x, query.x)]
    found = same_bits + [event for event in same_place + at_iterate if event.aside is None]
    return next((event for event in found if event.response is not None), found[0] if found else None)


def usual_answers(
    kept: Sequence[Row], points: Sequence[Vector], purposes: Sequence[Purpose], shape: tuple[int, ...]
) -> list[Vector | None] | None:
    """Return the answers to a whole batch, kept in order, bit for bit and of this shape; None if any is not like that.

    Most batches of a replay are, so this is short: one look at each answer.
    """
    if len(kept) != len(points):
        return None
    answers: list[Vector | None] = []
    for _, index, purpose, x, bits, _, seconds, _, failure, _, aside in kept:
        at = len(answers)
        if index != at or purpose != purposes[at]._value_ or x != points[at].tobytes():
            return None
        if bits is None or aside is not None or failure or seconds == CACHED_SECONDS:
            return None
        y = as_array(bits)
        if y.shape != shape or not all_finite(y):
            return None
        answers.append(y)
    return answers


def _same_bits(a: Vector, b: Vector) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def difference(stored: Vector, asked: Vector, scale: float = 0.0) -> float:
    """Return how far two points are apart, relative to ``scale`` or their largest entry; infinite if of other lengths.

    >>> difference(np.array([2.0, 0.0]), np.array([2.0, 0.5]))
    0.25
    """
    if stored.shape != asked.shape:
        return float("inf")
    apart = float(np.abs(stored - asked).max(initial=0.0))
    return apart / max(scale, float(np.abs(stored).max()), float(np.abs(asked).max())) if apart else 0.0
