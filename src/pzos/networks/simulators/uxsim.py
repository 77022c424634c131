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

from pzos.base.checks import Faults
from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.networks.maps import layout
from pzos.networks.network import Network
from pzos.networks.simulators.traffic import Simulator, Traffic

_LANE_PER_HOUR = 2000.0
_JAM_PER_METRE = 0.2


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its imports are not ours to mend
            import uxsim
    except ImportError as error:
        raise MissingExtra("uxsim", "traffic", "simulation by UXsim") from error
    return uxsim


@dataclass(frozen=True, eq=False)
class UxsimSimulator(Simulator):
    """A network in UXsim. Trips depart evenly over ``loading`` seconds; the run ends after ``horizon`` seconds.

    Demand and capacities are per hour, times in units of ``second`` seconds (60: minutes), lengths in units of
    ``metre`` metres. ``platoon`` vehicles move together. Drivers look at travel times anew every ``update`` seconds
    and then a share ``adapting`` of them reconsiders.
    """

    network: Network
    loading: float = 1800.0
    horizon: float = 5400.0
    platoon: int = 5
    update: float = 120.0
    adapting: float = 0.5
    second: float = 60.0
    metre: float = 1000.0

    def __post_init__(self) -> None:
        faults = Faults("UxsimSimulator")
        self.check(faults, ("loading", "horizon", "update", "adapting", "second", "metre"))
        faults.check(self.platoon >= 1, "platoon", self.platoon, "a whole number >= 1", "5 is usual")
        faults.raise_if_any()

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
        seconds = np.maximum(network.latency.base * self.second, 1.0)
        metres = np.where(network.length > 0, network.length * self.metre, 10.0 * seconds)
        lanes = np.maximum(np.ceil(network.latency.capacity / _LANE_PER_HOUR), 1.0)
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
