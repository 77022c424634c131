"""How far a reader walks: which files and functions of the package one run visits, and how deep the stack gets.

    python benchmarks/walk.py            # prints files / functions / depth of the three walks
    python benchmarks/walk.py --files    # names the files, too

Only frames of the package count, and comprehensions count as part of their function. The problem is small and its
follower is plain NumPy, so that nothing is compiled and every line visited is one a reader would have to read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import pzos

PACKAGE = str(Path(pzos.__file__).parent)
PARTS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")
STEPS = 12


class Walk(NamedTuple):
    """What a run visited; ``trail`` is the deepest stack, outermost first."""

    files: frozenset[str]
    functions: frozenset[tuple[str, str]]
    trail: tuple[str, ...]

    @property
    def depth(self) -> int:
        """Return how many frames of the package the deepest stack had."""
        return len(self.trail)


def walked(run: Callable[[], Any]) -> Walk:
    """Return the walk of ``run``."""
    functions: set[tuple[str, str]] = set()
    trail: tuple[str, ...] = ()

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal trail
        if event != "call" or not counts(frame):
            return
        functions.add(named(frame))
        stack = []
        above: FrameType | None = frame
        while above is not None:
            if counts(above):
                stack.append("{}:{}".format(*named(above)))
            above = above.f_back
        if len(stack) > len(trail):
            trail = tuple(reversed(stack))

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return Walk(frozenset(file for file, _ in functions), frozenset(functions), trail)


def counts(frame: FrameType) -> bool:
    """Tell whether a frame is a function of the package (an import of one of its modules is none)."""
    code = frame.f_code
    return code.co_filename.startswith(PACKAGE) and code.co_name not in PARTS


def named(frame: FrameType) -> tuple[str, str]:
    """Return the file, from the package on, and the function of a frame."""
    return frame.f_code.co_filename.removeprefix(PACKAGE + "/"), frame.f_code.co_qualname


def problem() -> pzos.Problem:
    """Return a small problem with kinked followers."""
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + y @ y), lambda x, y: 2.0 * x, lambda x, y: 2.0 * y, name="walk"
    )
    return pzos.Problem(leader, lambda x: np.maximum(1.0 - x, 0.2), x0=np.linspace(0.5, 2.0, 4))


def by_hand() -> None:
    """Drive PZOS with ask and tell."""
    game = problem()
    study = pzos.Study(game.known(), pzos.PZOS(step=0.05, radius=0.1), steps=STEPS)
    while not study.done:
        for query in study.ask():
            study.tell(query, np.maximum(1.0 - query.x, 0.2))
    study.result()


WALKS: dict[str, Callable[[], Any]] = {
    "PZOS by solve": lambda: pzos.solve(problem(), pzos.PZOS(step=0.05, radius=0.1), steps=STEPS),
    "PZOS by hand": by_hand,
    "the default by solve": lambda: pzos.solve(problem(), queries=STEPS),
}


def main() -> int:
    """Print the walks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", action="store_true", help="name the files visited, and the deepest stack")
    args = parser.parse_args()
    for run in WALKS.values():
        run()  # once for its imports
    sys.stdout.write(f"{'walk':24}files  functions  depth\n")
    for name, run in WALKS.items():
        walk = walked(run)
        sys.stdout.write(f"{name:24}{len(walk.files):5}{len(walk.functions):11}{walk.depth:7}\n")
        if args.files:
            sys.stdout.write("".join(f"    {file}\n" for file in sorted(walk.files)))
            sys.stdout.write("".join(f"    {'  ' * level}{at}\n" for level, at in enumerate(walk.trail)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
