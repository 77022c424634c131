"""Answers that may no longer be true: they lead the search and bind nothing; what disagrees is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import bits

MATRIX = np.random.default_rng(5).standard_normal((5, 8)) / 2.0


def followers(drift: float) -> Any:
    def follower(x: np.ndarray) -> np.ndarray:
        return np.tanh(MATRIX @ x) * (1.0 + drift) + 0.2 * MATRIX @ x + drift

    return follower


LEADER = pzos.leader_from_functions(
    lambda x, y: float(((y - 0.8) ** 2).sum() + 0.02 * (x @ x)), lambda x, y: 0.04 * x, lambda x, y: 2.0 * (y - 0.8)
)


def problem(drift: float, name: str = "drivers") -> pzos.Problem:
    return pzos.Problem(LEADER, followers(drift), np.full(8, 0.5), name="drift", follower_name=name)


def old(drift: float = 0.0) -> pzos.Answers:
    return pzos.solve(problem(drift), queries=40, certificate=False).answers.labelled(told="2026-01-01", source="old")


def queries_to(target: float, answers: pzos.Answers | None, drift: float = 0.1) -> int:
    result = pzos.solve(problem(drift), queries=60, target=target, certificate=False, answers=answers)
    assert result.stop is pzos.Stop.TARGET
    return result.queries


def test_followers_that_changed_a_little_are_found_sooner_than_from_scratch() -> None:
    best = pzos.solve(problem(0.1), queries=60, certificate=False).best_value
    start = LEADER.value(problem(0.1).x0, followers(0.1)(problem(0.1).x0))
    target = best + 0.01 * (start - best)
    assert queries_to(target, old().trusting("2026-05-01")) < 0.5 * queries_to(target, None)


def test_old_answers_count_for_nothing_by_themselves_and_disagreement_is_said() -> None:
    aged = old().trusting("2026-05-01")
    study = pzos.Study(problem(0.1).known(), pzos.CompositeTrustRegion(), queries=3, answers=aged)
    assert np.isnan(study.result().best_value)
    (first,) = study.ask()
    values = [LEADER.value(x, y) for x, y in aged.pairs()]
    assert np.array_equal(first.x, aged.x[int(np.argmin(values))]), "the best old point is asked anew"
    changed = pzos.solve(problem(0.1), queries=5, certificate=False, answers=aged)
    assert "40 are old and only shape the prior" in changed.table()
    assert "disagree with the new ones" in changed.explanation
    same = pzos.solve(problem(0.0), queries=5, certificate=False, answers=aged)
    assert "they agree with the new ones" in same.explanation


def test_a_date_or_a_version_decides_what_is_old() -> None:
    table = old().chosen([0, 1, 2])
    dated = pzos.Answers(table.x, table.y, told=["2026-06-01T10:00", "", "2026-04-30"], follower=["a", "b", "b @3:1"])
    assert dated.trusting("2026-05-01").trust == ("", "prior", "prior")
    assert dated.trusting("b").trust == ("prior", "", "")
    for wrong in ("", "2026-5-1", "2026-13-01", "05/2026"):  # none of them the name of followers by mistake
        with pytest.raises(pzos.InvalidInput, match="a date or a name"):
            dated.trusting(wrong)
    told, aged = dated.trusting("2026-05-01").split(problem(0.0).known())
    assert (len(told), len(aged)) == (1, 2)


def test_other_code_under_the_same_name_is_another_version() -> None:
    def first(x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    def second(x: np.ndarray) -> np.ndarray:
        return np.abs(x) + 0.5

    second.__qualname__ = first.__qualname__
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    known = pzos.solve(pzos.Problem(leader, first, np.ones(2)), queries=4, certificate=False).answers
    told, aged = known.split(pzos.Problem(leader, second, np.ones(2)).known())
    assert (len(told), len(aged)) == (0, 4)
    told, aged = known.split(pzos.Problem(leader, first, np.ones(2)).known())
    assert (len(told), len(aged)) == (4, 0)


def test_old_answers_of_other_followers_may_lead_but_trusted_ones_are_refused() -> None:
    others = old().labelled(follower="riders")
    with pytest.raises(pzos.InvalidInput, match="of riders"):
        pzos.Study(problem(0.0).known(), pzos.CompositeTrustRegion(), answers=others)
    study = pzos.Study(problem(0.0).known(), pzos.CompositeTrustRegion(), answers=others.trusting("drivers"))
    assert len(study.task.old) == 40


def test_trusted_answers_are_known_beside_old_ones() -> None:
    new = pzos.Answers(old().x[:3], [followers(0.1)(x) for x in old().x[:3]], told="2026-06-01", source="new")
    both = (old() + new).trusting("2026-05-01")
    study = pzos.Study(problem(0.1).known(), pzos.CompositeTrustRegion(), queries=3, answers=both)
    values = [LEADER.value(x, y) for x, y in new.pairs()]
    assert study.result().best_value == pytest.approx(min(values))
    (first,) = study.ask()
    assert first.x.tobytes() not in {x.tobytes() for x in new.x}


def test_a_memory_takes_all_alike_and_other_methods_refuse() -> None:
    aged = old().trusting("2026-05-01")
    memory = pzos.Study(problem(0.1).known(), pzos.MemoryPZOS(), steps=1, answers=aged)
    assert len(memory.task.told) == 40
    with pytest.raises(pzos.InvalidInput, match="can only shape the prior"):
        pzos.Study(problem(0.1).known(), pzos.PZOS(step=0.1, radius=0.1), steps=1, answers=aged)


def test_a_durable_study_leans_on_its_own_copy_with_the_same_bits(tmp_path: Path) -> None:
    aged, path = old().trusting("2026-05-01"), tmp_path / "new.study"
    whole = pzos.solve(problem(0.1), queries=6, certificate=False, answers=aged)
    pzos.solve(problem(0.1), queries=3, certificate=False, answers=aged, path=path)
    resumed = pzos.solve(problem(0.1), queries=6, certificate=False, path=path)
    assert bits(resumed) == bits(whole)
    assert pzos.Answers.open(path).trust[:40] == ("prior",) * 40


def test_the_certificate_starts_from_both_models() -> None:
    result = pzos.solve(problem(0.1), queries=15, answers=old().trusting("2026-05-01"), certificate=True)
    assert result.certificate is not None


def test_of_followers_that_jump_the_best_answer_is_returned_here_too():
    leader = pzos.leader_from_functions(
        lambda x, y: float(((y - 4.0) ** 2).sum() / 10.0 + x @ x), lambda x, y: 2.0 * x, lambda x, y: (y - 4.0) / 5.0
    )

    def counts(x):
        return np.floor(10.0 * np.maximum(1.5 - x, 0.0))

    problem = pzos.Problem(leader, counts, np.full(4, 0.3), pzos.Box(0.0, 2.0))
    old = pzos.solve(problem, queries=15, progress=False, certificate=False).answers.trusting("2100-01-01")
    for seed in range(3):
        result = pzos.solve(problem, queries=25, seed=seed, progress=False, certificate=False, answers=old)
        assert result.value == pytest.approx(leader.value(result.x, counts(result.x)), rel=1e-12)
