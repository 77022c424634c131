"""``pzos solve`` is ``pzos.solve``: the same method, limits, certificate and explanation, bit for bit."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from command_line import pzos_in

MODEL = """
import numpy as np
import pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y, name="gaps")
fails = []


def follower(x):
    return np.abs(x - 0.3)


def often_failing(x):
    if x[0] < 0.9 or len(fails) == 0:
        fails.append(x)
        raise RuntimeError("out of order")
    return np.abs(x - 0.3)


def problem():
    return pzos.Problem(leader, follower, x0=[1.0, 2.0], domain=pzos.Box(0.0, 2.0), name="gaps")


broken = pzos.Problem(leader, often_failing, x0=[1.0, 2.0], name="gaps")
nothing = 3


def cost(x=None, y=None):
    return x @ y
"""
STUDY = """
name = "gaps"
leader = "model:leader"
follower = "model:follower"
x0 = [1.0, 2.0]
set = { kind = "Box", lower = 0.0, upper = 2.0 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def solved(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = pzos_in(folder, "solve", *words)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def data(folder: Path, *words: str) -> Any:
    return json.loads(solved(folder, *words, "--json").stdout)


def problem() -> pzos.Problem:
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    return pzos.Problem(leader, lambda x: np.abs(x - 0.3), [1.0, 2.0], pzos.Box(0.0, 2.0), name="gaps")


def assert_same(found: Any, expected: pzos.Result) -> None:
    assert found["x"] == expected.x.tolist()
    assert found["best_x"] == expected.best_x.tolist()
    for name in ("value", "best_value", "steps", "queries", "monitoring", "failures", "seed", "explanation", "solver"):
        assert found[name] == getattr(expected, name), name
    assert found["stop"] == expected.stop.name.lower()
    assert found["certificate"] == (None if expected.certificate is None else expected.certificate.sentence)
    assert found["done"]
    assert found["open"] == []


@pytest.mark.parametrize("named", ["model.py:problem", "model:problem", "study.toml"])
def test_without_a_solver_the_command_is_the_function(folder: Path, named: str) -> None:
    expected = pzos.solve(problem(), queries=12, seed=5, certificate=35)
    found = data(folder, named, "--queries", "12", "--seed", "5", "--certificate", "35")
    assert_same(found, expected)
    assert "35 fresh queries" in found["certificate"]
    assert "trust region" in found["explanation"]
    assert not list(folder.glob("*.study*")), "nothing is kept"


def test_the_table_is_the_result_as_python_prints_it(folder: Path) -> None:
    def without_seconds(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("seconds")]

    printed = solved(folder, "study.toml", "--queries", "8").stdout
    assert without_seconds(printed) == without_seconds(pzos.solve(problem(), queries=8).table())


def test_a_named_solver_is_used_and_certified_by_nobody(folder: Path) -> None:
    expected = pzos.solve(problem(), pzos.PZOS(step=0.02, radius=0.2, batch=2), steps=4, seed=3)
    words = ("--solver", "PZOS", "--step", "0.02", "--radius", "0.2", "--batch", "2", "--steps", "4", "--seed", "3")
    assert_same(data(folder, "model.py:problem", *words), expected)
    with (folder / "study.toml").open("a") as file:
        file.write('seed = 3\nsteps = 4\n[solver]\nkind = "PZOS"\nstep = 0.02\nradius = 0.2\nbatch = 2\n')
    assert_same(data(folder, "study.toml"), expected)


def test_workers_change_no_bit(folder: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        expected = pzos.solve(problem(), queries=6, executor=threads)
    found = data(folder, "model.py:problem", "--queries", "6", "--workers", "2")
    assert_same(found, expected)  # two at a time, whoever answers them
    assert found["steps"] == 3


def test_failures_are_tolerated_as_in_python(folder: Path) -> None:
    words = ("--solver", "PZOS", "--step", "0.001", "--steps", "3")
    assert "out of order" in solved(folder, "model.py:broken", *words, code=2).stderr
    again = data(folder, "model.py:broken", *words, "--attempts", "2", "--wait", "0")
    assert (again["steps"], again["failures"]) == (3, 0)
    with (folder / "study.toml").open("a") as file:
        file.write("failure_rate = 0.01\nsteps = 40\n")
    text = (folder / "study.toml").read_text().replace("model:follower", "model:often_failing")
    (folder / "study.toml").write_text(text.replace("x0 = [1.0, 2.0]", "x0 = [0.5, 2.0]"))
    assert data(folder, "study.toml", "--drop")["stop"] == "failures"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("model.py:problem", "--step", "0.1", "--batch", "2"), "--step and --batch: expected the method it is for"),
        (("model.py:nothing",), "expected a pzos.Problem or a function that makes one"),
        (
            ("model.py:cost",),
            "expected a function that makes what is named, but it fails (TypeError: ",
        ),
        (("study.toml", "--solver", "ZOS", "--step", "0.1"), "--solver and --step: expected none with a TOML file"),
        (("model.py:problem", "--solver", "Nothing"), "expected a name of pzos"),
        (("model.py:problem", "--queries", "0"), "queries = 0: expected a whole number, 1 or more"),
        (("model.py:problem", "--dask", "here", "--workers", "2"), "choose where to compute"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(folder: Path, words: tuple[str, ...], message: str) -> None:
    assert message in solved(folder, *words, code=2).stderr


def test_a_study_without_a_follower_cannot_be_solved(folder: Path) -> None:
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('follower = "model:follower"\n', ""))
    assert "names no follower" in solved(folder, "study.toml", code=2).stderr


def test_whole_numbers_in_a_polyhedron(folder: Path) -> None:
    described = """
leader = "model:leader"
follower = "model:follower"
x0 = [0.0, 1.0]
grid = 1
queries = 12
[set]
kind = "Intersection"
sets = [{ kind = "Box", lower = 0.0, upper = 2.0 }, { kind = "Polyhedron", A = [[1.0, 1.0]], b = [2.5] }]
"""
    (folder / "whole.toml").write_text(described)
    told = data(folder, "whole.toml")
    assert all(float(entry).is_integer() for entry in told["x"])
    assert sum(told["x"]) <= 2.5
    (folder / "whole.toml").write_text(described.replace("grid = 1", "grid = [1, 2, 3]"))
    assert "grid = [1, 2, 3]: expected one step, or 2" in solved(folder, "whole.toml", code=2).stderr
