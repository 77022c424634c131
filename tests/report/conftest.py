"""Small studies on disk that the report tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import pzos
from instances import problem

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.study"
    pzos.solve(problem(), SOLVER, steps=8, path=path)
    return path
