"""Solvers that ask one batch at x0 and stop, and the one door to them: what every certificate and probe here is.

Being solvers, they are driven by the same study and oracle as any run: parallel, durable, counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults, frozen_array
from pzos.base.errors import FollowerFailure
from pzos.base.types import Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import Outcome, Stop, Task
from pzos.problem.problem import Known, Problem, require_problem
from pzos.study.run import drive
from pzos.study.study import Study

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

    def multipliers(self, task: Task, state: BatchState[R], x: Vector, values: Vector) -> Vector | None:
        """Know none: what a batch says of constraints is in its report."""
        return None

    def stop(self, task: Task, state: BatchState[R]) -> Stop | None:
        """Stop once the batch is answered."""
        return Stop.STEPS if state.asked else None


class Asked(NamedTuple, Generic[R]):
    """What became of a batch: the report (None if too few answers came) and what was answered for it."""

    report: R | None
    queries: int
    failures: int
    interrupted: bool = False


def ask_once(
    where: str,
    known: Known,
    solver: OneBatch[R],
    oracle: Oracle | None,
    x: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = False,
) -> Asked[R]:
    """Have ``solver`` ask its batch at ``x`` (x0 if None), by a study that ``path`` keeps.

    Without an oracle nothing is asked: the report is rebuilt from what the file at ``path`` holds.
    """
    make: Callable[..., Study] = Study if path is None else partial(Study.open, path, read_only=oracle is None)
    with make(known_at(where, known, x), solver, seed=seed, steps=1, monitor=False) as study:
        if oracle is not None:
            drive(study, oracle, progress=progress)
        report = cast("BatchState[R]", study.state).report
        return Asked(report, study.queries, study.failures, study.stop is Stop.INTERRUPTED)


def report_on(
    where: str,
    problem: Problem,
    solver: OneBatch[R],
    x: npt.ArrayLike | None,
    *,
    seed: int,
    executor: Executor | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = False,
) -> R:
    """Have the followers of ``problem`` answer the batch and return its report; an error if they failed too often."""
    require_problem(where, problem)
    oracle = Oracle(problem.follower, seed=seed, executor=executor)
    asked = ask_once(where, problem.known(), solver, oracle, x, seed=seed, path=path, progress=progress)
    if asked.interrupted:
        raise KeyboardInterrupt(f"{where}: after {asked.queries} queries")
    if asked.report is None:
        raise FollowerFailure(
            f"{where}: {asked.failures} of {asked.queries} queries failed: too few answers are left; "
            "look at the follower at this x, or ask for more queries"
        )
    return asked.report


def all_equal(answers: Answers) -> bool:
    """Tell whether all answers of a batch are the same: the followers did not move."""
    told = [y for y in answers if y is not None]
    return all(np.array_equal(y, told[0]) for y in told)


def known_at(where: str, known: Known, x: npt.ArrayLike | None) -> Known:
    """Return the known part of a problem with x in the place of x0."""
    if x is None:
        return known
    faults = Faults(where)
    array = frozen_array(faults, "x", x)
    if array is None:
        raise faults.error()
    point = np.atleast_1d(array)
    if faults.check(point.shape == known.x0.shape, "x", point, f"{known.dimension} numbers, as x0", "check it"):
        faults.check(bool(np.isfinite(point).all()), "x", point, "finite numbers", "check the point")
    faults.raise_if_any()
    return replace(known, x0=point)
