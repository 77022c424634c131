"""What every solver is: a frozen configuration and four pure methods, driven by a study.

A solver never sees the follower. ``ask`` plans points, the study has them answered in any order by anyone, and
``tell`` reads the answers by index. All state is a value; randomness comes by address from ``task.keys``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from pzos.base.keys import Keys
from pzos.base.types import Vector
from pzos.methods.estimators import Answers, Plan
from pzos.problem.problem import Known

NO_EXTRAS: Mapping[str, float] = MappingProxyType({})


class Stop(Enum):
    """Why a run ended; the value is the message people read."""

    STEPS = "all steps were taken"
    QUERIES = "the query budget is spent"
    SECONDS = "the wall time is up"
    TARGET = "the target value was reached"
    STATIONARY = "the point was certified stationary"
    CONVERGED = "the method can improve no further"
    FAILURES = "too many queries failed"
    INTERRUPTED = "interrupted by the user"
    RUNNING = "not finished"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a solver is given to work on: the known part of the problem, and random numbers by address."""

    known: Known
    keys: Keys


@runtime_checkable
class State(Protocol):
    """The part of a solver's state that the study reads."""

    @property
    def x(self) -> Vector:
        """Return the current iterate: the point the solver would return if it stopped now."""
        ...

    @property
    def value(self) -> float:
        """Return F at ``x`` if some answer already told it, else NaN."""
        ...


class Outcome(NamedTuple):
    """What one step did: the point it speaks of, F there (NaN if unknown), and the size of the move."""

    x: Vector
    value: float
    gradient_norm_squared: float
    step_size: float
    extras: Mapping[str, float] = NO_EXTRAS


S = TypeVar("S", bound=State)


class Solver(Protocol[S]):
    """The four pure methods. Line searches, restarts and the like are phases in the state, not loops."""

    def init(self, task: Task) -> S:
        """Return the state at x0, before any query."""
        ...

    def ask(self, task: Task, state: S) -> Plan:
        """Plan the next batch of queries; called again with the same state it gives the same plan."""
        ...

    def tell(self, task: Task, state: S, plan: Plan, answers: Answers) -> tuple[S, Outcome]:
        """Read the answers (by index, None where the follower failed) and return the next state."""
        ...

    def stop(self, task: Task, state: S) -> Stop | None:
        """Return a reason to stop that only the solver can know, or None."""
        ...


AnySolver = Solver[Any]
