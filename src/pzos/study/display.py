"""A result as people see it first: the verdict, then a few lines; in a notebook with the picture."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

import numpy as np

from pzos.base.checks import aligned
from pzos.base.columns import Columns
from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.problem.problem import NAMELESS

if TYPE_CHECKING:
    from pzos.study.result import Result

_ENTRIES = 8


def number(value: float, unit: str = "") -> str:
    """Return F as it is printed, in its unit."""
    return "not known (it was not queried)" if value != value else f"{value:.8g} {unit}".rstrip()


def entries(x: Vector, named: Columns = NAMELESS) -> str:
    """Return a point in one line, by its names if it has any; of a long one the first and last entries."""
    if named and x.size <= _ENTRIES:
        return named.in_words(x)
    text = np.array2string(x, precision=6, threshold=_ENTRIES, max_line_width=10**6)
    return text if x.size <= _ENTRIES else f"{text} ({x.size} entries)"


def named_x(result: Result) -> str:
    """Return the point of a result in one line, by the names of its decisions."""
    return entries(result.x, NAMELESS if result.known is None else result.known.decisions)


def verdict(result: Result) -> str:
    """Return in a sentence what came out and why the run ended."""
    known = [value for value in result.trace["value"].tolist() if value == value]
    came = ""
    if result.value == result.value and known and result.given is None and known[0] != result.value:
        came = f", {'down' if result.value < known[0] else 'up'} from {number(known[0], result.unit)} at the start"
    broken = "" if result.violation <= 0.0 else ", constraints violated"
    found = (
        f"F = {number(result.value, result.unit)}"
        if result.value == result.value
        else "F = ? (x itself was not asked about)"
    )
    return f"{found}{came}{broken}; {result.message}"


def brief_rows(result: Result) -> list[tuple[str, str]]:
    """Return what comes below the verdict: names and texts, at most nine of them."""
    spent = ", ".join(f"{name} {count}" for name, count in result.ledger.items())
    rows = [
        ("x", named_x(result)),
        ("queries", f"{result.nfev} in {result.seconds:.3g} s" + (f": {spent}" if spent else "")),
        ("method", f"{result.solver.partition('(')[0]}, seed {result.seed}"),
    ]
    if result.best_value == result.best_value and result.best_value != result.value:
        goal = "lowest" if result.sense == "min" else "highest"
        rows.insert(1, (f"{goal} F seen", f"{number(result.best_value, result.unit)} (result.best_x)"))
    if result.problem:
        rows.insert(0, ("problem", result.problem))
    if result.standing is not None:
        rows += result.standing.rows()[:2]
    if result.certificate is not None:
        rows.append(("certificate", result.certificate.sentence))
    elif result.uncertified:
        rows.append(("certificate", result.uncertified))
    return [*rows, ("more", "print(result.table())")]


def brief(result: Result) -> str:
    """Return the verdict and a few lines."""
    return f"{verdict(result)}\n{aligned(brief_rows(result))}"


def brief_page(result: Result) -> str:
    """Return the same as HTML, with the picture where matplotlib is installed."""
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(text)}</td></tr>"
        for name, text in brief_rows(result)
    )
    return f"<p><strong>{html.escape(verdict(result))}</strong></p><table>{rows}</table>{_picture(result)}"


def _picture(result: Result) -> str:
    if not len(result.trace):
        return ""
    file = io.BytesIO()
    try:
        result.plot().savefig(file, format="png", dpi=100)
    except MissingExtra:
        return ""
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="F against queries" src="data:image/png;base64,{data}">'
