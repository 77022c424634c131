"""``pzos init STUDY.toml``: make the study file; again with the same description it changes nothing."""

from __future__ import annotations

import argparse

from pzos.commands.shared import add_json, add_study, described, emit
from pzos.study import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos init``."""
    add_study(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the study, or check that the one there is the one described."""
    description = described(args.study)
    existed = description.path.exists()
    with Study.open(description.path, description.problem.known(), description.solver, **description.settings) as study:
        steps = study.step
    told = f"is there already, {steps} steps taken" if existed else "made; next: pzos ask, or pzos run"
    emit(args, {"study": str(description.path), "made": not existed, "steps": steps}, f"{description.path}: {told}")
    return 0
