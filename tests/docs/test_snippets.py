"""Every snippet of the documentation and every example, run as printed, each page in an empty folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.snippets import FILES, RUN, Block, blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if not {"_build", "gallery"} & set(path.parts)
)
WITH_SNIPPETS = [path for path in PAGES if blocks(path.read_text(encoding="utf-8"))]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
#: Installing, or running for an hour, is all that may stay unrun.
MOST_NOT_RUN = 6
PATIENCE = 800  # seconds for a page

needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="snippets for the shell need bash")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def surroundings(folder: Path) -> dict[str, str]:
    """Return an environment in which ``python`` and ``pzos`` are this Python and this package."""
    programs = folder / "programs"
    programs.mkdir()
    for name, words in (("python", ""), ("pzos", " -m pzos")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (programs / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PYTHONWARNINGS": "error",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def complaint(folder: Path, words: list[str], sent: str = "") -> str:
    """Run a program in an empty folder; return what it said if it failed, nothing if it did not."""
    empty = folder / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, *words], input=sent, cwd=empty, env=surroundings(folder), capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    return f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}" if done.returncode else ""


@needs_bash
@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=named)
def test_page(page: Path, tmp_path: Path) -> None:
    found = [block for block in blocks(page.read_text(encoding="utf-8")) if not block.not_run]
    steps = [block for block in found if not block.missing]
    words = [str(Path(__file__).with_name("snippets.py")), named(page)]
    assert complaint(tmp_path, words, json.dumps(steps)) == ""
    if len(steps) < len(found):
        missing = sorted({block.missing for block in found} - {""})
        pytest.skip(f"{len(found) - len(steps)} snippets need {', '.join(missing)}, which is not installed")


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_example(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'plot'")
    for module in ("uxsim", "unsim", "libsumo", "pandapower", "pypsa", "simopt", "starsim"):
        if f"import {module}" in example.read_text(encoding="utf-8"):
            pytest.importorskip(module, reason=f"needs {module}")
    assert complaint(tmp_path, [str(example)]) == ""


def test_every_fence_is_understood() -> None:
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            wanted = FILES if block.file else RUN
            assert block.language in wanted, f"{named(page)}, line {block.line}: {block.language!r}"


def test_few_snippets_are_not_run() -> None:
    unrun = [
        f"{named(page)}:{block.line}"
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.not_run
    ]
    assert len(unrun) <= MOST_NOT_RUN, unrun


def test_there_are_pages_and_examples() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/first-steps.md"} <= {named(page) for page in WITH_SNIPPETS}
    assert len(EXAMPLES) >= 12


def test_fences_and_marks_are_read() -> None:
    page = (
        "text\n\n```python\nx = 1\n```\n\n<!-- not run: slow -->\n```sh\nsleep 99\n```\n"
        "```{code-block} toml\n:caption: a.toml\n\nb = 1\n```\n1. item\n\n   <!-- needs: no_such_module -->\n"
        "   ```python\n   y = 2\n   ```\n```{image} a.svg\n```\n"
    )
    assert blocks(page) == [
        Block(3, "python", "x = 1\n"),
        Block(8, "sh", "sleep 99\n", not_run="slow"),
        Block(11, "toml", "b = 1\n", file="a.toml"),
        Block(19, "python", "y = 2\n", needs="no_such_module"),
    ]
    assert [block.missing for block in blocks(page)] == ["", "", "", "no_such_module"]


@needs_bash
@pytest.mark.parametrize("text", ["```python\n1 / 0\n```\n", "```sh\nfalse\n```\n", "```python\nimport city\n```\n"])
def test_a_snippet_that_fails_is_found(text: str, tmp_path: Path) -> None:
    words = [str(Path(__file__).with_name("snippets.py")), "page.md"]
    assert "page.md, line 1" in complaint(tmp_path, words, json.dumps(blocks(text)))
