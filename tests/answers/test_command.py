"""Followers that are programs: JSON and CSV, in and out, exactly; and what they leave behind when they fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import pzos
from durable_problem import Counted, bits, problem
from pzos.answers.command import CommandFollower, _read, _written
from pzos.base.errors import FollowerFailure, FollowerTimeout, InvalidInput
from unreliable import gone

JSON = (
    "import json, sys; x = json.load(sys.stdin)['x']; print(json.dumps({'y': [abs(v - 0.3) for v in x], 'gap': 1e-9}))"
)
CSV = "import sys; x = [float(v) for v in sys.stdin.read().split(',')]; print(','.join(repr(abs(v - 0.3)) for v in x))"
FILES = (
    "import json, sys; x = json.load(open(sys.argv[1]))['x']\n"
    "json.dump([abs(v - 0.3) for v in x], open(sys.argv[2], 'w'))"
)


def python(program: str, *words: str, **given: Any) -> CommandFollower:
    return CommandFollower([sys.executable, "-c", program, *words], **given)


@pytest.mark.parametrize(
    "follower",
    [python(JSON), python(CSV, format="csv"), python(FILES, "{input}", "{output}")],
    ids=["json", "csv", "files"],
)
def test_in_and_out_with_every_bit(follower: CommandFollower) -> None:
    x = np.array([0.1, 1.0 / 3.0, -1e-300, 12345678.9])
    np.testing.assert_array_equal(follower.respond(x, None).y, np.abs(x - 0.3))


def test_the_gap_is_taken() -> None:
    assert python(JSON).respond(np.ones(2), None).gap == 1e-9


@given(arrays(np.float64, st.integers(1, 5), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_survive_both_formats(x: np.ndarray) -> None:
    assert _read(_written(x, "csv"), "csv").y.tobytes() == x.tobytes()
    assert _read(_written(x, "json").replace('"x"', '"y"'), "json").y.tobytes() == x.tobytes()


def test_the_bits_of_a_python_function_on_workers_too(tmp_path: Path) -> None:
    program = JSON.replace("abs(v - 0.3) for v in x]", "abs(v - 0.3) for v in x] + [max(v, 0.1) for v in x]")
    follower = python(program, directory=tmp_path)
    expected = pzos.solve(problem(follower=Counted()), pzos.PZOS(), seed=7, steps=1)
    assert bits(pzos.solve(problem(follower=follower), pzos.PZOS(), seed=7, steps=1)) == bits(expected)
    with pzos.Workers(2) as workers:
        result = pzos.solve(problem(follower=follower), pzos.PZOS(), seed=7, steps=1, executor=workers)
    assert bits(result) == bits(expected)
    assert not list(tmp_path.iterdir())  # working directories of answered queries are gone


def test_each_query_has_a_directory_and_the_environment() -> None:
    program = (
        "import json, os; open('trace.txt', 'w').write('here')\n"
        "print(json.dumps([float(os.environ['DEMAND']), float(os.environ['OMP_NUM_THREADS']), len(os.listdir())]))"
    )
    follower = python(program, environment={"DEMAND": "2.5"})
    for _ in range(2):
        np.testing.assert_array_equal(follower.respond(np.ones(1), None).y[:2], [2.5, 1.0])
        assert follower.respond(np.ones(1), None).y[2] == 4.0  # query, stdout, stderr and the trace: not shared


def test_what_a_failed_program_said_is_kept(tmp_path: Path) -> None:
    follower = python("import sys; print('half'); sys.exit('no demand matrix')", directory=tmp_path)
    with pytest.raises(FollowerFailure, match=r"exit code 1; it said: no demand matrix; .*is kept in") as caught:
        follower.respond(np.array([0.5]), None)
    (folder,) = tmp_path.iterdir()
    assert str(folder) in str(caught.value)
    assert (folder / "query.json").read_text() == '{"x": [0.5]}'
    assert (folder / "stdout.txt").read_text().strip() == "half"
    assert (folder / "stderr.txt").read_text().strip() == "no demand matrix"


@pytest.mark.parametrize(("keep", "failed", "answered"), [("failures", 1, 0), ("all", 1, 1), ("nothing", 0, 0)])
def test_which_directories_stay(tmp_path: Path, keep: Any, failed: int, answered: int) -> None:
    with pytest.raises(FollowerFailure):
        python("raise SystemExit(3)", directory=tmp_path, keep=keep).respond(np.ones(1), None)
    assert len(list(tmp_path.iterdir())) == failed
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder)
    python(JSON, directory=tmp_path, keep=keep).respond(np.ones(1), None)
    assert len(list(tmp_path.iterdir())) == answered


@pytest.mark.parametrize("said", ["", "{}", "nonsense", "[[1, 2], [3]]", '{"y": "high"}', "[]"], ids=repr)
def test_answers_that_cannot_be_read(said: str) -> None:
    with pytest.raises(FollowerFailure, match=r"cannot be read .*expected .*on standard output"):
        python(f"print({said!r})", keep="nothing").respond(np.ones(1), None)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FollowerFailure, match="cannot be run"):
        CommandFollower(["no-such-simulator"], keep="nothing").respond(np.ones(1), None)


HANGS = (
    "import subprocess, sys, time\n"
    "for own in (False, True):\n"
    "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=own)\n"
    "    open(sys.argv[1], 'a').write(f'{child.pid} ')\n"
    "time.sleep(600)"
)


FORKS_TWICE = (
    "import os, sys, time\n"
    "child = os.fork()\n"
    "if child:\n"
    "    os.waitpid(child, 0)\n"
    "else:\n"
    "    os.setsid()\n"
    "    if os.fork():\n"
    "        os._exit(0)\n"
    "    open(sys.argv[1], 'a').write(f'{os.getpid()} ')\n"
    "time.sleep(600)"
)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups, and no fork")
@pytest.mark.parametrize(("program", "count"), [(HANGS, 2), (FORKS_TWICE, 1)], ids=["started", "forked twice"])
def test_a_program_over_its_time_is_stopped_with_all_it_started(tmp_path: Path, program: str, count: int) -> None:
    follower = python(program, str(tmp_path / "pids"), timeout=3.0, keep="nothing")
    with pytest.raises(FollowerTimeout, match=r"no answer within 3 s: it was stopped$"):
        follower.respond(np.ones(1), None)
    started = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert len(started) == count
    assert all(gone(process) for process in started)


DRIVER = """
import sys, numpy as np, pzos
pzos.CommandFollower([sys.executable, "-c", sys.argv[1], sys.argv[2]]).respond(np.ones(1), None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_program_ends_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", DRIVER, HANGS, str(pids)], env=where) as driver:
        try:
            until = time.monotonic() + 60.0
            while not pids.exists() or len(pids.read_text().split()) < 2:
                assert time.monotonic() < until
                time.sleep(0.01)
            family = psutil.Process(driver.pid).children(recursive=True)
        finally:
            driver.kill()
    assert len(family) == 4  # the guard, the program, and the two it started
    assert all(gone(process.pid) for process in family)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_worker_over_its_time_takes_its_program_along(tmp_path: Path) -> None:
    follower = python(HANGS, str(tmp_path / "pids"), keep="nothing")
    tolerance = pzos.Tolerance(attempts=1, timeout=5.0)
    with pytest.raises(FollowerFailure, match="no answer within 5 s"):
        pzos.solve(problem(follower=follower), pzos.PZOS(), steps=1, tolerance=tolerance)
    assert all(gone(int(word)) for word in (tmp_path / "pids").read_text().split())


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"command": "python sim.py"}, "not a shell string"),
    ({"command": []}, "a list of arguments"),
    ({"command": ["a", 3]}, "a list of arguments"),
    ({"command": ["a"], "format": "xml"}, "format"),
    ({"command": ["a"], "timeout": 0}, "timeout"),
    ({"command": ["a"], "keep": "some"}, "keep"),
    ({"command": ["a"], "directory": "no/such/folder"}, "directory"),
]


@pytest.mark.parametrize(("given", "named"), FAULTS, ids=str)
def test_bad_arguments(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        CommandFollower(**given)
