"""A test that waits for ever fails instead."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

PATIENCE = 900  # seconds; far more than the slowest test needs on a busy machine


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """Fail a test that is still at it after :data:`PATIENCE`."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"the test was still waiting after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
