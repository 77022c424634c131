"""The command line as people meet it: a subprocess, its exit code and what it writes where."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pzos
from instances import problem as game
from pzos.base.errors import InvalidInput
from pzos.cli import main as cli


def pzos_command(*words: str, cwd=None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pzos", *words], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )


def test_version():
    done = pzos_command("--version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, f"pzos {pzos.__version__}", "")


def test_without_a_command_the_help_lists_them_all():
    done = pzos_command()
    assert done.returncode == 0
    for name, command in cli.COMMANDS.items():
        assert name in done.stdout
        assert command.summary.split()[0] in done.stdout


def test_an_unknown_command_is_refused():
    done = pzos_command("optimise")
    assert done.returncode == 2
    assert "optimise" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([name, "--help"])
    assert left.value.code == 0
    assert cli.COMMANDS[name].summary.split()[0] in capsys.readouterr().out


def test_files_that_cannot_be_written_are_named_in_one_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    pzos.Study.open(tmp_path / "some.study", game().known(), pzos.PZOS(), steps=1).close()
    for place, words in (
        (tmp_path / "taken", ["demo", "--out"]),
        (tmp_path / "nowhere" / "x.csv", ["export", str(tmp_path / "some.study")]),
    ):
        assert cli.main([*words, str(place)]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"pzos {words[0]}: {place}: ")
        assert said.count("\n") == 1


def test_errors_are_one_line_and_interrupts_have_their_code(monkeypatch, capsys):
    class Module:
        raised: BaseException = InvalidInput("solver = 3: expected a solver; try PZOS()")

        @staticmethod
        def add_arguments(parser):
            """Take none."""

        @classmethod
        def run(cls, args):
            raise cls.raised

    monkeypatch.setattr(cli.importlib, "import_module", lambda name: Module)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "pzos demo: solver = 3: expected a solver; try PZOS()\n"
    monkeypatch.setattr(Module, "raised", KeyboardInterrupt())
    assert cli.main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err
