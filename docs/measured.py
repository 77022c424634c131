"""The measured figures of "Choosing a method": from what ``pzos bench --out`` wrote to the table and the picture.

    python docs/measured.py FOLDER/gaps.csv ...

writes docs/_static/measured.csv (medians over instances), docs/measured.md (the table) and docs/_static/choosing.svg.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from html import escape
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
AT = (20, 50, 150, 450)
FAMILIES = {
    "security n=10": "n = 10",
    "security n=50": "n = 50",
    "security n=100": "n = 100",
    "security n=300": "n = 300",
    "routing lambda=1": "λ = 1",
    "routing lambda=0.1": "λ = 0.1",
    "routing lambda=0.02": "λ = 0.02",
}
#: Method of the test bed -> how the table names it, queries a step, what is proved about it.
METHODS = {
    "zos-paper": ("`ZOS`, the paper's step", "2", "Goldstein"),
    "pzos-paper": ("`PZOS`, the paper's step", "3", "both notions"),
    "pzos-tuned": ("`PZOS`, tuned step", "3", "both notions"),
    "pzos-memory": ("`MemoryPZOS`", "2", "none at its defaults"),
    "pzos-secant": ("`SecantPZOS`", "2", "none"),
    "default": ("the default, nothing declared", "1", "none"),
    "default declared": ("the default, own effect and conservation declared", "1", "none"),
    "pycma": ("pycma", "1", "none"),
    "nevergrad": ("nevergrad (NgIohTuned)", "1", "none"),
    "cobyqa": ("COBYQA (SciPy)", "1", "smooth problems"),
    "dfo-ls": ("DFO-LS", "1", "smooth least squares"),
    "white-box": ("*white box: the followers' exact Jacobian*", "1", "*not available to us*"),
}
Gaps = dict[tuple[str, str], dict[int, float]]


def read(paths: list[Path]) -> Gaps:
    """Return the median gap after each count of queries, by family and method; a run that ended early stays there."""
    runs: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                family, method = row["family"], row["method"]
                if family.endswith(" declared"):
                    family, method = family.removesuffix(" declared"), f"{method} declared"
                if not row["failure"]:
                    runs[family, method, row["seed"]][int(row["query"])] = max(float(row["gap"]), 0.0)
    reached: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (family, method, _), gaps in runs.items():
        for at in AT:
            reached[family, method][at].append(gaps[max(query for query in gaps if query <= at)])
    return {name: {at: median(gaps) for at, gaps in found.items()} for name, found in reached.items()}


def shown(gap: float) -> str:
    """Return a gap as people read it.

    >>> shown(0.123), shown(0.0123), shown(3e-4), shown(1e-12)
    ('.12', '.012', '3e-4', '-')
    """
    if gap < 1e-7:
        return "-"
    if gap >= 0.995:
        return "1"
    return f"{gap:.2g}".removeprefix("0") if gap >= 1e-3 else f"{gap:.0e}".replace("e-0", "e-")


def table(gaps: Gaps) -> str:
    """Return the table: families across, methods down, the gap at 20 / 50 / 150 / 450 queries."""
    heads = ["method", "queries a step", *FAMILIES.values(), "proved under its assumptions"]
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    for method, (name, queries, proved) in METHODS.items():
        found = [gaps.get((family, method), {}) for family in FAMILIES]
        cells = [" / ".join(shown(cell[at]) if at in cell else "?" for at in AT[1:]) if cell else "" for cell in found]
        if any(cells):
            lines.append(f"| {name} | {queries} | {' | '.join(cells)} | {proved} |")
    return "\n".join(lines) + "\n"


def write_csv(gaps: Gaps, path: Path) -> None:
    """Write the medians, for those who want the digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["family", "method", *(f"gap after {at} queries" for at in AT)])
        for (family, method), cell in sorted(gaps.items()):
            writer.writerow([family, method, *(f"{cell[at]:.3g}" if at in cell else "" for at in AT)])


def picture(gaps: Gaps) -> str:
    """Return the decision picture as SVG: questions on the left, methods with their figures on the right."""

    def gap(method: str, at: int) -> str:
        return shown(gaps["security n=100", method][at])

    questions = [
        (
            ("Must the method itself carry", "the paper's guarantee?"),
            ("MemoryPZOS (or PZOS)", f"450 queries: {gap('pzos-memory', 450)}; PZOS {gap('pzos-paper', 450)}"),
        ),
        (
            ("Is there a model of the followers,", "however wrong?"),
            ("MemoryPZOS with a ModelPrediction", "unbiased; its noise follows the model's error"),
        ),
        (
            ("Does a query cost mere milliseconds,", "or d in the thousands?"),
            ("SecantPZOS, then certify", f"450 queries: {gap('pzos-secant', 450)}; little work of its own"),
        ),
        (
            ("Otherwise queries are what costs.", "Is structure known (conserved, ...)?"),
            ("the default, with the structure declared", f"50 queries: {gap('default declared', 50)}"),
        ),
        (("Nothing is known about", "the followers."), ("the default", f"50 queries: {gap('default', 50)}")),
    ]
    rows = []
    for number, (asked, advice) in enumerate(questions):
        top, last = 44 + 104 * number, number == len(questions) - 1
        rows += [
            _box(16, top, 350, asked, "#0072B2", "#eef4fb"),
            _box(470, top, 394, advice, "#D55E00", "#fff5ec", True),
        ]
        rows.append(f"<path d='M366 {top + 36} H462' marker-end='url(#tip)'/>")
        rows.append("" if last else f"<text x='414' y='{top + 26}' text-anchor='middle'>yes</text>")
        rows.append("" if last else f"<path d='M190 {top + 72} v24' marker-end='url(#tip)'/>")
        rows.append("" if last else f"<text x='204' y='{top + 90}'>no</text>")
    height = 44 + 104 * len(questions) - 16
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 880 {height}' font-family='system-ui, sans-serif' "
        "font-size='16' fill='#1a1a1a' stroke-width='1.6'><rect width='100%' height='100%' fill='#fff'/>"
        "<defs><marker id='tip' markerWidth='9' markerHeight='8' refX='8' refY='4' orient='auto'>"
        "<path d='M0 0 L9 4 L0 8 z' stroke='none' fill='#1a1a1a'/></marker></defs>"
        "<text x='864' y='28' text-anchor='end' font-size='14'>figures: gap to the optimum, security game with 100 "
        "decisions, median of 5</text>"
        f"<g stroke='#1a1a1a' fill='none'>{''.join(row for row in rows if row.startswith('<path'))}</g>"
        f"{''.join(row for row in rows if not row.startswith('<path'))}</svg>\n"
    )


def _box(x: int, y: int, width: int, lines: tuple[str, str], edge: str, fill: str, strong: bool = False) -> str:
    weight = " font-weight='600'" if strong else ""
    return (
        f"<rect x='{x}' y='{y}' width='{width}' height='72' rx='9' stroke='{edge}' fill='{fill}'/>"
        f"<text x='{x + 16}' y='{y + 30}'{weight}>{escape(lines[0])}</text>"
        f"<text x='{x + 16}' y='{y + 54}'>{escape(lines[1])}</text>"
    )


def main(paths: list[str]) -> None:
    """Write the three files."""
    gaps = read([Path(path) for path in paths])
    write_csv(gaps, HERE / "_static" / "measured.csv")
    (HERE / "measured.md").write_text(table(gaps), encoding="utf-8")
    (HERE / "_static" / "choosing.svg").write_text(picture(gaps), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
