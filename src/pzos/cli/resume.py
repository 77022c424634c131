"""``pzos resume STUDY.toml``: go on with a study that was begun; like ``pzos run``, but never makes a new one."""

from __future__ import annotations

import argparse

from pzos.base.errors import InvalidInput
from pzos.cli import run as run_command
from pzos.cli.shared import described


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos resume``."""
    run_command.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Go on with the study."""
    path = described(args.study).path
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such study to resume; begin it with  pzos run")
    return run_command.run(args)
