"""Families with smooth responses: unstructured maps, bad units, sets other than boxes, many decisions, far optima."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pzos
from testbed.unseen.instance import Draft, Vector, family
from testbed.unseen.parts import (
    logistic,
    normal,
    peak,
    rescaled,
    revenue,
    scales,
    softmax,
    softplus,
    tanh_map,
    tracked,
    tracking,
    worth,
)

Rng = np.random.Generator


@family("tanh-15", "smooth", "tune")
def tanh_15(rng: Rng) -> Draft:
    """A tanh network tracked by least squares."""
    respond = tanh_map(rng, 15, 10, 20)
    return tracked(rng, respond, 15)


@family("tanh-40", "smooth", "held")
def tanh_40(rng: Rng) -> Draft:
    """The same with 40 decisions and 25 answers."""
    respond = tanh_map(rng, 40, 25, 40, 1.2)
    return tracked(rng, respond, 40)


@family("logistic-30", "smooth", "tune")
def logistic_30(rng: Rng) -> Draft:
    """Adoption of 20 offers, each worth something known."""
    A, b = 2.0 * normal(rng, 20, 30), rng.standard_normal(20)
    price = 1.0 + rng.random(20)
    return Draft(worth(price, np.zeros(30), 0.05), lambda x: logistic(x @ A.T + b), 0.5 * rng.standard_normal(30))


@family("peak-10", "smooth", "tune")
def peak_10(rng: Rng) -> Draft:
    """The soft maximum of eight smooth answers."""
    respond = tanh_map(rng, 10, 8, 12)
    return Draft(peak(np.zeros(8), np.zeros(10), 0.05), respond, rng.standard_normal(10))


@family("chain-8", "smooth", "tune")
def chain_8(rng: Rng) -> Draft:
    """A curved valley: answers 3 (x_{i+1} - x_i^2), costs as in Rosenbrock's function, turned at random."""
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]

    def respond(x: Vector) -> Vector:
        z = x @ turn.T
        return np.concatenate([3.0 * (z[..., 1:] - z[..., :-1] ** 2), 1.0 - z[..., :-1]], axis=-1)

    return Draft(tracking(np.zeros(14), np.zeros(8), 1e-3), respond, 0.7 * rng.standard_normal(8))


@family("pricing-10", "smooth", "tune")
def pricing_10(rng: Rng) -> Draft:
    """Prices of ten goods, customers choose by a logit model with an outside option."""
    taste, pull = 2.0 + rng.random(10), 1.0 + rng.random(10)

    def respond(x: Vector) -> Vector:
        z = taste - pull * x
        return 10.0 * softmax(np.concatenate([z, np.zeros((*z.shape[:-1], 1))], axis=-1))[..., :-1]

    return Draft(revenue(0.2 + 0.3 * rng.random(10)), respond, 0.5 + 0.5 * rng.random(10), pzos.Box(0.0, 10.0))


@family("segments-8", "smooth", "held")
def segments_8(rng: Rng) -> Draft:
    """Prices again, two kinds of customers with tastes of their own."""
    taste, pull = 1.5 + 1.5 * rng.random((2, 8)), 0.5 + 2.0 * rng.random((2, 8))

    def respond(x: Vector) -> Vector:
        total = np.zeros_like(x)
        for j in range(2):
            z = taste[j] - pull[j] * x
            total = total + 5.0 * softmax(np.concatenate([z, np.zeros((*z.shape[:-1], 1))], axis=-1))[..., :-1]
        return total

    return Draft(revenue(0.3 * rng.random(8)), respond, 0.5 + rng.random(8), pzos.Box(0.0, 8.0))


@family("softmax-12", "smooth", "held")
def softmax_12(rng: Rng) -> Draft:
    """Shares of eight rivals, to be brought to given shares."""
    A, b = 2.0 * normal(rng, 8, 12), 0.5 * rng.standard_normal(8)
    target = 10.0 * softmax(1.5 * rng.standard_normal(8))
    return Draft(tracking(target, np.zeros(12), 0.05), lambda x: 10.0 * softmax(x @ A.T + b), rng.standard_normal(12))


@family("quadratic-20", "smooth", "held")
def quadratic_20(rng: Rng) -> Draft:
    """Squares of linear functions, the soft maximum of which is brought down."""
    A, B, b = normal(rng, 12, 20), normal(rng, 12, 20), rng.standard_normal(12)
    return Draft(
        peak(np.zeros(12), np.zeros(20), 0.02, 3.0), lambda x: (x @ A.T + b) ** 2 + x @ B.T, rng.standard_normal(20)
    )


@family("sine-5", "smooth", "held")
def sine_5(rng: Rng) -> Draft:
    """Waves and a slope, five decisions."""
    A, B = 1.5 * normal(rng, 6, 5), normal(rng, 6, 5)

    def respond(x: Vector) -> Vector:
        return np.sin(x @ A.T) + 0.5 * x @ B.T

    return tracked(rng, respond, 5, ridge=0.05, miss=0.1)


# Bad units


def _plain(rng: Rng, d: int = 10, m: int = 8) -> Draft:
    respond = tanh_map(rng, d, m, 12)
    return tracked(rng, respond, d, ridge=0.05)


@family("x-scales-10", "scales", "tune")
def x_scales_10(rng: Rng) -> Draft:
    """Decisions in units from 1e-4 to 1e4, without bounds; only f and x0 tell."""
    return rescaled(_plain(rng), of_x=scales(rng, 10, 4.0))


@family("x-scales-box-10", "scales", "held")
def x_scales_box_10(rng: Rng) -> Draft:
    """The same units with bounds that tell them."""
    return rescaled(tracked(rng, tanh_map(rng, 10, 8, 12), 10, ridge=0.05, box=3.0), of_x=scales(rng, 10, 4.0))


@family("y-scales-10", "scales", "tune")
def y_scales_10(rng: Rng) -> Draft:
    """Answers in units from 1e-4 to 1e4; f knows them."""
    return rescaled(_plain(rng), of_y=scales(rng, 8, 4.0))


@family("all-scales-12", "scales", "held")
def all_scales_12(rng: Rng) -> Draft:
    """Decisions from 1e-2 to 1e2, answers from 1e-3 to 1e3, f by 1e4."""
    return rescaled(_plain(rng, 12, 9), scales(rng, 12, 2.0), scales(rng, 9, 3.0), 1e4)


@family("tiny-10", "scales", "tune")
def tiny_10(rng: Rng) -> Draft:
    """All decisions and f in units of 1e-8."""
    return rescaled(_plain(rng), of_x=1e-8, of_f=1e-8)


@family("huge-10", "scales", "held")
def huge_10(rng: Rng) -> Draft:
    """All decisions and answers in units of 1e8, f too."""
    return rescaled(_plain(rng), of_x=1e8, of_y=1e8, of_f=1e8)


# Sets other than the whole space


@family("simplex-12", "domains", "tune")
def simplex_12(rng: Rng) -> Draft:
    """How to divide a total of 1 among twelve uses whose returns compete."""
    A, b = 6.0 * normal(rng, 8, 12), rng.standard_normal(8)
    price = 1.0 + rng.random(8)
    return Draft(worth(price, np.zeros(12), 0.3), lambda x: logistic(x @ A.T + b), np.full(12, 1.0 / 12.0),
                 pzos.Simplex(1.0), unit=0.3)  # fmt: skip


@family("boxed-20", "domains", "tune")
def boxed_20(rng: Rng) -> Draft:
    """A box whose faces are active at the optimum in about half of the entries."""
    respond = tanh_map(rng, 20, 12, 20)
    return tracked(rng, respond, 20, reach=1.5, ridge=0.01, box=0.8)


@family("ball-15", "domains", "held")
def ball_15(rng: Rng) -> Draft:
    """A ball that is active at the optimum."""
    respond = tanh_map(rng, 15, 10, 16)
    draft = tracked(rng, respond, 15, reach=1.2, ridge=0.01)
    return replace(draft, x0=0.3 * draft.x0 / np.linalg.norm(draft.x0), domain=pzos.Ball(0.0, 2.0))


@family("budget-20", "domains", "held")
def budget_20(rng: Rng) -> Draft:
    """A budget of 3 for twenty uses, each with returns that fade and spill over."""
    A, gain = 0.3 * np.abs(normal(rng, 20, 20)), 0.5 + rng.random(20)
    A[np.diag_indices(20)] += 1.5 + rng.random(20)
    return Draft(worth(gain, np.zeros(20), 0.02), lambda x: 1.0 - np.exp(-(x @ A.T)), np.full(20, 0.02),
                 pzos.Budget(3.0), unit=0.3)  # fmt: skip


# Many decisions, few queries


@family("few-300", "high", "tune")
def few_300(rng: Rng) -> Draft:
    """Three answers to three hundred decisions."""
    respond = tanh_map(rng, 300, 3, 10)
    return tracked(rng, respond, 300, ridge=2e-3, miss=1.0, box=3.0)


@family("network-100", "high", "tune")
def network_100(rng: Rng) -> Draft:
    """A hundred decisions, each with an answer of its own that spills over to neighbours on a ring."""
    own, b = 0.5 + rng.random(100), rng.standard_normal(100)
    spill = 0.3 * own.min() * rng.random(100)

    def respond(x: Vector) -> Vector:
        return softplus(b - own * x + spill * (np.roll(x, 1, axis=-1) + np.roll(x, -1, axis=-1)))

    return Draft(revenue(0.0, 0.05), respond, 0.2 * rng.random(100))


@family("few-200", "high", "held")
def few_200(rng: Rng) -> Draft:
    """Six answers to two hundred decisions, without bounds."""
    A, b = 2.0 * normal(rng, 6, 200), rng.standard_normal(6)
    return Draft(tracking(rng.random(6), np.zeros(200), 1e-3), lambda x: 2.0 * logistic(x @ A.T + b),
                 0.5 * rng.standard_normal(200))  # fmt: skip


@family("logistic-160", "high", "held")
def logistic_160(rng: Rng) -> Draft:
    """Forty offers, 160 decisions, no structure."""
    A, b = 2.0 * normal(rng, 40, 160), rng.standard_normal(40)
    return Draft(worth(1.0 + rng.random(40), np.zeros(160), 0.02), lambda x: logistic(x @ A.T + b), np.zeros(160))


# Optima far from x0 = 0, without bounds


@family("far-15", "far", "tune")
def far_15(rng: Rng) -> Draft:
    """Tolls: demand fades over 40 to 100 units of price, with cross effects; from no tolls at all."""
    demand, fade = 1.0 + rng.random(15), 40.0 + 60.0 * rng.random(15)
    cross = 0.3 * rng.random((15, 15)) / 15.0

    def respond(x: Vector) -> Vector:
        return demand * np.exp(-softplus((x - x @ cross.T) / fade)) * 2.0

    return Draft(revenue(0.0, 1e-4), respond, np.zeros(15), unit=50.0)


@family("far-60", "far", "held")
def far_60(rng: Rng) -> Draft:
    """Sixty tolls; trips give up around a common price of about 60 and move between neighbours before."""
    demand, turn = 1.0 + rng.random(60), 50.0 + 20.0 * rng.random(60)

    def respond(x: Vector) -> Vector:
        near = 0.5 * (np.roll(x, 1, axis=-1) + np.roll(x, -1, axis=-1))
        return demand * logistic((turn - x) / 12.0) * (1.0 + 0.3 * np.tanh((near - x) / 30.0))

    return Draft(revenue(0.0), respond, np.zeros(60), unit=40.0)
