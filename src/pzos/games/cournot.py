"""Nash-Cournot competition with a Stackelberg leader: the classic MPEC.

Each market m has the inverse demand p_m = alpha_m - beta_m (x_m + sum_i y_im). The leader commits to its
quantities x; then N firms choose theirs, 0 <= y_im <= capacity_im, at the cost c_im y + d_im y^2 / 2, in a Nash
equilibrium. In a market with residual intercept A = alpha - beta x and price t, firm i supplies

    y_i = clip((t - c_i) / (beta + d_i), 0, capacity_i)       and       t + beta sum_i y_i(t) = A.

The left side is increasing and piecewise linear in t with corners that do not depend on x: they are sorted
once, and an equilibrium is one look-up and one division, without iterations.
The leader maximises  sum_m p_m x_m - c_m x_m  -  e (sum_m x_m)^2 / 2  over x >= 0, sum x <= its capacity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import (
    Faults,
    as_rows,
    at_least,
    check_entries,
    checked,
    frozen_array,
    frozen_vector,
    note_fields,
    number,
    whole,
)
from pzos.base.errors import NotConverged
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Budget, Domain, Nonnegative

_CERTIFIED = 1e-12


@dataclass(frozen=True, eq=False)
class _Supply:
    """One market's supply in order of its corners: on piece k the firms sell ``offset + slope * price``."""

    corners: Vector
    reach: Vector
    slope: Vector
    offset: Vector

    @classmethod
    def of(cls, beta: float, cost: Vector, steepness: Vector, capacity: Vector) -> _Supply:
        """Sort the prices at which firms enter (c) or are sold out (c + capacity * steepness)."""
        active = capacity > 0.0
        cost, steepness, capacity = cost[active], steepness[active], capacity[active]
        leave = cost + capacity * steepness
        corners = np.unique(np.concatenate([cost, leave[np.isfinite(leave)]]))
        # the piece below the first corner, then one piece from each corner on; each summed afresh from the
        # firms in order, so that no rounding travels from piece to piece
        before = np.concatenate([[-np.inf], corners])[:, None]
        selling = (cost <= before) & (before < leave)
        sold_out = leave <= before
        slope = np.where(selling, 1.0 / steepness, 0.0).sum(axis=1)
        offset = (np.where(sold_out, capacity, 0.0) - np.where(selling, cost / steepness, 0.0)).sum(axis=1)
        reach = corners + beta * (offset[1:] + slope[1:] * corners)
        return cls(corners, np.maximum.accumulate(reach), slope, offset)

    def price(self, beta: float, intercept: Vector) -> Vector:
        """Solve t + beta * supply(t) = intercept for each entry of ``intercept``."""
        piece = np.searchsorted(self.reach, intercept, side="right")
        return (intercept - beta * self.offset[piece]) / (1.0 + beta * self.slope[piece])


@dataclass(frozen=True, eq=False, repr=False)
class CournotGame:
    """Cournot firms (rows) in several markets (columns), and a leader that moves first.

    ``demand_intercept`` and ``demand_slope``: one entry per market; ``marginal_cost``, ``cost_curvature`` and
    ``capacity`` (infinite: none): firms x markets; the leader's data as in the module's text. The response is
    the firms' quantities, row by row, as one vector.

    >>> game = CournotGame([10.0], [1.0], [[1.0], [1.0]], [[0.0], [0.0]], [[np.inf], [np.inf]], [1.0])
    >>> game.response([3.0])    # (A - c) / (beta (N + 1)) = (10 - 3 - 1) / 3
    array([2., 2.])
    """

    demand_intercept: Vector
    demand_slope: Vector
    marginal_cost: Matrix
    cost_curvature: Matrix
    capacity: Matrix
    leader_marginal_cost: Vector
    leader_cost_curvature: float = checked(at_least(0.0, "a finite number >= 0", "costs must be convex"), default=0.0)
    leader_capacity: float = checked(
        number(lambda capacity: capacity > 0.0, "a positive number", "use inf for no capacity", finite=False),
        default=float("inf"),
    )

    def __post_init__(self) -> None:
        faults = Faults("CournotGame")
        markets = len(self.demand_intercept) if np.ndim(self.demand_intercept) == 1 else None
        for name, strict in (("demand_intercept", True), ("demand_slope", True), ("leader_marginal_cost", False)):
            vector = frozen_vector(faults, name, getattr(self, name), markets, minimum=0.0, strict=strict)
            object.__setattr__(self, name, vector)
        self._keep_tables(faults, markets)
        note_fields(faults, self)
        faults.raise_if_any()
        for name in ("leader_cost_curvature", "leader_capacity"):
            object.__setattr__(self, name, float(getattr(self, name)))

    def _keep_tables(self, faults: Faults, markets: int | None) -> None:
        shape: tuple[int, ...] | None = None
        for name in ("marginal_cost", "cost_curvature", "capacity"):
            table = frozen_array(faults, name, getattr(self, name))
            object.__setattr__(self, name, table)
            if table is None or not faults.check(
                table.ndim == 2 and table.size > 0 and markets in (None, table.shape[1]), name, table,
                f"a table of firms x {markets} markets, not shape {table.shape}", "give one row per firm",
            ):  # fmt: skip
                continue
            shape = table.shape if shape is None else shape
            rows = f"{shape[0]} firms as in marginal_cost, not {table.shape[0]}"
            if faults.check(table.shape == shape, name, table, rows, "all tables must have one shape"):
                finite = np.isfinite(table) if name != "capacity" else ~np.isnan(table)
                check_entries(faults, name, table, finite & (table >= 0.0), "a number >= 0")

    def __repr__(self) -> str:
        firms, markets = self.capacity.shape
        return f"CournotGame(firms={firms}, markets={markets}, leader_capacity={self.leader_capacity:.4g})"

    @property
    def firms(self) -> int:
        """Return the number of firms that follow."""
        return int(self.capacity.shape[0])

    @property
    def markets(self) -> int:
        """Return the number of markets, d_x."""
        return int(self.capacity.shape[1])

    @classmethod
    def random(cls, seed: int, firms: int = 5, markets: int = 3) -> CournotGame:
        """Draw an instance in which some capacities bind and some firms stay out.

        alpha ~ U[10, 20], beta ~ U[0.5, 1.5], c ~ U[1, 6], d ~ U[0.1, 0.5]; capacities U[0.3, 1.7] times a
        symmetric firm's quantity; the leader's c ~ U[1, 3], e = 0.2, no capacity.
        """
        faults = Faults("CournotGame.random")
        for name, count in (("firms", firms), ("markets", markets)):
            whole(1, "try 3", expected="a whole number >= 1").note(faults, name, count)
        faults.raise_if_any()
        draw = Keys(seed).generator(Role.INSTANCE)
        intercept, slope = draw.uniform(10.0, 20.0, markets), draw.uniform(0.5, 1.5, markets)
        cost = draw.uniform(1.0, 6.0, (firms, markets))
        curvature = draw.uniform(0.1, 0.5, (firms, markets))
        symmetric = intercept / (slope * (firms + 2))
        capacity = draw.uniform(0.3, 1.7, (firms, markets)) * symmetric
        return cls(intercept, slope, cost, curvature, capacity, draw.uniform(1.0, 3.0, markets), 0.2)

    @cached_property
    def _supplies(self) -> list[_Supply]:
        steepness = self.demand_slope + self.cost_curvature
        markets = self.demand_slope.tolist(), self.marginal_cost.T, steepness.T, self.capacity.T
        return [_Supply.of(*market) for market in zip(*markets, strict=True)]

    def prices(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the equilibrium price of each market (one vector, or a stack of rows as x is).

        Inverse demand is linear throughout: a leader that floods a market alone can push its price below zero.
        """
        rows, single = as_rows("CournotGame.prices", x, self.markets)
        prices = self._equilibrium_prices(rows)
        return prices[0] if single else prices

    def _equilibrium_prices(self, rows: Matrix) -> Matrix:
        residual = self.demand_intercept - self.demand_slope * rows
        markets = zip(self._supplies, self.demand_slope.tolist(), residual.T, strict=True)
        return np.stack([supply.price(beta, intercept) for supply, beta, intercept in markets], axis=1)

    def response(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the firms' Nash equilibrium y*(x), flattened row by row (firm by firm); rows for a stack."""
        rows, single = as_rows("CournotGame.response", x, self.markets)
        answers, _ = self._certified(rows)
        return answers[0] if single else answers

    def _certified(self, rows: Matrix) -> tuple[Matrix, Vector]:
        """Answer rows; the gap is the mismatch of price and demand, relative to the terms it is made of."""
        prices = self._equilibrium_prices(rows)
        steepness = self.demand_slope + self.cost_curvature
        supplied = np.clip((prices[:, None, :] - self.marginal_cost) / steepness, 0.0, self.capacity)
        sold = supplied.sum(axis=1)
        terms = np.abs(prices) + self.demand_slope * (np.abs(rows) + sold) + self.demand_intercept
        mismatch = prices + self.demand_slope * (rows + sold) - self.demand_intercept
        gaps = np.max(np.abs(mismatch) / terms, axis=1)
        if not np.all(gaps <= _CERTIFIED):
            row = int(np.argmax(~(gaps <= _CERTIFIED)))
            raise NotConverged(
                f"CournotGame.response: row {row}: prices miss demand by {gaps[row]:.2e} (relative): expected "
                f"at most {_CERTIFIED:g}; check the scale of the data"
            )
        return supplied.reshape(rows.shape[0], -1), gaps

    def profit(self, x: Vector, y: Vector) -> float:
        """Return the leader's profit f(x, y)."""
        return self.profit_and_gradients(x, y)[0]

    def profit_and_gradients(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        """Return the leader's profit with both exact partial gradients."""
        sold = y.reshape(self.capacity.shape).sum(axis=0)
        margin = self.demand_intercept - self.demand_slope * (x + sold) - self.leader_marginal_cost
        total = float(x.sum())
        value = float((margin * x).sum()) - 0.5 * self.leader_cost_curvature * total * total
        grad_x = margin - self.demand_slope * x - self.leader_cost_curvature * total
        grad_y = np.tile(-self.demand_slope * x, self.firms)
        return value, grad_x, grad_y

    def leader(self) -> Leader:
        """Return the leading firm with exact partial gradients."""
        return leader_from_functions(self.profit, value_and_gradients=self.profit_and_gradients, name="Cournot leader")

    def follower(self) -> Respondent:
        """Return the firms as a batched follower that reports the price mismatch as the gap."""
        return Respondent(self._checked_rows)

    def _checked_rows(self, rows: Matrix) -> tuple[Matrix, Vector]:
        return self._certified(as_rows("Cournot follower", rows, self.markets)[0])

    def domain(self) -> Domain:
        """Return where the leader may move: x >= 0, within its capacity."""
        return Nonnegative() if np.isinf(self.leader_capacity) else Budget(self.leader_capacity)

    def start(self) -> Vector:
        """Return x_0: what a firm among N + 1 alike would sell, (alpha - c) / (beta (N + 2)), within the domain."""
        alike = (self.demand_intercept - self.leader_marginal_cost) / (self.demand_slope * (self.firms + 2))
        return self.domain().project(alike)

    def problem(self, x0: npt.ArrayLike | None = None, structure: Iterable[Any] = ()) -> Problem:
        """Return the leader's problem: maximise profit over its quantities."""
        start = self.start() if x0 is None else x0
        firms, markets = self.capacity.shape
        name = f"Cournot leader, {firms} firms, {markets} markets"
        return Problem(self.leader(), self.follower(), start, self.domain(), "max", name, structure)
