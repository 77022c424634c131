"""What the dashboard does, without the web: the studies of a folder, forms, answers in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import pzos
from cli.survey import STUDY, make
from pzos.cli.desk import Desk
from pzos.cli.main import main


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(make(tmp_path))


def test_every_study_is_found_once_and_nothing_else(desk: Desk) -> None:
    (desk.folder / "survey_copy.txt").write_text(STUDY)
    (desk.folder / "folder.study").mkdir()
    assert [entry.name for entry in desk.entries()] == ["broken.toml", "survey.toml", "ended.study"]
    assert [bool(entry.fault) for entry in desk.entries()] == [True, False, False]
    (desk.folder / "broken.toml").write_text("leader = ")
    assert "cannot be read as TOML" in desk.entries()[0].fault
    (desk.folder / "broken.toml").write_text(STUDY)  # mended while the dashboard is open
    assert desk.entries()[0].fault == ""
    assert desk.entry("survey.study") is None  # it has one name


def test_what_has_changed_is_seen(desk: Desk) -> None:
    survey = desk.entry("survey.toml")
    assert survey is not None
    first, *others = desk.open_queries(survey)
    assert desk.open_queries(survey)[0] is first  # nothing is replayed twice
    desk.tell(survey, {"query": first.address, "x": first.point, "y0": "1", "y1": "2"})
    assert [one.address for one in desk.open_queries(survey)] == [one.address for one in others]
    assert desk.answers(survey) == [("0.0", "iterate", "cars 1.0 cars/h, trams 2.0 trips/h")]
    assert desk.form(survey).count("\n") == 3


def test_an_answer_whose_length_nobody_knows_is_typed_into_one_field(desk: Desk) -> None:
    (desk.folder / "plain.toml").write_text(STUDY.split("[decisions]")[0])
    assert main(["init", str(desk.folder / "plain.toml")]) == 0
    plain = desk.entry("plain.toml")
    assert plain is not None
    first = desk.open_queries(plain)[0]
    assert [name for name, _ in first.fields] == ["y"]
    assert first.rows == [("x[0]", "1"), ("x[1]", "2")]
    with pytest.raises(pzos.InvalidInput, match="the answer is empty"):
        desk.tell(plain, {"query": "0.0", "x": first.point, "y": " "})
    desk.tell(plain, {"query": "0.0", "x": first.point, "y": "1.5; 2 3"})
    assert [name for name, _ in desk.open_queries(plain)[0].fields] == ["y0", "y1", "y2"]  # now it is known


def test_a_study_without_a_description_is_only_looked_at(desk: Desk) -> None:
    ended = desk.entry("ended.study")
    assert ended is not None
    assert desk.open_queries(ended) == []
    assert desk.form(ended) == ""
    with pytest.raises(pzos.InvalidInput, match="where a TOML file describes"):
        desk.tell(ended, {"query": "0.0"})


def test_what_was_looked_at_is_listed_without_a_replay(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = desk.entry("survey.toml")
    assert survey is not None
    first, *others = desk.open_queries(survey)
    desk.tell(survey, {"query": first.address, "x": first.point, "y0": "1", "y1": "2"})
    desk.look_around()
    monkeypatch.setattr("pzos.cli.desk._FRESH", 1e-9)  # what does not last is made anew
    monkeypatch.setattr("pzos.report.from_file.open_whole", None)
    monkeypatch.setattr("pzos.cli.desk.open_study", None)
    assert desk.story(survey).curve.values.size == 1
    assert [one.address for one in desk.open_queries(survey)] == [one.address for one in others]
