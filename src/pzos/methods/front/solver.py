"""The front of two or three costs by the composite trust region: many weights of the costs, one memory of answers.

Each weight has a trust region of its own around the told point that is best for it; all share what was learned of the
followers, because answers belong to no cost. A query is asked for the weight from which the dominated volume is
expected to grow most, judged on the model. Weights enter by augmented Chebyshev costs (:mod:`costs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pzos.base.checks import Faults, Must, check_fields, checked, one_of, whole
from pzos.base.threads import one_blas_thread
from pzos.base.types import Matrix, Sense, Vector
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.front.costs import Chebyshev, directions, hypervolume, scalarised, spans, undominated
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Outcome, Stop, Task, Told, begin
from pzos.methods.trust_region.judging import findings
from pzos.methods.trust_region.proposing import Proposal, Together, alone, together, told_together
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.methods.trust_region.state import RegionState, models
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
#: A minimiser nearer than this part of a trust radius to an open query promises nothing more.
_APART = 0.05
Spans = tuple[Vector, Vector]


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
class FrontPlan(Proposal):
    """A query of one track, the spans of the costs when it was planned, and what all tracks looked at promised."""

    track: int = 0
    within: Spans | None = None
    promises: tuple[tuple[int, float], ...] = ()


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
        opened = self._opened(state, begin(self.within, task))
        return replace(opened, step=1 + _FIRST * len(self.leaders))

    def stop(self, task: Task, state: FrontState) -> Stop | None:
        """Stop when queries keep failing; a front can always be filled further."""
        return self.within.stop(task, state.shared) if state.shared.failed else None

    # ---- asking -------------------------------------------------------------------------------------------

    @one_blas_thread()
    def ask(self, task: Task, state: FrontState) -> Together:
        """Plan a batch of queries, without an answer in between."""
        plans: list[FrontPlan] = []
        while len(plans) < self.batch:
            plans.append(self.propose(task, state, plans))
        return together(plans)

    @one_blas_thread()
    def propose(self, task: Task, state: FrontState, pending: Sequence[Plan]) -> FrontPlan:
        """Plan the query of the track from which the front is expected to gain most, beside those that are open."""
        asked = [of_kind(FrontPlan, plan) for plan in pending]
        if not state.tracks:
            return _of_track(self.within.propose(task, state.shared, asked))
        now = spans(state.costs)
        track = self._tracks(task, state, now)
        looked = [
            _Looked(number, self._promise(state, now, *track(number), number, asked))
            for number in self._looked(state, asked)
        ]
        number = max(looked, key=lambda one: one.promise).number
        own, region = track(number)
        plan = self.within.propose(own, region, asked) if asked else alone(region, self.within.planned(own, region))
        return _of_track(plan, track=number, within=now, promises=tuple((one.number, one.promise) for one in looked))

    def _looked(self, state: FrontState, asked: Sequence[FrontPlan]) -> list[int]:
        """Return the tracks to look at: those that promised most when last looked at, and the one longest ago."""
        turn = state.step + sum(plan.within is not None for plan in asked)
        if turn <= _FIRST * len(self.leaders):
            return [(turn - 1) % len(self.leaders)]
        tracks = list(state.tracks)
        for plan in asked:
            tracks = _seen(tracks, plan)
            tracks[plan.track] = tracks[plan.track]._replace(promise=0.0)
        numbers = range(len(tracks))
        promising = sorted(numbers, key=lambda k: -tracks[k].promise)[:_LOOKED]
        oldest = min(numbers, key=lambda k: tracks[k].looked)
        return list(dict.fromkeys([*promising, oldest]))

    def _promise(
        self, state: FrontState, now: Spans, own: Task, region: RegionState, number: int, asked: Sequence[FrontPlan]
    ) -> float:
        """Return what the front is expected to gain from the minimiser of one track, beside the open queries."""
        lowest, wide = now
        (model,) = models(own, region, self.within.points, region.shapes[:1], region.priors, False).values()
        move = self.within.minimiser(own, region, model)
        points = [plan.points[0] for plan in asked]
        apart = [float(np.max(np.abs(move.x - point) / region.past.sizes)) for point in points]
        expected = [self._costs_on(model, x) for x in (move.x, *points)]
        if expected[0] is None or min(apart, default=np.inf) <= _APART * region.radius:
            return 0.0
        rows = np.vstack([state.costs, *(costs for costs in reversed(expected) if costs is not None)])
        scaled, reference = (rows - lowest) / wide, np.full(lowest.size, _REFERENCE)
        grown = hypervolume(scaled, reference) - hypervolume(scaled[:-1], reference)
        worth = _AT_ENDS if number < len(self.leaders) else _BESIDE_VOLUME
        return grown + worth * max(move.predicted, 0.0)

    def _costs_on(self, model: ResponseModel, x: Vector) -> Vector | None:
        y = model.clipped(x)
        try:
            with np.errstate(all="ignore"):
                costs: Vector = self.signs * np.array([leader.value(x, y) for leader in self.leaders])
        except (ArithmeticError, ValueError):
            return None  # f is not defined on what the model answers
        return costs

    def _tracks(self, task: Task, state: FrontState, within: Spans) -> Callable[[int], tuple[Task, RegionState]]:
        """Return number -> task and region of a track, with the costs in these spans.

        The task is to minimise the scalarised cost of its weight; the region lies around the told point that is best
        for it now, with what all have learned.
        """
        history, weights = state.shared.past, directions(len(self.leaders), self.weights)
        pairs = zip(history.points, history.answers, strict=True)
        told = np.array([[leader.value(x, y) for leader in self.leaders] for x, y in pairs])

        def track(number: int) -> tuple[Task, RegionState]:
            cost = Chebyshev.of(self.signs, *within, weights[number])
            known = replace(task.known, leader=scalarised(self.leaders, cost), sense="min")
            values = [cost(row)[0] for row in told]
            return replace(task, known=known), self._region(state, number, values)

        return track

    def _region(self, state: FrontState, number: int, values: list[float]) -> RegionState:
        region, shared = state.tracks[number].region, state.shared
        history, best = shared.past, int(np.argmin(values))
        return replace(
            region, x=history.points[best], value=values[best], first=values[0], centre=best,
            step=state.step, history=history, contest=shared.contest, scales=shared.scales, priors=shared.priors,
            tuned=shared.tuned, exact=shared.exact, suspect=shared.suspect, contradiction=shared.contradiction,
            lowest=(history.points[best], values[best]), jumps=shared.jumps,
            surprise=shared.surprise, miss=shared.miss, wrong=shared.wrong,
            elsewhere=shared.elsewhere, failed=shared.failed, trials=shared.trials, succeeded=shared.succeeded,
        )  # fmt: skip

    # ---- telling ------------------------------------------------------------------------------------------

    @one_blas_thread()
    def tell(self, task: Task, state: FrontState, plan: Plan, answers: Answers) -> tuple[FrontState, Outcome]:
        """Take the answers of a batch one after the other."""
        return told_together(partial(self.take, task), 1.0, state, of_kind(Together, plan), answers)

    @one_blas_thread()
    def take(self, task: Task, state: FrontState, plan: Plan, answer: Vector | None) -> tuple[FrontState, Outcome]:
        """Judge a query, whenever its answer comes, by the cost it was planned for; every track hears of the answer."""
        plan = of_kind(FrontPlan, plan)
        after = state if answer is None else self._noted(state, plan.points[0], answer)
        if not state.tracks:
            own = task if answer is None else self._started(task, after)
            region, _ = self.within.take(own, state.shared, plan, answer)
            begun = region.history is not None
            after = self._opened(after, region) if begun else replace(after, shared=region, step=state.step + 1)
        else:
            own, region = self._tracks(task, state, plan.within or spans(state.costs))(plan.track)
            region, _ = self.within.take(own, region, plan, answer)
            tracks = _seen(list(state.tracks), plan)
            tracks[plan.track] = Track(region, np.inf, state.step)
            step = state.step + (plan.within is not None)  # what was asked blindly leaves the ends their turns
            after = replace(after, shared=region, tracks=tuple(tracks), step=step)
        return after, self._outcome(after, plan, answered=answer is not None)

    def informed(self, task: Task, state: FrontState, answers: Told) -> FrontState:
        """Take answers from elsewhere into the front and the memory."""
        for x, y in answers:
            state = self._noted(state, x, y)
        return replace(state, shared=self.within.informed(task, state.shared, answers))

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
        size = np.abs(state.costs[-1])
        wide = np.where(size > 0.0, size, 1.0)
        weights = np.full(len(self.leaders), 1.0 / len(self.leaders))
        leader = scalarised(self.leaders, Chebyshev.of(self.signs, state.costs[-1], wide, weights))
        return replace(task, known=replace(task.known, leader=leader, sense="min"))

    def _opened(self, state: FrontState, region: RegionState) -> FrontState:
        count = len(directions(len(self.leaders), self.weights))
        return replace(state, shared=region, tracks=(Track(region),) * count, step=1)

    def _outcome(self, state: FrontState, plan: FrontPlan, *, answered: bool) -> Outcome:
        value = float(state.costs[-1].sum()) if answered else _NAN
        if not state.points:
            return Outcome(plan.points[0], value, _NAN, _NAN)
        lowest, wide = spans(state.costs)
        volume = hypervolume((state.costs - lowest) / wide, np.full(lowest.size, _REFERENCE))
        extras = {
            "radius": state.tracks[plan.track].region.radius if state.tracks else _NAN,
            "front": float(undominated(state.costs).size),
            "hypervolume": volume,
        }
        return Outcome(plan.points[0], value, _NAN, plan.move.size, extras)

    def findings(self, state: FrontState) -> str:
        """Say in plain words what was found out about the followers."""
        return findings(state.shared)


class _Looked(NamedTuple):
    number: int
    promise: float


def _of_track(plan: Plan, **more: Any) -> FrontPlan:
    """Return what a trust region proposed as the query of one track."""
    return FrontPlan(**{name: getattr(plan, name) for name in Proposal.__dataclass_fields__}, **more)


def _seen(tracks: list[Track], plan: FrontPlan) -> list[Track]:
    """Return the tracks with what they promised when this query was planned, unless they were looked at since."""
    step, seen = plan.since.step, list(tracks)
    for number, promise in plan.promises:
        if step >= seen[number].looked:
            seen[number] = seen[number]._replace(promise=promise, looked=step)
    return seen
