"""The composite trust region under outcome constraints g(x, y*(x)) <= 0: one model of the response serves f and g.

Every answer ever told is judged by a merit, sign f/s_f + mu max_k (g_k/s_k)+, which costs no query; the centre is the
told point of lowest merit, and the next query lies where cost and constraints on the model say
(:mod:`pzos.methods.trust_region.elastic`), with a margin for what the model does not know of the constraints. All else,
from looking around to judging a step, is :class:`CompositeTrustRegion` at work on the merit. No theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from pzos.base.checks import check_fields, checked, instance_of
from pzos.base.threads import one_blas_thread
from pzos.base.types import Matrix, Vector
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Foresight, Outcome, Stop, Task, Told
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.elastic import (
    ElasticMove,
    OnModel,
    Scales,
    elastic_move,
    hopeful_move,
    merit_of,
    multipliers_at,
)
from pzos.methods.trust_region.judging import findings
from pzos.methods.trust_region.solver import HOPE, CompositeTrustRegion, Query, negligible
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, models
from pzos.methods.trust_region.subproblem import Move
from pzos.problem.outcomes import RISK, SPANNED, Outcomes
from pzos.problem.problem import Known

_Judged = Callable[[Task, RegionState, Plan, Answers], tuple[RegionState, Outcome]]
_REGION = instance_of(CompositeTrustRegion, "a CompositeTrustRegion", "try CompositeTrustRegion()")
#: The least price of a violation; a price that turns out needless is halved from step to step.
_LEAST_PRICE = 1.0
#: The share of the promise that is not given up for hope.
_WORTH = 0.25
#: So many deviations are believed before any was seen, so much is forgotten from trial to trial, and one that is larger
#: counts as this.
_BELIEF, _KEPT, _LARGEST = 1.0, 0.9, 5.0
_WARIEST = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedState:
    """The trust region on the merit, the price ``mu`` of violations, and cost and constraints of its answers.

    ``first`` is f and g at x0, ``lowest`` and ``highest`` span the first answers: the scales of f and g; ``told`` is f
    and g of the answers remembered, by their bits. ``surprises`` sums how far trials were off, squared and in
    deviations of the model, and counts them; what is long past counts less.
    """

    region: RegionState
    mu: float = _LEAST_PRICE
    first: Vector = field(default_factory=lambda: np.zeros(0))
    lowest: Vector = field(default_factory=lambda: np.zeros(0))
    highest: Vector = field(default_factory=lambda: np.zeros(0))
    told: Mapping[bytes, Vector] = field(default_factory=dict, repr=False)
    surprises: tuple[float, float] = (0.0, 0.0)

    @property
    def caution(self) -> float:
        """Return by which factor the model was off at earlier trials, at least 1: margins are wider by it."""
        squares, count = self.surprises
        return min(max(float(np.sqrt((_BELIEF + squares) / (_BELIEF + count))), 1.0), _WARIEST)

    @property
    def x(self) -> Vector:
        """Return the centre: the told point of lowest merit."""
        return self.region.x

    @property
    def value(self) -> float:
        """Return F at the centre."""
        if not self.told:
            return self.region.value
        return float(self.told[_centre_bits(self.region)][0])

    @property
    def scales(self) -> Scales:
        """Return what a typical change of the cost and of each constraint is, from the first answers."""
        spans = np.maximum(
            self.highest - self.lowest, np.abs(self.first) * np.where(np.arange(self.first.size), 1.0, 0.1)
        )
        spans = np.where(spans > 0.0, spans, 1.0)
        return Scales(float(spans[0]), spans[1:])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeritTask(Task):
    """The task on the merit, with the problem itself and what its merit was made with."""

    problem: Known
    outcomes: Outcomes
    scales: Scales
    mu: float
    quantile: float


class _OnMerit(CompositeTrustRegion):
    """The trust region whose minimiser is that of the elastic problem."""

    __slots__ = ()

    def move_within(self, task: Task, state: RegionState, model: ResponseModel, radius: float) -> Move:
        if not isinstance(task, MeritTask):
            return CompositeTrustRegion.move_within(self, task, state, model, radius)
        on = OnModel(task.problem, task.outcomes, task.scales, model)
        region = looking.region_of(task, state, radius)
        return elastic_move(on, region, max(_LEAST_PRICE, 0.5 * task.mu), self.iterations, task.quantile)

    def _query(self, task: Task, state: RegionState, model: ResponseModel) -> Query:
        """Return what the trust region would ask; the minimiser without margins where those leave nothing to gain.

        That query may well violate a constraint, and tells how it runs just where the next trial has to keep it: more
        than a random probe would.
        """
        query = CompositeTrustRegion._query(self, task, state, model)
        move = query.move
        if query.kind is not Kind.PROBE or not isinstance(move, ElasticMove):
            return query
        promising = move.bold.predicted > negligible(state) and not state.knows(move.bold.x)
        return query._replace(kind=Kind.EXPLORE, point=move.bold.x) if promising else query

    def hopes(self, task: Task, state: RegionState) -> bool:
        """Tell whether every direction is known: a trial that fails may have paid the price of a constraint alone."""
        if not isinstance(task, MeritTask):
            return CompositeTrustRegion.hopes(self, task, state)
        return state.past.count > state.x.size

    def _hopeful(self, task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float) -> Move:
        if not isinstance(task, MeritTask) or not isinstance(move, ElasticMove):
            return CompositeTrustRegion._hopeful(self, task, state, model, move, doubt)
        on = OnModel(task.problem, task.outcomes, task.scales, model)
        region = looking.region_of(task, state)
        short = max(self.iterations // 4, 1)  # hope sways the step; a long search for it would lead away
        start = looking.nudged(task, state, move.x)
        hoped = hopeful_move(on, region, move, short, task.quantile, HOPE * doubt, start)
        return hoped if hoped.predicted > _WORTH * move.predicted else move


@dataclass(frozen=True, slots=True)
class ConstrainedTrustRegion:
    """The composite trust region for a problem with ``outcomes``, which :func:`pzos.solve` takes for one by itself.

    ``risk`` is the probability with which a trial may violate each constraint, as far as the model knows what it does
    not know; ``within`` is the trust region with its settings.
    """

    within: CompositeTrustRegion = checked(_REGION, default_factory=CompositeTrustRegion)
    risk: float = checked(RISK, default=0.05)
    keeps_grid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def _region(self) -> _OnMerit:
        return _OnMerit(**{setting.name: getattr(self.within, setting.name) for setting in fields(self.within)})

    def init(self, task: Task) -> ConstrainedState:
        """Start at x0."""
        return ConstrainedState(self._region.init(task))

    def begun(self, task: Task) -> ConstrainedState:
        """Start at the lowest merit of the answers known before."""
        return _recentred(task, ConstrainedState(self._region.begun(task)))

    def outlook(self, task: Task, state: ConstrainedState) -> tuple[Vector, ResponseModel]:
        """Return where cost and constraints on the model say, and the model."""
        return self._region.outlook(self._on_merit(task, state), state.region)

    def stop(self, task: Task, state: ConstrainedState) -> Stop | None:
        """Stop as the trust region on the merit does."""
        return self._region.stop(task, state.region)

    def ask(self, task: Task, state: ConstrainedState) -> Plan:
        """Plan where cost and constraints on the model say, or wherever the trust region has to look."""
        return self._region.ask(self._on_merit(task, state), state.region)

    def propose(self, task: Task, state: ConstrainedState, pending: Sequence[Plan]) -> Plan:
        """Plan one query more while others are open."""
        return self._region.propose(self._on_merit(task, state), state.region, pending)

    def tell(
        self, task: Task, state: ConstrainedState, plan: Plan, answers: Answers
    ) -> tuple[ConstrainedState, Outcome]:
        """Judge the step by the merit it was planned with, then stand at the lowest merit of all answers."""
        return self._told(task, state, plan, answers, self._region.tell)

    def take(
        self, task: Task, state: ConstrainedState, plan: Plan, answer: Vector | None
    ) -> tuple[ConstrainedState, Outcome]:
        """Take the answer to a query that was proposed, in any order."""

        def judged(task: Task, region: RegionState, plan: Plan, answers: Answers) -> tuple[RegionState, Outcome]:
            return self._region.take(task, region, plan, answers[0])

        return self._told(task, state, plan, (answer,), judged)

    def _told(
        self, task: Task, state: ConstrainedState, plan: Plan, answers: Answers, judged: _Judged
    ) -> tuple[ConstrainedState, Outcome]:
        plan = of_kind(TrialPlan, plan)
        move = plan.move
        if isinstance(move, ElasticMove):
            state = _rebased(task, replace(state, mu=move.mu))
        region, outcome = judged(self._on_merit(task, state), state.region, plan, answers)
        state = replace(state, region=region)
        if region.history is None:
            return state, outcome
        y = next((y for x, y in zip(plan.points, answers, strict=True) if x is outcome.x and y is not None), None)
        outcomes = task.known.outcomes
        if isinstance(move, ElasticMove) and y is not None and plan.kind is Kind.TRIAL and outcomes is not None:
            excess = outcomes.values(outcome.x, y) / state.scales.outcomes
            state = replace(state, surprises=_surprised(state.surprises, move, excess))
        value = float("nan") if y is None else task.known.leader.value(outcome.x, y)
        price = float(move.multipliers.sum()) if isinstance(move, ElasticMove) else float("nan")
        margin = float("nan")
        if isinstance(move, ElasticMove):  # whatever else a query is for, no margin is kept on purpose
            margin = move.margin if plan.kind is Kind.TRIAL else 0.0
        extras = {**outcome.extras, "multipliers": price, "margin": margin}
        return _recentred(task, state), outcome._replace(value=value, extras=extras)

    def informed(self, task: Task, state: ConstrainedState, answers: Told) -> ConstrainedState:
        """Take answers from elsewhere into the history."""
        region = self._region.informed(self._on_merit(task, state), state.region, answers)
        return _recentred(task, replace(state, region=region))

    def foresight(self, task: Task, state: ConstrainedState) -> Foresight | None:
        """Return the model's prediction of J' grad_y f, for a certificate."""
        return self._region.foresight(task, state.region)

    def certifying_radius(self, state: ConstrainedState) -> float | None:
        """Return on which scale to certify a point."""
        return self._region.certifying_radius(state.region)

    def findings(self, state: ConstrainedState) -> str:
        """Say in plain words what was found out about the followers."""
        return findings(state.region)

    @one_blas_thread()
    def multipliers(self, task: Task, state: ConstrainedState, x: Vector, values: Vector) -> Vector | None:
        """Return the multipliers at x, on the model: by how much F would improve per unit of room in each g."""
        if state.region.history is None or task.known.outcomes is None:
            return None
        region = state.region
        (model,) = models(task, region, self.within.points, region.shapes[:1], region.priors).values()
        return multipliers_at(OnModel(task.known, task.known.outcomes, state.scales, model), x)

    def _on_merit(self, task: Task, state: ConstrainedState) -> Task:
        """Return the task on the merit; before the first answer, which makes its scales, the task itself."""
        outcomes = task.known.outcomes
        if outcomes is None or state.first.size == 0:
            return task
        merit = merit_of(task.known, outcomes, state.scales, state.mu)
        known = replace(task.known, leader=merit, sense="min", outcomes=None)
        quantile = NormalDist().inv_cdf(1.0 - self.risk) * state.caution
        return MeritTask(
            known,
            task.keys,
            problem=task.known,
            outcomes=outcomes,
            scales=state.scales,
            mu=state.mu,
            quantile=quantile,
        )


def _surprised(surprises: tuple[float, float], move: ElasticMove, excess: Vector) -> tuple[float, float]:
    """Return the sums with how far above the model the constraints near their limits were at one more trial."""
    near = (move.deviations > 0.0) & np.isfinite(move.deviations)
    near &= np.maximum(move.foreseen, excess) > -3.0 * np.where(near, move.deviations, 0.0)
    if not near.any():
        return surprises
    above = (excess[near] - move.foreseen[near]) / move.deviations[near]
    off = np.minimum(np.maximum(above, 0.0), _LARGEST)
    squares, count = surprises
    return _KEPT * squares + 2.0 * float(np.mean(off**2)), _KEPT * count + 1.0  # half of the deviations are upward


def _bits(x: Vector, y: Vector) -> bytes:
    return x.tobytes() + y.tobytes()


def _centre_bits(region: RegionState) -> bytes:
    return _bits(region.past.points[region.centre], region.past.answers[region.centre])


def _recentred(task: Task, state: ConstrainedState) -> ConstrainedState:
    """Note f and g of all answers, widen their scales, and stand where the merit is lowest."""
    known, history = task.known, state.region.past
    outcomes = known.outcomes
    if outcomes is None:
        return state
    told: dict[bytes, Vector] = {}
    for x, y in zip(history.points, history.answers, strict=True):
        key = _bits(x, y)
        before = state.told.get(key)
        told[key] = np.append(known.leader.value(x, y), outcomes.values(x, y)) if before is None else before
    rows = np.array(list(told.values()))
    first = rows[0] if state.first.size == 0 else state.first
    state = replace(state, told=told, first=first)
    if state.lowest.size == 0 or history.count <= SPANNED:
        state = replace(state, lowest=rows.min(axis=0), highest=rows.max(axis=0))
    if not state.region.rough:  # else a lucky answer would lead
        best = int(np.argmin(_merits(task, state, rows)))
        if best != state.region.centre:
            state = replace(state, region=replace(state.region, x=history.points[best], centre=best))
    return _rebased(task, state)


def _rebased(task: Task, state: ConstrainedState) -> ConstrainedState:
    """Return the state with the merits of centre and start as the present price and scales make them."""
    region = state.region
    if not state.told:
        return state
    here = state.told[_centre_bits(region)]
    value, first = _merits(task, state, np.array([here, state.first]))
    return replace(state, region=replace(region, value=float(value), first=float(first)))


def _merits(task: Task, state: ConstrainedState, rows: Matrix) -> Vector:
    """Return the merit of rows of f and g."""
    scales = state.scales
    excess = np.maximum((rows[:, 1:] / scales.outcomes).max(axis=1), 0.0)
    merits: Vector = task.known.sign * rows[:, 0] / scales.cost + state.mu * excess
    return merits
