"""The related work on equal terms: the table and the picture of docs/related.md.

    python benchmarks/related.py run     # writes docs/_static/related.csv, then as below
    python benchmarks/related.py show    # from that file: docs/related_table.md and docs/_static/related.png

Every method is tuned on instances 100 and 101 of each family for a budget of 450 queries (twelve candidates each,
``testbed/tuning.py``) and measured on instances 0, 1, ...; PZOS, ZOS and PZOBO also with a tuning for every budget.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

DOCS = Path(__file__).resolve().parents[1] / "docs"
CSV, TABLE, PICTURE = DOCS / "_static" / "related.csv", DOCS / "related_table.md", DOCS / "_static" / "related.png"
FAMILIES = {"security-50": "security, n = 50", "routing-0.1": "routing, λ = 0.1"}
BUDGETS = (50, 150, 450)
EACH_BUDGET = ("pzos-tuned", "zos-tuned", "pzobo")


class About(NamedTuple):
    """How the table names a method: who it is, what a step queries, and what its paper proves."""

    name: str
    reference: str
    queries: str
    proved: str
    group: str


OURS, KNOWN, BLACK, WHITE = "remembers answers", "f known, y* queried", "F alone", "white box"
GROUPS = {OURS: ("#000000", "D"), KNOWN: ("#d55e00", "s"), BLACK: ("#0072b2", "o"), WHITE: ("#7f7f7f", "^")}
_GOLDSTEIN = "Goldstein, F Lipschitz"
METHODS = {
    "pzos-memory": About("`MemoryPZOS`", "[Choosing a method](choosing.md)", "2", "nothing at its defaults", OURS),
    "pzos-tuned": About("`PZOS`", "the paper, Algorithm 1", "3", "both Goldstein notions", KNOWN),
    "pzobo": About("`PZOBO`", "Sow, Ji, Liang 2022", "2", "small gradients, y* differentiable", KNOWN),
    "guided": About(
        "`GuidedZO`", "Hikima, Sawada, Fujino 2025", "3, or 2", "stationary points, F differentiable", KNOWN
    ),
    "zos-tuned": About("`ZOS`", "the paper, Algorithm 2", "2", _GOLDSTEIN, BLACK),
    "zsol": About("`ZSOL`", "Cui, Shanbhag, Yousefian 2023", "2", "values, F convex", BLACK),
    "zsol-vr": About("`VarianceReducedZSOL`", "the same", "k + 2", "projected residual, F Lipschitz", BLACK),
    "nesterov-spokoiny": About("`NesterovSpokoiny`", "Nesterov, Spokoiny 2017", "2", "values, F convex", BLACK),
    "gfm": About("`GFM`", "Lin, Zheng, Jordan 2022", "2", _GOLDSTEIN, BLACK),
    "2-gfm": About("`TwoPhaseGFM`", "the same", "2", "the same, with high probability", BLACK),
    "gfm-plus": About(
        "`GFMPlus`", "Chen, Xu, Luo 2023", "20 or 40, then 4 or 8", _GOLDSTEIN + ", fewer samples", BLACK
    ),
    "kornowski-shamir": About("`KornowskiShamir`", "Kornowski, Shamir 2024", "2", _GOLDSTEIN + ", linear in d", BLACK),
    "gradient-mapping": About(
        "`GradientMappingZO`", "Liu, Chen, Luo, Low 2024", "8", "gradient mapping on a set", BLACK
    ),
    "frank-wolfe": About("`FrankWolfeZO`", "the same", "8", "Frank-Wolfe gap on a set", BLACK),
    "spsa": About("`SPSA`", "Spall 1992", "2", "local minimum in the limit, F smooth", BLACK),
    "follower-agnostic": About(
        "`FollowerAgnostic`", "Maheshwari and others 2024", "2", "stationary points, followers who adapt", BLACK
    ),
    "zo-stackelberg": About(
        "`ZOStackelberg`", "Masiha and others 2026", "4", "Goldstein, equilibria with an error", BLACK
    ),
    "flaxman": About("`FlaxmanOnePoint`", "Flaxman, Kalai, McMahan 2005", "1", "regret, F convex", BLACK),
    "big-hype": About(
        "BIG Hype", "Grontas and others 2024", "1, with its Jacobian", "needs the followers' model", WHITE
    ),
    "white-box": About("L-BFGS-B", "SciPy", "1, with its Jacobian", "needs the followers' model", WHITE),
}


class Gap(NamedTuple):
    """The gap of one run after so many queries."""

    family: str
    method: str
    tuned_for: int
    seed: int
    queries: int
    gap: float


def run(families: Iterable[str], instances: int) -> None:
    """Run everything and write the gaps, family by family, as they come."""
    from testbed.cases import make
    from testbed.table import curve

    with CSV.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Gap._fields)
        for family in families:
            cases = [make(family, seed) for seed in range(instances)]
            jobs = [(name, BUDGETS[-1]) for name in METHODS]
            jobs += [(name, budget) for name in EACH_BUDGET for budget in BUDGETS[:-1]]
            for name, budget in jobs:
                for case in cases:
                    found = curve(case, name, budget)
                    if found.failure:
                        raise RuntimeError(f"{family}, {name}, instance {case.seed}: {found.failure}")
                    read = [at for at in BUDGETS if at <= budget] if budget == BUDGETS[-1] else [budget]
                    writer.writerows(Gap(family, name, budget, case.seed, at, round(found.at(at), 8)) for at in read)
                file.flush()
                sys.stderr.write(f"{family}, {name}, {budget}: gap {found.at(budget):.2g}, {found.seconds:.1f} s\n")


def read() -> list[Gap]:
    """Return what was measured."""
    with CSV.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Gap(r["family"], r["method"], int(r["tuned_for"]), int(r["seed"]), int(r["queries"]), float(r["gap"]))
        for r in rows
    ]


def middle(gaps: Iterable[Gap], family: str, method: str, queries: int, tuned_for: int = BUDGETS[-1]) -> float:
    """Return the median gap over the instances."""
    return median(
        max(g.gap, 0.0)
        for g in gaps
        if (g.family, g.method, g.queries, g.tuned_for) == (family, method, queries, tuned_for)
    )


def shown(gap: float) -> str:
    """Return a gap as people read it.

    >>> shown(0.123), shown(0.0123), shown(3e-4), shown(1e-12), shown(1.0)
    ('.12', '.012', '3e-4', '-', '1')
    """
    if gap < 1e-7:
        return "-"
    if gap >= 0.995:
        return "1"
    return f"{gap:.2g}".removeprefix("0") if gap >= 1e-3 else f"{gap:.0e}".replace("e-0", "e-")


def table(gaps: list[Gap]) -> str:
    """Return the table: a method a row, the median gap at 50 / 150 / 450 queries in each family."""
    heads = ["method", "reference", "queries a step", "its guarantee", *FAMILIES.values()]
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    for name, about in METHODS.items():
        cells = [" / ".join(shown(middle(gaps, family, name, at)) for at in BUDGETS) for family in FAMILIES]
        lines.append("| " + " | ".join([about.name, about.reference, about.queries, about.proved, *cells]) + " |")
    return "\n".join(lines) + "\n"


def each_budget(gaps: list[Gap]) -> str:
    """Return the small table of the methods that were tuned for every budget."""
    lines = ["| tuned for each budget | " + " | ".join(FAMILIES.values()) + " |", "| --- | --- | --- |"]
    for name in EACH_BUDGET:
        cells = [" / ".join(shown(middle(gaps, family, name, at, at)) for at in BUDGETS) for family in FAMILIES]
        lines.append(f"| {METHODS[name].name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(gaps: list[Gap]) -> None:
    """Draw the gap of every method after 50, 150 and 450 queries, best at the top."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    floor = 1e-4  # below it the white boxes are alone
    figure, panels = pyplot.subplots(1, 2, figsize=(11.5, 6.6), sharex=True)
    for axes, (family, title) in zip(panels, FAMILIES.items(), strict=True):
        ends = {name: middle(gaps, family, name, BUDGETS[-1]) for name in METHODS}
        names = sorted(METHODS, key=lambda name: ends[name], reverse=True)
        for place, name in enumerate(names):
            colour, mark = GROUPS[METHODS[name].group]
            at = [max(middle(gaps, family, name, budget), floor) for budget in BUDGETS]
            axes.plot(at, [place] * 3, color=colour, linewidth=1.0, alpha=0.5)
            for x, size, fill in zip(at, (26, 42, 64), ("white", "#bbbbbb", colour), strict=True):
                axes.scatter(x, place, s=size, marker=mark, facecolor=fill, edgecolor=colour, linewidth=1.3, zorder=3)
        axes.set_yticks(range(len(names)), [METHODS[name].name.strip("`") for name in names])
        axes.set(
            xscale="log",
            xlim=(floor * 0.6, 1.6),
            title=title,
            xlabel="gap, median over the instances (below 1e-4: at 1e-4)",
        )
        axes.grid(axis="x", color="#dddddd", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
    keys = [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=group) for group, (colour, mark) in GROUPS.items()
    ]
    for budget, size, fill in zip(BUDGETS, (5, 6.5, 8), ("white", "#bbbbbb", "black"), strict=True):
        look = {"color": "black", "marker": "o", "linestyle": "", "markersize": size, "markerfacecolor": fill}
        keys.append(Line2D([], [], label=f"{budget} queries", **look))
    figure.legend(handles=keys, loc="lower center", ncols=7, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(PICTURE, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Run, or show what was run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--instances", type=int, default=7, help="instances 0, 1, ... of each family")
    args = parser.parse_args()
    if args.what == "run":
        run(args.families, args.instances)
    gaps = read()
    if {g.family for g in gaps} == set(FAMILIES):
        TABLE.write_text(table(gaps) + "\n" + each_budget(gaps), encoding="utf-8")
        draw(gaps)


if __name__ == "__main__":
    main()
