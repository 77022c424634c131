"""The statistical certificate: fresh directions at x, and an upper confidence bound on the stationarity norm.

For a radius mu <= delta the expectation of the paper's estimate g lies in the delta-partial Goldstein subdifferential
of F at x (Lem. 11 with Lem. 7), and the expectation of the black-box estimate in the Goldstein subdifferential. Both
are computed from the same answers; an upper confidence bound for the norm of the expectation is one for the smallest
norm in the set: "with 95 % confidence x is (delta, eps)-(partial-)Goldstein stationary for eps = ...". A large bound
does not say that x is not stationary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.keys import Keys, Role
from pzos.base.types import LeaderValue, Matrix, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, TwoPointPlan, two_point_plan
from pzos.methods.solver import Task
from pzos.problem.leader import Leader
from pzos.problem.problem import Known, Problem
from pzos.problem.sets import Whole
from pzos.stationarity.bounds import FEWEST, NormBound, check_confidence, norm_upper_bound
from pzos.stationarity.normals import normal_near
from pzos.stationarity.one_batch import BatchState, OneBatch, ask_once
from pzos.stationarity.pilot import fit_prediction, gradient_samples, pilot_size
from pzos.stationarity.schedules import Notion

if TYPE_CHECKING:
    from concurrent.futures import Executor

Prediction = Literal["pilot", "none"]
#: (x, f and its partial gradients there) -> a prediction of J' grad_y f made before the directions are drawn.
Foresight = Callable[[Vector, LeaderValue], Vector]
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What one batch of fresh directions says about x; ``print`` it for the sentence.

    ``partial`` and ``full`` bound the norm of one element of the partial Goldstein and of the Goldstein
    subdifferential (plus a normal of the domain where x is constrained: ``projected``).
    """

    x: Vector
    value: float
    delta: float
    radius: float
    confidence: float
    partial: NormBound
    full: NormBound
    directions: int
    pilot: int
    queries: int
    projected: bool
    response_part: float

    def bound(self, notion: Notion = "partial") -> NormBound:
        """Return the bound for one notion."""
        return self.partial if notion == "partial" else self.full

    def stationary(self, epsilon: float, notion: Notion = "partial") -> bool:
        """Tell whether (delta, epsilon)-stationarity is certified."""
        return self.bound(notion).upper <= epsilon

    @property
    def sentence(self) -> str:
        """Return the certified statement for the partial notion, in one line."""
        where = " over its domain" if self.projected else ""
        return (
            f"with {100 * self.confidence:g} % confidence x is ({self.delta:.3g}, {self.partial.upper:.3g})-partial-"
            f"Goldstein stationary{where} ({self.queries} queries)"
        )

    def __repr__(self) -> str:
        sure = f"with {100 * self.confidence:g} % confidence"
        extra = " of the problem over its domain" if self.projected else ""
        return (
            f"{sure} x is ({self.delta:g}, {self.partial.upper:.4g})-partial-Goldstein stationary{extra}, and\n"
            f"{sure} x is ({self.delta:g}, {self.full.upper:.4g})-Goldstein stationary{extra}\n"
            f"(estimates {self.partial.estimate:.4g} and {self.full.estimate:.4g}; {self.directions} directions of "
            f"radius {self.radius:g}, {self.pilot} of them for the prediction; {self.queries} queries; each statement "
            "by itself,\n asymptotic in the number of directions; a large number does not mean x is not stationary)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class CertificateSolver(OneBatch[Certificate]):
    """Ask x and x +- mu v for fresh directions v, once: 2 ``directions`` + 1 queries.

    ``radius`` is mu (``delta`` if None). ``prediction`` "pilot" uses part of the batch to predict the gradient and
    bounds on the rest (:mod:`pzos.stationarity.pilot`); "none" uses the paper's two estimates on all directions.
    ``foresee(x, at)`` predicts J' grad_y f from what was known before the batch: a model of the followers, however
    wrong, or the memory of a run. ``answer_error`` bounds the error of |y*| in the answers, if there is one: it adds
    sqrt(d) |grad_y f| error/mu to the bound. ``projected`` allows for normals of the domain.
    ``address`` numbers repeated certificates of one study.
    """

    delta: float
    directions: int = 200
    radius: float | None = None
    confidence: float = 0.95
    prediction: Prediction = "pilot"
    foresee: Foresight | None = None
    answer_error: float = 0.0
    projected: bool = True
    address: int = 0

    def __post_init__(self) -> None:
        faults = Faults("CertificateSolver")
        _check_positive(faults, "delta", self.delta, "the radius of the subdifferential")
        if self.radius is not None and _check_positive(faults, "radius", self.radius, "or None for delta"):
            faults.check(self.radius <= self.delta, "radius", self.radius, f"at most delta = {self.delta}", "cut it")
        whole = isinstance(self.directions, int | np.integer) and not isinstance(self.directions, bool)
        fewest = FEWEST if self.prediction == "none" and not self.projected else 2 * FEWEST
        ok = whole and self.directions >= fewest
        faults.check(ok, "directions", self.directions, f"a whole number, {fewest} or more", "try directions=200")
        faults.check(self.prediction in ("pilot", "none"), "prediction", self.prediction, "'pilot' or 'none'", "choose")
        faults.check(self.answer_error >= 0.0, "answer_error", self.answer_error, "zero or more", "try 0.0")
        check_confidence(faults, self.confidence)
        faults.raise_if_any()

    @property
    def mu(self) -> float:
        """Return the smoothing radius."""
        return self.delta if self.radius is None else self.radius

    def ask(self, task: Task, state: BatchState[Certificate]) -> Plan:
        """Plan x and x +- mu v for directions no run has used."""
        return self.plan_at(task.keys, state.x)

    def plan_at(self, keys: Keys, x: Vector) -> TwoPointPlan:
        """Plan the batch at any x."""
        directions = [keys.direction(self.address, q, x.size, Role.CERTIFICATE) for q in range(self.directions)]
        plan = two_point_plan(x, self.mu, directions, centred=True)
        purposes = (Purpose.ITERATE,) + (Purpose.CERTIFICATE,) * (len(plan.points) - 1)
        return TwoPointPlan(plan.points, purposes, x, plan.radius, plan.directions, True)

    def read(self, known: Known, plan: Plan, answers: Answers) -> Certificate | None:
        """Bound both norms from one batch; None if y*(x) or too many pairs failed."""
        if not isinstance(plan, TwoPointPlan):
            raise TypeError(f"expected a TwoPointPlan, got {type(plan).__name__}")
        centre = answers[0]
        slopes = None if centre is None else _slopes(known.leader, plan, answers)
        if slopes is None or centre is None:
            return None
        at = known.leader(plan.x, centre)
        error = sqrt(dot(at.grad_y, at.grad_y)) * (self.answer_error + _ROUNDING * slopes.largest_answer)
        prior = at.grad_x if self.foresee is None else at.grad_x + self.foresee(plan.x, at)
        partial = self._bound(known, plan.x, slopes.directions, slopes.partial, prior, error)
        error += _ROUNDING * slopes.largest_value
        if self.prediction == "none" and self.foresee is None:
            prior = np.zeros_like(prior)  # the paper's black-box estimate
        full = self._bound(known, plan.x, slopes.directions, slopes.full, prior, error)
        pilot = len(slopes.full) - full.samples
        projected = self.projected and not isinstance(known.domain, Whole)
        # E[d (D - grad_x f . v) v] = J_mu' grad_y f: its size is the natural unit of the noise.
        known_part = np.einsum("ij,j->i", slopes.directions, at.grad_x)
        response = gradient_samples(slopes.directions, slopes.partial - known_part, np.zeros_like(plan.x))
        part = response.mean(axis=0)
        return Certificate(
            plan.x, at.value, self.delta, self.mu, self.confidence, partial, full, len(slopes.full), pilot,
            len(plan.points), projected, sqrt(dot(part, part)),
        )  # fmt: skip

    def _bound(
        self, known: Known, x: Vector, directions: Matrix, slopes: Vector, prior: Vector, error: float
    ) -> NormBound:
        """Fix h and the normal from the pilot, then bound |E g + n| from the rest.

        An error e in mu D moves E g by at most sqrt(d) e/mu, because E|u.v| <= 1/sqrt(d) for a unit vector u.
        """
        constrained = self.projected and not isinstance(known.domain, Whole)
        pilot = pilot_size(len(slopes), x.size) if self.prediction == "pilot" else 0
        if constrained and pilot < FEWEST:
            pilot = len(slopes) // 2
        prediction, normal = prior, np.zeros_like(x)
        if pilot and self.prediction == "pilot":
            prediction = fit_prediction(directions[:pilot], slopes[:pilot], prior)
        if constrained:
            guess = gradient_samples(directions[:pilot], slopes[:pilot], prediction).mean(axis=0)
            normal = known.sign * normal_near(known.domain, x, known.sign * guess, self.delta)
        samples = gradient_samples(directions[pilot:], slopes[pilot:], prediction) + normal
        allowance = sqrt(x.size) * error / self.mu + _ROUNDING * float(np.abs(samples).max())
        predicted = self.prediction == "pilot" or self.foresee is not None
        return norm_upper_bound(samples, self.confidence, allowance, predicted=predicted)


class _Slopes(NamedTuple):
    """The answered pairs: directions, D of both notions, and the largest |y| and |f| seen."""

    directions: Matrix
    partial: Vector
    full: Vector
    largest_answer: float
    largest_value: float


def _slopes(leader: Leader, plan: TwoPointPlan, answers: Answers) -> _Slopes | None:
    centre = answers[0]
    if centre is None:
        return None
    at = leader(plan.x, centre)
    kept, partial, full = [], [], []
    answer, value = 0.0, abs(at.value)
    for q, v in enumerate(plan.directions):
        plus, minus = answers[2 * q + 1], answers[2 * q + 2]
        if plus is None or minus is None:
            continue
        kept.append(v)
        partial.append(dot(at.grad_x, v) + dot(at.grad_y, plus - minus) / (2.0 * plan.radius))
        above, below = leader.value(plan.points[2 * q + 1], plus), leader.value(plan.points[2 * q + 2], minus)
        full.append((above - below) / (2.0 * plan.radius))
        answer, value = max(answer, dot(plus, plus), dot(minus, minus)), max(value, abs(above), abs(below))
    if len(kept) < 2 * FEWEST and len(kept) < len(plan.directions):
        return None
    return _Slopes(np.array(kept), np.array(partial), np.array(full), sqrt(answer), value)


def _check_positive(faults: Faults, name: str, value: float, remedy: str) -> bool:
    ok = isinstance(value, int | float | np.number) and isfinite(value) and value > 0
    return faults.check(ok, name, value, "a positive number", remedy)


def certify(
    problem: Problem,
    x: npt.ArrayLike | None = None,
    *,
    delta: float,
    queries: int = 401,
    radius: float | None = None,
    confidence: float = 0.95,
    prediction: Prediction = "pilot",
    foresee: Foresight | None = None,
    answer_error: float = 0.0,
    projected: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> Certificate:
    """Certify x (x0 if None) with at most ``queries`` queries; arguments as for :class:`CertificateSolver`.

    >>> import pzos
    >>> leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    >>> problem = pzos.Problem(leader, abs, x0=np.zeros(3))
    >>> certify(problem, delta=0.1).stationary(epsilon=1e-6)
    True
    """
    faults = Faults("certify")
    ok = isinstance(queries, int | np.integer) and queries >= 4 * FEWEST + 1
    faults.check(ok, "queries", queries, f"a whole number, {4 * FEWEST + 1} or more", "try queries=401")
    faults.raise_if_any()
    solver = CertificateSolver(
        delta, (int(queries) - 1) // 2, radius, confidence, prediction, foresee, answer_error, projected
    )
    return ask_once("certify", problem, solver, x, seed=seed, executor=executor)
