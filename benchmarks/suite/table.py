"""The table of the suite: gaps by cell (family x budget), who is first, every loss with what was measured, profiles."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suite.methods import METHODS
from suite.runs import BUDGETS, NOTHING, REFERENCES, Run
from testbed.unseen.table import Scale

#: Gaps below this count as equal: a ten-thousandth of what there is to gain.
EQUAL = 1e-4
LEVELS = (0.1, 0.01, 0.001)
#: Profiles are drawn of methods that were run on this share of the families.
MOST = 0.7
#: First or tied is at most 10 % behind the best; nothing may be more than three times behind.
TIED, FAR = 1.1, 3.0
Runs = Mapping[tuple[str, int, str, int], Run]


def scales(runs: Runs) -> dict[tuple[str, int], Scale]:
    """Return the scale of every instance whose x0 was asked; the best is what anyone found, or the literature's."""
    scale = {}
    for name, seed in dict.fromkeys(run.key[:2] for run in runs.values()):
        mine = [run for run in runs.values() if run.key[:2] == (name, seed)]
        first = next((run.at(1) for run in mine if run.method == NOTHING), np.nan)
        if np.isfinite(first):
            scale[name, seed] = Scale(first, min(value for run in mine for value in run.judged.values()))
    return scale


@dataclass(frozen=True)
class Row:
    """One method on one family at one budget, over the instances; ``own_ms`` and ``simulator_s`` are per query.

    ``reached`` has, for each of LEVELS, the queries to that gap of every instance (infinity where it was not reached).
    """

    family: str
    method: str
    budget: int
    runs: int
    median: float
    worst: float
    own_ms: float
    simulator_s: float
    note: str = ""
    reached: tuple[tuple[float, ...], ...] = ()


def rows(runs: Runs, budgets: Sequence[int] = BUDGETS) -> list[Row]:
    """Return all rows, families in the order they were run; what broke before it asked has gap 1."""
    scale, table = scales(runs), []
    kept = [run for run in runs.values() if run.key[:2] in scale and run.method not in REFERENCES]
    for family in dict.fromkeys(run.family for run in kept):
        asked = [run for run in kept if run.family == family]
        seconds = sum(run.simulator_s for run in asked) / max(1, sum(run.simulated for run in asked))
        longest = max(run.budget for run in asked)
        for method in dict.fromkeys(run.method for run in asked):
            mine = [run for run in asked if run.method == method]
            table += [
                _row(fit, budget, scale, seconds)
                for budget in budgets
                if budget <= longest and (fit := _standing(mine, budget))
            ]
    return table


def _row(fit: Sequence[Run], budget: int, scale: Mapping[tuple[str, int], Scale], seconds: float) -> Row:
    """Return the row of one method's runs, one for each instance; a method is never worse than x0, which it asked."""
    most = np.inf if _single(fit[0]) else 1.0
    gaps = [min(most, scale[run.key[:2]].gap(run.at(budget))) for run in fit]
    own = [1e3 * run.own_s / max(1, len(run.values)) for run in fit]
    reached = tuple(
        tuple(found if (found := run.reached(scale[run.key[:2]].value(level))) <= budget else np.inf for run in fit)
        for level in LEVELS
    )
    note = next((run.failure for run in fit if run.failure), "")
    return Row(fit[0].family, fit[0].method, budget, len(fit), float(np.median(gaps)), max(gaps), float(np.median(own)),
               seconds, note, reached)  # fmt: skip


def _single(run: Run) -> bool:
    return run.method not in METHODS


def _standing(runs: Iterable[Run], budget: int) -> list[Run]:
    """Return, for every instance, the run that says what the method has at this budget."""
    best: dict[int, Run] = {}
    for run in sorted(runs, key=lambda run: run.budget):
        long_enough = run.budget >= budget or _single(run)
        if long_enough and not run.unfit:
            best.setdefault(run.seed, run)
    return list(best.values())


@dataclass(frozen=True)
class Cell:
    """One family at one budget: ours, the best other method in hindsight, and how far ours is behind it."""

    family: str
    budget: int
    ours: float
    best: float
    by: str

    @property
    def ratio(self) -> float:
        """Return our median over the best other one, gaps below EQUAL counted as equal."""
        return max(self.ours, EQUAL) / max(self.best, EQUAL)


def cells(table: Sequence[Row], ours: str = "default") -> list[Cell]:
    """Return the cells that have our row and another method's, of as many instances: medians of fewer say little."""
    found = []
    for family, budget in dict.fromkeys((row.family, row.budget) for row in table):
        here = {row.method: row for row in table if (row.family, row.budget) == (family, budget)}
        mine = here.pop(ours, None)
        others = [row for name, row in here.items() if name in METHODS and mine is not None and row.runs >= mine.runs]
        if mine is not None and others:
            best = min(others, key=lambda row: row.median)
            found.append(Cell(family, budget, mine.median, best.median, best.method))
    return found


def verdict(found: Sequence[Cell]) -> list[str]:
    """Return the bars and every loss, with what was measured."""
    if not found:
        return ["no cell has the default and another method"]
    first = sum(cell.ratio <= TIED for cell in found)
    far = [cell for cell in found if cell.ratio > FAR]
    lines = [
        f"first or tied (within 10 %) in {first} of {len(found)} cells ({first / len(found):.0%}; bar 80 %)",
        f"more than 3x behind in {len(far)} (bar 0)",
    ]
    losses = sorted((cell for cell in found if cell.ratio > TIED), key=lambda cell: -cell.ratio)
    return lines + [
        f"  loss: {cell.family} at {cell.budget}: behind {cell.by} by {cell.ratio:.2g}x "
        f"(gap {cell.ours:.1e} against {cell.best:.1e})"
        for cell in losses
    ]


def shown(table: Sequence[Row]) -> list[str]:
    """Return the rows as text: gaps are medians, the worst in brackets."""
    lines = [f"{'family':<22}{'method':<20}{'@':>4} {'gap (worst)':>20}{'runs':>6}{'own ms':>9}{'sim s':>8}"]
    for row in table:
        gap = f"{row.median:.1e} ({row.worst:.0e})"
        note = f"  {row.note[:60]}" if row.note else ""
        lines.append(
            f"{row.family:<22}{row.method:<20}{row.budget:>4} {gap:>20}{row.runs:>6}{row.own_ms:>9.1f}"
            f"{row.simulator_s:>8.3f}{note}"
        )
    return lines


def profile(table: Sequence[Row], level: float, queries: Sequence[int]) -> dict[str, list[float]]:
    """Return the share of instances on which a method reached the gap within so many queries.

    Of the methods that were run on most families, over the families that have them all.
    """
    run_on = {method: {row.family for row in table if row.method == method} for method in METHODS}
    drawn = [method for method, on in run_on.items() if len(on) >= MOST * len({row.family for row in table})]
    shared = set.intersection(*(run_on[method] for method in drawn)) if drawn else set()
    shares = {}
    for method in drawn:
        mine = sorted((row for row in table if row.method == method and row.family in shared), key=lambda r: r.budget)
        longest = {row.family: row for row in mine}.values()
        to = np.array([found for row in longest for found in row.reached[LEVELS.index(level)]])
        shares[method] = [float(np.mean(to <= count)) for count in queries]
    return shares


_COLUMNS = ("family", "method", "queries", "runs", "median", "worst", "own_ms", "simulator_s", "note")


def write_csv(table: Iterable[Row], path: Path) -> None:
    """Write the rows; queries to the levels are one number for each instance, "-" where it was not reached."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*_COLUMNS, *(f"to {level:g}" for level in LEVELS)))
        for row in table:
            to = (" ".join("-" if found == np.inf else f"{found:g}" for found in level) for level in row.reached)
            writer.writerow((row.family, row.method, row.budget, row.runs, f"{row.median:.3g}", f"{row.worst:.3g}",
                             f"{row.own_ms:.3g}", f"{row.simulator_s:.3g}", row.note[:80], *to))  # fmt: skip


def read_csv(path: Path) -> list[Row]:
    """Read rows that were written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                line["family"], line["method"], int(line["queries"]), int(line["runs"]), float(line["median"]),
                float(line["worst"]), float(line["own_ms"]), float(line["simulator_s"]), line["note"],
                tuple(tuple(float("inf") if word == "-" else float(word) for word in line[f"to {level:g}"].split())
                      for level in LEVELS),
            )
            for line in csv.DictReader(file)
        ]  # fmt: skip


def markdown(table: Sequence[Row]) -> str:
    """Return one line per cell: the default, the best other method, and what a query costs."""
    lines = ["| family | queries | default (worst) | best other | times behind | own ms/query | simulator s/query |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    rows_of = {(row.family, row.budget, row.method): row for row in table}
    for cell in cells(table):
        mine = rows_of[cell.family, cell.budget, "default"]
        behind = f"{cell.ratio:.2g}" if cell.ratio > TIED else ("tied" if cell.ratio >= 1.0 / TIED else "ahead")
        lines.append(
            f"| {cell.family} | {cell.budget} | {mine.median:.2g} ({mine.worst:.2g}) | {cell.by} {cell.best:.2g} | "
            f"{behind} | {mine.own_ms:.0f} | {mine.simulator_s:.2g} |"
        )
    return "\n".join(lines) + "\n"


def baselines(table: Sequence[Row]) -> str:
    """Return what the families' baselines come to, as Markdown."""
    found = dict.fromkeys((row.family, row.method, row.median, row.worst) for row in table
                          if row.method not in METHODS and row.method != NOTHING)  # fmt: skip
    lines = ["| family | baseline | gap (worst) |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {f} | {m} | {gap:.2g} ({worst:.2g}) |" for f, m, gap, worst in found)]) + "\n"
