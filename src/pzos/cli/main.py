"""The command line: thin. One table says where each command lives; its module is imported only when it is called.

A command is two functions of its module: one declares the arguments, one does the work and returns the exit code.
Errors the package raises on purpose, and those of files, become one line on standard error and exit code 2.
"""

from __future__ import annotations

import argparse
import importlib
import site
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pzos
from pzos.base.checks import printable
from pzos.base.errors import FollowerFailure, PzosError

_HERE = Path(pzos.__file__).resolve().parent
_TRY_AGAIN = (
    "call it by hand at that x to see why; --attempts 3 tries a query again, --drop goes on without those that fail"
)


class Command(NamedTuple):
    """What a command does, in a line, its module in ``pzos.cli`` and the two functions there."""

    module: str
    summary: str
    run: str = "run"
    add_arguments: str = "add_arguments"


COMMANDS = {
    "solve": Command("solve", "solve a problem in one go"),
    "front": Command("front", "the front of two or three costs over the same followers"),
    "init": Command("studies", "make a durable study from a TOML file", "init", "add_init"),
    "ask": Command("by_hand", "print the open queries of a study", "ask", "add_ask"),
    "tell": Command("by_hand", "take answers from a file", "tell", "add_tell"),
    "untell": Command("by_hand", "take an answer back", "untell", "add_untell"),
    "status": Command("studies", "how far a study is", "status", "add_status"),
    "run": Command("studies", "have the follower answer until the study ends", "run", "add_run"),
    "resume": Command("studies", "go on with a study that was begun", "resume", "add_run"),
    "export": Command("studies", "write a study's answers or steps as CSV or Parquet", "export", "add_export"),
    "recover": Command("studies", "save what is intact of a damaged study", "recover", "add_recover"),
    "reproduce": Command("reproduce", "every figure and claim of the paper"),
    "plan": Command("plan", "the theorem's constants, schedules and query counts"),
    "certify": Command("certify", "is a point stationary, and how sure are we"),
    "bench": Command("bench", "methods and peers on the same problems"),
    "tolls": Command("tolls", "tolls for a city: a table, a planner's numbers and a map"),
    "report": Command("report", "one self-contained page about one study or several"),
    "dashboard": Command("dashboard", "the studies of a folder as a local web page, where people answer"),
    "watch": Command("watch", "a live view of a running study, from another terminal"),
    "doctor": Command("doctor", "what is installed, threads, extras, compilation cache"),
    "demo": Command("demo", "the main job on embedded data: a table and a picture"),
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
    except FollowerFailure as error:
        advice = _TRY_AGAIN if hasattr(chosen, "drop") else error.remedy
        sys.stderr.write(printable(f"pzos {chosen.command}: {error.told}{f'; {advice}' if advice else ''}\n"))
        return 2
    except PzosError as error:
        sys.stderr.write(printable(f"pzos {chosen.command}: {error}\n"))
        return int(getattr(error, "exit_code", 2))
    except MemoryError:
        sys.stderr.write(f"pzos {chosen.command}: the memory of this machine does not hold it; use a larger one\n")
        return 2
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"pzos {chosen.command}: {place}{error.strerror or error}; check the path\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"pzos {chosen.command}: interrupted\n")
        return 130
    except Exception as error:
        line = _users_line(error)
        if line is None:
            raise
        said = f"{type(error).__name__}: {error}"
        sys.stderr.write(printable(f"pzos {chosen.command}: your code fails at {line} ({said}); correct it there\n"))
        return 2
    return code


def _users_line(error: BaseException) -> str | None:
    """Return where an error was raised, if by code of the user that pzos called."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [at for at, frame in enumerate(frames) if Path(frame.filename).is_relative_to(_HERE)]
    called = frames[ours[-1] + 1 :] if ours else []
    own = [frame for frame in called if Path(frame.filename).is_file() and not _is_installed(Path(frame.filename))]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None


def _is_installed(file: Path) -> bool:
    places = (*site.getsitepackages(), sys.prefix, sys.base_prefix)
    return any(file.is_relative_to(place) for place in places)


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
            module = importlib.import_module(f"pzos.cli.{command.module}")
            getattr(module, command.add_arguments)(sub)
            sub.set_defaults(run=getattr(module, command.run))
    return parser
