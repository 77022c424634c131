"""Outcome constraints for the methods of the paper: an exact penalty, its largest violation rounded off.

    phi(x, y) = f(x, y) +- weight w log(1 + sum_k exp(g_k(x, y)/w)),   plus to minimise, minus to maximise

phi is a known smooth function of x and y like f itself, and its partial gradients are exact:

    grad_y phi = grad_y f +- sum_k lambda_k dg_k/dy,   lambda_k = weight exp(g_k/w) / (1 + sum_j exp(g_j/w)),

so the probes that estimate J' grad_y f estimate J' (grad_y f +- sum_k lambda_k dg_k/dy) at no further query.

*Proved*: every claim of the paper about PZOS and ZOS holds word for word, with phi in the place of f: it is the same
theorem for another leader (whose constants grow with weight and weight/w). *Not proved*: that a stationary point of phi
keeps the constraints. The penalty is exact only if ``weight`` exceeds the sum of the multipliers of the problem, and
even then the rounding leaves a violation of up to w log(1 + number of constraints). Violations are measured in the
units of g: scale g so that 1 is a notable one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pzos.base.checks import Must, check_fields, checked, positive
from pzos.base.types import Purpose, Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver, Foresight, Outcome, State, Stop, Task, begin
from pzos.problem.leader import Leader
from pzos.problem.outcomes import Outcomes

#: The methods that see the leader through its value and gradients alone.
PENALISED = (PZOS, ZOS, MemoryPZOS, SecantPZOS)
_METHOD = Must(
    lambda solver: isinstance(solver, PENALISED), "PZOS, ZOS, MemoryPZOS or SecantPZOS", "try PZOS(step=0.05)"
)


@dataclass(frozen=True, slots=True)
class ExactPenalty:
    """A method of the paper at work on f plus ``weight`` times the largest violation, rounded off over ``width``.

    See the module for what is proved and what is not.
    """

    solver: AnySolver = checked(_METHOD)
    weight: float = checked(positive("try weight=10.0"), default=10.0)
    width: float = checked(positive("try width=0.01"), default=0.01)

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, task: Task) -> State:
        """Start as the method does."""
        return self.solver.init(self._penalised(task))  # type: ignore[no-any-return]

    def begun(self, task: Task) -> State:
        """Start with the answers known before, if the method can use them."""
        return begin(self.solver, self._penalised(task))  # type: ignore[no-any-return]

    def ask(self, task: Task, state: Any) -> Plan:
        """Plan what the method plans."""
        return self.solver.ask(self._penalised(task), state)

    def tell(self, task: Task, state: Any, plan: Plan, answers: Answers) -> tuple[State, Outcome]:
        """Take the step of the method on the penalised cost; what is reported is F itself."""
        moved, outcome = self.solver.tell(self._penalised(task), state, plan, answers)
        at_iterate = answers[0] if plan.purposes[0] is Purpose.ITERATE else None
        if outcome.value == outcome.value and at_iterate is not None:
            outcome = outcome._replace(value=task.known.leader.value(outcome.x, at_iterate))
        return moved, outcome

    def stop(self, task: Task, state: Any) -> Stop | None:
        """Stop when the method does."""
        return self.solver.stop(task, state)

    def foresight(self, task: Task, state: Any) -> Foresight | None:
        """Return what the memory of the method predicts, for a certificate."""
        solver = self.solver
        return solver.foresight(task, state) if isinstance(solver, MemoryPZOS | SecantPZOS) else None

    def multipliers(self, task: Task, state: Any, x: Vector, values: Vector) -> Vector | None:
        """Return the weights with which the penalty counts the constraints at x."""
        return self.weight * _shares(values, self.width)[1]

    def _penalised(self, task: Task) -> Task:
        known = task.known
        if known.outcomes is None:
            return task
        leader = penalised(known.leader, known.outcomes, known.sign * self.weight, self.width)
        return replace(task, known=replace(known, leader=leader, outcomes=None))


def penalised(leader: Leader, outcomes: Outcomes, weight: float, width: float) -> Leader:
    """Return f + weight w log(1 + sum_k exp(g_k/w)) as a leader."""

    def value(x: Vector, y: Vector) -> float:
        return leader.value(x, y) + weight * _shares(outcomes.values(x, y), width)[0]

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = leader(x, y)
        violation, shares = _shares(outcomes.values(x, y), width)
        grad_x, grad_y = outcomes.pull(x, y, weight * shares)
        return at.value + weight * violation, at.grad_x + grad_x, at.grad_y + grad_y

    return Leader(value, everything, f"{leader.name}, penalised")


def _shares(values: Vector, width: float) -> tuple[float, Vector]:
    """Return the rounded-off largest violation and its derivative in each constraint."""
    top = max(float(values.max()), 0.0)
    terms = np.exp((values - top) / width)
    total = float(np.exp(-top / width) + terms.sum())
    return top + width * float(np.log(total)), terms / total
