"""The security follower against scipy SLSQP and cvxpy, and its cost against n; part of `benchmarks/followers.py`.

All see the same queries: the points
x, x + mu v, x - mu v of a PZOS run on the paper's game (mu = 0.1). SLSQP has exact gradients and starts from its
last answer; cvxpy is set up once with parameters (DPP) and updated. Errors are against a reference computed in
extended precision by bisection.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable

import numpy as np

from pzos.base.keys import Keys
from pzos.games import SecurityGame

Follower = Callable[[np.ndarray], np.ndarray]
TARGETS, QUERIES, SEEDS, TURNS = 100, 12, 3, 3


def queries(game: SecurityGame, seed: int, count: int) -> list[np.ndarray]:
    """Return the points a PZOS run asks: three per step, the paper's radius and step size."""
    n, keys, x, points = game.targets, Keys(seed), game.start(), []
    for t in range(count // 3):
        v = keys.direction(t, 0, n)
        points += [x, x + 0.1 * v, x - 0.1 * v]
        y, up, down = game.response(np.stack(points[-3:]))
        _, grad_x, grad_y = game.damage_and_gradients(x, y)
        g = grad_x + n / 0.2 * float(grad_y @ (up - down)) * v
        x = np.maximum(x - (0.05 if n <= 100 else 0.03) / math.sqrt(t + 1) * g, 0.0)
    return points


def reference(game: SecurityGame, x: np.ndarray) -> np.ndarray:
    """Solve by bisection on multiplier and efforts in long doubles: slow, simple, independent."""
    kind = np.longdouble
    a, w, c = (np.maximum(x, 0).astype(kind) + game.baseline, game.attacker_value.astype(kind),
               game.attacker_cost.astype(kind))  # fmt: skip

    def efforts(m: np.longdouble) -> np.ndarray:
        low, high = np.zeros_like(a), np.sqrt(w / c)
        for _ in range(70):
            y = (low + high) / 2
            rising = w * a / (a + y) ** 2 > c * y + m
            low, high = np.where(rising, y, low), np.where(rising, high, y)
        return np.where(w / a > m, (low + high) / 2, 0)

    if efforts(kind(0)).sum() <= game.budget:
        return efforts(kind(0)).astype(float)
    below, above = kind(0), (w / a).max()
    for _ in range(70):
        m = (below + above) / 2
        below, above = (m, above) if efforts(m).sum() > game.budget else (below, m)
    return efforts((below + above) / 2).astype(float)


def slsqp(game: SecurityGame) -> Follower:
    from scipy.optimize import minimize

    n, w, c = game.targets, game.attacker_value, game.attacker_cost
    last = [np.full(n, game.budget / n)]
    within = {"type": "ineq", "fun": lambda y: game.budget - y.sum(), "jac": lambda y: -np.ones(n)}

    def respond(x: np.ndarray) -> np.ndarray:
        a = np.maximum(x, 0) + game.baseline
        found = minimize(
            lambda y: (float((c * y * y / 2 - w * y / (a + y)).sum()), c * y - w * a / (a + y) ** 2),
            last[0], jac=True, bounds=[(0, None)] * n, constraints=within, method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 1000},
        )  # fmt: skip
        last[0] = found.x
        return np.asarray(found.x)

    return respond


def cvxpy_peer(game: SecurityGame) -> Follower:
    import cvxpy as cp

    n = game.targets
    y, total = cp.Variable(n), cp.Variable(n)
    strength, weight = cp.Parameter(n, nonneg=True), cp.Parameter(n, nonneg=True)
    lost = cp.sum(cp.multiply(weight, cp.inv_pos(total)))  # w y / (a + y) = w - w a / (a + y)
    effort = cp.sum(cp.multiply(game.attacker_cost / 2, cp.square(y)))
    program = cp.Problem(cp.Minimize(lost + effort), [total == y + strength, y >= 0, cp.sum(y) <= game.budget])

    def respond(x: np.ndarray) -> np.ndarray:
        a = np.maximum(x, 0) + game.baseline
        strength.value, weight.value = a, game.attacker_value * a
        program.solve(solver=cp.CLARABEL)
        return np.asarray(y.value)

    return respond


def versus_peers() -> dict[str, tuple[float, float]]:
    """Return median seconds and largest error of each follower.

    Each answers whole runs of queries in a row, as it would in use; the followers take turns run by run, so that
    what else the machine does falls on all of them alike.
    """
    makers: dict[str, Callable[[SecurityGame], Follower]] = {"pzos": lambda g: g.response, "scipy SLSQP": slsqp}
    if importlib.util.find_spec("cvxpy") is not None:
        makers["cvxpy"] = cvxpy_peer
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    errors = dict.fromkeys(makers, 0.0)
    for seed in range(SEEDS):
        game = SecurityGame.random(seed, targets=TARGETS)
        followers = {name: make(game) for name, make in makers.items()}
        points = queries(game, seed, QUERIES)
        answers = [reference(game, x) for x in points]
        for _ in range(TURNS):
            for name, respond in followers.items():
                respond(points[0])
                for x, answer in zip(points, answers, strict=True):
                    begun = time.perf_counter()
                    y = respond(x)
                    seconds[name].append(time.perf_counter() - begun)
                    errors[name] = max(errors[name], float(np.abs(y - answer).max()))
    return {name: (float(np.median(seconds[name])), errors[name]) for name in makers}


def scaling() -> list[tuple[int, float, float, float, float]]:
    """Return (n, wall seconds, CPU seconds, certificate, Newton steps) from n = 1 to 10^6; best of several."""
    rows = []
    for n in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        game = SecurityGame.random(0, targets=n)
        x = game.start()
        _, certificate = game.certified_response(x)
        repeats = max(8, min(200, 200_000 // n))
        best = best_cpu = math.inf
        for _ in range(repeats):
            begun, begun_cpu = time.perf_counter(), time.process_time()
            game.response(x)
            best_cpu = min(best_cpu, time.process_time() - begun_cpu)
            best = min(best, time.perf_counter() - begun)
        rows.append((n, best, best_cpu, float(certificate.gap[0]), float(certificate.iterations[0])))
    return rows
