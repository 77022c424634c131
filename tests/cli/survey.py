"""A folder with studies for the dashboard: one that people answer, one that has ended, one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pzos
from instances import problem
from pzos.cli.main import main

MODEL = """
import pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
"""
STUDY = """
name = "two prices"
leader = "survey_model:leader"
x0 = [1.0, 2.0]
steps = 3
[solver]
kind = "PZOS"
[decisions]
names = ["price <in>", "price out"]
units = "EUR"
digits = 2
[responses]
names = ["cars", "trams"]
units = ["cars/h", "trips/h"]
digits = 1
"""


def make(folder: Path) -> Path:
    """Write the studies into ``folder``."""
    (folder / "survey_model.py").write_text(MODEL)
    (folder / "survey.toml").write_text(STUDY)
    (folder / "broken.toml").write_text('leader = "no_such_module:leader"\nx0 = [1.0]\n')
    (folder / "pyproject.toml").write_text('[project]\nname = "of no interest"\n')
    assert main(["init", str(folder / "survey.toml")]) == 0
    pzos.solve(problem(), pzos.PZOS(step=0.05, radius=0.1), steps=8, path=folder / "ended.study")
    return folder
