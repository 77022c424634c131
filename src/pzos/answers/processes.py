"""Processes with all they start: marked, ended together, and ended with the driver that needs them.

A process group is not enough to end a job: a program in a session of its own (as :class:`pzos.CommandFollower` starts
its own) has left it, and one that was forked twice has left the tree of its parents too. So a *family* is a process,
all that descends from it, and all that carries its mark, which is handed down in the environment. A worker adopts its
orphans (Linux), so that none of them can leave its tree while it lives.

Run as a program this file is the guard: a process without any other task, which ends the families of a driver that was
killed before it could do so itself.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import uuid

import psutil

#: The variable in which a family's mark is handed down.
MARK = "PZOS_FAMILY"
_PR_SET_CHILD_SUBREAPER = 36
_WATCH_SECONDS = 0.5


def new_mark() -> str:
    """Return the mark of a new family; inside another family it begins with that one's mark."""
    return f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"


def adopt_orphans() -> None:
    """Become the parent of all descendants of this process that lose their own (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def dead_children() -> int:
    """Return how many children of this process have ended and were not waited for."""
    return sum(_is_dead(child) for child in psutil.Process().children())


def end_family(root: int, mark: str) -> None:
    """Kill process ``root``, all it started, the groups those have begun, and all that carries ``mark``."""
    first: psutil.Process | None = None
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(root)
        first.suspend()  # it must not start more while we look, and is killed last: it adopts its orphans
    killed: set[psutil.Process] = set()
    while found := _relatives(first, mark) - killed:  # again: they may have started others before they were killed
        for process in found:
            _kill(process)
        killed |= found
    if first is not None:
        _kill(first)
    kill_group(root)


def _relatives(first: psutil.Process | None, mark: str) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    with contextlib.suppress(psutil.Error):
        found.update([] if first is None else first.children(recursive=True))
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get(MARK, "").startswith(mark):
            found.add(process)
    return {process for process in found if process.pid != os.getpid() and process != first and not _is_dead(process)}


def _is_dead(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _kill(process: psutil.Process) -> None:
    kill_group(process.pid)
    with contextlib.suppress(psutil.Error):
        process.kill()


def kill_group(leader: int) -> None:
    """Kill every process of the group that process ``leader`` began."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


# ---- the guard --------------------------------------------------------------------------------------------------


class _Guard:
    """The guard as its driver sees it: a process that is told which families there are."""

    def __init__(self) -> None:
        self.driver = os.getpid()
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.path.abspath(__file__), str(self.driver)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # it may outlive the driver by a moment, and must not keep its pipes open
            stderr=subprocess.DEVNULL,
            cwd=os.path.dirname(os.path.abspath(__file__)),
            start_new_session=True,
        )

    def tell(self, line: str) -> None:
        with self._turn, contextlib.suppress(OSError):  # a guard that was killed cannot be told
            if self._process.stdin is not None:
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._process.communicate()


_guards: list[_Guard] = []
_making = threading.Lock()


def start_guard() -> bool:
    """Have a guard; False inside a family, whose own driver sees to its end, and where none can be started."""
    if MARK in os.environ or getattr(sys, "frozen", False):
        return False
    with _making, contextlib.suppress(OSError):  # without one all is well as long as the driver is
        if not _guards or _guards[-1].driver != os.getpid():  # none yet, or the one of a process this was forked from
            _guards.append(_Guard())
        return True
    return False


def enrol(root: int, mark: str) -> None:
    """Have a family ended if this process, its driver, is killed."""
    if start_guard():
        _guards[-1].tell(f"{root} {mark}")


def dismiss(root: int) -> None:
    """Say that a family has ended."""
    if _guards and _guards[-1].driver == os.getpid():
        _guards[-1].tell(f"{root}")


@atexit.register
def _close_guard() -> None:
    if _guards and _guards[-1].driver == os.getpid():
        _guards.pop().close()


def guard(driver: int) -> None:
    """End the families named on standard input that are left when it closes, or when the driver is gone.

    The driver is watched as well as the pipe, because a child that it has forked holds the pipe open.
    """
    families: dict[int, str] = {}

    def listen() -> None:
        for line in sys.stdin:
            root, _, mark = line.strip().partition(" ")
            if mark:
                families[int(root)] = mark
            else:
                families.pop(int(root), None)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    while listener.is_alive() and (os.name != "posix" or os.getppid() == driver):
        listener.join(_WATCH_SECONDS)
    listener.join(4 * _WATCH_SECONDS)  # what the driver said last may still lie in the pipe
    for root, mark in list(families.items()):
        end_family(root, mark)
    os._exit(0)  # the listener may still be reading


if __name__ == "__main__":
    guard(int(sys.argv[1]))
