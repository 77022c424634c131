"""``pzos plan``: the theorem's constants, schedule and number of queries, in words."""

from __future__ import annotations

import argparse
import sys

from pzos.base.errors import InvalidInput
from pzos.stationarity.theory import NOTIONS, Constants, sharp_moment_constant, theorem_schedule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos plan``."""
    for flag, meaning in (
        ("--L-f", "bound on both partial gradients of f"),
        ("--L-g", "Lipschitz constant of the gradient of f"),
        ("--L-y", "Lipschitz constant of the response y*"),
        ("--Delta", "F(x0) - inf F, or more"),
        ("--delta", "radius of the (partial) Goldstein subdifferential"),
        ("--epsilon", "norm to reach"),
    ):
        parser.add_argument(flag, type=float, required=True, help=meaning)
    parser.add_argument("--dimension", type=int, required=True, help="length of x")
    parser.add_argument("--notion", choices=("partial", "full", "both"), default="both")
    parser.add_argument("--k1", type=float, help="smoothing constant; default: exact, from the lemma")
    parser.add_argument(
        "--k2",
        default="published",
        help="second-moment constant: 'published' (16 sqrt(2 pi)), 'sharp' (d/(d-1), Poincare) or a number",
    )


def run(args: argparse.Namespace) -> int:
    """Print the schedule of the theorem for one or both notions."""
    constants = Constants(
        args.L_f, args.L_g, args.L_y, args.dimension, args.Delta, args.k1, _moment(args.k2, args.dimension)
    )
    notions = NOTIONS if args.notion == "both" else (args.notion,)
    tables = [repr(theorem_schedule(constants, delta=args.delta, epsilon=args.epsilon, notion=n)) for n in notions]
    sys.stdout.write("\n\n".join(tables) + "\n")
    return 0


def _moment(text: str, dimension: int) -> float | None:
    if text == "published":
        return None
    if text == "sharp":
        return sharp_moment_constant(dimension)
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(
            f"plan: --k2 = {text!r}: expected 'published', 'sharp' or a number; try --k2 published"
        ) from error
