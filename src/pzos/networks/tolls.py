"""The toll problem on a city: the leader sets tolls on chosen links, the travellers answer with an equilibrium.

Marginal-cost tolls x = v t'(v), averaged over a few responses, are where a leader who knows the latencies starts: with
all links tolled and one class they lead to the system optimum. Elsewhere they are only a start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_array, frozen_indices, number, positive, require
from pzos.base.columns import Columns
from pzos.base.types import Matrix, Sense, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import Network
from pzos.networks.objectives import SENSES, TollSetting, mixed_leader, own_leader
from pzos.problem.follower import Answer
from pzos.problem.outcomes import Outcomes, caps, outcomes_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain, Nonnegative, Whole

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

    @cached_property
    def reference(self) -> Assignment:
        """Return the equilibrium without tolls, whose paths every query starts from: the same in every process."""
        return self.network.assign(None, self.gap)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: workers compute the reference themselves."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def assignment(self, x: npt.ArrayLike) -> Assignment:
        """Return the whole equilibrium at tolls ``x``."""
        tolls = self.tolls(np.asarray(x, dtype=np.float64))
        return self.network.assign(tolls, self.gap, reference=self.reference)

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
    paying = paying_classes(faults, network, classes)
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
        size = network.links * (1 if len(paying) == len(network.classes) else 2)
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
    payers = [] if len(paying) == len(network.classes) else [f"{link}, paying" for link in names]
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


def marginal_cost_tolls(
    travellers: TollFollower, domain: Domain, steps: int, answer: Callable[[Vector], Vector] | None = None
) -> Iterator[tuple[Vector, Vector]]:
    """Yield marginal-cost tolls, averaged over the responses so far, each with the response to it.

        x <- x + (v t'(v) - x) / (k + 2)

    With all links tolled, one class and many steps these are the tolls of the system optimum. ``answer`` asks for a
    response in another way, for instance one that counts.
    """
    ask = answer or (lambda x: np.asarray(travellers(x).y))
    network, links = travellers.network, travellers.links
    money = mean_value_of_time(network, travellers.classes)
    x = domain.project(np.zeros(links.size))
    y = ask(x)
    for step in range(steps):
        flow = y[: network.links]
        external = money * (flow * network.latency.slope(flow))[links]
        x = domain.project(x + (external - x) / (step + 2.0))
        y = ask(x)
        yield x, y


def paying_classes(faults: Faults, network: Network, classes: Sequence[int] | None) -> tuple[int, ...]:
    """Return the numbers of the classes that pay, all by default; what cannot be is noted."""
    known = list(range(len(network.classes)))
    wanted = frozen_indices(faults, "classes", known if classes is None else classes)
    faults.raise_if_any()
    paying = () if wanted is None else tuple(wanted.tolist())
    fine = bool(paying) and set(paying) <= set(known)
    faults.check(fine, "classes", classes, f"numbers out of {known}", "see .classes")
    return paying


def mean_value_of_time(network: Network, classes: Sequence[int]) -> float:
    """Return what a unit of time is worth to the mean traveller of these classes."""
    worth = [network.classes[kind].value_of_time for kind in classes]
    return float(np.average(worth, weights=[network.classes[kind].demand.total for kind in classes]))


def usual_cap(network: Network, links: Iterable[Any] | None = None, *, classes: Sequence[int] | None = None,
              free: Assignment | None = None) -> float:  # fmt: skip
    """Return a highest toll that keeps out nothing reasonable, rounded up to two digits.

    It is what the mean trip's time is worth, or the largest marginal-cost toll of these links, without tolls or at the
    system optimum, whichever is more. ``free`` is the equilibrium without tolls, if it is known.
    """
    faults = Faults("usual_cap")
    paying = paying_classes(faults, network, classes)
    faults.raise_if_any()
    state = network.assign() if free is None else free
    money = mean_value_of_time(network, paying)
    chosen = chosen_links(network, links)
    flows = [state.flow] if network.latency.own is not None else [state.flow, network.system_optimum().flow]
    external = max(float((flow * network.latency.slope(flow))[chosen].max()) for flow in flows)
    highest = money * max(state.total_travel_time / network.demand.total, external)
    unit = 10.0 ** (np.floor(np.log10(highest)) - 1.0)
    return float(f"{np.ceil(highest / unit * (1.0 - 1e-12)) * unit:.3g}")


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
