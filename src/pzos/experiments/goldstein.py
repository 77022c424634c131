"""Both examples of the appendix: F, and both subdifferentials at x = 0 as functions of delta (App. B.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pzos.base.figures import BLUE, ORANGE, new_figure
from pzos.base.types import Matrix, Vector
from pzos.experiments.claims import Bar, Claim, Size, Truths, everywhere
from pzos.experiments.drawing import save
from pzos.experiments.tables import Context, Figure, Measured
from pzos.stationarity.piecewise import Example, full_not_partial, partial_not_full

_DELTAS = np.linspace(0.01, 2.0, 200)
_WHERE = "Fig. 11, App. B.4"
_SIZE = Size(_DELTAS.size, 100, "values of delta")
_COLUMNS = ("goldstein_low", "goldstein_high", "partial_low", "partial_high")


def _published_first(delta: float) -> tuple[float, float, float, float]:
    """Return the intervals of Example 1: [-2 delta - 3, 2 delta - 1] and [-3, -1]."""
    return -2.0 * delta - 3.0, 2.0 * delta - 1.0, -3.0, -1.0


def _published_second(delta: float) -> tuple[float, float, float, float]:
    """Return the intervals of Example 2: [1, 3] and [1, 3] below delta = 1, else [3 - 2 d, 1 + 2 d] and [-1, 3]."""
    if delta < 1.0:
        return 1.0, 3.0, 1.0, 3.0
    return 3.0 - 2.0 * delta, 1.0 + 2.0 * delta, -1.0, 3.0


def _goldstein(context: Context) -> Measured:
    examples = (full_not_partial(), partial_not_full())
    intervals = [example.intervals(_DELTAS) for example in examples]
    columns: dict[str, Vector] = {"delta": _DELTAS}
    for number, rows in enumerate(intervals, start=1):
        columns |= {f"example{number}_{name}": rows[:, at] for at, name in enumerate(_COLUMNS)}
    claims = [_interval_claim(1, intervals[0], _published_first), _interval_claim(2, intervals[1], _published_second)]
    return Measured(columns, claims + _stationarity_claims(intervals), lambda: _draw(context, examples, intervals))


def _interval_claim(number: int, rows: Matrix, published: Callable[[float], tuple[float, ...]]) -> Claim:
    error = float(np.abs(rows - np.array([published(float(delta)) for delta in _DELTAS])).max())
    return Claim(
        f"Example {number}: both subdifferentials are the paper's intervals for every delta (largest difference)",
        _WHERE, f"{error:.1e} over {_DELTAS.size} values of delta", error, Bar(most=1e-9, exact=True), _SIZE,
    )  # fmt: skip


def _stationarity_claims(intervals: Sequence[Matrix]) -> list[Claim]:
    """Return where zero lies in which set, against what the paper says, over all values of delta."""
    contains = [((rows[:, 0] <= 0) & (rows[:, 1] >= 0), (rows[:, 2] <= 0) & (rows[:, 3] >= 0)) for rows in intervals]
    (full_1, partial_1), (full_2, partial_2) = contains

    def from_on(delta: float) -> Truths:
        return delta <= _DELTAS + 1e-9  # the grid's own rounding

    return [
        everywhere("Example 1: x = 0 is Goldstein stationary from delta = 1/2 on, and never partially", _WHERE,
                   (full_1 == from_on(0.5)) & ~partial_1, _SIZE, "at {} values of delta"),
        everywhere("Example 2: x = 0 is partially Goldstein stationary from delta = 1 on, Goldstein stationary only "
                   "from 3/2 on", _WHERE, (partial_2 == from_on(1.0)) & (full_2 == from_on(1.5)), _SIZE,
                   "at {} values of delta"),
    ]  # fmt: skip


class _Marks(NamedTuple):
    """What the paper's Fig. 11 shows of one example: its title, the points marked, and the ranges of its axes."""

    title: str
    points: tuple[tuple[float, str, str, str], ...]  # x, marker, colour, words
    xlim: tuple[float, float]
    ylim: tuple[float, float]


_MARKS = (
    _Marks("$f(x,y)=(x-1)^2+y$,  $y^*(x)=|x|$",
           ((0.0, "o", "red", "$x_0=0$"), (0.5, "D", "green", "$x=1/2$")), (-1.5, 2.0), (0.0, 4.5)),
    _Marks("$f(y_1,y_2)=y_1-y_2^2$,  $y^*(x)=(|x|,|x-1|)$",
           ((0.0, "o", "red", "$x_0=0$"), (1.0, "s", "orange", "$z=1$"), (1.5, "^", "green", "$x=3/2$")),
           (-1.5, 2.5), (-3.0, 2.5)),
)  # fmt: skip


def _draw(context: Context, examples: Sequence[Example], intervals: Sequence[Matrix]) -> None:
    figure, axes = new_figure(7.2, 5.6, nrows=2, ncols=2)
    for column, (example, rows, marks) in enumerate(zip(examples, intervals, _MARKS, strict=True)):
        above, below = axes[0][column], axes[1][column]
        grid = np.linspace(*marks.xlim, 401)
        above.plot(grid, [example.objective(float(x)) for x in grid], color="blue", linewidth=1.6)
        for x, marker, colour, words in marks.points:
            above.plot([x], [example.objective(x)], marker, color=colour, markersize=7, linestyle="none", label=words)
        above.set(xlabel="$x$", ylabel="$F(x)$", title=marks.title, xlim=marks.xlim, ylim=marks.ylim)
        for at, label, colour in ((0, "Goldstein", BLUE), (2, "partial Goldstein", ORANGE)):
            below.fill_between(_DELTAS, rows[:, at], rows[:, at + 1], color=colour, alpha=0.3, linewidth=0, label=label)
            below.plot(_DELTAS, rows[:, at : at + 2], color=colour, linewidth=1.2)
        below.axhline(0.0, color="black", linewidth=1.0)
        below.set(xlabel="$\\delta$", ylabel="subdifferential at $x_0$", xlim=(0, 2))
        for one in (above, below):
            one.title.set_fontsize(9)
            one.legend(frameon=False, fontsize=8)
    save(figure, context.folder, "goldstein")


FIGURES = {
    "goldstein": Figure(
        "Goldstein and partial Goldstein stationarity",
        "The two examples of the appendix. Top: F, with the points the paper marks. Bottom: both subdifferentials at 0 "
        "against delta; x = 0 is stationary in a sense from where the set of that sense contains zero.",
        lambda scale, seed: [],
        _goldstein,
    )
}
