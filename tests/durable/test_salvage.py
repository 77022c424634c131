"""Damaged study files: one clear error, and no intact answer lost. The thousand mutations are benchmarks/damage.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pzos
from drills import drill
from durable_problem import bits, calls, finish, problem
from pzos.durable.journal import open_journal, recover
from pzos.durable.salvage import carve, salvage


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_mutations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert drill("damage").damage(90, seed=5) == []


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path, game = tmp_path / "s.study", problem()
    with pzos.Study.open(path, game.known(), pzos.PZOS(), seed=7, steps=5) as study:
        finish(study, game)
    return path


def test_the_carver_finds_what_the_store_finds(study_file: Path) -> None:
    journal = open_journal(study_file)
    rows = sorted(journal.all_answers())
    journal.close()
    found = salvage(study_file)
    assert len(found.headers) == 1
    assert sorted(found.answers) == rows
    assert len(rows) == 16


def test_a_lost_header_is_written_anew_once_the_answers_prove_to_fit(study_file: Path, tmp_path: Path) -> None:
    data = study_file.read_bytes()
    at = data.index(b'"identity"')
    study_file.write_bytes(data[:at] + b"#" + data[at + 1 :])
    game = problem()
    with pytest.raises(pzos.DamagedStudy, match="no header and 16 answers are intact"):
        pzos.Study.open(study_file, game.known(), pzos.PZOS(), seed=7, steps=5)
    assert recover(study_file, tmp_path / "saved.study") == (16, False)
    with pytest.raises(pzos.DifferentStudy, match=r"query 0\.1"):
        pzos.Study.open(tmp_path / "saved.study", game.known(), pzos.PZOS(), seed=8)
    for _ in range(2):
        with pzos.Study.open(tmp_path / "saved.study", game.known(), pzos.PZOS(), seed=7, steps=5) as study:
            assert study.done
    assert calls(game) == 0
    with pytest.raises(pzos.DifferentStudy, match="seed"):
        pzos.Study.open(tmp_path / "saved.study", game.known(), pzos.PZOS(), seed=8)


def test_gaps_are_asked_again_and_later_answers_used(study_file: Path, tmp_path: Path) -> None:
    answers = salvage(study_file).answers
    data = bytearray(study_file.read_bytes())
    for row in (answers[1], answers[7]):
        at = data.index(row.x)
        data[at] ^= 1
    study_file.write_bytes(bytes(data))
    recover(study_file, tmp_path / "saved.study")
    game = problem()
    with pzos.Study.open(tmp_path / "saved.study", game.known(), pzos.PZOS(), seed=7, steps=5) as study:
        assert [query[:2] for query in study.ask()] == [answers[1][:2]]
        result = finish(study, game)
    assert calls(game) == 2
    assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(), seed=7, steps=5))


@pytest.mark.parametrize("content", [b"", b"not a study", bytes(10_000), b"SQLite format 3\0" + bytes(5000)])
def test_what_is_no_study_is_called_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.study"
    path.write_bytes(content)
    for attempt in (
        lambda: pzos.Study.open(path, problem().known(), pzos.PZOS()),
        lambda: recover(path, tmp_path / "saved.study"),
    ):
        with pytest.raises(pzos.DamagedStudy, match=r"no header(,| and) no intact answer"):
            attempt()
    assert path.read_bytes() == content


def test_a_log_without_its_file_is_not_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "s.study-wal").write_bytes(b"x" * 100)
    with pytest.raises(pzos.DamagedStudy, match=r"its log s\.study-wal is there"):
        pzos.Study.open(tmp_path / "s.study", problem().known(), pzos.PZOS())


def test_recover_never_overwrites(study_file: Path) -> None:
    with pytest.raises(pzos.InvalidInput, match="exists"):
        recover(study_file, study_file)
    with pytest.raises(pzos.InvalidInput, match="check the name"):
        recover(study_file.with_name("none"), study_file.with_name("saved"))


def test_nothing_comes_from_nothing() -> None:
    assert carve(b"") == ([], [])
    assert carve(b"pzos-answer" * 1000, b"pzos-header" * 1000) == ([], [])
