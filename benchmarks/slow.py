"""A slow simulator with several queries in flight: wall clock and what was reached, through Workers and Dask.

    python benchmarks/slow.py [--seconds 5] [--queries 24] [--flight 1 4 8] [--family simopt-activities]

Every answer of the family's simulator is held back for so many seconds, as if a run took that long. The ideal is
queries x seconds / in flight. More in flight need more queries to get as far: both are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import pzos
from pzos.base.types import Vector
from suite.family import found
from testbed.versions import versions


@dataclass(frozen=True, eq=False)
class Slow:
    """A follower that answers ``seconds`` late; it travels to other processes by the name of its family."""

    family: str
    seed: int
    seconds: float

    def __call__(self, x: Vector) -> Vector:
        """Wait, then answer, with the random numbers of the first draw where there are any."""
        time.sleep(self.seconds)
        instance = found()[self.family].stated(self.seed)
        return instance.answer(np.asarray(x), instance.noise(0, 0))

    def problem(self) -> pzos.Problem:
        """Return the family's problem with this follower in place of its own."""
        stated = found()[self.family].make(self.seed)
        return pzos.Problem(stated.leader, self, stated.x0, stated.domain, stated.sense, f"slow {self.family}",
                            grid=None if stated.grid is None else stated.grid.steps)  # fmt: skip


@contextmanager
def executor(kind: str, flight: int) -> Iterator[Executor]:
    """Open an executor that holds so many queries at once."""
    if kind == "workers":
        with pzos.Workers(flight) as workers:
            yield workers
        return
    from distributed import Client, LocalCluster

    processes = min(2, flight)
    with (
        LocalCluster(n_workers=processes, threads_per_worker=flight // processes, dashboard_address=None) as cluster,
        Client(cluster) as client,
        pzos.DaskExecutor(client) as dask,
    ):
        yield dask


def run(slow: Slow, kind: str, flight: int, queries: int) -> tuple[float, Any]:
    """Return the seconds of wall clock after a warm start, and the result."""
    with executor(kind, flight) as place:
        list(place.map(time.sleep, [0.05] * flight))  # processes are up
        began = time.perf_counter()
        found_ = pzos.solve(slow.problem(), queries=queries, executor=place, seed=0, progress=False, certificate=False)
        return time.perf_counter() - began, found_


def main() -> None:
    """Print a line per executor and number in flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--queries", type=int, default=24)
    parser.add_argument("--flight", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--executors", nargs="+", default=["workers", "dask"])
    parser.add_argument("--family", default="simopt-activities")
    args = parser.parse_args()
    slow = Slow(args.family, 0, args.seconds)
    problem = Slow(args.family, 0, 0.0).problem()
    start = problem.leader.value(problem.x0, problem.follower.respond(problem.x0, None))
    print(versions(("distributed",)))
    print(f"{args.family}, {args.queries} queries of {args.seconds:g} s, F(x0) {start:.4g}")
    print(f"{'':<10}{'in flight':>10}{'wall clock':>12}{'ideal':>9}{'best F':>11}", flush=True)
    for kind in args.executors:
        for flight in args.flight:
            seconds, result = run(slow, kind, flight, args.queries)
            ideal = args.queries * args.seconds / flight
            print(f"{kind:<10}{flight:>10}{seconds:>10.1f} s{ideal:>7.0f} s{result.best_value:>11.4g}", flush=True)


if __name__ == "__main__":
    main()
