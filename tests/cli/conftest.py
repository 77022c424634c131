"""Shared by the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import pzos
from instances import problem


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return a small study that has ended."""
    path = tmp_path / "small.study"
    pzos.solve(problem(), pzos.PZOS(step=0.05, radius=0.1), steps=8, path=path)
    return path
