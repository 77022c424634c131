"""Code named in a TOML file: found beside it, and never mistaken for that of another study."""

from __future__ import annotations

from pathlib import Path

import pytest

from pzos.commands.description import load
from pzos.errors import InvalidInput


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
