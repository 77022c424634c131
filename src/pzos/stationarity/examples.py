"""Both examples of the appendix (Sec. B.4), ready to be solved, certified, checked for every delta and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pzos.base.errors import MissingExtra
from pzos.base.types import Matrix, Vector
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.stationarity.piecewise import Piece, PiecewiseResponse, goldstein_interval, partial_goldstein_interval


class Example(NamedTuple):
    """A one-dimensional leader-follower problem looked at in the point x = 0."""

    leader: Leader
    response: PiecewiseResponse
    name: str

    def problem(self) -> Problem:
        """Return it as a problem that can only be queried."""
        return Problem(self.leader, self.response, x0=np.zeros(1), name=self.name)

    def objective(self, x: float) -> float:
        """Return F(x) = f(x, y*(x))."""
        return self.leader.value(np.array([x]), self.response(x))

    def intervals(self, deltas: Vector, x: float = 0.0) -> Matrix:
        """Return rows (full low, full high, partial low, partial high), one per delta."""
        rows = [
            (*goldstein_interval(self.leader, self.response, x, float(delta)),
             *partial_goldstein_interval(self.leader, self.response, x, float(delta)))
            for delta in deltas
        ]  # fmt: skip
        return np.array(rows)


def _linear(*coefficients: tuple[float, float]) -> Piece:
    """Return the piece whose component i is a_i + b_i x."""
    constants, slopes = (np.array(column, dtype=np.float64) for column in zip(*coefficients, strict=True))
    return Piece(lambda x: constants + slopes * x, lambda x: slopes)


def full_not_partial() -> Example:
    """Return Example 1: f = (x - 1)^2 + y, y* = |x|. Goldstein stationary for delta >= 1/2, never partially so."""
    leader = leader_from_functions(
        lambda x, y: float((x[0] - 1.0) ** 2 + y[0]),
        lambda x, y: 2.0 * (x - 1.0),
        lambda x, y: np.ones(1),
        name="(x - 1)^2 + y",
    )
    response = PiecewiseResponse((0.0,), (_linear((0.0, -1.0)), _linear((0.0, 1.0))))
    return Example(leader, response, "F(x) = (x - 1)^2 + |x|")


def partial_not_full() -> Example:
    """Return Example 2: f = y_1 - y_2^2, y* = (|x|, |x - 1|). Partially stationary from delta = 1, fully from 3/2."""
    leader = leader_from_functions(
        lambda x, y: float(y[0] - y[1] ** 2),
        lambda x, y: np.zeros(1),
        lambda x, y: np.array([1.0, -2.0 * y[1]]),
        name="y_1 - y_2^2",
    )
    left, middle, right = (
        _linear((0.0, -1.0), (1.0, -1.0)),
        _linear((0.0, 1.0), (1.0, -1.0)),
        _linear((0.0, 1.0), (-1.0, 1.0)),
    )
    return Example(leader, PiecewiseResponse((0.0, 1.0), (left, middle, right)), "F(x) = |x| - (x - 1)^2")


def draw(example: Example, deltas: Vector, path: str | Path | None = None) -> Any:
    """Draw F and both subdifferentials at 0 against delta; returns the matplotlib figure, written to ``path``."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "drawing an example") from error
    figure = Figure(figsize=(9.0, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    grid = np.linspace(-1.5, 2.5, 401)
    left.plot(grid, [example.objective(float(x)) for x in grid])
    left.plot([0.0], [example.objective(0.0)], "o", color="tab:red")
    left.set(xlabel="x", ylabel="F(x)", title=example.name)
    rows = example.intervals(deltas)
    right.fill_between(deltas, rows[:, 0], rows[:, 1], alpha=0.4, label="Goldstein")
    right.fill_between(deltas, rows[:, 2], rows[:, 3], alpha=0.4, label="partial Goldstein")
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set(xlabel="delta", ylabel="subdifferential at 0", title="contains 0 where x = 0 is stationary")
    right.legend()
    if path is not None:
        figure.savefig(path)
    return figure
