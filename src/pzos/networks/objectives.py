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
from pzos.networks.network import Network
from pzos.problem.leader import Leader, leader_from_functions

# Carbon monoxide in grams per vehicle on a link of L km driven in t minutes: 0.2038 t exp(0.7962 L / t), the
# macroscopic relation of TRANSYT-7F that the literature on emission pricing uses. It holds for speeds that cars
# drive at; above 5 km a minute it goes on as if at that speed.
_GRAMS, _PER_SPEED, _FASTEST = 0.2038, 0.7962, 5.0


@dataclass(frozen=True, eq=False)
class TollSetting:
    """The tolled links of a network, and what may be wanted of tolls x and response y.

    The response is the flow of all links, followed, if not all travellers pay, by the flow that pays.
    """

    network: Network
    links: Indices

    def revenue(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the sum of toll times paying flow."""
        paying = self.links - self.network.links + y.size
        grad = np.zeros(y.size)
        grad[paying] = x
        return LeaderValue(float(np.einsum("i,i->", x, y[paying])), y[paying], grad)

    def travel_time(self, x: Vector, y: Vector) -> LeaderValue:
        """Return the total travel time  sum v t(v); its gradient t + v t' is the marginal social cost."""
        flow, time, slope = self._roads(y)
        return self._of_flow(x, y, float(np.einsum("i,i->", flow, time)), time + flow * slope)

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
        flow = y[: self.network.links]
        return flow, self.network.latency.time(flow), self.network.latency.slope(flow)

    def _of_flow(self, x: Vector, y: Vector, value: float, grad_flow: Vector) -> LeaderValue:
        grad = np.zeros(y.size)
        grad[: grad_flow.size] = grad_flow
        return LeaderValue(value, np.zeros(x.size), grad)

    def drives_plausibly(self) -> bool:
        """Tell whether the typical link's length and free-flow time can be km and minutes, as emissions need."""
        known = (self.network.latency.base > 0) & (self.network.length > 0)
        if not known.any():
            return False
        return bool(np.median(self.network.length[known] / self.network.latency.base[known]) < _FASTEST)


SENSES: dict[str, Sense] = {"revenue": "max", "travel_time": "min", "emissions": "min", "toll_squares": "min"}
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
        return self.before.total_travel_time - self.after.total_travel_time

    @property
    def user_benefit(self) -> float:
        """Return what travellers gain in money: their cost before minus after, each class at its value of time."""
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
        setting, nothing = TollSetting(network, self.links), np.zeros(self.links.size)
        trips = sum(group.demand.total for group in network.classes)
        quantities: dict[str, Callable[[Assignment], float]] = {
            "total travel time": lambda state: state.total_travel_time,
            "mean travel time": lambda state: state.total_travel_time / trips,
        }
        if np.any(network.length > 0):
            quantities["distance driven"] = lambda state: fsum(state.flow * network.length)
        if setting.drives_plausibly():
            quantities["emissions (CO in g, for km and minutes)"] = lambda state: (
                setting.emissions(nothing, state.flow).value
            )
        rows = [(name, quantity(self.before), quantity(self.after)) for name, quantity in quantities.items()]
        rows.append(("revenue", 0.0, self.revenue))
        for kind, group in enumerate(network.classes):
            before, after = (_per_trip(state, kind) for state in (self.before, self.after))
            rows += [(f"{name}, {group.name}", value, after[name]) for name, value in before.items()]
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
    flow, trips = state.class_flow[kind], state.network.classes[kind].demand.total
    toll, cost = state.tolls[kind], state.cost[kind]
    parts = {"time per trip": state.time, "toll per trip (money)": toll, "cost per trip (time)": cost}
    return {name: fsum(each * flow) / trips for name, each in parts.items()}


toll_report = TollReport
"""Compare the equilibrium without tolls with the one under tolls on ``links``."""
