"""One writer per study: a lock on the file itself, which the system drops when the process ends, however it ends.

The lock belongs to the file, not to its name: links and renames cannot make two writers. A forked child gives its
copy of the descriptor back at once, so that a worker that outlives a killed driver does not keep the study shut.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pzos.base.checks import printable
from pzos.base.errors import PzosError, StudyBusy
from pzos.base.frames import lock

BINARY = getattr(os, "O_BINARY", 0)
_locked_here: set[int] = set()


def open_to_read(path: Path) -> int:
    """Return a descriptor for looking on; it needs no permission to write and is in nobody's way."""
    _require_plain(path)
    return os.open(path, os.O_RDONLY | BINARY)


def open_to_write(path: Path, *, new: bool = False) -> int:
    """Return a descriptor of the file that is locked; BlockingIOError if another has the lock."""
    if not new:
        _require_plain(path)
    flags = os.O_RDWR | BINARY | (os.O_CREAT | os.O_EXCL if new else 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            lock(descriptor, wait=False)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    _locked_here.add(descriptor)
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError as error:
            os.close(descriptor)
            raise PzosError(
                f"{path}: cannot be locked for writing ({error.strerror}): expected a file system with locks; "
                "put the study on a local disk"
            ) from error
        os.close(descriptor)  # another file has taken its name meanwhile: that one is meant


def _require_plain(path: Path) -> None:
    """Raise OSError for what is no plain file: opening a pipe would wait, and a device has no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no plain file")


def lock_out_writers(path: Path, descriptor: int) -> None:
    """Keep writers out of a file that is open for reading, until it is closed; StudyBusy if one is at work."""
    try:
        lock(descriptor, wait=False)
    except BlockingIOError:
        raise busy(path, {}) from None


def let_go(descriptor: int, owner: int) -> None:
    """Close a descriptor and with it the lock, unless a fork has closed it in this process already."""
    if owner == os.getpid():
        _locked_here.discard(descriptor)
        os.close(descriptor)


def _after_fork() -> None:
    while _locked_here:
        os.close(_locked_here.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def holder() -> dict[str, Any]:
    """Return who writes, in the words that :func:`busy` reads."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}


def busy(study: Path, opened: Mapping[str, Any]) -> StudyBusy:
    """Return the error for a study that another writes, who noted ``opened`` in it when he began."""
    who = "another process"
    if isinstance(opened.get("pid"), int):
        host, since = (printable(str(opened.get(name)))[:80] for name in ("host", "since"))
        who = f"process {opened['pid']} on {host} since {since}"
        if opened["pid"] == os.getpid() and opened.get("host") == socket.gethostname():
            who = f"this process ({os.getpid()}); close the other with study.close()"
    return StudyBusy(
        f"{study}: is being written by {who}: expected one writer at a time; "
        "wait for it, stop it, or look on with read_only=True"
    )
