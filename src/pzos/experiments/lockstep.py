"""Runs in lockstep: those of one algorithm and one dimension go side by side, as the rows of the same arrays.

The solver is the one that everybody uses, on arrays with one more axis; a step of a dozen runs then costs little more
than that of one. Draws, products and sums are made row by row, so that a run has the bits it has alone in a
:class:`pzos.Study`, whatever runs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from pzos.base.errors import FollowerFailure, InvalidLeader, NotConverged
from pzos.base.keys import Keys, Role
from pzos.base.types import LeaderValue, Matrix, Vector
from pzos.experiments.descriptions import RunSpec
from pzos.games import RoutingGame, SecurityGame
from pzos.games.routing import Revenue, random_edges
from pzos.games.security import Defence
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import Task
from pzos.methods.steps import Diminishing
from pzos.problem.leader import Leader
from pzos.problem.problem import Problem
from pzos.problem.sets import Domain

#: An attacker who leaves a smaller part of the budget than this has spent it.
_SPENT = 1e-9


class RunOutcome(NamedTuple):
    """What is kept of a run: F(x_0), ..., F(x_T), |g_t|^2, and how often the constraints were active.

    A run that diverged, to where no equilibrium can be computed, has the worst F there is (infinite) from there on, and
    no gradients.
    """

    values: Vector
    gradient_norms_squared: Vector
    dimension: int
    projected_steps: int
    slack_answers: int


def execute(specs: Sequence[RunSpec]) -> list[RunOutcome]:
    """Run specs from nothing, in lockstep where they can be; each outcome is a pure function of its spec."""
    outcomes: dict[RunSpec, RunOutcome] = {}
    most = max(spec.variant.batch for spec in specs)
    drawn = {key: _directions(*key) for key in {(spec.seed, spec.steps, most, dimension_of(spec)) for spec in specs}}
    for (*_, steps, dimension), group in groupby(sorted(specs, key=_in_common), _in_common):
        rows = list(group)
        directions = np.stack([drawn[spec.seed, steps, most, dimension] for spec in rows], axis=2)
        outcomes |= zip(rows, _Lockstep(rows, directions).run(), strict=True)
    return [outcomes[spec] for spec in specs]


def _in_common(spec: RunSpec) -> tuple[Any, ...]:
    """Return what runs must have in common to go in lockstep: all but the instance and the radius."""
    variant = spec.variant
    alike = spec.family, variant.algorithm, variant.batch, variant.nonnegative, spec.step_scale
    return *alike, spec.steps, dimension_of(spec)


def dimension_of(spec: RunSpec) -> int:
    """Return the dimension of a run; that of a routing game is drawn."""
    return spec.targets if spec.family == "security" else _random_edges(spec.seed)


_random_edges = lru_cache(maxsize=4096)(random_edges)


def _directions(seed: int, steps: int, batch: int, dimension: int) -> Matrix:
    """Draw v_{t, q} of a run for every step t and every q."""
    keys = Keys(seed)
    return np.array([[keys.direction(t, q, dimension) for q in range(batch)] for t in range(steps)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn(Keys):
    """The random numbers of many runs, drawn before: directions by step, index and run."""

    drawn: Matrix

    def direction(self, step: int, index: int, dimension: int, role: Role = Role.DIRECTION) -> Vector:
        """Return v_{step, index} of every run as a row."""
        rows: Matrix = self.drawn[step, index]
        return rows


class _Rows(Leader):
    """The leader of many runs: its values are a column. Whether they are finite is looked at in the end, and once."""

    def __call__(self, x: Vector, y: Vector) -> LeaderValue:
        value, grad_x, grad_y = self.all_function(x, y)
        return LeaderValue(value[:, None], grad_x, grad_y)

    def value(self, x: Vector, y: Vector) -> Any:
        return self.value_function(x, y)[:, None]


class CountingDomain:
    """A set that counts for every run how many projections moved its point (the paper says: none)."""

    def __init__(self, inner: Domain, runs: int) -> None:
        self.inner = inner
        self.projected = np.zeros(runs, dtype=np.int64)

    def project(self, x: Vector) -> Vector:
        """Project rows, and count those that this moved."""
        projected = self.inner.project(x)
        if projected is not x:
            self.projected += (np.abs(projected - x) > 0.0).any(axis=1)  # not where x is NaN: the run is over
        return projected

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Ask the set."""
        return self.inner.contains(x, tolerance)

    def faults(self, dimension: int) -> list[str]:
        """Ask the set."""
        return self.inner.faults(dimension)


class _Lockstep:
    """Runs that differ in instance and radius alone, one per row."""

    def __init__(self, specs: Sequence[RunSpec], directions: Matrix) -> None:
        self.specs, self.count, self.steps = specs, len(specs), specs[0].steps
        self.games = [_game(spec) for spec in specs]
        problems = [_problem(spec, game) for spec, game in zip(specs, self.games, strict=True)]
        self.ends: dict[int, int] = {}  # by row: at which step a run diverged
        self.dimension = problems[0].x0.size
        self.domain = CountingDomain(problems[0].domain, self.count)
        self.leader = _leader(self.games)
        known = replace(
            problems[0].known(),
            leader=self.leader,
            domain=self.domain,
            x0=np.array([problem.x0 for problem in problems]),
        )
        self.task = Task(known, _Drawn(drawn=directions))
        # Where there is no budget nothing is left of it.
        self.spent = np.array([[getattr(game, "budget", -np.inf) * (1.0 - _SPENT)] for game in self.games])
        self.slack = np.zeros(self.count, dtype=np.int64)

    def run(self) -> list[RunOutcome]:
        """Take all steps, as a study would with monitoring."""
        solver, task = _solver(self.specs, self.dimension), self.task
        values, norms = np.empty((self.count, self.steps + 1)), np.empty((self.count, self.steps))
        state = solver.init(task)
        for t in range(self.steps):
            plan = solver.ask(task, state)
            answers = self._ask(t, plan.points if plan.centred else (*plan.points, state.x))
            after, outcome = solver.tell(task, state, plan, answers[: len(plan.points)])
            values[:, t, None] = outcome.value if plan.centred else self.leader.value(state.x, answers[-1])
            norms[:, t, None] = outcome.gradient_norm_squared
            state = after
        values[:, -1, None] = self.leader.value(state.x, *self._ask(self.steps, (state.x,)))
        self._end(values, norms)
        counts = zip(self.domain.projected.tolist(), self.slack.tolist(), strict=True)
        return [RunOutcome(values[row], norms[row], self.dimension, *both) for row, both in enumerate(counts)]

    def _ask(self, t: int, points: Sequence[Matrix]) -> list[Matrix]:
        """Return the answers to each of these points of all runs; NaN to one that has diverged."""
        asked = np.stack(points, axis=1)
        answers = np.full_like(asked, np.nan)
        for row, game in enumerate(self.games):
            if row not in self.ends:
                try:
                    answers[row] = game.response(asked[row])
                except Exception as error:
                    if t == 0 or not isinstance(error, NotConverged):
                        raise FollowerFailure(f"{self.specs[row].key}: step {t}: {error}") from error
                    self.ends[row] = t
        self.slack += (answers.sum(axis=-1) < self.spent).sum(axis=1)
        return [answers[:, at] for at in range(len(points))]

    def _end(self, values: Matrix, norms: Matrix) -> None:
        """Give the runs that diverged the worst F, and refuse any other that is not finite."""
        for row, t in self.ends.items():
            values[row, t:] = self.task.known.sign * np.inf
            norms[row, t:] = np.nan
        for row, t in np.argwhere(~np.isfinite(values)).tolist():
            if row not in self.ends:
                where = f"{self.specs[row].key}: step {t}"
                raise InvalidLeader(f"{where}: F = {values[row, t]}: expected a finite number; take a smaller step")


def _solver(specs: Sequence[RunSpec], dimension: int) -> PZOS | ZOS:
    """Return the solver with the paper's step: a/sqrt(t) on security games, a/|E| on routing games."""
    first = specs[0]
    step = Diminishing(first.step_scale) if first.family == "security" else first.step_scale / dimension
    kind = PZOS if first.variant.algorithm == "PZOS" else ZOS
    solver = kind(step=step, radius=first.variant.radius, batch=first.variant.batch)
    # A radius for each run: the solver's own check lets pass one number, which is what users have.
    object.__setattr__(solver, "radius", np.array([[spec.variant.radius] for spec in specs]))
    return solver


# ---- instances --------------------------------------------------------------------------------------------------


def _game(spec: RunSpec) -> SecurityGame | RoutingGame:
    if spec.family == "security":
        return SecurityGame.random(spec.seed, targets=spec.targets)
    return _routing_game(spec.seed)


@lru_cache(maxsize=16)
def _routing_game(seed: int) -> RoutingGame:
    """Return the instance of this seed; all runs on it share it."""
    return RoutingGame.random(seed)


def _problem(spec: RunSpec, game: SecurityGame | RoutingGame) -> Problem:
    return game.problem(nonnegative=spec.variant.nonnegative) if isinstance(game, RoutingGame) else game.problem()


def _leader(games: Sequence[SecurityGame | RoutingGame]) -> _Rows:
    """Return the leader of these games of one size."""
    defences = [game.defence() for game in games if isinstance(game, SecurityGame)]
    if defences:
        rows = Defence(*(np.array(data) for data in zip(*defences, strict=True)))
        return _Rows(rows.damage, rows.everything)
    revenue = Revenue()
    return _Rows(revenue.value, revenue.everything)
