"""Followers that fail in every way; at the top level of a module, so that worker processes can import them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def kinked(x: np.ndarray) -> np.ndarray:
    return np.abs(x - 0.3)


def double(value: int) -> int:
    return 2 * value


def die_at(fatal: int, value: int) -> int:
    if value == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)  # long enough to be at work when another dies
    return value


def crash(x: object) -> None:
    raise ValueError(f"no equilibrium at {x}")


def unsendable(x: object) -> object:
    return lambda: x


def with_orphans(count: int) -> int:
    """Have a child leave children of its own that end; returns the process that did it."""
    if not (child := os.fork()):
        for _ in range(count):
            if not os.fork():
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    return os.getpid()


def blas_threads(_: object) -> list[int]:
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [int(info["num_threads"]) for info in threadpool_info()]


class UnsendableError(Exception):
    """An exception that pickle can neither rebuild nor write, whatever helpers other packages have registered."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")
        self.reason = lambda: first


def crash_unsendably(x: object) -> None:
    raise UnsendableError("no", "luck")


class Noting:
    """Notes its calls in a folder, one file each; ``how`` says what the first ``times`` of them do."""

    def __init__(self, folder: Path, how: str = "", times: int = 10**6) -> None:
        self.folder, self.how, self.times = folder, how, times

    def calls(self) -> int:
        return len(list(self.folder.glob("call-*")))

    def started(self) -> list[int]:
        return [int(path.name.removeprefix("pid-")) for path in self.folder.glob("pid-*")]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        number = self.calls()
        (self.folder / f"call-{os.getpid()}-{time.monotonic_ns()}").touch()
        if number < self.times:
            self._misbehave()
        if self.how == "nan" and number < self.times:
            return np.full(x.size, np.nan)
        return kinked(x)[: 1 if self.how == "short" and number == self.times else None]

    def _misbehave(self) -> None:
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "raise":
            raise ValueError("the simulator crashed")
        if self.how == "hang":
            for own_session in (False, True):
                child = subprocess.Popen(SLEEPER, start_new_session=own_session)
                self._note(child.pid)
            time.sleep(600.0)
        if self.how in ("leave a child and die", "fork twice and hang"):
            self._fork_away(twice=self.how == "fork twice and hang")
            if self.how == "leave a child and die":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600.0)
        if self.how == "hang, deaf":
            self._note(os.getpid())
            ctypes.PyDLL(None).sleep(600)  # in C, and nothing else in this process can run
        if self.how == "leave a program and die":
            self._note(subprocess.Popen(SLEEPER, start_new_session=True).pid)
            os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, process: int) -> None:
        (self.folder / f"pid-{process}").touch()

    def _fork_away(self, *, twice: bool) -> None:
        """Leave a copy of this process in a session of its own, without a program of its own."""
        if child := os.fork():
            if twice:
                os.waitpid(child, 0)  # the one between is gone, and with it the way to the other
            until = time.monotonic() + 60.0
            while not self.started() and time.monotonic() < until:
                time.sleep(0.01)
            return
        os.setsid()
        if twice and os.fork():
            os._exit(0)
        self._note(os.getpid())
        time.sleep(600.0)
        os._exit(0)


def gone(process: int, patience: float = 20.0) -> bool:
    """Tell whether a process has ended (or is a zombie nobody has collected), waiting a while for it."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        stat = Path(f"/proc/{process}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
