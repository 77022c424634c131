"""A study is rebuilt from its events alone: same bits here, the stored points where another machine computes others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import Counted, bits, finish, problem
from pzos.base.types import Purpose, Query, Response
from pzos.study.events import Event, difference, event_of

SOLVERS = [pzos.PZOS(batch=2), pzos.ZOS(), pzos.MemoryPZOS(), pzos.SecantPZOS(), pzos.CompositeTrustRegion()]


class Kept:
    """Keeps events in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.open: list[tuple[int, int]] = []
        self.closed = ""

    def asked(self, queries: Sequence[Query]) -> None:
        self.open = [query[:2] for query in queries]

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        self.events.append(Event(query, response, elapsed))

    def append_all(self, told: Sequence[tuple[Query, Response]], elapsed: float) -> None:
        self.events.extend(Event(query, response, elapsed) for query, response in told)

    def close(self, stop: str = "") -> None:
        self.closed = stop


def study(solver: Any, steps: int = 5, **settings: Any) -> pzos.Study:
    return pzos.Study(problem().known(), solver, seed=7, steps=steps, **settings)


def kept_run(solver: Any, steps: int = 5) -> tuple[list[Event], pzos.Result]:
    keeper = Kept()
    with study(solver, steps) as run:
        run.keep(keeper)
        result = finish(run, problem())
    assert keeper.closed == "all steps were taken"
    assert keeper.events[-1].query[:2] in keeper.open
    return keeper.events, result


def nudged(event: Event, by: float = 1e-13) -> Event:
    """Return an event as another machine would have asked it."""
    return event._replace(query=event.query._replace(x=event.query.x * (1.0 + by)))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_events_in_any_order_rebuild_the_study_bit_for_bit(solver: Any) -> None:
    events, expected = kept_run(solver)
    random.Random(0).shuffle(events)
    run = study(solver)
    assert run.replay(events) == 0.0
    assert run.done
    assert bits(run.result()) == bits(expected)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_no_kept_answer_is_asked_again_whatever_is_missing(solver: Any) -> None:
    events, expected = kept_run(solver)
    for gap in range(len(events)):
        run = study(solver)
        run.replay([event for number, event in enumerate(events) if number != gap])
        follower = Counted()
        assert bits(finish(run, problem(follower=follower))) == bits(expected)
        assert follower.calls == 1


def test_a_replay_writes_nothing_to_the_keeper() -> None:
    events, _ = kept_run(SOLVERS[0])
    run, keeper = study(SOLVERS[0]), Kept()
    run.keep(keeper)
    assert run.journal is keeper
    missing = events.pop(2)
    run.replay(events)
    assert keeper.events == []
    assert missing.response is not None
    run.receive(missing.response)
    assert run.done
    assert [(event.query.step, event.query.index) for event in keeper.events] == [(0, 2)]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_stored_points_are_taken_and_the_difference_is_reported(solver: Any) -> None:
    events, expected = kept_run(solver)
    seen: list[float] = []
    run = study(solver)
    largest = run.replay(map(nudged, events), lambda query, stored, apart: seen.append(apart))
    assert run.done
    assert 0.5e-13 < largest < 1e-6
    assert largest == run.difference == max(seen)
    np.testing.assert_allclose(run.result().x, expected.x, rtol=1e-6)
    assert run.result().queries == expected.queries


def test_a_solver_reads_the_answers_at_the_stored_points() -> None:
    class Listening(pzos.PZOS):
        __slots__ = ()

        def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
            told.append(plan.points)
            return super().tell(task, state, plan, answers)

    told: list[tuple[np.ndarray, ...]] = []
    events, _ = kept_run(pzos.PZOS(), steps=1)
    moved = [nudged(event) for event in events]
    run = study(Listening(), steps=1)
    run.replay(moved)
    assert len(told) == 1
    for point, event in zip(told[0], moved, strict=False):
        assert point.tobytes() == event.query.x.tobytes()


def test_a_query_that_was_only_asked_keeps_its_stored_point() -> None:
    asked = study(SOLVERS[0]).ask()
    moved = [nudged(Event(query)) for query in asked]
    run = study(SOLVERS[0])
    run.replay(moved)
    assert [q.x.tobytes() for q in run.ask()] == [event.query.x.tobytes() for event in moved]
    assert run.result().queries == 0


def test_a_difference_can_be_refused() -> None:
    def refuse(query: Query, stored: np.ndarray, apart: float) -> None:
        raise pzos.DifferentStudy(f"{query.step}.{query.index}: {apart:.1e}")

    events, _ = kept_run(SOLVERS[0])
    with pytest.raises(pzos.DifferentStudy, match=r"2\.1: 4\.6e-04"):
        study(SOLVERS[0]).replay(
            [nudged(event, 1e-3) if (event.query.step, event.query.index) == (2, 1) else event for event in events],
            refuse,
        )


def test_the_clock_goes_on_and_the_time_limit_waits_for_the_end() -> None:
    events, _ = kept_run(SOLVERS[0])
    aged = [event._replace(elapsed=100.0 + number) for number, event in enumerate(events)]
    run = study(SOLVERS[0], seconds=50.0)
    run.replay(aged)
    assert run.step == 5, "how long it took is no property of the trajectory"
    assert run.elapsed >= 100.0 + len(events) - 1
    shorter = study(SOLVERS[0], seconds=50.0)
    shorter.replay([event for event in aged if event.query.step < 3])
    assert shorter.step == 3
    assert shorter.done or len(shorter.ask()) == 1
    assert shorter.stop is pzos.Stop.SECONDS


def test_the_closing_answer_of_a_shorter_run_answers_the_iterate_of_a_longer_one() -> None:
    for solver in (pzos.PZOS(batch=2), pzos.ZOS()):
        events, _ = kept_run(solver, steps=2)
        assert events[-1].closing
        run = study(solver, steps=3)
        run.replay(events)
        follower = Counted()
        result = finish(run, problem(follower=follower))
        assert bits(result) == bits(kept_run(solver, steps=3)[1])
        assert follower.calls == result.queries + result.monitoring - len(events)


def test_what_was_kept_is_recognised_by_bits_before_place() -> None:
    x, other = np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])
    answer = Response(4, 0, np.zeros(1))
    query = Query(4, 0, x, Purpose.PROBE)
    exact, near = Event(query, answer), Event(query._replace(x=other), answer)
    closing = Event(Query(4, 0, x + 1.0, Purpose.MONITOR), answer)
    asked = Event(query)
    assert event_of(query, [near, exact]) is exact
    assert event_of(query, [near, closing]) is near
    assert event_of(query, [closing]) is None
    assert event_of(query._replace(purpose=Purpose.ITERATE, index=3), [near, closing]) is closing
    assert event_of(query, [asked, near]) is near, "an answer is worth more than a question"
    assert event_of(query, [asked]) is asked


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [([1.0], [1.0], 0.0), ([0.0], [0.0], 0.0), ([2.0, 4.0], [2.0, 3.0], 0.25), ([1.0], [1.0, 2.0], np.inf)],
)
def test_differences_are_relative_to_the_largest_entry(stored: Any, asked: Any, expected: float) -> None:
    assert difference(np.array(stored), np.array(asked)) == expected
