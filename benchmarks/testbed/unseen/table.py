"""The table of the protocol: gaps by cell (family x budget), the best peer of each in hindsight, how far ours is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.unseen.families import FAMILIES, make
from testbed.unseen.instance import KINDS
from testbed.unseen.reference import Best
from testbed.unseen.runs import BUDGETS, PEERS, Run

#: Gaps below this count as equal.
EQUAL = 1e-7
LEVELS = (0.01, 0.001)
#: A claim to have converged is false where the gap is larger than this.
CONVERGED = 1e-3
Runs = Mapping[tuple[str, int, str, int], Run]


@dataclass(frozen=True)
class Scale:
    """F at x0 and the best F known, of one instance."""

    first: float
    best: float

    def gap(self, value: float) -> float:
        """Return (F - F_best)/(F_0 - F_best), at least 0; infinity where F is not a number."""
        gap = (value - self.best) / max(self.first - self.best, 1e-300)
        return max(gap, 0.0) if np.isfinite(gap) else np.inf

    def value(self, gap: float) -> float:
        """Return the value that has this gap."""
        return self.best + gap * (self.first - self.best)


def scales(runs: Runs, best: Best) -> tuple[dict[tuple[str, int], Scale], list[str]]:
    """Return the scale of every instance that was run, and the references that some run has beaten (then lowered)."""
    found, beaten = {}, []
    for family, seed in dict.fromkeys((run.family, run.seed) for run in runs.values()):
        instance = make(family, seed)
        first, known = instance.true_value(instance.draft.x0), best.of(instance)
        lowest, who = min(
            ((min(run.values), run.method) for run in runs.values()
             if (run.family, run.seed) == (family, seed) and run.values),
            default=(np.inf, ""),
        )  # fmt: skip
        if lowest < known:
            if known - lowest > 0.1 * EQUAL * (first - known):
                beaten.append(f"{family}/{seed} by {who}: {(known - lowest) / (first - known):.1e}")
            best.lower(family, seed, lowest)
        found[family, seed] = Scale(first, min(known, lowest))
    best.write()
    return found, beaten


def gap_at(
    runs: Runs, scale: Scale, family: str, seed: int, method: str, budget: int, lengths: Sequence[int] = BUDGETS
) -> float:
    """Return the best gap seen within the budget: of the run with this budget, or of the first queries of a longer one.

    ``lengths`` are the budgets of the runs, in order. NaN where there is no run; 1 where a run broke before it asked.
    """
    longer = (b for b in lengths if b >= budget)
    run = next((runs[family, seed, method, b] for b in longer if (family, seed, method, b) in runs), None)
    if run is None or run.unfit:
        return np.nan
    return min((scale.gap(value) for value in run.values[:budget]), default=1.0)


@dataclass(frozen=True)
class Cell:
    """One family at one budget: medians and worsts of the methods over the instances."""

    family: str
    kind: str
    budget: int
    median: dict[str, float]
    worst: dict[str, float]

    def best_peer(self) -> tuple[str, float]:
        """Return the peer with the lowest median, in hindsight."""
        peers = {name: gap for name, gap in self.median.items() if name in PEERS}
        name = min(peers, key=lambda peer: peers[peer], default="")
        return name, peers.get(name, np.nan)

    def ratio(self, method: str) -> float:
        """Return the method's median over the best peer's, gaps below EQUAL counted as equal."""
        return max(self.median[method], EQUAL) / max(self.best_peer()[1], EQUAL)


def cells(runs: Runs, scale: Mapping[tuple[str, int], Scale], budgets: Sequence[int] = BUDGETS) -> list[Cell]:
    """Return all cells in the order of the classes."""
    methods = list(dict.fromkeys(run.method for run in runs.values()))
    lengths = sorted({run.budget for run in runs.values()})
    names = {run.family for run in runs.values()}
    order = sorted((item for item in FAMILIES.values() if item.name in names), key=lambda item: KINDS.index(item.kind))
    table = []
    for item in order:
        seeds = sorted(seed for family, seed in scale if family == item.name)
        for budget in budgets:
            median, worst = {}, {}
            for method in methods:
                gaps = [gap_at(runs, scale[item.name, s], item.name, s, method, budget, lengths) for s in seeds]
                gaps = [gap for gap in gaps if not np.isnan(gap)]
                if gaps:
                    median[method], worst[method] = float(np.median(gaps)), max(gaps)
            table.append(Cell(item.name, item.kind, budget, median, worst))
    return table


def cell_lines(table: Iterable[Cell], ours: str) -> list[str]:
    """Return one line per cell: ours, the best peer, the ratio, and the next two peers."""
    lines = [f"{'family':<17}{'class':<9}{'@':>4}  {ours[:18]:>18}  {'(worst)':>8}  best peer                  ratio"]
    for cell in table:
        if ours not in cell.median:
            continue
        name, gap = cell.best_peer()
        ratio = cell.ratio(ours)
        mark = " " if ratio <= 1.1 else ("!" if ratio <= 3.0 else ("!!" if ratio <= 10.0 else "!!!"))
        lines.append(
            f"{cell.family:<17}{cell.kind:<9}{cell.budget:>4}  {cell.median[ours]:>18.1e}  {cell.worst[ours]:>8.0e}  "
            f"{gap:.1e} {name:<18} {ratio:>8.2g} {mark}"
        )
    return lines


def shares(table: Sequence[Cell], ours: str) -> list[str]:
    """Return the shares of cells by how far behind the best peer they are, in all, by budget and by class."""
    judged = [cell for cell in table if ours in cell.median and cell.best_peer()[0]]

    def line(name: str, part: Sequence[Cell]) -> str:
        r = np.array([cell.ratio(ours) for cell in part])
        return (
            f"{name:<10} cells {r.size:>4}  <= 1.1x {np.mean(r <= 1.1):>5.0%}  behind {np.sum(r > 1.1):>3}  "
            f"> 3x {np.sum(r > 3.0):>3} ({np.mean(r > 3.0):>4.0%})  > 10x {np.sum(r > 10.0):>3}  "
            f"median ratio {np.median(r):.2g}  worst {r.max():.2g}"
        )

    if not judged:
        return []
    budgets, kinds = ({getattr(cell, name): None for cell in judged} for name in ("budget", "kind"))
    return [
        line("all", judged),
        *(line(f"@{budget}", [cell for cell in judged if cell.budget == budget]) for budget in budgets),
        *(line(kind, [cell for cell in judged if cell.kind == kind]) for kind in kinds),
    ]


def behaviour(runs: Runs, scale: Mapping[tuple[str, int], Scale], method: str) -> list[str]:
    """Return failures, repeated points, false claims, own cost and queries to a gap, of one method."""
    mine = [run for run in runs.values() if run.method == method and not run.unfit]
    if not mine:
        return []
    exact = {run.family: make(run.family, 0).exact for run in mine}
    broken = [run for run in mine if run.failure]
    repeated = [run for run in mine if run.repeats and exact[run.family]]
    false = [run for run in mine if run.stop == "CONVERGED" and _end(run, scale) > CONVERGED]
    cost = [run.own_ms for run in mine]
    lines = [
        f"{method}: {len(mine)} runs; broken {len(broken)}; exact runs with a repeated x {len(repeated)} "
        f"({sum(run.repeats for run in repeated)} queries), noisy ones "
        f"{sum(run.repeats > 0 for run in mine) - len(repeated)}; beyond the budget {sum(run.beyond for run in mine)}; "
        f"outside the domain {sum(run.outside for run in mine)}; converged claimed "
        f"{sum(run.stop == 'CONVERGED' for run in mine)}, falsely {len(false)}; "
        f"own CPU per query median {np.median(cost):.1f} ms, worst {max(cost):.1f} ms"
    ]
    lines += [f"  broken: {run.family}/{run.seed} after {len(run.values)}: {run.failure[:110]}" for run in broken[:12]]
    lines += [
        f"  false claim: {run.family}/{run.seed} after {len(run.values)} at gap {_end(run, scale):.1e}"
        for run in false[:12]
    ]
    return lines


def _end(run: Run, scale: Mapping[tuple[str, int], Scale]) -> float:
    return scale[run.family, run.seed].gap(min(run.values, default=np.inf))


def queries_to(runs: Runs, scale: Mapping[tuple[str, int], Scale], ours: str, budget: int) -> list[str]:
    """Return the median queries to each level, ours and the best peer's, by family."""
    lines = [f"{'family':<17}" + "".join(f"  to {level:<6g} ours/best peer          " for level in LEVELS)]
    order = sorted({run.family for run in runs.values()}, key=lambda name: list(FAMILIES).index(name))
    for family in order:
        row = f"{family:<17}"
        for level in LEVELS:
            to: dict[str, list[float]] = {}
            for run in runs.values():
                if run.family == family and run.budget == budget and not run.unfit:
                    gaps = (scale[family, run.seed].gap(value) for value in run.values)
                    to.setdefault(run.method, []).append(next((k for k, g in enumerate(gaps, 1) if g <= level), np.inf))
            medians = {name: float(np.median(found)) for name, found in to.items()}
            peers = {name: found for name, found in medians.items() if name in PEERS}
            name = min(peers, key=lambda peer: peers[peer], default="")
            reached = name if np.isfinite(peers.get(name, np.inf)) else ""
            row += f"  {_count(medians.get(ours, np.nan)):>8} / {_count(peers.get(name, np.nan)):<5} {reached:<17}"
        lines.append(row.rstrip())
    return lines


def _count(value: float) -> str:
    return "-" if not np.isfinite(value) else f"{value:g}"


def ranking(table: Sequence[Cell]) -> list[str]:
    """Return, for every method, in how many cells it is best or equal to the best, and its typical gap over cells."""
    rows = []
    for name in dict.fromkeys(name for cell in table for name in cell.median):
        mine = [cell for cell in table if name in cell.median]
        best = sum(max(cell.median[name], EQUAL) <= 1.1 * max(min(cell.median.values()), EQUAL) for cell in mine)
        typical = np.exp(np.mean([np.log(max(cell.median[name], EQUAL)) for cell in mine]))
        rows.append((best, f"{name:<18} best within 10 % in {best:>3} of {len(mine)} cells; mean gap {typical:.1e}"))
    return [text for _, text in sorted(rows, reverse=True)]


def bars(table: Sequence[Cell], ours: str) -> list[str]:
    """Return the bars on cells, each with how many cells miss it and which."""
    judged = [cell for cell in table if ours in cell.median and cell.best_peer()[0]]
    smooth = [cell for cell in judged if cell.kind in ("smooth", "scales", "domains")]
    short = [cell for cell in judged if cell.budget < make(cell.family, 0).draft.x0.size]
    rows: list[tuple[str, Sequence[Cell], Callable[[Cell], bool], float]] = [
        ("all: at most 10 % behind, in 90 %", judged, lambda cell: cell.ratio(ours) <= 1.1, 0.1),
        ("all: more than 3x behind in at most 3 %", judged, lambda cell: cell.ratio(ours) <= 3.0, 0.03),
        ("all: never 10x", judged, lambda cell: cell.ratio(ours) <= 10.0, 0.0),
        ("smooth: at most 2x at 20 and 50", _at(smooth, 20, 50), lambda cell: cell.ratio(ours) <= 2.0, 0.0),
        ("smooth: 1e-8 at 150", _at(smooth, 150), lambda cell: cell.median[ours] <= 1e-8, 0.0),
        ("ahead of every peer while q < d", short, lambda cell: cell.ratio(ours) <= 1.0, 0.0),
        ("kinked: at most 1.2x", _of(judged, "kinked"), lambda cell: cell.ratio(ours) <= 1.2, 0.0),
        ("jumps: ahead at 50 and 150", _at(_of(judged, "jumps"), 50, 150), lambda cell: cell.ratio(ours) <= 1.0, 0.0),
        (
            "noise: at most 1.5x from 50 on",
            _at(_of(judged, "noise"), 50, 150),
            lambda cell: cell.ratio(ours) <= 1.5,
            0.0,
        ),
    ]
    lines = []
    for name, part, met, share in rows:
        missed = [f"{cell.family}@{cell.budget}" for cell in part if not met(cell)]
        verdict = "PASS" if len(missed) <= share * len(part) else "FAIL"
        named = f": {', '.join(missed[:8])}{' ...' if len(missed) > 8 else ''}" if missed else ""
        lines.append(f"{verdict}  {name}: {len(missed)} of {len(part)} cells miss it{named}")
    return lines


def _of(cells_: Iterable[Cell], kind: str) -> list[Cell]:
    return [cell for cell in cells_ if cell.kind == kind]


def _at(cells_: Iterable[Cell], *budgets: int) -> list[Cell]:
    return [cell for cell in cells_ if cell.budget in budgets]
