"""A Newton step on all pairs at once, where pairwise sweeps converge only linearly.

Variables are the swaps of :mod:`._swaps`. The Hessian of the Beckmann objective is D' S D with D the links' incidence
in the swaps and S the slopes: a product needs one pass over the swaps' links, and no matrix is ever formed. The
quadratic model is minimised between the bounds: Gauss-Seidel sweeps find which swaps end at a bound, conjugate
gradients move the others.
"""

from __future__ import annotations

import numpy as np

from pzos.base.types import Matrix, Vector
from pzos.networks.equilibrium.columns import Paths
from pzos.networks.equilibrium.compiled import compiled, inlined
from pzos.networks.equilibrium.law import FLOW, SLOPE, TIME, Law, refresh
from pzos.networks.equilibrium.swaps import Swaps, bundle, carry_out, list_exchanges, path_codes
from pzos.networks.equilibrium.sweeps import Marks
from pzos.networks.equilibrium.trees import Short, Whole

_SHIFT, _FLAT, _SECANTS = 1e-6, 1e-200, 10


@compiled
def _spread(amount: Vector, swaps: Swaps, load: Vector) -> None:
    """Write the change of the link flows, D amount, into ``load``."""
    start, middle, own = swaps.start, swaps.middle, swaps.own
    for link in range(load.size):
        load[link] = 0.0
    for j in range(amount.size):
        value = amount[j]
        if value != 0.0:
            for k in range(start[j], middle[j]):
                load[own[k]] += value
            for k in range(middle[j], start[j + 1]):
                load[own[k]] -= value


@compiled
def _gather(load: Vector, swaps: Swaps, result: Vector) -> None:
    """Write D' load into ``result``."""
    start, middle, own = swaps.start, swaps.middle, swaps.own
    for j in range(result.size):
        value = 0.0
        for k in range(start[j], middle[j]):
            value += load[own[k]]
        for k in range(middle[j], start[j + 1]):
            value -= load[own[k]]
        result[j] = value


@compiled
def _curve(amount: Vector, swaps: Swaps, slope: Vector, load: Vector, product: Vector) -> None:
    """Write the Hessian times ``amount``, D' S D amount, into ``product``."""
    _spread(amount, swaps, load)
    for link in range(load.size):
        load[link] *= slope[link]
    _gather(load, swaps, product)


@compiled
def _settle(amount: Vector, swaps: Swaps, gradient: Vector, diagonal: Vector, slope: Vector, load: Vector) -> float:
    """One Gauss-Seidel sweep over the swaps on the model, between the bounds; return the decrease it found."""
    start, middle, own, _, lower, upper = swaps
    found = 0.0
    for j in range(amount.size):
        rise = gradient[j]
        for k in range(start[j], middle[j]):
            rise += slope[own[k]] * load[own[k]]
        for k in range(middle[j], start[j + 1]):
            rise -= slope[own[k]] * load[own[k]]
        new = amount[j] - rise / diagonal[j]
        new = min(max(new, lower[j]), upper[j])
        moved = new - amount[j]
        if moved == 0.0:
            continue
        found -= moved * (rise + 0.5 * moved * diagonal[j])
        amount[j] = new
        for k in range(start[j], middle[j]):
            load[own[k]] += moved
        for k in range(middle[j], start[j + 1]):
            load[own[k]] -= moved
    return found


@compiled
def _free_direction(
    free: Vector, swaps: Swaps, residual: Vector, diagonal: Vector, slope: Vector, accuracy: float, products: int
) -> Vector:
    """Solve the Newton equations for the swaps with free = 1 by conjugate gradients; overwrites ``residual``."""
    count = free.size
    load, product, direction, search = np.empty(slope.size), np.empty(count), np.zeros(count), np.empty(count)
    size = 0.0
    for j in range(count):
        residual[j] *= free[j]
        search[j] = residual[j] / diagonal[j]
        size += residual[j] * search[j]
    goal = accuracy * accuracy * size
    for _ in range(products):
        if size <= goal:
            break
        _curve(search, swaps, slope, load, product)
        curvature = 0.0
        for j in range(count):
            product[j] += _SHIFT * diagonal[j] * search[j]
            curvature += search[j] * product[j]
        step, before, size = size / curvature, size, 0.0
        for j in range(count):
            direction[j] += step * search[j]
            residual[j] -= free[j] * step * product[j]
            size += residual[j] * residual[j] / diagonal[j]
        for j in range(count):
            search[j] = residual[j] / diagonal[j] + size / before * search[j]
    return direction


@compiled
def _model(amount: Vector, swaps: Swaps, gradient: Vector, slope: Vector, load: Vector) -> float:
    """Return the quadratic model at ``amount``; write D amount into ``load``."""
    _spread(amount, swaps, load)
    value = 0.0
    for j in range(amount.size):
        value += gradient[j] * amount[j]
    for link in range(load.size):
        value += 0.5 * slope[link] * load[link] * load[link]
    return value


@compiled
def _clipped(amount: Vector, direction: Vector, share: float, swaps: Swaps) -> Vector:
    """Return amount + share * direction, cut off at the bounds."""
    result = np.empty(amount.size)
    for j in range(amount.size):
        result[j] = min(max(amount[j] + share * direction[j], swaps.lower[j]), swaps.upper[j])
    return result


@inlined
def _to_first_bound(amount: Vector, direction: Vector, swaps: Swaps) -> float:
    """Return the largest share of ``direction``, at most 1, that crosses no bound."""
    share = 1.0
    for j in range(amount.size):
        if direction[j] < 0.0:
            share = min(share, (swaps.lower[j] - amount[j]) / direction[j])
        elif direction[j] > 0.0:
            share = min(share, (swaps.upper[j] - amount[j]) / direction[j])
    return share


@compiled
def best_swaps(
    swaps: Swaps, gradient: Vector, diagonal: Vector, slope: Vector, accuracy: float, products: int, passes: int
) -> Vector:
    """Minimise  gradient'y + y' D' S D y / 2  over the swaps y between their bounds."""
    count = gradient.size
    amount, load, trial_load = np.zeros(count), np.zeros(slope.size), np.empty(slope.size)
    free, residual = np.empty(count), np.empty(count)
    most = 0.0
    for _ in range(passes):
        found = _settle(amount, swaps, gradient, diagonal, slope, load)
        found += _settle(amount, swaps, gradient, diagonal, slope, load)
        most = max(most, found)
        if found <= accuracy * accuracy * most:
            break
        _curve(amount, swaps, slope, trial_load, residual)
        for j in range(count):
            residual[j] = -gradient[j] - residual[j]
            free[j] = 1.0 if swaps.lower[j] < amount[j] < swaps.upper[j] and diagonal[j] > _FLAT else 0.0
        direction = _free_direction(free, swaps, residual, diagonal, slope, accuracy, products)
        here = _model(amount, swaps, gradient, slope, load)
        share = _to_first_bound(amount, direction, swaps)
        best = _clipped(amount, direction, share, swaps)
        value = _model(best, swaps, gradient, slope, load)
        longer = 1.0
        while longer > 4.0 * share:
            trial = _clipped(amount, direction, longer, swaps)
            other = _model(trial, swaps, gradient, slope, trial_load)
            if other < value:
                best, value = trial, other
                break
            longer *= 0.25
        most = max(most, here - value)
        amount = best
        _spread(amount, swaps, load)
    return amount


@compiled
def _place(share: float, old_flow: Vector, load: Vector, law: Law, state: Matrix) -> None:
    """Set the links to ``share`` of the way along ``load``."""
    for link in range(load.size):
        state[link, FLOW] = max(old_flow[link] + share * load[link], 0.0)
    refresh(law, state)


@compiled
def _slope_along(amount: Vector, swaps: Swaps, state: Matrix, rise: Vector) -> float:
    """Write the gradient of the Beckmann objective; return its derivative along ``amount``."""
    _gather(state[:, TIME].copy(), swaps, rise)
    total = 0.0
    for j in range(amount.size):
        rise[j] += swaps.fixed[j]
        total += amount[j] * rise[j]
    return total


@compiled
def _search(amount: Vector, swaps: Swaps, before: float, law: Law, state: Matrix) -> float:
    """Move the links along ``amount`` to about the lowest point of the objective; return the share moved.

    The derivative goes from ``before`` < 0 at none to whatever it is at all; secants close in on its zero, cut off
    where they would hardly shorten the interval, as they do on steep latencies.
    """
    old_flow, load, rise = state[:, FLOW].copy(), np.empty(state.shape[0]), np.empty(amount.size)
    _spread(amount, swaps, load)
    _place(1.0, old_flow, load, law, state)
    after = _slope_along(amount, swaps, state, rise)
    low, high, at_low, at_high, share = 0.0, 1.0, before, after, 1.0
    for _ in range(_SECANTS):
        if (share == 1.0 and after <= 0.0) or abs(after) <= 0.1 * abs(before):
            break
        share = low + min(max(at_low / (at_low - at_high), 0.1), 0.9) * (high - low)
        _place(share, old_flow, load, law, state)
        after = _slope_along(amount, swaps, state, rise)
        if after > 0.0:
            high, at_high = share, after
        else:
            low, at_low = share, after
    return share


@compiled
def newton_step(
    pairs: Whole, kind: Short, paths: Paths, law: Law, state: Matrix, marks: Marks, accuracy: float, products: int,
    passes: int
) -> bool:  # fmt: skip
    """Take one Newton step with a line search; return whether it led downhill (else nothing is changed)."""
    prices, codes = np.empty(paths.flow.size), np.empty(paths.flow.size, np.int64)
    path_codes(pairs, paths, state, prices, codes)
    exchanges, key, differ = list_exchanges(pairs, kind, paths, prices, codes)
    swaps = bundle(exchanges, key, differ, paths, marks)
    count, slope = swaps.fixed.size, state[:, SLOPE].copy()
    start, own, gradient, diagonal = swaps.start, swaps.own, np.zeros(count), np.empty(count)
    _slope_along(gradient, swaps, state, gradient)
    for j in range(count):
        diagonal[j] = _FLAT
        for k in range(start[j], start[j + 1]):
            diagonal[j] += slope[own[k]]
    amount = best_swaps(swaps, gradient, diagonal, slope, accuracy, products, passes)
    before = 0.0
    for j in range(count):
        before += amount[j] * gradient[j]
    if not before < 0.0:
        return False
    share = _search(amount, swaps, before, law, state)
    carry_out(amount, share, exchanges, swaps, paths.flow)
    return True
