"""Families of processes: their marks, their end, and the guard that ends those of a driver that was killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pzos.answers import processes
from pzos.answers.processes import MARK, end_family, enrol, new_mark
from unreliable import SLEEPER, gone


def test_a_family_inside_a_family_has_a_longer_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MARK, raising=False)
    outer = new_mark()
    monkeypatch.setenv(MARK, outer)
    inner = new_mark()
    assert inner.startswith(outer + "/")
    assert new_mark() != inner


def sleeper(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEPER, env={**os.environ, MARK: mark})


def test_the_end_of_a_family_is_not_that_of_another() -> None:
    ours, theirs = new_mark(), new_mark()
    with sleeper(ours) as first, sleeper(ours + "/inner") as second, sleeper(theirs) as stranger:
        try:
            end_family(first.pid, ours)
            assert first.wait(60.0) != 0
            assert second.wait(60.0) != 0
            assert stranger.poll() is None
        finally:
            for process in (first, second, stranger):
                process.kill()


def test_a_root_that_is_gone_does_not_keep_its_family() -> None:
    mark = new_mark()
    with sleeper(mark) as root:
        root.kill()
    with sleeper(mark) as left:
        try:
            end_family(root.pid, mark)
            assert left.wait(60.0) != 0
        finally:
            left.kill()


DRIVER = """
import os, subprocess, sys
from pzos.answers.processes import dismiss, enrol
program = [sys.executable, "-c", "import time; time.sleep(600)"]
kept, dismissed = (subprocess.Popen(program, stdout=subprocess.DEVNULL) for _ in range(2))
for child in (kept, dismissed):
    enrol(child.pid, f"/{child.pid}")
dismiss(dismissed.pid)
print(kept.pid, dismissed.pid, flush=True)
if sys.argv[1] == "with a child" and not os.fork():
    os.close(1)
    os.setsid()
    import time
    time.sleep(20)  # holds the pipe to the guard meanwhile
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("how", ["alone", "with a child"])
def test_the_guard_ends_what_it_was_told_of(how: str) -> None:
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", DRIVER, how], env=where, stdout=subprocess.PIPE, text=True, check=True)
    kept, dismissed = map(int, done.stdout.split())
    try:
        assert gone(kept)
        assert not gone(dismissed, patience=1.0)
    finally:
        os.kill(dismissed, 9)


def test_inside_a_family_there_is_no_second_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "/outer")
    monkeypatch.setattr(processes, "_guards", [])
    enrol(os.getpid(), "/outer/inner")
    assert processes._guards == []


def test_without_a_guard_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError("no process to spare")

    monkeypatch.delenv(MARK, raising=False)
    monkeypatch.setattr(processes, "_guards", [])
    monkeypatch.setattr(processes, "_Guard", refused)
    enrol(os.getpid(), "/mark")
    assert not processes.start_guard()
