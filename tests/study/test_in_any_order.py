"""A study whose answers come in any order: limits, failures, files, kills, answers taken back."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import DamagedStudy, DifferentStudy, InvalidAnswer, InvalidInput
from pzos.base.frames import scan
from pzos.durable.log import read_study, recover
from pzos.study.events import Event
from pzos.study.in_any_order import InAnyOrder

A = np.random.default_rng(0).standard_normal((4, 6)) / np.sqrt(6.0)
LEADER = pzos.leader_from_functions(
    lambda x, y: float(((y - 1.0) ** 2).sum() + 0.1 * x @ x), lambda x, y: 0.2 * x, lambda x, y: 2 * (y - 1.0)
)
SOLVER = pzos.CompositeTrustRegion()


def respond(x):
    return np.tanh(A @ x) + 0.3 * (A @ x)


PROBLEM = pzos.Problem(LEADER, respond, np.full(6, 0.2))


def study_of(path=None, **settings):
    settings = {"order": "told", "queries": 24, **settings}
    if path is None:
        return pzos.Study(PROBLEM.known(), SOLVER, **settings)
    return pzos.Study.open(path, PROBLEM.known(), SOLVER, **settings)


def drive(study, workers=4, seed=0, answers=1000, asked=None):
    """Answer queries in a random order, as many as ``answers``; returns the bits of every point that was answered."""
    rng, told = np.random.default_rng(seed), []
    waiting = study.ask()
    for _ in range(answers):
        while len(waiting) < workers and (query := study.ask_one()) is not None:
            waiting.append(query)
        if not waiting or study.finished:
            break
        query = waiting.pop(int(rng.integers(len(waiting))))
        study.tell(query, respond(query.x))
        told.append(query.x.tobytes())
    return told


def bits(study):
    result = study.result()
    return result.x.tobytes(), result.best_x.tobytes(), result.queries, result.trace["value"].tobytes()


def test_every_query_is_an_address_of_its_own():
    study = study_of()
    queries = [study.ask_one() for _ in range(5)]
    assert isinstance(study, InAnyOrder)
    assert [query[:2] for query in queries] == [(number, 0) for number in range(5)]
    assert study.ask() == queries
    study.tell(queries[3], respond(queries[3].x))
    assert [query.step for query in study.ask()] == [0, 1, 2, 4]


def test_the_loop_of_the_documentation_works_as_it_is():
    study = study_of()
    while not study.done:
        for query in study.ask():
            study.tell(query, respond(query.x))
    alone = pzos.Study(PROBLEM.known(), SOLVER, queries=24)
    while not alone.done:
        for query in alone.ask():
            alone.tell(query, respond(query.x))
    assert bits(study) == bits(alone)  # one at a time there is only one order


def test_a_solver_that_cannot_propose_waits_for_its_batch():
    study = pzos.Study(PROBLEM.known(), pzos.PZOS(), order="told", steps=2)
    queries = [study.ask_one() for _ in range(4)]
    assert study.order == "asked"
    assert [query and query[:2] for query in queries] == [(0, 0), (0, 1), (0, 2), None]
    for query in queries[:3]:
        study.tell(query, respond(query.x))
    assert study.ask_one()[:2] == (1, 0)


def test_an_order_there_is_not_is_refused():
    with pytest.raises(InvalidInput, match=r"order = 'random': expected"):
        study_of(order="random")


@pytest.mark.parametrize("limit", [{"queries": 9}, {"steps": 9, "queries": None}])
def test_no_more_queries_are_issued_than_allowed(limit):
    study = study_of(**limit)
    queries = [study.ask_one() for _ in range(12)]
    assert queries[9:] == [None] * 3
    assert not study.done  # nine answers are still to come
    for query in reversed(queries[:9]):
        assert not study.finished
        study.tell(query, respond(query.x))
    assert study.done
    assert study.stop is (pzos.Stop.QUERIES if limit["queries"] else pzos.Stop.STEPS)
    assert study.result().queries == 9


def test_a_target_ends_the_study_at_once():
    study = study_of(target=1e9)
    first, second = study.ask_one(), study.ask_one()
    study.tell(first, respond(first.x))
    assert study.ask_one() is None
    assert study.done
    assert study.stop is pzos.Stop.TARGET
    assert study.ask() == []
    assert second is not None


def test_failures_are_counted_and_too_many_end_the_study():
    study = study_of()
    for number in range(5):
        query = study.ask_one()
        record = study.fail(query, f"no answer {number}")
        assert np.isnan(record.value)
    assert study.ask_one() is None
    assert study.done
    assert study.stop is pzos.Stop.FAILURES
    assert study.result().failures == 5


def test_what_cannot_be_taken_changes_nothing():
    study = study_of()
    first, second = study.ask_one(), study.ask_one()
    with pytest.raises(InvalidAnswer, match=r"query 7\.0: expected an open query \(open are 0\.0, 1\.0\)"):
        study.receive(pzos.Response(7, 0, np.zeros(4)))
    with pytest.raises(InvalidAnswer, match="x is another point"):
        study.tell(first._replace(x=second.x), respond(first.x))
    with pytest.raises(InvalidAnswer, match="finite"):
        study.tell(second, np.full(4, np.nan))
    study.tell(second, respond(second.x))
    assert study.tell(second, respond(second.x)) is None  # the same once more
    with pytest.raises(InvalidAnswer, match="already answered differently"):
        study.tell(second, 2.0 * respond(second.x))
    with pytest.raises(InvalidAnswer, match="4, as in earlier answers"):
        study.tell(first, np.zeros(3))
    assert study.ask() == [first]
    assert study.result().queries == 1


def test_an_interrupted_study_gives_what_it_has():
    study = study_of()
    drive(study, answers=6)
    study.interrupt()
    assert study.done
    assert study.result().stop is pzos.Stop.INTERRUPTED
    assert study.result().queries == 6


# ---- in a file --------------------------------------------------------------------------------------------------


def test_a_file_replays_to_the_same_bits(tmp_path):
    with study_of(tmp_path / "a.study") as study:
        drive(study)
        before = bits(study)
    with study_of(tmp_path / "a.study") as again:
        assert bits(again) == before
        assert again.done


@pytest.mark.parametrize("cut", range(1, 24, 3))
def test_a_killed_run_goes_on_and_no_answer_is_asked_again(tmp_path, cut):
    path = tmp_path / "a.study"
    study = study_of(path)
    told = drive(study, answers=cut)
    state, still_open = study.state, [query.x.tobytes() for query in study.ask()]
    study.journal._finalizer()  # the lock goes with the process: no frame is written
    with study_of(path) as again:
        assert again.state.x.tobytes() == state.x.tobytes()
        np.testing.assert_equal(again.state.radius, state.radius)
        assert again.queries == cut
        kept = [query.x.tobytes() for query in again.ask()]
        assert set(kept) <= {*still_open} | {query.x.tobytes() for query in again.ask()[-1:]}
        more = drive(again, workers=3, seed=1)
        assert not set(more) & set(told)
        assert len(told) + len(more) == 24
        before = bits(again)
    with study_of(path, read_only=True) as looked_at:
        assert bits(looked_at) == before


def test_queries_that_were_handed_out_can_be_answered_in_a_later_session(tmp_path):
    path = tmp_path / "a.study"
    with study_of(path) as study:
        forms = [study.ask_one() for _ in range(5)]
    with study_of(path) as study:
        assert [query.x.tobytes() for query in study.ask()] == [query.x.tobytes() for query in forms]
        study.tell(forms[3], respond(forms[3].x))
    with study_of(path) as study:
        assert [query.step for query in study.ask()] == [0, 1, 2, 4]
        study.tell(forms[4], respond(forms[4].x))
        assert study.ask_one().step == 5


def test_the_order_is_part_of_the_study(tmp_path):
    with study_of(tmp_path / "a.study") as study:
        drive(study, answers=3)
    with pytest.raises(DifferentStudy, match="order"):
        study_of(tmp_path / "a.study", order="asked")


@pytest.mark.parametrize("number", [0, 5, 11])
def test_an_answer_that_is_taken_back_takes_back_what_was_asked_after_it(tmp_path, number):
    path = tmp_path / "a.study"
    with study_of(path) as study:
        drive(study, answers=20)
        study.withdraw(pzos.Response(number, 0, np.empty(0)), "a typing error")
        assert number in [query.step for query in study.ask()]
        standing, aside = study.queries, read_study(path).aside
        assert standing + aside == 19
        query = next(query for query in study.ask() if query.step == number)
        study.tell(query, respond(query.x))
        drive(study, seed=3)
        before = bits(study)
    with study_of(path) as again:
        assert bits(again) == before


def test_an_answer_is_taken_back_before_the_start_is_answered(tmp_path):
    with study_of(tmp_path / "a.study") as study:
        queries = [study.ask_one() for _ in range(3)]
        study.tell(queries[1], respond(queries[1].x))
        later = study.ask_one()
        study.tell(later, respond(later.x))
        study.withdraw(queries[1])
        study.tell(queries[1], respond(queries[1].x))  # with it comes what was set aside
        drive(study)
        before = bits(study)
    with study_of(tmp_path / "a.study") as again:
        assert bits(again) == before


def damage(path, *numbers):
    """Spoil frames of a file, each in its last byte."""
    data = bytearray(path.read_bytes())
    frames = list(scan(bytes(data)))
    for number in numbers:
        data[frames[number].end - 1] ^= 1
    path.write_bytes(bytes(data))
    return frames


@pytest.mark.parametrize("lost", [(2,), (3,), (9,), (20,), (21,), (30,), (12, 25)])
def test_a_damaged_file_keeps_what_came_before_and_knows_what_came_after(tmp_path, lost):
    path, saved = tmp_path / "a.study", tmp_path / "saved.study"
    with study_of(path) as study:
        told = drive(study, answers=20)
    damage(path, *lost)
    with pytest.raises(DamagedStudy, match=r"the header and (18|19|20) answers are intact: save them with"):
        study_of(path)
    found = recover(path, saved)
    assert found.header
    assert found.lost == len(lost)
    assert found.answers + found.known >= 20 - len(lost)
    kept = read_study(saved)
    assert kept.lost == len(lost)
    known = {event.query.x.tobytes() for event in kept.events if event.response is not None}
    assert known <= set(told)
    with study_of(saved) as again:
        assert again.queries == found.answers
        more = drive(again, seed=2)
        if found.answers:  # else not even the start is known to have been asked
            assert not known & set(more)
        before = bits(again)
        assert again.done
    with study_of(saved) as once_more:
        assert bits(once_more) == before


@pytest.mark.parametrize("again_at", [9, 30, 50])
def test_a_recovered_file_can_be_damaged_again(tmp_path, again_at):
    path, saved, again = (tmp_path / name for name in ("a.study", "b.study", "c.study"))
    with study_of(path) as study:
        drive(study, answers=20)
    damage(path, 25)
    recover(path, saved)
    with study_of(saved) as study:
        drive(study, answers=2, seed=1)
    damage(saved, again_at)
    found = recover(saved, again)
    assert found.lost == 2
    assert read_study(again).lost == 2
    with study_of(again) as study:
        drive(study, seed=2)
        before = bits(study)
    with study_of(again) as study:
        assert bits(study) == before


def test_a_study_in_memory_cannot_take_answers_back():
    study = study_of()
    drive(study, answers=3)
    with pytest.raises(InvalidInput, match="durable"):
        study.withdraw(pzos.Response(0, 0, np.empty(0)))


def test_points_of_another_machine_are_taken_as_they_are_stored():
    study = study_of()
    queries = [study.ask_one() for _ in range(3)]
    moved = [query._replace(x=query.x * (1.0 + 1e-15)) for query in queries]
    events = [Event(query) for query in moved]
    events += [Event(query, pzos.Response(query.step, 0, respond(query.x))) for query in moved[::-1]]
    again = study_of()
    assert 0.0 < again.replay(events) < 1e-14
    assert again.queries == 3
    assert {row.tobytes() for row in again.state.past.points} == {query.x.tobytes() for query in moved}
