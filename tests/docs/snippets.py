"""Snippets of a Markdown page, and how a reader would run them: top to bottom, in one folder, in one session.

Fences of ``python`` share a session, ``sh`` goes to a shell, ``{code-block} LANGUAGE`` with a ``:caption:`` is a file
to write. Two comments on the line before a fence change that, in plain sight:

    <!-- not run: REASON -->      shown only
    <!-- needs: MODULE, ... -->   run where these modules are installed
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\S*)(?: (?P<argument>\S+))?\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S
)
_MARK = re.compile(r"<!-- (not run|needs): (.*) -->\s*\Z")
_OPTION = re.compile(r"\A(?::(\w+): *(.*)\n)+\n*")
RUN = ("python", "sh")
FILES = ("python", "toml")
PATIENCE = 600  # seconds for a snippet of the shell


class Block(NamedTuple):
    """One fence: where it begins, what it is, the file it is (if it is one), and why it is not run (if so)."""

    line: int
    language: str
    text: str
    file: str = ""
    not_run: str = ""
    needs: str = ""

    @property
    def missing(self) -> str:
        """Return the modules that are needed and not installed, or nothing."""
        needed = [name.strip() for name in self.needs.split(",") if name]
        return ", ".join(name for name in needed if importlib.util.find_spec(name) is None)


def blocks(page: str) -> list[Block]:
    """Return the snippets of a page; fences of other directives (pictures, tables of contents) are none."""
    found = []
    for match in _FENCE.finditer(page):
        kind, body, file = match["kind"], match["body"], ""
        if kind == "{code-block}":
            kind = match["argument"]
            if options := _OPTION.match(body):
                file = dict(re.findall(r":(\w+): *(.*)\n", options[0])).get("caption", "")
                body = body[options.end() :]
        elif kind.startswith("{"):
            continue
        mark = _MARK.search(page[: match.start()])
        why = {mark[1]: mark[2]} if mark else {}
        line = page[: match.start()].count("\n") + 1
        found.append(Block(line, kind, dedent(body), file, why.get("not run", ""), why.get("needs", "")))
    return found


def run_all(page: str, steps: list[Block]) -> None:
    """Run the snippets of a page here, in this process and folder; whatever fails ends it."""
    session: dict[str, object] = {"__name__": "__main__"}
    for block in steps:
        where = f"{page}, line {block.line}"
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            done = subprocess.run(["bash", "-euc", block.text], check=False, timeout=PATIENCE)
            if done.returncode:
                raise SystemExit(f"{where}: exit code {done.returncode} of\n{block.text}")
        else:
            exec(compile("\n" * block.line + block.text, where, "exec"), session)


if __name__ == "__main__":
    sys.path[0] = ""  # as in a session in this folder
    run_all(sys.argv[1], [Block(*step) for step in json.load(sys.stdin)])
