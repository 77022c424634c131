"""``pzos init STUDY.toml``: make the study file; again with the same description it changes nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pzos.cli.shared import add_json, add_study, described, emit
from pzos.study.study import Study

EXAMPLE_STUDY = """\
# A study: what is optimised, how, and until when. Change it, then: pzos init; pzos run (or pzos ask, pzos tell).
name = "tolls"
leader = "model:leader"          # in model.py beside this file
follower = "model:follower"      # or  [follower] command = ["python", "simulator.py"];  leave it out to answer by hand
x0 = [0.5, 0.5]
seed = 0
steps = 20

[set]
kind = "Box"
lower = 0.0
upper = 1.0

[solver]                         # leave the table out for the default method
kind = "PZOS"
step = 0.05
radius = 0.1
"""
EXAMPLE_MODEL = '''"""The leader's cost f(x, y) with its gradients; the followers' response y*(x) is only queried."""

import numpy as np

import pzos

leader = pzos.leader_from_functions(
    value=lambda x, y: float(y @ y + 0.1 * x @ x),
    grad_x=lambda x, y: 0.2 * x,
    grad_y=lambda x, y: 2.0 * y,
    name="tolls",
)


def follower(x):
    """Two roads: a toll on one sends its drivers to the other."""
    return np.maximum(1.0 - x + 0.5 * x[::-1], 0.0)
'''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos init``."""
    add_study(parser)
    parser.add_argument("--example", action="store_true", help="first write STUDY.toml and model.py to start from")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the study, or check that the one there is the one described."""
    if args.example:
        for path, text in ((args.study, EXAMPLE_STUDY), (args.study.with_name("model.py"), EXAMPLE_MODEL)):
            _write_unless_there(path, text)
    description = described(args.study)
    existed = description.path.exists()
    with Study.open(description.path, description.problem.known(), description.solver, **description.settings) as study:
        steps = study.step
    told = f"is there already, {steps} steps taken" if existed else "made; next: pzos ask, or pzos run"
    emit(args, {"study": str(description.path), "made": not existed, "steps": steps}, f"{description.path}: {told}")
    return 0


def _write_unless_there(path: Path, text: str) -> None:
    if path.exists():
        sys.stderr.write(f"{path}: is there already and was left as it is\n")
    else:
        path.write_text(text, encoding="utf-8")
