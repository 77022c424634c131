"""Several queries at once: what to ask while other queries are still open, and what an answer out of turn means.

The first proposal is the query that the method would ask alone. While that one is open others go to where f is lowest
if the followers do not react (as long as nothing was tried) and to the model's minimisers for a longer or shorter trust
radius or by a less likely process, and all others to where the method is about to be, each in the direction least asked
so far: what is learned there is needed next. A proposal is a function of the state and of the open queries
alone, so what was issued can be computed again from the answers and the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pzos.base.keys import Role
from pzos.base.types import Matrix, Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import first
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Outcome, S, Task, Told
from pzos.methods.trust_region import looking
from pzos.methods.trust_region.gridded import grid_of, untold_near
from pzos.methods.trust_region.judging import fails, judged, next_radius
from pzos.methods.trust_region.state import Kind, RegionState, TrialPlan, fitter, retuned
from pzos.methods.trust_region.subproblem import Move, Region, Unmoved, bounds_of, minimise, on_model

_AGAIN = (Kind.REPEAT, Kind.CHECK)
Rivals = Mapping[Shape, ResponseModel]
_NAN = float("nan")
#: Points nearer to each other than this share of the step are one.
_APART = 0.1
#: Other trials, the most promising first: the trust radius as a factor, and how likely the process is, 0 the most.
_OTHERS = (
    (1.0, 0), (0.5, 0), (1.0, 1), (2.0, 0), (0.25, 0), (1.0, 2), (0.5, 1), (4.0, 0), (1.0, 3), (0.125, 0), (0.5, 2),
    (2.0, 1), (2.0, 2),
)  # fmt: skip
#: Which share of the open queries may be such: as long as there are directions never asked, and later.
_SHARE_AT_FIRST, _SHARE = 0.25, 0.5
#: How far from where the method is about to be directions are asked, in its step.
_ASIDE = 0.5
_ITERATIONS = 16
#: From so many decisions on a search from the centre takes long.
_MANY = 50
#: How much less a direction counts for each answer that has shown it.
_SEEN = 100.0
#: What is nearer than this is no direction.
_ROUNDING = 1e-9
#: How far from x0 the first queries lie as long as no answer tells how far is far, in the size of x0.
_BLIND = 0.15
#: Those count if they turn out to lie so many first radii away; nearer ones as well if they show every direction.
_NEAREST, _FARTHEST, _NEAREST_OF_ALL = 0.1, 4.0, 0.01
#: After one query in every direction the next ones lie so many times as far away, in turns.
_FURTHER = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Proposal(TrialPlan):
    """A plan of one query, with the state it was made in; ``alone`` if the method would have asked it alone.

    ``radius`` is that of the region in which it is the model's minimiser, if it is; ``second`` if it is of the search
    that few workers would make.
    """

    since: RegionState = field(default_factory=lambda: RegionState(np.zeros(0)))
    radius: float = _NAN
    alone: bool = False
    second: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Together(TrialPlan):
    """A batch: proposals without an answer in between; kind and move are those of the first."""

    proposals: tuple[Proposal, ...] = ()

    def first(self, count: int) -> Plan | None:
        """Return the first proposals alone; each is made without an answer to the others."""
        return replace(
            self, points=self.points[:count], purposes=self.purposes[:count], proposals=self.proposals[:count]
        )


class Steps(Protocol):
    """What the method does when it asks one query at a time."""

    @property
    def batch(self) -> int:
        """How many queries are asked at a time."""
        ...

    @property
    def points(self) -> int | None:
        """How many answers the model uses."""
        ...

    @property
    def resolution(self) -> float | None:
        """What every query is a multiple of."""
        ...

    def rivals(self, task: Task, state: RegionState) -> Rivals:
        """Return the models of all structures that compete, the one that makes the next step first."""
        ...

    def planned(self, task: Task, state: RegionState, rivals: Rivals | None = None) -> TrialPlan:
        """Return the next query."""
        ...

    def move_within(self, task: Task, state: RegionState, model: ResponseModel, radius: float) -> Move:
        """Return the minimiser of the model."""
        ...

    def move_on(self, task: Task, state: RegionState, model: ResponseModel, start: Vector) -> Move:
        """Return what a short search for the minimiser finds from here."""
        ...

    def hopes(self, task: Task, state: RegionState) -> bool:
        """Tell whether trials count on what the model does not know."""
        ...

    def concluded(self, task: Task, state: RegionState, plan: TrialPlan, told: Told) -> tuple[RegionState, Outcome]:
        """Return what follows from an answer that came in turn, or from none."""
        ...

    def informed(self, task: Task, state: RegionState, answers: Told) -> RegionState:
        """Return the state with answers from elsewhere."""
        ...


# ---- asking ---------------------------------------------------------------------------------------------------------


def together(proposed: Iterable[Proposal]) -> Together:
    """Return a batch of proposals."""
    plans = tuple(proposed)
    points, purposes = tuple(plan.points[0] for plan in plans), tuple(plan.purposes[0] for plan in plans)
    return Together(points, purposes, plans[0].kind, plans[0].move, proposals=plans)


def proposals(steps: Steps, task: Task, state: RegionState, pending: Sequence[TrialPlan]) -> Iterator[Proposal]:
    """Yield one query after the other, as if no answer came in between."""
    asked = list(pending)
    if state.history is None:
        while True:
            kind = Kind.EXPLORE if any(plan.kind is Kind.START for plan in asked) else Kind.START
            x = state.x if kind is Kind.START else _on_grid(steps, task, state, _blind(task, state, asked), asked)
            plan = Proposal((x,), (kind.purpose,), kind, since=state, alone=kind is Kind.START)
            asked.append(plan)
            yield plan
    rivals = steps.rivals(task, state)
    scene: _Scene | None = None
    while True:
        due = _Due(state, asked)
        query = steps.planned(task, due.state, rivals) if due.something else None
        if query is None or query.kind not in _AGAIN:  # on a grid nothing is asked again
            scene = scene or _Scene(steps, task, due.state, rivals, asked)
            query = scene.next(asked)
        made = query if isinstance(query, Proposal) else alone(state, query)
        asked.append(made)
        yield made


def alone(state: RegionState, plan: TrialPlan) -> Proposal:
    """Return what the method asks alone as a proposal."""
    known = {name: getattr(plan, name) for name in TrialPlan.__dataclass_fields__}
    return Proposal(**known, since=state, radius=state.radius, alone=True)


class _Due:
    """What must be asked once more, unless it is being asked; ``state`` is the one to plan the next query from."""

    def __init__(self, state: RegionState, asked: Sequence[TrialPlan]) -> None:
        kinds = {plan.kind for plan in asked}
        unmeasured = state.exact is False and state.past.freedom == 0
        repeat = unmeasured or (state.suspect and state.exact is None)
        if repeat and Kind.REPEAT in kinds:
            repeat, state = False, replace(state, suspect=False, exact=None if unmeasured else state.exact)
        check = state.surprise is not None
        if check and Kind.CHECK in kinds:
            check, state = False, replace(state, surprise=None)
        self.something = repeat or check
        self.state = state


class _Scene:
    """Where the method stands and is about to go, to which every further query is compared."""

    def __init__(
        self, steps: Steps, task: Task, state: RegionState, rivals: Rivals, asked: Sequence[TrialPlan]
    ) -> None:
        self.steps, self.task, self.state, self.rivals = steps, task, state, rivals
        self.model = rivals[state.shapes[0]]
        self.region = looking.region_of(task, state)
        self.all_seen = state.past.count > state.x.size
        self._moves: dict[tuple[float, int], Move | None] = {}
        self._models = {0: self.model}
        self.first = self._improved(asked) or steps.planned(task, state, rivals)
        move = self.first.move
        if self.first.kind is Kind.TRIAL and steps.hopes(task, state) and state.unstructured:
            lowest = self._other(1.0, 0)  # without the hope that one query alone must have
            move = lowest if lowest is not None and lowest.predicted > 0.0 else move
        self.goal = move.x if move.x.size and move.predicted > 0.0 else state.x
        size = self.region.size(self.goal)
        self.reach = size if size > 1e-9 * state.scale else state.radius
        self.length = float(np.linalg.norm((self.goal - state.x) / self.region.sizes))
        if size <= 1e-9 * state.scale:
            self.length = state.radius * float(np.sqrt(state.x.size))
        self._alone: Move | None = None

    def _improved(self, asked: Sequence[TrialPlan]) -> TrialPlan | None:
        """Return the model's minimiser, searched from the open query for the one before: cheap with many decisions."""
        state = self.state
        if state.x.size < _MANY:
            return None
        trials = (plan for plan in asked if isinstance(plan, Proposal) and plan.alone and plan.kind is Kind.TRIAL)
        for plan in trials:
            if plan.radius == state.radius and np.array_equal(plan.since.x, state.x):
                move = self.steps.move_on(self.task, state, self.model, plan.points[0])
                if move.predicted > 0.0:
                    return replace(self._proposal(Kind.TRIAL, move.x, move, state.radius, asked), alone=True)
        return None

    def next(self, asked: Sequence[TrialPlan]) -> TrialPlan:
        """Return the first query that is not being asked yet: alone, at the goal, for another radius, aside."""
        if self._apart(self.first.points[0], asked):
            return self.first
        if self.first.kind is not Kind.TRIAL and self.goal is not self.state.x and self._apart(self.goal, asked):
            return self._proposal(Kind.TRIAL, self.goal, self.first.move, self.state.radius, asked)
        if self.state.trials == 0:  # few slopes may mislead: what if there were none?
            move = self._unanswered()
            if move.predicted > 0.0 and self._apart(move.x, asked):
                return self._proposal(Kind.TRIAL, move.x, move, self.state.radius, asked)
        others = sum(isinstance(plan, Proposal) and plan.kind is Kind.TRIAL and not plan.alone for plan in asked)
        if others + 1 <= (_SHARE if self.all_seen else _SHARE_AT_FIRST) * (len(asked) + 1):
            for factor, rank in _OTHERS:
                other = self._other(factor, rank)
                if other is not None and other.predicted > 0.0 and self._apart(other.x, asked):
                    return self._proposal(Kind.TRIAL, other.x, other, factor * self.state.radius, asked)
        return self._proposal(Kind.EXPLORE, self._aside(asked), self.first.move, self.state.radius, asked)

    def _other(self, factor: float, rank: int) -> Move | None:
        """Return the minimiser for another radius, or on the model by a less likely process; None if there is none."""
        if (factor, rank) not in self._moves:
            model = self._model_by(rank)
            radius = factor * self.state.radius
            found = None if model is None else self.steps.move_within(self.task, self.state, model, radius)
            self._moves[factor, rank] = found
        return self._moves[factor, rank]

    def _model_by(self, rank: int) -> ResponseModel | None:
        state, shape = self.state, self.state.shapes[0]
        scales = state.scales.get(shape, ())
        if rank not in self._models and rank < len(scales):
            fit = fitter(self.task, state, self.steps.points).fit
            self._models[rank] = fit(state.past, state.centre, shape, scales[rank], state.priors.get(shape))
        return self._models.get(rank)

    def _unanswered(self) -> Move:
        """Return where f is lowest if the followers do not react."""
        if self._alone is None:
            still = Unmoved(self.state.past.answers[self.state.centre])
            objective = on_model(self.task.known.leader, self.task.known.sign, still)
            self._alone = minimise(objective, self.region, _ITERATIONS)
        return self._alone

    def _apart(self, x: Vector, asked: Sequence[TrialPlan]) -> bool:
        """Tell whether x is another point than those that are asked, or known."""
        if self.state.exact is not False and self.state.knows(x):
            return False
        least = _APART * min(self.reach, max(self.region.size(x), 1e-300))
        return all(replace(self.region, centre=plan.points[0]).size(x) > least for plan in asked)

    def _aside(self, asked: Sequence[TrialPlan]) -> Vector:
        """Return a point beside the goal in a direction that few answers show, on the side where f looks lower."""
        state, sizes, n = self.state, self.region.sizes, self.state.x.size
        near = 4.0 * max(self.state.radius, self.length / np.sqrt(n)) * np.sqrt(n)
        told = np.delete(state.past.points, state.centre, axis=0) - state.x
        open_points = np.array([plan.points[0] for plan in asked]).reshape(-1, n) - self.goal
        offsets = np.concatenate([told, open_points]) / sizes
        lengths = np.linalg.norm(offsets, axis=1)
        kept = (lengths > _ROUNDING * near) & (lengths <= near)
        v = unseen(
            self.task.keys.direction(state.step, len(asked), n, Role.REGION), offsets[kept] / lengths[kept, None]
        )
        objective = on_model(self.task.known.leader, self.task.known.sign, self.model)
        around = replace(self.region, centre=self.goal, radius=_ASIDE * self.length)
        points = [around.at(sign, v) for sign in (1.0, -1.0)]
        points = [x for x in points if self._is_new(x, asked)]
        if not points:
            signs = self.task.keys.generator(Role.REGION, state.step, len(asked) + 2).uniform(-1.0, 1.0, n)
            points = [self.region.at(1.0, signs)]
        return min(points, key=lambda point: objective(point)[0])

    def _is_new(self, x: Vector, asked: Sequence[TrialPlan]) -> bool:
        return not self.state.knows(x) and not any((x == plan.points[0]).all() for plan in asked)

    def _proposal(self, kind: Kind, x: Vector, move: Move, radius: float, asked: Sequence[TrialPlan]) -> Proposal:
        x = _on_grid(self.steps, self.task, self.state, x, asked)
        predictions = {shape: rival.clipped(x) for shape, rival in self.rivals.items()}
        priors = {shape: rival.prior for shape, rival in self.rivals.items()}
        deviation = self.model.deviation(x)
        return Proposal(
            (x,), (kind.purpose,), kind, move, predictions, priors, deviation, since=self.state, radius=radius
        )


def unseen(v: Vector, units: Matrix) -> Vector:
    """Return v turned away from the directions ``units`` (rows), the more the more of them there are."""
    weights: Matrix = np.eye(v.size) + _SEEN * (units.T @ units)
    turned = np.linalg.solve(weights, v)
    return np.asarray(turned / np.linalg.norm(turned), dtype=np.float64)


def _blind(task: Task, state: RegionState, asked: Sequence[TrialPlan]) -> Vector:
    """Return a point near x0 while no answer is known: as far away as x0, and a bounded set, suggest."""
    x0, n = task.known.x0, task.known.dimension
    bounds = bounds_of(task.known.domain, n)
    width = np.inf if bounds is None else float(np.max(bounds[1] - bounds[0]))
    size = min(max(1.0, float(np.abs(x0).mean())), 0.5 * width)
    seen = [plan.points[0] for plan in asked] + [x for x, _ in state.early]
    offsets = np.array(seen).reshape(-1, n) - x0
    lengths = np.linalg.norm(offsets, axis=1)
    kept = lengths > _ROUNDING * size
    v = unseen(task.keys.direction(state.step, len(asked), n, Role.REGION), offsets[kept] / lengths[kept, None])
    length = _BLIND * size * np.sqrt(n) * (_FURTHER if len(seen) // n % 2 else 1.0)
    return Region(x0, length, np.ones(n), task.known.domain).at(1.0, v)


def _on_grid(steps: Steps, task: Task, state: RegionState, x: Vector, asked: Sequence[TrialPlan]) -> Vector:
    """Return a point of the grid near x, if there is a grid, that is neither known nor asked."""
    grid = grid_of(task, steps.resolution)
    if grid is None:
        return x
    begun = state if state.history is not None else replace(state, history=first(task.known.x0, np.zeros(1)))
    return untold_near(task, begun, grid, x, [plan.points[0] for plan in asked])


# ---- telling --------------------------------------------------------------------------------------------------------


def told_together(
    take: Callable[[S, Proposal, Vector | None], tuple[S, Outcome]],
    sign: float,
    state: S,
    plan: Together,
    answers: Answers,
) -> tuple[S, Outcome]:
    """Take the answers of a batch one after the other; the outcome is that of the lowest."""
    outcomes = []
    for proposal, x, y in zip(plan.proposals, plan.points, answers, strict=True):
        state, outcome = take(state, replace(proposal, points=(x,)), y)
        outcomes.append(outcome)
    best = min(outcomes, key=lambda outcome: (outcome.value != outcome.value, sign * outcome.value))
    return state, best._replace(extras=outcomes[0].extras)


def taken(
    steps: Steps, task: Task, state: RegionState, plan: Proposal, y: Vector | None
) -> tuple[RegionState, Outcome]:
    """Take an answer whenever it comes: in turn if nothing has changed since it was asked, else as one more answer."""
    (x,) = plan.points
    stands = np.array_equal(state.x, plan.since.x)
    in_turn = plan.alone and stands and (state.history is None or state.radius == plan.since.radius)
    if in_turn and (y is None or plan.kind not in _AGAIN):
        moved, outcome = steps.concluded(task, state, plan, () if y is None else ((x, y),))
        if moved.early and moved.history is not None:
            telling = [(x, y) for x, y in moved.early if _tells(steps, moved, x)]
            moved = replace(steps.informed(task, moved, telling), early=())
        return moved, outcome
    count = state.step + 1
    if y is None:
        refused = state.refusing(x, plan.kind)
        return replace(refused, step=count, failed=state.failed + 1), Outcome(x, _NAN, _NAN, plan.move.size)
    value = task.known.leader.value(x, y)
    if state.history is None:
        early = replace(state, step=count, failed=0, early=(*state.early, (x, y)))
        return early, Outcome(x, value, _NAN, _NAN)
    if plan.since.history is None and not _tells(steps, state, x):
        moved = state
    elif plan.kind in _AGAIN:
        moved = _asked_again(steps, task, state, plan, y)
    else:
        moved = _added(steps, task, state, plan, y)
    moved = retuned(task, replace(moved, step=count, failed=0, priors=state.priors or plan.priors), steps.points)
    extras = {"radius": state.radius, "predicted": _NAN, "probe": 1.0}
    return moved, Outcome(x, value, _NAN, plan.move.size, extras)


def _tells(steps: Steps, state: RegionState, x: Vector) -> bool:
    """Tell whether a query that was asked blindly is on the scale that the answer at x0 has shown."""
    way = float((np.abs(x - state.x) / state.past.sizes).max())
    nearest = _NEAREST_OF_ALL if steps.batch > x.size else _NEAREST
    return nearest * state.scale <= way <= _FARTHEST * state.scale


def _added(steps: Steps, task: Task, state: RegionState, plan: Proposal, y: Vector) -> RegionState:
    """Take an answer that came out of turn: models and contest learn from it, and F may be lower there.

    How the search goes on its own, its radius and the counts of what failed, is left as it was; only where another
    radius has brought more than its own, that one is taken over, and where a shorter one failed as well, it shrinks.
    """
    (x,) = plan.points
    kind = plan.kind if plan.kind is Kind.LOOK else Kind.EXPLORE
    after = judged(task, state, replace(plan, kind=kind), ((x, y),), steps.points)
    after = replace(after, suspect=state.suspect)  # what is due is still to be asked
    if not np.array_equal(after.x, x):
        kept = {name: getattr(state, name) for name in ("stalled", "flat", "idle", "quiet", "settled")}
        return replace(after, **kept, radius=_failed_as_well(task, state, plan, y))
    tried = plan.kind is Kind.TRIAL
    radius = max(state.radius, min(plan.radius, plan.move.size)) if tried else state.radius
    known = plan.since.history is not None and plan.since.history.count > x.size
    reliable = state.reliable or (tried and known and not fails(_share_kept(task, plan, y)))
    return replace(after, radius=radius, flat=0, settled=False, succeeded=True, reliable=reliable)


def _failed_as_well(task: Task, state: RegionState, plan: Proposal, y: Vector) -> float:
    """Return the radius after a trial out of turn that is not lower.

    A shorter one, from where the search still stands, shows that the model is not to be trusted as far as that: what
    one trial a step would find out step by step is known at once.
    """
    shorter = plan.kind is Kind.TRIAL and plan.radius < plan.since.radius
    if not shorter or state.rough or not np.array_equal(state.x, plan.since.x):
        return state.radius
    ratio = _share_kept(task, plan, y)
    return min(state.radius, next_radius(replace(state, radius=plan.radius), plan.move.size, ratio, state.floor))


def _share_kept(task: Task, plan: Proposal, y: Vector) -> float:
    """Return which share of its promise a trial has kept, seen from where the search stood when it was asked."""
    gain = task.known.sign * (plan.since.value - task.known.leader.value(plan.points[0], y))
    return gain / max(plan.move.predicted, 1e-300)


def _asked_again(steps: Steps, task: Task, state: RegionState, plan: Proposal, y: Vector) -> RegionState:
    """Compare a second answer with the first one, although the search may stand elsewhere by now."""
    since, told = plan.since, ((plan.points[0], y),)
    if plan.kind is Kind.CHECK:
        after = judged(task, replace(state, surprise=since.surprise, miss=since.miss), plan, told, steps.points)
        newer = state.surprise is not since.surprise and state.surprise is not None
        return replace(after, surprise=state.surprise, miss=state.miss) if newer else after
    row = state.past.index_of(since.x)
    if row is None:  # so far away by now that it was forgotten
        return replace(state, suspect=False)
    there = replace(state, x=since.x, centre=row, value=task.known.leader.value(since.x, state.past.answers[row]))
    after = judged(task, there, plan, told, steps.points)
    if np.array_equal(state.x, since.x):
        return after
    centre = after.past.index_of(state.x)
    return replace(after, x=state.x, centre=state.centre if centre is None else centre, value=state.value)
