"""``--answers FILE ...``: a run of the command line begins with what is known already; ``pzos front``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pzos
from command_line import pzos_in

MODEL = """
import numpy as np
import pzos

old = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
new = pzos.leader_from_functions(lambda x, y: float(y @ y + x.sum()), lambda x, y: 0 * x + 1, lambda x, y: 2 * y)


def follower(x):
    with open("asked.txt", "a") as file:
        file.write("x")
    return np.abs(x - 0.3) + 0.1 * x[::-1]
"""
STUDY = 'name = "{name}"\nleader = "model:{name}"\nfollower = "model:follower"\nx0 = [1.0, 2.0]\nqueries = 6\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    for name in ("old", "new"):
        (tmp_path / f"{name}.toml").write_text(STUDY.format(name=name))
    assert pzos_in(tmp_path, "run", "old.toml").returncode == 0
    return tmp_path


def asked(folder: Path) -> int:
    return len((folder / "asked.txt").read_text())


def test_run_begins_with_the_answers_of_another_study_and_a_table(folder: Path) -> None:
    (folder / "measured.csv").write_text("x0,x1,y0,y1\n0.0,0.0,0.3,0.3\n")
    before = asked(folder)
    words = ("run", "new.toml", "--answers", "old.study", "measured.csv", "--json")
    result: Any = json.loads(pzos_in(folder, *words).stdout)
    assert asked(folder) - before == result["queries"] == 6
    table = pzos.Answers.open(folder / "new.study")
    assert table.source == ("old.study",) * 6 + ("measured.csv",) + ("new.study",) * 6
    (folder / "old.study").unlink()
    status = pzos_in(folder, "status", "new.toml").stdout
    assert "7 from old.study (6), measured.csv (1)" in status
    assert "begun with" in pzos_in(folder, "status", "new.study").stdout
    again = pzos_in(folder, "run", "new.toml", "--json")
    assert json.loads(again.stdout)["best_x"] == result["best_x"]
    assert asked(folder) - before == 6


def test_solve_uses_them_and_says_so(folder: Path) -> None:
    printed = pzos_in(folder, "solve", "new.toml", "--answers", "old.study", "--queries", "3")
    assert printed.returncode == 0
    assert "6 from old.study (6)" in printed.stdout


def test_all_files_that_cannot_be_used_are_named(folder: Path) -> None:
    (folder / "wrong.csv").write_text("a,b\n1,2\n")
    refused = pzos_in(folder, "solve", "new.toml", "--answers", "wrong.csv", "nowhere.study", "old.study")
    assert refused.returncode == 2
    assert "wrong.csv" in refused.stderr
    assert "nowhere.study" in refused.stderr
    assert "Traceback" not in refused.stderr
    (folder / "wide.csv").write_text("x0,y0,y1\n1.0,2.0,3.0\n")
    refused = pzos_in(folder, "solve", "new.toml", "--answers", "wide.csv")
    assert "2 decisions, as the problem has" in refused.stderr


def test_answers_from_before_a_date_only_shape_the_prior(folder: Path) -> None:
    words = ("solve", "new.toml", "--answers", "old.study", "--queries", "3")
    printed = pzos_in(folder, *words, "--trust-since", "2999-01-01")
    assert printed.returncode == 0, printed.stderr
    assert "6 are old and only shape the prior" in printed.stdout
    assert "agree with the new ones" in printed.stdout
    assert "older answers" not in pzos_in(folder, *words, "--trust-since", "2001-01-01").stdout
    refused = pzos_in(folder, "solve", "new.toml", "--trust-since", "2026-01-01")
    assert "--answers FILE" in refused.stderr
    refused = pzos_in(folder, *words, "--trust-since", "yesterday")  # would age all of them, as followers' name
    assert "expected a date (2026-05-01), or the name of followers: model:follower" in refused.stderr


def test_a_front_is_found_kept_and_drawn(folder: Path) -> None:
    pytest.importorskip("plotly")
    words = ("front", "old.toml", "--leaders", "model:old", "model:new", "--order", "told", "--study", "f.study")
    before = asked(folder)
    found: Any = json.loads(
        pzos_in(folder, *words, "--answers", "old.study", "--queries", "5", "--out", "front.html", "--json").stdout
    )
    assert found["queries"] == asked(folder) - before == 5
    assert len(found["points"]) == len(found["decisions"]) >= 1
    assert "x[1] =" in (folder / "front.html").read_text()
    again = pzos_in(folder, *words, "--queries", "5")
    assert "from 5 queries" in again.stdout
    assert asked(folder) - before == 5
    refused = pzos_in(folder, "front", "old.toml", "--leaders", "model:old", "--out", "front.gif")
    assert "expected .png" in refused.stderr
    assert "two or three leaders" in pzos_in(folder, "front", "old.toml", "--leaders", "model:old").stderr
