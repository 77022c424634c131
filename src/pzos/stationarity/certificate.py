"""The statistical certificate: fresh directions at x, and an upper confidence bound on the stationarity norm.

For a radius mu <= delta the expectation of the paper's estimate g lies in the delta-partial Goldstein subdifferential
of F at x (Lem. 11 with Lem. 7), and the expectation of the black-box estimate in the Goldstein subdifferential. Both
are computed from the same answers; an upper confidence bound for the norm of the expectation is one for the smallest
norm in the set: "with 95 % confidence x is (delta, eps)-(partial-)Goldstein stationary for eps = ...". A large bound
does not say that x is not stationary.

The noise is taken out by a prediction h of the gradient, from the first part of the batch or from the memory of a run,
used on the rest: g = h + d (D - h.v) v. With h fixed before v is drawn, g is unbiased whatever h is, because
E[d v v'] = I; its noise is d |grad - h|^2 (methods, section 1). On a constrained x the certificate is about g + n with
a normal n of the domain near x (:func:`normal_near`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, at_least, checked, note_fields, one_of, positive, whole
from pzos.base.keys import Role
from pzos.base.types import LeaderValue, Matrix, Purpose, Vector, dot
from pzos.durable.replay import summary
from pzos.methods.estimators import Answers, Plan, TwoPointPlan, answered_pairs, of_kind, plan_inside
from pzos.methods.smoothing import INSIDE
from pzos.methods.solver import Certifiable, Foresight, Task, foreseen
from pzos.problem.leader import Leader
from pzos.problem.problem import Known, Problem
from pzos.problem.room import has_room
from pzos.problem.sets import Domain, Whole
from pzos.stationarity.bounds import CONFIDENCE, FEWEST, FEWEST_QUERIES, NormBound, norm_upper_bound
from pzos.stationarity.multipliers import Constraints, fitted_multipliers, lagrangian
from pzos.stationarity.neighbours import NeighbourCertificate, NeighbourSolver
from pzos.stationarity.one_batch import BatchState, OneBatch, all_equal, ask_once, report_on
from pzos.stationarity.theory import Notion
from pzos.study.result import NAMES, Result, ordered
from pzos.study.study import Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

PredictionSource = Literal["pilot", "none"]
#: Ridges tried for the prediction, and how a normal's step length is found.
_RIDGES = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0)
_DOUBLINGS = 60
_HALVINGS = 40
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What one batch of fresh directions says about x; ``print`` it for the sentence.

    ``partial`` and ``full`` bound the norm of one element of the partial Goldstein and of the Goldstein
    subdifferential (plus a normal of the domain where x is constrained: ``projected``). With constraints on outcomes
    both speak of the Lagrangian, and ``constraints`` says for which multipliers. ``unmoved`` says that all fresh
    answers were that at x.
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
    constraints: Constraints | None = None
    unmoved: bool = False

    def bound(self, notion: Notion = "partial") -> NormBound:
        """Return the bound for one notion."""
        return self.partial if notion == "partial" else self.full

    def stationary(self, epsilon: float, notion: Notion = "partial") -> bool:
        """Tell whether (delta, epsilon)-stationarity is certified."""
        return self.bound(notion).upper <= epsilon

    @property
    def plain(self) -> str:
        """Return in plain words what was found: a slope of the cost averaged over small moves, no more than that."""
        if self.unmoved:
            return (
                f"the followers did not move: all {self.queries} fresh answers within {self.radius:.3g} of x are the "
                "same, so nothing is known of how the cost goes where they do"
            )
        where = " that its domain allows" if self.projected else ""
        what = "cost" if self.constraints is None else f"cost under its constraints ({self.constraints.sentence})"
        return (
            f"averaged over moves of size up to {self.radius:.3g} around x, the {what} has no slope steeper than "
            f"{self.full.upper:.3g} in any direction{where}, as far as {self.queries} fresh queries can tell "
            f"({100 * self.confidence:g} % confidence)"
        )

    @property
    def sentence(self) -> str:
        """Return what was found in plain words and, unless the followers did not move, in those of the theorem."""
        if self.unmoved:
            return self.plain
        return f"{self.plain}: x is ({self.delta:.3g}, {self.partial.upper:.3g})-partial-Goldstein stationary"

    def __repr__(self) -> str:
        if self.unmoved:
            return self.plain
        sure = f"with {100 * self.confidence:g} % confidence"
        extra = " of the problem over its domain" if self.projected else ""
        if self.constraints is not None:
            extra += f" under its constraints ({self.constraints.sentence})"
        return (
            f"{self.plain};\n"
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
    bounds on the rest (:func:`fit_prediction`); "none" uses the paper's two estimates on all directions.
    ``foresee(x, at)`` predicts J' grad_y f from what was known before the batch: a model of the followers, however
    wrong, or the memory of a run. ``answer_error`` bounds the error of |y*| in the answers, if there is one: it adds
    sqrt(d) |grad_y f| error/mu to the bound. ``projected`` allows for normals of the domain. ``inside`` keeps every
    query in the domain: near its boundary the pairs lie around another point, with a smaller mu, but within delta of x,
    so that the statement is the same (:mod:`pzos.problem.room`). ``address`` numbers the certificates of a study.
    """

    delta: float = checked(positive("the radius of the subdifferential"))
    directions: int = 200
    radius: float | None = checked(positive("or None for delta").or_none(), default=None)
    confidence: float = checked(CONFIDENCE, default=0.95)
    prediction: PredictionSource = checked(one_of(("pilot", "none"), "choose"), default="pilot")
    foresee: Foresight | None = None
    answer_error: float = checked(at_least(0.0, "zero or more", "try 0.0"), default=0.0)
    projected: bool = True
    address: int = 0
    inside: bool = checked(INSIDE, default=True, later=True)

    def __post_init__(self) -> None:
        faults = Faults("CertificateSolver")
        note_fields(faults, self)
        fewest = FEWEST if self.prediction == "none" and not self.projected else 2 * FEWEST
        whole(fewest, "try directions=200").note(faults, "directions", self.directions)
        if not faults.messages and self.radius is not None:
            faults.check(self.radius <= self.delta, "radius", self.radius, f"at most delta = {self.delta}", "cut it")
        faults.raise_if_any()

    @property
    def mu(self) -> float:
        """Return the smoothing radius."""
        return self.delta if self.radius is None else self.radius

    def ask(self, task: Task, state: BatchState[Certificate]) -> Plan:
        """Plan x and x +- mu v for directions no run has used."""
        return self.plan_at(task, state.x)

    def plan_at(self, task: Task, x: Vector) -> TwoPointPlan:
        """Plan the batch at any x."""

        def directions(dimension: int) -> list[Vector]:
            return [task.keys.direction(self.address, q, dimension, Role.CERTIFICATE) for q in range(self.directions)]

        purposes = (Purpose.ITERATE,) + (Purpose.CERTIFICATE,) * (2 * self.directions)
        domain = task.known.domain if self.inside else Whole()
        return replace(plan_inside(x, self.mu, directions, domain, centred=True), purposes=purposes)

    def read(self, known: Known, plan: Plan, answers: Answers) -> Certificate | None:
        """Bound both norms from one batch; None if y*(x) or too many pairs failed."""
        plan, centre = of_kind(TwoPointPlan, plan), answers[0]
        if centre is None:
            return None
        at = known.leader(plan.x, centre)
        slopes = _slopes(known.leader, plan, at, answers)
        if slopes is None:
            return None
        error = sqrt(dot(at.grad_y, at.grad_y)) * (self.answer_error + _ROUNDING * slopes.largest_answer)
        prior = at.grad_x if self.foresee is None else at.grad_x + self.foresee(plan.x, at)
        partial = self._bound(known, plan, slopes.directions, slopes.partial, prior, error)
        error += _ROUNDING * slopes.largest_value
        if self.prediction == "none" and self.foresee is None:
            prior = np.zeros_like(prior)  # the paper's black-box estimate
        full = self._bound(known, plan, slopes.directions, slopes.full, prior, error)
        pilot = len(slopes.full) - full.samples
        projected = self.projected and not isinstance(known.domain, Whole)
        # E[d (D - grad_x f . v) v] = J_mu' grad_y f: its size is the natural unit of the noise.
        known_part = np.einsum("ij,j->i", slopes.directions, plan.coordinates(at.grad_x))
        response = gradient_samples(slopes.directions, slopes.partial - known_part, np.zeros(plan.dimension))
        part = response.mean(axis=0)
        return Certificate(
            plan.x, at.value, self.delta, plan.radius, self.confidence, partial, full, len(slopes.full), pilot,
            len(plan.points), projected, sqrt(dot(part, part)), unmoved=all_equal(answers),
        )  # fmt: skip

    def _bound(
        self, known: Known, plan: TwoPointPlan, directions: Matrix, slopes: Vector, prior: Vector, error: float
    ) -> NormBound:
        """Fix h and the normal from the pilot, then bound |E g + n| from the rest, in the directions of the plan.

        An error e in mu D moves E g by at most sqrt(d) e/mu, because E|u.v| <= 1/sqrt(d) for a unit vector u.
        """
        size = plan.dimension
        constrained = self.projected and not isinstance(known.domain, Whole)
        pilot = self._pilot(len(slopes), size, self._set_aside(known))
        prediction, normal = plan.coordinates(prior), np.zeros(size)
        if pilot and self.prediction == "pilot":
            prediction = fit_prediction(directions[:pilot], slopes[:pilot], prediction)
        if constrained:
            guess = plan.along(gradient_samples(directions[:pilot], slopes[:pilot], prediction).mean(axis=0))
            found = known.sign * normal_near(known.domain, plan.x, known.sign * guess, self.delta)
            normal = plan.coordinates(found)
        samples = gradient_samples(directions[pilot:], slopes[pilot:], prediction) + normal
        allowance = sqrt(size) * error / plan.radius + _ROUNDING * float(np.abs(samples).max())
        predicted = self.prediction == "pilot" or self.foresee is not None
        return norm_upper_bound(samples, self.confidence, allowance, predicted=predicted)

    def _pilot(self, pairs: int, dimension: int, set_aside: bool) -> int:
        """Return how many pairs come before the bound: for the prediction, and for whatever else is set by them."""
        pilot = pilot_size(pairs, dimension) if self.prediction == "pilot" else 0
        return pairs // 2 if set_aside and pilot < FEWEST else pilot

    def _set_aside(self, known: Known) -> bool:
        """Tell whether something besides the prediction is set by the first pairs: a normal of the domain."""
        return self.projected and not isinstance(known.domain, Whole)


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedCertificateSolver(CertificateSolver):
    """The certificate of a problem with constraints on outcomes: that of its Lagrangian.

    ``prices`` are multipliers found before the batch, by a run; None fits them to the first part of the batch, and the
    bounds are taken from the rest. See :mod:`pzos.stationarity.multipliers` for what is claimed.
    """

    prices: tuple[float, ...] | None = None

    def read(self, known: Known, plan: Plan, answers: Answers) -> Certificate | None:
        """Bound the norm of an element of the subdifferential of the Lagrangian."""
        plan, y, outcomes = of_kind(TwoPointPlan, plan), answers[0], known.outcomes
        if y is None or outcomes is None:
            return CertificateSolver.read(self, known, plan, answers)
        if self.prices is None:
            pairs = len(list(answered_pairs(plan.directions, answers[1:])))
            pilot = self._pilot(pairs, plan.dimension, True)
            at = known.leader(plan.x, y)
            found = fitted_multipliers(known, outcomes, plan, at, answers, pilot, self.delta)
        else:
            found = np.array(self.prices)
        plain = replace(known, leader=lagrangian(known, outcomes, found), outcomes=None)
        certificate = CertificateSolver.read(self, plain, plan, answers)
        if certificate is None:
            return None
        constraints = Constraints(outcomes.names, outcomes.values(plan.x, y), found)
        return replace(certificate, value=known.leader.value(plan.x, y), constraints=constraints)

    def _set_aside(self, known: Known) -> bool:
        return self.prices is None or CertificateSolver._set_aside(self, known)


class _Slopes(NamedTuple):
    """The answered pairs: directions (in the plan's coordinates), D of both notions, the largest |y| and |f| seen."""

    directions: Matrix
    partial: Vector
    full: Vector
    largest_answer: float
    largest_value: float


def _slopes(leader: Leader, plan: TwoPointPlan, at: LeaderValue, answers: Answers) -> _Slopes | None:
    kept, partial, full = [], [], []
    answer, value = 0.0, abs(at.value)
    pairs = zip(plan.directions, plan.points[1::2], plan.points[2::2], strict=True)
    for (v, ahead, behind), plus, minus in answered_pairs(pairs, answers[1:]):
        kept.append(plan.coordinates(v))
        partial.append(dot(at.grad_x, v) + dot(at.grad_y, plus - minus) / (2.0 * plan.radius))
        above, below = leader.value(ahead, plus), leader.value(behind, minus)
        full.append((above - below) / (2.0 * plan.radius))
        answer, value = max(answer, dot(plus, plus), dot(minus, minus)), max(value, abs(above), abs(below))
    if len(kept) < 2 * FEWEST and len(kept) < len(plan.directions):
        return None
    return _Slopes(np.array(kept), np.array(partial), np.array(full), sqrt(answer), value)


def kind_for(problem: Problem) -> type[CertificateSolver]:
    """Return which certificate a problem needs."""
    constrained = isinstance(problem, Problem) and problem.outcomes is not None
    return ConstrainedCertificateSolver if constrained else CertificateSolver


def certify(
    problem: Problem,
    x: npt.ArrayLike | None = None,
    *,
    delta: float,
    queries: int = 401,
    radius: float | None = None,
    confidence: float = 0.95,
    prediction: PredictionSource = "pilot",
    foresee: Foresight | None = None,
    answer_error: float = 0.0,
    projected: bool = True,
    inside: bool = True,
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
    whole(FEWEST_QUERIES, "try queries=401").require("certify", "queries", queries)
    solver = kind_for(problem)(
        delta, (int(queries) - 1) // 2, radius, confidence, prediction, foresee, answer_error, projected, inside=inside
    )
    return report_on("certify", problem, solver, x, seed=seed, executor=executor)


# ---- the prediction, from a pilot -------------------------------------------------------------------------------

# The pilot pairs (v_q, D_q) are regressed, D ~ h . v, by ridge regression around a multiple of the leader's own
# gradient; the multiple and the ridge are chosen by leave-one-out error. On a smooth response and with more pilot pairs
# than dimensions nothing but the response's third-order terms is left as noise.


def pilot_size(directions: int, dimension: int) -> int:
    """Return how many of the directions make the prediction: 3 d of them, at most half; none if there are few.

    With no more directions than dimensions a pilot costs as many samples as it removes noise.
    """
    return 0 if directions <= dimension else min(3 * dimension, directions // 2)


def fit_prediction(directions: Matrix, slopes: Vector, prior: Vector) -> Vector:
    """Return h with h . v ~ D for the rows v of ``directions`` and D of ``slopes``, starting from ``prior``."""
    base = _blend(directions, slopes, prior)
    rest = slopes - np.einsum("ij,j->i", directions, base)
    left, values, right = np.linalg.svd(directions, full_matrices=False)
    turned = np.einsum("ij,i->j", left, rest)
    best, best_error = base, float(np.mean(rest**2))
    scale = float(values[0] ** 2)
    for ridge in _RIDGES:
        shrink = np.where(values > 1e-10 * values[0], values**2 / (values**2 + ridge * scale), 0.0)
        leverage = np.einsum("ij,j->i", left**2, shrink)
        if leverage.max() >= 1.0 - 1e-9:  # it would only repeat the data: leave-one-out says nothing
            continue
        errors = (rest - np.einsum("ij,j->i", left, shrink * turned)) / (1.0 - leverage)
        error = float(np.mean(errors**2))
        if error < best_error:
            step = np.divide(shrink, values, out=np.zeros_like(values), where=shrink > 0.0)
            best, best_error = base + np.einsum("ji,j->i", right, step * turned), error
    return best


def _blend(directions: Matrix, slopes: Vector, prior: Vector) -> Vector:
    """Return lambda * prior with lambda in [0, 1] by regression: near an optimum 0 predicts better than grad_x f."""
    along = np.einsum("ij,j->i", directions, prior)
    size = dot(along, along)
    share = min(max(dot(along, slopes) / size, 0.0), 1.0) if size > 0.0 else 0.0
    return share * prior


def gradient_samples(directions: Matrix, slopes: Vector, prediction: Vector) -> Matrix:
    """Return one unbiased estimate g = h + d (D - h.v) v per row."""
    surprise = slopes - np.einsum("ij,j->i", directions, prediction)
    samples: Matrix = prediction + (directions.shape[1] * surprise)[:, None] * directions
    return samples


# ---- normals of the domain near x -------------------------------------------------------------------------------

# At a minimiser over X some g + n vanishes, n in the normal cone of X. In the spirit of Goldstein, n is taken at a
# point p of X within delta of x: p = P_X(x - gamma g) gives n = (x - gamma g - p)/gamma in N_X(p), and g + n is the
# gradient mapping (x - p)/gamma. The largest gamma with |p - x| <= delta is used, which makes |g + n| smallest.


def normal_near(domain: Domain, x: Vector, descent: Vector, delta: float) -> Vector:
    """Return a normal n of ``domain`` at a point within ``delta`` of x that makes |descent + n| small.

    ``descent`` is the gradient of what goes down (minus the gradient of F where F is maximised).
    """
    size = sqrt(dot(descent, descent))
    if isinstance(domain, Whole) or size == 0.0:
        return np.zeros_like(x)

    def stays(gamma: float) -> bool:
        move = domain.project(x - gamma * descent) - x
        return sqrt(dot(move, move)) <= delta

    low = delta / size  # |p - x| <= gamma |g| for x in X
    halvings = 0  # of a step that never leaves the ball
    for _ in range(_DOUBLINGS):
        if not stays(2.0 * low):
            halvings = _HALVINGS
            break
        low *= 2.0
    high = 2.0 * low
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stays(middle) else (low, middle)
    target = x - low * descent
    normal: Vector = (target - domain.project(target)) / low
    return normal


# ---- certificates at the end of a run, and kept in files --------------------------------------------------------


def ending_solver(study: Study, queries: int) -> OneBatch[Any] | None:
    """Return the certificate of the point a run ended in, around what the run learned; None if it learned nothing, or
    if the set leaves no room for probes there. On a grid it asks the neighbours.

    However wrong the memory of the run is, the estimate stays unbiased; where it is right, few directions do. delta is
    the radius the solver names: a hundredth of the scale of x that it found, larger under noise.
    """
    solver, grid, x = study.solver, study.known.grid, ending_point(study)
    if grid is not None:
        on_grid = grid.full and bool((grid.rounded(x) == x).all())
        return NeighbourSolver(queries) if on_grid else None
    delta = solver.certifying_radius(study.state) if isinstance(solver, Certifiable) else None
    if delta is None or not has_room(study.known.domain, x, delta):
        return None
    foresee, directions = foreseen(solver, study.task, study.state), (int(queries) - 1) // 2
    if study.known.outcomes is None:
        return CertificateSolver(delta, directions, foresee=foresee)
    prices = tuple(study.result().multipliers.values()) or None
    return ConstrainedCertificateSolver(delta, directions, foresee=foresee, prices=prices)


def ending_point(study: Study) -> Vector:
    """Return the point a run returns, which its certificate speaks of."""
    return study.result().x


def place_beside(path: str | os.PathLike[str], queries: int) -> Path:
    """Return where a durable run keeps its certificate: a run that goes on is certified once more, after more queries.

    >>> place_beside("tolls.study", 40).name
    'tolls.study.certificate-40'
    """
    return Path(f"{os.fspath(path)}.certificate-{queries}")


def kept_beside(path: str | os.PathLike[str], study: Study) -> Certificate | NeighbourCertificate | None:
    """Return the certificate the run of ``study``, kept at ``path``, ended with; None if there is none."""
    file = place_beside(path, study.queries)
    if not file.exists():
        return None
    described = summary(file).header.get("identity", {}).get("solver", {})
    solver = ending_solver(study, int(described.get("queries", 2 * int(described.get("directions", 0)) + 1)))
    if solver is None:
        return None
    return ask_once(
        "report", study.known, solver, None, ending_point(study), seed=study.task.keys.seed, path=file
    ).report


def ended_with(result: Result, certificate: Certificate | NeighbourCertificate | None, queries: int) -> Result:
    """Return the result of a run with the certificate it ended with, and what that cost."""
    ledger = ordered({**result.ledger, NAMES[Purpose.CERTIFICATE.value]: queries})
    return replace(result, certificate=certificate, monitoring=result.monitoring + queries, ledger=ledger)


def kept_at(path: str | os.PathLike[str], identity: dict[str, Any], x: Vector, problem: Problem) -> Certificate | None:
    """Return the certificate kept at ``path`` (``pzos certify --keep``); None if the file holds something else.

    ``identity`` is what the header of the file says of its study, ``x`` the first point it asked about.
    """
    described = identity.get("solver", {})
    kinds = {f".{kind.__name__}": kind for kind in (CertificateSolver, ConstrainedCertificateSolver)}
    kind = next((kinds[name] for name in kinds if str(described.get("type", "")).endswith(name)), None)
    if kind is None or described.get("foresee") is not None:
        return None
    names = {field.name for field in fields(kind)} & set(described)
    settings = {name: _number(described[name]) for name in names}
    solver = replace(kind(delta=settings["delta"]), **settings)
    return ask_once("report", problem.known(), solver, None, x, seed=identity.get("seed", 0), path=path).report


def _number(stored: Any) -> Any:
    """Return a setting as it was: real numbers are kept as text."""
    try:
        return float(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored
