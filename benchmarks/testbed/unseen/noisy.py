"""Families whose answers are not the true ones, and costs that are not defined for every answer a model may foresee."""

from __future__ import annotations

import numpy as np

from testbed.unseen.instance import Cost, Draft, Vector, family
from testbed.unseen.parts import disturbed, logistic, normal, softmax, softplus, tanh_map, tracked, tracking, worth
from testbed.unseen.rough import qp_12

Rng = np.random.Generator
History = list[Vector]


@family("relative-12", "noise", "tune")
def relative_12(rng: Rng) -> Draft:
    """Every answer is off by 1 % of itself."""
    draft = tracked(rng, tanh_map(rng, 12, 10, 14), 12, ridge=0.05)
    return disturbed(draft, lambda y, x, draw, before: y * (1.0 + 0.01 * draw.standard_normal(y.size)))


@family("additive-12", "noise", "held")
def additive_12(rng: Rng) -> Draft:
    """Every answer is off by 0.03, where answers are about 1."""
    A, b = 2.0 * normal(rng, 9, 12), rng.standard_normal(9)
    draft = Draft(worth(1.0 + rng.random(9), np.zeros(12), 0.05), lambda x: 2.0 * logistic(x @ A.T + b),
                  0.5 * rng.standard_normal(12))  # fmt: skip
    return disturbed(draft, lambda y, x, draw, before: y + 0.03 * draw.standard_normal(y.size))


@family("hetero-10", "noise", "tune")
def hetero_10(rng: Rng) -> Draft:
    """Noise of 0.5 % to 10 % by answer, more of it far out."""
    draft = tracked(rng, tanh_map(rng, 10, 8, 12), 10, ridge=0.05)
    level = 10.0 ** rng.uniform(-2.3, -1.0, 8)

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        return y + level * (0.3 + 0.5 * np.linalg.norm(x) / np.sqrt(10.0)) * (1.0 + np.abs(y)) * draw.standard_normal(8)

    return disturbed(draft, disturb)


@family("heavy-10", "noise", "held")
def heavy_10(rng: Rng) -> Draft:
    """Noise with heavy tails (Student's t with two degrees of freedom), 0.02 in size."""
    A, b = 2.0 * normal(rng, 8, 10), 0.5 * rng.standard_normal(8)
    draft = Draft(tracking(10.0 * softmax(rng.standard_normal(8)), np.zeros(10), 0.05),
                  lambda x: 10.0 * softmax(x @ A.T + b), rng.standard_normal(10))  # fmt: skip
    return disturbed(draft, lambda y, x, draw, before: y + 0.02 * draw.standard_t(2.0, y.size))


def _outliers(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
    """Return the true answer, but wild ones in two of a hundred."""
    wild = draw.random() < 0.02
    return y * 10.0 ** draw.uniform(-1.0, 1.0) * np.sign(draw.standard_normal(y.size)) if wild else y


@family("outliers-10", "noise", "tune")
def outliers_10(rng: Rng) -> Draft:
    """Exact answers, but 2 % of them are wild."""
    return disturbed(tracked(rng, tanh_map(rng, 10, 8, 12), 10, ridge=0.05), _outliers)


@family("outliers-qp-12", "noise", "held")
def outliers_qp_12(rng: Rng) -> Draft:
    """A quadratic program as follower, one entry of the answer mistyped in 2 % of the queries."""

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        typed = y.copy()
        if draw.random() < 0.02:
            typed[draw.integers(y.size)] *= 100.0
        return typed

    return disturbed(qp_12(rng), disturb)


@family("drift-10", "noise", "tune")
def drift_10(rng: Rng) -> Draft:
    """The followers change slowly: after 150 queries by a tenth of what the answers vary."""
    draft = tracked(rng, tanh_map(rng, 10, 8, 12), 10, ridge=0.05)
    way = 0.15 * rng.standard_normal(8) / 150.0
    return disturbed(draft, lambda y, x, draw, before: y + len(before) * way)


@family("stale-10", "noise", "held")
def stale_10(rng: Rng) -> Draft:
    """One query in ten is answered with the answer before."""
    draft = tracked(rng, tanh_map(rng, 10, 8, 12), 10, ridge=0.05)

    def disturb(y: Vector, x: Vector, draw: Rng, before: History) -> Vector:
        return before[-1] if before and draw.random() < 0.1 else y

    return disturbed(draft, disturb)


# Costs with holes


@family("log-10", "holes", "tune")
def log_10(rng: Rng) -> Draft:
    """Proportional fairness: f = -sum log y, y > 0 always, but not on a linear model of it."""
    A, b = 2.0 * normal(rng, 8, 10), rng.standard_normal(8)

    def value(x: Vector, y: Vector) -> float:
        return float(-np.log(y).sum() + 0.5 * (x @ x)) if y.min() > 0.0 else np.nan

    return Draft(
        Cost(value, lambda x, y: (x.copy(), -1.0 / y)), lambda x: 0.5 * softplus(x @ A.T + b) + 1e-3,
        2.0 * rng.standard_normal(10),
    )  # fmt: skip


@family("sqrt-12", "holes", "held")
def sqrt_12(rng: Rng) -> Draft:
    """Returns that grow with the root of the answers, against what they cost."""
    A, b = 2.0 * normal(rng, 9, 12), rng.standard_normal(9)
    worth_of = 1.0 + rng.random(9)

    def value(x: Vector, y: Vector) -> float:
        return float(-worth_of @ np.sqrt(y) + 0.2 * y.sum() + 0.1 * (x @ x)) if y.min() > 0.0 else np.nan

    return Draft(
        Cost(value, lambda x, y: (0.2 * x, -0.5 * worth_of / np.sqrt(y) + 0.2)),
        lambda x: (3.0 * logistic(x @ A.T + b)) ** 2 + 1e-6, 1.5 * rng.standard_normal(12),
    )  # fmt: skip
