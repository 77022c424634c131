"""``pzos front STUDY.toml --leaders A B``: the front of two or three costs over the followers of a study.

The TOML file says followers, start and set (see ``pzos init``); the costs are named beside it as its leader is. With
``--study FILE`` the run is durable and goes on where it was killed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pzos.base.errors import InvalidInput
from pzos.cli.description import leader_named, read_description
from pzos.cli.printing import add_json, emit
from pzos.cli.studies import (
    add_answers,
    add_study,
    add_workers,
    answers_of,
    executor_of,
    require_follower,
    tolerance_of,
)
from pzos.solving import front

_PICTURES = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos front``."""
    add_study(parser)
    parser.add_argument("--leaders", nargs="+", required=True, metavar="NAME", help="the costs: module:name of each")
    parser.add_argument("--senses", nargs="+", choices=("min", "max"), help="of each cost (as in the TOML file)")
    parser.add_argument("--queries", type=int, default=150, help="end after this many queries (150)")
    parser.add_argument("--batch", type=int, help="queries asked at a time (as many as there are workers)")
    parser.add_argument("--study", dest="file", type=Path, metavar="FILE", help="keep the run in this study file")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a picture (.png, .svg, .pdf) or a page (.html)")
    add_answers(parser)
    add_workers(parser)
    parser.set_defaults(attempts=1, wait=1.0, timeout=None, drop=False)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Find the front, print it, and write its picture; exit code 130 if it was interrupted."""
    if args.out is not None and args.out.suffix not in (*_PICTURES, ".html"):
        raise InvalidInput(f"front: --out = {str(args.out)!r}: expected .png, .svg, .pdf or .html; rename it")
    description = read_description(args.study)
    require_follower(args, description)
    leaders = [leader_named(name, args.study.resolve().parent) for name in args.leaders]
    with executor_of(args) as executor:
        found = front(
            description.problem, leaders, senses=args.senses, queries=args.queries, batch=args.batch,
            seed=description.settings.get("seed", 0), executor=executor, order=args.order or "asked",
            tolerance=tolerance_of(args), path=args.file, **answers_of(args, description.problem),
        )  # fmt: skip
    if args.out is not None:
        (found.page if args.out.suffix == ".html" else found.plot)(args.out)
    told = {"names": list(found.names), "senses": list(found.senses), "queries": found.result.queries,
            "points": found.points.tolist(), "decisions": found.decisions.tolist(), "knees": found.knees.tolist(),
            "hypervolume": found.hypervolume()}  # fmt: skip
    emit(args, told, repr(found))
    return 130 if found.result.stop.name == "INTERRUPTED" else 0
