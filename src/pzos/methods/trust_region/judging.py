"""What an answer means: was it right, is there noise, is F lower, and how far is the model to be trusted next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pzos.base.checks import counted
from pzos.base.types import LeaderValue, Vector, dot
from pzos.methods.response_model.fit import Shape
from pzos.methods.response_model.history import LAST_DIGITS, History
from pzos.methods.solver import Task, Told
from pzos.methods.trust_region import grouping, looking, striding, walking
from pzos.methods.trust_region.elastic import ElasticMove
from pzos.methods.trust_region.state import (
    NO_MOVE,
    Contradiction,
    Kind,
    RegionState,
    TrialPlan,
    models,
    point_limit,
)
from pzos.methods.trust_region.subproblem import bounds_of, half_width
from pzos.problem.leader import Leader

_SHRINK = 0.7
#: A trial fails if it keeps less than this share of its promise, and is far off if it loses as much as was promised.
_KEPT, _FAR_OFF = 0.1, -1.0
_SUSPECT_FROM = 5
_SPARE = 2
#: Beside a point an answer may change by so many times what the steepest slope seen so far accounts for, and by this
#: share of how much answers vary: so little is a place that is steeper still, and noise that small would not matter.
_STEEPER, _HARDLY = 5.0, 1e-7
#: An answer so many deviations off, and by this share of how much answers vary, is asked for once more; the second
#: agrees with the first if it differs by less than this share of the surprise.
_WILD, _NOTABLE, _AGREES = 8.0, 1e-2, 0.1
#: Of all that was gained: a step that gains less is idle unless the model foresaw as much; one that gains less still
#: is quiet.
_IDLE_GAIN, _NOTHING, _QUIET_GAIN = 1e-3, 1e-7, 1e-9
#: After so many first trials that failed, losses that fall slower than this power of the size are those of slopes.
_FAILED_FIRST, _SQUARE_OR_SLOPE = 3, 1.5
#: They lose so many times what was promised: at a kink, where a search may begin as well, it is less. Of up to so many
#: decisions the slopes are asked after the first of them, in a bounded set, and of so few after any that fails.
_LOST_FAR_MORE, _SOON_ASKED, _AT_ONCE_ASKED = -5.0, 12, 8
#: Of as few in a bounded box, where the other way ends, it is the answers that matter if the first loses this share.
_LOST_IN_BOX = -0.3
#: Answers within so many trust radii tell of the trust region.
_NEARBY = 2.0
#: Of up to so many decisions more answers than decisions are waited for.
_NOT_TOO_MANY = 100
#: Where the answers tell least, the trust radius may grow to so many times the first.
_FURTHEST = 4.0
#: Where they never told anything, it may grow to the whole set, or to so many times the first.
_ANYWHERE = 1e6
#: The share of the first radius from which the search goes on where a look far away has found something lower.
_AFRESH = 0.3


def judged(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Return the state after the answers ``told``: history, structure contest, centre and radius."""
    history = state.past
    x, y = told[0]
    if plan.kind is Kind.REPEAT:
        echo = _echo(state, y) and not (y == history.answers[state.centre]).all()
        return replace(state, suspect=True) if echo else _repeated(task, state, x, y)
    if plan.kind is Kind.CHECK:
        return _checked(task, state, x, y)
    if x is plan.points[0]:
        lower = task.known.sign * (task.known.leader.value(x, y) - state.value) < 0.0
        state = _surprised(_compared(task, state, plan, x, y), plan, x, y, lower)
    unmoved = bool((y == history.answers[state.centre]).all()) and state.surprise is None
    for x, y in told:
        history = history.append(x, y)
    pending = state.contradiction is not None
    state = replace(state, history=history, suspect=pending, flat=state.flat + 1 if unmoved else 0)
    state = replace(state, jumps=0.0 if state.exact is False else history.jumpiness())
    before = state
    state = _judged_noisy(task, state, plan, told, points) if state.rough else _judged_exact(task, state, plan, told)
    if plan.kind is Kind.WALK:
        state = walking.told(task, state, *told[0])
    state = _gained(task, before, state, plan)
    if plan.group is not None:
        state = grouping.told(task, before, state, plan.group, *told[0])
    if unmoved:  # within the radius the answers tell nothing: further out, where no answer ever moved to the whole set
        furthest = _FURTHEST * state.scale
        if state.unmoved:
            width = 2.0 * half_width(task.known.domain, state.x, history.sizes)
            furthest = max(furthest, min(width, _ANYWHERE * state.scale))
        # A step that kept its promise, however short, tells nothing of what is further out than twice as far.
        kept_promise = plan.kind is Kind.TRIAL and state.losses == 0
        reach = min(plan.move.size, before.radius) if kept_promise else before.radius
        state = replace(state, radius=max(state.radius, min(2.0 * reach, furthest)))
    return state.trimmed(_SPARE * point_limit(history, points))


def _compared(task: Task, state: RegionState, plan: TrialPlan, x: Vector, y: Vector) -> RegionState:
    """Tell the contest how well each structure foresaw the answer; at a trial, what its error means for f as well."""
    change = float(np.linalg.norm(y - state.past.answers[state.centre]))
    if state.past.count < 2 or change <= 4.0 * state.noise_of_answer:  # else noise would be the judge
        return state
    missed = {shape: float(np.linalg.norm(guess - y)) / change for shape, guess in plan.predictions.items()}
    if plan.kind is Kind.TRIAL and len(missed) > 1:
        value = task.known.leader.value(x, y)
        span = max(abs(value - state.value), abs(plan.move.predicted), 1e-300)
        for shape, guess in plan.predictions.items():
            missed[shape] = float(np.sqrt(missed[shape] * min(_cost_error(task, x, guess, value) / span, 100.0)))
    return replace(state, contest=state.contest.observe(missed))


def _cost_error(task: Task, x: Vector, guess: Vector, value: float) -> float:
    try:
        with np.errstate(all="ignore"):
            return abs(task.known.leader.value(x, guess) - value)
    except (ArithmeticError, ValueError):
        return float("inf")  # f is not defined on this guess


# ---- was it right? is there noise? --------------------------------------------------------------------------------


def _repeated(task: Task, state: RegionState, x: Vector, y: Vector) -> RegionState:
    """Conclude from a query at the centre, or just beside it, whether the followers are noisy.

    Beside it an answer may change by what slopes like those seen so far account for. What changes by far more is
    noise, or a simulator that jumps at every scale, or the centre is at the edge of a jump: so the next query is next
    to the one beside. What is noise there as well counts as one more answer at the centre.
    """
    history, first = state.past, state.contradiction
    change, explained = _beside(history, state.centre, x, y, first)
    if state.exact is None and first is None and change > explained:
        return replace(state, suspect=True, contradiction=Contradiction(state.x, x, y))
    noisy = state.exact is False or change > explained
    if first is not None:
        history = history.append(first.centre if noisy else first.x, first.y)
    history = history.append(state.x if noisy else x, y)
    value = task.known.leader.value(state.x, history.answers[state.centre])
    tuned = state.tuned if first is None and not noisy else 0
    jumps = 0.0 if noisy else state.jumps
    state = replace(state, history=history, exact=not noisy, suspect=False, contradiction=None)
    return replace(state, value=value, tuned=tuned, jumps=jumps)


def _beside(
    history: History, row: int, x: Vector, y: Vector, first: Contradiction | None = None
) -> tuple[float, float]:
    """Return by how much an answer, beyond rounding, differs from the one in a row, and by how much slopes let it.

    With a ``first`` one beside that row, it is compared with that.
    """
    near, known = (history.points[row], history.answers[row]) if first is None else (first.x, first.y)
    rounding = LAST_DIGITS * np.abs(history.answers).max(axis=0)
    beyond = np.maximum(np.abs(y - known) - rounding, 0.0)
    moved = float(np.linalg.norm((x - near) / history.sizes))
    explained = _STEEPER * history.steepest(row) * moved + _HARDLY * float(np.sqrt(history.varied))
    return float(np.sqrt(np.mean((beyond / history.units) ** 2))), explained


def _surprised(state: RegionState, plan: TrialPlan, x: Vector, y: Vector, lower: bool) -> RegionState:
    """Note an answer far from what the model expected, or equal to the one before: it will be asked for once more.

    Not one far away where F is not ``lower``: nothing hangs on it.
    """
    if _echo(state, y):
        return replace(state, surprise=x, miss=0.0)
    guess = plan.predictions.get(state.shapes[0])
    if guess is None or state.past.count < _SUSPECT_FROM:
        return state
    miss = float(np.sqrt(np.mean(((y - guess) / state.past.units) ** 2)))
    spread = float(np.sqrt(state.past.varied))
    wild = miss > _WILD * plan.deviation > 0.0 and miss > _NOTABLE * spread and (lower or plan.kind is not Kind.LOOK)
    return replace(state, surprise=x, miss=miss) if wild else state


def _echo(state: RegionState, y: Vector) -> bool:
    """Tell whether y is the answer before, to another point, and nothing says yet that such answers are right.

    Followers who are slow give the old answer once more; so do those who really did not move.
    """
    moving = state.past.count >= _SUSPECT_FROM and state.exact is not False and state.jumps == 0.0
    return moving and not state.plateaus and bool((y == state.past.answers[-1]).all())


def _checked(task: Task, state: RegionState, x: Vector, y: Vector) -> RegionState:
    """Conclude from a second answer to a surprising query whether the first was right; else it takes its place."""
    leader, sign, history = task.known.leader, task.known.sign, state.past
    row = None if state.surprise is None else history.index_of(state.surprise)
    state = replace(state, surprise=None, tuned=0)
    if row is None:
        return replace(state, plateaus=state.plateaus or state.miss == 0.0)
    # Beside an answer equal to the one before, a right one may differ by what slopes account for.
    change, explained = _beside(history, row, x, y)
    least = explained if state.miss == 0.0 else _AGREES * state.miss
    if change <= least:
        # Where nothing moves noise may rest as well: only a surprise that was right says that answers repeat.
        repeats = state.exact is None and state.miss > 0.0 and change <= explained
        return replace(state, plateaus=state.plateaus or state.miss == 0.0, exact=True if repeats else state.exact)
    history = history.replaced(row, y)
    values = [sign * leader.value(x, y) for x, y in zip(history.points, history.answers, strict=True)]
    best = int(np.argmin(values))
    state = replace(state, history=history, wrong=state.wrong + 1)
    return replace(state, x=history.points[best], value=sign * values[best], centre=best)


# ---- accept or not, and the next radius ---------------------------------------------------------------------------


def _judged_exact(task: Task, state: RegionState, plan: TrialPlan, told: Told) -> RegionState:
    """Compare F at the trial with what the model promised, and move to the lowest F that was seen."""
    leader, sign = task.known.leader, task.known.sign
    values = [sign * leader.value(x, y) for x, y in told]
    current = sign * state.value
    radius, suspect = state.radius, False
    ratio = (current - values[0]) / max(plan.move.predicted, 1e-300)
    if plan.kind is Kind.STRIDE:
        state = striding.told(state, ratio)
    if plan.kind is Kind.TRIAL:
        state = tried(state, ratio)
        radius = next_radius(state, plan.move.size, ratio, state.floor)
        if fails(ratio) and _says_little(task, state, plan):
            radius = max(radius, state.radius)
        longer = _longest_with_slopes(state, plan.move.size, values[0] - current) if ratio < _LOST_FAR_MORE else None
        mistaken = _mistaken(task, state, plan, ratio)
        sloped = state.sloped or longer is not None or (mistaken and _tells_scale(task, state))
        sloped = sloped or (fails(ratio) and _lacks_slopes(task, state, plan))
        state = replace(
            state, lost=(plan.move.size, values[0] - current), sloped=sloped, mistaken=state.mistaken or mistaken
        )
        radius = radius if longer is None else longer
        enough = state.past.count >= _SUSPECT_FROM or longer is not None
        suspect = state.losses > 1 and state.exact is None and enough
    best = int(np.argmin(values))
    if plan.kind is Kind.PROBE and plan.move is NO_MOVE and state.mistaken and state.trials == 1:
        # The other way than f alone leads: how far that is good says how far is far.
        radius = max(radius, looking.region_of(task, state).size(told[0][0])) if values[best] < current else radius
    elif plan.kind is Kind.PROBE and values[best] >= current:
        radius = max(_SHRINK * radius, state.floor)  # look closer: what is left to gain may be small
    state = replace(state, radius=radius, suspect=suspect)
    if values[best] < current:
        return replace(moved_to(state, told[best][0], sign * values[best]), stalled=0)
    return replace(state, stalled=state.stalled + 1)


def _longest_with_slopes(state: RegionState, size: float, loss: float) -> float | None:
    """Return how long the next trial may be where slopes nobody has asked for made the first trials fail; else None.

    Where a region is too wide, losses fall with the square of the size. Where they fall in proportion to it, what is
    missing are slopes: once those are known, a step may be as long as the one before. (Under noise they do not fall
    either; so it is asked for first.)
    """
    longer, lost = state.lost
    if state.succeeded or state.sloped or state.losses < _FAILED_FIRST or not state.unstructured:
        return None
    proportional = size < longer and lost > 0.0 and loss > lost * (size / longer) ** _SQUARE_OR_SLOPE
    return longer if proportional else None


def _says_little(task: Task, state: RegionState, plan: TrialPlan) -> bool:
    """Tell whether a failure says little of the trust region: fewer answers lie nearby than there are decisions.

    The next trial, on a model that knows of the failure, tells more than one so much nearer, where a simulator shows
    nothing but its jaggedness. In sets that are bounded: elsewhere a region may be too wide by any factor. Not where a
    structure may show, nor where a loss may be the price of a constraint on outcomes; and not after more failures in a
    row than there are decisions, nor of many decisions, for whom that would take too long.
    """
    soon = state.losses <= state.x.size <= _NOT_TOO_MANY
    return soon and _free_within_bounds(task, state, plan) and not _told_nearby(state)


def _lacks_slopes(task: Task, state: RegionState, plan: TrialPlan) -> bool:
    """Tell whether slopes are to be asked after a trial that failed before any succeeded: of few decisions, in bounds.

    The points told so far lie on a line or two: trials on what those tell would go on failing.
    """
    first_of_few = not state.succeeded and state.x.size <= _AT_ONCE_ASKED
    return first_of_few and _free_within_bounds(task, state, plan)


def _free_within_bounds(task: Task, state: RegionState, plan: TrialPlan) -> bool:
    """Tell whether the set is bounded, no structure shows, and a loss cannot be the price of a constraint."""
    return state.unstructured and not isinstance(plan.move, ElasticMove) and _tells_scale(task, state)


def _mistaken(task: Task, state: RegionState, plan: TrialPlan, ratio: float) -> bool:
    """Tell whether the very first trial of few decisions lost so much that it is the answers that matter, not f alone.

    Far more than was promised; of fewer still in a bounded box a share of that. Not where a structure may show, nor
    where the loss may be the price of a constraint on outcomes.
    """
    n = state.x.size
    if state.trials != 1 or n > _SOON_ASKED or not state.unstructured or isinstance(plan.move, ElasticMove):
        return False
    in_box = n <= _AT_ONCE_ASKED and bounds_of(task.known.domain, n) is not None and _tells_scale(task, state)
    return ratio < (_LOST_IN_BOX if in_box else _LOST_FAR_MORE)


def _tells_scale(task: Task, state: RegionState) -> bool:
    """Tell whether the set is bounded: elsewhere slopes asked at once may be asked on the wrong scale."""
    return bool(np.isfinite(half_width(task.known.domain, state.x, state.past.sizes)))


def _where_defined(leader: Leader, x: Vector, guess: Vector, told: Vector) -> LeaderValue:
    """Return f on the model's answer, or on the answer told where f is not defined on the model's."""
    try:
        with np.errstate(all="ignore"):
            return leader(x, guess)
    except (ArithmeticError, ValueError):
        return leader(x, told)


def _judged_noisy(task: Task, state: RegionState, plan: TrialPlan, told: Told, points: int | None) -> RegionState:
    """Compare F by the refitted model, which averages noise out; move only if F as observed did not clearly rise."""
    leader, sign = task.known.leader, task.known.sign
    (model,) = models(task, state, points, (state.contest.winner,), plan.priors).values()
    x, y = told[0]
    here = _where_defined(leader, state.x, model.clipped(state.x), state.past.answers[state.centre])
    centre, trial = sign * here.value, sign * _where_defined(leader, x, model.clipped(x), y).value
    sigma = float(np.sqrt(state.variance))
    pull = np.where(state.past.noisy, here.grad_y * state.past.units, 0.0)
    noise = sigma * float(np.sqrt(dot(pull, pull)))  # of F, to first order
    slack, slope = 0.5 * noise, state.past.steepness(state.centre, state.variance)
    # Below this radius the answers change by less than the noise, or hardly ever jump.
    told_apart = (4.0 if state.jumps > 0.0 else 1.0) * sigma
    floor = max(state.floor, told_apart / slope) if slope > 0 else state.floor
    radius = state.radius
    if plan.kind is Kind.TRIAL:
        ratio = (centre - trial + slack) / (plan.move.predicted + slack)
        state = tried(state, ratio)
        if not fails(ratio) or state.jumps == 0.0 or not state.unstructured or _told_nearby(state):
            radius = next_radius(state, plan.move.size, ratio, floor)
    radius = min(max(radius, floor), _FURTHEST * state.scale)
    # Counts and rounded answers move in steps whether or not they are noisy: one query beside another tells.
    suspect = plan.kind is Kind.TRIAL and state.losses > 1 and state.exact is None
    state = replace(state, radius=radius, value=sign * centre, slack=slack, suspect=suspect)
    lower = trial < centre and sign * leader.value(x, y) <= centre + 3.0 * noise
    return moved_to(state, x, sign * trial) if lower else state


def _told_nearby(state: RegionState) -> bool:
    """Tell whether more answers lie around the centre than there are decisions: else a failure says little of it."""
    away = np.abs((state.past.points - state.x) / state.past.sizes).max(axis=1)
    return int(np.count_nonzero(away <= _NEARBY * state.radius)) - 1 > state.x.size


def _gained(task: Task, before: RegionState, state: RegionState, plan: TrialPlan) -> RegionState:
    """Count idle steps, after which looks far away begin, and quiet ones, after which the method ends."""
    sign = task.known.sign
    gain, gained = sign * (before.value - state.value), sign * (state.first - state.value)
    quiet = gain <= max(_QUIET_GAIN * gained, state.least_gain)
    foreseen = plan.kind is Kind.TRIAL and state.losses == 0 and plan.move.predicted >= _NOTHING * gained
    idle = 0 if gain > _IDLE_GAIN * gained else state.idle + (not foreseen)
    state = replace(state, idle=idle, quiet=state.quiet + 1 if quiet else 0)
    if plan.kind is not Kind.LOOK:
        return replace(state, settled=plan.move.predicted <= max(_NOTHING * gained, state.least_gain))
    # Under noise every answer moves the estimate of F where the search stands: that is nothing found.
    found = state.x is not before.x
    radius = max(state.radius, _AFRESH * state.scale) if found else state.radius
    return replace(state, looks=state.looks + 1, radius=radius)


def fails(ratio: float) -> bool:
    """Tell whether a trial that gained this share of its promise has kept too little of it."""
    return ratio < _KEPT


def tried(state: RegionState, ratio: float) -> RegionState:
    """Count trials, and those in a row that did not keep their promise."""
    failed = fails(ratio)
    losses = state.losses + 1 if failed else 0
    if failed and state.trials == 0:
        state = replace(state, contest=state.contest.opened())
    known = state.past.count > state.x.size + 1  # every direction, before this answer
    return replace(
        state,
        losses=losses,
        trials=state.trials + 1,
        grouped=0,
        succeeded=state.succeeded or not failed,
        reliable=state.reliable or (known and not failed),
    )


def next_radius(state: RegionState, size: float, ratio: float, floor: float) -> float:
    """Shrink after a failure, grow after a success at the boundary (recipe 3b).

    Without structure a short step that fails says little about the whole region. Until a first step has succeeded
    the region may be far too wide, and where a step is far off it is: then it shrinks to where a parabola through
    the failure has its minimum.
    """
    if fails(ratio):
        shrunk = _SHRINK * min(state.radius, size)
        if state.unstructured:
            least = 0.3 if state.succeeded else 0.1
            factor = _SHRINK
            if ratio < _FAR_OFF or not state.succeeded:
                factor = min(max(0.5 / (1.0 - ratio), least), _SHRINK)
            shrunk = max(factor * min(state.radius, size), least * state.radius)
        return max(shrunk, floor)
    if ratio > 0.7 and size > 0.99 * state.radius:
        return 2.0 * state.radius
    return state.radius


def moved_to(state: RegionState, x: Vector, value: float) -> RegionState:
    """Return the state with x, which was told, as its centre."""
    centre = state.past.index_of(x)
    return state if centre is None else replace(state, x=x, value=value, centre=centre)


def _amount(history: History, variance: float) -> str:
    """Return a deviation in words: as it is where all entries have one unit, else as a share of what they vary by."""
    if (history.units == 1.0).all():
        return f"{np.sqrt(variance):.2g}"
    return f"{np.sqrt(variance / max(history.varied, 1e-300)):.1%} of how much answers vary"


def findings(state: RegionState) -> str:
    """Say in plain words what was found out about the followers."""
    if state.history is None:
        return ""
    history, winner = state.history, state.contest.winner
    leading = state.leading(winner)
    said = ["no structure shows in the answers" if winner is Shape.FREE else f"{winner.value} show in the answers"]
    if state.exact is False and state.drifting > 0.0:
        said.append(f"the followers drift, from one query to the next by about {_amount(history, state.drifting)}")
    elif state.exact is False:
        noisy = int(np.count_nonzero(history.noisy))
        some = "" if noisy == history.noisy.size else f" in {noisy} of {history.noisy.size} entries"
        said.append(f"the followers are noisy{some}, one answer is off by about {_amount(history, state.variance)}")
    elif state.jumps > 0.0:
        said.append(f"answers jump by about {_amount(history, 12.0 * state.variance)}")
    else:
        asked = "" if state.exact is None else ", as far as one query beside another tells"
        said.append(f"the followers repeat themselves{asked}")
    if state.wrong:
        said.append(f"{counted(state.wrong, 'answer')} proved wrong by a second one just beside, which took its place")
    if not history.answers.std(axis=0).any():
        said.append("the answers did not move at all")
    ratio = float(history.sizes.max() / history.sizes.min())
    unequal = f", by a factor of up to {ratio:.2g} between decisions" if ratio > 1.0 else ""
    said.append(f"a typical move of a decision is {state.scale:.2g}{unequal}")
    if leading is not None and leading.weight > 0.0:
        said.append(f"beyond what is linear the answers are taken as {leading.kernel.value}")
    if state.curving is not None:
        curved = int(np.count_nonzero(state.curving.curved))
        of = state.curving.scales.size
        said.append(f"answers that grow or fade fast count on a curved scale ({curved} of {of})")
    if state.groups:
        said.append(f"decisions were moved together, in up to {len(state.groups)} groups")
    if state.looks:
        said.append(f"{counted(state.looks, 'query')} looked far away")
    return "Found out on the way: " + "; ".join(said)
