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
            ("distance driven", fsum(self.before.flow * network.length), fsum(self.after.flow * network.length)),
            (
                "emissions (CO, g)",
                setting.emissions(nothing, self.before.flow).value,
                setting.emissions(nothing, self.after.flow).value,
            ),
            ("revenue", 0.0, self.revenue),
        ]
        for kind, group in enumerate(network.classes):
            costs = [fsum(a.cost[kind] * a.class_flow[kind]) / group.demand.total for a in (self.before, self.after)]
            rows.append((f"mean cost, class {group.name} (time)", costs[0], costs[1]))
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


def toll_report(before: Assignment, after: Assignment, links: Indices) -> TollReport:
    """Compare the equilibrium without tolls with the one under tolls on ``links``."""
    return TollReport(before, after, links)
