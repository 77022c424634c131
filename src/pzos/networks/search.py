"""The search of tolls a planner would sign: good starts, no dead ends, and no toll that changes nothing.

Everything is asked within one budget of queries, and every answer is known to all parts of the search:

1. equal tolls and averaged marginal-cost tolls are tried, and the best of them is where the search begins;
2. a link priced out of traffic looks flat: before every leg of the search lower tolls are tried on such links; where
   nobody moves at any toll, the known cost says which bound is best, and the toll is searched no more;
3. an equilibrium has kinks, with valleys behind them: after a leg each toll is moved alone, and where that helps the
   next leg begins there; then comes the other start, because there may be several optima;
4. in the end tolls are taken off, many together where nobody left their links, as long as that changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pzos.base.checks import Faults, at_least, positive, whole
from pzos.base.types import Vector
from pzos.methods.solver import Stop
from pzos.networks.asked import Asked, Trial, answer_at
from pzos.networks.open_flows import OpenFlows
from pzos.networks.tolls import TollFollower, marginal_cost_tolls
from pzos.problem.problem import Problem
from pzos.problem.sets import Box
from pzos.solving import solve
from pzos.study.result import Result
from pzos.study.standing import Standing

logger = logging.getLogger("pzos")

#: The share of the budget kept for the checks at the end.
_CHECKS = 0.15
#: A start that gains this share of what the best one gains is its rival; then the best one's leg has this share.
_RIVAL, _MAIN = 0.5, 0.75
#: Tolls are moved alone, to these multiples, after legs of this share of what is left, where the budget has so many
#: queries for each toll; such a leg ends when it gains less than this share of what tolls gain.
_ALONE, _PART, _PER_TOLL, _LITTLE = (1.5, 0.5), 0.4, 4, 1e-4
#: A leg has at least so many queries, and these for each toll.
_ENOUGH, _ENOUGH_PER_TOLL = 12, 3
#: Lower tolls on links that are priced out: halves of halves.
_HALVES = 7
#: All tolls taken off together may cost this share of what the tolls gain.
_NOTHING = 1e-5
#: With at most k tolls: the fewest queries to choose them by, and those left for the tolls that are kept.
_TO_CHOOSE, _TO_END = 4, 3


class Uniform(NamedTuple):
    """The best toll that is the same on all chosen links, with its value and the queries it took."""

    toll: float
    value: float
    queries: int


@dataclass(frozen=True, eq=False)
class TollSearch:
    """The best tolls found; ``start`` says from where the search began, ``queries`` counts everything asked.

    Of the tolls, by their position in x: ``taken_off`` changed nothing and are gone (``checks`` queries were spent on
    that, ``unchecked`` were left for want of budget), ``captive`` are on links that kept their traffic at every toll
    tried, ``capped`` are at the highest toll allowed, ``empty`` are priced out of traffic: lower ones were no better.
    ``open_flows`` are those that the equilibrium leaves open, where the followers are one; ``open_value`` says that the
    objective depends on them: travellers who do not care decide what it is worth.
    """

    x: Vector
    value: float
    start: Trial
    uniform: Uniform
    untolled: float
    queries: int
    seconds: float
    result: Result
    standing: Standing | None
    taken_off: tuple[int, ...]
    captive: tuple[int, ...]
    capped: tuple[int, ...]
    empty: tuple[int, ...]
    checks: int
    unchecked: int
    open_flows: OpenFlows | None
    open_value: bool

    def choices(self) -> dict[str, Vector]:
        """Return the tolls worth comparing by name: none, the best uniform ones, and those found."""
        uniform = np.full_like(self.x, self.uniform.toll)
        return {"no tolls": np.zeros_like(self.x), f"uniform {self.uniform.toll:g}": uniform, "optimised": self.x}


def optimise_tolls(
    problem: Problem, highest: float, solver: Any = None, *, queries: int = 200, uniform: int = 8, marginal: int = 6,
    most: int | None = None, seed: int = 0, **limits: Any
) -> TollSearch:  # fmt: skip
    """Search the tolls within so many queries, from the best of some uniform and marginal-cost tolls.

    ``uniform`` equal tolls from 0 to ``highest`` are tried, and ``marginal`` steps of averaged marginal-cost tolls
    where the followers are an equilibrium model. Most of the rest is the solver's (default: the package's), some is
    kept to try lower tolls on links priced out of traffic and to take off tolls that change nothing. With ``most`` at
    most so many tolls are kept: a third of the budget is spent on all of them, then those whose loss costs least go.
    """
    faults = Faults("optimise_tolls")
    at_least(2, "at least 2", "no tolls and the highest").note(faults, "uniform", uniform)
    at_least(0, "a number >= 0", "0 tries none").note(faults, "marginal", marginal)
    first = uniform + marginal + (0 if most is None else _TO_CHOOSE)
    faults.check(queries > first, "queries", queries, f"more than {first}",
                 "the first ones find a place to start from")  # fmt: skip
    if most is not None:
        whole(1, "leave it out for all of them").note(faults, "most", most)
    faults.raise_if_any()
    begin, asked = time.perf_counter(), Asked(problem, queries, seed)
    levels = np.append(0.0, highest * 0.5 ** np.arange(uniform - 2, -1, -1.0))  # finer where tolls are low
    equal = list(_uniform_trials(asked, highest, levels))
    best_equal = _best_uniform(asked, equal)
    others = list(_marginal_trials(asked, marginal)) if marginal else []
    starts = sorted((asked.best(kind) for kind in (equal, others) if kind), key=asked.rank)
    if solver is not None or "path" in limits:  # which has a schedule of its own; a file holds one run
        del starts[1:]
    _told_apart(asked, starts[0])
    if most is not None and most < problem.x0.size:
        starts = [_fewer(asked, starts[0], most, solver, limits)]
    asked.reserve = min(problem.x0.size + 2, int(_CHECKS * queries))
    result = _search(asked, starts, solver, limits)
    found, asked.reserve, before_checks = asked.best(), 0, asked.left
    best, unchecked = found, 0
    if result.stop is not Stop.INTERRUPTED:
        best, unchecked = _without_pointless(asked, found)
    gone = np.flatnonzero((found.x != 0.0) & (best.x == 0.0))
    return TollSearch(
        best.x, best.value, starts[0], best_equal, equal[0].value, queries - asked.left,
        time.perf_counter() - begin, result, asked.standing(best, result), tuple(gone.tolist()),
        asked.captive(), _at_the_cap(problem, best.x), tuple(asked.empty(best).tolist()), before_checks - asked.left,
        unchecked, *_left_open(problem, best),
    )  # fmt: skip


def _left_open(problem: Problem, best: Trial) -> tuple[OpenFlows | None, bool]:
    """Return what the equilibrium leaves open at these tolls, and whether the objective depends on it."""
    travellers = getattr(problem.follower, "function", None)
    if not isinstance(travellers, TollFollower):
        return None, False
    found = travellers.assignment(best.x).open_flows
    grad = problem.leader(best.x, best.y).grad_y
    weights = np.array(np.broadcast_to(grad[: found.change.shape[1]], found.change.shape))
    if not travellers.tariff.alike:  # who pays each toll follows behind the flow; what trips cost is never open
        weights += travellers.tariff.tolls(grad[found.change.shape[1] :][: len(travellers.tariff)])
    if not found.matter(weights):
        return found, False
    logger.warning("optimise_tolls: travellers who do not care decide what these tolls are worth; %s; change a toll "
                   "there a little to see by how much", "; ".join(found.sentences()))  # fmt: skip
    return found, True


def _at_the_cap(problem: Problem, x: Vector) -> tuple[int, ...]:
    upper = getattr(problem.domain, "upper", np.inf)
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), x.shape)
    return tuple(np.flatnonzero(np.isfinite(high) & (x > 0.0) & (x >= high * (1.0 - 1e-9))).tolist())


# ---- starts ----------------------------------------------------------------------------------------------------------


def _uniform_trials(asked: Asked, highest: float, levels: Vector) -> Iterator[Trial]:
    positive("try twice a typical link time").require("uniform tolls", "highest", highest)
    for toll in levels:
        what = f"a uniform toll of {toll:.4g}" if toll else "no tolls"
        yield asked.at(np.full(asked.problem.x0.size, float(toll)), what)


def _marginal_trials(asked: Asked, steps: int) -> Iterator[Trial]:
    """Try averaged marginal-cost tolls where latencies are known: the followers are the package's own equilibrium."""
    travellers = getattr(asked.problem.follower, "function", None)
    if isinstance(travellers, TollFollower):
        step = iter(range(steps + 1))

        def answer(x: Vector) -> Vector:
            return asked.at(x, f"marginal-cost tolls after {next(step)} steps").y

        for x, _ in marginal_cost_tolls(travellers, asked.problem.domain, steps, answer):
            yield asked.at(x, "")  # known by now


def marginal_cost_trials(problem: Problem, steps: int) -> Iterator[Trial]:
    """Try averaged marginal-cost tolls (:func:`pzos.networks.tolls.marginal_cost_tolls`).

    Nothing is tried where the followers are not the package's own equilibrium, whose latencies are known.
    """
    return _marginal_trials(Asked(problem, steps + 1, 0), steps)


def best_uniform(problem: Problem, highest: float, points: int = 11, seed: int = 0) -> Uniform:
    """Try equal tolls from 0 to ``highest`` on all links (projected onto the problem's set); return the best."""
    at_least(2, "at least 2", "try 11").require("best_uniform", "points", points)
    asked = Asked(problem, points, seed)
    return _best_uniform(asked, list(_uniform_trials(asked, highest, np.linspace(0.0, highest, points))))


def _best_uniform(asked: Asked, trials: Sequence[Trial]) -> Uniform:
    best = asked.best(trials)
    return Uniform(float(best.x.max()), best.value, len(trials))


def value_at(problem: Problem, x: Vector, seed: int = 0) -> float:
    """Return F(x), by one query."""
    return problem.leader.value(x, answer_at(problem, x, seed))


# ---- legs ------------------------------------------------------------------------------------------------------------


def _search(asked: Asked, starts: Sequence[Trial], solver: Any, limits: dict[str, Any]) -> Result:
    """Spend the budget, less the reserve, on legs of the solver; return the result of the one that found the best.

    Where the budget allows it, a leg is followed by moves of each toll alone, and the next begins at what they lead to;
    not under constraints, whose multipliers a leg has to find first. Elsewhere most of the budget is for the first
    start and the rest for its rivals. Where a leg can improve no further, the other starts share what is left, rivals
    or not.
    """
    rivals, free = _rivals(asked, starts), asked.problem.x0.size - len(asked.captive()) - asked.dropped.size
    one_run = solver is not None or "path" in limits or asked.problem.outcomes is not None
    often = not one_run and _PER_TOLL * free <= asked.to_spend
    ahead, found, last = list(starts), dict[str, Result](), False
    while ahead:
        start = ahead.pop(0)
        name, begin = f"leg {len(found) + 1}", _revived(asked, _settled(asked, start))
        share = _PART if often and not last else _MAIN if ahead and (rivals or found) else 1.0
        enough = _ENOUGH + _ENOUGH_PER_TOLL * free if often else 1
        budget = max(min(max(int(share * asked.to_spend), enough), asked.to_spend), 1)
        told = _told(asked, begin, bool(found), last) if often else {}
        result = _leg(asked, begin, name, budget, solver, {**told, **limits})
        found[name] = result
        goes_on = result.stop in (Stop.QUERIES, Stop.CONVERGED, Stop.UNMOVED)
        if last or not goes_on or asked.to_spend <= 0:
            break
        if often and (moved := _one_by_one(asked, asked.best())) is not None:
            ahead.insert(0, moved)
        elif often and not ahead:
            ahead, last = [asked.best()], True
    return found.get(asked.best().what, result)


def _told(asked: Asked, start: Trial, later: bool, last: bool) -> dict[str, Any]:
    """Return the settings of one of many legs: it need not search to the end, and later ones know answers near by.

    Around the first start, and any but the best, answers are from too far away to help.
    """
    gain = abs(start.value - asked.untolled.value)
    ending = {} if last or gain == 0.0 else {"ftol": _LITTLE * gain}
    return ending | ({"answers": asked.nearest(start.x)} if later and start is asked.best() else {})


def _one_by_one(asked: Asked, start: Trial) -> Trial | None:
    """Move each toll alone, as long as two thirds of the budget last; return the best, None if nothing is better.

    One that is 0 is tried at half of a usual one. The tolls that most pay are first.
    """
    best, until = start, asked.reserve + asked.to_spend // 3
    usual = float(np.median(np.abs(start.x[start.x != 0.0]))) if np.any(start.x) else 0.0
    tolls = np.setdiff1d(np.arange(start.x.size), [*asked.captive(), *asked.dropped])
    payers = asked.traffic(start)
    if payers is not None:
        tolls = tolls[np.argsort(-payers[tolls], kind="stable")]
    for toll in tolls.tolist():
        for move in [(factor - 1.0) * start.x[toll] for factor in _ALONE] if start.x[toll] else [0.5 * usual]:
            if asked.left > until and best.x[toll] == start.x[toll]:
                x = best.x.copy()
                x[toll] += move
                best = asked.best([best, asked.at(x, "one toll moved alone")])
    return None if best is start else best


def _told_apart(asked: Asked, start: Trial) -> None:
    """Ask once with different tolls on links that look captive: equal ones move nobody from one to another."""
    tolls = list(asked.captive())
    if tolls and asked.left > asked.reserve + 2:
        x = start.x.copy()
        highest = max(float(trial.x.max()) for trial in asked.trials.values())
        x[tolls] = highest * np.arange(1, len(tolls) + 1) / (len(tolls) + 1)
        asked.at(x, "different tolls on captive links")


def _rivals(asked: Asked, starts: Sequence[Trial]) -> list[Trial]:
    """Return the starts after the first that gain nearly as much: the optima near them may be others."""
    (violation, cost), without = asked.rank(starts[0]), asked.sign * asked.untolled.value
    enough = (violation, without - _RIVAL * (without - cost))
    return [trial for trial in starts[1:] if asked.rank(trial) < enough]


def _leg(asked: Asked, start: Trial, name: str, budget: int, solver: Any, limits: dict[str, Any]) -> Result:
    """Let the solver search from a trial, but not the tolls on captive links."""
    settings = {"certificate": False} if solver is None else {}
    inside = asked.holding(asked.captive(), start.x)
    result = solve(replace(asked.problem, x0=start.x, domain=inside), solver, queries=budget, seed=asked.seed,
                   monitor=False, **{**settings, **limits})  # fmt: skip
    asked.left -= result.queries
    if result.told is None:  # more than is kept in memory
        asked.at(result.best_x, name)
        return result
    for query, response in result.told:
        # a probe may lie outside: what it tells is of use to the solver, but it is no proposal
        if not response.failure and asked.problem.domain.contains(query.x):
            asked.told(query.x, response.y, name)
    return result


def _settled(asked: Asked, start: Trial) -> Trial:
    """Return the start or what is better: where nobody moves, the known cost says at which bound a toll is best."""
    tolls, domain = list(asked.captive()), asked.problem.domain
    if not tolls or not isinstance(domain, Box) or asked.to_spend < 2:
        return start
    slope = asked.sign * asked.problem.leader(start.x, start.y).grad_x[tolls]
    low, high = (np.broadcast_to(side, start.x.shape)[tolls] for side in (domain.lower, domain.upper))
    x = start.x.copy()
    x[tolls] = np.where(
        (slope < 0.0) & np.isfinite(high), high, np.where((slope > 0.0) & np.isfinite(low), low, x[tolls])
    )
    return asked.best([start, asked.at(x, f"{start.what}, tolls on captive links at their bounds")])


def _revived(asked: Asked, start: Trial) -> Trial:
    """Return the start, or what lower tolls on its links priced out of traffic lead to, if that is better.

    Such a link is tried at the highest toll that somebody was seen to pay on it, and at half of that: all of them
    together, then one by one.
    """
    best = start
    while (empty := asked.empty(best)).size:
        paid = asked.highest_paid(best)
        singles = [np.array([link]) for link in empty] if empty.size > 1 else []
        found = best
        for links, share in [(empty, 1.0), (empty, 0.5), *((single, 1.0) for single in singles)]:
            if asked.to_spend < 2:
                break
            x = found.x.copy() if links.size == 1 else best.x.copy()
            x[links] = share * paid[links]
            found = asked.best([found, asked.at(x, "lower tolls on links priced out of traffic")])
        if found is best:
            break
        best = found
    return best


def _fewer(asked: Asked, start: Trial, most: int, solver: Any, limits: dict[str, Any]) -> Trial:
    """Choose the tolls to keep and return where the search of these begins; the others are 0 from now on.

    After a leg with all of them each is taken off alone, those of least effect if there are too many to try; the ones
    without which the cost is highest are kept, and exchanged for others where that is better.
    """
    third, asked.reserve = asked.left // 3, _TO_END
    start = _revived(asked, _settled(asked, start))
    if (budget := min(third, asked.left - _TO_END)) > 0:
        _leg(asked, start, "all tolls", budget, solver, limits)
    best = asked.best()
    idle, others = _in_question(asked, best, 0.0)
    order = [*idle, *others, *(toll for toll in np.flatnonzero(best.x).tolist() if toll not in {*idle, *others})]
    cost: dict[int, tuple[float, float]] = {}
    for toll in order if len(order) > most else []:
        if len(cost) >= third or asked.left <= _TO_END:
            break
        x = best.x.copy()
        x[toll] = 0.0
        cost[toll] = asked.rank(asked.at(x, "one toll taken off"))
    tried = sorted(cost, key=cost.__getitem__)
    spared = [toll for toll in order if toll not in cost]
    ranked = [*tried, *spared]
    kept = _swapped(asked, best, ranked[-most:], ranked[-most - 1 :: -1], third // 2)
    asked.keep_only(kept)
    x = best.x.copy()
    x[asked.dropped] = 0.0
    return asked.at(x, f"the {len(kept)} tolls that matter most")


def _swapped(asked: Asked, best: Trial, kept: list[int], others: list[int], queries: int) -> list[int]:
    """Exchange one toll that is kept for another as long as that helps, within so many queries; return those kept.

    Each toll alone tells little: what one does, another may do as well.
    """
    until = max(asked.left - queries, _TO_END)

    def only(tolls: list[int]) -> Trial:
        x = np.zeros(best.x.size)
        x[tolls] = best.x[tolls]
        return asked.at(x, f"{len(tolls)} of the tolls")

    swaps = [(old, new) for new in others for old in kept]
    while swaps and asked.left > until:
        old, new = swaps.pop(0)
        other = [*(toll for toll in kept if toll != old), new]
        if asked.rank(only(other)) < asked.rank(only(kept)):
            others = [*(toll for toll in others if toll != new), old]
            kept, swaps = other, [(each, toll) for toll in others for each in other]
    return kept


# ---- tolls that change nothing ---------------------------------------------------------------------------------------


def _without_pointless(asked: Asked, found: Trial) -> tuple[Trial, int]:
    """Take off tolls as long as all that is lost is nothing; return what is left, and how many could not be tried.

    First all tolls that moved nobody go together; then one by one, twice as many at a time as long as that goes well.
    """
    if asked.rank(asked.untolled) <= asked.rank(found):
        return asked.untolled, 0
    violation, cost = asked.rank(found)
    allowed = (violation, cost + _NOTHING * max(asked.sign * asked.untolled.value - cost, 0.0))
    idle, others = _in_question(asked, found, allowed[1] - cost)
    best, queue, size = found, [*idle, *others], max(len(idle), 1)
    while queue and asked.left > 0:
        x = best.x.copy()
        x[queue[:size]] = 0.0
        trial = asked.at(x, "tolls taken off")
        if asked.rank(trial) <= allowed:
            best = trial
            del queue[:size]
            size = 1 if size == len(idle) else 2 * size
            idle = []  # they are done with: from here on as many at a time as goes well
        elif size > 1:
            size //= 2
        else:
            del queue[0]
    return best, len(queue)


def _in_question(asked: Asked, found: Trial, allowed: float) -> tuple[list[int], list[int]]:
    """Return the tolls that moved nobody, if that loses nothing, and the others, those of least effect first."""

    def loss_if_nobody_moved(toll: int) -> float:
        x = found.x.copy()
        x[toll] = 0.0
        return asked.sign * (asked.problem.leader.value(x, found.y) - found.value)

    tolls = np.flatnonzero(found.x)
    loss = np.array([loss_if_nobody_moved(toll) for toll in tolls.tolist()])
    here, before = asked.traffic(found), asked.traffic(asked.untolled)
    moved = np.abs(found.x) if here is None or before is None else np.abs(found.x * (here - before))
    captive = np.isin(tolls, asked.captive())
    order = np.lexsort((moved[tolls], np.maximum(loss, 0.0)))
    return tolls[captive & (loss <= allowed)].tolist(), tolls[order][~captive[order]].tolist()
