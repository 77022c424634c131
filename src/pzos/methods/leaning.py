"""Answers that may no longer be true, of an older version of the followers or from before a change: they bind nothing.

The model of the old answers, M_old, is where the search starts from; what is modelled anew is only the rest

    z*(x) = y*(x) - M_old(x),        f'(x, z) = f(x, M_old(x) + z)

which is the same problem: F is the same function of x, and f' is known with exact gradients. Where the followers have
not changed z* is nearly zero and the old model leads to the optimum; where they have, the rest is learned as ever.
The first query is asked at the point that was best, and every answer says how far the old ones are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pzos.base.errors import InvalidInput
from pzos.base.threads import one_blas_thread
from pzos.base.types import LeaderValue, Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import AnySolver, Foresight, Outcome, Stop, Task, Told
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import RegionState, models
from pzos.problem.leader import Leader

#: Old answers that are off by more than this share of their spread disagree.
_DISAGREE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class LeaningState:
    """The trust region on the rest, the model of the old answers, how many they were and how much they vary."""

    rest: RegionState
    old: ResponseModel
    count: int
    spread: float

    @property
    def x(self) -> Vector:
        """Return the centre."""
        return self.rest.x

    @property
    def value(self) -> float:
        """Return F there."""
        return self.rest.value


@dataclass(frozen=True, slots=True)
class Leaning:
    """The composite trust region ``within`` on what the old answers leave unexplained; a study takes it by itself."""

    within: CompositeTrustRegion

    @one_blas_thread()
    def init(self, task: Task) -> LeaningState:
        """Start where the old answers say, with those that are trusted known."""
        past = replace(task, told=task.old, old=())
        began = self.within.begun(past)
        (model,) = models(past, began, self.within.points, (began.contest.winner,), began.priors).values()
        spread = float(np.sqrt(np.mean(np.var(np.array([y for _, y in task.old]), axis=0))))
        new = _on_rest(task, model)
        rest = self.within.begun(new) if task.told else replace(self.within.init(new), x=began.x)
        return LeaningState(rest, model, len(task.old), spread)

    def begun(self, task: Task) -> LeaningState:
        """Start the same way: what is trusted is in the task."""
        return self.init(task)

    def ask(self, task: Task, state: LeaningState) -> Plan:
        """Plan what the trust region plans."""
        return self.within.ask(_on_rest(task, state.old), state.rest)

    def tell(self, task: Task, state: LeaningState, plan: Plan, answers: Answers) -> tuple[LeaningState, Outcome]:
        """Hand over what the old model leaves of the answers."""
        left = [None if y is None else _rest(state.old, x, y) for x, y in zip(plan.points, answers, strict=True)]
        rest, outcome = self.within.tell(_on_rest(task, state.old), state.rest, plan, left)
        return replace(state, rest=rest), outcome

    def propose(self, task: Task, state: LeaningState, pending: Sequence[Plan]) -> Plan:
        """Plan one query more while others are open."""
        return self.within.propose(_on_rest(task, state.old), state.rest, pending)

    def take(self, task: Task, state: LeaningState, plan: Plan, answer: Vector | None) -> tuple[LeaningState, Outcome]:
        """Hand over what the old model leaves of an answer, in any order."""
        left = None if answer is None else _rest(state.old, plan.points[0], answer)
        rest, outcome = self.within.take(_on_rest(task, state.old), state.rest, plan, left)
        return replace(state, rest=rest), outcome

    def stop(self, task: Task, state: LeaningState) -> Stop | None:
        """Stop when the trust region does."""
        return self.within.stop(_on_rest(task, state.old), state.rest)

    def informed(self, task: Task, state: LeaningState, answers: Told) -> LeaningState:
        """Take answers from elsewhere into the history."""
        left = [(x, _rest(state.old, x, y)) for x, y in answers]
        return replace(state, rest=self.within.informed(_on_rest(task, state.old), state.rest, left))

    def foresight(self, task: Task, state: LeaningState) -> Foresight | None:
        """Return what both models together predict of J' grad_y f."""
        of_rest = self.within.foresight(_on_rest(task, state.old), state.rest)
        if of_rest is None:
            return None

        @one_blas_thread()
        def predicted(x: Vector, at: LeaderValue) -> Vector:
            total: Vector = of_rest(x, at) + state.old.response_and_pull(x)[1](at.grad_y)
            return total

        return predicted

    def point_to_return(self, task: Task, state: LeaningState) -> tuple[Vector, float] | None:
        """Return what the trust region returns."""
        return self.within.point_to_return(_on_rest(task, state.old), state.rest)

    def certifying_radius(self, state: LeaningState) -> float | None:
        """Return on which scale to certify a point."""
        return self.within.certifying_radius(state.rest)

    def findings(self, state: LeaningState) -> str:
        """Say what was found out, and whether the old answers disagree with the new ones."""
        if state.rest.history is None:
            return ""
        off = float(np.sqrt(np.mean(state.rest.history.answers**2))) / max(state.spread, 1e-300)
        agree = "disagree with" if off > _DISAGREE else "agree with"
        said = f"{state.count} older answers only shaped the prior; they {agree} the new ones (off by {off:.1%} of how "
        return f"{said}much they vary). {self.within.findings(state.rest)}"


def _rest(old: ResponseModel, x: Vector, y: Vector) -> Vector:
    rest: Vector = y - old.clipped(x)
    return rest


def _on_rest(task: Task, old: ResponseModel) -> Task:
    """Return the task on z = y - M_old(x); what was declared of y says nothing of z."""
    leader = task.known.leader

    def value(x: Vector, z: Vector) -> float:
        return leader.value(x, old.clipped(x) + z)

    def everything(x: Vector, z: Vector) -> tuple[float, Vector, Vector]:
        y, pull = old.response_and_pull(x)
        at = leader(x, y + z)
        return at.value, at.grad_x + pull(at.grad_y), at.grad_y

    known = replace(task.known, leader=Leader(value, everything, leader.name), structure=())
    return replace(task, known=known, told=tuple((x, _rest(old, x, y)) for x, y in task.told), old=())


def prepared(solver: AnySolver, task: Task) -> tuple[AnySolver, Task]:
    """Return the solver and the task as they take answers that may no longer be true; both as they are without any.

    A memory of :class:`pzos.MemoryPZOS` is only a prediction, however old: it takes all alike.
    """
    if not task.old:
        return solver, task
    if isinstance(solver, CompositeTrustRegion):
        return Leaning(solver), task
    if isinstance(solver, MemoryPZOS | SecantPZOS):
        return solver, replace(task, told=(*task.old, *task.told), old=())
    raise InvalidInput(
        f"answers: {len(task.old)} of them may no longer be true and can only shape the prior, which "
        f"{type(solver).__name__} does not have: expected the default method, MemoryPZOS or SecantPZOS; leave them out"
    )
