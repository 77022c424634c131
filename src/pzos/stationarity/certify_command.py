"""``pzos certify STUDY``: is the point a durable study ended in stationary, and how sure are we?

The problem and the solver are named as ``FILE.py:NAME`` or ``package.module:NAME``, the values (or functions without
arguments that make them) with which the study was opened. The certificate is a study of its own and can be kept: a
second call with the same ``--keep`` file asks nothing twice.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from pzos.errors import FollowerFailure, InvalidInput
from pzos.problem import Problem, require_problem
from pzos.stationarity.batch import known_at
from pzos.stationarity.certificate import Certificate, CertificateSolver
from pzos.types import Vector


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos certify``."""
    parser.add_argument("study", metavar="STUDY", help="the file of a durable study")
    parser.add_argument("--problem", required=True, metavar="FILE.py:NAME", help="the problem it was opened with")
    parser.add_argument("--solver", required=True, metavar="FILE.py:NAME", help="the solver it was opened with")
    parser.add_argument("--at", choices=("last", "best", "random"), default="last", help="which point of the study")
    parser.add_argument("--delta", type=float, required=True, help="radius of the (partial) Goldstein subdifferential")
    parser.add_argument("--epsilon", type=float, default=None, help="exit with 1 unless this norm is certified")
    parser.add_argument("--notion", choices=("partial", "full"), default="partial", help="for --epsilon")
    parser.add_argument("--queries", type=int, default=401, help="budget of the certificate")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", default=None, metavar="FILE", help="keep the certificate's own answers in this file")


def run(args: argparse.Namespace) -> int:
    """Print the certificate; exit code 1 if ``--epsilon`` is given and not certified."""
    problem = require_problem("certify", load(args.problem))
    point = _point(args, problem)
    solver = CertificateSolver(args.delta, max((args.queries - 1) // 2, 0), confidence=args.confidence)
    certificate = _certified(args, problem, point, solver)
    sys.stdout.write(f"{certificate!r}\n")
    return 0 if args.epsilon is None or certificate.stationary(args.epsilon, args.notion) else 1


def _point(args: argparse.Namespace, problem: Problem) -> Vector:
    """Replay the study and return the point asked for."""
    from pzos.study import Study

    if not Path(args.study).exists():
        raise InvalidInput(f"certify: STUDY = {args.study!r}: expected the file of a study; check the path")
    with Study.open(args.study, problem.known(), load(args.solver), read_only=True) as study:
        result = study.result()
    points: dict[str, Vector] = {"last": result.x, "best": result.best_x, "random": result.random_x}
    return points[args.at]


def _certified(args: argparse.Namespace, problem: Problem, x: Vector, solver: CertificateSolver) -> Certificate:
    """Drive the certificate's own study, in memory or kept in a file."""
    from pzos.oracle import Oracle
    from pzos.run import drive
    from pzos.study import Study

    known = known_at("certify", problem.known(), x)
    settings: dict[str, Any] = {"seed": args.seed, "steps": 1, "monitor": False}
    opened = Study(known, solver, **settings) if args.keep is None else Study.open(args.keep, known, solver, **settings)
    with opened as study:
        drive(study, Oracle(problem.follower, seed=args.seed))
    state: Any = study.state
    if state.report is None:
        raise FollowerFailure(f"certify: {study.failures} of {study.queries} queries failed: too few answers are left")
    certificate: Certificate = state.report
    return certificate


def load(name: str) -> Any:
    """Return the object ``FILE.py:NAME`` or ``package.module:NAME``; a function without arguments is called."""
    place, _, attribute = name.partition(":")
    if not attribute:
        raise InvalidInput(f"certify: {name!r}: expected FILE.py:NAME or package.module:NAME; add a colon and a name")
    module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    if not hasattr(module, attribute):
        raise InvalidInput(f"certify: {name!r}: {place} has no {attribute!r}; check the spelling")
    value = getattr(module, attribute)
    makes_it = callable(value) and not hasattr(value, "ask") and not isinstance(value, Problem)
    return value() if makes_it else value


def _module_of_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.exists() else None
    if spec is None or spec.loader is None:
        raise InvalidInput(f"certify: {str(path)!r}: expected a Python file; check the path")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
