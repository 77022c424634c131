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
from testbed.cases import make
from testbed.command import shown
from testbed.table import BUDGETS, METHODS, Curve, curve, run_table, summary

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
#: Our own; what is left are peers. The white box knows the Jacobian: a limit, not a peer.
OWN = ("default", "pzos-memory", "pzos-secant")
REFERENCES = ("white-box",)
#: Gaps below this are rounding errors of F and of its reference.
LEAST = 1e-12
FAMILIES = ("security-10", "security-50", "security-100", "routing-1", "routing-0.1", "routing-0.02", "cournot")


FAILED: list[str] = []


def verdict_of(passed: bool, name: str = "") -> str:
    if not passed:
        FAILED.append(name)
    return "PASS" if passed else "FAIL"


def line(name: str, curves: Sequence[Curve], level: float, within: int) -> None:
    to = [item.queries_to(level) for item in curves]
    at = [item.at(within) for item in curves]
    median = float(np.median(to))
    verdict = verdict_of(median <= within, f"{name} {level:g}")
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
            print(f"{family:<24} worst gap after 15: {worst:.1e}  {verdict_of(worst <= 0.01, family)}", flush=True)


def noisy_ends(first: int, runs: int = 100, queries: int = 100) -> None:
    """No run of a hundred under noise may end above a gap of 0.1: half of them security, half routing."""
    ends = [
        (curve(make(family, seed, 0.01), "default", queries).final, family, seed)
        for family in ("security-50-declared", "routing-0.1")
        for seed in range(first, first + runs // 2)
    ]
    worst = max(ends)
    verdict = verdict_of(worst[0] <= 0.1, "noisy ends")
    print(f"{runs} noisy runs of {queries} queries: worst end {worst[0]:.1e} ({worst[1]}, seed {worst[2]})  {verdict}")


def cost(seeds: range) -> None:
    """CPU time per query of the method, followers included: the security follower's share is small."""
    for n, limit in ((100, 10.0), (300, 30.0)):
        own, wall = [], []
        for seed in seeds[:3]:
            problem = make(f"security-{n}", seed).problem
            pzos.solve(problem, queries=5, progress=False, certificate=False)
            start, clock = time.thread_time(), time.perf_counter()
            result = pzos.solve(problem, queries=300, progress=False, certificate=False)
            own.append(1e3 * (time.thread_time() - start) / result.queries)
            wall.append(1e3 * (time.perf_counter() - clock) / result.queries)
        print(
            f"own cost d = {n}: {np.median(own):.1f} ms of CPU per query, worst {max(own):.1f} "
            f"(wall {np.median(wall):.1f}) over 300 queries, limit {limit:g}; load {os.getloadavg()[0]:.1f}  "
            f"{verdict_of(float(np.median(own)) <= limit, f'cost {n}')}",
            flush=True,
        )


def peers(families: Sequence[str], seeds: range, queries: int, skip: Sequence[str], noise: float = 0.0) -> None:
    """Every method on every family, and for each budget whether the default is at least as good as the best peer."""
    names = [name for name in METHODS if name not in skip]
    for family in families:
        curves = run_table([family], names, seeds, queries, noise)
        print(shown(summary(curves)), flush=True)
        for budget in (b for b in BUDGETS if b <= queries):
            medians = {
                name: float(np.median([item.at(budget) for item in curves if item.method == name and item.gaps.size]))
                for name in names
                if name not in REFERENCES and any(item.method == name and item.gaps.size for item in curves)
            }
            best = min((name for name in medians if name not in OWN), key=lambda name: medians[name])
            better = medians["default"] <= max(medians[best], LEAST)
            print(
                f"{family:<20} @{budget:<4} default {medians['default']:.1e}, best peer {best} {medians[best]:.1e}  "
                f"{verdict_of(better, f'{family} @{budget}')}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["security", "routing", "noise", "cost"])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--queries", type=int, default=450)
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--skip", nargs="*", default=(), help="methods to leave out of the part 'peers'")
    parser.add_argument("--noise", type=float, default=0.0, help="noise in the part 'peers'")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.instances)
    print(f"pzos {pzos.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, {platform.machine()}; {seeds}")
    if "security" in args.parts:
        bars(SECURITY, seeds)
    if "routing" in args.parts:
        bars(ROUTING, seeds)
    if "noise" in args.parts:
        bars(NOISE, seeds, noise=0.01, extra=40)
        noisy_ends(args.first_seed)
    if "cost" in args.parts:
        cost(seeds)
    if "peers" in args.parts:
        peers(args.families, seeds, args.queries, args.skip, args.noise)
    print(f"{len(FAILED)} bars failed{': ' + ', '.join(FAILED) if FAILED else ''}")


if __name__ == "__main__":
    main()
