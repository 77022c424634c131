"""Followers that change while they are asked: how good the latest decisions are for followers as they are by then.

    python benchmarks/drifting.py --seeds 0 5 --kinds build     # the kinds the method was built with
    python benchmarks/drifting.py --seeds 0 6 --kinds apart     # kinds kept apart until it was

Of the last ten queries the best decision for the followers of that moment counts: its F less the lowest near it (found
with all the answers one likes), in units of what there was to gain at first; geometric means over the seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pzos
from testbed.unseen.instance import Door, Draft, Instance, Spent, Vector
from testbed.unseen.parts import disturbed, logistic, normal, softmax, tanh_map, tracked, tracking
from testbed.unseen.runs import PEERS

Rng = np.random.Generator
Change = Callable[[int], Vector]

MOMENTS = (50, 100, 150)
_LATEST = 10


def smooth(rng: Rng, d: int, m: int) -> Draft:
    """Return a smooth response of d decisions and m answers."""
    return tracked(rng, tanh_map(rng, d, m, d + 2), d, ridge=0.05)


def straight(rng: Rng, m: int, size: float, moving: int | None = None) -> Change:
    """Return a change in proportion to time, ``size`` after 150 queries, of the first ``moving`` answers (or all)."""
    way = size * rng.standard_normal(m) / 150.0 * (np.arange(m) < (m if moving is None else moving))
    return lambda t: t * way


def walking(rng: Rng, m: int, step: float) -> Change:
    """Return a random walk."""
    walk = np.cumsum(step * rng.standard_normal((500, m)), axis=0)
    return lambda t: walk[t]


def seasons(rng: Rng, m: int, size: float, period: float) -> Change:
    """Return a change that comes and goes."""
    sizes, phases = size * rng.standard_normal(m), rng.uniform(0.0, 6.0, m)
    return lambda t: sizes * np.sin(2.0 * np.pi * t / period + phases)


def once(rng: Rng, m: int, size: float, moment: int) -> Change:
    """Return a single change, all at once."""
    sizes = size * rng.standard_normal(m)
    return lambda t: sizes * (t >= moment)


def shares(rng: Rng) -> Draft:
    """Return shares of a market as the response."""
    A, b = 2.0 * normal(rng, 8, 10), 0.5 * rng.standard_normal(8)
    cost = tracking(10.0 * softmax(rng.standard_normal(8)), np.zeros(10), 0.05)
    return Draft(cost, lambda x: 10.0 * softmax(x @ A.T + b), rng.standard_normal(10))


def takers(rng: Rng) -> Draft:
    """Return how many take an offer as the response."""
    A, b = 2.0 * normal(rng, 6, 8), rng.standard_normal(6)
    cost = tracking(2.0 * logistic(rng.standard_normal(6)), np.zeros(8), 0.05)
    return Draft(cost, lambda x: 2.0 * logistic(x @ A.T + b), 0.5 * rng.standard_normal(8))


#: Response, its change in time, and the noise on top.
Kind = Callable[[Rng], tuple[Draft, Change, float]]
KINDS: dict[str, dict[str, Kind]] = {
    "build": {
        "straight-5": lambda rng: (smooth(rng, 5, 4), straight(rng, 4, 0.3), 0.0),
        "straight-10": lambda rng: (smooth(rng, 10, 8), straight(rng, 8, 0.15), 0.0),
        "some-15": lambda rng: (smooth(rng, 15, 12), straight(rng, 12, 0.3, 4), 0.0),
        "walk-12": lambda rng: (smooth(rng, 12, 10), walking(rng, 10, 0.004), 0.0),
        "noisy-walk-10": lambda rng: (smooth(rng, 10, 8), walking(rng, 8, 0.01), 0.01),
        "seasons-10": lambda rng: (smooth(rng, 10, 8), seasons(rng, 8, 0.1, 80.0), 0.0),
        "shares-10": lambda rng: (shares(rng), straight(rng, 8, 0.5), 0.0),
    },
    "apart": {
        "straight-20": lambda rng: (smooth(rng, 20, 15), straight(rng, 15, 0.2), 0.0),
        "some-noisy-10": lambda rng: (smooth(rng, 10, 8), straight(rng, 8, 0.3, 3), 0.005),
        "walk-8": lambda rng: (takers(rng), walking(rng, 6, 0.003), 0.0),
        "seasons-15": lambda rng: (smooth(rng, 15, 12), seasons(rng, 12, 0.1, 60.0), 0.0),
        "once-10": lambda rng: (smooth(rng, 10, 8), once(rng, 8, 0.15, 60), 0.0),
    },
}


class Recorded(Door):
    """The door, which keeps every x as well."""

    def __init__(self, instance: Instance, budget: int) -> None:
        super().__init__(instance, budget)
        self.points: list[Vector] = []

    def asked(self, x: Vector) -> Vector:
        """Answer at x itself."""
        answer = super().asked(x)
        self.points.append(np.array(x, dtype=np.float64).ravel())
        return answer


def gaps(name: str, kind: Kind, seed: int, method: str) -> list[float]:
    """Return how far the latest decisions are from the best for followers of that moment, at each moment."""
    draft, change, noise = kind(np.random.default_rng([zlib.crc32(name.encode()), seed]))
    draft = disturbed(draft, lambda y, x, draw, before: y + change(len(before)) + noise * draw.standard_normal(y.size))
    instance = Instance(name, "noise", "tune", seed, draft)
    door = Recorded(instance, MOMENTS[-1] + 50)
    if method == "default":
        pzos.solve(instance.problem(door), queries=MOMENTS[-1], seed=seed, progress=False, certificate=False)
    else:
        door.budget = MOMENTS[-1]
        with contextlib.suppress(Spent):
            PEERS[method](door, seed)

    def value(x: Vector, moment: int) -> float:
        return draft.cost.value(x, draft.respond(x) + change(moment))

    first = minimize(value, door.points[int(np.argmin(door.values))], args=(0,)).fun
    scale, found = value(draft.x0, 0) - first, []
    for moment in MOMENTS:
        latest = door.points[:moment][-_LATEST:]
        best = min(latest, key=lambda x: value(x, moment - 1))
        here = value(best, moment - 1)
        found.append((here - min(minimize(value, best, args=(moment - 1,)).fun, here)) / scale)
    return found


def main() -> None:
    """Print a row per kind of change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FIRST", "END"))
    parser.add_argument("--kinds", choices=tuple(KINDS), default="build")
    parser.add_argument("--methods", nargs="*", default=["default", "dfo-ls", "pounders"])
    args = parser.parse_args()
    print(f"{'queries':14}" + "".join(f"{method + ' @' + str(m):>16}" for m in MOMENTS for method in args.methods))
    for name, kind in KINDS[args.kinds].items():
        rows = {
            method: np.array([gaps(name, kind, seed, method) for seed in range(*args.seeds)]) for method in args.methods
        }
        means = {method: np.exp(np.log(np.maximum(row, 1e-9)).mean(axis=0)) for method, row in rows.items()}
        cells = (f"{means[method][k]:16.1e}" for k in range(len(MOMENTS)) for method in args.methods)
        print(f"{name:14}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
