"""The paper's theory as functions: its constants (App. C), and the schedule of the theorem (Thms. 1, 4 and 5).

The constants are functions of L_f, L_g, L_y, d_x and Delta. Two universal ones enter. k_1 comes from the cited
smoothing lemma, whose exact form has double factorials:

    k_1 sqrt(d) = kappa d!!/(d-1)!!,   kappa = 2/pi for even d and 1 for odd d     (Yousefian et al. 2012, Lem. 8)

which equals 2 V_{d-1}/V_d, twice the ratio of the volumes of unit balls. k_2 is the second-moment constant of the
two-point estimator: 16 sqrt(2 pi) as published (Shamir 2017, Lem. 10, with the number of Lin et al. 2022, App. D.1).
A sharp one follows from the Poincare inequality on the sphere, see :func:`sharp_moment_constant`. Both may be set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, lgamma, pi, prod, sqrt
from typing import Literal

from pzos.base.checks import Faults, aligned, at_least, check_fields, checked, instance_of, one_of, positive, whole

Notion = Literal["partial", "full"]
NOTIONS: tuple[Notion, Notion] = ("partial", "full")

#: T >= factor * Delta_mu L_F sigma^2 / eps^4: eq. (T_partial) in the proof of Thm. 4, and "Choice of T" in Thm. 5.
_STEPS_FACTOR = {"partial": 32.0, "full": 512.0}
#: Queries of one step of Alg. PZOS: x, x + mu v and x - mu v.
QUERIES_PER_STEP = 3
_FEASIBLE_QUERIES = 1e5
_DIMENSION = whole(1, "give the length of x")
_BOUND = positive("see pzos.stationarity.estimate_constants")
_UNIVERSAL = positive("None takes the cited lemma's value", "a positive number or None").or_none()
#: The paper's linear example (Lem. 10) attains d L^2: nothing below 1 can hold.
_AT_LEAST_ONE = at_least(1.0, "1 or more (the linear example of the paper attains 1), or None", "see 'sharp'").or_none()


def smoothing_constant(dimension: int) -> float:
    """Return k_1 for this dimension: the exact constant of Lem. 4 (iii), divided by sqrt(d).

    >>> smoothing_constant(1)
    1.0
    >>> bool(abs(smoothing_constant(2) - (4 / pi) / sqrt(2)) < 1e-15)
    True
    """
    _DIMENSION.require("smoothing_constant", "dimension", dimension)
    if dimension <= 300:
        ratio = prod((upper / (upper - 1) for upper in range(dimension, 1, -2)), start=1.0)  # d!!/(d-1)!!
        return ratio * (2.0 / pi if dimension % 2 == 0 else 1.0) / sqrt(dimension)
    # The same number by log-gamma, where the factorials would overflow: 2 V_{d-1}/V_d.
    half = 0.5 * dimension
    return 2.0 / sqrt(pi) * exp(lgamma(half + 1.0) - lgamma(half + 0.5)) / sqrt(dimension)


def published_moment_constant() -> float:
    """Return k_2 as published: E|g|^2 <= 16 sqrt(2 pi) d L^2 for an L-Lipschitz function."""
    return 16.0 * sqrt(2.0 * pi)


def sharp_moment_constant(dimension: int) -> float:
    """Return a k_2 that holds in this dimension, d/(d-1) (1 for d = 1), about 20 to 40 times below the published one.

    The odd part of v -> h(x + mu v) has mean zero and is L mu-Lipschitz on the sphere, so the Poincare inequality
    (first eigenvalue d - 1) gives E[odd^2] <= L^2 mu^2/(d-1), hence E|g|^2 = (d/mu)^2 E[odd^2] <= d^2 L^2/(d-1).
    For d = 1, |g| <= L. The paper's linear example shows that no constant below 1 is possible.
    """
    _DIMENSION.require("sharp_moment_constant", "dimension", dimension)
    return 1.0 if dimension == 1 else dimension / (dimension - 1.0)


@dataclass(frozen=True)
class Constants:
    """L_f, L_g, L_y, d_x and Delta (Assumptions 1 and 2) with everything the proofs derive from them.

    ``k1`` and ``k2`` default to the cited lemmas' values (k_2 as published).

    >>> c = Constants(L_f=1.0, L_g=1.0, L_y=1.0, dimension=1, Delta=1.0)
    >>> c.C_p, c.C_f
    (2.0, 6.0)
    """

    L_f: float = checked(_BOUND)
    L_g: float = checked(_BOUND)
    L_y: float = checked(_BOUND)
    dimension: int = checked(_DIMENSION)
    Delta: float = checked(_BOUND)
    k1: float | None = checked(_UNIVERSAL, default=None)
    k2: float | None = checked(_AT_LEAST_ONE, default=None)

    def __post_init__(self) -> None:
        check_fields(self)

    @cached_property
    def smoothing(self) -> float:
        """Return the k_1 in use."""
        return smoothing_constant(self.dimension) if self.k1 is None else float(self.k1)

    @cached_property
    def moment(self) -> float:
        """Return the k_2 in use."""
        return published_moment_constant() if self.k2 is None else float(self.k2)

    @property
    def C_p(self) -> float:  # noqa: N802 (the symbol of the paper)
        """Return C_p = L_g (1 + L_y) L_y: the bias of g_t is at most C_p mu (Lem. 8)."""
        return self.L_g * (1.0 + self.L_y) * self.L_y

    @property
    def C_f(self) -> float:  # noqa: N802 (the symbol of the paper)
        """Return C_f = (1 + L_y) L_g (1 + 2 L_y): grad F_mu is within C_f mu of the Goldstein set (Lem. 12)."""
        return (1.0 + self.L_y) * self.L_g * (1.0 + 2.0 * self.L_y)

    @property
    def sigma_squared(self) -> float:
        """Return sigma^2 = k_2 d L_f^2 L_y^2 + L_f^2 (1 + 2 L_y), the bound on E|g_t|^2 (Lem. 1)."""
        return self.L_f**2 * (self.moment * self.dimension * self.L_y**2 + 1.0 + 2.0 * self.L_y)

    @property
    def black_box_sigma_squared(self) -> float:
        """Return k_2 d L_f^2 (1 + L_y)^2, the bound on the second moment of the black-box estimator (Lem. 1)."""
        return self.moment * self.dimension * self.L_f**2 * (1.0 + self.L_y) ** 2

    def L_F(self, mu: float) -> float:  # noqa: N802 (the symbol of the paper)
        """Return L_F = L_g (1 + L_y)^2 + k_1 L_f L_y sqrt(d)/mu, the smoothness of F_mu (Lem. 6)."""
        rough = self.smoothing * self.L_f * self.L_y * sqrt(self.dimension) / mu
        return self.L_g * (1.0 + self.L_y) ** 2 + rough

    def Delta_mu(self, mu: float) -> float:  # noqa: N802 (the symbol of the paper)
        """Return Delta_mu = Delta + 2 L_f L_y mu, the most F_mu can fall."""
        return self.Delta + 2.0 * self.L_f * self.L_y * mu


# ---- the schedule -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Promise:
    """Which radius mu, step alpha and number of steps T lead to (delta, epsilon)-stationarity, for these constants."""

    notion: Notion
    delta: float
    epsilon: float
    constants: Constants
    radius: float
    step: float
    steps: int


@dataclass(frozen=True, slots=True)
class TheoremSchedule(Promise):
    """What the theorem asks for, with the constants it was made from.

    The guarantee is on the output x^R (``result.random_x``), in expectation, for
    ``PZOS(step=schedule.step, radius=schedule.radius)`` run for exactly ``steps`` steps.
    """

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
        return aligned(self.rows())


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
    positive("try 0.1").note(faults, "delta", delta)
    positive("try 0.1").note(faults, "epsilon", epsilon)
    one_of(NOTIONS, "choose the stationarity notion").note(faults, "notion", notion)
    instance_of(Constants, "a Constants", "give L_f, L_g, L_y, ...").note(faults, "constants", constants)
    faults.raise_if_any()
    cut = epsilon / (sqrt(2.0) * constants.C_p) if notion == "partial" else epsilon / (2.0 * constants.C_f)
    mu = min(delta, cut, 1.0 - 2.0**-53)
    size = constants.Delta_mu(mu) * constants.L_F(mu) * constants.sigma_squared
    steps = ceil(_STEPS_FACTOR[notion] * size / epsilon**4)
    step = sqrt(2.0 * constants.Delta_mu(mu) / (steps * constants.L_F(mu) * constants.sigma_squared))
    return TheoremSchedule(notion, float(delta), float(epsilon), constants, mu, step, steps)
