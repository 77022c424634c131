"""Compiled kernel of the attacker's problem (paper, Sec. 5.2, the attacker's objective).

With a = max(x, 0) + b and a multiplier m for the budget, target i asks for the root y >= 0 of

    w a / (a + y)^2 - c y - m = 0          (y = 0 when w / a <= m)

which is convex and decreasing in y, and the total effort S(m) is convex and decreasing in m (the slope of y
in m is -1 / (2 w a / (a + y)^3 + c), whose size grows with y). Newton on a convex decreasing function is
monotone from the left and jumps back to the left from the right, so neither level needs a line search.
Every call starts from numbers made of x alone, so the answer is a function of x, bit for bit.
"""

from __future__ import annotations

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.games._compile import compiled

_EPS = 2.220446049250313e-16
_INNER_LIMIT = 200
_OUTER_LIMIT = 200
_GUESS_PASSES = 5
_REPAIR_LIMIT = 60


@compiled
def effort(value: float, strength: float, cost: float, multiplier: float, guess: float) -> float:
    """Root y >= 0 of w a / (a + y)^2 - c y - m by Newton from ``guess``."""
    if value / strength <= multiplier:
        return 0.0
    y = guess
    for _ in range(_INNER_LIMIT):
        z = strength + y
        pull = value * (strength / z) / z
        step = (pull - cost * y - multiplier) / (2.0 * pull / z + cost)
        y = max(y + step, 0.0)
        # the error after a step is at most 1.5 step^2 / (a + y): here below an eighth of the last bit of y
        if step * step <= 1.8e-17 * y * z:
            break
    return y


@compiled
def slope(value: float, strength: float, cost: float, y: float) -> float:
    """-dy/dm of an attacked target: 1 / (2 w a / (a + y)^3 + c)."""
    z = strength + y
    return 1.0 / (2.0 * value * (strength / z) / z / z + cost)


@compiled
def excess_effort(y: Vector, budget: float) -> float:
    """sum(y) - budget by compensated (Neumaier) summation: n = 10^6 terms without a loss of digits."""
    total = -budget
    lost = 0.0
    for i in range(y.size):
        term = y[i]
        longer = total + term
        if abs(total) >= abs(term):
            lost += (total - longer) + term
        else:
            lost += (term - longer) + total
        total = longer
    return total + lost


@compiled
def guess_multiplier(value: Vector, strength: Vector, cost: Vector, budget: float, ceiling: float, y: Vector) -> float:
    """A few joint Newton passes on (y, m): only a start for the search, which is right from any start.

    Linearised, y_i = free_i - weight_i m; the loops without a sum are apart so that they are vectorised.
    """
    free = np.empty(y.size)
    weight = np.empty(y.size)
    multiplier = 0.0
    for i in range(y.size):
        y[i] = min(budget / y.size, 0.5 * np.sqrt(value[i] / cost[i]))  # no effort is ever larger
    for _ in range(_GUESS_PASSES):
        for i in range(y.size):
            z = strength[i] + y[i]
            pull = value[i] * (strength[i] / z) / z
            weight[i] = 1.0 / (2.0 * pull / z + cost[i])
            free[i] = y[i] + weight[i] * (pull - cost[i] * y[i])
        total = 0.0
        descent = 0.0
        for i in range(y.size):
            if y[i] > 0.0 or value[i] > multiplier * strength[i]:
                total += free[i]
                descent += weight[i]
        multiplier = min(max((total - budget) / descent, 0.0), ceiling)
        for i in range(y.size):
            y[i] = max(free[i] - weight[i] * multiplier, 0.0)
    return multiplier


@compiled
def search_multiplier(value: Vector, strength: Vector, cost: Vector, budget: float, y: Vector) -> tuple[float, int]:
    """Newton on S(m) = budget; fills ``y``; returns the multiplier and the iterations (-1: failed)."""
    ceiling = np.max(value / strength) * (1.0 - _EPS)  # below it at least one target is attacked
    multiplier = guess_multiplier(value, strength, cost, budget, ceiling, y)
    for iteration in range(1, _OUTER_LIMIT):
        total = 0.0
        descent = 0.0
        for i in range(y.size):
            y[i] = effort(value[i], strength[i], cost[i], multiplier, y[i])
            if y[i] > 0.0:
                total += y[i]
                descent += slope(value[i], strength[i], cost[i], y[i])
        if multiplier == 0.0 and total <= budget:
            return 0.0, iteration
        moved = min(max(multiplier + (total - budget) / descent, 0.0), ceiling)
        # a small step up only drops targets, which the repair does as well, to second order in the step;
        # a step down can bring targets back, so it is taken until nothing is left of it
        small = 1e-9 if moved >= multiplier else 4.0 * _EPS
        if abs(moved - multiplier) <= small * moved:
            return multiplier, iteration
        multiplier = moved
    return multiplier, -1


@compiled
def repair_budget(value: Vector, strength: Vector, cost: Vector, budget: float, y: Vector) -> float:
    """Move ``y`` along dy/dm until it spends the budget to the last bits; returns the move of m.

    The multiplier, a float, can be too coarse for that: one unit in its last place moves y by about
    eps * (a + y), which is large beside a small budget.
    """
    moved = 0.0
    for _ in range(_REPAIR_LIMIT):
        surplus = excess_effort(y, budget)
        if abs(surplus) <= 2.0 * _EPS * budget:
            break
        descent = 0.0
        for i in range(y.size):
            if y[i] > 0.0:
                descent += slope(value[i], strength[i], cost[i], y[i])
        shift = surplus / descent
        moved += shift
        for i in range(y.size):
            if y[i] > 0.0:
                y[i] = max(y[i] - shift * slope(value[i], strength[i], cost[i], y[i]), 0.0)
    return moved


@compiled
def stationarity(value: Vector, strength: Vector, cost: Vector, multiplier: float, y: Vector) -> float:
    """Largest relative violation of the attacker's first-order conditions over the targets."""
    worst = 0.0
    for i in range(y.size):
        z = strength[i] + y[i]
        pull = value[i] * (strength[i] / z) / z
        push = cost[i] * y[i] + multiplier
        gap = pull - push
        if y[i] > 0.0:
            gap = abs(gap)
        relative = gap / (pull + push)
        if not relative <= worst:  # also when relative is not a number
            worst = relative
    return worst


@compiled
def solve_rows(
    rows: Matrix, baseline: Vector, value: Vector, cost: Vector, budget: float, answers: Matrix, certificates: Matrix
) -> float:
    """Answer each row of ``rows`` on its own; returns the worst residual, NaN if a query is not finite.

    ``certificates`` gets a row (multiplier, stationarity residual, relative budget violation, iterations) each;
    the violation counts unspent budget as well when the multiplier is positive (complementarity).
    """
    strength = np.empty(baseline.size)
    worst = 0.0
    for r in range(rows.shape[0]):
        y = answers[r]
        for i in range(y.size):
            if not np.isfinite(rows[r, i]):
                return np.nan
            strength[i] = max(rows[r, i], 0.0) + baseline[i]
        multiplier, iterations = search_multiplier(value, strength, cost, budget, y)
        if multiplier > 0.0:
            multiplier += repair_budget(value, strength, cost, budget, y)
            violation = abs(excess_effort(y, budget)) / budget
        else:
            violation = max(excess_effort(y, budget), 0.0) / budget
        residual = stationarity(value, strength, cost, multiplier, y)
        certificates[r, 0] = multiplier
        certificates[r, 1] = residual
        certificates[r, 2] = violation
        certificates[r, 3] = iterations
        if not max(residual, violation) <= worst:  # also when not a number
            worst = max(residual, violation)
    return worst
