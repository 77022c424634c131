"""A study as the looking-on commands take it: its TOML file, or the study file with the problem named beside it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from pzos.base.checks import Faults
from pzos.cli.description import load, read_description
from pzos.problem.problem import Problem, require_problem


class Source(NamedTuple):
    """A study file, with the problem, the solver and the limits as far as they are known."""

    path: Path
    problem: Problem | None
    solver: Any
    settings: dict[str, Any]


def add_names(parser: argparse.ArgumentParser) -> None:
    """Declare how problem and solver of a study that has no TOML file are named."""
    parser.add_argument("--problem", metavar="FILE.py:NAME", help="the problem a study file was opened with: shows F")
    parser.add_argument("--solver", metavar="FILE.py:NAME", help="the solver it was opened with: shows its own trace")


def sources(where: str, studies: list[Path], args: argparse.Namespace) -> list[Source]:
    """Return where each study is and what it is about; one error lists all that are not there."""
    faults = Faults(where)
    for study in studies:
        faults.check(study.is_file(), "STUDY", str(study), "a study file or its TOML file", "check the path")
    faults.raise_if_any()
    problem = None if args.problem is None else require_problem(where, _made(args.problem))
    solver = None if args.solver is None else _made(args.solver)
    found = [_described(study) if study.suffix == ".toml" else Source(study, problem, solver, {}) for study in studies]
    for source in found:
        faults.check(source.path.is_file(), "STUDY", str(source.path), "a study that was begun", "begin it: pzos init")
    faults.raise_if_any()
    return found


def _described(study: Path) -> Source:
    description = read_description(study)
    return Source(description.path, description.problem, description.solver, description.settings)


def _made(name: str) -> Any:
    """Return the named value; a function without arguments is called for it."""
    value = load(name, Path.cwd())
    makes_it = callable(value) and not hasattr(value, "ask") and not isinstance(value, Problem)
    return value() if makes_it else value
