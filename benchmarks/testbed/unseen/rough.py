"""Families whose responses have kinks or jumps, dead zones and several optima."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

import pzos
from testbed.unseen.instance import Draft, Vector, family
from testbed.unseen.parts import logistic, normal, peak, revenue, tanh_map, tracked, tracking, worth

Rng = np.random.Generator


class Quadratic:
    """min z'Qz/2 - c'z subject to G z <= h for one c after the other: least distance by nonnegative least squares."""

    def __init__(self, Q: Vector, G: Vector, h: Vector) -> None:
        self.L = np.linalg.cholesky(Q)
        self.Gt = np.linalg.solve(self.L, G.T)  # columns: constraints in w = L'z - L^-1 c
        self.h = h

    def __call__(self, c: Vector) -> Vector:
        """Return the minimiser."""
        g = np.linalg.solve(self.L, c)
        right = self.Gt.T @ g - self.h  # -G L^-T w >= right
        E = np.vstack([-self.Gt, right])
        target = np.zeros(E.shape[0])
        target[-1] = 1.0
        u, _ = nnls(E, target)
        r = E @ u - target
        return np.linalg.solve(self.L.T, g - r[:-1] / r[-1])


def _positive(rng: Rng, n: int, least: float = 0.5) -> Vector:
    A = normal(rng, n, n)
    return A @ A.T + least * np.eye(n)


def _within(lower: float, upper: float, n: int) -> tuple[Vector, Vector]:
    return np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([np.full(n, upper), np.full(n, -lower)])


@family("qp-12", "kinked", "tune")
def qp_12(rng: Rng) -> Draft:
    """A follower who solves a quadratic program with bounds, many of them active."""
    solve = Quadratic(_positive(rng, 10), *_within(0.0, 2.0, 10))
    A, b = 1.5 * normal(rng, 10, 12), 0.5 + rng.standard_normal(10)

    def respond(x: Vector) -> Vector:
        return solve(A @ x + b)

    return replace(tracked(rng, respond, 12, ridge=0.1), search="kinked", rows=False)


@family("qp-coupled-15", "kinked", "held")
def qp_coupled_15(rng: Rng) -> Draft:
    """A follower with bounds and two shared resources."""
    G, h = _within(0.0, 2.0, 12)
    use = rng.random((2, 12))
    solve = Quadratic(_positive(rng, 12), np.vstack([G, use]), np.concatenate([h, 0.25 * use.sum(axis=1)]))
    A, b = 1.5 * normal(rng, 12, 15), 0.5 + rng.standard_normal(12)
    price = rng.standard_normal(12)
    return Draft(worth(price, np.zeros(15), 0.05, 0.2), lambda x: solve(A @ x + b), rng.standard_normal(15),
                 search="kinked", rows=False)  # fmt: skip


@family("nash-10", "kinked", "tune")
def nash_10(rng: Rng) -> Draft:
    """Ten firms in one market with shared capacities; the leader taxes each, and pays for missing its wishes."""
    G, h = -np.eye(10), np.zeros(10)
    use = (rng.random((3, 10)) < 0.5).astype(float)
    slope = 0.3 + 0.3 * rng.random()
    Q = slope * (np.ones((10, 10)) + np.eye(10)) + np.diag(0.5 * rng.random(10))
    solve = Quadratic(Q, np.vstack([G, use]), np.concatenate([h, 1.0 + rng.random(3)]))
    demand = 3.0 + rng.random(10)
    wish = rng.random(10)
    return Draft(tracking(wish, np.zeros(10), 0.1), lambda x: solve(demand - x), 0.3 * rng.random(10),
                 pzos.Box(-3.0, 3.0), search="kinked", rows=False)  # fmt: skip


@family("lasso-10", "kinked", "held")
def lasso_10(rng: Rng) -> Draft:
    """A follower who fits data with an l1 penalty: answers stay at zero and leave it."""
    A, B, b = rng.standard_normal((15, 8)) / 4.0, normal(rng, 15, 10), rng.standard_normal(15)
    inverse = np.linalg.inv(A.T @ A)
    dual = Quadratic(inverse, *_within(-0.15, 0.15, 8))  # the part of A'(Bx + b) that the penalty takes away

    def respond(x: Vector) -> Vector:
        c = A.T @ (B @ x + b)
        z = inverse @ (c - dual(inverse @ c))
        return np.where(np.abs(z) > 1e-9, z, 0.0)

    return replace(tracked(rng, respond, 10, reach=1.5), search="kinked", rows=False)


@family("relu-many-10", "kinked", "tune")
def relu_many_10(rng: Rng) -> Draft:
    """A ReLU network with twelve answers."""
    W, b, V = 1.5 * normal(rng, 16, 10), 0.5 * rng.standard_normal(16), normal(rng, 12, 16)

    def respond(x: Vector) -> Vector:
        return 2.0 * np.maximum(x @ W.T + b, 0.0) @ V.T

    return replace(tracked(rng, respond, 10), search="kinked")


@family("relu-one-8", "kinked", "held")
def relu_one_8(rng: Rng) -> Draft:
    """One answer, the sum of many hinges: convex, kinks everywhere."""
    W, b, v = 1.5 * normal(rng, 30, 8), rng.standard_normal(30), rng.random(30) / 5.0

    def respond(x: Vector) -> Vector:
        return (np.maximum(x @ W.T + b, 0.0) @ v)[..., None]

    pull = 0.5 * rng.standard_normal(8)
    return Draft(worth(-np.ones(1), pull, 0.05), respond, 1.5 * rng.standard_normal(8), search="kinked")


@family("max-8", "kinked", "tune")
def max_8(rng: Rng) -> Draft:
    """Six answers, each the largest of five linear functions."""
    A, b = 1.5 * normal(rng, 30, 8), rng.standard_normal(30)

    def respond(x: Vector) -> Vector:
        z = x @ A.T + b
        return z.reshape(*z.shape[:-1], 6, 5).max(axis=-1)

    return Draft(peak(rng.standard_normal(6), np.zeros(8), 0.03), respond, rng.standard_normal(8), search="kinked")


@family("sorting-10", "kinked", "held")
def sorting_10(rng: Rng) -> Draft:
    """Answers in order of size: the leader sees ranks, not names."""
    A, b = 1.5 * normal(rng, 9, 10), rng.standard_normal(9)
    target = np.sort(rng.standard_normal(9))
    return Draft(tracking(target, np.zeros(10), 0.05), lambda x: np.sort(x @ A.T + b, axis=-1),
                 1.5 * rng.standard_normal(10), search="kinked")  # fmt: skip


# Jumps


@family("households-8", "jumps", "tune")
def households_8(rng: Rng) -> Draft:
    """Sixty households, each buys the one good that is best for it at these prices, or none."""
    taste = 3.0 * rng.random((60, 8))
    size = 0.5 + rng.random(60)

    def respond(x: Vector) -> Vector:
        gain = taste - x
        pick, any_good = gain.argmax(axis=1), gain.max(axis=1) > 0.0
        return np.bincount(pick[any_good], weights=size[any_good], minlength=8)

    return Draft(revenue(0.2), respond, 0.3 + 0.3 * rng.random(8), pzos.Box(0.0, 3.0), search="jumps", rows=False)


@family("knapsack-8", "jumps", "held")
def knapsack_8(rng: Rng) -> Draft:
    """Twenty households fill a budget in the order of worth per price (a linear program each)."""
    taste, purse, cap = 0.5 + rng.random((20, 8)), 1.0 + rng.random(20), 0.3 + 0.7 * rng.random(8)

    def respond(x: Vector) -> Vector:
        total = np.zeros(8)
        for j in range(20):
            left = purse[j]
            for i in np.argsort(-taste[j] / x):
                if taste[j, i] < x[i] or left <= 0.0:
                    break
                bought = min(cap[i], left / x[i])
                total[i] += bought
                left -= bought * x[i]
        return total

    return Draft(revenue(0.3), respond, 0.4 + 0.2 * rng.random(8), pzos.Box(0.1, 2.0), search="jumps", rows=False)


@family("rounded-10", "jumps", "tune")
def rounded_10(rng: Rng) -> Draft:
    """Smooth answers, rounded to 0.1."""
    inner = tanh_map(rng, 10, 8, 12)
    return replace(tracked(rng, inner, 10), respond=lambda x: np.round(inner(x), 1), search="jumps")


@family("integer-10", "jumps", "held")
def integer_10(rng: Rng) -> Draft:
    """Whole numbers of vehicles: 12 depots answer with 0 to about 9 each."""
    A, b = 1.2 * normal(rng, 12, 10), 0.5 * rng.standard_normal(12)
    target = 9.0 * logistic(A @ rng.standard_normal(10) + b)
    return Draft(tracking(target, np.zeros(10), 0.1), lambda x: np.round(9.0 * logistic(x @ A.T + b)),
                 rng.standard_normal(10), search="jumps")  # fmt: skip


@family("plateau-6", "jumps", "tune")
def plateau_6(rng: Rng) -> Draft:
    """Nothing moves near x0: each answer wakes up beyond a threshold, and goes in steps of 0.2."""
    A, wake = 1.5 * normal(rng, 8, 6), 0.6 + 0.6 * rng.random(8)

    def respond(x: Vector) -> Vector:
        return 0.2 * np.floor(np.maximum(x @ A.T - wake, 0.0) / 0.2)

    price = 1.0 + rng.random(8)
    return Draft(worth(price, np.zeros(6), 0.15, 0.3), respond, 0.1 * rng.standard_normal(6), pzos.Box(-3.0, 3.0),
                 search="jumps")  # fmt: skip


@family("stairs-6", "jumps", "held")
def stairs_6(rng: Rng) -> Draft:
    """Steps of 0.5 on a trend; the cost wants the middle of a staircase."""
    A, b = 2.0 * normal(rng, 7, 6), rng.standard_normal(7)
    target = 2.0 * rng.standard_normal(7)
    return Draft(tracking(target, np.zeros(6), 0.05), lambda x: 0.5 * np.floor((x @ A.T + b) / 0.5),
                 np.clip(1.5 * rng.standard_normal(6), -4.0, 4.0), pzos.Box(-4.0, 4.0), search="jumps")  # fmt: skip


# Several optima


@family("wells-4", "several", "tune")
def wells_4(rng: Rng) -> Draft:
    """Answers that are dead below a threshold, and a concave cost: several corners are optimal nearby."""
    A, wake = 1.5 * normal(rng, 5, 4), 0.3 + 0.5 * rng.random(5)
    price = 0.5 + rng.random(5)
    return Draft(worth(price, np.zeros(4), 0.12, -0.2), lambda x: np.maximum(np.tanh(x @ A.T) - 0.3 * wake, 0.0),
                 0.3 * rng.standard_normal(4), pzos.Box(-3.0, 3.0), search="kinked")  # fmt: skip


@family("bumps-5", "several", "held")
def bumps_5(rng: Rng) -> Draft:
    """Six answers, each alive around a place of its own; the places differ in worth."""
    place, width = 1.5 * rng.standard_normal((6, 5)), 1.0 + 0.5 * rng.random(6)

    def respond(x: Vector) -> Vector:
        far = ((x[..., None, :] - place) ** 2).sum(axis=-1)
        return np.exp(-0.5 * far / width**2)

    return Draft(worth(1.0 + 2.0 * rng.random(6), np.zeros(5), 0.01), respond, rng.standard_normal(5),
                 pzos.Box(-4.0, 4.0))  # fmt: skip
