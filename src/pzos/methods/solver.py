"""What every solver is: a frozen configuration and four pure methods, driven by a study.

A solver never sees the follower. ``ask`` plans points, the study has them answered in any order by anyone, and
``tell`` reads the answers by index. All state is a value; randomness comes by address from ``task.keys``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from pzos.base.checks import Must
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import LeaderValue, Vector
from pzos.methods.estimators import Answers, Plan
from pzos.problem.problem import Known

#: (x, f and its partial gradients there) -> a prediction of J' grad_y f, made before any direction is drawn.
Foresight = Callable[[Vector, LeaderValue], Vector]
#: Pairs of x and y*(x).
Told = Sequence[tuple[Vector, Vector]]
NO_EXTRAS: Mapping[str, float] = MappingProxyType({})


class Stop(Enum):
    """Why a run ended; the value is the message people read."""

    STEPS = "all steps were taken"
    QUERIES = "the query budget is spent"
    SECONDS = "the wall time is up"
    TARGET = "the target value was reached"
    STATIONARY = "the point was certified stationary"
    CONVERGED = "the method can improve no further"
    UNMOVED = "the answers did not move, however far the method looked"
    INFEASIBLE = "infeasible as far as asked"
    FAILURES = "too many queries failed"
    CALLBACK = "the callback ended it"
    INTERRUPTED = "interrupted by the user"
    RUNNING = "not finished"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a solver is given to work on: the known part of the problem, and random numbers by address.

    ``told`` are pairs of x and y*(x) that were known before the first query; those of ``old`` may no longer be true.
    """

    known: Known
    keys: Keys
    told: Told = ()
    old: Told = ()


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


def _is_solver(value: Any) -> bool:
    methods = ("init", "ask", "tell", "stop")
    return not isinstance(value, type) and all(callable(getattr(value, method, None)) for method in methods)


#: What an argument that takes a solver must be.
SOLVER = Must(_is_solver, "a solver", "try pzos.PZOS(step=0.05, radius=0.1)")


# ---- what a solver may offer besides; whoever wants it asks with isinstance(solver, ...) ------------------------


@runtime_checkable
class Foreseeing(Protocol):
    """A solver whose memory foresees how the followers react."""

    def foresight(self, task: Task, state: Any) -> Foresight | None:
        """Return what a certificate may start from, or None before anything is learned.

        The certificate then measures only what the memory got wrong, and stays valid however wrong that is.
        """
        ...


@runtime_checkable
class Proposing(Protocol):
    """A solver that can be asked for one more query while others are open, and be told answers in any order."""

    def propose(self, task: Task, state: Any, pending: Sequence[Plan]) -> Plan:
        """Plan one query, given those that are open: a pure function of all three."""
        ...

    def take(self, task: Task, state: Any, plan: Plan, answer: Vector | None) -> tuple[Any, Outcome]:
        """Read the answer to one of them (None where the follower failed) and return the next state."""
        ...


@runtime_checkable
class Certifiable(Protocol):
    """A solver that knows on which scale to certify the point it ended in."""

    def certifying_radius(self, state: Any) -> float | None:
        """Return a radius small against the scale of x and large against noise; None before any answer."""
        ...


@runtime_checkable
class Informed(Protocol):
    """A solver that learns from answers at points it did not ask about."""

    def informed(self, task: Task, state: Any, answers: Told) -> Any:
        """Return the state with these pairs of x and y*(x) taken into its memory."""
        ...


@runtime_checkable
class Reusing(Protocol):
    """A solver that can begin with answers that were known before."""

    def begun(self, task: Task) -> Any:
        """Return the state before any query, with the pairs ``task.told`` in its memory."""
        ...


def begin(solver: AnySolver, task: Task) -> Any:
    """Return the state before any query; InvalidInput if there are answers that the solver cannot use."""
    if not task.told and not task.old:
        return solver.init(task)
    if not isinstance(solver, Reusing):
        raise InvalidInput(
            f"answers: {type(solver).__name__} asks afresh at every step and cannot use {len(task.told)} answers known "
            "before: expected a solver that remembers; leave the solver out, use MemoryPZOS or SecantPZOS, or leave "
            "the answers out"
        )
    return solver.begun(task)


@runtime_checkable
class Returning(Protocol):
    """A solver that may search around another point than the best one it was told of."""

    def point_to_return(self, task: Task, state: Any) -> tuple[Vector, float] | None:
        """Return the point to return and F there; None where it is that of the state."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """A solver that can say what it found out about the followers."""

    def findings(self, state: Any) -> str:
        """Return it in plain words, empty before anything was found."""
        ...


@runtime_checkable
class Certifying(Protocol):
    """A solver that certifies its own points."""

    def certificate(self, state: Any) -> Any:
        """Return the latest certificate, or None."""
        ...


@runtime_checkable
class Constrained(Protocol):
    """A solver that takes outcome constraints g(x, y*(x)) <= 0 into account."""

    def multipliers(self, task: Task, state: Any, x: Vector, values: Vector) -> Vector | None:
        """Return the multiplier of each constraint at x, where g was told to be ``values``; None if nothing is known.

        A multiplier says by how much F would improve per unit of room in its g: never negative, whatever the sense.
        """
        ...


@runtime_checkable
class KeepingGrid(Protocol):
    """A solver every query of which, after x0, lies on the grid of the problem."""

    keeps_grid: ClassVar[bool]


def foreseen(solver: AnySolver, task: Task, state: Any) -> Foresight | None:
    """Return what ``solver`` learned, as the prediction of J' grad_y f that a certificate may start from.

    Pass it as ``foresee`` to :func:`pzos.stationarity.certify`. None for a solver that remembers no answers.
    """
    return solver.foresight(task, state) if isinstance(solver, Foreseeing) else None


def explained(solver: AnySolver, state: Any) -> str:
    """Return what ``solver`` found out about the followers, in plain words; empty if it cannot tell."""
    return solver.findings(state) if isinstance(solver, Explaining) else ""
