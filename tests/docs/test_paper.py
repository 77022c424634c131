"""The page "From the paper to the code" leaves nothing out, and whatever it names is there."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from pzos.cli.main import COMMANDS, _parser
from pzos.cli.reproduce import FIGURES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper.md"
#: How many of each the paper numbers, main text and appendix.
NUMBERED = {
    "Algorithm": 4,
    "Assumption": 2,
    "Definition": 5,
    "Example": 2,
    "Figure": 11,
    "Lemma": 12,
    "Proposition": 2,
    "Remark": 1,
    "Theorem": 5,
}
EQUATIONS = 67


class Row(NamedTuple):
    paper: str
    says: str
    files: str
    tests: str
    command: str


def rows() -> list[Row]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    found = [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]
    return found[2:]


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize(("kind", "count"), NUMBERED.items())
def test_every_numbered_statement_has_a_row(kind: str, count: int) -> None:
    found = Counter(int(n) for row in rows() for n in re.findall(rf"{kind} (\d+)", row.paper))
    assert sorted(found) == list(range(1, count + 1))


def test_every_equation_has_one_row() -> None:
    found = Counter(int(n) for row in rows() if "Eq." in row.paper for n in re.findall(r"\((\d+)\)", row.paper))
    assert found == Counter(range(1, EQUATIONS + 1))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.paper)
def test_files_and_names_exist(row: Row) -> None:
    words = re.findall(r"`([^`]+)`", row.files)
    assert words
    assert words[0].endswith(".py")
    for word in words:
        if word.endswith(".py"):
            path = ROOT / "src" / "pzos" / word
            assert path.is_file(), word
        else:
            assert word in names_in(path), f"{word} is not in {path}"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.paper)
def test_tests_exist(row: Row) -> None:
    words = re.findall(r"`([^`]+)`", row.tests)
    assert words
    for word in words:
        file, name = word.split("::")
        assert name in names_in(ROOT / "tests" / file), word


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.paper)
def test_commands_exist(row: Row) -> None:
    (command,) = re.findall(r"`([^`]+)`", row.command)
    program, *words = shlex.split(command)
    if program == "pzos":
        assert words[0] in COMMANDS
        _parser(words).parse_args(words)  # exits where a word is not understood
        assert words[0] != "reproduce" or set(words[1:]) <= set(FIGURES)
    else:
        assert program in ("python", "pytest")
        assert (ROOT / words[0]).is_file(), command
