"""``pzos solve PROBLEM``: solve in one go, here, in worker processes or on a Dask cluster.

PROBLEM is a TOML file (see ``pzos init``) or a problem named as ``module:name`` or ``file.py:name``, then with a solver
chosen by ``--solver``, ``--step``, ``--radius`` and ``--batch``. Nothing is kept; for a run that survives a crash use
``pzos run``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pzos.base.errors import InvalidInput
from pzos.cli.description import Description, load, made_from, read_description
from pzos.cli.printing import add_json, emit
from pzos.cli.studies import add_running, limits_of, oracle_of, result_data
from pzos.problem.problem import Problem
from pzos.study.run import drive
from pzos.study.study import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos solve``."""
    parser.add_argument("study", metavar="PROBLEM", help="STUDY.toml, module:name or file.py:name")
    parser.add_argument("--solver", default="PZOS", help="the method, for a problem given by name (PZOS)")
    parser.add_argument("--step", type=float, default=None, help="its step size")
    parser.add_argument("--radius", type=float, default=None, help="its smoothing radius")
    parser.add_argument("--batch", type=int, default=None, help="its directions per step")
    parser.add_argument("--seed", type=int, default=None, help="seed of the directions")
    add_running(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Solve and print the result; exit code 130 if it was interrupted."""
    description = _description(args)
    settings = {**description.settings, **limits_of(args)}
    with oracle_of(args, description) as oracle:
        study = Study(description.problem.known(), description.solver, **settings)
        result = drive(study, oracle)
    emit(args, result_data(study, result), repr(result))
    return 130 if result.stop.name == "INTERRUPTED" else 0


def _description(args: argparse.Namespace) -> Description:
    seed = {} if args.seed is None else {"seed": args.seed}
    if args.study.endswith(".toml"):
        read = read_description(Path(args.study))
        return Description(read.problem, read.has_follower, read.solver, {**read.settings, **seed}, read.path)
    found = load(args.study, Path.cwd())
    problem = found if isinstance(found, Problem) else found() if callable(found) else found
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"solve: {args.study!r}: expected a pzos.Problem or a function that makes one; check the name"
        )
    given: dict[str, Any] = {"step": args.step, "radius": args.radius, "batch": args.batch}
    options = {name: value for name, value in given.items() if value is not None}
    solver = made_from({"kind": args.solver, **options}, "solve", "--solver")
    return Description(problem, True, solver, seed, Path())
