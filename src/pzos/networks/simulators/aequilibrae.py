"""AequilibraE's traffic assignment as a follower: the usual Python tool, for cross-checks and comparisons.

It is far less exact than :meth:`pzos.networks.Network.assign` (relative gaps of 1e-4 to 1e-7), takes no negative
tolls and no zero free-flow times (a millionth of a time unit is put there), and knows one value of time per class.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.errors import MissingExtra
from pzos.base.types import Vector
from pzos.networks.assignment import checked_tolls, fixed_costs
from pzos.networks.demand import Indices
from pzos.networks.network import Network
from pzos.problem.follower import Answer

_LEAST = 1e-6


def _modules() -> tuple[Any, Any, Any]:
    os.environ.setdefault("AEQ_SHOW_PROGRESS", "FALSE")  # read once, when AequilibraE is imported
    try:
        import pandas
        from aequilibrae import matrix, paths
    except ImportError as error:
        raise MissingExtra("aequilibrae", "aequilibrae", "assignment by AequilibraE") from error
    return paths, matrix, pandas


def _check(network: Network, tolls: Vector) -> None:
    faults = Faults("AequilibraE")
    faults.check(len(network.classes) == 1, "network.classes", len(network.classes), "one class", "split the network")
    faults.check(network.latency.own is None, "network.latency", "own functions", "BPR latencies", "it knows BPR only")
    faults.check(bool((tolls >= 0).all()), "tolls", float(tolls.min()), "tolls >= 0", "AequilibraE takes no subsidies")
    rising = (network.latency.rise > 0) & (network.latency.power > 0)
    faults.check(not np.any(rising & (network.latency.power < 1)), "power", float(network.latency.power.min()),
                 "powers >= 1", "AequilibraE takes no others")  # fmt: skip
    faults.check(network.first_thru in (0, network.zones), "first_thru", network.first_thru,
                 f"0 or {network.zones}", "AequilibraE closes all zones or none")  # fmt: skip
    faults.raise_if_any()


def build(network: Network, tolls: npt.ArrayLike | None = None, algorithm: str = "bfw", gap: float = 1e-4,
          iterations: int = 1000, cores: int = 1) -> Any:  # fmt: skip
    """Return AequilibraE's TrafficAssignment, ready to be executed."""
    paths, matrix, pandas = _modules()
    table = checked_tolls(network, tolls)
    _check(network, table[0])
    latency = network.latency
    constant = latency.power == 0.0
    base = np.maximum(np.where(constant, latency.base + latency.rise, latency.base), _LEAST)
    b = np.where(constant, 0.0, latency.rise / base)
    links = pandas.DataFrame({
        "link_id": np.arange(1, network.links + 1), "a_node": network.tail + 1, "b_node": network.head + 1,
        "direction": 1, "capacity": latency.capacity, "free_flow_time": base, "b": b,
        "power": np.maximum(latency.power, 1.0), "fixed": fixed_costs(network, table)[0],
    })  # fmt: skip
    zones = np.arange(1, network.zones + 1)
    graph = paths.Graph()
    graph.network = links
    graph.prepare_graph(zones)
    graph.set_blocked_centroid_flows(network.first_thru > 0)
    graph.set_graph("free_flow_time")
    trips = matrix.AequilibraeMatrix()
    trips.create_empty(zones=network.zones, matrix_names=["trips"], memory_only=True)
    trips.index = zones
    trips.matrices[:, :, 0] = network.demand.matrix(network.zones)
    trips.computational_view(["trips"])
    travellers = paths.TrafficClass("travellers", graph, trips)
    travellers.set_fixed_cost("fixed")
    assignment = paths.TrafficAssignment()
    assignment.set_classes([travellers])
    assignment.set_vdf("BPR")
    assignment.set_vdf_parameters({"alpha": "b", "beta": "power"})
    assignment.set_capacity_field("capacity")
    assignment.set_time_field("free_flow_time")
    assignment.set_algorithm(algorithm)
    assignment.max_iter, assignment.rgap_target = iterations, gap
    assignment.set_cores(cores)
    return assignment


def link_flow(assignment: Any, network: Network) -> Vector:
    """Return the flow of every link of an executed assignment, in the network's order."""
    table = assignment.results()
    flow: Vector = table["PCE_tot"].reindex(np.arange(1, network.links + 1)).to_numpy(dtype=np.float64)
    return np.nan_to_num(flow)


@dataclass(frozen=True, eq=False)
class AequilibraeFollower:
    """Tolls on ``links`` in, AequilibraE's link flows out, with the relative gap it reports."""

    network: Network
    links: Indices
    gap: float = 1e-4
    iterations: int = 1000
    algorithm: str = "bfw"

    def __call__(self, x: Vector) -> Answer:
        """Answer one query."""
        made = build(self.network, self.network.tolls_on(self.links, x), self.algorithm, self.gap, self.iterations)
        made.execute()
        return Answer(link_flow(made, self.network), float(made.assignment.rgap))
