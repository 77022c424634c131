"""Where the queries went: every query is counted once, whatever became of it, in memory as in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import problem, response, responses
from pzos.report.from_file import story_of_file
from pzos.report.story import ledger_of

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def total(result: pzos.Result) -> int:
    return sum(result.ledger.values())


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        (pzos.PZOS(step=0.05, radius=0.1, batch=2), {"at the iterate": 6, "probes": 24, "monitoring": 1}),
        (pzos.ZOS(step=0.05, radius=0.1), {"probes": 12, "monitoring": 7}),
        (pzos.CompositeTrustRegion(), {"trial points": 6}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_by_purpose(solver: pzos.PZOS, expected: dict[str, int]) -> None:
    result = pzos.solve(problem(), solver, steps=6)
    assert dict(result.ledger) == expected
    assert total(result) == result.queries + result.monitoring


def test_failures_are_taken_from_their_purpose() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=2)
    first = study.ask()
    study.fail(first[1], "crashed")
    for query in (first[0], first[2]):
        study.tell(query, response(query.x))
    for query in study.ask():
        study.tell(query, response(query.x))
    for query in study.ask():
        study.fail(query, "crashed")
    assert study.result().ledger == {"at the iterate": 2, "probes": 3, "failed": 2}


def test_an_open_batch_and_an_interruption_count_what_was_answered() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=2)
    query = study.ask()[2]
    study.tell(query, response(query.x))
    assert study.result().ledger == {"probes": 1}
    study.interrupt()
    assert study.result().ledger == {"probes": 1}


@pytest.mark.parametrize("batched", [False, True])
def test_answers_of_a_cache_are_counted_apart(tmp_path: Path, batched: bool) -> None:
    follower = pzos.batched(responses) if batched else response
    cached = problem(pzos.Cached(follower, tmp_path / "answers.cache", name="demand"))
    paid = pzos.solve(cached, SOLVER, steps=4)
    free = pzos.solve(cached, SOLVER, steps=4, path=tmp_path / "free.study")
    assert paid.ledger == {"at the iterate": 4, "probes": 8, "monitoring": 1}
    assert free.ledger == {"cached": 13}
    assert story_of_file(tmp_path / "free.study").ledger == {"cached": 13}
    longer = pzos.solve(cached, SOLVER, steps=5)
    assert longer.ledger["cached"] == (12 if batched else 13)  # what ended the short run is now one of a batch
    assert total(longer) == longer.queries + longer.monitoring


def test_trial_points_are_told_apart_by_what_became_of_them(tmp_path: Path) -> None:
    solver = pzos.CompositeTrustRegion()
    result = pzos.solve(problem(), solver, queries=25, path=tmp_path / "trust.study")
    told = ledger_of(result)
    assert told["start"] == 1
    assert told["accepted"] >= 1
    assert sum(told.values()) == result.queries + result.monitoring
    values = result.trace["value"]
    lower = [k for k in range(1, values.size) if values[k] < np.nanmin(values[:k])]
    tried = np.flatnonzero(np.isfinite(result.trace["accepted"]))
    assert told["accepted"] == len(set(lower) & set(tried.tolist()))
    assert story_of_file(tmp_path / "trust.study", problem(), solver).ledger == told


def test_the_certificate_of_a_default_run_is_counted_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "default.study"
    result = pzos.solve(problem(), queries=20, path=path)
    assert result.certificate is not None
    assert result.ledger["for the certificate"] == result.certificate.queries
    assert total(result) == result.queries + result.monitoring
    story = story_of_file(path, problem(), pzos.CompositeTrustRegion())
    assert story.ledger == ledger_of(result)
    assert story.certificate == str(result.certificate)
