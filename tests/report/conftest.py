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


def write_study(path: Path, *, steps: int = 8, **settings: object) -> pzos.Result:
    """Run a small durable study to its end."""
    the_problem = problem()
    with pzos.Study.open(path, the_problem.known(), SOLVER, steps=steps, **settings) as study:
        return pzos.drive(study, pzos.Oracle(the_problem.follower), progress=False)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.study"
    write_study(path)
    return path


@pytest.fixture
def named(tmp_path: Path) -> str:
    """Return the name of a module that holds ``problem`` and ``solver``, as the command line takes it."""
    path = tmp_path / "mine.py"
    path.write_text(MODULE, encoding="utf-8")
    return str(path)
