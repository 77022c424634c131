"""A problem: leader, followers, where the leader may move, where they start. A frozen bundle, no behaviour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, counted, instance_of, set_fields, shown
from pzos.base.columns import A_LINE, Columns, as_columns
from pzos.base.types import Sense, Vector, float_array
from pzos.problem.follower import A_FOLLOWER, Follower, as_follower, identity
from pzos.problem.grid import Grid, checked_grid
from pzos.problem.leader import Leader
from pzos.problem.outcomes import Outcomes, as_outcomes
from pzos.problem.sense import AnySense, noted_sense
from pzos.problem.sets import Domain, Whole, a_set

A_LEADER = instance_of(
    Leader,
    "a Leader",
    "wrap your cost with pzos.leader_from_jax(cost) or pzos.leader_from_functions(value, grad_x, grad_y)",
)
A_DOMAIN = a_set(
    "use e.g. pzos.Box(0, 1), Nonnegative(), Simplex(), Budget(), Ball(), Polyhedron(A, b) or an Intersection of sets"
)


NAMELESS = Columns()


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the leader knows: everything about a problem except the followers. A study sees only this."""

    leader: Leader
    x0: Vector
    domain: Domain
    sense: Sense
    name: str
    structure: tuple[Any, ...] = ()
    follower: dict[str, Any] | None = None  # what tells the followers from others: not they themselves
    outcomes: Outcomes | None = None
    grid: Grid | None = None
    decisions: Columns = NAMELESS
    responses: Columns = NAMELESS
    unit: str = ""

    @property
    def sign(self) -> float:
        """Return +1 to minimise and -1 to maximise: sign * F is what goes down."""
        return 1.0 if self.sense == "min" else -1.0

    @property
    def dimension(self) -> int:
        """Return d_x."""
        return int(self.x0.size)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Problem:
    """Minimise (or maximise) F(x) = f(x, y*(x)) over x in ``domain``, starting at ``x0`` (eq. (1) of the paper).

    ``leader`` is known and smooth, ``follower`` can only be queried. ``structure`` declares what is known about
    the followers; it is used as a prior and may be wrong. A durable study is told apart from one with other followers
    by ``follower_name``; by default a name is derived from the follower's own, its code and what it closes over.
    ``outcomes`` are constraints g(x, y*(x)) <= 0 on what the followers do, known like the cost. ``grid`` keeps every
    query after x0 on multiples of a step, one for all entries of x or one each, 0 where x is continuous.
    ``decisions`` and ``responses`` name the entries of x and y for people, with units and digits: a list of names, or
    :class:`pzos.Columns`; ``unit`` is that of F. No number depends on them.
    """

    leader: Leader
    follower: Follower
    x0: Vector
    domain: Domain
    sense: Sense
    name: str
    structure: tuple[Any, ...]
    follower_name: str
    outcomes: Outcomes | None
    grid: Grid | None
    decisions: Columns
    responses: Columns
    unit: str

    def __init__(
        self,
        leader: Leader,
        follower: Follower | Callable[..., Any],
        x0: npt.ArrayLike,
        domain: Domain | None = None,
        sense: AnySense = "min",
        name: str = "",
        structure: Iterable[Any] = (),
        follower_name: str = "",
        outcomes: Outcomes | Iterable[Outcomes] | None = None,
        grid: npt.ArrayLike | None = None,
        decisions: Columns | Sequence[Any] | None = None,
        responses: Columns | Sequence[Any] | None = None,
        unit: str = "",
    ) -> None:
        faults = Faults("Problem")
        domain = Whole() if domain is None else domain
        A_LEADER.note(faults, "leader", leader)
        A_FOLLOWER.note(faults, "follower", follower)
        goal = noted_sense(faults, sense)
        instance_of(Iterable, "a sequence", "put it into a list").note(faults, "structure", structure)
        instance_of(str, "text", "say what they are").note(faults, "follower_name", follower_name)
        A_LINE.note(faults, "unit", unit)
        start = _checked_start(faults, x0)
        if A_DOMAIN.note(faults, "domain", domain) and start is not None:
            _check_membership(faults, domain, start)
        constraints = as_outcomes(faults, outcomes)
        on_grid = checked_grid(faults, grid, start, domain)
        named = as_columns(faults, "decisions", decisions, None if start is None else start.size)
        answers = as_columns(faults, "responses", responses)
        faults.raise_if_any()
        set_fields(self, leader=leader, follower=as_follower(follower), x0=start, domain=domain)
        set_fields(self, sense=goal, name=str(name), structure=tuple(structure), follower_name=follower_name)
        set_fields(self, outcomes=constraints, grid=on_grid, decisions=named, responses=answers, unit=unit)

    def with_leader(self, leader: Leader, *, sense: AnySense | None = None, name: str | None = None) -> Problem:
        """Return the same followers, set and start under another cost; their answers stay true (``answers=``)."""
        return Problem(
            leader,
            self.follower,
            self.x0,
            self.domain,
            self.sense if sense is None else sense,
            self.name if name is None else name,
            self.structure,
            self.follower_name,
            self.outcomes,
            None if self.grid is None else self.grid.steps,
            self.decisions,
            self.responses,
            self.unit,
        )

    def known(self) -> Known:
        """Return the problem without its followers, as a study sees it."""
        follower = identity(self.follower, self.follower_name)
        given = self.leader, self.x0, self.domain, self.sense, self.name, self.structure
        return Known(*given, follower, self.outcomes, self.grid, self.decisions, self.responses, self.unit)

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        kept = f" under {counted(len(self.outcomes), 'constraint')} on the outcome" if self.outcomes is not None else ""
        size, where = counted(self.x0.size, "decision"), type(self.domain).__name__
        return f"Problem{title}: {self.sense} over {size} in {where}{kept}"


def _checked_start(faults: Faults, x0: Any) -> Vector | None:
    try:
        start = np.atleast_1d(float_array(x0))
    except (TypeError, ValueError):
        faults.check(False, "x0", x0, "a vector of numbers", "try np.zeros(5)")
        return None
    one_dimensional = faults.check(start.ndim == 1 and start.size > 0, "x0", x0, "a vector of numbers",
                                   "flatten it; x0 gives the dimension of x")  # fmt: skip
    finite = bool(np.isfinite(start).all())
    if not finite:
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(start))[0])
        faults.check(False, f"x0{list(where)}", float(start[where]), "finite numbers", "start from a finite point")
    if not (one_dimensional and finite):
        return None
    start.flags.writeable = False
    return start


def _check_membership(faults: Faults, domain: Domain, start: Vector) -> None:
    unfit = domain.faults(start.size)
    faults.messages += unfit
    if not unfit and not domain.contains(start, 1e-9):
        faults.check(False, "x0", start, f"a point of the domain {shown(domain)}",
                     f"start inside, e.g. from domain.project(x0) = {shown(domain.project(start))}")  # fmt: skip


A_PROBLEM = instance_of(Problem, "a pzos.Problem", "build one with pzos.Problem(leader=..., follower=..., x0=...)")


def require_problem(where: str, problem: Any) -> Problem:
    """Return ``problem`` if it is one; else say how to make one."""
    A_PROBLEM.require(where, "problem", problem)
    checked_problem: Problem = problem
    return checked_problem
