"""Every statement of docs/theory.md as an experiment that would fail if it were false.

*Second moments* (Statements 2 to 6): E|g|^2 measured on responses with kinks, at the kinks and off them, over the bound
on s^2; a ratio above 1 (by more than sampling error) refutes it. One line is there to be refuted: one-sided differences
against the bound of central ones.

*Convergence* (Statements 1 to 8): each method with the radius, step and number of steps that ``worst_case`` plans, on
the toy of ``benchmarks/theorem.py``; the mean of the smallest norm over all steps must stay below epsilon. Run:

    python benchmarks/theorems.py [--repeats 3] [--draws 20000]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

import pzos
from pzos.base.types import Matrix, Vector
from pzos.stationarity import Constants, Setting, WorstCase, sharp_moment_constant, worst_case
from pzos.study.run import iterate
from theorem import SLOPE, START, TARGET, WEIGHTS, gap, gradient_of_known_part, smallest_norm, toy

Response = Callable[[Matrix], Matrix]
_DIMENSIONS = (2, 10, 100)


# ---- second moments -------------------------------------------------------------------------------------------------


def responses(d: int) -> dict[str, Response]:
    """Return 1-Lipschitz responses with kinks, rows to rows."""
    rng = np.random.default_rng(d)
    W = rng.standard_normal((2 * d, d))
    W /= np.linalg.norm(W, 2)
    return {
        "|x_i|": np.abs,
        "norm": lambda X: np.linalg.norm(X, axis=1, keepdims=True),
        "max": lambda X: X.max(axis=1, keepdims=True),
        "relu": lambda X: np.maximum(X @ W.T, 0.0),
        "linear": lambda X: X,
    }


def estimates(
    y: Response, x: Vector, mu: float, setting: Setting, p: Vector, draws: int, rng: np.random.Generator
) -> Matrix:
    """Return many estimates g at x, for grad_x f = e_1 and a grad_y f of norm 1 that meets the response."""
    d, Q = x.size, setting.batch
    here = y(x[None])[0]
    pull = np.ones(here.size) / np.sqrt(here.size)
    total = np.zeros((draws, d))

    def answer(X: Matrix) -> Matrix:
        exact = y(X)
        noise = rng.standard_normal(exact.shape) * (setting.noise / np.sqrt(here.size))
        error = np.sign(np.sin(1e4 * X.sum(axis=1)))[:, None] * pull * setting.error
        return exact + noise + error

    for _ in range(Q):
        V = rng.standard_normal((draws, d))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        if setting.one_sided:
            slopes = (answer(x + mu * V) - answer(np.tile(x, (draws, 1)))) @ pull / mu
        else:
            slopes = (answer(x + mu * V) - answer(x - mu * V)) @ pull / (2.0 * mu)
        total += d * (slopes - V @ p)[:, None] * V / Q
    return total + p + np.eye(1, d)[0]


def second_moments(draws: int) -> bool:
    """Print the largest ratio of measured to bounded second moments; tell whether all statements hold."""
    print(f"second moments: E|g|^2 over its bound, the largest of all responses and points ({draws} draws)")
    settings = {
        "2  PZOS": Setting(),
        "2  batch 4": Setting(batch=4),
        "3  one-sided": Setting(one_sided=True),
        "4  memory, a useless prediction": Setting("memory", bound=1.0),
        "5  noise 0.1": Setting(noise=0.1),
        "6  error 0.05": Setting(error=0.05),
    }
    fine = True
    for name, setting in settings.items():
        ratios = [_largest_ratio(setting, setting, d, draws) for d in _DIMENSIONS]
        holds = max(ratios) <= 1.0 + 5.0 / np.sqrt(draws)
        fine &= holds
        print(_row(name, ratios), _word(holds))
    ratios = [_largest_ratio(Setting(one_sided=True), Setting(), d, draws) for d in _DIMENSIONS]
    refuted = max(ratios) > 2.0
    verdict = "refuted, as Statement 3 says" if refuted else "NOT refuted: the experiment is too weak"
    print(_row("one-sided by the central bound", ratios), verdict)
    return fine and refuted


def _row(name: str, ratios: list[float]) -> str:
    return f"  {name:32}" + " ".join(f"d={d}: {r:.3f}" for d, r in zip(_DIMENSIONS, ratios, strict=True))


def _largest_ratio(setting: Setting, bound: Setting, d: int, draws: int) -> float:
    rng, mu = np.random.default_rng(7), 0.3
    constants = Constants(1.0, 1.0, 1.0, d, 1.0, k2=sharp_moment_constant(d))
    limit = bound.second_moment(constants, mu)
    largest = 0.0
    for y in responses(d).values():
        for x in (np.zeros(d), 0.1 * rng.standard_normal(d)):
            p = np.zeros(d)
            if setting.bound is not None:  # the worst prediction: against the slope
                p = -setting.bound * np.ones(d) / np.sqrt(d)
            g = estimates(y, x, mu, setting, p, draws, rng)
            largest = max(largest, float(np.mean(np.einsum("ij,ij->i", g, g))) / limit)
    return largest


# ---- convergence ----------------------------------------------------------------------------------------------------


def convergence(repeats: int) -> bool:
    """Print what was promised and what was found, for every statement; tell whether all hold."""
    print(f"\nconvergence: mean of the smallest norm over all steps and {repeats} repeats, against epsilon")
    delta, constants = 0.3, Constants(1.0, 1.0, SLOPE, 2, gap(), k2=sharp_moment_constant(2))
    cases: list[tuple[str, Setting, str, float]] = [
        ("1  PZOS", Setting(), "partial", 0.6),
        ("1  PZOS", Setting(), "full", 1.0),
        ("2  batch 4", Setting(batch=4), "partial", 0.6),
        ("3  one-sided", Setting(one_sided=True), "partial", 0.6),
        ("4  memory", Setting("memory", bound=SLOPE), "partial", 0.6),
        ("5  noise 0.05", Setting(noise=0.05), "partial", 0.8),
        ("6  error 0.005", Setting(error=0.005), "partial", 0.9),
        ("7  on a box", Setting(projected=True), "full", 1.5),
        ("8  ZOS", Setting("zos"), "full", 0.6),
    ]
    fine = True
    for name, setting, notion, epsilon in cases:
        plan = worst_case(constants, setting, delta=delta, epsilon=epsilon, notion=notion)  # type: ignore[arg-type]
        found = float(np.mean([_mean_norm(plan, seed) for seed in range(repeats)]))
        fine &= found <= epsilon
        verdict = f"found {found:.4f}  promised {epsilon:g}  {_word(found <= epsilon)}"
        print(f"  {name:16} {notion:8} T = {plan.steps:7d}  {verdict}")
    return fine


def _mean_norm(plan: WorstCase, seed: int) -> float:
    setting, problem = plan.setting, toy()
    domain = pzos.Box(np.array([2.5, -2.0]), np.array([5.0, 5.0])) if setting.projected else None
    rng = np.random.default_rng(seed)

    def follower(x: Vector) -> Vector:
        y = SLOPE * np.abs(x)
        y = y + setting.noise / np.sqrt(2.0) * rng.standard_normal(2)
        return y + setting.error / np.sqrt(2.0) * np.sign(np.sin(1e4 * x))

    problem = pzos.Problem(problem.leader, follower, START, domain, follower_name="the toy")
    study = pzos.Study(problem.known(), _solver(plan), seed=seed, steps=plan.steps, monitor=False)
    points = [record.x for record in iterate(study, pzos.Oracle(problem.follower))]
    every = max(len(points) // 300, 1)
    if domain is not None:
        return float(np.mean([_norm_on_box(x, plan, domain) for x in points[::every]]))
    return float(np.mean([smallest_norm(x, plan.delta, plan.notion) for x in points[::every]]))


def _solver(plan: WorstCase) -> Any:
    setting = plan.setting
    if setting.method == "zos":
        return pzos.ZOS(plan.step, plan.radius, setting.batch)
    if setting.bound is None and not setting.one_sided:
        return pzos.PZOS(plan.step, plan.radius, setting.batch)
    differences = pzos.OneSided() if setting.one_sided else pzos.Central()
    inner = pzos.LeaderPrediction() if setting.bound is None else pzos.FittingMemory()
    prediction = inner if setting.bound is None else pzos.ClippedPrediction(inner, setting.bound)
    return pzos.MemoryPZOS(plan.step, plan.radius, setting.batch, prediction, differences)


def _norm_on_box(x: Vector, plan: WorstCase, box: pzos.Box) -> float:
    """Return (an upper bound of) the smallest norm at the point near x that Statement 7 speaks of."""
    mu, smoothness = plan.radius, plan.constants.L_F(plan.radius)
    nodes = np.cos(np.pi * (np.arange(200) + 0.5) / 200)  # the marginal of the disc, by Chebyshev's quadrature
    weights = (1.0 - nodes**2) / 100.0

    def proximal(z: Vector) -> float:
        smoothed = [float(weights @ np.abs(entry + mu * nodes)) for entry in z]
        known = float(np.sqrt(1.0 + (z - TARGET) @ (z - TARGET)))
        return known + SLOPE * float(WEIGHTS @ smoothed) + smoothness * float((z - x) @ (z - x))

    limits = list(zip(np.broadcast_to(box.lower, 2), np.broadcast_to(box.upper, 2), strict=True))
    z = minimize(proximal, x, bounds=limits, method="L-BFGS-B").x
    gradients = []
    for signs in product((1.0, -1.0), repeat=2):
        nearest = np.where(np.array(signs) * z >= 0.0, z, 0.0)
        if np.linalg.norm(nearest - z) <= plan.delta:
            gradients.append(gradient_of_known_part(nearest) + SLOPE * WEIGHTS * np.array(signs))
    at_lower = z <= np.broadcast_to(box.lower, 2) + 1e-9  # its normals point down: what pulls up is balanced
    shares = np.random.default_rng(0).dirichlet(np.ones(len(gradients)), 200)
    mixed = np.concatenate([np.array(gradients), shares @ np.array(gradients)])
    mixed = np.where(at_lower & (mixed > 0.0), 0.0, mixed)
    return float(np.linalg.norm(mixed, axis=1).min())


def _word(holds: bool) -> str:
    return "holds" if holds else "FAILS"


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--draws", type=int, default=20000)
    args = parser.parse_args()
    print(f"pzos {pzos.__version__}, numpy {np.__version__}")
    fine = second_moments(args.draws)
    return 0 if convergence(args.repeats) and fine else 1


if __name__ == "__main__":
    sys.exit(main())
