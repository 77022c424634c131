"""The security game of the paper (Sec. 5.2): a defender invests, an attacker answers.

Attacker, given the investment x:   max_y  sum_i w_i p_i - c^A_i y_i^2 / 2   over y >= 0, sum y <= B
Defender:                           min_x  sum_i v_i p_i + c^D_i x_i^2 / 2   over x >= 0
with the contest success function   p_i = y_i / (x_i + y_i + b_i).

Outside x >= 0, where probes x - mu v can land, an investment below zero counts as none: the contest is fought
with max(x_i, 0) by attacker and defender alike, so y* and p stay defined and Lipschitz on the whole space.
The defender's cost stays c^D x^2 / 2 everywhere, and at x_i = 0 grad_x is the derivative into the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import (
    Faults,
    checked,
    frozen_vector,
    not_finite,
    note_fields,
    number,
    positive,
    shaped_rows,
    whole,
)
from pzos.base.errors import NotConverged
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.problem.follower import Respondent
from pzos.problem.leader import Leader, leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Nonnegative

_CERTIFIED = 1e-12


@cache
def _compiled() -> Callable[..., float]:
    """Return the kernel, compiled (or loaded from numba's cache) by a first call on one target."""
    from pzos.games._compile import announce_compilation
    from pzos.games._security_kernel import solve_rows

    one = np.ones(1)
    one.flags.writeable = False  # the type of a game's data; queries and answers are fresh arrays
    with announce_compilation("security follower"):
        solve_rows(np.ones((1, 1)), one, one, one, 1.0, np.empty((1, 1)), np.empty((1, 4)))
    compiled: Callable[..., float] = solve_rows
    return compiled


@dataclass(frozen=True, slots=True, eq=False)
class ResponseCertificate:
    """Why answers are right, one entry per row: multiplier of the budget and relative residuals.

    ``iterations`` counts the Newton steps on the multiplier (after a fixed number of passes that guess it).
    ``stationarity`` is the largest violation of the attacker's first-order conditions over the targets,
    ``budget`` the violation of the budget (unspent budget counts where the multiplier is positive).
    """

    multiplier: Vector
    stationarity: Vector
    budget: Vector
    iterations: Vector

    @property
    def gap(self) -> Vector:
        """Return the larger of both residuals, per row."""
        return np.maximum(self.stationarity, self.budget)


class Defence(NamedTuple):
    """The defender's cost in one game; with rows of data, one for each game, in many of one size at once."""

    value: Vector
    baseline: Vector
    price: Vector

    def damage(self, x: Vector, y: Vector) -> Any:
        """Return f(x, y) = sum v p + c^D x^2 / 2, one number for every row."""
        strength = np.maximum(x, 0.0)
        strength += y
        strength += self.baseline
        return self._total(x, y / strength)

    def _total(self, x: Vector, success: Vector) -> Any:
        cost = 0.5 * self.price
        cost *= x
        cost *= x
        cost += self.value * success
        return np.add.reduce(cost, axis=-1)

    def everything(self, x: Vector, y: Vector) -> tuple[Any, Vector, Vector]:
        """Return f(x, y) with both exact partial gradients."""
        strength = np.maximum(x, 0.0) + self.baseline
        total = strength + y
        success = y / total
        value = self._total(x, success)
        spread = self.value / total
        grad_x = self.price * x - np.where(x >= 0.0, spread * success, 0.0)
        return value, grad_x, spread * (strength / total)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SecurityGame:
    """A security game with n targets (Sec. 5.2); all data positive, ``budget`` may be infinite.

    >>> game = SecurityGame.random(0, targets=5)
    >>> game
    SecurityGame(targets=5, budget=5.199)
    >>> y = game.response(game.start())
    >>> bool(abs(y.sum() - game.budget) < 1e-12)
    True
    """

    defender_value: Vector
    attacker_value: Vector
    baseline: Vector
    defender_cost: Vector
    attacker_cost: Vector
    budget: float = checked(
        number(lambda budget: budget > 0.0, "a positive number", "an attacker needs some budget", finite=False)
    )

    def __post_init__(self) -> None:
        faults = Faults("SecurityGame")
        size = len(self.defender_value) if np.ndim(self.defender_value) == 1 else None
        for name in ("defender_value", "attacker_value", "baseline", "defender_cost", "attacker_cost"):
            vector = frozen_vector(faults, name, getattr(self, name), size, minimum=0.0, strict=True)
            object.__setattr__(self, name, vector)
        note_fields(faults, self)
        faults.raise_if_any()
        object.__setattr__(self, "budget", float(self.budget))

    def __repr__(self) -> str:
        return f"SecurityGame(targets={self.targets}, budget={self.budget:.4g})"

    @property
    def targets(self) -> int:
        """Return the number of targets n = d_x = d_y."""
        return int(self.baseline.size)

    @classmethod
    def random(cls, seed: int, targets: int = 10, budget_share: float = 0.5) -> SecurityGame:
        """Draw an instance from the paper's distributions (Sec. 5.2, baseline and setup).

        v, w ~ U[1, 5], b ~ U[0.1, 0.5], c^D, c^A ~ U[0.1, 0.3], and B = ``budget_share`` (the paper: 1/2)
        times the sum of :func:`symmetric_effort`.
        """
        faults = Faults("SecurityGame.random")
        whole(1, "try targets=10", expected="a whole number >= 1").note(faults, "targets", targets)
        positive("try 0.5").note(faults, "budget_share", budget_share)
        faults.raise_if_any()
        draw = Keys(seed).generator(Role.INSTANCE)
        ranges = (1.0, 5.0), (1.0, 5.0), (0.1, 0.5), (0.1, 0.3), (0.1, 0.3)
        v, w, b, defender_cost, attacker_cost = (draw.uniform(low, high, targets) for low, high in ranges)
        budget = budget_share * float(symmetric_effort(w, b, attacker_cost).sum())
        return cls(v, w, b, defender_cost, attacker_cost, budget)

    def response(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the attacker's unique best effort y*(x); ``x`` is one vector or a stack of rows.

        The answer is a function of x alone, bit for bit. It is returned only with a certificate: residuals
        of the optimality conditions at most 1e-12, relative; else :class:`pzos.base.errors.NotConverged`.
        """
        answers, _, single = self._solve("SecurityGame.response", x)
        return answers[0] if single else answers

    def certified_response(self, x: npt.ArrayLike) -> tuple[Matrix, ResponseCertificate]:
        """Return the responses to a stack of rows (or to one vector, as one row) with their certificates."""
        answers, facts, _ = self._solve("SecurityGame.certified_response", x)
        return answers, ResponseCertificate(*facts.T)

    def _solve(self, where: str, x: npt.ArrayLike) -> tuple[Matrix, Matrix, bool]:
        rows, single = shaped_rows(where, x, self.baseline.size)
        answers = np.empty(rows.shape)
        facts = np.empty((rows.shape[0], 4))
        solve_rows = _compiled()
        worst = solve_rows(rows, self.baseline, self.attacker_value, self.attacker_cost, self.budget, answers, facts)
        if not worst <= _CERTIFIED:  # also when not a number
            if not np.isfinite(rows).all():
                raise not_finite(where, rows, single)
            raise NotConverged(
                f"{where}: optimality residual {worst:.2e} after at most {facts[:, 3].max():.0f} iterations: expected "
                f"at most {_CERTIFIED:g}; check the scale of the data (x from {rows.min():g} to {rows.max():g}, "
                f"budget {self.budget:g})"
            )
        return answers, facts, single

    def start(self) -> Vector:
        """Return x_0: the defender's optimum against the effort y_i = b_i on each target (Sec. 5.2).

        v b / (x + 2 b)^2 = c^D x is the attacker's own condition with a = 2 b, w = v / 2 and no budget.
        """
        twin = SecurityGame(
            self.defender_value, self.defender_value / 2.0, 2.0 * self.baseline, self.defender_cost,
            self.defender_cost, np.inf,
        )  # fmt: skip
        return twin.response(np.zeros(self.targets))

    def defence(self) -> Defence:
        """Return what the defender's cost is made of."""
        return Defence(self.defender_value, self.baseline, self.defender_cost)

    def damage(self, x: Vector, y: Vector) -> float:
        """Return the defender's cost f(x, y) = sum v p + c^D x^2 / 2."""
        return float(self.defence().damage(x, y))

    def damage_and_gradients(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        """Return f(x, y) with both exact partial gradients."""
        value, grad_x, grad_y = self.defence().everything(x, y)
        return float(value), grad_x, grad_y

    def leader(self) -> Leader:
        """Return the defender as a leader with exact partial gradients."""
        return leader_from_functions(
            self.damage, value_and_gradients=self.damage_and_gradients, name="security defender"
        )

    def follower(self) -> Respondent:
        """Return the attacker as a batched follower that reports its optimality residual as the gap."""
        return Respondent(self._rows_with_gaps)

    def _rows_with_gaps(self, rows: Matrix) -> tuple[Matrix, Vector]:
        answers, facts, _ = self._solve("security follower", rows)
        return answers, np.maximum(facts[:, 1], facts[:, 2])

    def problem(self, x0: npt.ArrayLike | None = None, structure: Iterable[Any] = ()) -> Problem:
        """Return the defender's problem over x >= 0 (the paper projects after each step)."""
        start = self.start() if x0 is None else x0
        name = f"security game, {self.targets} targets"
        return Problem(self.leader(), self.follower(), start, Nonnegative(), "min", name, structure)


def symmetric_effort(attacker_value: Vector, baseline: Vector, attacker_cost: Vector) -> Vector:
    """Return y_sym: the attacker's unconstrained effort when the defender mirrors it, x = y (Sec. 5.2, footnote).

    The root of h(y) = c y (2 y + b)^2 - w (y + b), which is convex on y > 0 with h(0) < 0: Newton from the
    right, where y = sqrt(w / (4 c)) lies because (2 y + b)^2 > 4 y (y + b), decreases to it.
    """
    y = 0.5 * np.sqrt(attacker_value / attacker_cost)
    for _ in range(100):
        double = 2.0 * y + baseline
        value = attacker_cost * y * double**2 - attacker_value * (y + baseline)
        slope = attacker_cost * double * (double + 4.0 * y) - attacker_value
        step = value / slope
        y = y - step
        if np.all(np.abs(step) <= 4e-16 * y):
            break
    return y
