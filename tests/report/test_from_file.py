"""A study file tells what was asked and, with problem and solver, what came of it; nothing is asked again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import START, problem
from pzos.report.from_file import read_contents, story_of_file

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_the_file_alone_tells_who_asked_what_and_where_the_queries_went(study: Path) -> None:
    story = story_of_file(study)
    assert story.ledger == {"at the iterate": 8, "probes": 16, "monitoring": 1}
    assert sum(story.ledger.values()) == len(read_contents(study).rows)
    assert ("solver", "PZOS(step=0.05, radius=0.1, batch=1)") in story.method
    assert [point.name for point in story.points] == ["first point asked about", "last point asked about"]
    np.testing.assert_array_equal(story.points[0].x, START)
    np.testing.assert_array_equal(story.points[0].y, problem().follower.respond(START, None))
    assert story.curve.values.size == 0
    assert "--problem" in story.missing[0]
    np.testing.assert_allclose(story.motion.radius[:-1], 0.1, rtol=1e-12)


def test_with_the_problem_F_is_computed_from_the_stored_answers(study: Path) -> None:
    story = story_of_file(study, problem())
    result = pzos.solve(problem(), SOLVER, steps=8)
    np.testing.assert_array_equal(story.curve.values, result.trace["value"])
    np.testing.assert_array_equal(story.curve.queries, [1, 4, 7, 10, 13, 16, 19, 22, 24])
    assert story.points[-1].value == result.best_value
    np.testing.assert_array_equal(story.points[-1].x, result.best_x)


def test_with_the_solver_as_well_the_trace_is_the_runs_own(study: Path) -> None:
    story = story_of_file(study, problem(), SOLVER)
    result = pzos.solve(problem(), SOLVER, steps=8)
    for name, column in (("values", "value"), ("queries", "queries")):
        np.testing.assert_array_equal(getattr(story.curve, name), result.trace[column])
    np.testing.assert_array_equal(story.points[-1].x, result.best_x)
    assert np.nanmax(np.abs(story.motion.radius - 0.1)) < 1e-12


def test_a_running_study_is_reported_while_it_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "running.study"
    with pzos.Study.open(path, problem().known(), SOLVER, steps=50) as study:
        for query in study.ask():
            study.tell(query, problem().follower.respond(query.x, None))
        story = story_of_file(path, problem())
        assert story.status.startswith("being written now; 3 answers")
        assert story.curve.values.size == 1


@pytest.mark.parametrize("solver", [SOLVER, pzos.ZOS(step=0.05, radius=0.1)], ids=["iterate", "monitored"])
def test_the_ledger_of_a_study_that_was_extended_is_that_of_its_result(solver, tmp_path: Path) -> None:
    path = tmp_path / "longer.study"
    for steps in (4, 6, 7):
        result = pzos.solve(problem(), solver, steps=steps, path=path)
        assert story_of_file(path).ledger == story_of_file(path, problem(), solver).ledger == result.ledger
        assert story_of_file(path).status.startswith("ended: all steps were taken; ")
    with pzos.Study.open(path, problem().known(), solver, steps=9) as study:
        for query in study.ask()[1:]:
            study.tell(query, problem().follower.respond(query.x, None))
    assert story_of_file(path).status.startswith("open: more answers can be told")


def test_failures_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "failing.study"
    with pzos.Study.open(path, problem().known(), SOLVER, steps=3) as study:
        while not study.done:
            for query in study.ask():
                if query.index == 1:
                    study.fail(query, "the road was closed")
                else:
                    study.tell(query, problem().follower.respond(query.x, None))
    assert story_of_file(path).ledger["failed"] == 3


def test_a_kept_certificate_is_put_into_words(tmp_path: Path) -> None:
    from pzos.stationarity import CertificateSolver
    from pzos.stationarity.one_batch import known_at

    path, solver = tmp_path / "certificate.study", CertificateSolver(delta=0.25, directions=40)
    known = known_at("test", problem().known(), np.full(5, 0.3))
    with pzos.Study.open(path, known, solver, seed=3, steps=1, monitor=False) as study:
        pzos.drive(study, pzos.Oracle(problem().follower), progress=False)
        said = str(study.state.report)  # type: ignore[attr-defined]
    story = story_of_file(path, problem())
    assert story.certificate == said
    assert "with 95 % confidence" in story.certificate
    assert "No certificate" in story_of_file(path).certificate  # without the leader nothing can be said


def test_time_is_that_of_the_run_and_never_goes_back(study: Path) -> None:
    seconds = story_of_file(study, problem(), SOLVER).curve.seconds
    told = {row.step: row.elapsed for row in read_contents(study).rows}
    np.testing.assert_array_equal(seconds, [told[step] for step in sorted(told)])
    assert (np.diff(seconds) >= 0).all()


def test_names_are_kept_with_the_study(tmp_path: Path) -> None:
    named = pzos.Problem(problem().leader, problem().follower, START, decisions=[("toll", "EUR"), *"bcde"])
    pzos.solve(named, SOLVER, steps=2, path=tmp_path / "named.study")
    assert story_of_file(tmp_path / "named.study").decisions.of(1)[0] == ("toll", "EUR", None)
    assert not story_of_file(tmp_path / "named.study").responses


def test_a_study_told_in_any_order_has_its_times_too(tmp_path: Path) -> None:
    path, solver = tmp_path / "any.study", pzos.CompositeTrustRegion()
    with pzos.Study.open(path, problem().known(), solver, queries=6, order="told") as study:
        asked = [study.ask_one() for _ in range(2)]
        for query in reversed(asked):
            assert query is not None
            study.tell(query, problem().follower.respond(query.x, None))
    seconds = story_of_file(path, problem(), solver).curve.seconds
    assert seconds.tolist() == [row.elapsed for row in read_contents(path).rows]
