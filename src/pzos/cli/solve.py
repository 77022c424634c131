"""``pzos solve PROBLEM``: :func:`pzos.solve` in one go, here, in worker processes or on a Dask cluster.

PROBLEM is a TOML file (see ``pzos init``) or a problem named as ``module:name`` or ``file.py:name``. A solver is named
in the TOML file, or for a problem given by name by ``--solver`` with ``--step``, ``--radius`` and ``--batch``; without
one the default method is used, and the result ends with its certificate. Nothing is kept; for a run that survives a
crash use ``pzos run``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pzos.base.errors import InvalidInput
from pzos.cli.description import made_from, named_problem, read_description
from pzos.cli.printing import add_json, emit
from pzos.cli.studies import (
    add_answers,
    add_certificate,
    add_running,
    answers_of,
    executor_of,
    limits_of,
    require_follower,
    result_data,
    tolerance_of,
)
from pzos.problem.problem import Problem
from pzos.solving import solve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos solve``."""
    parser.add_argument("study", metavar="PROBLEM", help="STUDY.toml, module:name or file.py:name")
    parser.add_argument("--solver", help="the method (it is chosen), not with a TOML file, which names its own")
    parser.add_argument("--step", type=float, help="its step size")
    parser.add_argument("--radius", type=float, help="its smoothing radius")
    parser.add_argument("--batch", type=int, help="its directions per step")
    parser.add_argument("--seed", type=int, help="seed of the directions")
    add_certificate(parser)
    add_answers(parser)
    add_running(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Solve and print the result; exit code 130 if it was interrupted."""
    problem, solver, settings = _asked(args)
    given = {"seed": args.seed, "order": args.order, "certificate": args.certificate}
    settings = {**settings, **limits_of(args), **answers_of(args, problem)}
    settings |= {name: value for name, value in given.items() if value is not None}
    failing = {"failure_rate": settings.pop("failure_rate")} if "failure_rate" in settings else {}
    tolerant = failing or args.drop or args.attempts != 1 or args.timeout is not None
    with executor_of(args) as executor:
        tolerance = tolerance_of(args, **failing) if tolerant else None
        result = solve(problem, solver, executor=executor, tolerance=tolerance, **settings)
    emit(args, result_data(result), result.table())
    return 130 if result.stop.name == "INTERRUPTED" else 0


def _asked(args: argparse.Namespace) -> tuple[Problem, Any, dict[str, Any]]:
    """Return what is to be solved, by which solver (None: the default), and the settings of the TOML file."""
    options = {name: getattr(args, name) for name in ("solver", "step", "radius", "batch")}
    options = {name: value for name, value in options.items() if value is not None}
    named = " and ".join(f"--{name}" for name in options)
    if args.study.endswith(".toml"):
        if options:
            raise InvalidInput(f"solve: {named}: expected none with a TOML file; write it in its table [solver]")
        description = read_description(Path(args.study))
        require_follower(args, description)
        return description.problem, None if description.by_default else description.solver, description.settings
    problem = named_problem("solve: ", args.study, Path.cwd())
    if args.solver is not None:
        return problem, made_from({"kind": options.pop("solver"), **options}, "solve", "--solver"), {}
    if options:
        raise InvalidInput(f"solve: {named}: expected the method it is for; add --solver PZOS, or leave it out")
    return problem, None, {}
