"""Runs of the protocol: one record per (family, seed, method, budget), as lines of JSON: a killed run goes on."""

from __future__ import annotations

import importlib
import json
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import pzos
from testbed.unseen.engineers import ENGINEERS
from testbed.unseen.families import make
from testbed.unseen.instance import Door, Spent
from testbed.unseen.peers import BUDGET_AWARE, PACKAGES, Peer, Unfit

#: All peers, cheap ones first, so that a protocol cut short has the most of them.
PEERS: dict[str, Peer] = {**ENGINEERS, **PACKAGES}
#: Queries a step of ours may end above the budget; they are counted, and their values are left out.
_SLACK = 200
BUDGETS = (20, 50, 150)
#: What a broken method may raise; anything else ends the protocol.
BREAKS = (
    ArithmeticError, ValueError, RuntimeError, AttributeError, TypeError, LookupError, AssertionError,
    np.linalg.LinAlgError, pzos.PzosError, MemoryError,
)  # fmt: skip


@dataclass(frozen=True)
class Keyed:
    """What makes a run unique."""

    family: str
    seed: int
    method: str
    budget: int

    @property
    def key(self) -> tuple[str, int, str, int]:
        """Return all of it."""
        return self.family, self.seed, self.method, self.budget


@dataclass(frozen=True)
class Job(Keyed):
    """One run to be made; ``solver`` names another solver of the library ("module:attribute"), or is empty."""

    solver: str = ""
    limit: int = 0


@dataclass(frozen=True)
class Run(Keyed):
    """What a run gave: the true F at every asked point in order, and how it behaved."""

    values: list[float] = field(repr=False)
    returned: float | None = None
    stop: str = ""
    failure: str = ""
    unfit: bool = False
    repeats: int = 0
    outside: int = 0
    beyond: int = 0
    own_ms: float = 0.0
    wall_s: float = 0.0


class TooLong(Exception):
    """The run took longer than its limit of wall time."""


def run(job: Job) -> Run:
    """Make one run; what breaks is a result."""
    instance = make(job.family, job.seed)
    door = Door(instance, job.budget + (0 if job.method in PEERS else _SLACK))
    stop, returned = "", None

    def ask() -> None:
        nonlocal stop, returned
        if job.method in PEERS:
            PEERS[job.method](door, job.seed)
        else:
            stop, x = _ours(door, job)
            returned = instance.true_value(x)

    wall, cpu = time.perf_counter(), time.process_time()
    failure, unfit = attempt(ask, job.limit)
    own = (time.process_time() - cpu - door.seconds) * 1e3 / max(1, len(door.values))
    return Run(
        *job.key, door.values[: job.budget], returned, stop, failure, unfit, door.repeats, door.outside,
        max(0, len(door.values) - job.budget), round(own, 3), round(time.perf_counter() - wall, 2),
    )  # fmt: skip


def attempt(ask: Callable[[], None], limit: int) -> tuple[str, bool]:
    """Let a method ask; return why it broke off, if it did, and whether it is not made for the problem."""
    try:
        with Limit(limit):
            ask()
    except Unfit as error:
        return str(error), True
    except Spent:
        return "asked beyond its budget", False
    except TooLong:
        return f"TooLong: more than {limit} s", False
    except BREAKS as error:
        return f"{type(error).__name__}: {error}"[:300], False
    return "", False


def _ours(door: Door, job: Job) -> tuple[str, Any]:
    """Run ``pzos.solve``, with another solver where one is named."""
    solver = load(job.solver) if job.solver else None
    result = pzos.solve(
        door.instance.problem(door), solver, queries=job.budget, seed=job.seed, progress=False, certificate=False
    )
    return result.stop.name, result.best_x if np.isfinite(result.best_value) else result.x


def load(name: str) -> Any:
    """Return the solver object "module:attribute"; a class or function is called without arguments."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    is_solver = hasattr(found, "ask") and not isinstance(found, type)
    return found if is_solver else found()


class Limit:
    """Raise TooLong in the main thread after so many seconds of wall time (0: never)."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if self.seconds:
            signal.signal(signal.SIGALRM, self._ring)
            signal.alarm(self.seconds)

    def __exit__(self, *_: object) -> None:
        if self.seconds:
            signal.alarm(0)

    @staticmethod
    def _ring(*_: object) -> None:
        raise TooLong


def plan(
    families: Sequence[str], seeds: Iterable[int], methods: Sequence[str], budget: int, *, solver: str = "",
    separate: bool = False, limit: int = 0,
) -> list[Job]:  # fmt: skip
    """Return the runs to make, whole rounds of instances one after the other, so that a part of them is balanced.

    A run of the largest budget stands for the smaller ones by its first queries, except for methods that use the
    budget in what they do (and for ours with ``separate``).
    """
    jobs = []
    for seed in seeds:
        for method in methods:
            apart = method in BUDGET_AWARE or (separate and method not in PEERS)
            budgets = [b for b in BUDGETS if b < budget] if apart else []
            named = "" if method in PEERS else solver
            jobs += [Job(name, seed, method, b, named, limit) for name in families for b in (*budgets, budget)]
    return jobs


class Store:
    """A folder with one file of JSON lines per method; ``kind`` is what a line is."""

    def __init__(self, folder: Path, kind: type[Any] = Run) -> None:
        self.folder, self.kind = folder, kind
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, methods: Sequence[str] | None = None) -> dict[tuple[str, int, str, int], Any]:
        """Return all runs kept; half a line at the end of a file (a kill) is left out, the last of equals counts."""
        runs = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            if methods is not None and path.stem not in methods:
                continue
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    found = self.kind(**json.loads(line))
                except (json.JSONDecodeError, TypeError):
                    continue
                runs[found.key] = found
        return runs

    def keep(self, made: Any) -> None:
        """Append one run."""
        path = self.folder / f"{made.method}.jsonl"
        torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + json.dumps(asdict(made)) + "\n")

    def drop(self, method: str, families: Collection[str] | None = None) -> None:
        """Forget the runs of one method, on these families or on all."""
        kept = [] if families is None else [run for run in self.read([method]).values() if run.family not in families]
        (self.folder / f"{method}.jsonl").unlink(missing_ok=True)
        for run in kept:
            self.keep(run)


def make_all(jobs: Sequence[Job], workers: int = 1) -> Iterator[Run]:
    """Make the runs, in this process or in several."""
    if workers == 1:
        yield from map(run, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, jobs)
