"""How far rounding alone moves the points that a solver asks about.

Another processor computes the last digits otherwise. Most methods pass that on as it is; one that minimises a model of
past answers may make much of it, and where two choices are equally good the last digit decides between them. So "more
than rounding" has no fixed size. It is found out: the last steps are taken again with all answers, and all that the
leader is asked about, changed in the last digits, many times over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import AnySolver, Proposing, State, Task, begin
from pzos.problem.leader import Leader
from pzos.study.events import difference

#: What counts as the last digits where no larger difference was seen.
LAST_DIGITS = 1e-13
_TRIALS = 64
#: Rounding explains a difference if it was seen to make one at least this part as large.
WITHIN_REACH = 0.01
_LENGTHS = 6
#: How many steps are taken again at most: 1, 2, 4, ... in turn, because a choice may show long after it was made.
STEPS_AGAIN = 1 << (_LENGTHS - 1)
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Step(NamedTuple):
    """One step as it was taken: the state before it, what was asked and answered."""

    state: State
    plan: Plan
    answers: Answers


def shaken_points(solver: AnySolver, task: Task, steps: Sequence[Step], size: float) -> Iterator[tuple[Vector, ...]]:
    """Yield what ``solver`` would ask after these steps (none: at the start), for several changes of ``size``."""
    for trial in range(_TRIALS):
        shaky = _shaken_task(task, size, trial)
        again = steps[-(1 << trial % _LENGTHS) :]
        state = again[0].state if again else begin(solver, shaky)
        for _, taken, answers in again:
            plan = solver.ask(shaky, state)
            if len(plan.points) != len(taken.points):
                break  # one of these steps might already have been another
            told = [None if y is None else shaken(y, size, trial) for y in answers[: len(plan.points)]]
            state, _ = solver.tell(shaky, state, replace(plan, points=taken.points), told)
        else:
            plan = solver.ask(shaky, state)
        yield plan.points


def shaken_proposals(
    solver: Proposing, task: Task, taken: Sequence[Step], state: State, pending: Sequence[Plan], size: float
) -> Iterator[Vector]:
    """Yield where ``solver`` would ask next while ``pending`` are open, if the answers ``taken`` were changed so."""
    for trial in range(_TRIALS):
        shaky = _shaken_task(task, size, trial)
        again = taken[-(1 << trial % _LENGTHS) :]
        moved = again[0].state if again else state
        for _, plan, (answer,) in again:
            moved, _ = solver.take(shaky, moved, plan, None if answer is None else shaken(answer, size, trial))
        yield solver.propose(shaky, moved, pending).points[0]


def could_move(
    solver: AnySolver,
    task: Task,
    steps: Sequence[Step],
    size: float,
    points: Sequence[Vector],
    index: int,
    apart: float,
    scale: float,
) -> bool:
    """Tell whether changes of ``size`` in these steps move point ``index`` of those asked now nearly as far as that."""
    for others in shaken_points(solver, task, steps, size):
        if len(others) != len(points) or difference(others[index], points[index], scale) > WITHIN_REACH * apart:
            return True
    return False


def shaken(vector: Vector, size: float, trial: int) -> Vector:
    """Return ``vector`` with every entry changed by ``size``, up or down, relatively; zeros, which are exact, stay."""
    place = np.arange(vector.size, dtype=np.uint64) + np.uint64(trial)
    bits: npt.NDArray[np.uint64] = np.ascontiguousarray(vector).view(np.uint64) + place
    with np.errstate(over="ignore"):
        for shift in (29, 32):
            bits = (bits ^ (bits >> np.uint64(shift))) * _ODD
    up = (bits >> np.uint64(63)).astype(np.float64)
    changed: Vector = vector * (1.0 + size * (2.0 * up - 1.0))
    return changed


def standing_at(x: Vector, plan: Any, state: Any) -> tuple[Any, Any]:
    """Return a plan and a state whose iterate is ``x``, as far as they keep it in a field of that name."""
    if isinstance(state, tuple) and "x" in getattr(state, "_fields", ()):
        moved = state._replace(x=x)  # type: ignore[attr-defined]
    elif is_dataclass(state) and not isinstance(state, type) and "x" in {field.name for field in fields(state)}:
        moved = replace(state, x=x)
    else:
        return plan, state
    return replace(plan, x=x) if getattr(plan, "x", None) is state.x else plan, moved


def _shaken_task(task: Task, size: float, trial: int) -> Task:
    return replace(task, known=replace(task.known, leader=_shaken_leader(task.known.leader, size, trial)))


def _shaken_leader(leader: Leader, size: float, trial: int) -> Leader:
    def value(x: Vector, y: Vector) -> Any:
        return leader.value_function(shaken(x, size, trial), shaken(y, size, trial))

    def everything(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        return leader.all_function(shaken(x, size, trial), shaken(y, size, trial))

    return Leader(value, everything, leader.name)
