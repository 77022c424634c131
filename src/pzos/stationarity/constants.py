"""The constants of the paper's theory (App. C) as functions of L_f, L_g, L_y, d_x and Delta.

Two universal constants enter. k_1 comes from the cited smoothing lemma, whose exact form has double factorials:

    k_1 sqrt(d) = kappa d!!/(d-1)!!,   kappa = 2/pi for even d and 1 for odd d     (Yousefian et al. 2012, Lem. 8)

which equals 2 V_{d-1}/V_d, twice the ratio of the volumes of unit balls. k_2 is the second-moment constant of the
two-point estimator: 16 sqrt(2 pi) as published (Shamir 2017, Lem. 10, with the number of Lin et al. 2022, App. D.1).
A sharp one follows from the Poincare inequality on the sphere, see :func:`sharp_moment_constant`. Both may be set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, isfinite, lgamma, pi, sqrt

from pzos.base.checks import Faults


def smoothing_constant(dimension: int) -> float:
    """Return k_1 for this dimension: the exact constant of Lem. 4 (iii), divided by sqrt(d).

    >>> smoothing_constant(1)
    1.0
    >>> bool(abs(smoothing_constant(2) - (4 / pi) / sqrt(2)) < 1e-15)
    True
    """
    faults = Faults("smoothing_constant")
    check_dimension(faults, dimension)
    faults.raise_if_any()
    if dimension <= 300:
        return _double_factorial_ratio(dimension) * (2.0 / pi if dimension % 2 == 0 else 1.0) / sqrt(dimension)
    # The same number by log-gamma, where the factorials would overflow: 2 V_{d-1}/V_d.
    half = 0.5 * dimension
    return 2.0 / sqrt(pi) * exp(lgamma(half + 1.0) - lgamma(half + 0.5)) / sqrt(dimension)


def _double_factorial_ratio(n: int) -> float:
    """Return n!!/(n-1)!! without forming either."""
    ratio = 1.0
    for upper in range(n, 0, -2):
        ratio *= upper / (upper - 1) if upper > 1 else 1.0
    return ratio


def published_moment_constant() -> float:
    """Return k_2 as published: E|g|^2 <= 16 sqrt(2 pi) d L^2 for an L-Lipschitz function."""
    return 16.0 * sqrt(2.0 * pi)


def sharp_moment_constant(dimension: int) -> float:
    """Return a k_2 that holds in this dimension, d/(d-1) (1 for d = 1), about 20 to 40 times below the published one.

    The odd part of v -> h(x + mu v) has mean zero and is L mu-Lipschitz on the sphere, so the Poincare inequality
    (first eigenvalue d - 1) gives E[odd^2] <= L^2 mu^2/(d-1), hence E|g|^2 = (d/mu)^2 E[odd^2] <= d^2 L^2/(d-1).
    For d = 1, |g| <= L. The paper's linear example shows that no constant below 1 is possible.
    """
    faults = Faults("sharp_moment_constant")
    check_dimension(faults, dimension)
    faults.raise_if_any()
    return 1.0 if dimension == 1 else dimension / (dimension - 1.0)


def check_dimension(faults: Faults, dimension: int) -> bool:
    """Note a fault unless ``dimension`` is a whole number, 1 or more."""
    whole = isinstance(dimension, int) and not isinstance(dimension, bool) and dimension >= 1
    return faults.check(whole, "dimension", dimension, "a whole number, 1 or more", "give the length of x")


@dataclass(frozen=True)
class Constants:
    """L_f, L_g, L_y, d_x and Delta (Assumptions 1 and 2) with everything the proofs derive from them.

    ``k1`` and ``k2`` default to the cited lemmas' values (k_2 as published).

    >>> c = Constants(L_f=1.0, L_g=1.0, L_y=1.0, dimension=1, Delta=1.0)
    >>> c.C_p, c.C_f
    (2.0, 6.0)
    """

    L_f: float
    L_g: float
    L_y: float
    dimension: int
    Delta: float
    k1: float | None = None
    k2: float | None = None

    def __post_init__(self) -> None:
        faults = Faults("Constants")
        for name in ("L_f", "L_g", "L_y", "Delta"):
            value = getattr(self, name)
            ok = isinstance(value, int | float) and isfinite(value) and value > 0
            faults.check(ok, name, value, "a positive number", "see pzos.stationarity.estimate_constants")
        for name in ("k1", "k2"):
            value = getattr(self, name)
            ok = value is None or (isinstance(value, int | float) and 0 < value < inf)
            faults.check(ok, name, value, "a positive number or None", "None takes the cited lemma's value")
        check_dimension(faults, self.dimension)
        faults.raise_if_any()

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
