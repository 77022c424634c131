"""``pzos plan``: the theorem's constants, schedule and number of queries, in words."""

from __future__ import annotations

import argparse
import sys

from pzos.base.errors import InvalidInput
from pzos.stationarity.planning import METHODS, Setting, worst_case
from pzos.stationarity.theory import NOTIONS, Constants, Notion, sharp_moment_constant, theorem_schedule


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
    beyond = parser.add_argument_group("beyond the paper", "any of these plans by the statements of docs/theory.md")
    beyond.add_argument("--method", choices=METHODS, help="PZOS, ZOS, or a memory with a clipped prediction")
    beyond.add_argument("--batch", type=int, help="directions a step")
    beyond.add_argument("--one-sided", action="store_true", default=None, help="one-sided differences")
    beyond.add_argument("--bound", type=float, help="bound on the prediction of a memory (default: L_f L_y)")
    beyond.add_argument("--noise", type=float, help="root mean square of the noise of an answer")
    beyond.add_argument("--error", type=float, help="how far an answer may lie from y*(x)")
    beyond.add_argument("--projected", action="store_true", default=None, help="steps are projected onto a convex set")


def run(args: argparse.Namespace) -> int:
    """Print the schedule of the theorem for one or both notions."""
    constants = Constants(
        args.L_f, args.L_g, args.L_y, args.dimension, args.Delta, args.k1, _moment(args.k2, args.dimension)
    )
    notions: tuple[Notion, ...] = NOTIONS if args.notion == "both" else (args.notion,)
    setting, wanted = _setting(args), {"delta": args.delta, "epsilon": args.epsilon}
    if setting is None:
        tables = [repr(theorem_schedule(constants, **wanted, notion=notion)) for notion in notions]
    else:
        notions = ("full",) if setting.method == "zos" and args.notion == "both" else notions
        tables = [repr(worst_case(constants, setting, **wanted, notion=notion)) for notion in notions]
    sys.stdout.write("\n\n".join(tables) + "\n")
    return 0


def _setting(args: argparse.Namespace) -> Setting | None:
    """Return what goes beyond the paper, None where nothing was said."""
    names = ("method", "batch", "one_sided", "bound", "noise", "error", "projected")
    said = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if said.get("method") == "memory":
        said.setdefault("bound", args.L_f * args.L_y)
    return Setting(**said) if said else None


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
