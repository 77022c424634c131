"""``pzos report``: one page from study files or TOML files, and mistakes as one clear line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pzos
from pzos.cli.main import main

SOLVER = pzos.PZOS(step=0.05, radius=0.1)
MODULE = """
import numpy as np, pzos
from instances import problem as make
problem = make()
solver = pzos.PZOS(step=0.05, radius=0.1)
"""


@pytest.fixture
def named(tmp_path: Path) -> str:
    """Return the name of a module that holds ``problem`` and ``solver``, as the command line takes it."""
    path = tmp_path / "report_model.py"
    path.write_text(MODULE, encoding="utf-8")
    return str(path)


def test_the_command_writes_one_page_for_several_studies(
    study: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    out = tmp_path / "both.html"
    words = ["report", str(study), str(study), "--problem", f"{named}:problem", "--solver", f"{named}:solver"]
    assert main([*words, "--out", str(out)]) == 0
    assert "2 studies" in capsys.readouterr().out
    assert "2 studies" in out.read_text(encoding="utf-8")


def test_the_toml_file_says_it_all(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    (tmp_path / "toml_model.py").write_text("from instances import LEADER as leader, response", encoding="utf-8")
    toml = tmp_path / "tolls.toml"
    toml.write_text(
        'name = "described"\nleader = "toml_model:leader"\nfollower = "toml_model:response"\n'
        'x0 = [0.2, 0.4, 0.6, 0.8, 1.0]\nsteps = 5\n[solver]\nkind = "PZOS"\nstep = 0.05\nradius = 0.1\n',
        encoding="utf-8",
    )
    assert main(["report", str(toml)]) == 2  # not begun yet
    assert main(["run", str(toml)]) == 0
    assert main(["report", str(toml), "--out", str(tmp_path / "page.html")]) == 0
    text = re.sub(r"<script>.*?</script>", "", (tmp_path / "page.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "progress" in text
    assert "described" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.study"], "STUDY = 'nowhere.study': expected a study file"),
        (["{study}", "--problem", "mine"], "expected module:name or file.py:name"),
        (["{study}", "--problem", "absent_file.py:problem"], "there is no file"),
        (["{study}", "--problem", "{named}:pizza"], "has no 'pizza'"),
        (["{study}", "--problem", "{named}:solver"], "expected a pzos.Problem"),
        (["{study}", "--problem", "no_such_module:problem"], "cannot be imported"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: list[str], said: str, study: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(study=study, named=named) for word in words]
    assert main(["report", *filled, "--out", str(tmp_path / "none.html")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "none.html").exists()
