import argparse
from pathlib import Path

import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.cli import certify
from pzos.cli.description import load
from pzos.cli.main import main
from pzos.study.run import drive

GAME = """
import numpy as np
import pzos

leader = pzos.leader_from_functions(
    lambda x, y: float(y.sum()), lambda x, y: np.zeros_like(x), lambda x, y: np.ones_like(y)
)
problem = pzos.Problem(leader, abs, x0=np.array([0.3, -0.2]))

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
    certify.add_arguments(parser)
    return parser.parse_args(list(words))


def test_a_missing_study_is_named(game: Path, tmp_path: Path) -> None:
    args = parsed("none.study", "--problem", f"{game}:problem", "--solver", f"{game}:solver", "--delta", "0.1")
    with pytest.raises(InvalidInput, match="expected a study file or its TOML file"):
        certify.run(args)


def test_a_durable_study_is_certified(game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, solver = load(f"{game}:problem", tmp_path), load(f"{game}:solver", tmp_path)()
    path, kept = tmp_path / "run.study", tmp_path / "certificate.study"
    with pzos.Study.open(path, problem.known(), solver, steps=30) as study:
        result = drive(study, pzos.Oracle(problem.follower), progress=False)
    expected = result.certify(problem, delta=0.5, queries=101)
    words = [str(path), "--problem", f"{game}:problem", "--solver", f"{game}:solver", "--delta", "0.5"]
    words += ["--queries", "101", "--keep", str(kept)]
    for _ in range(2):  # the second time every answer is in the file
        assert certify.run(parsed(*words, "--epsilon", str(expected.partial.upper * 1.001))) == 0
        assert capsys.readouterr().out == f"{expected!r}\n"
    assert certify.run(parsed(*words, "--epsilon", "1e-300")) == 1


def test_a_toml_file_names_everything(game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = tmp_path / "toml.toml"
    toml.write_text('problem = "game:problem"\nsteps = 10\n[solver]\nkind = "PZOS"\nstep = 0.05\nradius = 0.05\n')
    with pytest.raises(InvalidInput, match="pzos init"):
        certify.run(parsed(str(toml), "--delta", "0.5"))
    problem, solver = load("game:problem", tmp_path), load("game:solver", tmp_path)()
    with pzos.Study.open(tmp_path / "toml.study", problem.known(), solver, steps=10) as study:
        result = drive(study, pzos.Oracle(problem.follower), progress=False)
    assert certify.run(parsed(str(toml), "--delta", "0.5", "--queries", "101", "--at", "best")) == 0
    assert capsys.readouterr().out == f"{result.certify(problem, delta=0.5, queries=101, at='best')!r}\n"


@pytest.mark.parametrize(("at", "seed"), [("last", 0), ("best", 3)])
def test_the_point_is_that_of_the_whole_file(at: str, seed: int, game: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "more.toml").write_text(
        f'problem = "game:problem"\nsteps = 4\nseed = {seed}\n[solver]\nkind = "PZOS"\nstep = 0.05\nradius = 0.05\n'
    )
    assert main(["run", str(tmp_path / "more.toml")]) == 0
    assert main(["resume", str(tmp_path / "more.toml"), "--steps", "9"]) == 0
    problem, solver = load("game:problem", tmp_path), load("game:solver", tmp_path)()
    expected = pzos.solve(problem, solver, steps=9, seed=seed).certify(problem, delta=0.5, queries=101, at=at)
    alone = ["more.study", "--problem", f"{game}:problem", "--solver", f"{game}:solver"]
    for study, *named in (["more.toml"], alone):
        capsys.readouterr()
        words = [str(tmp_path / study), *named, "--delta", "0.5", "--queries", "101", "--at", at]
        assert main(["certify", *words]) == 0
        assert capsys.readouterr().out == f"{expected!r}\n"


def test_a_study_file_alone_is_not_enough(game: Path, tmp_path: Path) -> None:
    problem, solver = load("game:problem", tmp_path), load("game:solver", tmp_path)()
    pzos.Study.open(tmp_path / "alone.study", problem.known(), solver, steps=1).close()
    with pytest.raises(InvalidInput, match=r"(?s)--problem.*--solver"):
        certify.run(parsed(str(tmp_path / "alone.study"), "--delta", "0.5"))
