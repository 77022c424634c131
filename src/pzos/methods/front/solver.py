"""The front of two or three costs by the composite trust region: many weights of the costs, one memory of answers.

Each weight has a trust region of its own around the told point that is best for it; all share what was learned of the
followers, because answers belong to no cost. A query is asked for the weight from which the dominated volume is
expected to grow most, judged on the model. Weights enter by augmented Chebyshev costs (:mod:`costs`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from pzos.base.checks import Faults, Must, check_fields, checked, one_of, whole
from pzos.base.threads import one_blas_thread
from pzos.base.types import Matrix, Purpose, Sense, Vector
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.front.costs import directions, hypervolume, scalarised, spans, undominated
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Outcome, Stop, Task, begin
from pzos.methods.trust_region.judging import findings
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, models
from pzos.methods.trust_region.subproblem import Move
from pzos.problem.leader import Leader

_NAN = float("nan")
_COSTS = Must(
    lambda given: isinstance(given, tuple) and 2 <= len(given) <= 3 and all(isinstance(one, Leader) for one in given),
    "two or three leaders",
    "give a tuple of Leaders, each over the same followers",
)
_REGION = Must(lambda given: isinstance(given, CompositeTrustRegion), "a CompositeTrustRegion", "leave it out")
#: Queries for each end before the spans of the costs are believed.
_FIRST = 3
#: How many weights are looked at before a query: those that promised most, and the one looked at longest ago.
_LOOKED = 4
#: The reference of the volume, in spans from the lowest costs, and the worth of a lower weighted cost beside volume:
#: more at the ends, beyond which lies volume that the reference does not show.
_REFERENCE, _BESIDE_VOLUME, _AT_ENDS = 1.1, 0.1, 1.0
#: Queries of a batch lie at least this part of a trust radius from each other.
_APART = 0.05


class Track(NamedTuple):
    """What one weight of the costs has come to: its region, what it promised last, and when that was."""

    region: RegionState
    promise: float = np.inf
    looked: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class FrontState:
    """All points told, their costs (going down), and a track for each weight; ``shared`` has what was learned last.

    ``x`` is the told point with the lowest sum of costs in their spans.
    """

    x: Vector
    value: float
    shared: RegionState
    tracks: tuple[Track, ...] = ()
    points: tuple[Vector, ...] = ()
    answers: tuple[Vector, ...] = ()
    costs: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    step: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FrontPlan(TrialPlan):
    """The plan of one track, with what all tracks looked at promise."""

    track: int = 0
    promises: tuple[tuple[int, float], ...] = ()

    def first(self, count: int) -> Plan | None:
        """Return the plan without the queries that only add to it."""
        return replace(self, points=self.points[:count], purposes=self.purposes[:count])


@dataclass(frozen=True, slots=True)
class FrontSolver:
    """Looks for the front of ``leaders`` over the same followers; ``senses`` says of each "min" or "max".

    ``weights`` is how many weights of two costs are followed; ``batch`` queries are asked at a time; ``within`` has the
    settings of the trust regions. :func:`pzos.front` drives it.
    """

    leaders: tuple[Leader, ...] = checked(_COSTS)
    senses: tuple[Sense, ...] = ("min", "min")
    weights: int = checked(whole(3, "try 15"), default=15)
    batch: int = checked(whole(1, "try 1"), default=1)
    within: CompositeTrustRegion = checked(_REGION, default_factory=CompositeTrustRegion)

    def __post_init__(self) -> None:
        check_fields(self)
        faults = Faults("FrontSolver")
        count = len(self.leaders)
        faults.check(len(self.senses) == count, "senses", self.senses, f"{count} of them", "one for each leader")
        for sense in self.senses:
            one_of(("min", "max")).note(faults, "senses", sense)
        faults.raise_if_any()

    @property
    def signs(self) -> Vector:
        """Return +1 for each cost that goes down and -1 for each that goes up."""
        return np.array([1.0 if sense == "min" else -1.0 for sense in self.senses])

    def init(self, task: Task) -> FrontState:
        """Start at x0, with nothing known."""
        return FrontState(task.known.x0, _NAN, self.within.init(task))

    @one_blas_thread()
    def begun(self, task: Task) -> FrontState:
        """Start with the answers known before: their front is there already."""
        state = FrontState(task.known.x0, _NAN, self.within.init(task))
        for point, answer in task.told:
            state = self._noted(state, point, answer)
        return self._opened(task, replace(state, step=1 + _FIRST * len(self.leaders)), begin(self.within, task))

    def stop(self, task: Task, state: FrontState) -> Stop | None:
        """Stop when queries keep failing; a front can always be filled further."""
        return self.within.stop(task, state.shared) if state.shared.failed else None

    # ---- asking -------------------------------------------------------------------------------------------

    @one_blas_thread()
    def ask(self, task: Task, state: FrontState) -> FrontPlan:
        """Plan the query of the track from which the front is expected to gain most; or x0."""
        if not state.tracks:
            return FrontPlan((state.x,), (Kind.START.purpose,), Kind.START)
        looked = [self._promise(task, state, number) for number in self._looked(state)]
        best = max(looked, key=lambda one: one.promise)
        number = best.number
        if state.step <= _FIRST * len(self.leaders):
            number = (state.step - 1) % len(self.leaders)
        alone = self.within.planned(self._task(task, state, number), self._region(task, state, number))
        further = self._further(state, looked, alone.points[0])
        points, purposes = (alone.points[0], *further), (alone.purposes[0],) + (Purpose.TRIAL,) * len(further)
        promises = tuple((one.number, one.promise) for one in looked)
        return FrontPlan(
            points, purposes, alone.kind, alone.move, alone.predictions, alone.priors, alone.deviation, alone.group,
            number, promises,
        )  # fmt: skip

    def _looked(self, state: FrontState) -> list[int]:
        """Return the tracks to look at: those that promised most when last looked at, and the one longest ago."""
        numbers = range(len(state.tracks))
        if state.step <= _FIRST * len(self.leaders):
            return [(state.step - 1) % len(self.leaders)]
        promising = sorted(numbers, key=lambda k: -state.tracks[k].promise)[: _LOOKED - 1 + self.batch]
        oldest = min(numbers, key=lambda k: state.tracks[k].looked)
        return list(dict.fromkeys([*promising, oldest]))

    def _promise(self, task: Task, state: FrontState, number: int) -> _Looked:
        """Return what the front is expected to gain from the minimiser of one track on the model."""
        own, region = self._task(task, state, number), self._region(task, state, number)
        (model,) = models(own, region, self.within.points, region.shapes[:1], region.priors, False).values()
        move = self.within.minimiser(own, region, model)
        costs = self._costs_on(model, move.x)
        if costs is None:
            return _Looked(number, 0.0, move, region.radius)
        lowest, wide = spans(state.costs)
        scaled, reference = (state.costs - lowest) / wide, np.full(lowest.size, _REFERENCE)
        grown = hypervolume(np.vstack([scaled, (costs - lowest) / wide]), reference) - hypervolume(scaled, reference)
        worth = _AT_ENDS if number < len(self.leaders) else _BESIDE_VOLUME
        return _Looked(number, grown + worth * max(move.predicted, 0.0), move, region.radius)

    def _costs_on(self, model: ResponseModel, x: Vector) -> Vector | None:
        y = model.clipped(x)
        try:
            with np.errstate(all="ignore"):
                costs: Vector = self.signs * np.array([leader.value(x, y) for leader in self.leaders])
        except (ArithmeticError, ValueError):
            return None  # f is not defined on what the model answers
        return costs

    def _further(self, state: FrontState, looked: list[_Looked], x: Vector) -> tuple[Vector, ...]:
        points, sizes = [x], state.shared.past.sizes
        for one in sorted(looked, key=lambda one: -one.promise):
            apart = min(float(np.max(np.abs(one.move.x - point) / sizes)) for point in (*points, *state.points))
            if len(points) < self.batch and apart > _APART * one.radius:
                points.append(one.move.x)
        return tuple(points[1:])

    def _task(self, task: Task, state: FrontState, number: int) -> Task:
        """Return the task of one track: the scalarised cost of its weight, in the spans that the costs have now."""
        lowest, wide = spans(state.costs)
        weights = directions(len(self.leaders), self.weights)[number]
        leader = scalarised(self.leaders, self.signs, lowest, wide, weights)
        return replace(task, known=replace(task.known, leader=leader, sense="min"))

    def _region(self, task: Task, state: FrontState, number: int) -> RegionState:
        """Return the trust region of one track around the point that is best for it now, with what all have learned."""
        own, shared = state.tracks[number].region, state.shared
        leader, history = self._task(task, state, number).known.leader, shared.past
        values = [leader.value(x, y) for x, y in zip(history.points, history.answers, strict=True)]
        best = int(np.argmin(values))
        return replace(
            own, x=history.points[best], value=float(values[best]), first=float(values[0]), centre=best,
            step=state.step, history=history, contest=shared.contest, scales=shared.scales, priors=shared.priors,
            tuned=shared.tuned, exact=shared.exact, suspect=shared.suspect, jumps=shared.jumps, blur=shared.blur,
            surprise=shared.surprise, miss=shared.miss, wrong=shared.wrong, given=shared.given, failed=shared.failed,
            trials=shared.trials, succeeded=shared.succeeded,
        )  # fmt: skip

    # ---- telling ------------------------------------------------------------------------------------------

    @one_blas_thread()
    def tell(self, task: Task, state: FrontState, plan: Plan, answers: Answers) -> tuple[FrontState, Outcome]:
        """Judge the step by the cost of its weight; every track hears of the answers."""
        plan = of_kind(FrontPlan, plan)
        told = [(x, y) for x, y in zip(plan.points, answers, strict=True) if y is not None]
        before = state
        for x, y in told:
            state = self._noted(state, x, y)
        if plan.kind is Kind.START:
            if told:
                first, _ = self.within.tell(self._started(task, state), before.shared, plan, answers)
                state = self._opened(task, state, first)
            return replace(state, step=state.step + 1), self._outcome(state, plan)
        own, region = self._task(task, before, plan.track), self._region(task, before, plan.track)
        alone = replace(plan, points=plan.points[:1], purposes=plan.purposes[:1])
        moved, _ = self.within.tell(own, region, alone, answers[:1])
        others = [pair for pair in told if pair[0] is not plan.points[0]]
        if others and moved.history is not None:
            moved = self.within.informed(own, moved, others)
        tracks = list(state.tracks)
        for number, promise in plan.promises:
            tracks[number] = tracks[number]._replace(promise=promise, looked=state.step)
        tracks[plan.track] = Track(moved, np.inf, state.step)
        state = replace(state, shared=moved, tracks=tuple(tracks), step=state.step + 1)
        return state, self._outcome(state, plan)

    def _noted(self, state: FrontState, x: Vector, y: Vector) -> FrontState:
        """Return the state with one more point and its costs."""
        costs = self.signs * np.array([leader.value(x, y) for leader in self.leaders])
        rows = costs[None] if not state.points else np.vstack([state.costs, costs])
        lowest, wide = spans(rows)
        best = int(np.argmin(((rows - lowest) / wide).sum(axis=1)))
        points = (*state.points, x)
        return replace(
            state, points=points, answers=(*state.answers, y), costs=rows, x=points[best], value=float(rows[best].sum())
        )

    def _started(self, task: Task, state: FrontState) -> Task:
        """Return the task for the first answer, which makes scale and contest: the costs in units of their sizes."""
        size = np.abs(state.costs[0])
        wide = np.where(size > 0.0, size, 1.0)
        weights = np.full(len(self.leaders), 1.0 / len(self.leaders))
        leader = scalarised(self.leaders, self.signs, state.costs[0], wide, weights)
        return replace(task, known=replace(task.known, leader=leader, sense="min"))

    def _opened(self, task: Task, state: FrontState, region: RegionState) -> FrontState:
        count = len(directions(len(self.leaders), self.weights))
        return replace(state, shared=region, tracks=(Track(region),) * count)

    def _outcome(self, state: FrontState, plan: FrontPlan) -> Outcome:
        if not state.points:
            return Outcome(plan.points[0], _NAN, _NAN, _NAN)
        lowest, wide = spans(state.costs)
        volume = hypervolume((state.costs - lowest) / wide, np.full(lowest.size, _REFERENCE))
        extras = {
            "radius": state.tracks[plan.track].region.radius if state.tracks else _NAN,
            "front": float(undominated(state.costs).size),
            "hypervolume": volume,
        }
        x = plan.points[0]
        value = next((float(c.sum()) for p, c in zip(state.points, state.costs, strict=True) if p is x), _NAN)
        return Outcome(x, value, _NAN, plan.move.size, extras)

    def findings(self, state: FrontState) -> str:
        """Say in plain words what was found out about the followers."""
        return findings(state.shared)


class _Looked(NamedTuple):
    number: int
    promise: float
    move: Move
    radius: float
