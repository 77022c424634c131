"""Tolls on UNsim's Chicago (its example 12): the default against its own SPSA and gradient scripts and uniform tolls.

    python benchmarks/chicago.py                         # 15,320 decisions; wants a GPU, 0.3 s a run there
    python benchmarks/chicago.py --city 0                # a generated city in the same simulator: 1000 decisions, 10 ms

Prints the gain in per cent of travel time + 0.001 |tolls|^2 over no tolls, at equal numbers of forward runs. SPSA
is that of example 12d (two runs a step after six pilots; its iterates are scored outside the budget, as there). The
gradient is Adam by automatic differentiation of the simulator, example 12b: a run counts one forward and one backward.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pzos
from pzos.base.types import Vector
from suite.followers.unsim import PENALTY, chicago, city
from testbed.versions import versions

Cost = Callable[[Vector], float]
UNIFORM = (3.0, 10.0, 20.0, 30.0, 60.0, 100.0, 200.0, 400.0)


def spsa(cost: Cost, size: int, budget: int) -> float:
    """Return the best F of the iterates of example 12d: gains a/(A + k)^0.602, differences over 10/k^0.101 seconds."""
    draw, theta, offset = np.random.default_rng(42), np.zeros(size), 100.0

    def slope(at: Vector, radius: float) -> Vector:
        signs = draw.choice([-1.0, 1.0], size=size)
        there, back = (cost(np.maximum(at + side * radius * signs, 0.0)) for side in (1.0, -1.0))
        return (there - back) / (2.0 * radius) * signs

    pilots = [float(np.linalg.norm(slope(theta, 10.0))) for _ in range(3)]
    gain = 5.0 * (offset + 1.0) ** 0.602 / max(float(np.mean(pilots)), 1e-10)
    best = cost(theta)
    for k in range(1, (budget - 6) // 2 + 1):
        theta = np.maximum(theta - gain / (offset + k) ** 0.602 * slope(theta, 10.0 / k**0.101), 0.0)
        best = min(best, cost(theta))
    return best


def adam(problem: pzos.Problem, steps: int, rate: float) -> Iterator[float]:
    """Yield the best F so far of example 12b, step by step."""
    import jax
    import jax.numpy as jnp

    travellers: Any = problem.follower.function  # type: ignore[attr-defined]
    both = jax.jit(jax.value_and_grad(lambda x: travellers.answer(x).sum() + PENALTY * (x @ x)))
    theta, first, second, best = jnp.zeros(problem.x0.size), 0.0, 0.0, np.inf
    for k in range(1, steps + 1):
        value, slope = both(theta)
        best = min(best, float(value))
        yield best
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        moved = rate * (first / (1.0 - 0.9**k)) / (jnp.sqrt(second / (1.0 - 0.999**k)) + 1e-8)
        theta = jnp.maximum(theta - moved, 0.0)


def main() -> None:
    """Print a line per method and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--city", type=int, help="the seed of a generated city, in place of Chicago")
    parser.add_argument("--queries", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--methods", nargs="+", default=["uniform", "spsa", "default", "gradient"])
    args = parser.parse_args()
    problem = chicago() if args.city is None else city(args.city)
    travellers: Any = problem.follower.function  # type: ignore[attr-defined]
    start = problem.leader.value(problem.x0, travellers(problem.x0))
    began = time.perf_counter()
    cost: Cost = lambda x: problem.leader.value(x, travellers(x))  # noqa: E731
    cost(problem.x0)
    print(versions(("unsim", "jax")))
    print(f"{problem.name}: {problem.x0.size} decisions, {time.perf_counter() - began:.2f} s a run, F(0) {start:.5g}")
    began = time.perf_counter()

    def show(method: str, value: float) -> None:
        nonlocal began
        print(f"{method:<28}{100.0 * (1.0 - value / start):>8.2f} %{time.perf_counter() - began:>8.0f} s", flush=True)
        began = time.perf_counter()

    for toll in UNIFORM if "uniform" in args.methods else ():
        show(f"uniform toll of {toll:g} s", cost(np.full(problem.x0.size, toll)))
    for queries in args.queries:
        if "spsa" in args.methods:
            show(f"spsa {queries}", spsa(cost, problem.x0.size, queries))
        if "default" in args.methods:
            found = pzos.solve(problem, queries=queries, seed=0, progress=False, certificate=False)
            show(f"default {queries}", cost(found.x))
    for rate in (1.0, 10.0) if "gradient" in args.methods else ():
        for step, best in enumerate(adam(problem, max(args.queries), rate), 1):
            if step in args.queries:
                show(f"gradient {step}, rate {rate:g}", best)


if __name__ == "__main__":
    main()
