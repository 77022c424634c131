"""What the default method itself costs: CPU time per query on one thread, without that of the followers.

    python benchmarks/own_cost.py                       # every case, 150 queries
    python benchmarks/own_cost.py noisy-100 --queries 5000   # does it stay flat?

Means over windows of queries, so that fits of the model's scales, which are rare and long, count. Noisy followers never
let a run end. Bars: 15 ms at d = 100, 30 ms at d = 1000, and the same after 5000 queries as after 500.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import pzos
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from testbed.unseen.families import make
from testbed.unseen.instance import Draft, Vector
from testbed.unseen.parts import disturbed, tanh_map, tracked
from testbed.versions import versions

#: Windows of queries, by their last one.
WINDOWS = (25, 50, 100, 150, 500, 1000, 2000, 3000, 4000, 5000)
NOISE = 0.02


class Meter:
    """Followers that note the CPU time when they are asked and when they have answered."""

    def __init__(self, respond: Callable[[Vector], Vector]) -> None:
        self.respond = respond
        self.asked: list[float] = []
        self.answered: list[float] = []

    def __call__(self, x: Vector) -> Vector:
        """Answer, with the clock stopped."""
        self.asked.append(time.process_time())
        y = self.respond(x)
        self.answered.append(time.process_time())
        return y

    def milliseconds(self, end: float) -> Vector:
        """Return what came after each answer up to the next query."""
        return 1e3 * (np.array([*self.asked[1:], end]) - np.array(self.answered))


def of_game(problem: pzos.Problem, game: SecurityGame | RoutingGame) -> tuple[pzos.Problem, Meter]:
    """Return a game with its followers metered."""
    meter = Meter(game.response)
    return pzos.Problem(problem.leader, meter, problem.x0, problem.domain, problem.sense), meter


def of_draft(draft: Draft) -> tuple[pzos.Problem, Meter]:
    """Return a problem of the protocol on unseen followers, metered."""

    def respond(x: Vector) -> Vector:
        y = np.array(draft.respond(x))
        if draft.disturb is None:
            return y
        return draft.disturb(y, x, np.random.default_rng(len(meter.asked)), [])

    meter = Meter(respond)
    domain = pzos.Whole() if draft.domain is None else draft.domain
    return pzos.Problem(draft.cost.leader("cost"), meter, draft.x0, domain), meter


def security(targets: int, seed: int) -> tuple[pzos.Problem, Meter]:
    """Return a security game: structured, as many answers as decisions, kinks at zero."""
    game = SecurityGame.random(seed, targets)
    return of_game(game.problem(), game)


def routing(seed: int) -> tuple[pzos.Problem, Meter]:
    """Return a routing game: kinked, hardly structured."""
    game = RoutingGame.random(seed)
    return of_game(game.problem(0.1), game)


def smooth(d: int, answers: int, seed: int, noise: float = 0.0) -> tuple[pzos.Problem, Meter]:
    """Return smooth followers without structure, every decision of which matters; with noise the run never ends."""
    rng = np.random.default_rng(seed)
    draft = tracked(rng, tanh_map(rng, d, answers, 2 * d), d)
    if noise:
        draft = disturbed(draft, lambda y, x, draw, before: y + noise * draw.standard_normal(y.size))
    return of_draft(draft)


#: The cases, by how many decisions they have.
CASES: dict[str, Callable[[int], tuple[pzos.Problem, Meter]]] = {
    "security-100": lambda seed: security(100, seed),
    "network-100": lambda seed: of_draft(make("network-100", seed).draft),
    "smooth-100": lambda seed: smooth(100, 60, seed),
    "routing-109": lambda seed: routing(20),
    "noisy-10": lambda seed: smooth(10, 12, seed, NOISE),
    "noisy-100": lambda seed: smooth(100, 60, seed, NOISE),
    "security-1000": lambda seed: security(1000, seed),
    "smooth-1000": lambda seed: smooth(1000, 200, seed),
    "noisy-1000": lambda seed: smooth(1000, 200, seed, NOISE),
}


def measured(name: str, queries: int, seed: int) -> None:
    """Print the line of one case."""
    problem, meter = CASES[name](seed)
    pzos.solve(problem, queries=min(5, queries), progress=False, certificate=False)  # what is loaded late
    problem, meter = CASES[name](seed)
    result = pzos.solve(problem, queries=queries, seed=seed, progress=False, certificate=False)
    spent = meter.milliseconds(time.process_time())
    cells, first = [], 0
    for last in WINDOWS:
        if spent[first:last].size:
            cells.append(f"-{min(last, spent.size)}: {spent[first:last].mean():.1f}")
        first = last
    print(f"{name:<14} d = {problem.x0.size:>4}  {spent.size:>4} queries  mean {spent.mean():5.1f} ms  median "
          f"{np.median(spent):5.1f}  longest {spent.max():6.0f}  by window {'  '.join(cells)}  "
          f"F {result.best_value:.6g}", flush=True)  # fmt: skip


def main() -> None:
    """Measure the cases that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="which cases (all)")
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(versions(("numpy", "scipy")), flush=True)
    for name in args.cases or CASES:
        measured(name, args.queries, args.seed)


if __name__ == "__main__":
    main()
