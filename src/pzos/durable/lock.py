"""One writer per study: a lock the system itself drops when the process ends, however it ends.

The lock lies beside the study (``tolls.study.lock``) and names its holder. It is a POSIX record lock: not inherited by
child processes, so a worker that outlives a killed driver does not keep the study shut.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

from pzos.base.errors import PzosError, StudyBusy

_held_here: set[str] = set()


class WriterLock:
    """Held from :meth:`take` until :meth:`release`."""

    def __init__(self, study: Path) -> None:
        self.study = study
        self.path = study.with_name(study.name + ".lock")
        self._key = os.path.realpath(self.path)
        self._descriptor = -1
        self._owner = -1

    def take(self) -> None:
        """Take the lock, or raise StudyBusy naming the process that has it."""
        if self._key in _held_here:  # record locks do not keep out their own process
            raise _busy(self.study, f"this process ({os.getpid()}); close the other with study.close()")
        try:
            self._descriptor = self._locked_descriptor()
        except OSError as error:
            raise PzosError(
                f"{self.study}: cannot be locked for writing ({error.strerror}): expected a directory that can be "
                "written to and locked; put the study on a local disk"
            ) from error
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)
        self._owner = os.getpid()
        _held_here.add(self._key)

    def _locked_descriptor(self) -> int:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if not _lock(descriptor):
                    raise _busy(self.study, _holder(descriptor))
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its last holder removed the file meanwhile: lock the new one

    def release(self) -> None:
        """Give the lock back; a forked child, which never had it, changes nothing."""
        if self._descriptor < 0 or self._owner != os.getpid():
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        os.close(self._descriptor)
        self._descriptor = -1
        _held_here.discard(self._key)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text, which others must be able to read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {int(holder['pid'])} on {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError, OSError):
        return "another process"


def _busy(study: Path, holder: str) -> StudyBusy:
    return StudyBusy(
        f"{study}: is being written by {holder}: expected one writer at a time; "
        "wait for it, stop it, or look on with read_only=True"
    )
