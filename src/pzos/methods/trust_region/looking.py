"""Where to ask when not at the model's minimiser: directions never asked, beside a point, far away.

Every function returns a point of the set. Random numbers come by address, from the step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from pzos.base.keys import Role
from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.history import Geometry
from pzos.methods.response_model.response import ResponseModel
from pzos.methods.solver import Task
from pzos.methods.trust_region.answering import answering
from pzos.methods.trust_region.contest import FEW_DECISIONS
from pzos.methods.trust_region.descent import Objective
from pzos.methods.trust_region.state import Contradiction, RegionState, wide_model
from pzos.methods.trust_region.subproblem import Move, Region, bounds_of, half_width, minimise, on_model

#: The promise of known directions that an unknown one must outweigh, and how near it is asked, in trust radii.
_OUTWEIGHS, _NEAR = 0.3, 0.2
#: Directions are explored once a trial has succeeded, or after so many; after a failure all, if so few are left.
_TRIALS_BEFORE, _FEW_LEFT = 6, 20
#: Before a trial has succeeded the width of a bounded set tells the scale: this share of half of it, and where the set
#: is no box at most this share of a mean decision.
_OF_HALF_WIDTH, _OF_MEAN = 0.1, 0.1
#: What is added to the squared lengths of directions, so that nearly equal ones do no harm.
_RIDGE = 1e-10
#: After so many failures in a row slopes are asked for anew, where so much of their variance is left.
_LOST, _UNKNOWN = 3, 0.5
#: The share of a move that a set which is no box must leave of it.
_LED_ON = 0.3
#: Above this many decisions looks far away find nothing, and unseen directions must be worth more.
_MANY_DECISIONS = 40
#: A first move of less than this share of the trust radius is none: the set lets nothing move that way.
_STUCK = 1e-3
#: A mirrored trial, and one twice as far, must be so many times as long as the one before: the set may end there. It is
#: doubled so many times at most.
_MIRRORED, _FURTHER, _DOUBLINGS = 0.3, 1.3, 4
#: On a grid a move ends this share of its size beside where it was meant to, at most.
_ROUNDED = 0.1
#: So many random points are tried for one that was not told.
_TRIES = 20
#: How far beside a point the followers are asked whether they repeat themselves, in trust radii: far enough to tell a
#: slope as well. Simulators that jump at every scale show it there, but hardly ever at the second distance, which is in
#: typical moves.
_BESIDE, _NEXT_TO = 1e-5, 1e-9
#: How far aside a search with hope begins, in trust radii.
_NUDGE = 1e-3
#: Values of F on the model that differ by less than this share are the same.
_ALIKE = 1e-10
#: Idle steps before looks far away begin, how many at a time, and how many points are compared for one.
_IDLE, _LOOKS, _CANDIDATES = 8, 4, 3000
#: Looks wait for so many queries for each decision while local steps promise anything; in sets that are no boxes, and
#: where nothing is promised, only those of more than so many decisions; these there for so many queries each: that
#: nothing is promised is not for good, and few looks find anything.
_QUERIES_BEFORE, _FEW_TO_LOOK, _UNPROMISED_BEFORE = 8, 12, 3
#: Local steps are stuck after so many failures in a row, or if so many queries gained nothing.
_STUCK_AFTER, _STALLED = 2, 12
#: Of more decisions than a few random points are all bad: looks go down the model to an optimum, from so many of the
#: best far away and as many around the centre, with so many iterations; of a few decisions, or in sets that are no
#: boxes, from the best one.
_DESCENTS, _ITERATIONS, _ITERATIONS_OF_ONE = 5, 16, 8
#: Answers nearer to each other than this share of the way that was come count once in the model of the whole response.
_APART = 0.05
#: A decision is carried on where the model promises less than this share of what was gained: not before so many answers
#: (nor are there looks far away, unless nothing is promised), and every other query.
_LITTLE, _ANSWERS_BEFORE = 0.03, 10
#: How many deviations count as hope, in turns: what is nearly known to be good, and what is hardly known; of more
#: decisions than a few nearly everything is hardly known, and most of it is bad.
_HOPES, _HOPES_OF_MANY = (1.0, 3.0), (0.2, 0.7)


def region_of(task: Task, state: RegionState, radius: float | None = None) -> Region:
    """Return the trust region, or one of another radius around the same centre: where answers are to be expected."""
    radius = state.radius if radius is None else radius
    return Region(state.x, radius, state.past.sizes, answering(task, state, radius))


def probe(task: Task, state: RegionState, model: ResponseModel, index: int) -> Vector:
    """Return a point in a random direction, kept away from directions already asked.

    All decisions together where only x0 was asked and f does not say which way to go: of all directions it is the one
    that followers agree on most often (all prices up, all tolls up). The same, up and down, as long as no answer has
    moved at all, for what sleeps wakes up far away. Where the set lets nothing move together, as shares of a sum, to
    where all are alike.
    """
    if state.past.count == 1 or state.unmoved:
        region = region_of(task, state)
        together = region.at(1.0 if state.step % 2 else -1.0, np.ones(state.x.size))
        if region.size(together) > _STUCK * state.radius:
            return together
        alike = _alike(task, state)
        if alike is not None:
            return alike
    v = task.keys.direction(state.step, index, state.x.size, Role.PROBE)
    seen, region = model.geometry, region_of(task, state)
    if 0 < seen.count < state.x.size:
        unseen = _unit(_away_from(seen, v))
        v = v if _blocked(region, unseen) else unseen
    direction: Vector = v / max(float(np.abs(v).max()), 1e-300)
    return region.at(0.5, direction)


def shared_first(task: Task, state: RegionState) -> bool:
    """Tell whether only x0 was asked of a set that is no box, in which neighbours tell little of where to go."""
    return state.past.count == 1 and bounds_of(task.known.domain, state.x.size) is None


def _alike(task: Task, state: RegionState) -> Vector | None:
    """Return the point of the set at which all decisions are alike, or nearly; None where the search is there."""
    alike = task.known.domain.project(np.full(state.x.size, float(state.x.mean())))
    return alike if region_of(task, state).size(alike) > _STUCK * state.radius else None


def _is_alike(task: Task, state: RegionState, x: Vector) -> bool:
    """Tell whether x is where all decisions of a set that is no box are alike, up to a grid."""
    alike = None if bounds_of(task.known.domain, x.size) is not None else _alike(task, state)
    if alike is None:
        return False
    region = region_of(task, state)
    return replace(region, centre=alike).size(x) <= _ROUNDED * region.size(alike)


def half_as_far(task: Task, state: RegionState) -> Vector | None:
    """Return half of the first move of all decisions together, where F rose: it may have gone over a cliff.

    The same on the way to where all are alike. None where that was not the latest query, or F fell.
    """
    history = state.past
    if state.trials or state.groups or history.count != 2 or not np.array_equal(state.x, history.points[0]):
        return None
    moved = history.points[1]
    if not (moved > state.x).all() and not _is_alike(task, state, moved):
        return None
    return task.known.domain.project(0.5 * (state.x + moved))


def the_other_way(task: Task, state: RegionState) -> Vector | None:
    """Return the first trial mirrored at x0, where that lost so much that it is the answers that matter; else None.

    Those of the other way may gain what these lost. As long as they do, it goes on to twice as far.
    """
    known, seen, domain = state.past.count, state.past.points, task.known.domain
    if not state.mistaken or state.trials != 1 or known > _DOUBLINGS + 2:
        return None
    ways, region = [seen[1], domain.project(2.0 * seen[0] - seen[1])], replace(region_of(task, state), centre=seen[0])
    while len(ways) < known:
        ways.append(domain.project(2.0 * ways[-1] - seen[0]))
    sizes = [region.size(x) for x in ways]
    # x0 is the best so far, then the latest query on this way is
    if not np.array_equal(seen[1:], ways[:-1]) or not np.array_equal(state.x, seen[0] if known == 2 else seen[-1]):
        return None
    longer = sizes[-1] > (_MIRRORED if known == 2 else _FURTHER) * sizes[-2]
    return ways[-1] if longer and not state.knows(ways[-1]) else None


def anywhere(task: Task, state: RegionState) -> Vector:
    """Return a random point of the trust region that was not told: nearer if need be, for far ones end in corners."""
    region, draw = region_of(task, state), task.keys.generator(Role.PROBE, state.step, 1)
    for halvings in range(_TRIES):
        x = region.at(0.5**halvings, draw.uniform(-1.0, 1.0, state.x.size))
        if not state.knows(x):
            break
    return x


def survey(task: Task, state: RegionState, x: Vector) -> Vector:
    """Return a corner of the trust region around x, for under noise only far points tell slopes; where answers jump
    any point of the region, for the next step may be anywhere. So too where the corner was told: another point tells
    more, and what was taken for noise may be a simulator that jumps at every scale."""
    if state.exact is not False:
        return anywhere(task, state)
    signs: Vector = 2.0 * task.keys.generator(Role.PROBE, state.step).integers(0, 2, x.size).astype(np.float64) - 1.0
    corner = replace(region_of(task, state), centre=x).at(1.0, signs)
    return anywhere(task, state) if state.knows(corner) else corner


def beside(task: Task, state: RegionState, x: Vector, closest: bool) -> Vector:
    """Return a point so close to x that a continuous response can hardly tell them apart.

    The ``closest`` is one that a simulator which jumps at every scale hardly tells apart either. Not x itself, of
    which such a simulator's answer is known.
    """
    direction = task.keys.direction(state.step, 0, state.x.size, Role.PROBE)
    around = Region(x, state.radius, state.past.sizes, task.known.domain)
    direction = direction / float(np.abs(direction).max())
    shares = [min(_BESIDE, _NEXT_TO * state.scale / state.radius)] if closest else []
    for share in (*shares, _BESIDE):  # the second where the first is lost in rounding
        for way in (share, -share):  # the second out of a corner
            there = around.at(way, direction)
            if (there != x).any():
                return there
    return x


def next_to(task: Task, state: RegionState, first: Contradiction) -> Vector:
    """Return a point next to the one beside the centre, towards the centre, which may be at the edge of a jump itself.

    So the two are on the same side of it, in whatever decisions it is.
    """
    share = min(_NEXT_TO * state.scale / (_BESIDE * state.radius), 0.5)
    for part in (share, 0.5):  # the second where the first is lost in rounding
        there = task.known.domain.project(first.x + part * (first.centre - first.x))
        if (there != first.x).any():
            return there
    return first.x


# ---- directions never asked -----------------------------------------------------------------------------------------


def doubt_of(task: Task, state: RegionState, model: ResponseModel) -> float:
    """Return the deviation of F that a unit slope of unknown direction stands for: sqrt(sum_j var_j (df/dy_j)^2)."""
    if model.variances.size == 0:
        return 0.0
    pull = task.known.leader(state.x, state.past.answers[state.centre]).grad_y
    return float(np.sqrt(np.maximum(model.variances, 0.0) @ (pull * pull)))


def unseen_direction(task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float) -> Vector | None:
    """Return a direction never asked that is worth a query: where a step went wrong, or where it may bring more.

    Not before a trial has shown how far the model reaches, or that slopes are what it lacks: clean slopes on the wrong
    scale tell nothing.
    """
    n, count = task.known.dimension, state.past.count
    lacks_slopes = state.sloped and state.exact is not False
    if count < 2 or not (state.succeeded or lacks_slopes or state.trials >= _TRIALS_BEFORE):
        return None
    if count > n:
        return _forgotten(task, state, model)
    v = _away_from(model.geometry, task.keys.direction(state.step, 0, n, Role.PROBE))
    unseen = _unit(v)
    if float(np.linalg.norm(v)) <= 1e-6 or _blocked(region_of(task, state), unseen):
        return None
    if n <= FEW_DECISIONS and not state.rough and not state.refused:
        return unseen  # all are soon asked, and steps that succeed with slopes of a few of them may crawl for long
    if len(state.contest.shapes) > 1:
        # As many answers as decisions: most games are like that, and their own effects show without being explored.
        return unseen if state.losses > 1 and n <= _FEW_LEFT else None
    lost = state.losses > 0 and n - count < _FEW_LEFT
    return unseen if lost or _outweighs(task, state, model, move, doubt, unseen) else None


def _away_from(seen: Geometry, v: Vector) -> Vector:
    """Return v without its part along the directions asked so far; what the ridge leaves goes in the next round."""
    factor = cho_factor(seen.gram + _RIDGE * np.eye(seen.count), check_finite=False)
    for _ in range(3):
        v = v - cho_solve(factor, seen.units @ v, check_finite=False) @ seen.units
    return v


def _forgotten(task: Task, state: RegionState, model: ResponseModel) -> Vector | None:
    """Return a direction of whose slope here little is known, where steps keep failing: all answers lie too far off.

    Only where many directions are like that, for each costs a query; and one that leads on within the set.
    """
    n = task.known.dimension
    if state.rough or state.losses < _LOST or n > _FEW_LEFT:
        return None
    unknown = model.unknown_slopes(_UNKNOWN)
    if unknown.shape[0] <= n // 4:
        return None
    direction = (unknown @ task.keys.direction(state.step, 0, n, Role.PROBE)) @ unknown
    forgotten, region = _unit(direction), region_of(task, state)
    return forgotten if bounds_of(task.known.domain, n) is not None else _within(region, forgotten)


def _unit(v: Vector) -> Vector:
    return v / max(float(np.linalg.norm(v)), 1e-300)


def _blocked(region: Region, direction: Vector) -> bool:
    """Tell whether the set lets nothing move along a unit direction, either way: as all shares of a sum together."""
    moved = max(region.size(region.at(share, direction)) for share in (_NEAR, -_NEAR))
    return moved <= _STUCK * _NEAR * region.radius * float(np.abs(direction).max())


def _within(region: Region, direction: Vector) -> Vector | None:
    """Return where a unit direction leads within the set; None where the set hardly lets it move."""
    way = (region.at(_NEAR, direction) - region.centre) / region.sizes
    size = float(np.linalg.norm(way))
    return way / size if size > _LED_ON * _NEAR * region.radius else None


def _outweighs(task: Task, state: RegionState, model: ResponseModel, move: Move, doubt: float, unseen: Vector) -> bool:
    """Tell whether what a direction never asked may bring outweighs the promise of those that were.

    It brings at most what half a deviation of its slope is worth, less what f and the model lose on the way.
    """
    if doubt == 0.0:
        return True
    objective = on_model(task.known.leader, task.known.sign, model)
    at_best, region, gain = objective(move.x)[0], replace(region_of(task, state), centre=move.x), 0.0
    for share in (1.0, 0.5, 0.25, 0.125, 0.0625):
        for sign in (1.0, -1.0):
            point = region.at(sign * share * 0.5 * float(np.sqrt(state.x.size)), unseen)
            way = float(np.linalg.norm((point - move.x) / region.sizes))
            gain = max(gain, 0.5 * doubt * way - (objective(point)[0] - at_best))
    patience = max(_OUTWEIGHS, (state.x.size - state.past.count) / _MANY_DECISIONS)
    return gain > patience * move.predicted


def explore(task: Task, state: RegionState, model: ResponseModel, unseen: Vector) -> Vector:
    """Return a point close to the centre in a direction never asked: a clean slope, taken where F looks lower.

    Further out after answers that did not move at all, and where the set tells the scale.
    """
    region, share = region_of(task, state), _telling_share(state) * 3.0 ** min(state.flat, 6)
    share = max(share, first_scale(task, state) / (state.radius * float(np.abs(unseen).max())))
    objective = on_model(task.known.leader, task.known.sign, model)
    points = [region.at(sign * share, unseen) for sign in (1.0, -1.0)]
    moved = [region.size(point) for point in points]
    if min(moved) < 0.1 * max(moved):  # the set ends there
        return points[int(np.argmax(moved))]
    there, back = (objective(point)[0] for point in points)
    # Where both look alike, rounding errors do not decide: another machine has others.
    return points[int(back < there - _ALIKE * (abs(there) + abs(back)))]


def first_scale(task: Task, state: RegionState) -> float:
    """Return how far away slopes are asked at least, at first.

    Nearer by nothing but the jaggedness of a simulator may show. Until a trial has succeeded, the width of a bounded
    set says how far is far; 0 where it has none, and after that. Where the set is no box it says too much (a tenth of
    half a simplex is half of what one of ten shares has): no further than a share of the mean decision at x0, or of
    what each has if all are alike and as large as they can be.
    """
    if state.succeeded:
        return 0.0
    width = half_width(task.known.domain, state.x, state.past.sizes)
    scale = _OF_HALF_WIDTH * width
    if not np.isfinite(scale):
        return 0.0
    if bounds_of(task.known.domain, state.x.size) is None:
        scale = min(scale, _OF_MEAN * max(float(np.abs(task.known.x0).mean()), 2.0 * width / state.x.size))
    return min(scale, state.radius)


def _telling_share(state: RegionState) -> float:
    """Return how many trust radii away an answer tells a slope: near for a clean one, further out under noise."""
    if not state.rough:
        return _NEAR
    slope = state.past.steepness(state.centre, state.variance)
    telling = 4.0 * float(np.sqrt(state.variance)) / max(slope * state.radius, 1e-300)
    return min(max(telling, _NEAR), 1.0)


# ---- far away -------------------------------------------------------------------------------------------------------


def looks_far(task: Task, state: RegionState) -> bool:
    """Tell whether it is the turn of looks far away: after some idle steps, in turns with local ones.

    With few answers, and among the first eight queries for each decision, only where the model promises nothing nearby:
    local steps gain more. Of more than twelve decisions not even there before three queries for each; of fewer they
    need not wait in sets that are no boxes, where some of them (shares of a sum) gain by looks. Idle steps count from
    the start, so that looks that waited may come at once and often. Where no bounds say how far is far they come
    later and fewer at first, and where too many queries had no answer not at all. In the end most queries are looks,
    but of more than a few decisions only where local steps keep failing.
    """
    n = state.x.size
    if n > _MANY_DECISIONS or not state.unstructured or state.often_refused:
        return False
    bounds = bounds_of(task.known.domain, n)
    for_each = _UNPROMISED_BEFORE if state.settled else _QUERIES_BEFORE
    if n <= _FEW_TO_LOOK and (state.settled or bounds is None):
        for_each = 0
    asked = max(state.step, state.past.count)  # answers may have been known before the first query
    if asked < for_each * n or (state.past.count < _ANSWERS_BEFORE and not state.settled):
        return False
    bounded = bounds is None or bool(np.isfinite(bounds[1] - bounds[0]).all())
    idle = state.idle - min(_IDLE, n) * (1 if bounded else 2)
    if idle < 4 * _LOOKS:
        looks, local = (_LOOKS, _LOOKS) if bounded else (_LOOKS // 2, 2 * _LOOKS)
    elif n > FEW_DECISIONS and state.losses < _STUCK_AFTER and state.stalled < _STALLED:
        # Local steps still find something, which looks hardly do.
        looks, local = _LOOKS // 2, _LOOKS
    else:
        looks, local = _LOOKS, 1
    return idle >= 0 and idle % (looks + local) < looks


def carried_on(task: Task, state: RegionState, move: Move) -> Vector | None:
    """Return the best point with the decision that came furthest carried on to its bound, in a bounded box.

    Better optima are often one decision away, while all others are right already: of few decisions, where little is
    promised, it costs little to see, once for each decision that comes to be the furthest. None where that is not due,
    or was done; not either once answers are forgotten, the farthest first, which tell what was done.
    """
    n, seen = state.x.size, state.past.points
    bounds = _bounded_box(task, n)
    if n > FEW_DECISIONS or bounds is None or state.rough or len(seen) < _ANSWERS_BEFORE or state.step % 2:
        return None
    if move.predicted > _LITTLE * abs(state.first - state.value) or state.often_refused or state.past.forgot:
        return None
    came = (state.x - task.known.x0) / state.past.sizes
    furthest = int(np.argmax(np.abs(came)))
    if came[furthest] == 0.0:
        return None
    end = bounds[int(came[furthest] > 0.0)][furthest]
    asked = np.concatenate([seen, state.unanswered])[:, furthest]
    return None if (asked == end).any() else np.where(np.arange(n) == furthest, end, state.x)


def far_look(task: Task, state: RegionState, limit: int | None) -> Vector:
    """Return where in the whole set F may be lowest: on a model of all of it, less a deviation of what is unknown.

    The lowest of random points away from all that were asked, or of the model's optima near the best of them; the
    farthest of them as long as answers did not move. Not nearer to a point without an answer than to any that was told,
    if there are others.
    """
    known, sizes = task.known, state.past.sizes
    told, refused = state.past.points, state.unanswered
    reach = max(float(np.max(np.abs(state.x - known.x0) / sizes)), state.scale)
    drawn, wide = _candidates(task, state, reach)
    model = wide_model(task, state, _APART * wide, limit)
    points = np.array([known.domain.project(x) for x in drawn])
    answered = [_away(x, told, sizes) <= _away(x, refused, sizes) for x in points]
    points = points[answered] if any(answered) else points
    asked = np.concatenate([told, refused])
    apart = np.array([_away(x, asked, sizes) for x in points])
    if model.factor is None or not model.variances.any():
        return np.asarray(points[int(np.argmax(apart))])
    hopes = _HOPES if state.x.size <= FEW_DECISIONS else _HOPES_OF_MANY
    scores, doubts = _hopes(task, model, points, hopes[state.looks % len(hopes)])
    defined = np.isfinite(scores)
    scores[apart < _APART * wide] = np.inf
    best = int(np.argmin(scores))
    lowest, found = scores[best], points[best]
    starts = [(points[best], doubts[best])] if np.isfinite(lowest) else []
    radius, iterations = 0.5 * reach, _ITERATIONS_OF_ONE
    if state.x.size > FEW_DECISIONS and bounds_of(known.domain, state.x.size) is not None:
        distant = np.abs((points - state.x) / sizes).max(axis=1) > 0.5 * wide
        ranked = np.argsort(np.where(distant, scores, np.inf), kind="stable")[:_DESCENTS]
        starts = [(points[k], doubts[k]) for k in ranked if distant[k] and np.isfinite(scores[k])]
        around = [k for k in range(min(_DESCENTS, len(points))) if defined[k]]  # as a rule drawn around the centre
        starts += [(0.5 * (state.x + points[k]), doubts[k]) for k in around]
        radius, iterations = max(reach, 0.5 * wide), _ITERATIONS
    for start, doubt in starts:
        lowered = hopeful(on_model(known.leader, known.sign, model), model, float(doubt))
        x = minimise(lowered, Region(start, radius, sizes, known.domain), iterations).x
        away = _away(x, asked, sizes) >= _APART * wide and _away(x, told, sizes) <= _away(x, refused, sizes)
        score = lowered(x)[0]
        if away and score < lowest:
            lowest, found = score, x
    return np.asarray(found)


def _away(x: Vector, points: Matrix, sizes: Vector) -> float:
    """Return how far x is from the nearest of the points, in typical moves; infinite without any."""
    return float(np.min(np.max(np.abs(x - points) / sizes, axis=1), initial=np.inf))


def _hopes(task: Task, model: ResponseModel, points: Matrix, hope: float) -> tuple[Vector, Vector]:
    """Return F on the model less ``hope`` deviations, infinite where f is not defined, and its doubts."""
    known = task.known
    answers, variances = model.at_many(points)
    scores, doubts = np.full(len(points), np.inf), np.zeros(len(points))
    for k, (x, y) in enumerate(zip(points, answers, strict=True)):
        try:
            with np.errstate(all="ignore"):
                at = known.leader(x, y)
        except (ArithmeticError, ValueError):
            continue
        doubts[k] = hope * np.sqrt(np.maximum(model.variances, 0.0) @ (at.grad_y * at.grad_y))
        scores[k] = known.sign * at.value - doubts[k] * np.sqrt(variances[k])
    return scores, doubts


def _bounded_box(task: Task, size: int) -> tuple[Vector, Vector] | None:
    """Return the bounds of a set that is a box with all of them; None for any other set."""
    bounds = bounds_of(task.known.domain, size)
    return bounds if bounds is not None and bool(np.isfinite(bounds[1] - bounds[0]).all()) else None


def _candidates(task: Task, state: RegionState, reach: float) -> tuple[Matrix, float]:
    """Draw points around the best one as far as the search has come; in a bounded box all over it and at its corners.

    Beside them, how far away counts as far, in typical moves.
    """
    n = state.x.size
    draw = task.keys.generator(Role.REGION, state.step, 1)
    count = int(min(max(_CANDIDATES / n, 10), 100))
    around = state.x + reach * state.past.sizes * draw.standard_normal((count, n))
    bounds = _bounded_box(task, n)
    if bounds is None:
        return around, reach
    width = bounds[1] - bounds[0]
    inside = bounds[0] + width * draw.random((count, n))
    corners = bounds[0] + width * np.round(draw.random((count, n)))
    return np.concatenate([around, inside, corners]), 0.5 * float(np.max(width / state.past.sizes))


def hopeful(objective: Objective, model: ResponseModel, doubt: float) -> Objective:
    """Return f on the model less ``doubt`` times the deviation of the process."""

    def lowered(x: Vector) -> tuple[float, Vector]:
        value, gradient = objective(x)
        variance, slope = model.spread(x)
        deviation = doubt * float(np.sqrt(variance))
        if variance <= 1e-14:
            return value - deviation, gradient
        return value - deviation, gradient - (0.5 * deviation / variance) * slope

    return lowered


def nudged(task: Task, state: RegionState, x: Vector) -> Vector:
    """Return a point a little beside x, in a random direction: where a search with hope begins."""
    signs = task.keys.generator(Role.REGION, state.step).uniform(-1.0, 1.0, x.size)
    return task.known.domain.project(x + _NUDGE * state.radius * signs * state.past.sizes)
