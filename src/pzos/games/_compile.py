"""Say to the user that a kernel is being compiled, only when that really happens.

Numba caches compiled kernels on disk (``cache=True``), so compilation takes place once after an installation.
Numba raises its ``numba:compile`` event after the cache was missed and before the work begins: listening to
it announces exactly the slow starts and none of the fast ones.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

logger = logging.getLogger("pzos")


@contextlib.contextmanager
def announce_compilation(name: str) -> Iterator[None]:
    """Say that a kernel is being compiled inside the block, and log at INFO how long it took.

    Said at WARNING, which Python shows unless told otherwise: nobody should sit before a program that seems to hang.

    Use it around the *first* call of a kernel, on a tiny input::

        with announce_compilation("security follower"):
            solve_rows(...)
    """
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        """Remembers when the first compilation of the block began."""

        started: float | None = None

        def on_start(self, event: object) -> None:
            """Announce the first compilation; a kernel's helpers are compiled inside it."""
            if self.started is None:
                self.started = time.perf_counter()
                logger.warning("compiling the %s (up to half a minute, once after installation) ...", name)

        def on_end(self, event: object) -> None:
            """Nothing to say: helpers end before the kernel itself does."""

    listener = Announcer()
    with event.install_listener("numba:compile", listener):
        yield
    if listener.started is not None:
        logger.info("compiled the %s in %.1f s", name, time.perf_counter() - listener.started)
