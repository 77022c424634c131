"""The adaptive golden ratio algorithm (Malitsky, Math. Program. 184, 2020, Alg. 1): aGRAAL.

One operator value and one projection per iteration, no line search, no Lipschitz constant, and convergence for
every monotone, locally Lipschitz G:

    step_k  = min(rho step_{k-1},  phi theta_{k-1} |z_k - z_{k-1}|^2 / (4 step_{k-1} |G_k - G_{k-1}|^2))
    mean_k  = ((phi - 1) z_k + mean_{k-1}) / phi
    z_{k+1} = P(mean_k - step_k G_k),      theta_k = phi step_k / step_{k-1},      rho = 1/phi + 1/phi^2

G is evaluated at points of the set only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pzos.base.types import Vector, dot
from pzos.problem.projections import Projector

_PHI = 1.5
_RHO = 1.0 / _PHI + 1.0 / _PHI**2
_LARGEST_STEP = 1e7


@dataclass(frozen=True, slots=True, eq=False)
class GoldenState:
    """The iterate z with its operator value, and what the next step size is made of."""

    z: Vector
    value: Vector
    mean: Vector
    z_before: Vector
    value_before: Vector
    step: float
    theta: float


def start(operator: Callable[[Vector], Vector], projector: Projector, z: Vector) -> GoldenState:
    """Begin at z, with a step size from one short trial move."""
    value = operator(z)
    size = dot(value, value) ** 0.5
    length = 1e-4 * max(1.0, dot(z, z) ** 0.5) / size if size > 0.0 else 1.0
    trial = projector.project(z - length * value)
    trial_value = operator(trial)
    moved, changed = trial - z, trial_value - value
    ratio = dot(moved, moved) / dot(changed, changed) if changed.any() else 1.0
    step = min(max(0.5 * ratio**0.5, 1e-12), _LARGEST_STEP)
    return GoldenState(trial, trial_value, trial, z, value, step, 1.0)


def advance(operator: Callable[[Vector], Vector], projector: Projector, state: GoldenState) -> GoldenState:
    """Return the state after one iteration."""
    moved, changed = state.z - state.z_before, state.value - state.value_before
    change = dot(changed, changed)
    bound = _PHI * state.theta / (4.0 * state.step) * dot(moved, moved) / change if change > 0.0 else np.inf
    step = float(min(_RHO * state.step, bound, _LARGEST_STEP))
    step = step if step > 0.0 else state.step
    mean = ((_PHI - 1.0) * state.z + state.mean) / _PHI
    z = projector.project(mean - step * state.value)
    return GoldenState(z, operator(z), mean, state.z, state.value, step, _PHI * step / state.step)
