"""What a toll authority may want, and what it gets: objectives with exact gradients, and the report of a planner.

Revenue, total travel time, emissions or any mix: every part is a function of the tolls x on the tolled links and of
the flow v on all links, smooth in both, so it is a leader f(x, y) in the sense of the paper (Sec. 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from pzos.base.checks import require
from pzos.base.types import LeaderValue, Sense, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import HOME, Network
from pzos.networks.scenarios import surplus, trips_made
from pzos.networks.tariffs import Response, Tariff, tariff
from pzos.problem.leader import Leader, leader_from_functions

# Carbon monoxide in grams per vehicle on a link of L km driven in t minutes: 0.2038 t exp(0.7962 L / t), the
# macroscopic relation of TRANSYT-7F that the literature on emission pricing uses. It holds for speeds that cars
# drive at; above 5 km a minute it goes on as if at that speed.
#: The largest loss is smoothed over this share of what a trip costs.
_SMOOTH = 0.01
_GRAMS, _PER_SPEED, _FASTEST = 0.2038, 0.7962, 5.0


@dataclass(frozen=True, eq=False)
class TollSetting:
    """The tolls of a network, and what may be wanted of decisions x and response y (:class:`TollFollower`).

    ``before`` is what a trip costs each class or zone without tolls, where the response tells what it costs now.
    """

    network: Network
    tariff: Tariff
    before: Vector | None = None

    @property
    def size(self) -> int:
        """Return how many numbers a response has."""
        return Response(self.network, self.tariff).costs + (0 if self.before is None else self.before.size)

    def revenue(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the sum of toll times paying flow."""
        response = Response(self.network, self.tariff)
        paying = response.payers(y)
        return LeaderValue(float(np.einsum("i,i->", x, paying)), paying, response.paid(x, y))

    def largest_loss(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the largest loss of any class (or zone) on its mean trip, in money, smoothed within a hundredth.

        Where all lose the same it is that: nothing, without tolls.
        """
        before = np.zeros(0) if self.before is None else self.before
        at = y.size - before.size
        loss = y[at:] - before
        smooth = _SMOOTH * float(np.abs(before).mean())
        shares = np.exp((loss - loss.max()) / smooth)
        grad = np.zeros(y.size)
        grad[at:] = shares / shares.sum()
        return LeaderValue(float(loss.max() + smooth * np.log(shares.mean())), np.zeros(x.size), grad)

    def travel_time(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the total travel time  sum v t(v); its gradient t + v t' is the marginal social cost."""
        flow, time, slope = self._roads(y)
        return self._of_flow(x, y, float(np.einsum("i,i->", flow, time)), time + flow * slope)

    def surplus(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the surplus of travellers and treasury together in money, up to a constant: what trips are worth
        to those who make them, less time and distance; what those who stay at home forgo is the integral of its cost.
        """
        network, (flow, time, slope) = self.network, self._roads(y)
        stays = network.link_type == HOME
        forgone = np.where(stays, network.latency.integral(y[: network.links]), 0.0)
        cost = time + network.distance_factor * network.length
        marginal = np.where(stays, network.latency.time(y[: network.links]), cost + flow * slope)
        worth = float(network.worth[0, 0])
        return self._of_flow(x, y, -worth * float(np.einsum("i,i->", flow, cost) + forgone.sum()), -worth * marginal)

    def emissions(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the carbon monoxide in grams, lengths in km and times in minutes; empty links of time 0 emit none."""
        flow, time, slope = self._roads(y)
        moving = time > 0.0
        pace = np.divide(self.network.length, time, out=np.zeros(time.size), where=moving)
        per_minute = np.where(moving, _GRAMS * np.exp(_PER_SPEED * np.minimum(pace, _FASTEST)), 0.0)
        rate = per_minute * np.where(pace < _FASTEST, 1.0 - _PER_SPEED * pace, 1.0)
        grams = per_minute * time
        return self._of_flow(x, y, float(np.einsum("i,i->", flow, grams)), grams + flow * rate * slope)

    def toll_squares(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the sum of squared tolls, to keep them small and the problem well posed."""
        return LeaderValue(float(np.einsum("i,i->", x, x)), 2.0 * x, np.zeros(y.size))

    def _roads(self, y: Vector) -> tuple[Vector, Vector, Vector]:
        """Return flow, time and slope of every link, 0 where a link is no road."""
        flow, roads = y[: self.network.links], self.network.roads
        time, slope = self.network.latency.time(flow), self.network.latency.slope(flow)
        if roads.all():
            return flow, time, slope
        return np.where(roads, flow, 0.0), np.where(roads, time, 0.0), np.where(roads, slope, 0.0)

    def _of_flow(self, x: Vector, y: Vector, value: float, grad_flow: Vector) -> LeaderValue:
        grad = np.zeros(y.size)
        grad[: grad_flow.size] = grad_flow
        return LeaderValue(value, np.zeros(x.size), grad)


def drives_plausibly(network: Network) -> bool:
    """Tell whether the typical link's length and free-flow time can be km and minutes, as emissions need."""
    known = (network.latency.base > 0) & (network.length > 0)
    if not known.any():
        return False
    return bool(np.median(network.length[known] / network.latency.base[known]) < _FASTEST)


SENSES: dict[str, Sense] = {"revenue": "max", "travel_time": "min", "emissions": "min", "surplus": "max",
                            "largest_loss": "min", "toll_squares": "min"}  # fmt: skip
"""The named objectives and what is wanted of each alone; a mix of several is maximised."""


def mixed_leader(setting: Any, weights: Mapping[str, float]) -> Leader:
    """Return the leader  sum of weight times objective;  ``setting`` has a method of each name."""

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        value, grad_x, grad_y = 0.0, np.zeros(x.size), np.zeros(y.size)
        for name, weight in weights.items():
            part: LeaderValue = getattr(setting, name)(x, y)
            value += weight * part.value
            grad_x += weight * part.grad_x
            grad_y += weight * part.grad_y
        return value, grad_x, grad_y

    title = " + ".join(f"{weight:g} {name}" for name, weight in weights.items())
    return leader_from_functions(lambda x, y: everything(x, y)[0], value_and_gradients=everything, name=title)


def own_leader(objective: Any, tolls: Vector, y: Vector) -> Leader:
    """Turn a user's callable (tolls, flow) -> (value, grad_tolls, grad_flow) into a leader; a Leader is taken as is."""
    if isinstance(objective, Leader):
        return objective
    trial = objective(tolls.copy(), y.copy())
    require(isinstance(trial, tuple) and len(trial) == 3, "toll_problem", "objective", trial,
            "(value, grad_tolls, grad_flow) from objective(tolls, flow)",
            "return both partial gradients, or pass pzos.leader_from_jax(objective)")  # fmt: skip
    return leader_from_functions(lambda x, flow: objective(x, flow)[0], value_and_gradients=objective, name="own")


# ---- before and after tolls ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TollReport:
    """Two equilibria of one network, without and with tolls, and what the change means."""

    before: Assignment
    after: Assignment
    links: Indices

    @property
    def revenue(self) -> float:
        """Return the money the tolls take."""
        return self.after.revenue

    @property
    def time_saved(self) -> float:
        """Return the travel time saved over all travellers, in units of time."""
        return time_on_roads(self.before) - time_on_roads(self.after)

    @property
    def user_benefit(self) -> float:
        """Return what travellers gain in money: the change of their surplus, each class at its value of time.

        Where demand is fixed that is their cost before minus after.
        """
        had, have = surplus(self.before), surplus(self.after)
        if had is not None and have is not None:
            return fsum(have - had)
        before, after = ([fsum(row) for row in state.cost * state.class_flow] for state in (self.before, self.after))
        worth = [group.value_of_time for group in self.after.network.classes]
        return fsum(each * (a - b) for each, a, b in zip(worth, before, after, strict=True))

    @property
    def net_benefit(self) -> float:
        """Return the gain of society: the travellers' plus the revenue."""
        return self.user_benefit + self.revenue

    def rows(self) -> list[tuple[str, float, float]]:
        """Return (quantity, without tolls, with tolls), ready for a table."""
        network = self.after.network
        setting, nothing = TollSetting(network, tariff(network, self.links)), np.zeros(self.links.size)
        quantities: dict[str, Callable[[Assignment], float]] = {
            "total travel time": time_on_roads,
            "mean travel time": lambda state: time_on_roads(state) / _trips(state),
        }
        if np.any(network.link_type == HOME):
            quantities = {"trips made": _trips, **quantities}
        if np.any(network.length > 0):
            quantities["distance driven"] = lambda state: fsum(state.flow * network.length)
        if drives_plausibly(network):
            quantities["emissions (g of CO, for km and minutes)"] = lambda state: (
                setting.emissions(nothing, state.flow).value
            )
        rows = [(name, quantity(self.before), quantity(self.after)) for name, quantity in quantities.items()]
        rows.append(("revenue", 0.0, self.revenue))
        for kind, group in enumerate(network.classes):
            before, after = (_per_trip(state, kind) for state in (self.before, self.after))
            rows += [(f"{name}, {group.name}", value, after[name]) for name, value in before.items()]
        had, have = surplus(self.before), surplus(self.after)
        if had is not None and have is not None:
            named = zip((group.name for group in network.classes), had, have, strict=True)
            rows += [(f"surplus (money), {name}", float(before), float(after)) for name, before, after in named]
        rows.append(("benefit of travellers (money)", 0.0, self.user_benefit))
        rows.append(("net benefit of society (money)", 0.0, self.net_benefit))
        return rows

    def link_rows(self, most: int = 20) -> list[tuple[str, float, float, float]]:
        """Return (link, toll, flow before, flow after) of the links with the largest tolls."""
        network, toll = self.after.network, self.after.largest_toll
        order = self.links[np.argsort(-np.abs(toll[self.links]), kind="stable")][:most]
        names = network.node_ids[network.tail[order]], network.node_ids[network.head[order]]
        columns = (toll[order], self.before.flow[order], self.after.flow[order])
        titles = [f"{int(start)} -> {int(end)}" for start, end in zip(*names, strict=True)]
        return list(zip(titles, *(column.tolist() for column in columns), strict=True))


def _per_trip(state: Assignment, kind: int) -> dict[str, float]:
    """Return travel time, toll and generalised cost of the mean trip of a class."""
    flow = np.where(state.network.roads, state.class_flow[kind], 0.0)
    trips = fsum(trips_made(state)[kind])
    toll, cost = state.tolls[kind], state.cost[kind]
    parts = {"time per trip": state.time, "toll per trip (money)": toll, "cost per trip (time)": cost}
    return {name: fsum(each * flow) / trips for name, each in parts.items()}


def time_on_roads(state: Assignment) -> float:
    """Return the travel time of all travellers; those who stay at home have none."""
    return fsum((state.flow * state.time)[state.network.roads])


def _trips(state: Assignment) -> float:
    return fsum(np.concatenate(trips_made(state)))


toll_report = TollReport
"""Compare the equilibrium without tolls with the one under tolls on ``links``."""
