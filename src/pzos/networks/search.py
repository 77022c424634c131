"""The search of tolls a planner would sign: good starts, no dead ends, and no toll that changes nothing.

Everything is asked within one budget of queries, and every answer is known to all parts of the search:

1. equal tolls and averaged marginal-cost tolls are tried, and the best of them is where the search begins;
2. a link priced out of traffic looks flat: before every leg of the search lower tolls are tried on such links; where
   nobody moves at any toll, the known cost says which bound is best;
3. a part of the budget is for a second start if that is nearly as good, because there may be several optima;
4. in the end tolls are taken off, many together where nobody left their links, as long as that changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults, at_least, positive, whole
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.base.types import Purpose, Query, Vector
from pzos.methods.solver import Stop
from pzos.networks.demand import Indices
from pzos.networks.open_flows import OpenFlows
from pzos.networks.tolls import TollFollower, marginal_cost_tolls
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Nonnegative
from pzos.solving import solve
from pzos.study.result import Result
from pzos.study.standing import FEASIBLE, Standing

logger = logging.getLogger("pzos")

#: The share of the budget kept for the checks at the end.
_CHECKS = 0.15
#: A start that gains this share of what the best one gains is its rival; then the best one's leg has this share.
_RIVAL, _MAIN = 0.5, 0.75
#: Below this share of its untolled flow a link is priced out of traffic; a flow that moved less did not move.
_EMPTY, _SAME = 1e-6, 1e-6
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


class Trial(NamedTuple):
    """Tolls that were tried, the answer, what they are worth, and the constraints g there."""

    x: Vector
    y: Vector
    value: float
    what: str
    excess: Vector


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
    begin, asked = time.perf_counter(), _Asked(problem, queries, seed)
    levels = np.append(0.0, highest * 0.5 ** np.arange(uniform - 2, -1, -1.0))  # finer where tolls are low
    equal = list(_uniform_trials(asked, highest, levels))
    others = list(_marginal_trials(asked, marginal)) if marginal else []
    starts = sorted((asked.best(kind) for kind in (equal, others) if kind), key=asked.rank)
    if solver is not None or "path" in limits:  # which has a schedule of its own; a file holds one run
        del starts[1:]
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
        best.x, best.value, starts[0], _best_uniform(asked, equal), equal[0].value, queries - asked.left,
        time.perf_counter() - begin, result, asked.standing(best, result), tuple(gone.tolist()),
        asked.captive(), _at_the_cap(problem, best.x), tuple(asked.empty(best).tolist()), before_checks - asked.left,
        unchecked, *_left_open(problem, best),
    )  # fmt: skip


class _Asked:
    """All that was asked: each answer is counted once and known to every part of the search.

    ``left`` queries may still be asked, ``reserve`` of them not by the search but by the checks after it.
    """

    def __init__(self, problem: Problem, queries: int, seed: int) -> None:
        self.problem, self.left, self.seed, self.reserve = problem, queries, seed, 0
        self.sign = problem.known().sign
        self.trials: dict[bytes, Trial] = {}
        self.dropped = np.zeros(0, dtype=np.int64)  # tolls that are one too many

    def at(self, x: Vector, what: str) -> Trial:
        """Return the trial at ``x`` (projected onto the set), asked for unless it is known."""
        point = self.problem.domain.project(np.asarray(x, dtype=np.float64)) + 0.0
        known = self.trials.get(point.tobytes())
        if known is not None:
            return known
        self.left -= 1
        return self.told(point, answer_at(self.problem, point, self.seed), what)

    def told(self, x: Vector, y: Vector, what: str) -> Trial:
        """Keep an answer."""
        outcomes = self.problem.outcomes
        excess = np.zeros(0) if outcomes is None else outcomes.values(x, y)
        trial = Trial(x, y, self.problem.leader.value(x, y), what, excess)
        return self.trials.setdefault((x + 0.0).tobytes(), trial)

    def keep_only(self, tolls: Sequence[int]) -> None:
        """Leave only these tolls free; the others are 0."""
        domain, size = self.problem.domain, self.problem.x0.size
        if not isinstance(domain, Box | Nonnegative):
            raise InvalidInput(f"optimise_tolls: most with tolls in {domain}: expected bounds of each toll; drop one")
        self.dropped = np.setdiff1d(np.arange(size), np.asarray(tolls, dtype=np.int64))
        low, high = np.zeros(size), np.full(size, np.inf)
        if isinstance(domain, Box):
            low, high = (np.array(np.broadcast_to(side, (size,))) for side in (domain.lower, domain.upper))
        low[self.dropped] = high[self.dropped] = 0.0
        box = Box(low, high)
        self.problem = replace(self.problem, domain=box, x0=box.project(self.problem.x0))

    def rank(self, trial: Trial) -> tuple[float, float]:
        """Return what is to be small: the violation of constraints, in units of the largest value seen, then the cost.

        A violation that counts as none elsewhere counts as none here.
        """
        violation = float((trial.excess / self._scales).max(initial=0.0)) if trial.excess.size else 0.0
        if self.dropped.size and np.any(trial.x[self.dropped]):
            violation = np.inf
        return violation if violation > FEASIBLE else 0.0, self.sign * trial.value

    @property
    def _scales(self) -> Vector:
        seen: Vector = np.abs([trial.excess for trial in self.trials.values()]).max(axis=0)
        return np.asarray(np.maximum(seen, 1e-300))

    @property
    def untolled(self) -> Trial:
        """Return the first trial, which is that of no tolls."""
        return next(iter(self.trials.values()))

    def best(self, trials: Iterable[Trial] | None = None) -> Trial:
        """Return the best of these trials, or of all."""
        return min(self.trials.values() if trials is None else trials, key=self.rank)

    def standing(self, trial: Trial, result: Result) -> Standing | None:
        """Return how a trial stands to the constraints; the multipliers are those of the search."""
        return None if result.standing is None else replace(result.standing, values=trial.excess)

    # ---- traffic on the tolled links

    def traffic(self, trial: Trial) -> Vector | None:
        """Return how many pay each toll, where the followers are travellers on links that are known."""
        payers = getattr(getattr(self.problem.follower, "function", None), "payers", None)
        return None if payers is None else np.asarray(payers(trial.y))

    def empty(self, trial: Trial) -> Indices:
        """Return the tolls that nobody pays although somebody did at another toll."""
        here, most = self.traffic(trial), self._most_traffic
        if here is None or most is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero((here <= _EMPTY * most) & (most > 0.0) & (trial.x > 0.0))

    def highest_paid(self, trial: Trial) -> Vector:
        """Return the highest toll below that of ``trial`` that somebody was seen to pay, 0 where there is none."""
        paid = np.zeros(trial.x.size)
        for other in self.trials.values():
            flow, most = self.traffic(other), self._most_traffic
            if flow is not None and most is not None:
                pays = (flow > _EMPTY * most) & (other.x < trial.x)
                paid = np.where(pays, np.maximum(paid, other.x), paid)
        return paid

    def captive(self) -> tuple[int, ...]:
        """Return the tolls whose payers were as many at every toll tried, some of which were not 0."""
        flows = [self.traffic(trial) for trial in self.trials.values()]
        known = np.array([flow for flow in flows if flow is not None])
        if not known.size:
            return ()
        most, least = known.max(axis=0), known.min(axis=0)
        tolled = np.any([trial.x > 0.0 for trial in self.trials.values()], axis=0)
        return tuple(np.flatnonzero(tolled & (most > 0.0) & (most - least <= _SAME * most)).tolist())

    @property
    def _most_traffic(self) -> Vector | None:
        flows = [self.traffic(trial) for trial in self.trials.values()]
        known = [flow for flow in flows if flow is not None]
        return np.max(known, axis=0) if known else None


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


def _uniform_trials(asked: _Asked, highest: float, levels: Vector) -> Iterator[Trial]:
    positive("try twice a typical link time").require("uniform tolls", "highest", highest)
    for toll in levels:
        what = f"a uniform toll of {toll:.4g}" if toll else "no tolls"
        yield asked.at(np.full(asked.problem.x0.size, float(toll)), what)


def _marginal_trials(asked: _Asked, steps: int) -> Iterator[Trial]:
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
    return _marginal_trials(_Asked(problem, steps + 1, 0), steps)


def best_uniform(problem: Problem, highest: float, points: int = 11, seed: int = 0) -> Uniform:
    """Try equal tolls from 0 to ``highest`` on all links (projected onto the problem's set); return the best."""
    at_least(2, "at least 2", "try 11").require("best_uniform", "points", points)
    asked = _Asked(problem, points, seed)
    return _best_uniform(asked, list(_uniform_trials(asked, highest, np.linspace(0.0, highest, points))))


def _best_uniform(asked: _Asked, trials: Sequence[Trial]) -> Uniform:
    best = asked.best(trials)
    return Uniform(float(best.x.max()), best.value, len(trials))


def value_at(problem: Problem, x: Vector, seed: int = 0) -> float:
    """Return F(x), by one query."""
    return problem.leader.value(x, answer_at(problem, x, seed))


def answer_at(problem: Problem, x: Vector, seed: int = 0) -> Vector:
    """Return the followers' answer at x, by one query."""
    oracle = Oracle(problem.follower, seed=seed)
    response = next(oracle.answer([Query(0, 0, np.asarray(x, dtype=np.float64), Purpose.MONITOR)]))
    if response.failure:
        raise FollowerFailure(f"the followers did not answer at x = {x}: {response.failure}")
    return response.y


# ---- legs ------------------------------------------------------------------------------------------------------------


def _search(asked: _Asked, starts: Sequence[Trial], solver: Any, limits: dict[str, Any]) -> Result:
    """Spend the budget, less the reserve: most of it from the first start, the rest from its rivals.

    Where the first leg can improve no further, the others share what is left, rivals or not. Return the result of the
    leg that found the best tolls.
    """
    rivals = _rivals(asked, starts)
    found: dict[str, Result] = {}
    for start in starts:
        last = start is starts[-1] or (start is starts[0] and not rivals)
        name, begin = f"leg {len(found) + 1}", _revived(asked, _settled(asked, start))
        budget = int((1.0 if last else _MAIN) * (asked.left - asked.reserve))
        result = _leg(asked, begin, name, max(budget, 1), solver, limits)
        found[name] = result
        if asked.left <= asked.reserve or result.stop not in (Stop.QUERIES, Stop.CONVERGED, Stop.UNMOVED):
            break
    return found.get(asked.best().what, result)


def _rivals(asked: _Asked, starts: Sequence[Trial]) -> list[Trial]:
    """Return the starts after the first that gain nearly as much: the optima near them may be others."""
    (violation, cost), without = asked.rank(starts[0]), asked.sign * asked.untolled.value
    enough = (violation, without - _RIVAL * (without - cost))
    return [trial for trial in starts[1:] if asked.rank(trial) < enough]


def _leg(asked: _Asked, start: Trial, name: str, budget: int, solver: Any, limits: dict[str, Any]) -> Result:
    """Let the solver search from a trial. It is not told the answers so far: they are from too far away to help."""
    settings = {"certificate": False} if solver is None else {}
    result = solve(replace(asked.problem, x0=start.x), solver, queries=budget, seed=asked.seed, monitor=False,
                   **{**settings, **limits})  # fmt: skip
    asked.left -= result.queries
    if result.told is None:  # more than is kept in memory
        asked.at(result.best_x, name)
        return result
    for query, response in result.told:
        # a probe may lie outside: what it tells is of use to the solver, but it is no proposal
        if not response.failure and asked.problem.domain.contains(query.x):
            asked.told(query.x, response.y, name)
    return result


def _settled(asked: _Asked, start: Trial) -> Trial:
    """Return the start or what is better: where nobody moves, the known cost says at which bound a toll is best."""
    tolls, domain = list(asked.captive()), asked.problem.domain
    if not tolls or not isinstance(domain, Box) or asked.left - asked.reserve < 2:
        return start
    slope = asked.sign * asked.problem.leader(start.x, start.y).grad_x[tolls]
    low, high = (np.broadcast_to(side, start.x.shape)[tolls] for side in (domain.lower, domain.upper))
    x = start.x.copy()
    x[tolls] = np.where(
        (slope < 0.0) & np.isfinite(high), high, np.where((slope > 0.0) & np.isfinite(low), low, x[tolls])
    )
    return asked.best([start, asked.at(x, f"{start.what}, tolls on captive links at their bounds")])


def _revived(asked: _Asked, start: Trial) -> Trial:
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
            if asked.left - asked.reserve < 2:
                break
            x = found.x.copy() if links.size == 1 else best.x.copy()
            x[links] = share * paid[links]
            found = asked.best([found, asked.at(x, "lower tolls on links priced out of traffic")])
        if found is best:
            break
        best = found
    return best


def _fewer(asked: _Asked, start: Trial, most: int, solver: Any, limits: dict[str, Any]) -> Trial:
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


def _swapped(asked: _Asked, best: Trial, kept: list[int], others: list[int], queries: int) -> list[int]:
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


def _without_pointless(asked: _Asked, found: Trial) -> tuple[Trial, int]:
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


def _in_question(asked: _Asked, found: Trial, allowed: float) -> tuple[list[int], list[int]]:
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
