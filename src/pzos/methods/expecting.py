"""What the answers known so far lead one to expect: of another cost, of other parameters of the cost. No query.

The model of the response is the followers', so it serves any cost. What it expects is where the default method would
ask next: the minimiser of the new cost on the model, near the best known point; its spread is the deviation of F that
the model gives itself there, to first order. To first order in a parameter theta of the cost the optimal value changes
by the partial derivative df/dtheta at (x*, y*), because F is stationary in x*; beyond it the cost is optimised again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pzos.base.checks import Faults, aligned
from pzos.base.threads import one_blas_thread
from pzos.base.types import Vector
from pzos.methods.default import suited
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task, Told, begin
from pzos.methods.trust_region.recalling import best_told
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.problem.leader import Leader

_ITERATIONS = 60
#: Of a parameter, for its derivative by differences of the known cost.
_STEP = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """The decision that is expected to be best, the cost expected there, and the deviation of that.

    ``known_x`` and ``known_value`` are the best of the answers there are: what is certain.
    """

    x: Vector
    value: float
    spread: float
    known_x: Vector
    known_value: float

    def __repr__(self) -> str:
        decision = np.array2string(self.x, precision=4, threshold=8)
        return aligned(
            [
                ("expected cost", f"{self.value:.6g} +- {self.spread:.2g}"),
                ("at", decision),
                ("known for certain", f"{self.known_value:.6g}"),
            ]
        )


@one_blas_thread()
def expected(task: Task) -> Expectation:
    """Return what the answers ``task.told`` lead one to expect of the task's cost."""
    known = task.known
    solver: Any = suited(known, CompositeTrustRegion(iterations=_ITERATIONS))
    best, values = best_told(task)
    x, model = solver.outlook(task, begin(solver, task))
    value, spread = _on_model(known.leader, model, x)
    certain = known.sign * float(values[best])
    if known.outcomes is None and known.sign * (value - certain) >= 0.0:
        x, value, spread = task.told[best][0], certain, 0.0
    return Expectation(x.copy(), value, spread, task.told[best][0].copy(), certain)


def _on_model(leader: Leader, model: ResponseModel, x: Vector) -> tuple[float, float]:
    """Return f on the model at x, and its deviation to first order in what the model does not know."""
    at = leader(x, model.clipped(x))
    if model.variances.size == 0:
        return at.value, float("inf")
    unit = float(np.maximum(model.variances_at(x), 0.0) @ (at.grad_y * at.grad_y))
    return at.value, float(np.sqrt(max(model.spread(x)[0], 0.0) * unit))


# ---- parameters of the cost ---------------------------------------------------------------------------------------


class Effect(NamedTuple):
    """What one parameter does to the best cost.

    ``slope`` is to first order, at the point of the result; ``below`` and ``above`` are what is expected when the
    parameter is lowered and raised by ``change``, the decision optimised again on the model.
    """

    name: str
    value: float
    slope: float
    change: float
    below: Expectation
    above: Expectation

    @property
    def reoptimised(self) -> float:
        """Return the slope between below and above, by which the best cost changes when the decision follows."""
        return (self.above.value - self.below.value) / (2.0 * self.change)


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """The effect of each parameter, by its name: ``sensitivity["price"].slope``."""

    effects: tuple[Effect, ...]

    def __getitem__(self, name: str) -> Effect:
        return next(effect for effect in self.effects if effect.name == name)

    def __repr__(self) -> str:
        rows = [("parameter", "first order, re-optimised; cost expected below .. above")]
        rows += [
            (
                f"{e.name} = {e.value:.4g} +- {e.change:.2g}",
                f"{e.slope:.4g}, {e.reoptimised:.4g}; {e.below.value:.6g} .. {e.above.value:.6g}",
            )
            for e in self.effects
        ]
        return aligned(rows)


def sensitivity(task: Task, names: Iterable[str] | None, change: float, at: Vector) -> Sensitivity:
    """Return what the parameters of the task's leader do to its best cost, found at ``at``."""
    leader = task.known.leader
    wanted = tuple(leader.parameters if names is None else names)
    faults = Faults("sensitivity")
    faults.check(bool(leader.parameters), "leader", leader.name, "a leader with parameters",
                 "make it with leader_from_functions(..., parameters={...}) or leader_from_jax")  # fmt: skip
    for name in wanted if leader.parameters else ():
        remedy = f"choose among {', '.join(leader.parameters)}"
        faults.check(name in leader.parameters, "parameters", name, "a parameter of the leader", remedy)
    faults.raise_if_any()
    y = _answer_at(task.told, at)
    return Sensitivity(tuple(_effect(task, name, change, at, y) for name in wanted))


def _effect(task: Task, name: str, change: float, x: Vector, y: Vector) -> Effect:
    leader, value = task.known.leader, task.known.leader.parameters[name]

    def cost(moved: float) -> float:
        return leader.with_parameters(**{name: value + moved}).value(x, y)

    def reoptimised(moved: float) -> Expectation:
        other = leader.with_parameters(**{name: value + moved})
        return expected(replace(task, known=replace(task.known, leader=other)))

    size = abs(value) or 1.0
    step = _STEP * size
    near, far = cost(step) - cost(-step), cost(2.0 * step) - cost(-2.0 * step)
    slope = (8.0 * near - far) / (12.0 * step)
    return Effect(name, value, slope, change * size, reoptimised(-change * size), reoptimised(change * size))


def _answer_at(told: Told, x: Vector) -> Vector:
    points: Sequence[Vector] = [point for point, _ in told]
    return told[int(np.argmin([float(np.abs(point - x).max()) for point in points]))][1]
