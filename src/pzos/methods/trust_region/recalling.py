"""Begin with answers that are known already: they are the followers', whatever cost they were asked for.

The best of them under the present cost is the centre. What a run finds out on its way, they are made to tell at once:
the contest of structures is held over answers left out one after another, the scales of the process are those of
largest likelihood over all of them. x0 is not asked: where its answer is not known, a better point is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pzos.base.errors import InvalidInput, PzosError
from pzos.base.types import Vector
from pzos.methods.response_model.history import History
from pzos.methods.solver import Task
from pzos.methods.trust_region.state import RegionState, fitter, point_limit, retuned

#: As many answers are left out, one after another, to see which structure foretells them.
_LEFT_OUT = 12
#: Where a structure shows, answers closer to each other than this share of their distance to the centre say the same.
_CLUSTERED = 0.2
_SPARE = 2


def best_told(task: Task) -> tuple[int, Vector]:
    """Return which answer known before has the lowest F (the highest to maximise), and F of all, infinite if undefined.

    Says what the leader raises if it is defined at none of them.
    """
    values = np.full(len(task.told), np.inf)
    failure: Exception | None = None
    for k, (x, y) in enumerate(task.told):
        try:
            with np.errstate(all="ignore"):
                values[k] = task.known.sign * task.known.leader.value(x, y)
        except (ArithmeticError, ValueError) as error:
            failure = error
    if failure is not None and not np.isfinite(values).any():
        if isinstance(failure, PzosError):
            raise failure
        raise InvalidInput(
            f"answers: f is defined at none of {len(task.told)}, of {task.told[0][1].size} entries each ({failure}): "
            "expected answers of this problem's followers; are they of another problem?"
        ) from failure
    return int(np.argmin(values)), values


def recalled(task: Task, state: RegionState, best: int, values: Vector, points: int | None) -> RegionState:
    """Return the state, which stands at the best of the answers known before, with all of them in its memory."""
    history = state.past
    for k, (x, y) in enumerate(task.told):
        if k != best:
            history = history.append(x, y)
    exact = False if history.freedom and state.exact is None else state.exact
    known = frozenset((x + 0.0).tobytes() for x, _ in task.told)
    first = task.known.sign * float(np.median(values[np.isfinite(values)]))
    state = replace(state, history=history, exact=exact, elsewhere=known, first=first)
    if history.repeats[0] > 1.0:
        state = replace(state, value=task.known.leader.value(state.x, history.answers[0]))
    state = replace(state, jumps=0.0 if exact is False else history.jumpiness())
    if history.count < 2:
        return state
    limit = _SPARE * point_limit(history, points)
    history, centre = history.trimmed(0, limit)
    state = retuned(task, replace(state, history=history, centre=centre), points)
    state = _compared(task, state, points)
    if state.contest.winner is not state.contest.favourite:
        part = _apart(state.past, state.centre)
        state = retuned(task, replace(state, history=part, centre=0, tuned=0), points)
    return state


def _compared(task: Task, state: RegionState, points: int | None) -> RegionState:
    """Hold the contest of structures: each foretells some of the answers, the nearest last, from all others."""
    if len(state.contest.shapes) < 2:
        return state
    history, contest = state.past, state.contest
    if history.count > state.x.size:  # every direction is known
        contest = replace(contest, decisions=0)
    offsets = np.linalg.norm((history.points - history.points[state.centre]) / history.sizes, axis=1)
    nearest = [int(row) for row in np.argsort(offsets, kind="stable")[1 : _LEFT_OUT + 1]]
    for row in reversed(nearest):
        others = np.delete(np.arange(history.count), row)
        part = history.part(others)
        centre = int(np.searchsorted(others, state.centre))
        fit = fitter(task, state, points, part).fit
        x, y = history.points[row], history.answers[row]
        change = float(np.linalg.norm(y - history.answers[state.centre]))
        if change <= 4.0 * state.noise_of_answer:
            continue
        guesses = {shape: fit(part, centre, shape, state.leading(shape)).clipped(x) for shape in contest.shapes}
        contest = contest.observe({s: float(np.linalg.norm(guess - y)) / change for s, guess in guesses.items()})
    return replace(state, contest=contest)


def _apart(history: History, centre: int) -> History:
    """Return the history without clusters, the centre first: nearest points first, each if away from those kept."""
    offsets = (history.points - history.points[centre]) / history.sizes
    distances = np.linalg.norm(offsets, axis=1)
    kept = [centre]
    for row in np.argsort(distances, kind="stable"):
        apart = np.linalg.norm(offsets[kept] - offsets[row], axis=1).min()
        if apart > _CLUSTERED * distances[row]:
            kept.append(int(row))
    return history.part(kept)
