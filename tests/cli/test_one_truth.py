"""One truth: how a study ended is said with the same words by Python, run, status, watch and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from pzos.cli.main import main
from pzos.report.from_file import story_of_file

MODEL = """
import numpy as np, pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y, name="gaps")


def follower(x):
    return np.abs(x - 0.3)


def still(x):
    return np.ones(2)
"""
BASE = 'leader = "model:leader"\nx0 = [1.0, 2.0]\n'
ENDS = {
    "steps": BASE + 'follower = "model:follower"\nsteps = 3\n[solver]\nkind = "PZOS"',
    "queries": BASE + 'follower = "model:follower"\nqueries = 5',
    "target": BASE + 'follower = "model:follower"\ntarget = 0.5',
    "converged": BASE + 'follower = "model:follower"\n[solver]\nkind = "CompositeTrustRegion"\nftol = 0.01',
    "unmoved": BASE + 'follower = "model:still"\n[solver]\nkind = "CompositeTrustRegion"\nftol = 0.01',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("end", ENDS)
def test_every_command_tells_the_same_story(folder: Path, capsys: pytest.CaptureFixture[str], end: str) -> None:
    (folder / "study.toml").write_text(ENDS[end], encoding="utf-8")
    message = pzos.Stop[end.upper()].value
    ran = json.loads(printed(capsys, "run", "study.toml", "--json"))
    assert (ran["stop"], ran["done"], ran["open"]) == (end, True, [])
    again = printed(capsys, "run", "study.toml")
    assert message in again.splitlines()[0]
    told = json.loads(printed(capsys, "status", "study.toml", "--json"))
    assert [name for name in ran if told[name] != ran[name] and name != "seconds"] == []
    assert told["state"] == f"ended: {message}"
    for words in (("status", "study.toml"), ("status", "study.study"), ("watch", "study.toml", "--once")):
        assert f"ended: {message}" in printed(capsys, *words)
    assert story_of_file(folder / "study.study").status.startswith(f"ended: {message}; ")


def test_a_run_ends_with_a_certificate_inside_its_budget(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "study.toml").write_text(BASE + 'follower = "model:follower"\nqueries = 132', encoding="utf-8")
    ran = json.loads(printed(capsys, "run", "study.toml", "--json"))
    assert ran["queries"] + ran["monitoring"] <= 132
    assert "fresh queries" in ran["certificate"]
    told = json.loads(printed(capsys, "status", "study.toml", "--json"))
    assert (told["certificate"], told["monitoring"], told["open"]) == (ran["certificate"], ran["monitoring"], [])
    assert ran["certificate"] in printed(capsys, "run", "study.toml")  # from its file: nothing is asked again
    solver = pzos.solve(lasting(), queries=132, seed=0)
    assert (solver.queries, solver.monitoring) == (ran["queries"], ran["monitoring"])


def lasting() -> pzos.Problem:
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    return pzos.Problem(leader, lambda x: np.abs(x - 0.3), [1.0, 2.0])


def test_a_budget_too_small_for_a_certificate_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "study.toml").write_text(ENDS["queries"], encoding="utf-8")
    assert "none: it takes 33 queries, and of 5 there are 0 left" in printed(capsys, "run", "study.toml")
    assert "as far as 33 fresh queries" in printed(capsys, "run", "study.toml", "--certificate", "33")
    (folder / "study.toml").write_text(ENDS["steps"], encoding="utf-8")
    assert main(["run", "study.toml", "--certificate", "33"]) == 2
    assert "expected the default solver" in capsys.readouterr().err


def test_limits_that_were_raised_are_said_beside_why_it_ended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "study.toml").write_text(ENDS["queries"], encoding="utf-8")
    printed(capsys, "run", "study.toml")
    (folder / "study.toml").write_text(ENDS["queries"].replace("queries = 5", "queries = 9"), encoding="utf-8")
    told = json.loads(printed(capsys, "status", "study.toml", "--json"))
    assert (told["stop"], told["state"]) == ("queries", "ended: the query budget is spent")
    assert told["open"] == ["5.0"]  # what it would ask next
    assert "the description allows more by now: pzos run study.toml" in printed(capsys, "status", "study.toml")


def test_a_run_that_was_interrupted_or_is_answered_by_people_is_open(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "study.toml").write_text(BASE + "steps = 3", encoding="utf-8")
    printed(capsys, "init", "study.toml")
    told = json.loads(printed(capsys, "status", "study.toml", "--json"))
    assert (told["stop"], told["done"], told["state"]) == ("running", False, "open: more answers can be told")
    assert "open: more answers can be told" in printed(capsys, "watch", "study.toml", "--once")

    def follower(x: Any) -> Any:
        if x[0] != 1.0:
            raise KeyboardInterrupt
        return np.abs(x)

    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    path = folder / "stopped.study"
    result = pzos.solve(pzos.Problem(leader, follower, [1.0, 2.0]), queries=5, path=path)
    assert result.message == "interrupted by the user"
    for words in (("status", "stopped.study"), ("watch", "stopped.study", "--once")):
        assert result.message in printed(capsys, *words)
    assert story_of_file(path).status.startswith(result.message)


def test_the_example_is_files_only_and_its_hint_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "init", "--example", "here/study.toml")
    assert sorted(path.name for path in (folder / "here").iterdir()) == ["model.py", "study.toml"]
    hint = said.strip().rpartition("then: ")[2].split()
    assert hint == ["pzos", "run", "here/study.toml"]
    assert "all steps were taken" in printed(capsys, *hint[1:])
    assert (folder / "here" / "study.study").exists()
    assert "nothing was written" in printed(capsys, "init", "--example", "here/study.toml")


def test_a_program_beside_the_description_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "there").mkdir()
    (folder / "there" / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "there" / "simulator.py").write_text(
        'import json, sys\nx = json.load(sys.stdin)["x"]\nprint(json.dumps({"y": [abs(entry) for entry in x]}))\n',
        encoding="utf-8",
    )
    (folder / "there" / "study.toml").write_text(
        BASE + 'queries = 2\nfollower = {command = ["python", "simulator.py"]}', encoding="utf-8"
    )
    assert json.loads(printed(capsys, "run", "there/study.toml", "--json"))["queries"] == 2


@pytest.mark.parametrize(("count", "words"), [(1, "1 answer taken"), (2, "2 answers taken")])
def test_one_is_not_many(folder: Path, capsys: pytest.CaptureFixture[str], count: int, words: str) -> None:
    (folder / "study.toml").write_text(BASE + 'steps = 3\n[solver]\nkind = "PZOS"', encoding="utf-8")
    printed(capsys, "init", "study.toml")
    rows = [f"0,{index},1.0,2.0" for index in range(count)]
    (folder / "answers.csv").write_text("\n".join(["step,index,y0,y1", *rows]), encoding="utf-8")
    assert words in printed(capsys, "tell", "answers.csv", "study.toml")
