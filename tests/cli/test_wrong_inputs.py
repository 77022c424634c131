"""A hundred wrong inputs, written down: each is one sentence on standard error, exit code 2, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pzos
from pzos.cli.main import main

MODEL = """
import numpy as np, pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y, name="gaps")
upside_down = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: -2 * y)


def follower(x):
    return np.abs(x - 0.3)


def cost(x, y):
    return (y * y).sum()


def broken(x):
    raise OSError("the licence has expired")


def words(x):
    return ["a", "b"]


def nothing(x):
    return None


def endless(x):
    return np.array([1.0, np.nan])


def growing(x, lengths=[]):
    lengths.append(1)
    return np.ones(1 + len(lengths))


def faulty_cost(x, y):
    return y["price"]


def nan_cost(x, y):
    return float("nan") * y.sum()


def needs_more(x, y, z):
    return 0.0


def no_problem():
    return 3


problem = pzos.Problem(leader, follower, [1.0, 2.0], pzos.Box(0.0, 2.0), name="gaps")
number = 3
"""
GOOD = 'leader = "model:leader"\nfollower = "model:follower"\nx0 = [1.0, 2.0]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to stand in, with a model, a good description, a study that has ended, and files of all kinds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "cracked.py").write_text("this is no Python", encoding="utf-8")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)", encoding="utf-8")
    (tmp_path / "dividing.py").write_text("x = 1 / 0", encoding="utf-8")
    (tmp_path / "good.toml").write_text(GOOD + "steps = 2\n[solver]\nkind = 'PZOS'\n", encoding="utf-8")
    (tmp_path / "hand.toml").write_text('leader = "model:leader"\nx0 = [1.0, 2.0]\nsteps = 2\n', encoding="utf-8")
    (tmp_path / "binary.study").write_bytes(bytes(range(256)))
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "words.csv").write_text("step,index,y0\n0,0,much\n", encoding="utf-8")
    (tmp_path / "stray.csv").write_text("step,index,y0,y1\n7,0,1.0,2.0\n", encoding="utf-8")
    (tmp_path / "half.json").write_text('{"queries": [', encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.html").mkdir()
    return tmp_path


#: Lines of a description that cannot be, in place of or after those of a good one.
DESCRIPTIONS = {
    "no TOML": "leader = model:leader",
    "empty": "",
    "no leader": "x0 = [1.0]",
    "no x0": 'leader = "model:leader"',
    "a misspelt entry": GOOD + "querys = 5",
    "a leader that is a number": GOOD.replace('"model:leader"', "3"),
    "a leader without a colon": GOOD.replace("model:leader", "model"),
    "a leader that is not there": GOOD.replace("model:leader", "model:laeder"),
    "a leader that is no leader": GOOD.replace("model:leader", "model:number"),
    "a cost of three arguments": GOOD.replace("model:leader", "model:needs_more"),
    "a module that is not there": GOOD.replace("model:leader", "nomodel:leader"),
    "a module that is no Python": GOOD.replace("model:leader", "cracked:leader"),
    "a module that leaves": GOOD.replace("model:leader", "leaving:leader"),
    "a module that divides by zero": GOOD.replace("model:leader", "dividing:x"),
    "a file that is not there": GOOD.replace("model:leader", "nofile.py:leader"),
    "a follower that is no function": GOOD.replace("model:follower", "model:number"),
    "a follower table without a command": GOOD.replace('"model:follower"', "{format = 'json'}"),
    "a follower table with a misspelt entry": GOOD.replace('"model:follower"', "{comand = ['a']}"),
    "a command that is not there": GOOD.replace('"model:follower"', "{command = ['./nothing']}"),
    "x0 in words": GOOD.replace("[1.0, 2.0]", '["a", "b"]'),
    "x0 with a hole": GOOD.replace("[1.0, 2.0]", "[1.0, nan]"),
    "x0 in rows": GOOD.replace("[1.0, 2.0]", "[[1.0], [2.0]]"),
    "x0 without entries": GOOD.replace("[1.0, 2.0]", "[]"),
    "a sense of neither": GOOD + 'sense = "sideways"',
    "a set that is a word": GOOD + 'set = "Bx"',
    "a set without a kind": GOOD + "[set]\nlower = 0.0",
    "a misspelt set": GOOD + '[set]\nkind = "Bocks"\nlower = 0.0\nupper = 1.0',
    "a set without what it needs": GOOD + '[set]\nkind = "Box"',
    "a set upside down": GOOD + '[set]\nkind = "Box"\nlower = 3.0\nupper = 1.0',
    "a start outside the set": GOOD + '[set]\nkind = "Box"\nlower = 3.0\nupper = 4.0',
    "a misspelt solver": GOOD + '[solver]\nkind = "PZSO"',
    "a solver that is a set": GOOD + '[solver]\nkind = "Box"\nlower = 0.0\nupper = 1.0',
    "a solver that is an error": GOOD + '[solver]\nkind = "InvalidInput"',
    "a solver that is a function": GOOD + '[solver]\nkind = "solve"',
    "a solver with a misspelt setting": GOOD + '[solver]\nkind = "PZOS"\nsteep = 0.1',
    "a negative step": GOOD + '[solver]\nkind = "PZOS"\nstep = -0.1',
    "a radius in words": GOOD + '[solver]\nkind = "PZOS"\nradius = "wide"',
    "steps that are half": GOOD + "steps = 2.5",
    "no steps": GOOD + "steps = 0",
    "queries in words": GOOD + 'queries = "many"',
    "a negative seed": GOOD + "seed = -1",
    "a target that is none": GOOD + "target = nan",
    "time that runs backwards": GOOD + "seconds = -3",
    "a share above one": GOOD + "failure_rate = 2.0",
    "workers in words": GOOD + 'workers = "two"',
    "no workers": GOOD + "workers = 0",
    "an unknown order": GOOD + 'order = "random"',
    "a risk above one": GOOD + "risk = 1.5",
    "a negative grid": GOOD + "grid = -1",
    "a grid of another length": GOOD + "grid = [1.0, 1.0, 1.0]",
    "a misspelt cap": GOOD + "outcomes = {uper = [1.0]}",
    "a cap on an entry that is not there": GOOD + "outcomes = {upper = [1.0], entries = [-1]}",
    "outcomes that are a number": GOOD + 'outcomes = "model:number"',
    "names for another dimension": GOOD + '[decisions]\nnames = ["one"]',
    "a follower that fails": GOOD.replace("model:follower", "model:broken"),
    "a follower that answers in words": GOOD.replace("model:follower", "model:words"),
    "a follower that answers nothing": GOOD.replace("model:follower", "model:nothing"),
    "a follower with a hole in its answer": GOOD.replace("model:follower", "model:endless"),
    "a follower whose answers grow": GOOD.replace("model:follower", "model:growing"),
    "a cost that raises": GOOD.replace("model:leader", "model:faulty_cost"),
    "a cost that is no number": GOOD.replace("model:leader", "model:nan_cost"),
    "a gradient of the wrong sign": GOOD.replace("model:leader", "model:upside_down"),
}

#: Command lines that cannot be.
COMMANDS = [
    "nonsense",
    "--nonsense",
    "solve",
    "solve nofile.py:x",
    "solve nomodel:leader",
    "solve model:leader",
    "solve model:number",
    "solve model:no_problem",
    "solve model:prolbem",
    "solve model",
    "solve no.toml",
    "solve folder",
    "solve model:problem --solver PZSO",
    "solve model:problem --solver default",
    "solve model:problem --solver Box",
    "solve model:problem --step 0.1",
    "solve model:problem --solver PZOS --step -1",
    "solve model:problem --solver PZOS --step much",
    "solve model:problem --queries 0",
    "solve model:problem --queries 1.5",
    "solve model:problem --seed -1",
    "solve model:problem --certificate 5",
    "solve model:problem --solver PZOS --certificate 50",
    "solve model:problem --workers 0",
    "solve model:problem --dask nowhere --workers 2",
    "solve model:problem --answers no.study",
    "solve model:problem --answers empty.csv",
    "solve model:problem --trust-since 2026-01-01",
    "solve model:problem --attempts 0",
    "solve model:problem --timeout -1",
    "solve good.toml --solver PZOS",
    "run no.toml",
    "run hand.toml",
    "run ended.study",
    "run good.toml --steps 0",
    "resume good.toml",
    "init no.toml",
    "ask good.toml",
    "ask hand.toml --count 0",
    "tell no.csv hand.toml",
    "tell empty.csv hand.toml",
    "tell words.csv hand.toml",
    "tell stray.csv hand.toml",
    "tell half.json hand.toml",
    "untell ended.study 3",
    "untell ended.study 99.0",
    "untell no.study 0.0",
    "status no.toml",
    "status no.study",
    "status folder",
    "export ended.study out.txt",
    "export no.study out.csv",
    "export ended.study out.csv --what steps",
    "recover no.study",
    "report no.study",
    "report ended.study --out folder.html",
    "report good.toml --solver model:number",
    "watch no.study",
    "watch ended.study --interval 0",
    "watch ended.study --queries -1",
    "certify ended.study --delta 0.1",
    "certify no.study --delta 0.1",
    "certify ended.study --problem model:problem --solver model:number --delta -1",
    "plan --L-f 1",
    "plan --L-f -1 --L-g 1 --L-y 1 --Delta 1 --delta 1 --epsilon 1 --dimension 3",
    "plan --L-f 1 --L-g 1 --L-y 1 --Delta 1 --delta 1 --epsilon 1 --dimension 3 --k2 much",
    "front good.toml",
    "front good.toml --leaders model:leader",
    "front good.toml --leaders model:leader model:laeder",
    "front good.toml --leaders model:leader model:cost --out picture.txt",
    "reproduce figure99",
    "reproduce --jobs 0",
    "tolls --city nowhere",
]


def said(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str]:
    """Return the exit code and what was written to standard error."""
    try:
        code = main(words)
    except SystemExit as left:  # argparse says itself what it does not understand
        code = int(left.code or 0)
    return code, capsys.readouterr().err


def assert_one_sentence(code: int, text: str) -> None:
    assert code == 2, text
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if line.strip()]
    usage = lines and lines[0].startswith("usage:")
    told = lines[-1:] if usage else [line for line in lines if not line.startswith("  - ")]
    assert len(told) == 1, text  # one sentence, with a list of faults below it at most
    assert 10 < len(told[0]) < 1000


@pytest.mark.parametrize("fault", DESCRIPTIONS)
def test_a_wrong_description(folder: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    (folder / "wrong.toml").write_text(DESCRIPTIONS[fault], encoding="utf-8")
    assert_one_sentence(*said(capsys, ["solve", "wrong.toml", *(["--queries", "3"] if "queries" not in fault else [])]))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_wrong_command(folder: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    if "ended.study" in line:
        problem = pzos.Problem(
            pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y), abs, [1.0]
        )
        pzos.solve(problem, pzos.PZOS(), steps=1, path=folder / "ended.study")
    if line.startswith("tell") or "--count" in line:
        assert main(["init", "hand.toml"]) == 0
        capsys.readouterr()
    assert_one_sentence(*said(capsys, line.split()))


def test_there_are_a_hundred_of_them() -> None:
    assert len(DESCRIPTIONS) + len(set(COMMANDS)) >= 100


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["solve", "nofile.py:x"], "there is no file"),
        (["solve", "model:problem", "--solver", "PZSO"], "did you mean 'PZOS'?"),
        (["solve", "broken.toml", "--queries", "3"], "at x = [1.0, 2.0]"),
        (["run", "broken.toml"], "--drop goes on without"),
        (["solve", "raising.toml", "--queries", "3"], "your code fails at"),
    ],
)
def test_a_few_as_users_type_them(folder: Path, words: list[str], text: str) -> None:
    (folder / "broken.toml").write_text(DESCRIPTIONS["a follower that fails"], encoding="utf-8")
    (folder / "raising.toml").write_text(DESCRIPTIONS["a cost that raises"], encoding="utf-8")
    done: Any = subprocess.run(
        [sys.executable, "-m", "pzos", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert_one_sentence(done.returncode, done.stderr)
    assert text in done.stderr
