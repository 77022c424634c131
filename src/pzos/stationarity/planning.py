"""How many steps are enough in the worst case: batches, one-sided differences, noise, errors, memory, sets, black box.

All of them follow one pattern. If the estimate g_t has a mean within b of grad_x f + J y_mu' grad_y f and a second
moment of at most s^2 given the past, then after T steps of the constant size alpha

    E min|g|  <=  sqrt(A/sqrt(T) + B^2) + C

with A, B and C made of the constants, b, s^2 and mu. What each setting makes of b and s^2, and every proof, stands in
docs/theory.md; ``benchmarks/theorems.py`` tries each statement. The published theorem, with its own choice of mu, is
:func:`pzos.stationarity.theorem_schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Literal, NamedTuple

import numpy as np

from pzos.base.checks import Faults, aligned, check_fields, checked, instance_of, number, one_of, positive, whole
from pzos.stationarity.theory import NOTIONS, Constants, Notion, Promise, in_words

Method = Literal["pzos", "zos", "memory"]
METHODS: tuple[Method, Method, Method] = ("pzos", "zos", "memory")
_YES_NO = one_of((True, False))
_NOT_NEGATIVE = number(lambda value: value >= 0.0, "a number of 0 or more", "0 where there is none")
#: Radii compared, and the smallest of them as a share of the largest.
_RADII, _SMALLEST = 2000, 1e-9


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run and against which followers.

    ``method`` is PZOS, ZOS or a memory around a prediction p with |p| <= ``bound`` (fixed before the directions are
    drawn, see :class:`pzos.ClippedPrediction`); ``batch`` is Q. ``one_sided`` differences instead of central ones.
    ``noise`` is nu: answers are off by independent errors of mean zero and E|error|^2 <= nu^2. ``error`` is eta:
    answers are a function of x within eta of y*. ``projected``: every step is projected onto a closed convex set.
    """

    method: Method = checked(one_of(METHODS, "name a method"), default="pzos")
    batch: int = checked(whole(1, "try 1"), default=1)
    one_sided: bool = checked(_YES_NO, default=False)
    bound: float | None = checked(_NOT_NEGATIVE.or_none(), default=None)
    noise: float = checked(_NOT_NEGATIVE, default=0.0)
    error: float = checked(_NOT_NEGATIVE, default=0.0)
    projected: bool = checked(_YES_NO, default=False)

    def __post_init__(self) -> None:
        check_fields(self)
        faults = Faults("Setting")
        remembers = self.method == "memory"
        faults.check(
            remembers == (self.bound is not None), "bound", self.bound, "a bound on |p| for a memory, else None",
            "L_f L_y bounds what there is to predict",
        )  # fmt: skip
        if self.method == "zos":
            faults.check(not self.one_sided, "one_sided", True, "central differences of F", "leave it out")
            faults.check(self.noise == 0.0, "noise", self.noise, "0: no statement is made for ZOS", "leave it out")
            faults.check(self.error == 0.0, "error", self.error, "0: no statement is made for ZOS", "leave it out")
        faults.check(
            not (self.one_sided and self.noise), "noise", self.noise, "0 with one-sided differences, which share "
            "the noise of y(x) with the partial gradients", "take central differences",
        )  # fmt: skip
        faults.raise_if_any()

    @property
    def queries_per_step(self) -> int:
        """Return how many answers one step takes."""
        if self.method == "zos":
            return 2 * self.batch
        return (1 if self.one_sided else 2) * self.batch + 1

    def bias(self, c: Constants, mu: float) -> float:
        """Return b: how far the mean of g_t may lie from grad_x f + J y_mu' grad_y f."""
        return c.L_g * (1.0 + c.L_y) * (self.noise + self.error) + self._wrong_differences(c, mu)

    def second_moment(self, c: Constants, mu: float) -> float:
        """Return s^2, a bound on E|g_t|^2."""
        spread = float(c.dimension) ** 2 if self.one_sided else c.moment * c.dimension
        if self.method == "zos":
            slope = c.L_f * (1.0 + c.L_y)
            return slope**2 * (1.0 - 1.0 / self.batch + spread / self.batch)
        slope = c.L_f * c.L_y
        if self.bound is None:
            known = c.L_f**2 * (1.0 + 2.0 * c.L_y) + (1.0 - 1.0 / self.batch) * slope**2
        else:
            known = c.L_f**2 * (1.0 + c.L_y) ** 2
            slope += self.bound
        noise = 0.5 * (c.dimension * c.L_f * self.noise / mu) ** 2
        total = known + (spread * slope**2 + noise) / self.batch
        wrong = self._wrong_differences(c, mu)
        return total if wrong == 0.0 else 2.0 * total + 2.0 * wrong**2

    def _wrong_differences(self, c: Constants, mu: float) -> float:
        """Return what errors of the answers make of H' grad_y f at most."""
        return (2.0 if self.one_sided else 1.0) * c.dimension * c.L_f * self.error / mu


class _Terms(NamedTuple):
    """E min|g| <= sqrt(A/sqrt(T) + B^2) + C, alpha = sqrt(rate / T), and how smooth the surrogate of F is."""

    A: float
    B: float
    C: float
    rate: float
    smoothness: float


def _terms(c: Constants, setting: Setting, mu: float, notion: Notion) -> _Terms:
    moment = setting.second_moment(c, mu)
    if setting.method == "zos":
        slope = c.L_f * (1.0 + c.L_y)
        falls, smoothness = c.Delta + 2.0 * slope * mu, c.smoothing * slope * sqrt(c.dimension) / mu
        wrong = added = 0.0
    else:
        falls, smoothness, bias = c.Delta_mu(mu), c.L_F(mu), setting.bias(c, mu)
        wrong = c.C_p * mu + bias
        added = c.C_f * mu if notion == "full" else c.C_p * mu if setting.projected else bias
    size = falls * smoothness * moment
    if setting.projected:
        return _Terms(8.0 * sqrt(size), 2.0 * wrong, added, falls / (smoothness * moment), smoothness)
    # Without bias nothing is lost to Young's inequality: half of what PZOS has.
    lead = 1.0 if setting.method == "zos" else 2.0
    return _Terms(lead * sqrt(2.0 * size), wrong, added, 2.0 * falls / (smoothness * moment), smoothness)


@dataclass(frozen=True, slots=True)
class WorstCase(Promise):
    """The radius with the fewest steps that are proved to be enough, and those steps.

    The guarantee is on ``result.random_x``, in expectation, after exactly ``steps`` steps of constant ``step``. On a
    set it is on a point within ``distance`` of it on average, with normals of the set added to g.
    """

    setting: Setting

    @property
    def queries(self) -> int:
        """Return the number of queries it implies."""
        return self.setting.queries_per_step * self.steps

    def guarantee(self, steps: int | None = None) -> float:
        """Return the bound on E min|g| after ``steps`` steps (T by default), alpha chosen for that many."""
        terms = _terms(self.constants, self.setting, self.radius, self.notion)
        return sqrt(terms.A / sqrt(self.steps if steps is None else steps) + terms.B**2) + terms.C

    @property
    def distance(self) -> float:
        """Return how far the point that the guarantee speaks of may lie from x^R on average; 0 without a set."""
        if not self.setting.projected:
            return 0.0
        terms = _terms(self.constants, self.setting, self.radius, self.notion)
        return (self.guarantee() - terms.C) / (2.0 * terms.smoothness)

    def rows(self) -> list[tuple[str, str]]:
        """Return it as (name, text) pairs."""
        s, c, mu = self.setting, self.constants, self.radius
        name = {"pzos": "PZOS", "zos": "ZOS", "memory": f"memory, |p| <= {s.bound:g}" if s.bound is not None else ""}
        kind = "one-sided" if s.one_sided else "central"
        rows = [
            ("method", f"{name[s.method]}, {kind} differences, batch {s.batch}"),
            ("notion", "partial Goldstein" if self.notion == "partial" else "Goldstein"),
            ("delta, epsilon", f"{self.delta:g}, {self.epsilon:g}"),
        ]
        if s.noise or s.error:
            rows.append(("noise, error", f"{s.noise:g}, {s.error:g} (bias {s.bias(c, mu):.4g})"))
        if s.projected:
            rows.append(("on a set", f"for a point within {self.distance:.2g} of x^R, with normals of the set"))
        return [
            *rows,
            ("second moment", f"{s.second_moment(c, mu):.6g}"),
            ("radius mu", f"{mu:.6g} (the best for this bound)"),
            ("step alpha", f"{self.step:.6g}"),
            ("steps T", f"{self.steps:.4g}" if self.steps > 1e9 else f"{self.steps}"),
            (f"queries {s.queries_per_step} T", in_words(self.queries)),
        ]

    def __repr__(self) -> str:
        return aligned(self.rows())


def worst_case(
    constants: Constants, setting: Setting | None = None, *, delta: float, epsilon: float, notion: Notion = "full"
) -> WorstCase:
    """Return the radius and the number of steps that are proved to be enough for (delta, eps)-stationarity.

    >>> c = Constants(1.0, 1.0, 1.0, 10, 1.0)
    >>> zos = worst_case(c, Setting("zos"), delta=1.0, epsilon=0.1)
    >>> worst_case(c, delta=1.0, epsilon=0.1).queries > 20 * zos.queries
    True
    """
    setting = Setting() if setting is None else setting
    faults = Faults("worst_case")
    instance_of(Constants, "a Constants", "give L_f, L_g, L_y, ...").note(faults, "constants", constants)
    known = instance_of(Setting, "a Setting", "or leave it out").note(faults, "setting", setting)
    positive("try 0.1").note(faults, "delta", delta)
    positive("try 0.1").note(faults, "epsilon", epsilon)
    one_of(NOTIONS, "choose the stationarity notion").note(faults, "notion", notion)
    partial = known and setting.method == "zos" and notion == "partial"
    faults.check(not partial, "notion", notion, "'full' for ZOS, which has no partial notion", "ask for 'full'")
    faults.raise_if_any()
    fewest, best, floor = inf, 0.0, inf
    for mu in map(float, delta * np.geomspace(_SMALLEST, 1.0, _RADII)):
        terms = _terms(constants, setting, mu, notion)
        floor = min(floor, terms.B + terms.C)
        room = (epsilon - terms.C) ** 2 - terms.B**2 if epsilon > terms.C + terms.B else 0.0
        if room > 0.0 and (terms.A / room) ** 2 < fewest:
            fewest, best = (terms.A / room) ** 2, mu
    faults.check(
        fewest < inf, "epsilon", epsilon, f"more than {floor:.4g}: noise and errors leave that much at every radius",
        "ask for a larger one, or make the answers better",
    )  # fmt: skip
    faults.raise_if_any()
    steps = max(ceil(fewest), 1)
    step = sqrt(_terms(constants, setting, best, notion).rate / steps)
    return WorstCase(notion, float(delta), float(epsilon), constants, best, step, steps, setting)
