"""``pzos run STUDY.toml``: have the follower answer until the study ends; killed, it goes on where it was."""

from __future__ import annotations

import argparse

from pzos.cli.shared import (
    add_json,
    add_running,
    add_study,
    described,
    emit,
    limits_of,
    oracle_of,
    result_data,
)
from pzos.study.run import drive
from pzos.study.study import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos run``."""
    add_study(parser)
    add_running(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the study or go on with it; exit code 130 if it was interrupted."""
    description = described(args.study)
    settings = {**description.settings, **limits_of(args)}
    known = description.problem.known()
    with (
        oracle_of(args, description) as oracle,
        Study.open(description.path, known, description.solver, **settings) as study,
    ):
        result = drive(study, oracle)
        emit(args, {"study": str(description.path), **result_data(study, result)}, repr(result))
    return 130 if result.stop.name == "INTERRUPTED" else 0
