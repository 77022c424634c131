"""The command line: thin. Each command lives in a module of its own, imported only when it is called.

A command module has ``add_arguments(parser)`` and ``run(args) -> int`` (the exit code). Errors the package raises on
purpose become one line on standard error and exit code 2.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

import pzos
from pzos.base.errors import PzosError


class Command(NamedTuple):
    """Where a command lives and what it does, in a line."""

    module: str
    summary: str


COMMANDS = {
    "solve": Command("pzos.cli.solve", "solve a problem in one go"),
    "init": Command("pzos.cli.init", "make a durable study from a TOML file"),
    "ask": Command("pzos.cli.ask", "print the open queries of a study"),
    "tell": Command("pzos.cli.tell", "take answers from a file"),
    "status": Command("pzos.cli.status", "how far a study is"),
    "run": Command("pzos.cli.run", "have the follower answer until the study ends"),
    "resume": Command("pzos.cli.resume", "go on with a study that was begun"),
    "export": Command("pzos.cli.export", "write a study's answers or steps as CSV or Parquet"),
    "recover": Command("pzos.cli.recover", "save what is intact of a damaged study"),
    "reproduce": Command("pzos.cli.reproduce", "every figure and claim of the paper"),
    "plan": Command("pzos.cli.plan", "the theorem's constants, schedules and query counts"),
    "certify": Command("pzos.cli.certify", "is a point stationary, and how sure are we"),
    "bench": Command("pzos.cli.bench", "methods and peers on the same problems"),
    "tolls": Command("pzos.cli.tolls", "tolls for a city: a table, a planner's numbers and a map"),
    "report": Command("pzos.cli.report", "one self-contained page about one study or several"),
    "watch": Command("pzos.cli.watch", "a live view of a running study, from another terminal"),
    "doctor": Command("pzos.cli.doctor", "what is installed, threads, extras, compilation cache"),
    "demo": Command("pzos.cli.demo", "the main job on embedded data: a table and a picture"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``pzos COMMAND ...`` and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(words)
    chosen = parser.parse_args(words)
    if chosen.command is None:
        parser.print_help()
        return 0
    try:
        code: int = chosen.run(chosen)
    except PzosError as error:
        sys.stderr.write(f"pzos {chosen.command}: {error}\n")
        return int(getattr(error, "exit_code", 2))
    except KeyboardInterrupt:
        sys.stderr.write(f"pzos {chosen.command}: interrupted\n")
        return 130
    return code


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pzos", description="Leader-follower optimisation when the followers can only be queried."
    )
    parser.add_argument("--version", action="version", version=f"pzos {pzos.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    named = next((word for word in words if not word.startswith("-")), None)
    for name, command in COMMANDS.items():
        sub = subparsers.add_parser(name, help=command.summary, description=command.summary)
        if name == named:  # only the command that is called is imported
            module = importlib.import_module(command.module)
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
