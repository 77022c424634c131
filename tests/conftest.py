"""Shared by all tests: helper modules beside this file, repeatable property tests, and a deadline for every test."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# No deadlines for single examples: shared machines are slow at times. The same examples every time: a red test stays
# red.
settings.register_profile("pzos", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pzos")

# The background jobs of a shell ignore Ctrl-C, and so would every program that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PATIENCE = 900  # seconds; far more than the slowest test needs on a busy machine
STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # nothing is captured yet: what is written here is seen


@pytest.fixture(autouse=True)
def deadline(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that is still at it after :data:`PATIENCE`; without alarms (Windows) the whole run ends."""
    if not hasattr(signal, "SIGALRM"):
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=request.config.stash[STDERR])
        yield
        faulthandler.cancel_dump_traceback_later()
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
