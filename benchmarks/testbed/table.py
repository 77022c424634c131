"""Running the test bed: gap curves, gaps at budgets, queries to a gap, performance profiles, CSV."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pzos.base.checks import Faults
from pzos.base.errors import MissingExtra
from pzos.base.types import Matrix, Vector
from testbed.cases import Case, Unsuited, make
from testbed.composite_peers import COMPOSITE
from testbed.methods import OURS, Method
from testbed.peers import PEERS

METHODS: dict[str, Method] = {**OURS, **PEERS, **COMPOSITE}
BUDGETS = (20, 50, 150, 450)
LEVELS = (0.1, 0.01, 0.001)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The best gap seen after each query of one run; ``failure`` says why a run broke off.

    A method that is not made for the family, or not installed, is not ``suited``: that is no failure of its.

    Gaps are without noise, whatever the method saw. With noise our own methods are measured at the point they would
    return after each query, not at the best so far, which nobody could see; ``final`` is the gap at the end.
    """

    family: str
    method: str
    seed: int
    gaps: Vector
    seconds: float
    failure: str = ""
    final: float = float("nan")
    suited: bool = True

    def at(self, queries: int) -> float:
        """Return the gap after this many queries (the last one if the run ended before)."""
        return float(self.gaps[min(queries, self.gaps.size) - 1]) if self.gaps.size else float("nan")

    def queries_to(self, level: float) -> float:
        """Return the first query that reached the gap, or infinity."""
        reached = np.flatnonzero(self.gaps <= level)
        return float(reached[0] + 1) if reached.size else float("inf")


def curve(case: Case, name: str, queries: int) -> Curve:
    """Run one method on one case. A peer that breaks is a result, shown with its message."""
    start = time.perf_counter()
    failure, suited = "", True
    values: list[float] = []
    try:
        values = METHODS[name](case, queries, case.seed)
    except (Unsuited, MissingExtra) as error:
        failure, suited = str(error), False
    except (ArithmeticError, ValueError, RuntimeError, ImportError, AttributeError, TypeError) as error:
        failure = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    first = case.true_value(case.problem.x0)
    gaps = [case.gap(value, first) for value in values]
    seen_only = case.clean is not case.problem.follower and name in OURS
    kept = np.asarray(gaps, dtype=np.float64) if seen_only else running_best(gaps)
    return Curve(case.family, name, case.seed, kept, seconds, failure, gaps[-1] if gaps else np.nan, suited)


def running_best(gaps: Sequence[float]) -> Vector:
    """Return the lowest gap so far, after each query."""
    return np.minimum.accumulate(np.asarray(gaps, dtype=np.float64)) if gaps else np.zeros(0)


def run_table(
    families: Iterable[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    queries: int,
    noise: float = 0.0,
    watch: Callable[[Curve], None] | None = None,
) -> list[Curve]:
    """Run every method on every instance of every family; ``watch`` is told each curve as it comes."""
    faults = Faults("bench")
    for name in methods:
        faults.check(name in METHODS, "method", name, f"one of {', '.join(METHODS)}", "check the spelling")
    faults.raise_if_any()
    curves: list[Curve] = []
    for family in families:
        for seed in seeds:
            case = make(family, seed, noise)
            for name in methods:
                curves.append(curve(case, name, queries))
                if watch is not None:
                    watch(curves[-1])
    return curves


def summary(curves: Iterable[Curve], budgets: Sequence[int] = BUDGETS) -> list[dict[str, str]]:
    """Return one row per family and method: median and worst gap at each budget, median queries to each level."""
    rows = []
    groups: dict[tuple[str, str], list[Curve]] = {}
    for item in curves:
        groups.setdefault((item.family, item.method), []).append(item)
    for (family, method), group in groups.items():
        row = {"family": family, "method": method, "runs": str(len(group))}
        good = [item for item in group if item.gaps.size]
        for budget in budgets:
            at = [item.at(budget) for item in good]
            row[f"@{budget}"] = f"{np.median(at):.1e} ({np.max(at):.0e})" if at else "-"
        for level in LEVELS:
            to = float(np.median([item.queries_to(level) for item in group]))
            row[f"to {level:g}"] = f"{to:g}" if np.isfinite(to) else "-"
        failures = [item for item in group if item.failure]
        row["failed"] = f"{len(failures)}: {failures[0].failure[:60]}" if failures else ""
        rows.append(row)
    return rows


def profile(curves: Sequence[Curve], level: float, budgets: Sequence[int]) -> dict[str, Vector]:
    """Return, for each method, the share of instances that reached the gap within each budget (a data profile)."""
    shares: dict[str, Vector] = {}
    for method in dict.fromkeys(item.method for item in curves):
        to = np.array([item.queries_to(level) for item in curves if item.method == method])
        shares[method] = np.array([float(np.mean(to <= budget)) for budget in budgets])
    return shares


def stacked(curves: Sequence[Curve], queries: int) -> Matrix:
    """Return the gaps of several runs as rows of equal length."""
    rows = [[item.at(query) for query in range(1, queries + 1)] for item in curves if item.gaps.size]
    return np.array(rows, dtype=np.float64).reshape(len(rows), queries)


def write_csv(curves: Iterable[Curve], path: Path) -> None:
    """Write every curve in full: one line per query."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("family", "method", "seed", "query", "gap", "failure"))
        for item in curves:
            for query, gap in enumerate(item.gaps, 1):
                writer.writerow((item.family, item.method, item.seed, query, repr(float(gap)), item.failure))
            if not item.gaps.size:
                writer.writerow((item.family, item.method, item.seed, 0, "nan", item.failure))
