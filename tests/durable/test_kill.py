"""Killing the driver of a durable study; the two hundred kills are benchmarks/kill.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drills import drill

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counts = drill("kill").apart("random_kills", "10", "8", "11")
    assert counts["kills"] == 10
    assert counts["different"] == 0
    assert counts["too many calls"] == 0


def test_every_write_boundary_of_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counts = drill("kill").with_shim("write_boundaries", "1", "5")
    if counts is None:
        pytest.skip("needs Linux and a C compiler")
    assert counts["boundaries"] > 10
    assert counts["deaths"] == 2 * counts["boundaries"]
    assert counts["different"] == 0
    assert counts["too many calls"] == 0
    assert counts["tells left unsynced"] == 0
