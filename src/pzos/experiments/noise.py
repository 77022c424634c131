"""Beside the paper: PZOS's noise does not vanish at the optimum, ZOS's does.

At a smooth optimum grad F = grad_x f + J' grad_y f = 0. The noise of ZOS scales with |grad F| and vanishes there; that
of PZOS scales with |J' grad_y f| = |grad_x f|, which does not. The paper's runs end long before that matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pzos.base.keys import Keys
from pzos.base.types import Vector, dot
from pzos.experiments.claims import Bar, Claim, Size
from pzos.games import SecurityGame
from pzos.games.derivatives import security_gradient
from pzos.methods.estimators import black_box_estimate, partial_estimate, sphere_directions, two_point_plan
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.problem.problem import Problem
from pzos.solving import solve

_DIRECTIONS = 200
_LATE_STEPS = 300
_LATE_STEP = 0.002


class Noise(NamedTuple):
    """Mean squared norms of both estimators at x0 and at the optimum, and where small constant steps settle."""

    n: int
    pzos_at_start: float
    zos_at_start: float
    pzos_at_optimum: float
    zos_at_optimum: float
    pzos_late_excess: float
    zos_late_excess: float


def measure_noise(seed: int, targets: int, radius: float = 0.1) -> Noise:
    """Measure both estimators on the same answers, at x0 and at the white-box optimum."""
    game = SecurityGame.random(seed, targets=targets)
    problem = game.problem()
    optimum = white_box_optimum(game, problem.x0)
    start = _noise_at(game, problem, problem.x0, seed, radius)
    end = _noise_at(game, problem, optimum, seed, radius)
    lowest = game.damage(optimum, game.response(optimum))
    excess = [
        _late_excess(game, solver, optimum, lowest, seed)
        for solver in (PZOS(_LATE_STEP, radius), ZOS(_LATE_STEP, radius))
    ]
    return Noise(targets, *start, *end, *excess)


def white_box_optimum(game: SecurityGame, x0: Vector) -> Vector:
    """Minimise F with the exact Jacobian, which no solver of ours may see."""
    from scipy.optimize import minimize

    objective: Any = lambda x: security_gradient(game, x)  # noqa: E731  # the stubs know no such function
    found = minimize(
        objective, x0, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * x0.size,
        options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    optimum: Vector = found.x
    return optimum


def _noise_at(game: SecurityGame, problem: Problem, x: Vector, seed: int, radius: float) -> tuple[float, float]:
    """Return the means of |g|^2 over fresh directions, both estimators from the same answers."""
    totals = [0.0, 0.0]
    for q in range(_DIRECTIONS):
        plan = two_point_plan(x, radius, sphere_directions(Keys(seed), q, 1, x.size), centred=True)
        answers = list(game.response(np.stack(plan.points)))
        for at, estimator in enumerate((partial_estimate, black_box_estimate)):
            estimate = estimator(problem.leader, plan, answers)
            if estimate is not None:
                totals[at] += dot(estimate.gradient, estimate.gradient) / _DIRECTIONS
    return totals[0], totals[1]


def _late_excess(game: SecurityGame, solver: AnySolver, optimum: Vector, lowest: float, seed: int) -> float:
    """Return the mean of F - F* over the last third of a run that starts at the optimum with a constant step."""
    result = solve(game.problem(x0=optimum), solver, steps=_LATE_STEPS, seed=seed, progress=False)
    return float(np.mean(result.trace["value"][-_LATE_STEPS // 3 :]) - lowest)


def noise_claims(seed: int) -> tuple[dict[str, list[float]], tuple[Claim, ...]]:
    """Measure at n = 100 and 300; return the table, and the finding as three claims of ours."""
    rows = [measure_noise(seed, targets) for targets in (100, 300)]
    table = {name: [getattr(row, name) for row in rows] for name in Noise._fields}
    return table, (
        _difference("At x0 the second moment of PZOS is the smaller (PZOS - ZOS on the same answers)", rows,
                    "at_start", Bar(most=0.0)),
        _difference("At the optimum it is the larger: PZOS's noise does not vanish there, ZOS's does (PZOS - ZOS)",
                    rows, "at_optimum", Bar(least=0.0)),
        _difference(f"So with a small constant step ({_LATE_STEP:g}) ZOS settles closer to the optimum (F - F*, PZOS - "
                    "ZOS): use a diminishing step, or a prediction with memory, to go on", rows, "late_excess",
                    Bar(least=0.0)),
    )  # fmt: skip


def _difference(claim: str, rows: list[Noise], column: str, bar: Bar) -> Claim:
    """Return a finding about PZOS - ZOS in a column; its number is the difference that is worst for the bar."""
    pairs = [(row.n, getattr(row, f"pzos_{column}"), getattr(row, f"zos_{column}")) for row in rows]
    differences = [ours - theirs for _, ours, theirs in pairs]
    found = "; ".join(f"n = {n}: {ours:.3g} against {theirs:.3g}" for n, ours, theirs in pairs)
    number = max(differences) if np.isfinite(bar.most) else min(differences)
    return Claim(claim, "not in the paper", found, number, bar, Size(len(rows), 2, "games"), "finding")
