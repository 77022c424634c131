"""The live view: counts what was told, follows a run from outside, and leaves it alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import pzos
from instances import problem
from pzos.cli import watch
from pzos.cli.main import main
from pzos.durable.log import open_log, take_back

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


@pytest.fixture
def named(tmp_path: Path) -> str:
    path = tmp_path / "watched_model.py"
    path.write_text("from instances import problem as make\nproblem = make()\n", encoding="utf-8")
    return str(path)


def test_once_prints_the_state_of_a_finished_study(study: Path, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(study), "--once", "--problem", f"{named}:problem"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.strip()[0].isalpha())
    result = pzos.solve(problem(), SOLVER, steps=8)
    assert lines["state"] == "ended: all steps were taken"
    assert lines["queries"] == "24 (1 to monitor)"
    assert f"{result.value:.8g} now" in lines["F"]
    assert f"{result.best_value:.8g} best" in lines["F"]


def test_it_follows_a_run_and_does_not_disturb_it(tmp_path: Path) -> None:
    path = tmp_path / "live.study"
    alone = pzos.solve(problem(), SOLVER, steps=6)
    view = watch.View(path, problem(), steps=6)
    with pzos.Study.open(path, problem().known(), SOLVER, steps=6) as study:
        journal = open_log(path, read_only=True)
        told = 0
        while not study.done:
            for query in study.ask():
                study.tell(query, problem().follower.respond(query.x, None))
                told += 1
                view.take_in(journal)
                assert view.seen == told
                assert view.own + view.monitoring == told
        watched = study.result()
        assert not view.ended  # as long as the writer has not said so
    view.take_in(journal)
    journal.close()
    assert view.ended
    np.testing.assert_array_equal(watched.x, alone.x)
    assert view.values[-1] == alone.value
    with pzos.Study.open(path, problem().known(), SOLVER, steps=7) as study:  # a later session can write again
        assert study.step == 6


def test_the_time_left_follows_from_the_pace(tmp_path: Path) -> None:
    view = watch.View(tmp_path / "x.study", queries=100)
    view.times, view.own, view.step = [float(t) for t in range(11)], 11, 3
    assert dict(view.rows())["time"].endswith("about 89 s left")
    assert dict(view.rows())["speed"] == "1 answers a second"
    view.state = "ended"
    assert "left" not in dict(view.rows())["time"]


def test_the_live_panel_is_drawn_until_the_study_ends(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich", reason="needs the extra 'cli'")
    view = watch.View(study)
    journal = open_log(study, read_only=True)
    pauses: list[float] = []
    try:
        watch._live(view, journal, 0.5, pauses.append)
    finally:
        journal.close()
    assert pauses == [0.5]
    assert "small.study" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["missing.study"], ["{study}", "--interval", "0"], ["{study}", "--queries", "0"]])
def test_bad_input_is_named(words: list[str], study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *(word.format(study=study) for word in words)]) == 2
    assert "pzos watch: watch: " in capsys.readouterr().err


def test_the_last_look_is_no_step_and_a_spent_budget_is_an_end(tmp_path: Path) -> None:
    path = tmp_path / "ended.study"
    pzos.solve(problem(), SOLVER, steps=8, path=path)
    view = watch.View(path, problem())
    trust = tmp_path / "trust.study"
    pzos.solve(problem(), pzos.CompositeTrustRegion(), queries=12, path=trust)  # knows F: no last look
    spent = watch.View(trust, problem())
    for seen, steps in ((view, 8), (spent, 12)):
        journal = open_log(seen.path, read_only=True)
        seen.take_in(journal)
        journal.close()
        assert (seen.step + 1, seen.ended) == (steps, True)


@pytest.mark.parametrize("solver", [SOLVER, pzos.ZOS(step=0.05, radius=0.1)], ids=["iterate", "monitored"])
def test_the_last_look_of_a_shorter_run_is_counted_as_the_study_counts_it(solver, tmp_path: Path) -> None:
    path = tmp_path / "longer.study"
    for steps in (4, 6, 7):
        result = pzos.solve(problem(), solver, steps=steps, path=path)
        view = seen_at(path)
        assert (view.own, view.monitoring, view.ended) == (result.queries, result.monitoring, True)


def test_an_interrupted_study_and_one_that_goes_on_have_not_ended(tmp_path: Path) -> None:
    path = tmp_path / "on.study"
    pzos.solve(problem(), SOLVER, steps=4, path=path)
    with pzos.Study.open(path, problem().known(), SOLVER, steps=6) as study:
        assert not seen_at(path).ended
        study.interrupt()
    assert not seen_at(path).ended


def seen_at(path: Path) -> watch.View:
    view, journal = watch.View(path), open_log(path, read_only=True)
    view.take_in(journal)
    journal.close()
    return view


def test_what_was_taken_back_is_no_longer_counted(study: Path) -> None:
    with closing(open_log(study, read_only=True)) as log:
        view = watch.View(study)
        view.take_in(log)
        before = view.own + view.monitoring
        left = take_back(study, 3, 0, "")
        view.take_in(log)
        assert view.own + view.monitoring == len(left.answers) < before
