"""Both examples of the appendix: F, and both subdifferentials at x = 0 as functions of delta (App. B.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pzos.base.figures import BLUE, ORANGE, new_figure
from pzos.base.types import Matrix, Vector
from pzos.experiments.drawing import save
from pzos.experiments.tables import Claim, Context, Drawn, Figure
from pzos.stationarity.piecewise import Example, full_not_partial, partial_not_full

_DELTAS = np.linspace(0.01, 2.0, 200)
_COLUMNS = ("goldstein_low", "goldstein_high", "partial_low", "partial_high")


def _published_first(delta: float) -> tuple[float, float, float, float]:
    """Return the intervals of Example 1: [-2 delta - 3, 2 delta - 1] and [-3, -1]."""
    return -2.0 * delta - 3.0, 2.0 * delta - 1.0, -3.0, -1.0


def _published_second(delta: float) -> tuple[float, float, float, float]:
    """Return the intervals of Example 2: [1, 3] and [1, 3] below delta = 1, else [3 - 2 d, 1 + 2 d] and [-1, 3]."""
    if delta < 1.0:
        return 1.0, 3.0, 1.0, 3.0
    return 3.0 - 2.0 * delta, 1.0 + 2.0 * delta, -1.0, 3.0


def _goldstein(context: Context) -> Drawn:
    examples = (full_not_partial(), partial_not_full())
    intervals = [example.intervals(_DELTAS) for example in examples]
    _draw(context, examples, intervals)
    columns: dict[str, Vector] = {"delta": _DELTAS}
    for number, rows in enumerate(intervals, start=1):
        columns |= {f"example{number}_{name}": rows[:, at] for at, name in enumerate(_COLUMNS)}
    claims = [_interval_claim(1, intervals[0], _published_first), _interval_claim(2, intervals[1], _published_second)]
    return Drawn(columns, claims + _stationarity_claims(intervals))


def _interval_claim(number: int, rows: Matrix, published: Callable[[float], tuple[float, ...]]) -> Claim:
    error = float(np.abs(rows - np.array([published(float(delta)) for delta in _DELTAS])).max())
    return Claim(
        f"Example {number}: both subdifferentials are the paper's intervals for every delta",
        "App. B.4",
        f"largest difference {error:.1e} over {_DELTAS.size} values of delta",
        error < 1e-9,
    )


def _stationarity_claims(intervals: Sequence[Matrix]) -> list[Claim]:
    contains = [((rows[:, 0] <= 0) & (rows[:, 1] >= 0), (rows[:, 2] <= 0) & (rows[:, 3] >= 0)) for rows in intervals]
    (full_1, partial_1), (full_2, partial_2) = contains
    between = (_DELTAS >= 1.0) & (_DELTAS < 1.5)
    first = float(_DELTAS[full_1].min())
    return [
        Claim("Example 1: x = 0 is Goldstein stationary from delta = 1/2 on, and never partially", "App. B.4",
              f"from delta = {first:g} on the grid; partially at {int(partial_1.sum())} of {_DELTAS.size}",
              abs(first - 0.5) <= 0.01 and not partial_1.any()),
        Claim("Example 2: for delta in [1, 3/2) x = 0 is partially Goldstein stationary, but not Goldstein stationary",
              "App. B.4", f"at {int((partial_2 & ~full_2)[between].sum())} of {int(between.sum())} values",
              bool((partial_2 & ~full_2)[between].all())),
    ]  # fmt: skip


def _draw(context: Context, examples: Sequence[Example], intervals: Sequence[Matrix]) -> None:
    figure, axes = new_figure(7.2, 5.6, nrows=2, ncols=2)
    grid = np.linspace(-1.5, 2.5, 401)
    for column, (example, rows) in enumerate(zip(examples, intervals, strict=True)):
        above, below = axes[0][column], axes[1][column]
        above.plot(grid, [example.objective(float(x)) for x in grid], color=BLUE, linewidth=1.8)
        above.plot([0.0], [example.objective(0.0)], "o", color=ORANGE, label="$x_0 = 0$")
        above.set(xlabel="$x$", ylabel="$F(x)$", title=example.name)
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
        "The two examples of the appendix. Top: F, with the point x = 0. Bottom: both subdifferentials at 0 against "
        "delta; x = 0 is stationary in a sense from where the set of that sense contains zero.",
        lambda scale, seed: [],
        _goldstein,
    )
}
