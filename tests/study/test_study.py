"""What a study promises to whoever asks and tells: idempotent asks, any order, errors that change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from instances import LEADER, START, cost, cost_x, cost_y, problem, response
from pzos import Stop
from pzos.base.errors import InvalidAnswer, InvalidInput, InvalidLeader
from pzos.base.types import Purpose, Query, Response
from pzos.methods.estimators import Plan
from pzos.methods.solver import Outcome

SOLVER = pzos.PZOS(step=0.02, radius=0.1)


def study(solver: Any = SOLVER, **settings: Any) -> pzos.Study:
    return pzos.Study(problem().known(), solver, **{"steps": 3, **settings})


def finish(run: pzos.Study) -> pzos.Result:
    while not run.done:
        for query in run.ask():
            run.tell(query, response(query.x))
    return run.result()


def snapshot(run: pzos.Study) -> tuple[Any, ...]:
    """Return everything visible about a study."""
    result = run.result()
    counts = (result.queries, result.monitoring, result.failures, result.steps, result.stop, len(result.trace))
    return (*counts, result.x.tobytes(), result.best_x.tobytes(), [(q.step, q.index, q.x.tobytes()) for q in run.ask()])


# ---- asking ------------------------------------------------------------------------------------------------


def test_asking_again_gives_the_same_queries_less_those_answered() -> None:
    run = study()
    first = run.ask()
    assert [(q.step, q.index) for q in first] == [(0, 0), (0, 1), (0, 2)]
    assert all(a is b for a, b in zip(first, run.ask(), strict=True))
    assert not run.done
    run.tell(first[1], response(first[1].x))
    assert [q.index for q in run.ask()] == [0, 2]
    assert [q.index for q in run.batch()] == [0, 1, 2]
    first.clear()
    assert len(run.ask()) == 2, "the list handed out is the caller's own"


def test_the_points_handed_out_are_read_only() -> None:
    for solver in (pzos.PZOS(), pzos.ZOS()):
        run = study(solver)
        while not run.done:
            for query in run.ask():
                with pytest.raises(ValueError, match="read-only"):
                    query.x[0] = 9.0
                run.tell(query, response(query.x))


def test_a_query_reads_well() -> None:
    assert repr(study().ask()[0]) == "Query(0.0, iterate, x of length 5)"


def test_a_finished_study_asks_nothing() -> None:
    run = study()
    finish(run)
    assert run.done
    assert run.ask() == []
    assert run.stop is Stop.STEPS


# ---- telling -----------------------------------------------------------------------------------------------


def test_a_record_comes_back_when_a_step_closes() -> None:
    run = study()
    records = [run.tell(query, response(query.x)) for query in run.ask()]
    assert records[:2] == [None, None]
    closed = records[2]
    assert closed is not None
    assert (closed.step, closed.queries, closed.monitoring) == (0, 3, 0)
    assert closed.value == cost(START, response(START))
    np.testing.assert_array_equal(closed.x, START)
    assert run.step == 1


def test_the_same_answer_twice_is_ignored() -> None:
    run = study()
    query = run.ask()[0]
    run.tell(query, response(query.x))
    before = snapshot(run)
    assert run.tell(query, list(response(query.x))) is None
    assert snapshot(run) == before
    run.fail(run.ask()[0], "broken")
    assert run.failures == 1
    run.fail(run.batch()[1], "broken")
    assert run.failures == 1


def test_the_answer_is_copied() -> None:
    run = study(steps=1)
    y = np.empty(4)
    for query in run.ask():
        y[:] = response(query.x)
        run.tell(query, y)
    for query in run.ask():
        run.tell(query, response(query.x))
    np.testing.assert_array_equal(run.result().x, finish(study(steps=1)).x)
    y[0] = 1.0  # still the caller's own, and writable


def wrong_answers() -> dict[str, tuple[Any, Any, str]]:
    """Return, by name: which query, which answer, and what the error says. Query 0.0 is answered, 0.1 is open."""
    good = response(START)
    return {
        "different": (0, good + 1e-15 + 1, r"query 0\.0: was already answered differently.*pzos\.seeded"),
        "failed after all": (0, None, r"query 0\.0: was already answered differently"),
        "wrong length": (1, [1.0, 2.0], r"query 0\.1: y has 2 entries: expected 4, as in earlier answers"),
        "matrix": (1, np.ones((2, 2)), r"query 0\.1: y has shape \(2, 2\): expected a vector"),
        "empty": (1, [], r"query 0\.1: y has shape \(0,\): expected a vector"),
        "not a number": (1, [0, np.nan, 0, 0], r"query 0\.1: y\[1\] = nan: expected finite numbers.*study\.fail"),
        "infinite": (1, [0, 0, 0, -np.inf], r"query 0\.1: y\[3\] = -inf: expected finite"),
        "text": (1, "high", r"query 0\.1: y = 'high': expected a vector of numbers"),
        "none": (1, [None] * 4, r"query 0\.1: y = .*expected a vector of numbers \(None is not a number\)"),
        "complex": (1, good * 1j, r"query 0\.1: y = .*complex128"),
        "stale": (Query(5, 0, START), good, r"query 5\.0: expected an open query \(step 0 is open\)"),
        "no such index": (Query(0, 7, START), good, r"query 0\.7: expected an open query"),
        "negative index": (Query(0, -1, START), good, r"query 0\.-1: expected an open query"),
        "another point": (Query(0, 1, START + 1), good, r"query 0\.1: x is another point than this study asks about"),
        "no query": ("0.1", good, r"query = '0\.1': expected a Query; pass one that study\.ask\(\) returned"),
    }


@pytest.mark.parametrize("name", wrong_answers())
def test_a_wrong_answer_is_an_error_and_changes_nothing(name: str) -> None:
    run = study()
    asked = run.ask()
    run.tell(asked[0], response(asked[0].x))
    before = snapshot(run)
    which, y, message = wrong_answers()[name]
    query = asked[which] if isinstance(which, int) else which
    with pytest.raises(InvalidAnswer, match=message):
        run.fail(query, "no") if y is None else run.tell(query, y)
    assert snapshot(run) == before
    np.testing.assert_array_equal(finish(run).x, finish(study()).x)


def test_an_answer_to_a_closed_step_is_stale() -> None:
    run = study(steps=1, monitor=False)
    queries = run.ask()
    finish(run)
    with pytest.raises(InvalidAnswer, match=r"query 0\.0: expected an open query \(no query is open\)"):
        run.tell(queries[0], response(queries[0].x))


def test_an_equal_query_made_elsewhere_will_do() -> None:
    """A cluster sends back (step, index), with or without the point."""
    run = study(steps=1, monitor=False)
    for query in run.ask():
        if query.index:
            run.tell(Query(query.step, query.index, query.x.copy()), response(query.x))
        else:
            run.receive(Response(query.step, query.index, response(query.x)))
    np.testing.assert_array_equal(run.result().x, finish(study(steps=1)).x)


@pytest.mark.parametrize("solver", [pzos.PZOS(), pzos.ZOS()])
def test_an_error_of_the_leader_leaves_the_study_as_it_was(solver: Any) -> None:
    broken = [True]

    def moody(x: Any, y: Any) -> float:
        return float("nan") if broken[0] else cost(x, y)

    known = pzos.Problem(pzos.leader_from_functions(moody, cost_x, cost_y), response, START).known()
    run = pzos.Study(known, solver, steps=2)
    *early, last = run.ask()
    for query in early:
        run.tell(query, response(query.x))
    before = snapshot(run)
    with pytest.raises(InvalidLeader, match=r"^step 0: leader: f\(x, y\) = nan"):
        run.tell(last, response(last.x))
    assert snapshot(run) == before
    broken[0] = False
    np.testing.assert_array_equal(finish(run).x, finish(study(solver, steps=2)).x)


def test_an_error_at_the_last_monitoring_query_leaves_it_open() -> None:
    moods: list[float] = []

    def moody(x: Any, y: Any) -> float:
        return moods.pop() if moods else cost(x, y)

    run = pzos.Study(
        pzos.Problem(pzos.leader_from_functions(moody, cost_x, cost_y), response, START).known(), SOLVER, steps=1
    )
    for query in run.ask():
        run.tell(query, response(query.x))
    (final,) = run.ask()
    assert final.purpose is Purpose.MONITOR
    moods.append(float("nan"))
    with pytest.raises(InvalidLeader):
        run.tell(final, response(final.x))
    assert run.ask() == [final]
    assert run.monitoring == 0
    run.tell(final, response(final.x))
    assert run.done
    assert run.result().value == cost(final.x, response(final.x))


def test_failures_are_counted_and_told_about() -> None:
    run = study(steps=2)
    run.fail(run.ask()[0], "")
    result = finish(run)
    assert result.failures == 1
    assert "failed queries" in result.table()
    assert np.isnan(result.trace["value"][0])
    assert np.isnan(result.trace["gradient_norm_squared"][0])
    assert result.trace["step_size"][0] == 0.0


def test_a_failed_last_monitoring_query_ends_the_study_without_f() -> None:
    run = study(steps=1)
    for query in run.ask():
        run.tell(query, response(query.x))
    run.fail(run.ask()[0], "closed for the night")
    assert run.done
    assert np.isnan(run.result().value)
    assert repr(run.result()).startswith("F = ? (x itself was not asked about)")


# ---- monitoring --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [pzos.PZOS(batch=2), pzos.ZOS(batch=2)])
def test_monitoring_is_counted_apart_and_changes_no_bit(solver: Any) -> None:
    seen, blind = finish(study(solver)), finish(study(solver, monitor=False))
    np.testing.assert_array_equal(seen.x, blind.x)
    np.testing.assert_array_equal(seen.random_x, blind.random_x)
    np.testing.assert_array_equal(seen.trace["gradient_norm_squared"][:3], blind.trace["gradient_norm_squared"])
    assert seen.queries == blind.queries
    assert blind.monitoring == 0
    assert seen.monitoring == (1 if isinstance(solver, pzos.PZOS) else 4)
    assert seen.value == cost(seen.x, response(seen.x))
    assert np.isnan(blind.value)


def test_monitored_values_are_f_at_the_iterates() -> None:
    result = finish(study(pzos.ZOS()))
    run, expected = study(pzos.ZOS()), []
    while not run.done:
        expected.append(cost(run.state.x, response(run.state.x)))
        for query in run.ask():
            run.tell(query, response(query.x))
    np.testing.assert_array_equal(result.trace["value"], expected)
    assert np.isnan(finish(study(pzos.ZOS(), monitor=False)).trace["value"]).all()


def test_a_solver_that_asks_at_its_iterate_is_not_monitored_twice() -> None:
    assert [q.purpose for q in study(pzos.PZOS()).ask()] == [Purpose.ITERATE, Purpose.PROBE, Purpose.PROBE]
    assert [q.purpose for q in study(pzos.ZOS()).ask()] == [Purpose.PROBE, Purpose.PROBE, Purpose.MONITOR]


# ---- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", range(1, 14))
@pytest.mark.parametrize("solver", [pzos.PZOS(), pzos.ZOS(batch=2)])
def test_the_query_budget_is_never_exceeded(solver: Any, budget: int) -> None:
    result = finish(study(solver, steps=None, queries=budget))
    per_step = 3 if isinstance(solver, pzos.PZOS) else 4
    assert result.nfev <= budget  # with what is asked to watch it
    assert result.queries % per_step == 0
    assert budget - result.nfev < per_step + 2  # and no step that could be paid for is left out
    assert result.stop is Stop.QUERIES


def test_steps_and_queries_whichever_comes_first() -> None:
    assert finish(study(steps=2, queries=100)).stop is Stop.STEPS
    assert finish(study(steps=9, queries=5)).stop is Stop.QUERIES


def test_without_any_limit_a_thousand_steps_are_taken() -> None:
    run = pzos.Study(problem().known(), SOLVER)
    assert run.limits.steps == 1000
    assert pzos.Study(problem().known(), SOLVER, target=0.0).limits.steps == 1000
    assert pzos.Study(problem().known(), SOLVER, queries=10).limits.steps is None


def test_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("pzos.study.boundary.time.perf_counter", lambda: now[0])
    run = study(steps=None, seconds=5.0)
    for query in run.ask():
        run.tell(query, response(query.x))
        now[0] += 1.0
    assert not run.done
    for query in run.ask():
        now[0] += 1.0
        run.tell(query, response(query.x))
    for query in run.ask():  # the last monitoring query
        run.tell(query, response(query.x))
    assert run.done
    assert run.stop is Stop.SECONDS
    assert run.result().seconds == 6.0
    assert run.result().steps == 2


@pytest.mark.parametrize("solver", [pzos.PZOS(step=0.05, radius=0.05), pzos.ZOS(step=0.05, radius=0.05)])
def test_target_in_both_senses(solver: Any) -> None:
    start = cost(START, response(START))
    down = pzos.solve(problem(), solver, target=start - 0.1, steps=500)
    assert down.stop is Stop.TARGET
    assert down.best_value <= start - 0.1
    assert down.steps < 500
    turned = pzos.leader_from_functions(
        lambda x, y: -cost(x, y), lambda x, y: -cost_x(x, y), lambda x, y: -cost_y(x, y)
    )
    up = pzos.solve(pzos.Problem(turned, response, START, sense="max"), solver, target=0.1 - start, steps=500)
    assert up.stop is Stop.TARGET
    assert up.steps == down.steps


def test_a_target_reached_in_the_last_step_is_the_reason() -> None:
    start = cost(START, response(START))
    assert finish(study(steps=1, target=start)).stop is Stop.TARGET


# ---- the iterates a study remembers ------------------------------------------------------------------------


def test_the_best_seen_is_the_best_of_the_trace() -> None:
    for sense, pick in (("min", np.argmin), ("max", np.argmax)):
        run = pzos.Study(problem(sense=sense).known(), pzos.ZOS(step=0.3, radius=0.1), steps=30, seed=2)
        points = [run.state.x]
        while not run.done:
            for query in run.ask():
                run.tell(query, response(query.x))
            points.append(run.state.x)
        result = run.result()
        at = int(pick(result.trace["value"]))
        assert result.best_value == result.trace["value"][at]
        np.testing.assert_array_equal(result.best_x, points[at])
        np.testing.assert_array_equal(result.x, points[30])


def test_the_papers_output_is_one_of_the_iterates() -> None:
    for seed in range(20):
        run = study(steps=7, seed=seed, monitor=False)
        points = []
        while not run.done:
            points.append(run.state.x)
            for query in run.ask():
                run.tell(query, response(query.x))
        result = run.result()
        assert 0 <= result.random_step < 7
        np.testing.assert_array_equal(result.random_x, points[result.random_step])


def test_results_are_snapshots_with_arrays_of_their_own() -> None:
    run = study()
    for query in run.ask():
        run.tell(query, response(query.x))
    early = run.result()
    assert early.stop is Stop.RUNNING
    early.x[:] = early.best_x[:] = early.random_x[:] = np.nan
    final = finish(run)
    assert len(early.trace) == 1
    np.testing.assert_array_equal(final.x, finish(study()).x)
    assert np.isfinite(final.best_x).all()


# ---- interruption ------------------------------------------------------------------------------------------


def test_interrupting_counts_what_was_answered_and_uses_it_not() -> None:
    run = study(pzos.ZOS())
    for query in run.ask():
        run.tell(query, response(query.x))
    x = run.state.x
    for query in run.ask()[1:]:
        run.tell(query, response(query.x))
    assert (run.result().queries, run.result().monitoring) == (3, 2)
    run.interrupt()
    result = run.result()
    assert run.done
    assert run.ask() == []
    assert (result.queries, result.monitoring, result.steps) == (3, 2, 1)
    assert result.stop is Stop.INTERRUPTED
    np.testing.assert_array_equal(result.x, x)


def test_a_finished_study_cannot_be_interrupted() -> None:
    run = study()
    finish(run)
    run.interrupt()
    assert run.stop is Stop.STEPS


# ---- bad arguments -----------------------------------------------------------------------------------------


def test_a_problem_is_refused_because_a_study_never_sees_the_follower() -> None:
    with pytest.raises(InvalidInput, match=r"known = .*pass problem\.known\(\): a study never sees the follower"):
        pzos.Study(problem(), SOLVER)  # type: ignore[arg-type]
    assert set(problem().known().follower or {}) <= {"kind", "name", "code", "python", "unknown"}, "words about it only"


def test_all_faults_of_a_study_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        pzos.Study(3, "PZOS", seed=-1, steps=0, queries=2.5, seconds="long", target=np.nan)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith("Study: 7 faults")
    for part in (
        "known = 3",
        "solver = 'PZOS'",
        "seed = -1",
        "steps = 0",
        "queries = 2.5",
        "seconds = 'long'",
        "target = nan",
    ):
        assert part in message


def test_the_class_is_not_the_solver() -> None:
    with pytest.raises(InvalidInput, match=r"solver = <class .*expected a solver; try pzos\.PZOS\(step=0\.05"):
        study(pzos.PZOS)


class Silent:
    """A solver that never asks."""

    def init(self, task: Any) -> Any:
        return type("State", (), {"x": task.known.x0, "value": 0.0})()

    def ask(self, task: Any, state: Any) -> Plan:
        return Plan((), ())

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        return state, Outcome(state.x, 0.0, 0.0, 0.0)

    def stop(self, task: Any, state: Any) -> Stop | None:
        return None


def test_a_solver_that_plans_nothing_is_an_error_not_an_endless_loop() -> None:
    with pytest.raises(InvalidInput, match=r"Silent\.ask: planned no query at step 0: expected one or more"):
        pzos.solve(problem(), Silent(), steps=3)


class Satisfied(Silent):
    """A solver that stops at once, with a reason only it can know."""

    def stop(self, task: Any, state: Any) -> Stop | None:
        return Stop.CONVERGED


def test_a_solver_may_stop_by_itself() -> None:
    result = pzos.solve(problem(), Satisfied(), steps=3)
    assert result.stop is Stop.CONVERGED
    assert (result.steps, result.queries, result.monitoring) == (0, 0, 0)
    assert result.value == 0.0


def test_one_number_for_x_and_for_y() -> None:
    leader = pzos.leader_from_functions(
        lambda x, y: float(x[0] ** 2 + y[0]), lambda x, y: 2 * x, lambda x, y: 0 * y + 1
    )
    run = pzos.Study(pzos.Problem(leader, abs, 2.0).known(), SOLVER, steps=2)
    while not run.done:
        for query in run.ask():
            run.tell(query, abs(float(query.x[0])))
    assert run.result().x.shape == (1,)


def test_leader_is_the_only_thing_the_study_calls() -> None:
    """Two thousand queries answered by hand, none by a follower: the follower of the problem is never touched."""

    def forbidden(x: Any) -> Any:
        raise AssertionError

    task = pzos.Problem(LEADER, forbidden, START)
    assert finish(pzos.Study(task.known(), SOLVER, steps=2)).queries == 6


def test_an_answer_of_the_open_batch_is_taken_back_in_memory() -> None:
    study = pzos.Study(problem().known(), pzos.PZOS(batch=2), steps=2)
    first, second, *_ = queries = study.ask()
    study.tell(first, np.ones(7))
    study.fail(second, "lost")
    study.withdraw(first)
    study.withdraw(second)
    assert (study.failures, study.result().ledger.get("failed", 0)) == (0, 0)
    assert [query[:2] for query in study.ask()] == [query[:2] for query in queries]
    study.tell(first, problem().follower.respond(first.x, None))  # of another length than what was taken back
    for query in (second, pzos.Query(5, 0, first.x)):
        with pytest.raises(pzos.InvalidInput, match="expected an answered query of the open batch"):
            study.withdraw(query)
