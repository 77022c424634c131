"""The theorem's schedule: mu, alpha and T for (delta, epsilon)-stationarity, in both notions (Thms. 1, 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from typing import Literal

from pzos.base.checks import Faults
from pzos.stationarity.constants import Constants

Notion = Literal["partial", "full"]
NOTIONS: tuple[Notion, Notion] = ("partial", "full")

#: T >= factor * Delta_mu L_F sigma^2 / eps^4: eq. (T_partial) in the proof of Thm. 4, and "Choice of T" in Thm. 5.
_STEPS_FACTOR = {"partial": 32.0, "full": 512.0}
#: Queries of one step of Alg. PZOS: x, x + mu v and x - mu v.
QUERIES_PER_STEP = 3
_FEASIBLE_QUERIES = 1e5


@dataclass(frozen=True, slots=True)
class TheoremSchedule:
    """What the theorem asks for, with the constants it was made from.

    ``radius`` is mu, ``step`` alpha, ``steps`` T. The guarantee is on the output x^R (``result.random_x``), in
    expectation, for ``PZOS(step=schedule.step, radius=schedule.radius)`` run for exactly ``steps`` steps.
    """

    notion: Notion
    delta: float
    epsilon: float
    constants: Constants
    radius: float
    step: float
    steps: int

    @property
    def queries(self) -> int:
        """Return the number of queries it implies, 3 T."""
        return QUERIES_PER_STEP * self.steps

    def guarantee(self, steps: int | None = None) -> float:
        """Return the proven bound on E min|g| after ``steps`` steps (T by default) with the balanced step size.

        It is sqrt(2 sqrt(2 Delta_mu L_F sigma^2 / T) + C_p^2 mu^2), plus C_f mu for the full notion.
        """
        c, mu = self.constants, self.radius
        count = self.steps if steps is None else steps
        descent = 2.0 * sqrt(2.0 * c.Delta_mu(mu) * c.L_F(mu) * c.sigma_squared / count)
        bound = sqrt(descent + (c.C_p * mu) ** 2)
        return bound if self.notion == "partial" else bound + c.C_f * mu

    def rows(self) -> list[tuple[str, str]]:
        """Return the schedule as (name, text) pairs."""
        c, mu = self.constants, self.radius
        k2 = "as published: 16 sqrt(2 pi)" if c.k2 is None else "set by you"
        k1 = "exact, double factorials" if c.k1 is None else "set by you"
        return [
            ("notion", "partial Goldstein" if self.notion == "partial" else "Goldstein"),
            ("delta, epsilon", f"{self.delta:g}, {self.epsilon:g}"),
            ("k_1", f"{c.smoothing:.6g} ({k1})"),
            ("k_2", f"{c.moment:.6g} ({k2})"),
            ("C_p", f"{c.C_p:.6g}"),
            ("C_f", f"{c.C_f:.6g}"),
            ("sigma^2", f"{c.sigma_squared:.6g}"),
            ("L_F", f"{c.L_F(mu):.6g}"),
            ("radius mu", f"{mu:.6g}"),
            ("step alpha", f"{self.step:.6g}"),
            ("steps T", f"{self.steps:.4g}" if self.steps > 1e9 else f"{self.steps}"),
            ("queries 3 T", in_words(self.queries)),
        ]

    def __repr__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def in_words(queries: int) -> str:
    """Say what a number of queries means."""
    mantissa, exponent = f"{queries:.0e}".split("e")
    about = f"about {mantissa}e{int(exponent)}" if queries >= 10_000 else f"{queries}"
    if queries <= _FEASIBLE_QUERIES:
        return f"{about} queries: within reach if a query takes milliseconds"
    return (
        f"{about} queries: the theory is a worst case; use a step and a radius of your own and let "
        "pzos.stationarity.certify say how stationary the point is"
    )


def theorem_schedule(constants: Constants, *, delta: float, epsilon: float, notion: Notion) -> TheoremSchedule:
    """Return mu, alpha and T of the theorem.

        partial (Thm. 4):  mu = min(delta, eps/(sqrt(2) C_p)),  T = 32 Delta_mu L_F sigma^2/eps^4
        full    (Thm. 5):  mu = min(delta, eps/(2 C_f)),        T = 512 Delta_mu L_F sigma^2/eps^4
        both:              alpha = sqrt(2 Delta_mu/(T L_F sigma^2))

    The theorem assumes mu < 1; a larger ``delta`` is cut to keep it, which is allowed because any mu <= delta is.
    """
    faults = Faults("theorem_schedule")
    for name, value in (("delta", delta), ("epsilon", epsilon)):
        ok = isinstance(value, int | float) and isfinite(value) and value > 0
        faults.check(ok, name, value, "a positive number", "try 0.1")
    faults.check(notion in NOTIONS, "notion", notion, "'partial' or 'full'", "choose the stationarity notion")
    faults.check(isinstance(constants, Constants), "constants", constants, "a Constants", "give L_f, L_g, L_y, ...")
    faults.raise_if_any()
    cut = epsilon / (sqrt(2.0) * constants.C_p) if notion == "partial" else epsilon / (2.0 * constants.C_f)
    mu = min(delta, cut, 1.0 - 2.0**-53)
    size = constants.Delta_mu(mu) * constants.L_F(mu) * constants.sigma_squared
    steps = ceil(_STEPS_FACTOR[notion] * size / epsilon**4)
    step = sqrt(2.0 * constants.Delta_mu(mu) / (steps * constants.L_F(mu) * constants.sigma_squared))
    return TheoremSchedule(notion, float(delta), float(epsilon), constants, mu, step, steps)
