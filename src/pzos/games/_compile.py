"""The one place where functions are compiled: how, what is kept on disk, and what the user is told about it.

Rooms above (:mod:`pzos.networks`) compile by the same words. Numba keeps compiled kernels on disk, so that compilation
takes place once after an installation. With ``NUMBA_DISABLE_JIT=1`` every decorator here hands its function back
unchanged: kernels then run as plain Python, slowly, where a debugger and a measurement of coverage can see them.
No fast-math but where a decorator says so: a result has the same bits on every run.

Importing this module loads numba; games do so with their first answer.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])
logger = logging.getLogger("pzos")

COMPILES = not numba.config.DISABLE_JIT
"""Whether functions are compiled at all."""

_INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ANY_ORDER = {"nnan", "nsz", "reassoc", "contract"}


def compiled(function: Function) -> Function:
    """Compile a kernel on first use: kept on disk, and other threads of Python go on meanwhile."""
    made: Function = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return made


def inlined(function: Function) -> Function:
    """Merge a helper into its callers before compilation: handing arrays over costs more than many a helper does."""
    made: Function = numba.njit(inline="always", error_model="numpy")(function)
    return made


def inner(function: Function) -> Function:
    """Compile a helper that only kernels call; it is kept on disk as part of them."""
    made: Function = numba.njit(**_INNER)(function)
    return made


def embedded(function: Function) -> Function:
    """As `inner`, but merged into its callers after compilation: quicker to compile than `inlined` if used often."""
    made: Function = numba.njit(forceinline=True, **_INNER)(function)
    return made


def reordered(function: Function) -> Function:
    """As `embedded`, for sums whose last bits do not matter: the machine may add in any order."""
    made: Function = numba.njit(forceinline=True, fastmath=_ANY_ORDER, **_INNER)(function)
    return made


class _Announcer(event.Listener):  # type: ignore[misc]
    """Remembers when the first compilation of a block began, and says so."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started: float | None = None

    def on_start(self, event: object) -> None:
        """Announce the first compilation; a kernel's helpers are compiled inside it."""
        if self.started is None:
            self.started = time.perf_counter()
            logger.warning("compiling the %s (up to half a minute, once after installation) ...", self.name)

    def on_end(self, event: object) -> None:
        """Nothing to say: helpers end before the kernel itself does."""


@contextlib.contextmanager
def announce_compilation(name: str) -> Iterator[None]:
    """Say that a kernel is being compiled inside the block, and log at INFO how long it took.

    Said at WARNING, which Python shows unless told otherwise: nobody should sit before a program that seems to hang.
    Numba raises ``numba:compile`` after its cache was missed and before the work begins: slow starts are announced,
    fast ones are not. Use it around the *first* call of a kernel, on a tiny input::

        with announce_compilation("security follower"):
            solve_rows(...)
    """
    listener = _Announcer(name)
    with event.install_listener("numba:compile", listener):
        yield
    if listener.started is not None:
        logger.info("compiled the %s in %.1f s", name, time.perf_counter() - listener.started)
