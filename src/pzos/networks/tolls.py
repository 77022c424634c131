"""The toll problem on a city: the leader sets tolls on chosen links, the travellers answer with an equilibrium.

Also the search itself: good places to start from, and the uniform toll every proposal must beat. Marginal-cost tolls
x = v t'(v), averaged over a few responses, are where a leader who knows the latencies starts: with all links tolled
and one class they lead to the system optimum. Elsewhere they are only a start.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults, at_least, frozen_array, frozen_indices, number, positive, require
from pzos.base.columns import Columns
from pzos.base.errors import FollowerFailure
from pzos.base.types import Matrix, Purpose, Query, Sense, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import Network
from pzos.networks.objectives import SENSES, TollSetting, mixed_leader, own_leader
from pzos.problem.follower import Answer
from pzos.problem.outcomes import Outcomes, caps, outcomes_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain, Nonnegative, Whole
from pzos.solving import solve
from pzos.study.result import Result

_MARGINAL_STEPS = 6
_GAP = number(lambda gap: 0 < gap < 1, "a number between 0 and 1", "1e-10 is usual")
_WEIGHT = number(lambda weight: True, "a finite number", "a weight of either sign")


@dataclass(frozen=True, eq=False)
class TollFollower:
    """The travellers: tolls on ``links`` in, equilibrium flow out, with the gap it was computed to.

    The answer is the flow of all links; where only some ``classes`` pay, their flow follows behind it.
    """

    network: Network
    links: Indices
    classes: tuple[int, ...]
    gap: float

    def tolls(self, x: Vector) -> Matrix:
        """Return the table of tolls, one row per class, one column per link."""
        table = np.zeros((len(self.network.classes), self.network.links))
        table[list(self.classes)] = self.network.tolls_on(self.links, x)
        return table

    def assignment(self, x: npt.ArrayLike) -> Assignment:
        """Return the whole equilibrium at tolls ``x``."""
        return self.network.assign(self.tolls(np.asarray(x, dtype=np.float64)), self.gap)

    def __call__(self, x: Vector) -> Answer:
        """Answer one query."""
        found = self.assignment(x)
        if len(self.classes) == len(self.network.classes):
            return Answer(found.flow, found.gap)
        paying = found.class_flow[list(self.classes)].sum(axis=0)
        return Answer(np.concatenate([found.flow, paying]), found.gap)


def toll_problem(
    network: Network,
    links: Iterable[Any] | None = None,
    objective: str | Mapping[str, float] | Callable[..., Any] = "revenue",
    *,
    classes: Sequence[int] | None = None,
    lower: npt.ArrayLike = 0.0,
    upper: npt.ArrayLike = np.inf,
    domain: Domain | None = None,
    x0: npt.ArrayLike | None = None,
    sense: Sense | None = None,
    gap: float = 1e-10,
    follower: Callable[[Vector], Any] | None = None,
    outcomes: Outcomes | Iterable[Outcomes] | None = None,
) -> Problem:
    """Return the problem of choosing tolls on ``links`` (numbers or (from, to) pairs; all links by default).

    ``objective``: "revenue" (maximised), "travel_time", "emissions" or "toll_squares" (minimised); a mix
    ``{"revenue": 1.0, "travel_time": -0.2}`` (maximised); or your own function of (tolls, flow) that returns value
    and both gradients, or a Leader (minimised unless ``sense="max"``). ``classes`` says who pays (all by default):
    if not all, the response is the flow followed by the paying flow. ``lower`` and ``upper`` cap the tolls;
    ``domain`` is any other set. ``follower`` replaces the equilibrium by another model, such as a simulator.

    The start ``x0`` is no tolls; for "travel_time", which has poor local optima near there, averaged marginal-cost
    tolls (a few equilibria, computed here and not counted as queries), unless ``follower`` or ``x0`` is given.

    ``outcomes`` are constraints on the response: :func:`flow_caps`, :func:`total_cap`, or your own.
    """
    chosen = chosen_links(network, links)
    faults = Faults("toll_problem")
    known = list(range(len(network.classes)))
    wanted = frozen_indices(faults, "classes", known if classes is None else classes)
    faults.raise_if_any()
    paying = () if wanted is None else tuple(wanted.tolist())
    fine = bool(paying) and set(paying) <= set(known)
    faults.check(fine, "classes", classes, f"numbers out of {known}", "see .classes")
    _GAP.note(faults, "gap", gap)
    given = {"x0": 0.0 if x0 is None else x0, "lower": lower, "upper": upper}
    start, low, high = (_per_link(faults, name, value, chosen.size) for name, value in given.items())
    weights = _weights(faults, objective)
    setting = TollSetting(network, chosen)
    if weights and "emissions" in weights:
        faults.check(setting.drives_plausibly(), "network.length", network.length, "lengths in km and times in minutes",
                     "the typical link is driven at more than 300 km/h or has no length; rescale it")  # fmt: skip
    faults.raise_if_any()
    if weights is None:
        size = network.links * (1 if len(paying) == len(known) else 2)
        leader = own_leader(objective, start, np.ones(size))
    else:
        leader = mixed_leader(setting, weights)
    travellers = TollFollower(network, chosen, paying, float(gap))
    allowed = _domain(low, high) if domain is None else domain
    if x0 is None and follower is None and objective == "travel_time":
        *_, (start, _) = marginal_cost_tolls(travellers, allowed, _MARGINAL_STEPS)
    if sense is None:
        sense = SENSES[objective] if isinstance(objective, str) else "min" if weights is None else "max"
    name = f"tolls on {chosen.size} links of {network.name} for {leader.name}"
    answering = travellers if follower is None else follower
    names = link_names(network)
    payers = [] if len(paying) == len(known) else [f"{link}, paying" for link in names]
    return Problem(
        leader, answering, start, allowed, sense, name, outcomes=outcomes,
        decisions=Columns([names[link] for link in chosen]),
        responses=Columns([*names, *payers]),
    )  # fmt: skip


def link_names(network: Network) -> list[str]:
    """Return the links by the names of their ends; of links between the same two also the number."""
    ids = network.node_ids
    names = [f"{ids[tail]} → {ids[head]}" for tail, head in zip(network.tail, network.head, strict=True)]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} (link {link})" for link, name in enumerate(names)]


def flow_caps(network: Network, links: Iterable[Any], most: npt.ArrayLike) -> Outcomes:
    """Return the constraint that no more than ``most`` travellers use these links, each by itself."""
    numbers = chosen_links(network, links)
    ids = network.node_ids
    names = [f"flow {ids[network.tail[link]]}-{ids[network.head[link]]}" for link in numbers]
    return caps(most, numbers, names=names)


def total_cap(network: Network, links: Iterable[Any] | None, name: str, most: float) -> Outcomes:
    """Return the constraint that an objective by name ("travel_time", "emissions", ...) is at most ``most``.

    ``links`` are the tolled ones, as for :func:`toll_problem`.
    """
    faults = Faults("total_cap")
    faults.check(name in SENSES, "name", name, f"one of {sorted(SENSES)}", "check the spelling")
    positive("what is allowed?").note(faults, "most", most)
    faults.raise_if_any()
    total = mixed_leader(TollSetting(network, chosen_links(network, links)), {name: 1.0 / float(most)})

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        at = total(x, y)
        return weights[0] * at.grad_x, weights[0] * at.grad_y

    def value(x: Vector, y: Vector) -> Vector:
        return np.array([total.value(x, y) - 1.0])  # in units of what is allowed

    return outcomes_from_functions(value, pull, names=[f"{name} <= {most:g}"])


def marginal_cost_tolls(travellers: TollFollower, domain: Domain, steps: int) -> Iterator[tuple[Vector, Vector]]:
    """Yield marginal-cost tolls, averaged over the responses so far, each with the response to it.

        x <- x + (v t'(v) - x) / (k + 2)

    With all links tolled, one class and many steps these are the tolls of the system optimum.
    """
    network, links = travellers.network, travellers.links
    worth = [network.classes[kind].value_of_time for kind in travellers.classes]
    trips = [network.classes[kind].demand.total for kind in travellers.classes]
    money = float(np.average(worth, weights=trips))
    x = domain.project(np.zeros(links.size))
    y: Vector = travellers(x).y
    for step in range(steps):
        flow = y[: network.links]
        external = money * (flow * network.latency.slope(flow))[links]
        x = domain.project(x + (external - x) / (step + 2.0))
        y = travellers(x).y
        yield x, y


def chosen_links(network: Network, links: Iterable[Any] | None) -> Indices:
    """Return the numbers of the tolled links, checked, in the order given."""
    if links is None:
        return np.arange(network.links)
    require(
        isinstance(links, Iterable), "toll_problem", "links", links, "a list of links", "leave it out for all links"
    )
    numbers = np.array([network.link_number(link) for link in links], dtype=np.int64)
    faults = Faults("toll_problem")
    faults.check(numbers.size > 0, "links", [], "at least one link", "leave it out for all links")
    faults.check(np.unique(numbers).size == numbers.size, "links", numbers, "each link once", "drop the repeated ones")
    faults.raise_if_any()
    return numbers


def _weights(faults: Faults, objective: Any) -> dict[str, float] | None:
    """Return the weights of named objectives, or None for a user's own."""
    given = {objective: 1.0} if isinstance(objective, str) else objective
    if not isinstance(given, Mapping):
        faults.check(callable(objective), "objective", objective, "a name, a mix of names, or a function", "see SENSES")
        return None
    if not all(_WEIGHT.note(faults, f"objective[{name!r}]", weight) for name, weight in given.items()):
        return {}
    weights = {str(name): float(weight) for name, weight in given.items()}
    known = bool(weights) and set(weights) <= set(SENSES)
    faults.check(known, "objective", objective, f"names out of {sorted(SENSES)}", "or a function")
    return weights


def _per_link(faults: Faults, name: str, value: npt.ArrayLike, size: int) -> Vector:
    """Return one number per tolled link; a single number stands for all of them."""
    array = frozen_array(faults, name, value)
    if array is None or not faults.check(
        array.shape in ((), (size,)), name, array, f"one number, or {size}", "one per tolled link"
    ):
        return np.zeros(size)
    return np.array(np.broadcast_to(array, (size,)))


def _domain(low: Vector, high: Vector) -> Domain:
    if np.all(np.isposinf(high)) and np.all(low == 0.0):
        return Nonnegative()
    if np.all(np.isposinf(high)) and np.all(np.isneginf(low)):
        return Whole()
    return Box(low, high)


# ---- the search ------------------------------------------------------------------------------------------------------


class Uniform(NamedTuple):
    """The best toll that is the same on all chosen links, with its value and the queries it took."""

    toll: float
    value: float
    queries: int


class Trial(NamedTuple):
    """Tolls that were tried before the search, what they are worth, and the constraints g there."""

    x: Vector
    value: float
    what: str
    excess: Vector


@dataclass(frozen=True, eq=False)
class TollSearch:
    """The best tolls found; ``start`` says from where the search began, ``queries`` counts everything asked."""

    x: Vector
    value: float
    start: Trial
    uniform: Uniform
    untolled: float
    queries: int
    seconds: float
    result: Result

    def choices(self) -> dict[str, Vector]:
        """Return the tolls worth comparing by name: none, the best uniform ones, and those found."""
        uniform = np.full_like(self.x, self.uniform.toll)
        return {"no tolls": np.zeros_like(self.x), f"uniform {self.uniform.toll:g}": uniform, "optimised": self.x}


def optimise_tolls(
    problem: Problem, highest: float, solver: Any = None, *, queries: int = 200, uniform: int = 8, marginal: int = 6,
    seed: int = 0, **limits: Any
) -> TollSearch:  # fmt: skip
    """Search the tolls within so many queries, from the best of some uniform and marginal-cost tolls.

    ``uniform`` equal tolls from 0 to ``highest`` are tried, and ``marginal`` steps of averaged marginal-cost tolls
    where the followers are an equilibrium model; the rest of the budget is the solver's (default: the package's).
    """
    faults = Faults("optimise_tolls")
    at_least(2, "at least 2", "no tolls and the highest").note(faults, "uniform", uniform)
    at_least(0, "a number >= 0", "0 tries none").note(faults, "marginal", marginal)
    faults.check(queries > uniform + marginal, "queries", queries, f"more than {uniform + marginal}",
                 "the first ones find a place to start from")  # fmt: skip
    faults.raise_if_any()
    begin, sign = time.perf_counter(), problem.known().sign
    levels = np.append(0.0, highest * 0.5 ** np.arange(uniform - 2, -1, -1.0))  # finer where tolls are low
    equal = list(_uniform_trials(problem, highest, levels, seed))
    others = list(marginal_cost_trials(problem, marginal)) if marginal else []
    start = _best_of([*equal, *others], sign)
    spent = len(equal) + len(others)
    result = solve(replace(problem, x0=start.x), solver, queries=queries - spent, seed=seed, monitor=False, **limits)
    # under constraints the run itself compares: the start was its first answer
    better = problem.outcomes is not None or sign * result.best_value < sign * start.value
    x, value = (result.best_x, result.best_value) if better else (start.x, start.value)
    return TollSearch(
        x, value, start, _best(equal, sign), equal[0].value, spent + result.queries, time.perf_counter() - begin, result
    )


def _best_of(trials: Sequence[Trial], sign: float) -> Trial:
    """Return the best of those that violate constraints least, each constraint in units of the largest value seen."""
    scales = np.maximum(np.abs([trial.excess for trial in trials]).max(axis=0), 1e-300)

    def rank(trial: Trial) -> tuple[float, float]:
        return float((np.maximum(trial.excess, 0.0) / scales).max(initial=0.0)), sign * trial.value

    return min(trials, key=rank)


def _excess(problem: Problem, x: Vector, y: Vector) -> Vector:
    return np.zeros(0) if problem.outcomes is None else problem.outcomes.values(x, y)


def value_at(problem: Problem, x: Vector, seed: int = 0) -> float:
    """Return F(x), by one query."""
    return problem.leader.value(x, _answer(problem, x, seed))


def _answer(problem: Problem, x: Vector, seed: int) -> Vector:
    oracle = Oracle(problem.follower, seed=seed)
    response = next(oracle.answer([Query(0, 0, np.asarray(x, dtype=np.float64), Purpose.MONITOR)]))
    if response.failure:
        raise FollowerFailure(f"the followers did not answer at x = {x}: {response.failure}")
    return response.y


def best_uniform(problem: Problem, highest: float, points: int = 11, seed: int = 0) -> Uniform:
    """Try equal tolls from 0 to ``highest`` on all links (projected onto the problem's set); return the best."""
    at_least(2, "at least 2", "try 11").require("best_uniform", "points", points)
    trials = list(_uniform_trials(problem, highest, np.linspace(0.0, highest, points), seed))
    return _best(trials, problem.known().sign)


def _best(trials: list[Trial], sign: float) -> Uniform:
    best = _best_of(trials, sign)
    return Uniform(float(best.x.max()), best.value, len(trials))


def _uniform_trials(problem: Problem, highest: float, levels: Vector, seed: int) -> Iterator[Trial]:
    positive("try twice a typical link time").require("uniform tolls", "highest", highest)
    for toll in levels:
        x = problem.domain.project(np.full(problem.x0.size, float(toll)))
        y = _answer(problem, x, seed)
        what = f"a uniform toll of {toll:.4g}" if toll else "no tolls"
        yield Trial(x, problem.leader.value(x, y), what, _excess(problem, x, y))


def marginal_cost_trials(problem: Problem, steps: int) -> Iterator[Trial]:
    """Try averaged marginal-cost tolls (:func:`pzos.networks.tolls.marginal_cost_tolls`).

    Nothing is tried where the followers are not the package's own equilibrium, whose latencies are known.
    """
    travellers = getattr(problem.follower, "function", None)
    if isinstance(travellers, TollFollower):
        for step, (x, y) in enumerate(marginal_cost_tolls(travellers, problem.domain, steps), 1):
            what = f"marginal-cost tolls after {step} steps"
            yield Trial(x, problem.leader.value(x, y), what, _excess(problem, x, y))
