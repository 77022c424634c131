"""One writer per study, whatever its name; readers are never in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pzos
from durable_problem import problem
from pzos.durable import lock
from pzos.durable.lock import busy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
PATIENCE = 60.0


def opened(path: Path, **given: bool) -> pzos.Study:
    return pzos.Study.open(path, problem().known(), pzos.PZOS(batch=2), seed=7, steps=6, **given)


def test_links_and_renames_do_not_make_two_writers(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    writer = opened(path)
    os.link(path, tmp_path / "hard.study")
    (tmp_path / "soft.study").symlink_to(path)
    for name in ("hard.study", "soft.study"):
        with pytest.raises(pzos.StudyBusy):
            opened(tmp_path / name)
    path.rename(tmp_path / "renamed.study")
    with pytest.raises(pzos.StudyBusy):
        opened(tmp_path / "renamed.study")
    with pytest.raises(pzos.StudyGone, match="was deleted or moved"):
        writer.close()
    opened(tmp_path / "hard.study").close()


def test_a_reader_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    opened(path).close()
    with opened(path, read_only=True), opened(path) as writer, opened(path, read_only=True):
        assert len(writer.ask()) == 5


def test_a_forked_child_does_not_keep_the_study_shut(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; sys.path[:0] = sys.argv[2:]; import pzos, durable_problem as d\n"
        "s = pzos.Study.open(sys.argv[1], d.problem().known(), pzos.PZOS(batch=2), seed=7, steps=6)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    time.sleep(120)\n"
        "    os._exit(0)\n"
        "print(child, flush=True); time.sleep(120)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "s.study"), str(Path(__file__).parents[1]), *sys.path]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = 0
    try:
        assert driver.stdout is not None
        with driver.stdout as said:
            child = int(said.readline())
        with pytest.raises(pzos.StudyBusy, match=f"process {driver.pid} on "):
            opened(tmp_path / "s.study")
        driver.kill()
        driver.wait(timeout=PATIENCE)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                opened(tmp_path / "s.study").close()
                break
            except pzos.StudyBusy:
                assert time.monotonic() < until
                time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait(timeout=PATIENCE)
        if child:
            os.kill(child, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test of this process loaded it
def test_a_forked_child_cannot_tell(tmp_path: Path) -> None:
    with opened(tmp_path / "s.study") as study:
        query = study.ask()[0]
        child = os.fork()
        if child == 0:
            code = 1
            try:
                study.tell(query, problem().follower.respond(query.x, None))
            except pzos.PzosError as error:
                code = 0 if "not in a forked child" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        study.tell(query, problem().follower.respond(query.x, None))


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, *, wait: bool) -> None:
        raise OSError(37, "No locks available")

    opened(tmp_path / "s.study").close()
    monkeypatch.setattr("pzos.durable.lock.lock", no_locks)
    with pytest.raises(pzos.PzosError, match=r"No locks available.*put the study on a local disk"):
        opened(tmp_path / "s.study")


def test_the_file_that_has_the_name_is_the_one_that_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking another file may take the name."""
    path, other = tmp_path / "s.study", tmp_path / "other.study"
    for name in (path, other):
        opened(name).close()
    inode, really = other.stat().st_ino, lock.lock

    def replaced(descriptor: int, *, wait: bool) -> None:
        if other.exists():
            other.replace(path)
        really(descriptor, wait=wait)

    monkeypatch.setattr(lock, "lock", replaced)
    descriptor = lock.open_to_write(path)
    assert os.fstat(descriptor).st_ino == inode
    lock.let_go(descriptor, os.getpid())


def test_a_holder_that_is_not_named_is_another_process() -> None:
    assert "by another process:" in str(busy(Path("s.study"), {}))
    assert "by another process:" in str(busy(Path("s.study"), {"pid": "1"}))
