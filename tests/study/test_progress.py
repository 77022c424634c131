"""A bar on a terminal, silence in a pipe: both seen from outside, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pzos

SOURCE = str(Path(pzos.__file__).resolve().parent.parent)
PROGRAM = """
import sys, time, numpy as np, pzos
leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
def follower(x):
    time.sleep(0.02)
    return abs(x)
problem = pzos.Problem(leader, follower, np.ones(2), name="tolls")
settings = eval(sys.argv[1])
assert pzos.solve(problem, pzos.PZOS(), **settings).steps >= 1
"""


def environment() -> dict[str, str]:
    changed = {"PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    dropped = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return {**{k: v for k, v in os.environ.items() if k not in dropped}, **changed}


def command(settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-c", PROGRAM, repr(settings)]


def on_a_terminal(settings: dict[str, Any]) -> tuple[int, str]:
    """Run the program with standard error on a terminal and return its exit code and what it showed."""
    pty = pytest.importorskip("pty", reason="no terminals of this kind on this system")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command(settings), stdout=subprocess.PIPE, stderr=theirs, env=environment())
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    output = process.communicate(timeout=60)[0]
    assert output == b""
    return process.returncode, shown.decode(errors="replace")


def test_silence_in_a_pipe() -> None:
    done = subprocess.run(command({"steps": 3}), capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("settings", "unit"),
    [({"steps": 12}, "/12 steps"), ({"queries": 36}, "/36 queries"), ({"seconds": 0.8}, "/1 seconds")],
)
def test_a_bar_on_a_terminal(settings: dict[str, Any], unit: str) -> None:
    pytest.importorskip("rich", reason="the extra 'cli' is not installed")
    code, shown = on_a_terminal(settings)
    assert code == 0, shown
    assert "tolls" in shown
    assert unit in shown
    assert "F = " in shown
    assert "Traceback" not in shown


def test_a_bar_may_be_refused() -> None:
    code, shown = on_a_terminal({"steps": 3, "progress": False})
    assert (code, shown) == (0, "")


def test_without_rich_there_is_no_bar_and_asking_for_one_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from instances import problem

    monkeypatch.setattr("pzos.study.run.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert pzos.solve(problem(), pzos.PZOS(), steps=1).steps == 1
    with pytest.raises(pzos.MissingExtra, match=r'a progress bar needs .*pip install "pzos\[cli\]"'):
        pzos.solve(problem(), pzos.PZOS(), steps=1, progress=True)


def test_no_standard_error_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from instances import problem

    monkeypatch.setattr(sys, "stderr", None)
    assert pzos.solve(problem(), pzos.PZOS(), steps=1).steps == 1
