"""Where the leader may move: whole numbers and grids, and queries inside A x <= b.

    python benchmarks/decisions.py grid [--instances 20] [--first-seed 0]
    python benchmarks/decisions.py inside [--queries 10000] [--first-seed 0]

``grid``: an unstructured smooth response of 10 decisions (12 answers), a box, a grid of 0.25; queries to a told point
within 1 % of the way from F(x0) to the best point known (a local search on F itself, of single steps and pairs, from 12
optima), by the default method on the grid and by the default method without it, whose best point is rounded after every
query (the rounded point's F is given to it for nothing). Instances from 1000 up were used to fix constants.

``inside``: the default method, certificates included, on random polyhedra; counts queries outside by more than 1e-9.
Constraints on outcomes have their own benchmark.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import scipy
from scipy.optimize import minimize

import pzos
from pzos.base.types import Vector

STEP, EDGE, WITHIN = 0.25, 3.0, 0.01
Value = Callable[[Vector], float]


def smooth(seed: int, d: int = 10, answers: int = 12, hidden: int = 20) -> tuple[pzos.Problem, Value]:
    """Return a problem with a smooth response without structure, and its F."""
    rng = np.random.default_rng(seed)
    first, shift = rng.standard_normal((hidden, d)) / np.sqrt(d), 0.3 * rng.standard_normal(hidden)
    last = rng.standard_normal((answers, hidden)) / np.sqrt(hidden)

    def follower(x: Vector) -> Vector:
        return last @ np.tanh(first @ x + shift)

    target = follower(rng.uniform(-2.0, 2.0, d)) + 0.3 * rng.standard_normal(answers)
    leader = pzos.leader_from_functions(
        lambda x, y: float(((y - target) ** 2).sum() + 0.02 * (x @ x)),
        lambda x, y: 0.04 * x,
        lambda x, y: 2.0 * (y - target),
    )
    start = STEP * np.round(rng.uniform(-2.0, 2.0, d) / STEP)
    problem = pzos.Problem(leader, follower, start, pzos.Box(-EDGE, EDGE))
    return problem, lambda x: leader.value(x, follower(x))


def moves(x: Vector) -> Iterator[Vector]:
    steps = [sign * STEP * row for row in np.eye(x.size) for sign in (1.0, -1.0)]
    yield from (x + step for step in steps)
    yield from (x + one + other for one, other in combinations(steps, 2))


def best_on_grid(F: Value, d: int, seed: int) -> float:
    """Return the lowest F that local searches on F itself find on the grid."""
    rng, lowest = np.random.default_rng([seed, 1]), np.inf
    for _ in range(12):
        found = minimize(F, rng.uniform(-EDGE, EDGE, d), method="L-BFGS-B", bounds=[(-EDGE, EDGE)] * d).x
        x = rounded(found)
        value, improved = F(x), True
        while improved:
            tried = [(F(z), k, z) for k, z in enumerate(moves(x)) if np.abs(z).max() <= EDGE]
            there, _, z = min(tried, key=lambda item: item[:2])
            improved = there < value
            if improved:
                value, x = there, z
        lowest = min(lowest, value)
    return lowest


def rounded(x: Vector) -> Vector:
    return np.clip(STEP * np.round(x / STEP), -EDGE, EDGE)


def asked_by(problem: pzos.Problem, grid: float | None, queries: int, seed: int) -> list[Vector]:
    asked: list[Vector] = []

    def follower(x: Vector) -> Vector:
        asked.append(x.copy())
        return problem.follower.respond(x, None)

    given = pzos.Problem(problem.leader, follower, problem.x0, problem.domain, grid=grid)
    pzos.solve(given, queries=queries, certificate=False, seed=seed, progress=False)
    return asked


def grid(instances: int, first: int, queries: int = 80) -> None:
    ours, theirs, spent = [], [], 0.0
    for seed in range(first, first + instances):
        problem, F = smooth(seed)
        best = best_on_grid(F, problem.x0.size, seed)
        enough = best + WITHIN * (F(problem.x0) - best)
        began = time.process_time()
        points = asked_by(problem, STEP, queries, seed)
        spent += (time.process_time() - began) / len(points)
        off = [x for x in points if not np.array_equal(x, rounded(x))]
        again = len(points) - len({x.tobytes() for x in points})
        ours.append(next((k for k, x in enumerate(points, 1) if F(x) <= enough), np.inf))
        free, so_far, found = asked_by(problem, None, queries, seed), np.inf, np.inf
        for k, x in enumerate(free, 1):
            if F(x) < so_far:
                so_far = F(x)
                if F(rounded(x)) <= enough:
                    found = k
                    break
        theirs.append(found)
        print(f"{seed:5d}  on the grid {ours[-1]:4}  rounding {theirs[-1]:4}  off the grid {len(off)}  again {again}",
              flush=True)  # fmt: skip
    behind = max(a - b for a, b in zip(ours, theirs, strict=True))
    print(f"median {np.median(ours)} and {np.median(theirs)}, worst {max(ours)} and {max(theirs)}; at most {behind} "
          f"behind rounding; {1000 * spent / instances:.0f} ms of own cost a query")  # fmt: skip


def inside(queries: int, first: int) -> None:
    total, outside, worst, seed = 0, 0, 0.0, first
    while total < queries:
        rng = np.random.default_rng([seed, 2])
        d, rows = int(rng.integers(2, 12)), int(rng.integers(1, 8))
        A = rng.standard_normal((rows, d))
        cuts = pzos.Polyhedron(A, rng.random(rows))
        domain = pzos.Intersection([pzos.Box(-1.0, 1.0), cuts]) if seed % 2 else cuts
        mix, goal = rng.standard_normal((d, d)) / np.sqrt(d), 2.0 * rng.standard_normal(d)
        leader = pzos.leader_from_functions(
            lambda x, y, goal=goal: float((x - goal) @ (x - goal) + 0.5 * (x @ y)),
            lambda x, y, goal=goal: 2.0 * (x - goal) + 0.5 * y, lambda x, y: 0.5 * x,
        )  # fmt: skip
        asked: list[Vector] = []

        def follower(x: Vector, asked: list[Vector] = asked, mix: Vector = mix) -> Vector:
            asked.append(x.copy())
            return np.tanh(mix @ x)

        pzos.solve(pzos.Problem(leader, follower, np.zeros(d), domain), queries=100, seed=seed, progress=False)
        for x in asked:
            excess = float((A @ x - cuts.b).max())
            worst = max(worst, excess)
            outside += not domain.contains(x, 1e-9)
        total, seed = total + len(asked), seed + 1
    print(f"{outside} of {total} queries outside A x <= b, over {seed - first} problems; largest violation {worst:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("grid", "inside"))
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=10_000)
    args = parser.parse_args()
    print(f"pzos {pzos.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, {platform.platform()}")
    if args.what == "grid":
        grid(args.instances, args.first_seed)
    else:
        inside(args.queries, args.first_seed)


if __name__ == "__main__":
    main()
