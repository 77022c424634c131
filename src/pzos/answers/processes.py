"""End a process together with everything it started, and keep the numerical libraries of a worker to one thread.

A process group is not enough: a program started in a session of its own (as :class:`pzos.CommandFollower` starts its
own) has left the group of the worker that started it. So the tree of descendants is looked up and ended as well.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


def kill_group(leader: int | None) -> None:
    """Kill every process of the group that process ``leader`` began, also when the leader itself is gone."""
    if leader is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def kill_tree(root: int | None) -> None:
    """Kill process ``root``, everything it started, and the groups those have begun."""
    if root is None or sys.platform == "win32":
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(root, signal.SIGSTOP)  # it must not start more while we look
    for process in [*reversed(descendants(root)), root]:
        kill_group(process)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Return the processes that ``root`` started, and that those started, and so on; parents come first."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found = [root]
    for process in found:  # grows while it is gone through
        found += children.get(process, [])
    return found[1:]


def _parents() -> list[tuple[int, int]]:
    """Return every process with its parent."""
    if Path("/proc/self/stat").exists():
        return [pair for entry in os.listdir("/proc") if entry.isdigit() and (pair := _from_proc(entry)) is not None]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    return [(int(words[0]), int(words[1])) for line in listed.splitlines() if len(words := line.split()) == 2]


def _from_proc(process: str) -> tuple[int, int] | None:
    try:
        text = Path("/proc", process, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return None
    return int(process), int(text.rpartition(")")[2].split()[1])  # the name before ")" may hold anything
