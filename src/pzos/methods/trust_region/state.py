"""State and plans of the composite trust region, and the models that follow from a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pzos.base.checks import Faults
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Purpose, Vector
from pzos.methods.estimators import Plan
from pzos.methods.response_model.bounds import Bounds
from pzos.methods.response_model.curving import Curving
from pzos.methods.response_model.fit import Fitter, Shape
from pzos.methods.response_model.history import History, Scales, typical_units
from pzos.methods.response_model.prior import LinearPrior
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task
from pzos.methods.trust_region.contest import NO_CONTEST, Contest
from pzos.methods.trust_region.subproblem import Move
from pzos.problem.structure import Bounded, Declared, declared

_NAN = float("nan")
_GRID_UP_TO = 21
_REFIT = 1.25
_SKETCH = 48
#: So many times as many answers as entries are clearly more.
_CLEARLY_MORE = 1.5
#: A bound is where so many answers are alike to this share of their range, or to this one with none up to the next.
_TIED, _ALIKE, _SOLVED, _FREE = 3, 1e-9, 1e-6, 1e-3
#: They come from points whose distances from the first differ by this share of the largest.
_APART = 0.1
_CHANCES = 3
_FEW_ANSWERS = 5
#: Of many decisions and answers the model holds about so many numbers at a time, but at least so many answers.
_MOST_NUMBERS, _FEWEST_POINTS = 10_000_000, 60
#: Often is more than one query in so many.
_OFTEN = 3
#: Answers are taken on a curved scale if they are more than so few, of up to so many entries; it is found in so many
#: rounds with the scales of the process, and taken only if errors in f are smaller by this share.
_FEW_TO_CURVE, _MOST_TO_CURVE, _CURVINGS, _CLEARLY_BETTER = 6, 2000, 2, 0.1
#: After so many failures in a row, and as many answers as since the last time, the scales of the process are refitted.
_KEEP_FAILING = 5
#: Points that differ by no more than this share of a decision, or of the trust radius, are one.
_SAME = 1e-14


class Kind(Enum):
    """What a query is for."""

    START = "the answer at x0"
    TRIAL = "the model's minimiser"
    STRIDE = "down the slope of the model, further than the trust region reaches"
    PROBE = "a direction the model knows least about"
    EXPLORE = "a direction that was never asked"
    SURVEY = "a corner of the region: under noise only far points tell slopes"
    WALK = "from the best answer down the slope of f alone: between jumps answers stay as they are"
    LOOK = "far away, where F may be lower still"
    GROUP = "many decisions moved together"
    CHECK = "a surprising answer once more: was it right?"
    REPEAT = "the centre once more: do the followers repeat themselves?"

    @property
    def purpose(self) -> Purpose:
        """Return what the study counts such a query as."""
        return Purpose.TRIAL if self in (Kind.START, Kind.TRIAL, Kind.STRIDE, Kind.WALK) else Purpose.PROBE


class Refusal(NamedTuple):
    """Where the followers gave no answer, and how far that was from the centre, in typical moves."""

    point: Vector
    away: float


class Contradiction(NamedTuple):
    """An answer beside the centre that differs from the one there by more than slopes account for."""

    centre: Vector
    x: Vector
    y: Vector


class Walk(NamedTuple):
    """How far the next walk may move each decision (None: none was made), and from which step it is due.

    ``failed`` says that one failed since all decisions moved and gained, ``losses`` how many in a row gained nothing.
    """

    lengths: Vector | None = None
    failed: bool = False
    losses: int = 0
    turn: int = 0


_NO_WALK = Walk()


#: What is promised where nothing is: by the first query, a repeated one, a look far away.
NO_MOVE = Move(np.zeros(0), _NAN, _NAN)


@dataclass(frozen=True, slots=True)
class Group:
    """Decisions from ``first`` up to ``last``, to be moved together by ``step`` reaches (0: not known which way).

    ``moved`` is by how much answers changed f when they were moved, up or down, for one reach; NaN before.
    """

    first: int
    last: int
    step: float = 0.0
    moved: float = _NAN

    @property
    def size(self) -> int:
        """Return how many decisions there are in it."""
        return self.last - self.first


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Where a group is moved to, which of all groups it is, and what they are then."""

    point: Vector
    row: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TrialPlan(Plan):
    """Points with what the model promised at the first, and what every competing structure predicts there."""

    kind: Kind = Kind.TRIAL
    move: Move = NO_MOVE
    predictions: Mapping[Shape, Vector] = field(default_factory=dict)
    priors: Mapping[Shape, LinearPrior] = field(default_factory=dict)
    deviation: float = np.inf
    group: Grouped | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RegionState:
    """Everything told so far and what was concluded from it; ``x`` is the centre, the best point known.

    ``first`` is F at x0, ``early`` are answers that came before the one at x0; no trust radius is below ``floor``, and
    gains up to ``least_gain`` are none. ``exact`` is None until a query beside another showed whether the followers are
    noisy; ``suspect`` asks for one, and for one closer by if it was a ``contradiction``. ``jumps`` is the variance
    within the steps in which answers move; ``surprise`` is where an answer was off by ``miss``, and has to be asked for
    once more; ``wrong`` counts those that were. ``plateaus`` says that an answer equal to the one before was right.
    ``losses`` are trials that failed, ``flat`` answers that did not move, ``idle`` and ``quiet`` steps of little gain;
    ``settled`` says that the model promises nothing more. ``stride`` is how far the next stride may go, ``walk`` what
    is to be known for the next walk, ``reach`` how far groups of decisions are moved. Before any trial has succeeded,
    ``lost`` are the size and the loss of the last one, ``mistaken`` says that the first lost so much that it is the
    answers that matter, and ``sloped`` that slopes nobody has asked for are to blame, not the size. A trial that
    succeeds on a model which knows every direction makes it ``reliable``. Where answers without structure are taken on
    a scale of their own (``curving``), ``uncurved`` are the scales of the process for answers as they are.
    """

    x: Vector
    value: float = _NAN
    first: float = _NAN
    step: int = 0
    history: History | None = None
    early: tuple[tuple[Vector, Vector], ...] = ()
    centre: int = 0
    radius: float = _NAN
    scale: float = _NAN
    floor: float = 0.0
    least_gain: float = 0.0
    # what is known of the response
    contest: Contest = NO_CONTEST
    scales: Mapping[Shape, tuple[Scales, ...]] = field(default_factory=dict)
    priors: Mapping[Shape, LinearPrior] = field(default_factory=dict)
    curving: Curving | None = None
    uncurved: tuple[Scales, ...] = ()
    tuned: int = 0
    exact: bool | None = None
    suspect: bool = False
    contradiction: Contradiction | None = None
    slack: float = 0.0
    jumps: float = 0.0
    surprise: Vector | None = None
    miss: float = 0.0
    wrong: int = 0
    plateaus: bool = False
    # how it has been going: counts of steps in a row, but for trials and looks, which are of all
    failed: int = 0
    stalled: int = 0
    losses: int = 0
    flat: int = 0
    idle: int = 0
    quiet: int = 0
    settled: bool = False
    trials: int = 0
    looks: int = 0
    succeeded: bool = False
    reliable: bool = False
    stride: float = 0.0
    walk: Walk = _NO_WALK
    lost: tuple[float, float] = (_NAN, _NAN)
    sloped: bool = False
    mistaken: bool = False
    # groups of decisions that are moved together, how many since the last trial, and by how much one changes F
    groups: tuple[Group, ...] = ()
    grouped: int = 0
    effect: float = 0.0
    reach: float = _NAN
    least_reach: float = 0.0
    # the points of answers that the history does not hold: known before the first query, or trimmed since; as bytes
    elsewhere: frozenset[bytes] = frozenset()
    # the best answer that was told; where answers jump the centre may be elsewhere
    lowest: tuple[Vector, float] | None = None
    # where the followers gave no answer
    refused: tuple[Refusal, ...] = ()
    # of many workers: where few of them would stand on their own, who go on once all of them gain little
    few: RegionState | None = None
    slow: bool = False

    def knows(self, x: Vector) -> bool:
        """Tell whether the answer at x, up to rounding, is known, or that there is none."""
        points = np.concatenate([self.past.points, self.unanswered])
        rounding = _SAME * np.fmax(np.abs(x), self.radius * self.past.sizes)
        same = (np.abs(points - x) <= rounding).all(axis=1).any()
        return bool(same) or (x + 0.0).tobytes() in self.elsewhere

    def trimmed(self, limit: int) -> RegionState:
        """Return the state without its farthest answers; that they are known is not forgotten."""
        if self.past.count <= limit:
            return self
        rows = self.past.around(self.centre, limit)
        gone = ((x + 0.0).tobytes() for x in np.delete(self.past.points, rows, axis=0))
        centre = int(np.searchsorted(rows, self.centre))
        return replace(self, history=self.past.part(rows), centre=centre, elsewhere=self.elsewhere.union(gone))

    def refusing(self, x: Vector, kind: Kind) -> RegionState:
        """Return the state after a query without an answer: a new one is remembered."""
        if self.history is None or kind in (Kind.CHECK, Kind.REPEAT):
            return self
        away = float(np.linalg.norm((x - self.x) / self.history.sizes))
        return replace(self, refused=(*self.refused, Refusal(x, away)))

    @property
    def often_refused(self) -> bool:
        """Tell whether so many queries had no answer that no more are to be risked: a run ends if half of them fail."""
        return _OFTEN * len(self.refused) > self.step

    @property
    def unanswered(self) -> Matrix:
        """Return where the followers gave no answer, row by row."""
        return np.array([refusal.point for refusal in self.refused]).reshape(-1, self.x.size)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Return the structures to fit, the one that makes the next step first."""
        return self.contest.running

    @property
    def unstructured(self) -> bool:
        """Tell whether no structure shows in the answers, after a few chances to."""
        contest = self.contest
        chances = max(contest.rounds, self.flat)
        return contest.winner is Shape.FREE and (len(contest.shapes) == 1 or chances >= _CHANCES)

    @property
    def lawless(self) -> bool:
        """Tell whether each answer may be at a bound for itself, not because a law binds it to others.

        As many answers as decisions: most games are like that, and flows or shares add up in them, until no structure
        shows in clearly more answers than there are entries.
        """
        many = self.past.count > _CLEARLY_MORE * self.past.answers.shape[1]
        return len(self.contest.shapes) == 1 or (self.unstructured and many)

    @property
    def unmoved(self) -> bool:
        """Tell whether no answer has ever differed from the first, after a few."""
        return self.past.count >= _FEW_ANSWERS and not np.ptp(self.past.answers, axis=0).any()

    def leading(self, shape: Shape) -> Scales | None:
        """Return the scales of the most likely process for this structure, None before any were fitted."""
        found = self.scales.get(shape, ())
        return found[0] if found else None

    @property
    def past(self) -> History:
        """Return the history, which every state has after the first answer."""
        if self.history is None:
            raise TypeError("the state has no history yet")
        return self.history

    @property
    def variance(self) -> float:
        """Return the variance of what one entry of an answer does not tell: noise, or the step in which it jumps."""
        if not self.rough:
            return 0.0
        leading = self.leading(self.contest.winner)
        if leading is not None and leading.drifting > 0.0:  # what repeated answers differ by is drift for the most part
            return leading.untold
        return self.least_variance if leading is None else max(leading.variance, self.least_variance)

    @property
    def noise_of_answer(self) -> float:
        """Return the deviation of a whole answer from what it would be without noise or jumps."""
        return float(np.sqrt(self.variance * np.square(self.past.units[self.past.noisy]).sum()))

    @property
    def drifting(self) -> float:
        """Return the variance by which one entry drifts from one query to the next; 0 where nothing says so."""
        leading = self.leading(self.contest.winner)
        return 0.0 if leading is None else leading.drifting

    @property
    def least_variance(self) -> float:
        """Return the variance that repeated answers, or the least step of those that jump, give evidence of."""
        return self.past.variance if self.exact is False else self.jumps

    @property
    def rough(self) -> bool:
        """Tell whether answers differ from a continuous response, by noise or by jumps."""
        return self.exact is False or self.jumps > 0.0


def checked_structure(task: Task, size: int) -> Declared:
    """Return the declarations, checked against the dimensions of x and y."""
    found = declared(task.known.structure)
    faults = Faults("structure")
    n = task.known.dimension
    if found.own_effect:
        faults.check(n == size, "own_effect()", size, f"as many answers as decisions ({n})", "leave it out")
    if found.conserved is not None:
        columns = found.conserved.laws(size).shape[1]
        faults.check(columns == size, "conserved(A)", columns, f"{size} columns, one per answer", "match y")
    if found.bounds is not None:
        for name, bound in (("lower", found.bounds.lower), ("upper", found.bounds.upper)):
            faults.check(
                bound.ndim == 0 or bound.size == size, name, bound, f"{size} bounds, one per answer", "match y"
            )
    faults.raise_if_any()
    return found


def opening_contest(task: Task, size: int) -> Contest:
    """Let every structure that fits the dimensions compete, the declared one as favourite."""
    found = checked_structure(task, size)
    if size != task.known.dimension:
        return NO_CONTEST
    favourite = Shape.FREE
    if found.own_effect:
        favourite = Shape.OWN if found.conserved is None else Shape.CONSERVING
    return Contest(tuple(Shape), favourite, (0.0,) * len(Shape), decisions=size)


def fitter(task: Task, state: RegionState, points: int | None, part: History | None = None) -> Fitter:
    """Return the fitter for the history, or a part of it: declared laws and bounds, or bounds that the answers show."""
    history = state.past if part is None else part
    size = history.answers.shape[1]
    found = checked_structure(task, size)
    censored = state.lawless and not state.rough
    laws = np.ones((1, size)) if found.conserved is None else found.conserved.laws(size)
    if found.bounds is None:
        lower, upper = _shown_bounds(history, censored)
    else:
        lower, upper = _credible(found.bounds, history)
    pull = task.known.leader(state.x, state.past.answers[state.centre]).grad_y if censored else None
    return Fitter(point_limit(history, points), laws, Bounds(lower, upper), pull=pull, curving=state.curving)


def models(
    task: Task,
    state: RegionState,
    points: int | None,
    shapes: Iterable[Shape],
    priors: Mapping[Shape, LinearPrior],
    refit: bool = True,
) -> dict[Shape, ResponseModel]:
    """Return the models of these structures around the centre, each fitted from its earlier prior."""
    history = state.past
    fit = fitter(task, state, points).fit
    return {
        shape: fit(history, state.centre, shape, state.leading(shape), priors.get(shape), refit) for shape in shapes
    }


def wide_model(task: Task, state: RegionState, apart: float, points: int | None) -> ResponseModel:
    """Return a model of the whole response: of answers some way apart, so that the many near the centre do not lead."""
    part = state.past.thinned(state.centre, apart)
    fit = fitter(task, state, points, part)
    scales = None if part.count < 2 else fit.tune_roughly(part, 0, state.variance)
    return fit.fit(part, 0, Shape.FREE, scales)


def point_limit(history: History, points: int | None) -> int:
    """Return how many answers the model uses: as asked for, else 2 d_x, between 100 and 400, fewer if they are huge."""
    decisions, answers = history.sizes.size, history.answers.shape[1]
    at_once = max(_MOST_NUMBERS // (decisions + answers), _FEWEST_POINTS)
    return min(max(2 * decisions, 100), 400, at_once) if points is None else points


def _credible(declared_bounds: Bounded, history: History) -> tuple[Vector, Vector]:
    """Return the declared bounds, without those that an answer contradicts by more than noise."""
    size = history.answers.shape[1]
    slack = 4.0 * np.sqrt(history.variance) * history.units if history.freedom else 0.0
    lower, upper = np.broadcast_to(declared_bounds.lower, size), np.broadcast_to(declared_bounds.upper, size)
    if (history.answers < lower - slack).any():
        lower = np.full(size, -np.inf)
    if (history.answers > upper + slack).any():
        upper = np.full(size, np.inf)
    return lower, upper


@lru_cache(maxsize=2)
def _shown_bounds(history: History, each: bool) -> tuple[Vector, Vector]:
    """Return bounds that several answers touch: what is continuous ties only at a bound; of ``each`` entry, or zero.

    Where a search ends answers are alike as well: those at a bound lie at different distances from the first point. A
    solver may leave them apart by what it rounds, if none are in between.
    """
    answers = history.answers
    low, high = answers.min(axis=0), answers.max(axis=0)
    lower = np.full(low.size, 0.0 if float(low.min()) == 0.0 else -np.inf)
    upper = np.full(low.size, np.inf)
    if not each or history.count < _TIED + 2 or history.jumpiness() > 0.0:
        return lower, upper
    away = np.linalg.norm((history.points - history.points[0]) / history.sizes, axis=1)[:, None]
    width = high - low
    for end, bound, inwards in ((low, lower, 1.0), (high, upper, -1.0)):
        share = np.abs(answers - end) / np.where(width > 0.0, width, 1.0)
        alike = np.where((share <= _SOLVED).sum(axis=0) == (share <= _FREE).sum(axis=0), _SOLVED, _ALIKE)
        tied = share <= alike
        nearest, farthest = np.where(tied, away, np.inf).min(axis=0), np.where(tied, away, 0.0).max(axis=0)
        shown = (tied.sum(axis=0) >= _TIED) & (farthest - nearest > _APART * away.max()) & (width > 0.0)
        bound[shown] = (end + inwards * alike * width)[shown]
    return lower, upper


@lru_cache(maxsize=2)
def _sketch(keys: Keys, size: int) -> Matrix | None:
    if size <= 2 * _SKETCH:
        return None
    signs = keys.generator(Role.REGION, 0).integers(0, 2, (size, _SKETCH))
    sketch: Matrix = (2.0 * signs - 1.0) / np.sqrt(_SKETCH)
    return sketch


def retuned(task: Task, state: RegionState, points: int | None) -> RegionState:
    """Refit the scales of the process when the history has grown by a quarter, or when its promises keep failing."""
    state = _in_typical_units(task, state)
    history = state.past
    failing = not state.rough and state.unstructured and state.losses >= _KEEP_FAILING
    overtaken = state.curving is not None and not state.curving.suits(history.answers)
    if overtaken or (failing and history.count >= state.tuned + _KEEP_FAILING):
        state = replace(state, tuned=0)
    if history.count < 2 or history.count < _REFIT * state.tuned:
        return state
    fit = replace(fitter(task, state, points), sketch=_sketch(task.keys, history.answers.shape[1]), curving=None)
    scales, afresh = dict(state.scales), history.count <= _GRID_UP_TO
    if state.curving is not None:
        scales[Shape.FREE] = state.uncurved
    for shape in dict.fromkeys((*state.contest.running, Shape.FREE)):
        start = () if afresh else scales.get(shape, ())
        least, prior, drifts = state.least_variance, state.priors.get(shape), state.exact is False
        scales[shape] = fit.tune(history, state.centre, shape, start, least, prior, drifts)
    uncurved = scales[Shape.FREE]
    curved = _curved(task, state, fit, uncurved, afresh)
    state = replace(state, curving=None if curved is None else curved[0], uncurved=uncurved)
    if curved is not None:
        scales[Shape.FREE] = curved[1]
    return replace(state, scales=scales, tuned=history.count)


def _in_typical_units(task: Task, state: RegionState) -> RegionState:
    """Return the state with the answers in their units; where these have changed, what was measured in them is anew.

    Not while an answer is in doubt, which by itself may change its unit.
    """
    history = state.past
    if history.count < _REFIT * state.tuned or state.surprise is not None:
        return state
    units = typical_units(history.answers, task.known.leader(state.x, history.answers[state.centre]).grad_y)
    if np.array_equal(units, history.units):
        return state
    history = replace(history, units=units)
    jumps = state.jumps if state.jumps == 0.0 else history.jumpiness()
    return replace(state, history=history, jumps=jumps, scales={}, curving=None, uncurved=(), tuned=0)


def _curved(
    task: Task, state: RegionState, fit: Fitter, uncurved: tuple[Scales, ...], afresh: bool
) -> tuple[Curving, tuple[Scales, ...]] | None:
    """Return the curved scale of the answers, with the scales of the process on it, where it foretells f better.

    Not of answers that drift, which are told from noise by their likelihood as they are.
    """
    history, centre = state.past, state.centre
    few, many = history.count <= _FEW_TO_CURVE, history.answers.shape[1] > _MOST_TO_CURVE
    if few or many or uncurved[0].drift > 0.0:
        return None
    curving, scales = fit.likeliest_curving(history, centre, uncurved[0]), uncurved
    start = () if afresh else (uncurved if state.curving is None else state.scales[Shape.FREE])
    for _ in range(_CURVINGS):
        if curving is None:
            return None
        fit = replace(fit, curving=curving)
        scales = fit.tune(history, centre, Shape.FREE, start, state.least_variance)
        start = () if afresh else scales
        curving = fit.likeliest_curving(history, centre, scales[0])
    if curving is None:
        return None
    fit, straight = replace(fit, curving=curving), replace(fit, curving=None)
    pull = task.known.leader(state.x, history.answers[centre]).grad_y
    nearest = max(task.known.dimension + 1, history.count // 2)
    curved = fit.foretelling(history, centre, scales[0], pull, nearest)
    plain = straight.foretelling(history, centre, uncurved[0], pull, nearest)
    return (curving, scales) if curved < plain - _CLEARLY_BETTER else None
