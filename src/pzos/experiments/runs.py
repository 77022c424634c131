"""The runs of an experiment: one run as a pure function of its spec, many over processes, and the file that keeps them.

No finished run is ever computed twice: a killed reproduction goes on where it was.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

import pzos
from pzos.answers.oracle import abandon
from pzos.answers.workers import Workers
from pzos.base.errors import InvalidInput
from pzos.base.types import Vector
from pzos.experiments.descriptions import RunSpec
from pzos.games import RoutingGame, SecurityGame
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Diminishing
from pzos.problem.follower import Follower
from pzos.problem.problem import Problem
from pzos.problem.sets import Domain, Whole
from pzos.solving import solve

_FORMAT = "pzos experiment runs 1"
_LITTLE = np.dtype("<f8")


class RunOutcome(NamedTuple):
    """What is kept of a run: F(x_0), ..., F(x_T), |g_t|^2, and how often the constraints were active."""

    values: Vector
    gradient_norms_squared: Vector
    dimension: int
    projected_steps: int
    slack_answers: int


# ---- one run ----------------------------------------------------------------------------------------------------


def execute(spec: RunSpec) -> RunOutcome:
    """Run one spec from nothing; a pure function of the spec."""
    problem, budget = _problem(spec)
    domain = CountingDomain(problem.domain)
    follower = WatchedFollower(problem.follower, budget)
    watched = Problem(problem.leader, follower, problem.x0, domain, problem.sense, problem.name)
    result = solve(watched, _solver(spec, problem.x0.size), steps=spec.steps, seed=spec.seed, progress=False)
    norms = result.trace["gradient_norm_squared"][: spec.steps]
    return RunOutcome(result.trace["value"], norms, int(problem.x0.size), domain.projected, follower.slack)


def _solver(spec: RunSpec, dimension: int) -> AnySolver:
    """Return the solver with the paper's step: a/sqrt(t) on security games, a/|E| on routing games."""
    step = Diminishing(spec.step_scale) if spec.family == "security" else spec.step_scale / dimension
    kind = PZOS if spec.variant.algorithm == "PZOS" else ZOS
    return kind(step=step, radius=spec.variant.radius, batch=spec.variant.batch)


def _problem(spec: RunSpec) -> tuple[Problem, float]:
    """Return the problem and the attacker's budget (infinite where there is none)."""
    if spec.family == "security":
        game = SecurityGame.random(spec.seed, targets=spec.targets)
        return game.problem(), game.budget
    return _routing_game(spec.seed).problem(nonnegative=spec.variant.nonnegative), np.inf


@lru_cache(maxsize=4)
def _routing_game(seed: int) -> RoutingGame:
    """Return the instance of this seed; consecutive runs of one instance share it."""
    return RoutingGame.random(seed)


class CountingDomain:
    """A set that counts how many projections moved their point (the paper says: none)."""

    def __init__(self, inner: Domain) -> None:
        self.inner = inner
        self.projected = 0

    def project(self, x: Vector) -> Vector:
        """Project, and count if that moved x."""
        projected = self.inner.project(x)
        if not isinstance(self.inner, Whole) and not np.array_equal(projected, x):
            self.projected += 1
        return projected

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Ask the set."""
        return self.inner.contains(x, tolerance)

    def faults(self, dimension: int) -> list[str]:
        """Ask the set."""
        return self.inner.faults(dimension)


class WatchedFollower(Follower):
    """A follower that counts the answers which leave some of the attacker's budget unspent."""

    batched = True

    def __init__(self, inner: Follower, budget: float) -> None:
        self.inner = inner
        self.budget = budget
        self.slack = 0

    def respond(self, x: Vector, generator: Generator | None) -> Any:
        """Answer one point."""
        return self.respond_all([x])[0]

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Answer all points, and count."""
        answers = self.inner.respond_all(points)
        if self.budget < np.inf:
            self.slack += sum(float(answer.y.sum()) < self.budget * (1.0 - 1e-9) for answer in answers)
        return answers


# ---- the file of finished runs ----------------------------------------------------------------------------------


class RunStore:
    """Outcomes by run key. Arrays are exact little-endian float64; a run is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = sqlite3.connect(path)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise InvalidInput(
                f"reproduce: {path.name}: expected a store of finished runs ({error}); "
                "delete the file to compute all runs again"
            ) from error

    def _prepare(self) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("CREATE TABLE IF NOT EXISTS header (format TEXT, version TEXT)")
        row = database.execute("SELECT format, version FROM header").fetchone()
        expected = (_FORMAT, pzos.__version__)
        if row is None:
            database.execute("INSERT INTO header VALUES (?, ?)", expected)
        elif tuple(row) != expected:
            self.close()
            raise InvalidInput(
                f"reproduce: {self.path.name} was written by {row}: expected {expected}; "
                "choose another --out, or delete the file to compute all runs again"
            )
        database.execute(
            "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, amounts BLOB, norms BLOB, "
            "dimension INTEGER, projected INTEGER, slack INTEGER)"
        )
        database.commit()

    def finished(self) -> set[str]:
        """Return the keys of all finished runs."""
        return {key for (key,) in self._database.execute("SELECT key FROM runs")}

    def add(self, key: str, outcome: RunOutcome) -> None:
        """Keep a finished run."""
        blobs = [np.ascontiguousarray(a, dtype=_LITTLE).tobytes() for a in outcome[:2]]
        self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", (key, *blobs, *outcome[2:]))
        self._database.commit()

    def load(self, keys: Iterable[str]) -> list[RunOutcome]:
        """Return the outcomes of these runs, in order."""
        query = "SELECT amounts, norms, dimension, projected, slack FROM runs WHERE key = ?"
        outcomes = []
        for key in keys:
            *blobs, dimension, projected, slack = self._database.execute(query, (key,)).fetchone()
            values, norms = (np.frombuffer(blob, dtype=_LITTLE).astype(np.float64) for blob in blobs)
            outcomes.append(RunOutcome(values, norms, dimension, projected, slack))
        return outcomes

    def close(self) -> None:
        """Close the file."""
        self._database.close()


# ---- many runs --------------------------------------------------------------------------------------------------


def compute_missing(specs: Sequence[RunSpec], store: RunStore, *, jobs: int, executor: Executor | None = None) -> int:
    """Execute every run that the store lacks, on ``executor`` or ``jobs`` worker processes; returns how many were.

    A run is a pure function of its spec, so where it is computed does not change a bit of it.
    """
    finished = store.finished()
    missing = [spec for spec in dict.fromkeys(specs) if spec.key not in finished]
    # Long runs first, so that no worker is left alone with one at the end; neighbours share an instance.
    missing.sort(key=lambda spec: (-spec.steps * max(spec.targets, 40), spec.family, spec.instance))
    several = executor is None and min(jobs, len(missing)) > 1
    place = Workers(min(jobs, len(missing))) if several else nullcontext(executor)
    with place as workers:
        for key, outcome in _watched(_completed(missing, workers), len(missing)):
            store.add(key, outcome)
    return len(missing)


def execute_named(spec: RunSpec) -> tuple[str, RunOutcome]:
    """Execute one run; this is what a worker is sent."""
    return spec.key, execute(spec)


def _completed(specs: Sequence[RunSpec], workers: Executor | None) -> Iterator[tuple[str, RunOutcome]]:
    """Yield runs as they finish; one run per job, so that a killed call loses only what was in flight."""
    if workers is None:
        yield from map(execute_named, specs)
        return
    futures = [workers.submit(execute_named, spec) for spec in specs]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        abandon(futures)


def _watched(runs: Iterator[tuple[str, RunOutcome]], total: int) -> Iterable[tuple[str, RunOutcome]]:
    """Show a bar with the time left on a terminal; stay quiet in a pipe."""
    if total == 0 or not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield from runs
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("runs"), progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn(),
        progress.TextColumn("left"), progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(runs, total=total)
