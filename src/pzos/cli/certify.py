"""``pzos certify STUDY``: is the point a durable study ended in stationary, and how sure are we?

STUDY is the TOML file of the study, or the study file with ``--problem`` and ``--solver``, the values (or functions
without arguments that make them) with which it was opened. The certificate is a study of its own and can be kept: a
second call with the same ``--keep`` file asks nothing twice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pzos.base.checks import Faults
from pzos.cli.description import add_names, look_at, sources
from pzos.problem.problem import require_problem
from pzos.stationarity.certificate import kind_for
from pzos.stationarity.one_batch import report_on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos certify``."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="the TOML file of a study, or a study file")
    add_names(parser)
    parser.add_argument("--at", choices=("last", "best", "random"), default="last", help="which point of the study")
    parser.add_argument("--delta", type=float, required=True, help="radius of the (partial) Goldstein subdifferential")
    parser.add_argument("--epsilon", type=float, help="exit with 1 unless this norm is certified")
    parser.add_argument("--notion", choices=("partial", "full"), default="partial", help="for --epsilon")
    parser.add_argument("--queries", type=int, default=401, help="budget of the certificate")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", metavar="FILE", help="keep the certificate's own answers in this file")


def run(args: argparse.Namespace) -> int:
    """Print the certificate; exit code 1 if ``--epsilon`` is given and not certified."""
    (source,) = sources("certify", [args.study], args)
    faults = Faults("certify")
    for name, value in (("--problem", source.problem), ("--solver", source.solver)):
        faults.check(value is not None, name, None, "what the study was opened with",
                     f"add {name} FILE.py:NAME, or name the study's TOML file")  # fmt: skip
    faults.raise_if_any()
    problem = require_problem("certify", source.problem)
    with look_at(source) as study:
        result = study.result()
    point = {"last": result.x, "best": result.best_x, "random": result.random_x}[args.at]
    solver = kind_for(problem)(args.delta, max((args.queries - 1) // 2, 0), confidence=args.confidence)
    certificate = report_on("certify", problem, solver, point, seed=args.seed, path=args.keep, progress=None)
    sys.stdout.write(f"{certificate!r}\n")
    return 0 if args.epsilon is None or certificate.stationary(args.epsilon, args.notion) else 1
