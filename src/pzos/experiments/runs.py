"""The runs of an experiment: one run as a pure function of its spec, many over processes, and the file that keeps them.

No finished run is ever computed twice: a killed reproduction goes on where it was.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pzos
from pzos.answers.oracle import Oracle, abandon
from pzos.base.errors import FollowerFailure, InvalidInput, NotConverged
from pzos.base.types import Vector
from pzos.experiments.descriptions import RunSpec
from pzos.games import RoutingGame, SecurityGame
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Diminishing
from pzos.problem.problem import Problem
from pzos.problem.sets import Domain
from pzos.study.run import drive
from pzos.study.study import Study

_FORMAT = "pzos experiment runs 1"
_LITTLE = np.dtype("<f8")


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


# ---- one run ----------------------------------------------------------------------------------------------------


def execute(spec: RunSpec) -> RunOutcome:
    """Run one spec from nothing; a pure function of the spec."""
    problem, budget = _problem(spec)
    domain = CountingDomain(problem.domain)
    known = replace(problem.known(), domain=domain)
    study = Study(known, _solver(spec, problem.x0.size), steps=spec.steps, seed=spec.seed)
    try:
        drive(study, Oracle(problem.follower, seed=spec.seed), progress=False)
    except FollowerFailure as failure:
        if not isinstance(failure.__cause__, NotConverged) or study.step == 0:
            raise
    trace = study.trace
    worst = np.inf if problem.sense == "min" else -np.inf
    values = _extended(trace["value"], spec.steps + 1, worst)
    norms = _extended(trace["gradient_norm_squared"][: spec.steps], spec.steps, np.nan)
    return RunOutcome(values, norms, int(problem.x0.size), domain.projected, _slack_answers(study, budget))


def _extended(column: Vector, length: int, ending: float) -> Vector:
    return np.concatenate([column, np.full(length - column.size, ending)])


def _slack_answers(study: Study, budget: float) -> int:
    """Return how many answers leave some of the attacker's budget unspent."""
    if budget == np.inf:
        return 0
    told = study.result().told
    if told is None:
        raise InvalidInput("reproduce: a run has more answers than are kept in memory: expected fewer steps or targets")
    spent = np.array([response.y for _, response in told]).sum(axis=1)
    return int((spent < budget * (1.0 - 1e-9)).sum())


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
        if projected is not x and (projected != x).any():
            self.projected += 1
        return projected

    def contains(self, x: Vector, tolerance: float = 1e-12) -> bool:
        """Ask the set."""
        return self.inner.contains(x, tolerance)

    def faults(self, dimension: int) -> list[str]:
        """Ask the set."""
        return self.inner.faults(dimension)


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


def compute_missing(specs: Sequence[RunSpec], store: RunStore, executor: Executor | None = None) -> int:
    """Execute every run that the store lacks, on ``executor`` or else here; returns how many were.

    A run is a pure function of its spec, so where it is computed does not change a bit of it.
    """
    finished = store.finished()
    missing = [spec for spec in dict.fromkeys(specs) if spec.key not in finished]
    # Long runs first, so that no worker is left alone with one at the end; neighbours share an instance.
    missing.sort(key=lambda spec: (-spec.steps * max(spec.targets, 40), spec.family, spec.instance))
    for key, outcome in _watched(_completed(missing, executor), len(missing)):
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
