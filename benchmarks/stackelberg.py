"""ZO-Stackelberg (arXiv 2602.23277) on two of the three networks of its paper, Winnipeg and Chicago.

Travellers between two zones find their equilibrium by Frank-Wolfe over paths; tolls are to lower the total travel time.
The pairs, demands and parameters of that paper could not be read. Here the pair is the one with the most trips whose
quickest path has twenty links or more, so many travel that this path would take three times as long if all took it, and
the twenty links with the largest marginal-cost tolls are tolled. Steps are chosen among five for the next pair of
the same kind, which is not reported. Run:

    PZOS_TNTP=folder python benchmarks/stackelberg.py [Winnipeg] [Chicago] [--queries 40] [--seeds 3]

Printed is the part of the way from no tolls to the system optimum that the returned tolls go, by the exact equilibrium.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import pzos
from pzos.base.types import Vector
from pzos.networks import Demand, Network, read_tntp
from pzos.networks.assignment import system_optimum
from testbed.frank_wolfe import Travellers

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data" / "tntp"
FILES = {"Winnipeg": "Winnipeg/Winnipeg", "Chicago": "Chicago-Sketch/ChicagoSketch"}
#: In units of the largest toll: the first move per unit of slope, and the radius.
LENGTHS, RADIUS = (0.001, 0.003, 0.01, 0.03, 0.1), 0.2
TOLLS, PATH_LINKS = 20, 20


class Scenario:
    """One pair of zones, how many travel, the links with tolls, and what all tolls could achieve."""

    def __init__(self, network: Network, rank: int) -> None:
        self.travellers, quickest = next(islice(_pairs(network), rank, None))
        self.trips = _trips(network, quickest)
        demand = Demand.from_list([self.travellers.origin], [self.travellers.destination], [self.trips])
        self.network = Network.from_arrays(
            network.tail, network.head, network.latency, demand,
            nodes=network.nodes, zones=network.zones, first_thru=network.first_thru,
        )  # fmt: skip
        self.untolled, self.best = self.network.assign(), system_optimum(self.network, 1e-8)
        marginal = self.best.flow * network.latency.slope(self.best.flow)
        self.links = np.sort(np.argsort(-marginal)[:TOLLS])
        self.upper = 2.0 * float(marginal.max())

    def tolls(self, x: Vector) -> Vector:
        """Return the toll of every link; a probe below zero is no toll."""
        tolls = np.zeros(self.network.links)
        tolls[self.links] = np.maximum(x, 0.0)
        return tolls

    def closed(self, length: float, queries: int, seed: int) -> float:
        """Return the part of the way to the system optimum that a run goes, by the exact equilibrium."""
        problem = self.network.toll_problem(
            self.links, "travel_time", upper=self.upper, x0=0.0,
            follower=lambda x: self.travellers.flow(self.trips, self.tolls(x)),
        )  # fmt: skip
        slope = (self.untolled.total_travel_time - self.best.total_travel_time) / self.upper
        solver = pzos.ZOStackelberg(step=pzos.Diminishing(length * self.upper / slope), radius=RADIUS * self.upper)
        result = pzos.solve(problem, solver, queries=queries, seed=seed, monitor=False, progress=False)
        reached = self.network.assign(self.tolls(result.x)).total_travel_time
        start, end = self.untolled.total_travel_time, self.best.total_travel_time
        return (start - reached) / (start - end)

    def __str__(self) -> str:
        flow = self.travellers.flow(self.trips, self.tolls(np.zeros(TOLLS)))
        times = self.untolled.total_travel_time, float(flow @ self.network.latency.time(flow))
        return (
            f"{self.trips:.0f} trips, total time {times[0]:.6g} (by Frank-Wolfe {times[1]:.6g}), "
            f"system optimum {self.best.total_travel_time:.6g}"
        )


def _pairs(network: Network) -> Iterator[tuple[Travellers, list[int]]]:
    """Yield travellers and their quickest path on empty roads, those with the most trips first."""
    table, free = network.demand, network.latency.time(np.zeros(network.links))
    for pair in np.argsort(-table.trips, kind="stable"):
        travellers = Travellers(network, int(table.origin[pair]), int(table.destination[pair]))
        path = travellers.cheapest(free)
        if len(path) >= PATH_LINKS:
            yield travellers, path


def _trips(network: Network, path: list[int]) -> float:
    """Return how many must take the path for it to take three times as long as when it is empty."""

    def time(trips: float) -> float:
        flow = np.zeros(network.links)
        flow[path] = trips
        return float(network.latency.time(flow)[path].sum())

    return float(brentq(lambda trips: time(trips) - 3.0 * time(0.0), 0.0, 1e7))


def main() -> int:
    """Print one line per network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"default: {' '.join(FILES)}")
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    folder = Path(os.environ.get("PZOS_TNTP", BESIDE))
    for name in args.networks or FILES:
        network = read_tntp(*(folder / f"{FILES[name]}_{kind}.tntp" for kind in ("net", "trips")))
        scenario, tuning = (Scenario(network, rank) for rank in (0, 1))
        length = max(LENGTHS, key=lambda one: tuning.closed(one, args.queries, 0))  # used at once
        found = [scenario.closed(length, args.queries, seed) for seed in range(args.seeds)]
        sys.stdout.write(f"{name}: {scenario}; length {length:g}: {' '.join(f'{one:.2f}' for one in found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
