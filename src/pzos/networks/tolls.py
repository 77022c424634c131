"""The toll problem on a city: the leader sets tolls on chosen links, the travellers answer with an equilibrium.

Marginal-cost tolls x = v t'(v), averaged over a few responses, are where a leader who knows the latencies starts: with
all links tolled and one class they lead to the system optimum. Elsewhere they are only a start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_array, number, one_of, positive
from pzos.base.columns import Columns
from pzos.base.types import Matrix, Sense, Vector
from pzos.networks.assignment import AboveGap, Assignment
from pzos.networks.equilibrium.bushes import BushEquilibration
from pzos.networks.losses import By, group_names, mean_costs
from pzos.networks.network import Network
from pzos.networks.objectives import SENSES, TollSetting, drives_plausibly, mixed_leader, own_leader
from pzos.networks.references import References
from pzos.networks.tariffs import Response, Tariff, chosen_links, link_names, paying_classes, tariff
from pzos.problem.follower import Answer
from pzos.problem.outcomes import Outcomes, caps, outcomes_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain, Nonnegative, Whole

logger = logging.getLogger("pzos")

_MARGINAL_STEPS = 6
_NEARLY = 1e-6  # the relative gap of an answer that is still of use
_GAP = number(lambda gap: 0 < gap < 1, "a number between 0 and 1", "1e-10 is usual")
_WEIGHT = number(lambda weight: True, "a finite number", "a weight of either sign")


@dataclass(frozen=True, eq=False)
class TollFollower:
    """The travellers: decisions of a tariff in, equilibrium flow out, with the gap it was computed to.

    The answer is the flow of all links; where not all classes pay the same, it is followed by how many pay each toll;
    and with ``losses`` ("class" or "zone") by the mean trip's cost in money of every class, or of every zone of origin.
    The bits do not depend on ``threads``.
    """

    network: Network
    tariff: Tariff
    gap: float
    losses: By | None = None
    threads: int = 1

    def tolls(self, x: Vector) -> Matrix:
        """Return the table of tolls, one row per class, one column per link."""
        return self.tariff.tolls(x)

    @cached_property
    def references(self) -> References:
        """Return the equilibria that every query starts from, the same in every process: that without tolls, and what
        is known of detours from tolls of half and four times what the links' time is worth, and from marginal costs.
        """
        network, plan = self.network, self.tariff
        free = network.assign(None, self.gap, threads=self.threads)
        if isinstance(free._outcome, BushEquilibration):  # one set of bushes is as much as memory should hold
            return References((free,))
        money = mean_value_of_time(network, plan.paying)
        time = common_tolls(plan, money * free.time, free.flow)
        external = common_tolls(plan, money * free.flow * network.latency.slope(free.flow), free.flow)
        others = [
            network.assign(self.tolls(x), self.gap, above_gap="return", reference=free, threads=self.threads)
            for x in (0.5 * time, 4.0 * time, external)
        ]
        return References((free, *others))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: workers compute the references themselves."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def assignment(self, x: npt.ArrayLike) -> Assignment:
        """Return the whole equilibrium at tolls ``x``.

        Where the known ones lead to none it is computed from nothing, and where that stalls nearby, the nearer one is
        taken, with a warning: one hard point must not end a search.
        """
        tolls = self.tolls(np.asarray(x, dtype=np.float64))
        warm = self.network.assign(tolls, self.gap, above_gap="return", reference=self.references, threads=self.threads)
        if warm.converged:
            return warm
        cold = self.network.assign(tolls, self.gap, above_gap="return", threads=self.threads)
        best = min(warm, cold, key=lambda found: found.gap)
        if best.gap > max(_NEARLY, self.gap):
            raise AboveGap(self.gap, best.gap, best.rounds)
        if not best.converged:
            logger.warning("tolls: an equilibrium was computed to a relative gap of %.1e, not %.1e; its flows may be "
                           "off by a little", best.gap, self.gap)  # fmt: skip
        return best

    def payers(self, y: Vector) -> Vector:
        """Return how many pay each toll, out of an answer."""
        return Response(self.network, self.tariff).payers(y)

    def __call__(self, x: Vector) -> Answer:
        """Answer one query."""
        found = self.assignment(x)
        parts = [found.flow]
        if not self.tariff.alike:
            parts.append(self.tariff.payers(found.class_flow))
        if self.losses is not None:
            parts.append(mean_costs(found, self.losses))
        return Answer(parts[0] if len(parts) == 1 else np.concatenate(parts), found.gap)


def toll_problem(
    network: Network,
    links: Tariff | Mapping[str, Iterable[Any]] | Iterable[Any] | None = None,
    objective: str | Mapping[str, float] | Callable[..., Any] = "revenue",
    *,
    classes: Sequence[int] | None = None,
    losses: By | None = None,
    lower: npt.ArrayLike = 0.0,
    upper: npt.ArrayLike = np.inf,
    domain: Domain | None = None,
    x0: npt.ArrayLike | None = None,
    sense: Sense | None = None,
    gap: float = 1e-10,
    follower: Callable[[Vector], Any] | None = None,
    outcomes: Outcomes | Iterable[Outcomes] | None = None,
    threads: int = 1,
) -> Problem:
    """Return the problem of choosing tolls on ``links`` (numbers or (from, to) pairs; all links by default).

    A mapping from names to links has one common toll for each group; :func:`pzos.networks.tariff` also makes tolls by
    class. ``objective``: "revenue" or "surplus" (maximised), "travel_time", "emissions", "largest_loss" or
    "toll_squares" (minimised); a mix ``{"revenue": 1.0, "travel_time": -0.2}`` (maximised); or your own function of
    (tolls, response) that returns value and both gradients, or a Leader (minimised unless ``sense="max"``). ``classes``
    says who pays (all by default); ``losses`` that the response tells what a trip costs each class or zone
    (:class:`TollFollower`). ``lower`` and ``upper`` cap the tolls; ``domain`` is any other set. ``follower`` replaces
    the equilibrium by another model, such as a simulator. ``threads`` are those of every equilibrium.

    The start ``x0`` is no tolls; for "travel_time", which has poor local optima near there, averaged marginal-cost
    tolls (a few equilibria, computed here and not counted as queries), unless ``follower`` or ``x0`` is given.

    ``outcomes`` are constraints on the response: :func:`flow_caps`, :func:`total_cap`, :func:`loss_caps`, or your own.
    """
    faults = Faults("toll_problem")
    paying_classes(faults, network, classes)
    plan = tariff(network, links, classes=None if faults.messages else classes)  # all faults are told at once
    _GAP.note(faults, "gap", gap)
    given = {"x0": 0.0 if x0 is None else x0, "lower": lower, "upper": upper}
    start, low, high = (_per_toll(faults, name, value, len(plan)) for name, value in given.items())
    weights = _weights(faults, objective)
    losses = "class" if losses is None and weights and "largest_loss" in weights else losses
    one_of(("class", "zone", None)).note(faults, "losses", losses)
    _check_wanted(faults, network, weights or {})
    faults.raise_if_any()
    before = None if losses is None else mean_costs(network.assign(gap=gap), losses)
    setting = TollSetting(network, plan, before)
    leader = own_leader(objective, start, np.ones(setting.size)) if weights is None else mixed_leader(setting, weights)
    travellers = TollFollower(network, plan, float(gap), losses, threads)
    allowed = _domain(low, high) if domain is None else domain
    if x0 is None and follower is None and objective == "travel_time":
        *_, (start, _) = marginal_cost_tolls(travellers, allowed, _MARGINAL_STEPS)
    if sense is None:
        sense = SENSES[objective] if isinstance(objective, str) else "min" if weights is None else "max"
    name = f"tolls on {plan.tolled.size} links of {network.name} for {leader.name}"
    payers = [] if plan.alike else [f"{toll}, paying" for toll in plan.names]
    costs = [] if losses is None else [f"cost of a trip, {who}" for who in group_names(network, losses)]
    return Problem(
        leader, travellers if follower is None else follower, start, allowed, sense, name, outcomes=outcomes,
        decisions=Columns(list(plan.names)), responses=Columns([*link_names(network), *payers, *costs]),
    )  # fmt: skip


def _check_wanted(faults: Faults, network: Network, weights: Mapping[str, float]) -> None:
    """Note objectives that this network cannot be asked for."""
    if "emissions" in weights:
        faults.check(drives_plausibly(network), "network.length", network.length, "lengths in km and times in minutes",
                     "the typical link is driven at more than 300 km/h or has no length; rescale it")  # fmt: skip
    if "surplus" in weights:
        worth = network.worth.ravel()
        faults.check(bool(np.all(worth == worth[0])), "objective", "surplus", "one value of time for all classes",
                     "the surplus of several is in the report, not in the response")  # fmt: skip


def flow_caps(network: Network, links: Iterable[Any], most: npt.ArrayLike) -> Outcomes:
    """Return the constraint that no more than ``most`` travellers use these links, each by itself."""
    numbers = chosen_links(network, links)
    ids = network.node_ids
    names = [f"flow {ids[network.tail[link]]}-{ids[network.head[link]]}" for link in numbers]
    return caps(most, numbers, names=names)


def loss_caps(network: Network, links: Any, by: By, most: float, gap: float = 1e-10) -> Outcomes:
    """Return the constraint that the mean trip of no class (or zone of origin) costs more than ``most`` money above
    what it costs without tolls; for a problem with the same ``links`` and ``losses=by``.
    """
    faults = Faults("loss_caps")
    one_of(("class", "zone")).note(faults, "by", by)
    number(lambda value: True, "a finite number", "below 0: everybody must gain").note(faults, "most", most)
    faults.raise_if_any()
    response = Response(network, tariff(network, links))
    before = mean_costs(network.assign(gap=gap), by)
    names = [f"loss of {who}" for who in group_names(network, by)]
    entries = response.costs + np.arange(before.size)

    def value(x: Vector, y: Vector) -> Vector:
        return np.asarray(y[entries] - before - most)

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        grad = np.zeros(y.size)
        grad[entries] = weights
        return np.zeros(x.size), grad

    return outcomes_from_functions(value, pull, names=[f"{name} <= {most:g}" for name in names])


def total_cap(network: Network, links: Any, name: str, most: float) -> Outcomes:
    """Return the constraint that an objective by name ("travel_time", "emissions", ...) is at most ``most``.

    ``links`` are the tolled ones, as for :func:`toll_problem`.
    """
    faults = Faults("total_cap")
    known = sorted(set(SENSES) - {"largest_loss", "surplus"})
    faults.check(name in known, "name", name, f"one of {known}", "check the spelling; losses have loss_caps")
    positive("what is allowed?").note(faults, "most", most)
    faults.raise_if_any()
    total = mixed_leader(TollSetting(network, tariff(network, links)), {name: 1.0 / float(most)})

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

    A common toll is their mean over its links, weighted by flow. With all links tolled, one class and many steps these
    are the tolls of the system optimum. ``answer`` asks for a response in another way, for instance one that counts.
    """
    ask = answer or (lambda x: np.asarray(travellers(x).y))
    network, plan = travellers.network, travellers.tariff
    money = mean_value_of_time(network, plan.paying)
    x = domain.project(np.zeros(len(plan)))
    y = ask(x)
    for step in range(steps):
        flow = y[: network.links]
        external = money * flow * network.latency.slope(flow)
        external = common_tolls(plan, external, flow)
        x = domain.project(x + (external - x) / (step + 2.0))
        y = ask(x)
        yield x, y


def common_tolls(plan: Tariff, values: Vector, flow: Vector) -> Vector:
    """Return the mean of the links' values for every decision, weighted by flow; of a single one that, to the bit."""
    decision, link = np.unique(np.stack([plan.decision, plan.link]), axis=1)
    most = np.zeros(len(plan))
    np.maximum.at(most, decision, flow[link])
    weight = flow[link] / np.maximum(most, 1e-300)[decision]
    total = np.bincount(decision, weights=weight * values[link], minlength=len(plan))
    return np.asarray(total / np.maximum(np.bincount(decision, weights=weight, minlength=len(plan)), 1e-300))


def mean_value_of_time(network: Network, classes: Sequence[int]) -> float:
    """Return what a unit of time is worth to the mean traveller of these classes."""
    worth = [network.classes[kind].value_of_time for kind in classes]
    return float(np.average(worth, weights=[network.classes[kind].demand.total for kind in classes]))


def usual_cap(network: Network, links: Any = None, *, classes: Sequence[int] | None = None,
              free: Assignment | None = None) -> float:  # fmt: skip
    """Return a highest toll that keeps out nothing reasonable, rounded up to two digits.

    It is what the mean trip's time is worth, or the largest marginal-cost toll of these links, without tolls or at the
    system optimum, whichever is more. ``free`` is the equilibrium without tolls, if it is known.
    """
    plan = tariff(network, links, classes=classes)
    state = network.assign() if free is None else free
    money, chosen = mean_value_of_time(network, plan.paying), plan.tolled
    flows = [state.flow] if network.latency.own is not None else [state.flow, network.system_optimum().flow]
    external = max(float((flow * network.latency.slope(flow))[chosen].max()) for flow in flows)
    highest = money * max(state.total_travel_time / network.demand.total, external)
    unit = 10.0 ** (np.floor(np.log10(highest)) - 1.0)
    return float(f"{np.ceil(highest / unit * (1.0 - 1e-12)) * unit:.3g}")


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


def _per_toll(faults: Faults, name: str, value: npt.ArrayLike, size: int) -> Vector:
    """Return one number per toll; a single number stands for all of them."""
    array = frozen_array(faults, name, value)
    if array is None or not faults.check(
        array.shape in ((), (size,)), name, array, f"one number, or {size}", "one per toll"
    ):
        return np.zeros(size)
    return np.array(np.broadcast_to(array, (size,)))


def _domain(low: Vector, high: Vector) -> Domain:
    if np.all(np.isposinf(high)) and np.all(low == 0.0):
        return Nonnegative()
    if np.all(np.isposinf(high)) and np.all(np.isneginf(low)):
        return Whole()
    return Box(low, high)
