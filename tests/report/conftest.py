"""Small studies on disk that the report tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import pzos
from instances import problem

SOLVER = pzos.PZOS(step=0.05, radius=0.1)
MODULE = """
import numpy as np, pzos
from instances import problem as make
problem = make()
solver = pzos.PZOS(step=0.05, radius=0.1)
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.study"
    pzos.solve(problem(), SOLVER, steps=8, path=path)
    return path


@pytest.fixture
def named(tmp_path: Path) -> str:
    """Return the name of a module that holds ``problem`` and ``solver``, as the command line takes it."""
    path = tmp_path / "report_model.py"
    path.write_text(MODULE, encoding="utf-8")
    return str(path)
