"""Bars on queries, noise and own cost of the default method, one line each: median, worst, met or not.

    python benchmarks/queries.py [security routing noise cost peers ...] [--instances 10] [--first-seed 0]

Constants were fixed on seeds from 100 up; other seeds are reported. One BLAS thread gives the timings meaning.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import platform
import time
from collections.abc import Sequence

import numpy as np
import scipy

import pzos
from pzos.bench.cases import make
from pzos.bench.command import shown
from pzos.bench.table import Curve, curve, run_table, summary

SECURITY = {
    "security-10": ((0.01, 20), (0.001, 25)),
    "security-50": ((0.01, 60), (0.001, 80)),
    "security-100": ((0.01, 120), (0.001, 170)),
    "security-300": ((0.01, 400), (0.001, 600)),
    **{f"security-{n}-declared": ((0.01, 5), (0.001, 20)) for n in (10, 50, 100, 300)},
}
ROUTING = {
    "routing-1": ((0.001, 20),),
    "routing-0.1": ((0.01, 12), (0.001, 60)),
    "routing-0.02": ((0.03, 15), (0.01, 30), (0.001, 150)),
}
NOISE = {"security-50-declared": ((0.012, 20), (0.004, 60)), "routing-0.1": ((0.015, 20),)}
PEERS = (
    "lbfgsb-differences",
    "cobyqa",
    "py-bobyqa",
    "pycma",
    "nevergrad",
    "naive",
    "pzos-memory",
    "pzos-secant",
    "pzos-paper",
    "zos-paper",
)


def line(name: str, curves: Sequence[Curve], level: float, within: int) -> None:
    to = [item.queries_to(level) for item in curves]
    at = [item.at(within) for item in curves]
    median = float(np.median(to))
    verdict = "met" if median <= within else "NOT MET"
    print(
        f"{name:<24} gap {level:<6g} within {within:>3}: median {median:>6g}, worst {max(to):>6g}; "
        f"gap there {np.median(at):.1e}, worst {max(at):.1e}  {verdict}",
        flush=True,
    )


def bars(table: dict[str, tuple[tuple[float, int], ...]], seeds: range, noise: float = 0.0, extra: int = 0) -> None:
    for family, levels in table.items():
        budget = max(within for _, within in levels) + extra
        curves = [curve(make(family, seed, noise), "default", budget) for seed in seeds]
        for level, within in levels:
            line(family, curves, level, within)
        if family.endswith("declared") and not noise:
            worst = max(item.at(15) for item in curves)
            print(f"{family:<24} worst gap after 15: {worst:.1e}  {'met' if worst <= 0.01 else 'NOT MET'}")
        if noise:
            last = [item.final for item in curves]
            print(f"{family:<24} gap of the last point: worst of {len(last)} runs {max(last):.1e}")


def cost() -> None:
    """CPU time per query of the method; the security follower's own share is small."""
    for n, limit in ((100, 10.0), (300, 30.0)):
        problem = make(f"security-{n}", 0).problem
        pzos.solve(problem, queries=5, progress=False)
        start = time.thread_time()
        result = pzos.solve(problem, queries=300, progress=False)
        own = 1e3 * (time.thread_time() - start) / result.queries
        print(f"own cost d = {n}: {own:.1f} ms per query over {result.queries} queries (limit {limit:g})")


def peers(seeds: range, queries: int) -> None:
    families = ("security-10", "security-50", "security-100", "routing-1", "routing-0.1", "routing-0.02", "cournot")
    for family in families:
        curves = run_table([family], ("default", *PEERS), seeds, queries)
        print(shown(summary(curves)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["security", "routing", "noise", "cost"])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=450)
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.instances)
    print(f"pzos {pzos.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, {platform.machine()}; {seeds}")
    if "security" in args.parts:
        bars(SECURITY, seeds)
    if "routing" in args.parts:
        bars(ROUTING, seeds)
    if "noise" in args.parts:
        bars(NOISE, seeds, noise=0.01, extra=40)
    if "cost" in args.parts:
        cost()
    if "peers" in args.parts:
        peers(seeds, args.queries)


if __name__ == "__main__":
    main()
