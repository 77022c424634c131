"""The page: what it says is what happened, it needs no network, and bad input is one clear line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import START, problem
from pzos.cli.main import main
from pzos.report.from_file import read_contents, story_of_file
from pzos.report.story import Story, story_of

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_the_file_alone_tells_who_asked_what_and_where_the_queries_went(study: Path) -> None:
    story = story_of_file(study)
    assert story.ledger == {"at the iterate": 8, "probes": 16, "monitoring": 1}
    assert sum(story.ledger.values()) == len(read_contents(study).rows)
    assert ("solver", "PZOS(step=0.05, radius=0.1, batch=1)") in story.method
    np.testing.assert_array_equal(story.before, START)
    assert story.curve.values.size == 0
    assert "--problem" in story.missing[0]
    np.testing.assert_allclose(story.motion.radius[:-1], 0.1, rtol=1e-12)


def test_with_the_problem_F_is_computed_from_the_stored_answers(study: Path) -> None:
    story = story_of_file(study, problem())
    result = pzos.solve(problem(), SOLVER, steps=8)
    np.testing.assert_array_equal(story.curve.values, result.trace["value"])
    np.testing.assert_array_equal(story.curve.queries, [1, 4, 7, 10, 13, 16, 19, 22, 24])


def test_with_the_solver_as_well_the_trace_is_the_runs_own(study: Path) -> None:
    story = story_of_file(study, problem(), SOLVER)
    result = pzos.solve(problem(), SOLVER, steps=8)
    for name, column in (("values", "value"), ("queries", "queries")):
        np.testing.assert_array_equal(getattr(story.curve, name), result.trace[column])
    np.testing.assert_array_equal(story.after, result.best_x)
    assert np.nanmax(np.abs(story.motion.radius - 0.1)) < 1e-12


def test_a_running_study_is_reported_while_it_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "running.study"
    with pzos.Study.open(path, problem().known(), SOLVER, steps=50) as study:
        for query in study.ask():
            study.tell(query, problem().follower.respond(query.x, None))
        story = story_of_file(path, problem())
        assert story.status.startswith("being written now; 3 answers")
        assert story.curve.values.size == 1


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


def test_the_page_is_one_file_that_asks_nothing_of_a_network(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    result = pzos.solve(problem(name="tolls & <b>taxes</b>"), SOLVER, steps=8)
    place = result.report(tmp_path / "deep" / "page.html", problem())
    text = place.read_text(encoding="utf-8")
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "tolls &amp; &lt;b&gt;taxes&lt;/b&gt;" in outside
    assert "<b>taxes" not in outside
    assert not re.findall(r"(?:src|href)\s*=\s*['\"]?(?:https?:)?//", outside)
    assert len(text) < 6e6
    for heading in ("Objective", "What was asked", "By which method", "Where the queries went", "The decision"):
        assert heading in outside
    assert outside.count("plotly-graph-div") >= 4
    assert f"{result.best_value:.8g}" in outside


def test_a_result_tells_before_and_after(tmp_path: Path) -> None:
    result = pzos.solve(problem(), SOLVER, steps=8)
    story: Story = story_of(result)
    np.testing.assert_array_equal(story.before, START)
    np.testing.assert_array_equal(story.after, result.best_x)
    assert story.ledger == {"at the iterate": 8, "probes": 16, "monitoring": 1}
    assert story.curve.best("min")[-1] == result.best_value


def test_the_command_writes_one_page_for_several_studies(
    study: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    out = tmp_path / "both.html"
    words = ["report", str(study), str(study), "--problem", f"{named}:problem", "--solver", f"{named}:solver"]
    assert main([*words, "--out", str(out)]) == 0
    assert "2 studies" in capsys.readouterr().out
    assert "2 studies" in out.read_text(encoding="utf-8")


def test_the_toml_file_says_it_all(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    (tmp_path / "toml_model.py").write_text("from instances import LEADER as leader, response", encoding="utf-8")
    toml = tmp_path / "tolls.toml"
    toml.write_text(
        'name = "described"\nleader = "toml_model:leader"\nfollower = "toml_model:response"\n'
        'x0 = [0.2, 0.4, 0.6, 0.8, 1.0]\nsteps = 5\n[solver]\nkind = "PZOS"\nstep = 0.05\nradius = 0.1\n',
        encoding="utf-8",
    )
    assert main(["report", str(toml)]) == 2  # not begun yet
    assert main(["run", str(toml)]) == 0
    assert main(["report", str(toml), "--out", str(tmp_path / "page.html")]) == 0
    text = re.sub(r"<script>.*?</script>", "", (tmp_path / "page.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "objective-queries" in text
    assert "described" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.study"], "STUDY = 'nowhere.study': expected a study file"),
        (["{study}", "--problem", "mine"], "expected module:name or file.py:name"),
        (["{study}", "--problem", "absent_file.py:problem"], "cannot be imported"),
        (["{study}", "--problem", "{named}:pizza"], "has no 'pizza'"),
        (["{study}", "--problem", "{named}:solver"], "expected a pzos.Problem"),
        (["{study}", "--problem", "no_such_module:problem"], "cannot be imported"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: list[str], said: str, study: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(study=study, named=named) for word in words]
    assert main(["report", *filled, "--out", str(tmp_path / "none.html")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "none.html").exists()


def test_time_is_that_of_the_run_and_never_goes_back(study: Path) -> None:
    seconds = story_of_file(study, problem(), SOLVER).curve.seconds
    told = {row.step: row.elapsed for row in read_contents(study).rows}
    np.testing.assert_array_equal(seconds, [told[step] for step in sorted(told)])
    assert (np.diff(seconds) >= 0).all()


def test_certificates_are_put_into_words(tmp_path: Path) -> None:
    result = pzos.solve(problem(), SOLVER, steps=8)
    assert "No certificate" in story_of(result).certificate
    certificate = result.certify(problem(), delta=0.1, at="best")
    page = result.report(tmp_path / "page.html", problem(), certificate).read_text(encoding="utf-8")
    assert "with 95 % confidence" in page
    watched = pzos.solve(problem(), pzos.StopWhenStationary(SOLVER, delta=0.5, epsilon=5.0), queries=3000)
    assert watched.certificate is not None
    assert story_of(watched).certificate == str(watched.certificate)
