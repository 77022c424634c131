"""The toll problem on a city: the leader sets tolls on chosen links, the travellers answer with an equilibrium."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Matrix, Sense, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import Network
from pzos.networks.objectives import SENSES, TollSetting, named_leader, own_leader
from pzos.problem.follower import Answer
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain, Nonnegative, Whole

_MARGINAL_STEPS = 6


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
        for row in self.classes:
            table[row, self.links] = x
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
) -> Problem:
    """Return the problem of choosing tolls on ``links`` (numbers or (from, to) pairs; all links by default).

    ``objective``: "revenue" (maximised), "travel_time", "emissions" or "toll_squares" (minimised); a mix
    ``{"revenue": 1.0, "travel_time": -0.2}`` (maximised); or your own function of (tolls, flow) that returns value
    and both gradients, or a Leader (minimised unless ``sense="max"``). ``classes`` says who pays (all by default):
    if not all, the response is the flow followed by the paying flow. ``lower`` and ``upper`` cap the tolls;
    ``domain`` is any other set. ``follower`` replaces the equilibrium by another model, such as a simulator.

    The start ``x0`` is no tolls; for "travel_time", which has poor local optima near there, averaged marginal-cost
    tolls (a few equilibria, computed here and not counted as queries), unless ``follower`` or ``x0`` is given.
    """
    chosen = chosen_links(network, links)
    faults = Faults("toll_problem")
    paying = tuple(range(len(network.classes))) if classes is None else tuple(int(c) for c in classes)
    known = set(range(len(network.classes)))
    faults.check(
        bool(paying) and set(paying) <= known, "classes", classes, f"numbers out of {sorted(known)}", "see .classes"
    )
    faults.check(bool(0 < gap < 1), "gap", gap, "a number between 0 and 1", "1e-10 is usual")
    given = {"x0": 0.0 if x0 is None else x0, "lower": lower, "upper": upper}
    start, low, high = (_per_link(faults, name, value, chosen.size) for name, value in given.items())
    weights = _weights(faults, objective)
    setting = TollSetting(network, chosen)
    if weights and "emissions" in weights:
        faults.check(setting.drives_plausibly(), "network.length", network.length, "lengths in km and times in minutes",
                     "the typical link is driven at more than 300 km/h or has no length; rescale it")  # fmt: skip
    faults.raise_if_any()
    all_pay = len(paying) == len(network.classes)
    if weights is None:
        size = network.links * (1 if all_pay else 2)
        leader = own_leader(objective, start, np.ones(size))
        natural: Sense = "min"
    else:
        leader = named_leader(setting, weights, all_pay)
        natural = SENSES[next(iter(weights))] if isinstance(objective, str) else "max"
    travellers = TollFollower(network, chosen, paying, float(gap))
    allowed = _domain(low, high) if domain is None else domain
    if x0 is None and follower is None and objective == "travel_time":
        *_, (start, _) = marginal_cost_tolls(travellers, allowed, _MARGINAL_STEPS)
    return Problem(
        leader,
        travellers if follower is None else follower,
        start,
        allowed,
        natural if sense is None else sense,
        f"tolls on {chosen.size} links of {network.name} for {leader.name}",
    )


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
    numbers = np.array([network.link_number(link) for link in links], dtype=np.int64)
    faults = Faults("toll_problem")
    faults.check(numbers.size > 0, "links", [], "at least one link", "leave it out for all links")
    faults.check(np.unique(numbers).size == numbers.size, "links", numbers, "each link once", "drop the repeated ones")
    faults.raise_if_any()
    return numbers


def _weights(faults: Faults, objective: Any) -> dict[str, float] | None:
    """Return the weights of named objectives, or None for a user's own."""
    if isinstance(objective, str):
        weights = {objective: 1.0}
    elif isinstance(objective, Mapping):
        for name, weight in objective.items():
            number = isinstance(weight, int | float | np.number) and bool(np.isfinite(weight))
            if not faults.check(number, f"objective[{name!r}]", weight, "a finite number", "a weight of either sign"):
                return {}
        weights = {str(name): float(weight) for name, weight in objective.items()}
    else:
        faults.check(callable(objective), "objective", objective, "a name, a mix of names, or a function", "see SENSES")
        return None
    unknown = [name for name in weights if name not in SENSES]
    faults.check(
        not unknown and bool(weights), "objective", objective, f"names out of {sorted(SENSES)}", "or a function"
    )
    return weights


def _per_link(faults: Faults, name: str, value: npt.ArrayLike, size: int) -> Vector:
    """Return one number per tolled link; a single number stands for all of them."""
    array = np.array(value, dtype=np.float64)
    if not faults.check(array.shape in ((), (size,)), name, array, f"one number, or {size}", "one per tolled link"):
        return np.zeros(size)
    return np.ascontiguousarray(np.broadcast_to(array, (size,)))


def _domain(low: Vector, high: Vector) -> Domain:
    if np.all(np.isposinf(high)) and np.all(low == 0.0):
        return Nonnegative()
    if np.all(np.isposinf(high)) and np.all(np.isneginf(low)):
        return Whole()
    return Box(low, high)
