"""Code named in a TOML file: found beside it, and never mistaken for that of another study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.cli.description import load, read_description
from pzos.methods.penalty import ExactPenalty
from pzos.methods.smoothing import PZOS
from pzos.methods.trust_region.constrained import ConstrainedTrustRegion
from pzos.methods.trust_region.solver import CompositeTrustRegion


def write(folder: Path, answer: int) -> Path:
    folder.mkdir()
    (folder / "namesake.py").write_text(f"answer = {answer}\nlist_of_one = [1]\n")
    return folder


def test_two_studies_may_have_modules_of_the_same_name(tmp_path):
    one, two = write(tmp_path / "one", 1), write(tmp_path / "two", 2)
    assert [load("namesake:answer", folder) for folder in (one, two, one)] == [1, 2, 1]
    assert load("two/namesake.py:answer", tmp_path) == 2


def test_a_module_is_executed_once(tmp_path):
    folder = write(tmp_path / "once", 1)
    first = load("namesake:list_of_one", folder)
    assert load("once/namesake.py:list_of_one", tmp_path) is first
    assert load("../once/namesake.py:list_of_one", folder) is first


@pytest.mark.parametrize(
    ("name", "words"),
    [("namesake", "add a colon"), ("namesake:other", "has no 'other'"), ("nowhere_at_all:x", "cannot be imported")],
)
def test_what_cannot_be_found_is_named(name, words, tmp_path):
    folder = write(tmp_path / "faults", 1)
    with pytest.raises(InvalidInput, match=words):
        load(name, folder)


MODEL = """
import numpy as np
import pzos

leader = pzos.leader_from_functions(
    lambda x, y: float(y @ y), lambda x, y: np.zeros_like(x), lambda x, y: 2.0 * y
)
"""


def test_without_a_solver_the_default_is_taken_whatever_the_limits(tmp_path):
    (tmp_path / "chosen.py").write_text(MODEL)
    toml = tmp_path / "chosen.toml"
    text = 'leader = "chosen:leader"\nx0 = [1.0, 2.0]\n'
    toml.write_text(text + "queries = 10\n")
    first = read_description(toml).solver
    toml.write_text(text + "queries = 9999\n")
    assert isinstance(first, CompositeTrustRegion)
    assert read_description(toml).solver == first
    toml.write_text(text + '[solver]\nkind = "PZOS"\n')
    assert read_description(toml).solver == PZOS()


def test_sets_within_sets(tmp_path):
    (tmp_path / "chosen.py").write_text(MODEL)
    toml = tmp_path / "sets.toml"
    text = 'leader = "chosen:leader"\nx0 = [0.2, 0.3]\n[set]\nkind = "Intersection"\n'
    sets = '[[set.sets]]\nkind = "Box"\nlower = 0.0\nupper = 1.0\n'
    toml.write_text(text + sets + '[[set.sets]]\nkind = "Polyhedron"\nA = [[1.0, 1.0]]\nb = [1.0]\n')
    domain = read_description(toml).problem.domain
    np.testing.assert_allclose(domain.project(np.array([2.0, 2.0])), [0.5, 0.5])
    toml.write_text(text + sets + '[[set.sets]]\nkind = "Square"\n')
    with pytest.raises(InvalidInput, match=r"set.sets\[1\].kind = 'Square': expected a name of pzos"):
        read_description(toml)


def test_a_grid_of_decisions(tmp_path):
    (tmp_path / "chosen.py").write_text(MODEL)
    toml = tmp_path / "grid.toml"
    toml.write_text('leader = "chosen:leader"\nx0 = [1.0, 2.0]\ngrid = [0.25, 0.0]\n')
    grid = read_description(toml).problem.grid
    assert grid is not None
    assert grid.steps.tolist() == [0.25, 0.0]


def test_constraints_are_names_or_tables_of_caps(tmp_path):
    (tmp_path / "capped.py").write_text(MODEL + "limit = pzos.caps([1.5], [1], names=['south'])\n")
    toml = tmp_path / "capped.toml"
    text = 'leader = "capped:leader"\nx0 = [1.0, 2.0]\nrisk = 0.1\n'
    toml.write_text(text + 'outcomes = ["capped:limit", {upper = 0.5, entries = [0]}]\n')
    found = read_description(toml)
    assert found.problem.outcomes.names == ("south <= 1.5", "y[0] <= 0.5")
    assert found.solver == ConstrainedTrustRegion(CompositeTrustRegion(), risk=0.1)
    toml.write_text(text + 'outcomes = {upper = 0.5}\nsolver = "PZOS"\n')
    assert read_description(toml).solver == ExactPenalty(PZOS())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("outcomes = {most = 0.5}", "most"),
        ('outcomes = "capped:leader"', "pzos.Outcomes"),
        ("risk = 0.9", "a probability"),
    ],
)
def test_constraints_that_cannot_be_read_are_named(line, words, tmp_path):
    (tmp_path / "capped.py").write_text(MODEL)
    toml = tmp_path / "capped.toml"
    toml.write_text(f'leader = "capped:leader"\nx0 = [1.0, 2.0]\n{line}\n')
    with pytest.raises(InvalidInput, match=words):
        read_description(toml)


def test_the_page_of_the_study_file_has_every_entry_there_is() -> None:
    from docs.snippets import blocks
    from pzos.cli.description import _KEYS

    page = (Path(__file__).parents[2] / "docs" / "study-file.md").read_text(encoding="utf-8")
    (toml,) = [block.text for block in blocks(page) if block.file == "study.toml"]
    assert {line.lstrip("# ").partition(" = ")[0].strip("[]") for line in toml.splitlines()} >= _KEYS
