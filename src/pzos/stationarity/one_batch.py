"""Solvers that ask one batch at x0 and stop: what every certificate and every probe of this room is.

Being solvers, they are driven by the same study and oracle as any run: parallel, durable, counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.errors import FollowerFailure
from pzos.base.types import Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import Outcome, Stop, Task
from pzos.problem.problem import Known, Problem, require_problem

if TYPE_CHECKING:
    from concurrent.futures import Executor

R = TypeVar("R")
_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class BatchState(Generic[R]):
    """The point looked at and, once the batch is answered, the report (None if too many queries failed)."""

    x: Vector
    value: float = _UNKNOWN
    asked: bool = False
    report: R | None = None


class OneBatch(Generic[R]):
    """The four methods of a solver that asks once; a subclass gives ``ask`` and ``read``."""

    __slots__ = ()

    def init(self, task: Task) -> BatchState[R]:
        """Stand at x0."""
        return BatchState(task.known.x0)

    def ask(self, task: Task, state: BatchState[R]) -> Plan:
        """Plan the one batch; its first point is x itself."""
        raise NotImplementedError

    def read(self, known: Known, plan: Plan, answers: Answers) -> R | None:
        """Turn the answers into the report; None if they do not suffice."""
        raise NotImplementedError

    def tell(self, task: Task, state: BatchState[R], plan: Plan, answers: Answers) -> tuple[BatchState[R], Outcome]:
        """Read the batch."""
        centre = answers[0]
        value = _UNKNOWN if centre is None else task.known.leader.value(state.x, centre)
        report = self.read(task.known, plan, answers)
        return BatchState(state.x, value, True, report), Outcome(state.x, value, _UNKNOWN, 0.0)

    def stop(self, task: Task, state: BatchState[R]) -> Stop | None:
        """Stop once the batch is answered."""
        return Stop.STEPS if state.asked else None


def ask_once(
    where: str,
    problem: Problem,
    solver: OneBatch[R],
    x: npt.ArrayLike | None,
    *,
    seed: int,
    executor: Executor | None,
) -> R:
    """Drive ``solver`` at ``x`` (x0 if None) by a study and an oracle, and return its report."""
    from pzos.answers.oracle import Oracle
    from pzos.study.run import drive
    from pzos.study.study import Study

    require_problem(where, problem)
    known = known_at(where, problem.known(), x)
    study = Study(known, solver, seed=seed, steps=1, monitor=False)
    drive(study, Oracle(problem.follower, seed=seed, executor=executor), progress=False)
    state: Any = study.state
    if state.report is None:
        raise FollowerFailure(
            f"{where}: {study.failures} of {study.queries} queries failed: too few answers are left; "
            "look at the follower at this x, or ask for more queries"
        )
    report: R = state.report
    return report


def known_at(where: str, known: Known, x: npt.ArrayLike | None) -> Known:
    """Return the known part of a problem with x in the place of x0."""
    if x is None:
        return known
    point = np.atleast_1d(np.array(x, dtype=np.float64))
    faults = Faults(where)
    if faults.check(point.shape == known.x0.shape, "x", point, f"{known.dimension} numbers, as x0", "check it"):
        faults.check(bool(np.isfinite(point).all()), "x", point, "finite numbers", "check the point")
    faults.raise_if_any()
    point.flags.writeable = False
    return replace(known, x0=point)
