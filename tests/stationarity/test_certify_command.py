import argparse
from pathlib import Path

import pytest

import pzos
from pzos.errors import InvalidInput
from pzos.run import drive
from pzos.stationarity import certify_command

GAME = """
import numpy as np
import pzos

leader = pzos.leader_from_functions(
    lambda x, y: float(y.sum()), lambda x, y: np.zeros_like(x), lambda x, y: np.ones_like(y)
)
problem = pzos.Problem(leader, abs, x0=np.array([0.3, -0.2]))
calls = []

def solver():
    return pzos.PZOS(step=0.05, radius=0.05)
"""


@pytest.fixture
def game(tmp_path: Path) -> Path:
    path = tmp_path / "game.py"
    path.write_text(GAME)
    return path


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    certify_command.add_arguments(parser)
    return parser.parse_args(list(words))


def test_named_objects_are_loaded(game: Path) -> None:
    assert isinstance(certify_command.load(f"{game}:problem"), pzos.Problem)
    assert isinstance(certify_command.load(f"{game}:solver"), pzos.PZOS)
    assert certify_command.load("pzos.solvers.smoothing:PZOS") is not None
    with pytest.raises(InvalidInput, match="add a colon"):
        certify_command.load(str(game))
    with pytest.raises(InvalidInput, match="has no 'other'"):
        certify_command.load(f"{game}:other")
    with pytest.raises(InvalidInput, match="expected a Python file"):
        certify_command.load("nowhere.py:problem")


def test_a_missing_study_is_named(game: Path, tmp_path: Path) -> None:
    args = parsed("none.study", "--problem", f"{game}:problem", "--solver", f"{game}:solver", "--delta", "0.1")
    with pytest.raises(InvalidInput, match="expected the file of a study"):
        certify_command.run(args)


def test_a_durable_study_is_certified(game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, solver = certify_command.load(f"{game}:problem"), certify_command.load(f"{game}:solver")
    path, kept = tmp_path / "run.study", tmp_path / "certificate.study"
    with pzos.Study.open(path, problem.known(), solver, steps=30) as study:
        result = drive(study, pzos.Oracle(problem.follower), progress=False)
    expected = result.certify(problem, delta=0.5, queries=101)
    words = [str(path), "--problem", f"{game}:problem", "--solver", f"{game}:solver", "--delta", "0.5"]
    words += ["--queries", "101", "--keep", str(kept)]
    for _ in range(2):  # the second time every answer is in the file
        assert certify_command.run(parsed(*words, "--epsilon", str(expected.partial.upper * 1.001))) == 0
        assert capsys.readouterr().out == f"{expected!r}\n"
    assert certify_command.run(parsed(*words, "--epsilon", "1e-300")) == 1
