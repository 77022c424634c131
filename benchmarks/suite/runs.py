"""Runs of the suite: one line of JSON per (family, instance, method, budget), so that a killed suite goes on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from suite.family import Door, Family, Stated
from suite.methods import AWARE, METHODS, solve
from testbed.unseen.instance import Vector
from testbed.unseen.runs import Keyed, attempt

BUDGETS = (10, 50, 200)
#: What is no method: x0 itself; the value of the literature; the best of runs of the default from many starts.
NOTHING, KNOWN, MULTISTART = "doing-nothing", "best-known", "multistart"
REFERENCES = (KNOWN, MULTISTART)


@dataclass(frozen=True)
class Run(Keyed):
    """What a run gave: the best true sign F at each budget, and what it cost.

    ``values`` are sign F at every query as the method saw it; ``judged`` the true one at the best point seen, by
    budget (the same where answers are exact). ``own_s`` are CPU seconds of the method itself, ``simulated`` and
    ``simulator_s`` what had to be simulated; the other answers were kept from before.
    """

    values: list[float] = field(repr=False)
    judged: dict[str, float] = field(default_factory=dict)
    x: list[float] = field(default_factory=list, repr=False)
    exact: bool = True
    failure: str = ""
    unfit: bool = False
    repeats: int = 0
    beyond: int = 0
    own_s: float = 0.0
    simulated: int = 0
    simulator_s: float = 0.0

    def at(self, budget: int) -> float:
        """Return the best true sign F within a budget; the last one judged where the run was shorter."""
        within = [int(b) for b in self.judged if int(b) <= budget]
        return self.judged[str(max(within))] if within else np.inf

    def reached(self, value: float) -> float:
        """Return the first query with a true sign F as low as this; at a noisy simulator the first budget."""
        if self.exact:
            return next((float(k) for k, seen in enumerate(self.values, 1) if seen <= value), np.inf)
        return min((float(b) for b, judged in self.judged.items() if judged <= value), default=np.inf)


@dataclass(frozen=True)
class Job:
    """One run to be made, with at most so many seconds of wall time (0: no limit)."""

    family: Family
    seed: int
    method: str
    budget: int
    limit: int = 0
    starts: int = 0

    @property
    def key(self) -> tuple[str, int, str, int]:
        """Return what makes the run unique."""
        return self.family.name, self.seed, self.method, self.budget


def plan(
    families: Sequence[Family], methods: Sequence[str], *, instances: int, queries: int, limit: int = 0, starts: int = 0
) -> list[Job]:
    """Return the runs to make, whole rounds of instances one after the other, so that a part of them is balanced.

    A run of the largest budget stands for the smaller ones by its first queries, except for methods that use the
    budget in what they do. Doing nothing and the baselines of a family are runs of one query.
    """
    jobs = []
    for seed in range(instances):
        for family in families:
            if seed >= family.instances:
                continue
            most = min(queries, family.queries)
            known = () if family.best is None else (KNOWN,)
            jobs += [Job(family, seed, name, 1) for name in (NOTHING, *known, *family.baselines)]
            for method in methods:
                apart = [b for b in BUDGETS if b < most] if method in AWARE else []
                jobs += [Job(family, seed, method, b, limit) for b in (*apart, most)]
            if starts:
                jobs.append(Job(family, seed, MULTISTART, starts * most, 0, starts))
    return jobs


def run(job: Job, folder: Path | None = None) -> Run:
    """Make one run; what breaks is a result."""
    instance = job.family.stated(job.seed, folder)
    door = Door(instance, job.budget)
    cpu = time.process_time()
    failure, unfit = attempt(lambda: _ask(job, door), job.limit)
    own = time.process_time() - cpu - door.seconds
    simulated, seconds = instance.simulated, instance.seconds
    values = door.values[: job.budget]
    judged, x = judge(instance, job.method, values, door.points, job.budget)
    return Run(
        *job.key, values, judged, x.tolist(), instance.exact, failure, unfit, door.repeats,
        len(door.values) - len(values), round(own, 3), simulated, round(seconds, 3),
    )  # fmt: skip


def _ask(job: Job, door: Door) -> None:
    if job.method == NOTHING:
        door.at(door.instance.draft.x0)
    elif job.method == KNOWN and job.family.best is not None:
        door.values.append(door.instance.sign * job.family.best(job.seed))
        door.points.append(door.instance.draft.x0)
    elif job.method in job.family.baselines:
        door.at(job.family.baselines[job.method](job.seed))
    elif job.method == MULTISTART:
        _multistart(door, job.seed, job.starts)
    else:
        METHODS[job.method](door, job.seed)


def judge(
    instance: Stated, method: str, values: Sequence[float], points: Sequence[Vector], budget: int
) -> tuple[dict[str, float], Vector]:
    """Return the true sign F of the best point seen within each budget, and the best point."""
    judged: dict[str, float] = {}
    best = instance.draft.x0
    for within in (*(b for b in BUDGETS if b < budget), budget):
        if not values:
            break
        k = int(np.argmin(values[:within]))
        best = points[k]
        judged[str(within)] = values[k] if instance.exact or method == KNOWN else instance.true_value(best)
    return judged, np.array(best)


def _multistart(door: Door, seed: int, starts: int) -> None:
    """Run the default from x0 and from points drawn between the bounds, each with its share of the budget."""
    instance, rng = door.instance, np.random.default_rng([seed, 7])
    share = door.budget // starts
    for start in range(starts):
        x0 = instance.draft.x0
        if start and instance.bounds is not None:
            low, high = instance.bounds
            x0 = instance.domain.project(low + rng.random(x0.size) * (np.minimum(high, 10.0 * x0 + 1.0) - low))
        part = Door(instance, share)
        solve(None, part, start, x0)
        door.values += part.values[:share]
        door.points += part.points[:share]
