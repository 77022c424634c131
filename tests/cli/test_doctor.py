"""The doctor finds what is there, says what is missing, and its exit code tells whether pzos works."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import pzos
from pzos.cli import doctor
from pzos.cli.main import main


def test_it_names_versions_threads_extras_and_the_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for part in (pzos.__version__, np.__version__, "OMP_NUM_THREADS", "compilation", "9 queries", "extras"):
        assert part in said
    assert "OMP_NUM_THREADS         3" in said


def test_json_is_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert found["numpy"]["ok"] is True
    assert found["version"]["text"] == pzos.__version__


def test_a_missing_extra_comes_with_its_remedy_and_a_missing_need_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in ("pandas", "numba"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert 'pip install "pzos[dataframe]"' in said
    assert "! numba" in said


def test_the_extras_named_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_developers = {"docs", "peers", "qp", "all", "test"}
    of_the_suite = {extra for extra in project["optional-dependencies"] if extra.startswith("suite-")}
    assert set(doctor.EXTRAS) - {"(always)"} == set(project["optional-dependencies"]) - for_developers - of_the_suite


def test_what_is_compiled_ahead_are_findings_of_their_own(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(doctor, "findings", list)
    assert main(["doctor", "--compile", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["section"], one["name"], one["ok"]) for one in found] == [
        ("compilation", "games", True),
        ("compilation", "roads", True),
    ]
    assert all(one["text"].startswith("ready after ") for one in found)
