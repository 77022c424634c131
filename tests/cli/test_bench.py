"""``pzos bench`` finds the test bed of a checkout, and says what to do where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pzos.cli import bench
from pzos.cli.main import main


def test_without_a_checkout_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "_TESTBED", tmp_path / "testbed")
    assert main(["bench"]) == 2
    assert "clone the project" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["bench", "--help"])
    assert left.value.code == 0


def test_its_options_are_those_of_the_test_bed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "--help"])
    assert left.value.code == 0
    assert "--help" in capsys.readouterr().out
    assert bench._testbed().__name__ == "testbed.command"
