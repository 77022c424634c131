"""The theorem as an experiment: PZOS with the theorem's own mu, alpha and T on a toy whose constants are known.

    f(x, y) = sqrt(1 + |x - p|^2) + a.y,   y* = s |x| (entrywise),   |a| = 1:   L_f = 1, L_g = 1, L_y = s

The guarantee is E min{|g| : g in the subdifferential at x^R} <= eps, R uniform on the steps: the mean over steps and
repeats. For the partial notion that minimum is exact: the ball meets an orthant if and only if the entries whose sign
differs have a norm of at most delta, and the set is the hull of one gradient per orthant met. For the full notion it
is bounded from above by the hull of grad F at the points of the ball nearest to x in each orthant. Run:

    python benchmarks/theorem.py [--repeats 5]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

import pzos
from pzos.base.types import Vector
from pzos.stationarity import Constants, min_norm_point, sharp_moment_constant, theorem_schedule
from pzos.study.run import iterate

SLOPE = 0.5
TARGET = np.array([2.0, 0.3])
WEIGHTS = np.array([0.8, 0.6])
START = np.array([3.0, -1.0])


def gradient_of_known_part(x: Vector) -> Vector:
    """Return grad_x f = (x - p)/sqrt(1 + |x - p|^2)."""
    offset = x - TARGET
    return offset / np.sqrt(1.0 + offset @ offset)


def toy() -> pzos.Problem:
    """Return the problem."""
    leader = pzos.leader_from_functions(
        lambda x, y: float(np.sqrt(1.0 + (x - TARGET) @ (x - TARGET)) + WEIGHTS @ y),
        lambda x, y: gradient_of_known_part(x),
        lambda x, y: WEIGHTS.copy(),
    )
    return pzos.Problem(leader, lambda x: SLOPE * np.abs(x), START)


def smallest_norm(x: Vector, delta: float, notion: str) -> float:
    """Return the smallest norm in the subdifferential at x (an upper bound of it for the full notion)."""
    gradients = []
    for signs in product((1.0, -1.0), repeat=x.size):
        orthant = np.array(signs)
        nearest = np.where(orthant * x >= 0.0, x, 0.0)
        if np.linalg.norm(nearest - x) <= delta:
            known = gradient_of_known_part(x if notion == "partial" else nearest)
            gradients.append(known + SLOPE * WEIGHTS * orthant)
    return min_norm_point(np.array(gradients)).norm


def objective(x: Vector) -> float:
    """Return F(x)."""
    return float(np.sqrt(1.0 + (x - TARGET) @ (x - TARGET)) + SLOPE * WEIGHTS @ np.abs(x))


def gap() -> float:
    """Return Delta = F(x0) - min F; F is convex, so a fine grid and its Lipschitz constant bound it from above."""
    axis = np.linspace(-1.0, 3.5, 451)
    lowest = min(objective(np.array(point)) for point in product(axis, axis))
    return objective(START) - lowest + (1.0 + SLOPE) * 0.0071


def main() -> None:
    """Print the guarantee and what was found, for both notions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    problem = toy()
    constants = Constants(1.0, 1.0, SLOPE, 2, gap(), k2=sharp_moment_constant(2))
    for notion, delta, epsilon in (("partial", 0.3, 0.5), ("full", 0.3, 1.0)):
        plan = theorem_schedule(constants, delta=delta, epsilon=epsilon, notion=notion)
        means = []
        for seed in range(args.repeats):
            solver = pzos.PZOS(step=plan.step, radius=plan.radius)
            study = pzos.Study(problem.known(), solver, seed=seed, steps=plan.steps, monitor=False)
            points = [record.x for record in iterate(study, pzos.Oracle(problem.follower))]
            means.append(np.mean([smallest_norm(x, delta, notion) for x in points[::20]]))
        print(f"{plan!r}")
        found = float(np.mean(means))
        print(f"mean of min|g| over steps and {args.repeats} repeats: {found:.4f} (from {min(means):.4f} to ", end="")
        print(f"{max(means):.4f}); the theorem promises {epsilon:g}: {'holds' if found <= epsilon else 'FAILS'}\n")


if __name__ == "__main__":
    main()
