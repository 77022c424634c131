"""A third part, written after the method was frozen and looked at once: queues, epidemics, counts, clips, districts."""

from __future__ import annotations

import numpy as np

import pzos
from testbed.unseen.instance import Draft, Vector, family
from testbed.unseen.parts import (
    disturbed,
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


@family("queues-8", "smooth", "fresh")
def queues_8(rng: Rng) -> Draft:
    """Staff at eight desks; who waits too long goes to the next desk. The leader pays for staff and for waiting."""
    arrivals, pace = 0.5 + rng.random(8), 0.8 + 0.4 * rng.random(8)

    def respond(x: Vector) -> Vector:
        busy = arrivals * np.exp(-softplus(4.0 * (pace * x - arrivals)) / 4.0)
        load = arrivals + 0.3 * np.roll(busy, 1, axis=-1)
        return load / (0.05 + softplus(8.0 * (pace * x - 0.5 * load)) / 8.0)

    return Draft(worth(-np.ones(8), np.zeros(8), 0.15), respond, np.full(8, 1.0), pzos.Box(0.2, 6.0))


@family("epidemic-6", "smooth", "fresh")
def epidemic_6(rng: Rng) -> Draft:
    """Measures in six periods against an epidemic of 24 steps; the answers are infections in each period."""
    contact, recover, effect = 0.55 + 0.15 * rng.random(), 0.25, 0.6 + 0.3 * rng.random(6)

    def respond(x: Vector) -> Vector:
        well, ill, answers = 1.0, 0.01, []
        for k in range(6):
            new = 0.0
            for _ in range(4):
                caught = contact * (1.0 - logistic(effect[k] * x[..., k] * 3.0 - 2.0)) * well * ill
                well, ill, new = well - caught, ill + caught - recover * ill, new + caught
            answers.append(10.0 * new)
        return np.stack(answers, axis=-1)

    return Draft(worth(-np.ones(6), np.zeros(6), 0.1), respond, np.zeros(6), pzos.Box(0.0, 3.0))


@family("clipped-12", "kinked", "fresh")
def clipped_12(rng: Rng) -> Draft:
    """Machines that follow an order as far as their limits let them."""
    A, b = 1.5 * normal(rng, 10, 12), 0.3 * rng.standard_normal(10)
    low, high = -0.5 - 0.5 * rng.random(10), 0.5 + 0.5 * rng.random(10)

    def respond(x: Vector) -> Vector:
        return np.clip(x @ A.T + b, low, high)

    target = 1.2 * rng.standard_normal(10)
    return Draft(tracking(target, np.zeros(12), 0.03), respond, rng.standard_normal(12), search="kinked")


@family("spread-9", "kinked", "fresh")
def spread_9(rng: Rng) -> Draft:
    """Differences between neighbours count only in size: |a.x + b|, nine of them."""
    A, b = normal(rng, 9, 9), rng.standard_normal(9)
    return Draft(
        peak(np.zeros(9), np.zeros(9), 0.05), lambda x: np.abs(x @ A.T + b), 2.0 * rng.standard_normal(9),
        search="kinked",
    )  # fmt: skip


@family("shipments-7", "jumps", "fresh")
def shipments_7(rng: Rng) -> Draft:
    """Every customer orders from the cheapest of seven depots: whole orders change hands at once."""
    distance, size = 2.0 * rng.random((40, 7)), 0.2 + 0.3 * rng.random(40)

    def respond(x: Vector) -> Vector:
        cheapest = np.argmin(distance + x[..., None, :], axis=-1)
        return np.stack([(size * (cheapest == k)).sum(axis=-1) for k in range(7)], axis=-1)

    return Draft(revenue(0.1 + 0.3 * rng.random(7), 0.4), respond, 0.5 * rng.random(7), pzos.Box(0.0, 4.0),
                 search="jumps")  # fmt: skip


@family("counts-8", "noise", "fresh")
def counts_8(rng: Rng) -> Draft:
    """Whole numbers of visitors, drawn anew at every query."""
    A, b = 0.8 * normal(rng, 10, 8), 3.5 + 0.3 * rng.standard_normal(10)
    target = np.exp(A @ rng.standard_normal(8) + b)
    draft = Draft(tracking(target, np.zeros(8), 5.0, 0.05), lambda x: np.exp(np.clip(x @ A.T + b, -5.0, 8.0)),
                  rng.standard_normal(8), pzos.Box(-4.0, 4.0))  # fmt: skip
    return disturbed(draft, lambda y, x, draw, before: draw.poisson(y).astype(float))


@family("factor-noise-12", "noise", "fresh")
def factor_noise_12(rng: Rng) -> Draft:
    """All answers of one query are too large or too small by the same few per cent."""
    draft = tracked(rng, tanh_map(rng, 12, 10, 15), 12)
    return disturbed(draft, lambda y, x, draw, before: y * (1.0 + 0.03 * draw.standard_normal()))


@family("units-14", "scales", "fresh")
def units_14(rng: Rng) -> Draft:
    """Decisions in units from 1e-3 to 1e3, answers too, in a box that tells the former."""
    return rescaled(tracked(rng, tanh_map(rng, 14, 10, 16), 14, box=3.0), scales(rng, 14, 3.0), scales(rng, 10, 3.0))


@family("ball-market-10", "domains", "fresh")
def ball_market_10(rng: Rng) -> Draft:
    """Advertising within a ball; shares of a market of nine."""
    A, b, value = 2.0 * normal(rng, 9, 10), 0.5 * rng.standard_normal(9), 1.0 + rng.random(9)
    return Draft(worth(value, np.zeros(10), 0.01), lambda x: 3.0 * softmax(x @ A.T + b), 0.1 * rng.standard_normal(10),
                 pzos.Ball(0.0, 1.5), unit=0.5)  # fmt: skip


@family("saddles-5", "several", "fresh")
def saddles_5(rng: Rng) -> Draft:
    """Products of decisions: x0 lies near a saddle, and both ways down end differently."""
    A, B = 1.2 * normal(rng, 6, 5), 1.2 * normal(rng, 6, 5)
    return Draft(tracking(1.0 + rng.random(6), np.zeros(5), 0.05), lambda x: np.tanh(x @ A.T) * (x @ B.T),
                 0.1 * rng.standard_normal(5), pzos.Box(-3.0, 3.0))  # fmt: skip


@family("districts-500", "high", "fresh")
def districts_500(rng: Rng) -> Draft:
    """Five hundred tolls in twenty districts, from none; tolls of a district act nearly alike."""
    strength = np.repeat(rng.standard_normal(20) + 0.5, 25) + 0.2 * rng.standard_normal(500)
    mix, before = np.abs(normal(rng, 30, 20)), 4.5 + rng.random(30)

    def respond(x: Vector) -> Vector:
        moved = (strength * np.tanh(x / 30.0)).reshape(*x.shape[:-1], 20, 25).mean(axis=-1)
        return before + np.tanh(-moved) @ mix.T + 0.3 * (moved**2) @ mix.T

    return Draft(worth(-np.ones(30), np.zeros(500), 1e-6), respond, np.zeros(500), pzos.Nonnegative(), unit=30.0)


@family("scattered-600", "high", "fresh")
def scattered_600(rng: Rng) -> Draft:
    """Six hundred decisions in no order at all, eight answers."""
    return tracked(rng, tanh_map(rng, 600, 8, 12), 600, ridge=2e-3, miss=1.0)
