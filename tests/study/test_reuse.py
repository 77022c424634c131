"""A run that begins with answers known before: nothing known is asked, the same bits from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import durable_problem
import pzos
from durable_problem import bits, calls, problem


def other_leader(weight: float = 3.0) -> pzos.Leader:
    return pzos.leader_from_functions(
        lambda x, y: float(x @ x + weight * y.sum() + 0.5 * (y @ y)),
        lambda x, y: 2.0 * x,
        lambda x, y: weight + y,
    )


def answers(queries: int = 12) -> pzos.Answers:
    return pzos.solve(problem(), queries=queries, certificate=False).answers


def asked(result: pzos.Result) -> list[bytes]:
    return [query.x.tobytes() for query, _ in result.told or ()]


def test_no_known_x_is_asked_and_x0_is_not_either() -> None:
    known = answers()
    game = problem(leader=other_leader())
    result = pzos.solve(game, queries=8, certificate=False, answers=known)
    assert calls(game) == 8
    assert not {x.tobytes() for x in known.x} & set(asked(result))
    assert problem().x0.tobytes() not in asked(result)


def test_the_best_known_point_counts_from_the_start() -> None:
    known, game = answers(), problem(leader=other_leader())
    values = [game.leader.value(x, y) for x, y in known.pairs()]
    study = pzos.Study(game.known(), pzos.CompositeTrustRegion(), steps=1, answers=known)
    assert study.result().best_value == min(values) == study.result().value
    reached = pzos.solve(game, queries=5, target=min(values), certificate=False, answers=known)
    assert reached.stop is pzos.Stop.TARGET
    assert reached.queries == 0
    assert calls(game) == 0
    assert "12 from kinks (12)" in reached.table()


def test_answers_save_queries() -> None:
    game = problem(leader=other_leader(1.3))
    best = pzos.solve(game, queries=60, certificate=False).best_value
    target = best + 1e-3 * abs(best)
    counts = [
        pzos.solve(game, queries=60, target=target, certificate=False, answers=known).queries
        for known in (answers(24), None)
    ]
    assert counts[0] < counts[1]


def test_a_result_carries_the_answers_it_was_begun_with() -> None:
    known = answers().labelled(source="before")
    result = pzos.solve(problem(leader=other_leader()), queries=3, certificate=False, answers=known)
    assert len(result.answers) == 15
    assert result.answers.source == ("before",) * 12 + ("kinks",) * 3


@pytest.mark.parametrize("solver", [pzos.MemoryPZOS(), pzos.SecantPZOS()])
def test_memories_are_filled(solver: Any) -> None:
    matrix = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]])
    linear = pzos.Problem(
        pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y),
        lambda x: matrix @ x,
        np.ones(3),
    )
    points = np.vstack([np.zeros(3), np.eye(3)])
    study = pzos.Study(linear.known(), solver, steps=1, answers=pzos.Answers(points, points @ matrix.T))
    at = linear.leader(linear.x0, matrix @ linear.x0)
    foreseen = solver.foresight(study.task, study.state)(linear.x0, at)
    assert np.allclose(foreseen, matrix.T @ at.grad_y, rtol=1e-2)
    assert np.array_equal(study.state.x, linear.x0)


@pytest.mark.parametrize("solver", [pzos.PZOS(step=0.1, radius=0.1), pzos.ZOS(step=0.1, radius=0.1)])
def test_methods_without_memory_say_so(solver: Any) -> None:
    with pytest.raises(pzos.InvalidInput, match=f"{type(solver).__name__} asks afresh at every step and cannot use"):
        pzos.solve(problem(), solver, steps=1, answers=answers())
    watched = pzos.StopWhenStationary(solver, delta=0.1, epsilon=0.1)
    with pytest.raises(pzos.InvalidInput, match="asks afresh"):
        pzos.Study(problem().known(), watched, answers=answers())


def test_a_watched_solver_uses_them() -> None:
    watched = pzos.StopWhenStationary(pzos.CompositeTrustRegion(), delta=0.1, epsilon=1e-6)
    result = pzos.solve(problem(), watched, steps=3, answers=answers())
    assert not {x.tobytes() for x in answers().x} & set(asked(result)[:3])


def test_a_wrong_table_is_refused_with_all_faults() -> None:
    wrong = pzos.Answers([[1.0, 2.0]], [[1.0]], follower="other:people")
    with pytest.raises(pzos.InvalidInput) as error:
        pzos.Study(problem().known(), pzos.CompositeTrustRegion(), steps=0, answers=wrong)
    text = str(error.value)
    assert "3 decisions" in text
    assert "other:people" in text
    assert "steps = 0" in text
    with pytest.raises(pzos.InvalidInput, match="expected a table of answers"):
        pzos.solve(problem(), answers=[1.0, 2.0])  # type: ignore[arg-type]


def test_other_names_and_other_answers_are_refused_with_all_faults() -> None:
    leader = pzos.leader_from_functions(lambda x, y: float(y @ [1.0, 2.0]), lambda x, y: 0.0 * x, lambda x, y: 1.0 + y)
    game = pzos.Problem(leader, np.sin, np.zeros(2), decisions=["toll", "fare"], responses=[("flow", "cars/h"), "load"])
    table = pzos.Answers(np.eye(2), np.ones((2, 2)), decisions=["toll", "price"], responses=[("flow", "cars/day"), ""])
    with pytest.raises(pzos.InvalidInput) as error:
        pzos.solve(game, queries=3, answers=table)
    assert "fare and price" in str(error.value)
    assert "flow [cars/h] and flow [cars/day]" in str(error.value)
    three = pzos.Answers(np.eye(2), np.ones((2, 3)))
    with pytest.raises(pzos.InvalidInput, match=r"3 entries of y.*expected 2 entries, as the problem has"):
        pzos.solve(game, queries=3, answers=three)
    nameless = pzos.Problem(leader, np.sin, np.zeros(2))
    with pytest.raises(pzos.InvalidInput, match="f is defined at none of 2, of 3 entries each"):
        pzos.solve(nameless, queries=3, answers=three)


def test_noise_in_the_table_is_believed() -> None:
    known = pzos.Answers([[0.0, 0.0, 0.0]] * 2 + [[1.0, 1.0, 1.0]], [[1.0] * 6, [1.1] * 6, [2.0] * 6])
    study = pzos.Study(problem().known(), pzos.CompositeTrustRegion(), steps=1, answers=known)
    state: Any = study.state
    assert state.exact is False
    assert state.past.count == 2
    assert state.past.freedom == 1
    assert state.past.variance == pytest.approx(0.005)


def test_a_cost_undefined_at_some_known_points_begins_at_others() -> None:
    def value(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.log(x).sum() + y.sum())

    leader = pzos.leader_from_functions(value, lambda x, y: 1.0 / x, lambda x, y: 0 * y + 1)
    known = pzos.Answers([[-1.0], [1.0], [2.0]], [[0.0], [1.0], [2.0]])
    game = pzos.Problem(leader, abs, [1.0], pzos.Box(0.5, 3.0))
    study = pzos.Study(game.known(), pzos.CompositeTrustRegion(), steps=1, answers=known)
    assert study.state.x[0] == 1.0
    with pytest.raises(pzos.InvalidLeader):
        pzos.Study(game.known(), pzos.CompositeTrustRegion(), answers=pzos.Answers([[-1.0]], [[0.0]]))


def test_constraints_on_outcomes_are_kept_by_the_best_known_point() -> None:
    game = problem(outcomes=pzos.caps(upper=[1.5] * 6))
    known = answers(20)
    study = pzos.Study(game.known(), pzos.ConstrainedTrustRegion(), steps=1, answers=known)
    values = [game.leader.value(x, y) for x, y in known.pairs() if (y <= 1.5).all()]
    assert study.result().best_value == pytest.approx(min(values))
    result = pzos.solve(game, queries=4, certificate=False, answers=known)
    assert result.queries == 4
    assert result.violation <= 1e-6


# ---- durable ------------------------------------------------------------------------------------------------------


def test_a_durable_study_keeps_its_own_copy_and_the_same_bits(tmp_path: Path) -> None:
    first = tmp_path / "old.study"
    pzos.solve(problem(), queries=10, certificate=False, path=first)
    known = pzos.Answers.open(first)
    game = problem(leader=other_leader())
    whole = pzos.solve(game, queries=7, certificate=False, answers=known)
    path = tmp_path / "new.study"
    pzos.solve(game, queries=4, certificate=False, answers=known, path=path)
    first.unlink()
    resumed = pzos.solve(game, queries=7, certificate=False, path=path)
    assert bits(resumed) == bits(whole)
    assert calls(game) == 7 + 7
    table = pzos.Answers.open(path)
    assert table.source == ("old.study",) * 10 + ("new.study",) * 7
    again = pzos.solve(game, queries=7, certificate=False, path=path, answers=known.chosen([0]))
    assert bits(again) == bits(whole), "the copy in the file stands, whatever is given later"
    with pzos.Study.open(path, game.known(), pzos.CompositeTrustRegion(), read_only=True, queries=7) as looking:
        assert looking.step == 7


def test_a_study_begun_without_answers_takes_none_later(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    pzos.solve(problem(), queries=3, certificate=False, path=path)
    with pytest.raises(pzos.DifferentStudy, match="begun without answers"):
        pzos.solve(problem(), queries=5, certificate=False, path=path, answers=answers())


def test_what_a_study_was_begun_with_survives_recovery(tmp_path: Path) -> None:
    from pzos.durable.log import recover

    path = tmp_path / "a.study"
    pzos.solve(problem(), queries=5, certificate=False, path=path, answers=answers().labelled(source="before"))
    data = bytearray(path.read_bytes())
    data[-400] ^= 1
    path.write_bytes(data)
    recover(path, tmp_path / "b.study")
    table = pzos.Answers.open(tmp_path / "b.study")
    assert table.source[:12] == ("before",) * 12
    assert 12 < len(table) <= 17


def test_withdrawing_an_answer_leaves_those_from_elsewhere(tmp_path: Path) -> None:
    path, game = tmp_path / "a.study", problem(leader=other_leader())
    with pzos.Study.open(path, game.known(), pzos.CompositeTrustRegion(), queries=4, answers=answers()) as study:
        durable_problem.finish(study, game)
        study.withdraw(pzos.Response(1, 0, np.zeros(1)), "wrong")
        assert len(study.task.told) == 12
        assert study.step == 1
