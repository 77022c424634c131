"""UXsim as a follower: a mesoscopic simulator with per-link congestion pricing and a C++ engine (extra ``traffic``).

Vehicles move in platoons and follow a dynamic user optimum: at each decision they know the current travel times. A
toll of x units of time makes them choose as if the link took x longer. A run is a pure function of tolls and seed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import checked, whole
from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.networks.maps import layout
from pzos.networks.simulators.traffic import POSITIVE, Simulator, Traffic

_JAM_PER_METRE = 0.2


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its imports are not ours to mend
            import uxsim
    except ImportError as error:
        raise MissingExtra("uxsim", "traffic", "simulation by UXsim") from error
    return uxsim


@dataclass(frozen=True, eq=False, kw_only=True)
class UxsimSimulator(Simulator):
    """A network in UXsim. Trips depart evenly; ``platoon`` vehicles move together.

    Every ``update`` seconds a share ``adapting`` of the drivers reconsiders. The other settings are those of every
    :class:`~pzos.networks.simulators.traffic.Simulator`.
    """

    platoon: int = checked(whole(1, "5 is usual"), default=5)
    adapting: float = checked(POSITIVE, default=0.5)

    def run(self, tolls: npt.ArrayLike, seed: int) -> Traffic:
        """Simulate once; tolls are in the network's units of time."""
        world = self._world(np.asarray(tolls, dtype=np.float64), int(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            world.exec_simulation()
        entered, spent = np.empty(self.network.links), np.empty(self.network.links)
        for number in range(self.network.links):
            link = world.get_link(f"{number}")
            came, left = np.asarray(link.cum_arrival), np.asarray(link.cum_departure)
            entered[number] = came[-1]
            spent[number] = float((came - left).sum()) * world.DELTAT / self.second
        return Traffic(entered, spent, self._everyone(world) - float(spent.sum()))

    def _everyone(self, world: Any) -> float:
        """Return the time of all vehicles from their wish to depart until they arrive, or the run ends."""
        total = 0.0
        for vehicle in world.VEHICLES.values():
            begin = vehicle.departure_time * world.DELTAT
            arrival = vehicle.arrival_time
            end = world.TMAX if arrival is None or arrival < 0 else arrival * world.DELTAT
            total += (end - begin) * world.DELTAN
        return total / self.second

    def _world(self, tolls: Vector, seed: int) -> Any:
        network = self.network
        world = _package().World(
            name="", deltan=self.platoon, duo_update_time=self.update, duo_update_weight=self.adapting,
            random_seed=seed, print_mode=0, save_mode=0, show_mode=0, show_progress=0, tmax=self.horizon, cpp=True,
            vehicle_logging_timestep_interval=-1,
        )  # fmt: skip
        for node, (x, y) in enumerate(layout(network)):
            world.addNode(f"n{node}", float(x), float(y))
        seconds, metres, lanes = self.roads()
        for number in range(network.links):
            toll = float(tolls[number] * self.second)
            world.addLink(
                f"{number}", f"n{network.tail[number]}", f"n{network.head[number]}", length=float(metres[number]),
                free_flow_speed=float(metres[number] / seconds[number]), number_of_lanes=int(lanes[number]),
                jam_density_per_lane=_JAM_PER_METRE, capacity_out=float(network.latency.capacity[number] / 3600.0),
                congestion_pricing=(lambda _, toll=toll: toll),
            )  # fmt: skip
        demand = network.demand
        for origin, end, trips in zip(demand.origin, demand.destination, demand.trips, strict=True):
            rate = float(trips) / 3600.0
            world.adddemand(f"n{origin}", f"n{end}", 0.0, self.loading, flow=rate)
        return world
