"""The numbers a planner needs: before and after tolls, by class and by link."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.objectives import TollSetting


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
        gains = []
        for kind, group in enumerate(self.after.network.classes):
            change = fsum(self.before.cost[kind] * self.before.class_flow[kind])
            change -= fsum(self.after.cost[kind] * self.after.class_flow[kind])
            gains.append(group.value_of_time * change)
        return fsum(gains)

    @property
    def net_benefit(self) -> float:
        """Return the gain of society: the travellers' plus the revenue."""
        return self.user_benefit + self.revenue

    def rows(self) -> list[tuple[str, float, float]]:
        """Return (quantity, without tolls, with tolls), ready for a table."""
        network = self.after.network
        setting = TollSetting(network, self.links)
        nothing = np.zeros(self.links.size)
        trips = sum(group.demand.total for group in network.classes)
        rows = [
            ("total travel time", self.before.total_travel_time, self.after.total_travel_time),
            ("mean travel time", self.before.total_travel_time / trips, self.after.total_travel_time / trips),
        ]
        if np.any(network.length > 0):
            driven = [fsum(state.flow * network.length) for state in (self.before, self.after)]
            rows.append(("distance driven", driven[0], driven[1]))
        if setting.drives_plausibly():
            grams = [setting.emissions(nothing, state.flow).value for state in (self.before, self.after)]
            rows.append(("emissions (CO in g, for km and minutes)", grams[0], grams[1]))
        rows.append(("revenue", 0.0, self.revenue))
        for kind, group in enumerate(network.classes):
            both = [_per_trip(state, kind) for state in (self.before, self.after)]
            for place, name in enumerate(("time per trip", "toll per trip (money)", "cost per trip (time)")):
                rows.append((f"{name}, {group.name}", both[0][place], both[1][place]))
        rows.append(("benefit of travellers (money)", 0.0, self.user_benefit))
        rows.append(("net benefit of society (money)", 0.0, self.net_benefit))
        return rows

    def link_rows(self, most: int = 20) -> list[tuple[str, float, float, float]]:
        """Return (link, toll, flow before, flow after) of the links with the largest tolls."""
        network = self.after.network
        toll = np.abs(self.after.tolls).max(axis=0)
        signed = self.after.tolls[np.argmax(np.abs(self.after.tolls), axis=0), np.arange(network.links)]
        order = self.links[np.argsort(-toll[self.links], kind="stable")][:most]
        return [
            (
                f"{int(network.node_ids[network.tail[link]])} -> {int(network.node_ids[network.head[link]])}",
                float(signed[link]),
                float(self.before.flow[link]),
                float(self.after.flow[link]),
            )
            for link in order
        ]


def _per_trip(state: Assignment, kind: int) -> tuple[float, float, float]:
    """Return travel time, toll and generalised cost of the mean trip of a class."""
    flow, trips = state.class_flow[kind], state.network.classes[kind].demand.total
    time, toll, cost = (fsum(each * flow) / trips for each in (state.time, state.tolls[kind], state.cost[kind]))
    return time, toll, cost


def toll_report(before: Assignment, after: Assignment, links: Indices) -> TollReport:
    """Compare the equilibrium without tolls with the one under tolls on ``links``."""
    return TollReport(before, after, links)
