"""Writers of the TNTP format: what they write, the readers read back to the last bit or two."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pzos.base.checks import Faults
from pzos.base.types import Vector
from pzos.networks.assignment import Assignment
from pzos.networks.network import Network


def write_tntp(network: Network, net: str | Path, trips: str | Path, node: str | Path | None = None) -> None:
    """Write network and demand (and coordinates) as TNTP files; nodes are numbered from 1 in their order."""
    latency = network.latency
    faults = Faults("write_tntp")
    faults.check(latency.own is None, "network.latency", "own functions", "BPR or affine latencies",
                 "TNTP knows no others")  # fmt: skip
    faults.check(len(network.classes) == 1, "network.classes", len(network.classes), "one class",
                 "TNTP knows no classes: write one network per class")  # fmt: skip
    lost = (latency.base == 0) & (latency.rise > 0)
    faults.check(not lost.any(), "free-flow time", 0.0, "a positive time where time depends on flow",
                 "TNTP writes the rise as b times free-flow time: use a small positive time")  # fmt: skip
    faults.check(node is None or network.coordinates is not None, "node", node, "a network with coordinates",
                 "leave the node file out")  # fmt: skip
    faults.raise_if_any()
    Path(net).write_text("\n".join(_net_lines(network)) + "\n", encoding="utf-8")
    Path(trips).write_text("\n".join(_trips_lines(network)) + "\n", encoding="utf-8")
    if node is not None and network.coordinates is not None:
        rows = [f"{i + 1}\t{x!r}\t{y!r}\t;" for i, (x, y) in enumerate(network.coordinates.tolist())]
        Path(node).write_text("\n".join(["Node\tX\tY\t;", *rows]) + "\n", encoding="utf-8")


def _net_lines(network: Network) -> Iterable[str]:
    latency = network.latency
    yield f"<NUMBER OF ZONES> {network.zones}"
    yield f"<NUMBER OF NODES> {network.nodes}"
    yield f"<FIRST THRU NODE> {network.first_thru + 1}"
    yield f"<NUMBER OF LINKS> {network.links}"
    yield f"<TOLL FACTOR> {network.toll_factor!r}"
    yield f"<DISTANCE FACTOR> {network.distance_factor!r}"
    yield "<END OF METADATA>"
    yield ""
    yield "~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;"
    b = np.divide(latency.rise, latency.base, out=np.zeros(network.links), where=latency.base > 0)
    columns = (latency.capacity, network.length, latency.base, b, latency.power, np.zeros(network.links), network.toll)
    for link, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        ends = f"{int(network.tail[link]) + 1}\t{int(network.head[link]) + 1}"
        yield f"\t{ends}\t" + "\t".join(repr(value) for value in row) + f"\t{int(network.link_type[link])}\t;"


def _trips_lines(network: Network) -> Iterable[str]:
    demand = network.classes[0].demand
    yield f"<NUMBER OF ZONES> {network.zones}"
    yield f"<TOTAL OD FLOW> {demand.total!r}"
    yield "<END OF METADATA>"
    last = -1
    for origin, end, trips in zip(
        demand.origin.tolist(), demand.destination.tolist(), demand.trips.tolist(), strict=True
    ):
        if origin != last:
            yield ""
            yield f"Origin {origin + 1}"
            last = origin
        yield f"    {end + 1} : {trips!r};"


def write_tntp_flow(assignment: Assignment, path: str | Path) -> None:
    """Write volume and cost (of the first class, in units of time) of every link as a TNTP flow file."""
    network, cost = assignment.network, assignment.cost[0]
    Path(path).write_text("\n".join(_flow_lines(network, assignment.flow, cost)) + "\n", encoding="utf-8")


def _flow_lines(network: Network, flow: Vector, cost: Vector) -> Iterable[str]:
    yield "From\tTo\tVolume\tCost"
    for link in range(network.links):
        ends = f"{int(network.tail[link]) + 1}\t{int(network.head[link]) + 1}"
        yield f"{ends}\t{float(flow[link])!r}\t{float(cost[link])!r}"
