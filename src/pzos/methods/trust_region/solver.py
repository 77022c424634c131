"""Composite trust region: the known f is minimised on a model of the response that remembers every answer.

Each step asks one query, as a rule at the minimiser of f(x, M(x)) within a trust region around the best point seen,
where M interpolates all answers so far (:mod:`pzos.methods.response_model`). Other queries go where the model knows
nothing, far away when nothing is left to gain nearby, or beside a point whose answer is in doubt (:mod:`looking`).
A failed step is corrected by the very query that failed (:mod:`judging`).
Far fewer queries than the paper's methods, but no theorem: certify the end point (:mod:`pzos.stationarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np

from pzos.base.checks import Faults, check_fields, checked, one_of, positive, whole
from pzos.base.threads import one_blas_thread
from pzos.base.types import LeaderValue, Vector
from pzos.methods.estimators import Answers, Plan, of_kind
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import first
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Foresight, Outcome, Stop, Task, Told
from pzos.methods.trust_region import grouping, looking, proposing, striding, walking
from pzos.methods.trust_region.answering import in_between
from pzos.methods.trust_region.gridded import (
    exhausted,
    grid_of,
    smallest_radius,
    surrounded,
    trial_on_grid,
    untold_near,
)
from pzos.methods.trust_region.judging import findings, judged, moved_to
from pzos.methods.trust_region.recalling import best_told, recalled
from pzos.methods.trust_region.state import (
    NO_MOVE,
    Grouped,
    Kind,
    RegionState,
    TrialPlan,
    models,
    opening_contest,
    point_limit,
    retuned,
)
from pzos.methods.trust_region.subproblem import Move, first_radius, minimise, on_model, typical_sizes
from pzos.problem.grid import Grid
from pzos.problem.structure import declared

_COUNT = whole(1, "or leave it out")
_NAN = float("nan")
_FAILURES = 5
_REFIT = 4
_ROUNDING = 0.01
_ROUNDING_BY_RADIUS = 0.03
_NEGLIGIBLE = 1e-14
_FLOOR = 1e-4
#: How much of the deviation of the model counts as hope.
HOPE = 0.3
#: Hope leads at most so many times as far as the model's own minimiser, or this share of the trust radius.
_HOPE_REACHES, _HOPE_AT_LEAST = 2.0, 0.2
#: Where answers jump, surveys hope for so many deviations once there are so many answers for each decision.
_SURVEY_HOPE, _MANY_FOR_EACH = 1.5, 4
_SPARE = 2
#: Quiet steps after which the method ends, and so many more for each direction, up to as many directions.
_QUIET, _QUIET_PER_DIRECTION = 20, 20
_CERTIFIED_SHARE = 0.01
#: By how many times what jumps make of F the best answer may be lower than the one where the search stands; a wrong
#: answer that is lower by no more than this share of what was gained would do no harm.
_BELIEVED, _HARMLESS = 20.0, 1e-3
#: How many trust radii from the best known point the model is believed where no query will tell.
_REGIONS = 4
_POSITIVE = positive("or leave it out").or_none()
#: So many workers are few; twice as many are slow if one batch gains no more than this share of all that was gained.
_FEW_WORKERS, _SLOW = 8, 0.01


@dataclass(frozen=True, slots=True)
class CompositeTrustRegion:
    """One query per step, at the minimiser of the known f on a remembered response; ``batch`` > 1 asks several.

    ``points`` limits how many answers the model uses (default: 2 d_x, between 100 and 400), ``radius`` is the first
    trust radius (default: from the set, x0, f and the number of answers), ``iterations`` those of the subproblem, and
    ``noisy`` says whether the followers are (default: found out by one query beside another when a step first fails).
    ``resolution`` keeps every query after x0 on multiples of this number, like the ``grid`` of a problem. The method
    ends when many steps in a row, near and far, gained nothing; with ``xtol`` or ``ftol`` after d_x + 5 of them, a gain
    up to ``ftol`` being nothing and a trust radius of ``xtol`` small enough; on a grid no sooner than when all
    neighbours were told, and at once when every point was.
    """

    batch: int = checked(_COUNT, default=1)
    points: int | None = checked(whole(2, "or leave it out").or_none(), default=None)
    radius: float | None = checked(_POSITIVE, default=None)
    iterations: int = checked(_COUNT, default=16)
    noisy: bool | None = checked(one_of((None, True, False), "leave it out", "True, False or None"), default=None)
    resolution: float | None = checked(_POSITIVE, default=None)
    xtol: float | None = checked(_POSITIVE, default=None)
    ftol: float | None = checked(_POSITIVE, default=None)
    keeps_grid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, task: Task) -> RegionState:
        """Start at x0, with nothing known about the followers but what is declared."""
        declared(task.known.structure)
        grid = grid_of(task, self.resolution)
        faults = Faults("CompositeTrustRegion")
        near = grid is None or grid.nearest(task.known.x0, task.known.domain) is not None
        faults.check(near, "resolution", self.resolution, "a multiple of it in the domain near x0", "take a finer one")
        faults.raise_if_any()
        return RegionState(task.known.x0, exact=None if self.noisy is None else not self.noisy)

    def stop(self, task: Task, state: RegionState) -> Stop | None:
        """Stop when many steps in a row, near and far, gained nothing, or when queries keep failing."""
        if state.failed >= _FAILURES:
            return Stop.FAILURES
        grid, n = grid_of(task, self.resolution), task.known.dimension
        patience = _QUIET + _QUIET_PER_DIRECTION * min(n, _QUIET)
        if self.xtol is not None or self.ftol is not None:
            patience = n + 5
        if grid is not None and state.exact is not False and surrounded(task, state, grid):
            if exhausted(task, state, grid):
                return Stop.CONVERGED
            return Stop.CONVERGED if state.settled and not state.rough and state.quiet > patience else None
        if state.quiet <= patience or state.rough or not (state.settled or state.radius <= state.floor):
            return None
        moved = state.past.answers.std(axis=0).any()
        return Stop.CONVERGED if moved else Stop.UNMOVED

    # ---- asking -------------------------------------------------------------------------------------------

    @one_blas_thread()
    def ask(self, task: Task, state: RegionState) -> Plan:
        """Plan one query, or a batch of them."""
        if self.batch == 1:
            return self.planned(task, state)
        second = state.few if state.slow else None
        own = self.batch if second is None else self.batch - _FEW_WORKERS
        plans = list(islice(proposing.proposals(self, task, state, ()), own))
        if second is not None:
            others = islice(proposing.proposals(self._few, task, second, ()), _FEW_WORKERS)
            plans += [replace(plan, second=True) for plan in others]
        return proposing.together(plans)

    @property
    def _few(self) -> CompositeTrustRegion:
        """Return the method as few workers would use it."""
        return replace(self, batch=_FEW_WORKERS)

    @one_blas_thread()
    def propose(self, task: Task, state: RegionState, pending: Sequence[Plan]) -> Plan:
        """Plan one query more while others are open."""
        asked = [of_kind(TrialPlan, plan) for plan in pending]
        return next(proposing.proposals(self, task, state, asked))

    def planned(self, task: Task, state: RegionState, rivals: proposing.Rivals | None = None) -> TrialPlan:
        """Plan the model's minimiser; or x0, a query beside another, or one where the model knows nothing."""
        history = state.history
        if history is None:
            return TrialPlan((state.x,), (Kind.START.purpose,), Kind.START)
        grid = grid_of(task, self.resolution)
        unmeasured = state.exact is False and history.freedom == 0
        beside = grid is None or state.exact is False  # on a grid nothing is beside a point but points of their own
        if unmeasured or (state.suspect and state.exact is None and beside):
            return self._asked_again(task, state, Kind.REPEAT, state.x)
        if state.surprise is not None and beside:
            return self._asked_again(task, state, Kind.CHECK, state.surprise)
        alone = rivals is None  # several at a time know the models already, and were not tried with walks and strides
        walk = walking.walk(task, state, self.iterations, negligible(state)) if alone and grid is None else None
        if walk is not None and state.exact is None:  # the best answer is trusted, so first: do answers repeat?
            return self._asked_again(task, state, Kind.REPEAT, state.x)
        rivals = self.rivals(task, state) if rivals is None else rivals
        model = rivals[state.shapes[0]]
        query = self._query(task, state, model) if walk is None else Query(Kind.WALK, walk.x, walk)
        if alone and grid is None and query.kind is Kind.TRIAL and striding.due(task, state):
            stride = striding.stride(task, state, model, self.iterations)
            query = query if stride is None else Query(Kind.STRIDE, stride.x, stride)
        if state.exact is not False and state.knows(query.point):
            query = query._replace(kind=Kind.PROBE, point=looking.anywhere(task, state))
        if grid is not None:
            query = self._on_grid(task, state, model, grid, query)
        if state.refused and grid is None:  # the part where answers are expected is kept up to rounding alone
            query = query._replace(point=task.known.domain.project(query.point))
        predictions = {shape: rival.clipped(query.point) for shape, rival in rivals.items()}
        priors = {shape: rival.prior for shape, rival in rivals.items()}
        deviation = model.deviation(query.point)
        purposes = (query.kind.purpose,)
        group = query.group if query.kind is Kind.GROUP else None
        return TrialPlan((query.point,), purposes, query.kind, query.move, predictions, priors, deviation, group)

    def rivals(self, task: Task, state: RegionState) -> dict[Shape, ResponseModel]:
        """Return the models of all structures that compete, the one that makes the next step first."""
        return models(task, state, self.points, state.shapes, state.priors, state.step % _REFIT == 0)

    def _asked_again(self, task: Task, state: RegionState, kind: Kind, x: Vector) -> TrialPlan:
        noise = kind is Kind.REPEAT and state.exact is False  # its level is what answers to one x differ by
        if kind is Kind.REPEAT and state.contradiction is not None and not noise:
            point = looking.next_to(task, state, state.contradiction)
        else:
            point = x if noise else looking.beside(task, state, x, closest=kind is Kind.CHECK)
        return TrialPlan((point,), (kind.purpose,), kind)

    def _on_grid(self, task: Task, state: RegionState, model: ResponseModel, grid: Grid, query: Query) -> Query:
        """Return the query as a point of the grid; where the model's minimiser was meant, the best one on the model.

        Where that promises nothing it is a neighbour; at first, in a set that is no box, the point that was meant.
        """
        minimiser = query.kind is Kind.TRIAL or (query.kind is Kind.PROBE and not looking.shared_first(task, state))
        if not minimiser or query.move is NO_MOVE:
            return query._replace(point=untold_near(task, state, grid, query.point))
        objective = on_model(task.known.leader, task.known.sign, model)
        region = looking.region_of(task, state)
        x = trial_on_grid(task, state, grid, objective, region, query.move.x, self.iterations)
        predicted = objective(state.x)[0] - objective(x)[0]
        move = replace(query.move, x=x, predicted=predicted, size=region.size(x))
        return Query(Kind.TRIAL if predicted > 0.0 else Kind.PROBE, x, move)

    def _query(self, task: Task, state: RegionState, model: ResponseModel) -> Query:
        """Return what the next query is for, and where: most often the minimiser of the model."""
        if model.factor is not None and looking.looks_far(task, state):
            return Query(Kind.LOOK, looking.far_look(task, state, self.points))
        sure = in_between(state) if state.failed == _FAILURES - 1 else None
        if sure is not None:
            return Query(Kind.PROBE, sure)
        halved = looking.half_as_far(task, state)
        if halved is not None:
            return Query(Kind.PROBE, halved)
        back = looking.the_other_way(task, state)
        if back is not None:
            return Query(Kind.PROBE, back)
        move = self.move_within(task, state, model, state.radius)
        carried = looking.carried_on(task, state, move) if grid_of(task, self.resolution) is None else None
        if carried is not None:
            return Query(Kind.LOOK, carried)
        group = grouping.grouped(task, state, model) if grouping.due(state, move) else None
        if group is not None:
            return Query(Kind.GROUP, group.point, move, group)
        doubt = looking.doubt_of(task, state, model)
        free = state.unstructured
        unseen = looking.unseen_direction(task, state, model, move, doubt) if free else None
        if unseen is not None:
            return Query(Kind.EXPLORE, looking.explore(task, state, model, unseen), move)
        if move.predicted <= negligible(state) or move.size < 1e-9 * state.scale:
            return Query(Kind.PROBE, looking.probe(task, state, model, 0), move)
        if state.rough and state.step % 2 and (move.predicted < state.slack or (state.jumps > 0.0 and state.losses)):
            hopeful = self._surveyed_in_hope(task, state, model, move, doubt)
            return Query(Kind.SURVEY, looking.survey(task, state, move.x) if hopeful is None else hopeful, move)
        if free and not state.rough and self.hopes(task, state) and doubt > 0.0:
            move = self._hopeful(task, state, model, move, doubt)
        return Query(Kind.TRIAL, move.x, move)

    def move_within(self, task: Task, state: RegionState, model: ResponseModel, radius: float) -> Move:
        """Return the minimiser of the model within this radius of the centre."""
        known, region = task.known, looking.region_of(task, state, radius)
        objective = on_model(known.leader, known.sign, model)
        if model.kinked:
            # The model itself has kinks at the bounds of the answers, where a smooth minimiser stalls.
            corner = min(_ROUNDING * float(np.abs(model.base).mean()), _ROUNDING_BY_RADIUS * radius)
            rounded = on_model(known.leader, known.sign, model.rounded(corner))
            start = minimise(rounded, region, self.iterations).x
            move = minimise(objective, region, max(self.iterations // 3, 1), start)
            if move.predicted > negligible(state):
                return move
        return minimise(objective, region, self.iterations)

    def move_on(self, task: Task, state: RegionState, model: ResponseModel, start: Vector) -> Move:
        """Return what a short search for the minimiser finds from here."""
        objective = on_model(task.known.leader, task.known.sign, model)
        return minimise(objective, looking.region_of(task, state), max(self.iterations // 4, 1), start)

    def hopes(self, task: Task, state: RegionState) -> bool:
        """Tell whether trials count on what the model does not know: once one succeeded with every direction known."""
        return state.reliable

    def _hopeful(self, task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float) -> Move:
        """Return where f on the model, less a share of what the model does not know of it, is lowest."""
        objective = on_model(task.known.leader, task.known.sign, model)
        lowered = looking.hopeful(objective, model, HOPE * doubt)
        reach = min(state.radius, max(_HOPE_REACHES * move.size, _HOPE_AT_LEAST * state.radius))
        region = looking.region_of(task, state, reach)
        x = minimise(lowered, region, self.iterations, looking.nudged(task, state, move.x)).x
        return Move(x, objective(state.x)[0] - objective(x)[0], region.size(x))

    def _surveyed_in_hope(
        self, task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float
    ) -> Vector | None:
        """Return where F on the model, less some of its deviations, is lowest within the region, if answers are many.

        Before that any point of the region tells more: None then, under noise, and where the point is known.
        """
        if state.exact is False or state.past.count <= _MANY_FOR_EACH * state.x.size or not doubt > 0.0:
            return None
        lowered = looking.hopeful(on_model(task.known.leader, task.known.sign, model), model, _SURVEY_HOPE * doubt)
        region = looking.region_of(task, state)
        starts = (looking.nudged(task, state, move.x), looking.anywhere(task, state))
        ends = [minimise(lowered, region, self.iterations, start).x for start in starts]
        x = min(ends, key=lambda end: lowered(end)[0])
        return None if state.knows(x) else x

    # ---- telling ------------------------------------------------------------------------------------------

    @one_blas_thread()
    def tell(self, task: Task, state: RegionState, plan: Plan, answers: Answers) -> tuple[RegionState, Outcome]:
        """Take the answers into the history, judge the step, and move if F is lower there."""
        if isinstance(plan, proposing.Together):
            moved, outcome = proposing.told_together(partial(self.take, task), task.known.sign, state, plan, answers)
            return self._as_few(task, state, moved, plan, answers), outcome
        told = [(x, y) for x, y in zip(plan.points, answers, strict=True) if y is not None]
        moved, outcome = self.concluded(task, state, of_kind(TrialPlan, plan), told)
        return _noting(task, moved, told, anew=_disproved(state, moved)), outcome

    @one_blas_thread()
    def take(self, task: Task, state: RegionState, plan: Plan, answer: Vector | None) -> tuple[RegionState, Outcome]:
        """Take the answer to a query that was proposed, in any order."""
        plan = of_kind(proposing.Proposal, plan)
        if not plan.second or state.few is None:
            taken, outcome = proposing.taken(self, task, state, plan, answer)
            told = [] if answer is None else [(plan.points[0], answer)]
            return _noting(task, taken, told, anew=_disproved(state, taken)), outcome
        few, outcome = proposing.taken(self._few, task, state.few, plan, answer)
        moved = state if answer is None else self.informed(task, state, [(plan.points[0], answer)])
        if moved.x is not state.x:  # lower than all that was found here: go on there, as far as they would
            moved = replace(moved, radius=max(moved.radius, few.radius), flat=0, settled=False)
        return replace(moved, few=few), outcome

    def _as_few(
        self, task: Task, before: RegionState, state: RegionState, plan: proposing.Together, answers: Answers
    ) -> RegionState:
        """Note where few workers would stand, so that many are not stuck where few are not.

        They have the first queries of the first batch in common; few go on with theirs once all together gain little.
        """
        if self.batch < 2 * _FEW_WORKERS or state.history is None or task.known.outcomes is not None:
            return state
        if before.history is None:
            first = proposing.together(plan.proposals[:_FEW_WORKERS])
            few, _ = self._few.tell(task, before, first, answers[:_FEW_WORKERS])
            return replace(state, few=few)
        gain, gained = before.value - state.value, state.first - state.value
        return state if state.few is None else replace(state, slow=state.slow or abs(gain) <= _SLOW * abs(gained))

    def concluded(self, task: Task, state: RegionState, plan: TrialPlan, told: Told) -> tuple[RegionState, Outcome]:
        """Return what follows from an answer that came in turn, or from none."""
        if not told:
            state = state.refusing(plan.points[0], plan.kind)
            if plan.kind is Kind.LOOK:  # nothing is wrong nearby: look elsewhere
                failed = replace(state, step=state.step + 1, looks=state.looks + 1, idle=state.idle + 1)
            elif plan.kind is Kind.WALK:  # nor in the trust region: there are no more walks
                failed = replace(state, step=state.step + 1, failed=state.failed + 1)
            else:
                radius = max(0.5 * state.radius, min(state.radius, state.floor))
                failed = replace(state, step=state.step + 1, radius=radius, failed=state.failed + 1)
            return failed, Outcome(plan.points[0], _NAN, _NAN, plan.move.size)
        x, y = told[0]
        value = task.known.leader.value(x, y)
        if plan.kind is Kind.START:
            moved = self._started(task, state, x, y, value)
        else:
            moved = judged(task, state, plan, told, self.points)
        moved = retuned(
            task, replace(moved, step=state.step + 1, failed=0, priors=plan.priors or state.priors), self.points
        )
        step = plan.kind in (Kind.TRIAL, Kind.STRIDE, Kind.WALK)
        extras = {"radius": state.radius, "predicted": plan.move.predicted, "probe": float(not step)}
        if step:
            extras["accepted"] = float(moved.x is not state.x)
        return moved, Outcome(x, value, _NAN, plan.move.size, extras)

    def _started(self, task: Task, state: RegionState, x: Vector, y: Vector, value: float) -> RegionState:
        known = task.known
        sizes = typical_sizes(known.leader, x, y, known.domain)
        least = smallest_radius(grid_of(task, self.resolution), sizes)
        scale = self.radius
        if scale is None:
            scale = max(first_radius(known, x, y, sizes), least)
        return replace(
            state,
            x=x,
            value=value,
            first=value,
            history=first(x, y, sizes),
            radius=scale,
            scale=scale,
            floor=max(_FLOOR * scale, self.xtol or 0.0, least),
            least_gain=self.ftol or 0.0,
            contest=opening_contest(task, y.size),
        )

    @one_blas_thread()
    def begun(self, task: Task) -> RegionState:
        """Start at the best of the answers known before, with all of them in the memory; x0 is not asked."""
        best, values = best_told(task)
        x, y = task.told[best]
        state = self._started(task, self.init(task), x, y, task.known.sign * float(values[best]))
        return _noting(task, recalled(task, state, best, values, self.points), [(x, y)])

    def point_to_return(self, task: Task, state: RegionState) -> tuple[Vector, float] | None:
        """Return the best point told, with F there, unless noise was found: then it may be luck.

        Where answers jump the search stands where the model, which smooths them, is lowest. The best answer counts if
        followers are known to repeat themselves, or are taken to, as on a grid; but not if it is lower by more than
        jumps explain: it may be wrong.
        """
        if state.exact is False:
            return None
        if state.lowest is None or state.jumps == 0.0:
            return state.lowest
        answered = task.known.leader.value(state.x, state.past.answers[state.centre])
        repeats = state.exact is True or grid_of(task, self.resolution) is not None
        gain = task.known.sign * (answered - state.lowest[1])
        explained = max(_BELIEVED * state.slack, _HARMLESS * abs(state.first - answered))
        return state.lowest if repeats and gain <= explained else (state.x, answered)

    def informed(self, task: Task, state: RegionState, answers: Told) -> RegionState:
        """Take answers from elsewhere into the history, and move to the lowest F among them if it is lower."""
        if state.history is None:
            return replace(state, early=(*state.early, *answers))
        history = state.history
        fresh = [(x, y) for x, y in answers if history.index_of(x) is None]
        for x, y in fresh:
            history = history.append(x, y)
        state, sign = replace(state, history=history), task.known.sign
        values = [sign * task.known.leader.value(x, y) for x, y in fresh]
        if values and state.exact is not False and min(values) < sign * state.value:
            state = moved_to(state, fresh[int(np.argmin(values))][0], sign * min(values))
        state = state.trimmed(_SPARE * point_limit(history, self.points))
        return _noting(task, state, fresh)

    def minimiser(self, task: Task, state: RegionState, model: ResponseModel) -> Move:
        """Return where f on the model is lowest inside the trust region."""
        return self.move_within(task, state, model, state.radius)

    def outlook(self, task: Task, state: RegionState) -> tuple[Vector, ResponseModel]:
        """Return where f on the model is lowest, as far as a few trust regions reach, and the model."""
        (model,) = models(task, state, self.points, (state.contest.winner,), state.priors).values()
        for _ in range(_REGIONS):
            move = self.move_within(task, state, model, state.radius)
            state = replace(state, x=move.x)
            if move.size < 0.9 * state.radius:
                break
        return state.x, model

    # ---- for a certificate --------------------------------------------------------------------------------

    def foresight(self, task: Task, state: RegionState) -> Foresight | None:
        """Return (x, at) -> (dM/dx)' grad_y f at x: the model's prediction of J' grad_y f."""
        if state.history is None:
            return None
        (model,) = models(task, state, None, (state.contest.winner,), state.priors).values()

        @one_blas_thread()
        def predicted(x: Vector, at: LeaderValue) -> Vector:
            return model.response_and_pull(x)[1](at.grad_y)

        return predicted

    def certifying_radius(self, state: RegionState) -> float | None:
        """Return a hundredth of the scale of x that was found, and under noise at least the trust radius."""
        if state.history is None:
            return None
        return max(_CERTIFIED_SHARE * state.scale, state.radius if state.exact is False else 0.0)

    def findings(self, state: RegionState) -> str:
        """Say in plain words what was found out about the followers."""
        return findings(state)


class Query(NamedTuple):
    """What the next query is for, where it lies, and the move it stands for."""

    kind: Kind
    point: Vector
    move: Move = NO_MOVE
    group: Grouped | None = None


def _disproved(before: RegionState, after: RegionState) -> bool:
    """Tell whether the best answer was the one that has just proved wrong."""
    if after.wrong == before.wrong or before.surprise is None or before.lowest is None:
        return False
    return np.array_equal(before.lowest[0], before.surprise)


def _noting(task: Task, state: RegionState, told: Told, *, anew: bool = False) -> RegionState:
    """Return the state with the best of these answers, if none before was better; ``anew`` where one proved wrong."""
    leader, sign, lowest = task.known.leader, task.known.sign, None if anew else state.lowest
    if anew:
        told = list(zip(state.past.points, state.past.answers, strict=True))
    for x, y in told:
        value = leader.value(x, y)
        if lowest is None or sign * (value - lowest[1]) < 0.0:
            lowest = x, value
    return replace(state, lowest=lowest)


def negligible(state: RegionState) -> float:
    """Return the promise below which a minimiser of the model is not worth a query.

    Rounding of F is judged by what was gained as well: F itself may be nothing at all where the search stands.
    """
    return max(_NEGLIGIBLE * max(abs(state.value), abs(state.first - state.value)), state.least_gain)
