"""GMNS tables as CSV files: node.csv, link.csv and demand.csv (General Modeling Network Specification).

The free-flow time of a link is ``vdf_fftt`` (or ``free_flow_time``) in minutes, else length / free_speed * 60; the
capacity of a link is capacity * lanes; BPR's b and power are ``vdf_alpha`` and ``vdf_beta``, 0.15 and 4 if absent. A
column ``passable`` of node.csv (ours, not of the standard) that is 0 closes a zone to traffic passing through.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, FileFaults, read_lines
from pzos.networks.network import Network
from pzos.networks.tables import network_from_table, note_what_no_file_holds

_TIME = ("vdf_fftt", "vdf_fftt1", "free_flow_time", "fftt")
_ALPHA = ("vdf_alpha", "vdf_alpha1", "b")
_BETA = ("vdf_beta", "vdf_beta1", "power")
_ROAD = ("from", "to", "length", "free_flow_time", "capacity", "b", "power", "toll")


class _Row(NamedTuple):
    """One line of a CSV file by lower-case column names; its numbers are read with errors that name the line."""

    line: int
    cells: dict[str, str]
    faults: FileFaults

    def number(self, *names: str, default: float | None = None) -> float:
        """Return the first cell of these names that is filled in, or the default; else note a fault."""
        for name in names:
            cell = self.cells.get(name, "")
            if cell:
                try:
                    return float(cell)
                except ValueError:
                    return self.refuse(f"{name} {cell!r}: expected a number")
        return self.refuse(f"{' or '.join(names)} is empty: expected a number") if default is None else default

    def refuse(self, message: str) -> float:
        """Note a fault of this line; stands for no number."""
        self.faults.at(self.line, message)
        return np.nan


def csv_rows(path: Path, *needed: str) -> Iterator[_Row]:
    """Yield the rows of a CSV file that has the ``needed`` columns; at the end raise what was noted about them."""
    faults = FileFaults(path)
    reader = csv.reader(read_lines(path))
    header = [cell.strip().lower() for cell in next(reader, [])]
    for name in needed:
        if name not in header:
            faults.at(1, f"column {name!r} is missing: expected a heading with {', '.join(needed)}")
    faults.raise_if_any()
    for row in reader:
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
        if any(cells.values()):
            yield _Row(reader.line_num, cells, faults)
    faults.raise_if_any()


def _free_time(row: _Row, length: float) -> float:
    if any(row.cells.get(name) for name in _TIME):
        return row.number(*_TIME)
    speed = row.number("free_speed")
    if not speed > 0:
        return row.refuse(f"free_speed {speed:g}: expected a number > 0, or a free-flow time in {_TIME[0]}")
    return 60.0 * length / speed


def _links(path: Path, nodes: set[float]) -> dict[str, list[float]]:
    table: dict[str, list[float]] = {name: [] for name in _ROAD}
    for row in csv_rows(path, "from_node_id", "to_node_id"):
        start, end = row.number("from_node_id"), row.number("to_node_id")
        for name, node in (("from_node_id", start), ("to_node_id", end)):
            if not np.isnan(node) and node not in nodes:
                row.refuse(f"{name} {node:g}: expected a node_id of node.csv")
        length = row.number("length", default=0.0)
        capacity = row.number("capacity", default=np.inf) * row.number("lanes", default=1.0)
        free, b, power = _free_time(row, length), row.number(*_ALPHA, default=0.15), row.number(*_BETA, default=4.0)
        values = (length, free, capacity, b, power, row.number("toll", default=0.0))
        for name, value in zip(_ROAD[2:-1], values, strict=False):  # a toll may be negative
            if value < 0:
                row.refuse(f"{name} {value:g}: expected a number >= 0")
        if capacity == 0 and free * b > 0:
            row.refuse("capacity 0: expected a number > 0 where the time depends on the flow")
        one_way = row.cells.get("directed", "").lower() not in ("0", "false")
        for ends in ((start, end),) if one_way else ((start, end), (end, start)):
            for name, value in zip(_ROAD, (*ends, *values), strict=True):
                table[name].append(value)
    return table


class _Nodes(NamedTuple):
    """Names and coordinates, the node of each zone, and the nodes that may not be passed through."""

    table: dict[str, list[float]]
    node_of_zone: dict[float, float]
    closed: list[int]


def _nodes(path: Path) -> _Nodes:
    found = _Nodes({"node": [], "x": [], "y": []}, {}, [])
    for row in csv_rows(path, "node_id"):
        node, zone = row.number("node_id"), row.number("zone_id", default=0.0)
        if not np.isfinite(node + zone):
            row.refuse("node_id, zone_id: expected finite numbers")
            continue
        found.table["node"].append(node)
        found.table["x"].append(row.number("x_coord", default=np.nan))
        found.table["y"].append(row.number("y_coord", default=np.nan))
        if row.number("passable", default=1.0) == 0:
            found.closed.append(int(node))
        if zone > 0:
            if zone in found.node_of_zone:
                row.refuse(f"zone {zone:g} has a second node: expected one node per zone; add a centroid")
            found.node_of_zone[zone] = node
    return found


def _trips(path: Path, node_of_zone: dict[float, float]) -> dict[str, list[float]]:
    table: dict[str, list[float]] = {"origin": [], "destination": [], "trips": []}
    for row in csv_rows(path, "o_zone_id", "d_zone_id", "volume"):
        for name, column in (("origin", "o_zone_id"), ("destination", "d_zone_id")):
            zone = row.number(column)
            if node_of_zone and zone not in node_of_zone:
                row.refuse(f"{column} {zone:g}: expected a zone_id of node.csv")
            table[name].append(node_of_zone.get(zone, zone))
        volume = row.number("volume")
        if volume < 0:
            row.refuse(f"volume {volume:g}: expected a number >= 0")
        table["trips"].append(volume)
    return table


def read_gmns(folder: str | Path, *, toll_factor: float = 0.0, distance_factor: float = 0.0) -> Network:
    """Read node.csv, link.csv and demand.csv (o_zone_id, d_zone_id, volume) of a folder."""
    place = Path(folder)
    nodes = _nodes(place / "node.csv")
    links = _links(place / "link.csv", set(nodes.table["node"]))
    return network_from_table(
        links, _trips(place / "demand.csv", nodes.node_of_zone), nodes.table, closed=nodes.closed,
        toll_factor=toll_factor, distance_factor=distance_factor, name=place.name,
    )  # fmt: skip


def write_gmns(network: Network, folder: str | Path) -> None:
    """Write node.csv, link.csv and demand.csv (the classes' trips together) into ``folder``."""
    faults = Faults("write_gmns")
    note_what_no_file_holds(faults, network, "GMNS has no other", "GMNS writes the rise as vdf_alpha")
    faults.raise_if_any()
    place, ids, latency = Path(folder), network.node_ids, network.latency
    place.mkdir(parents=True, exist_ok=True)
    spots = np.full((network.nodes, 2), np.nan) if network.coordinates is None else network.coordinates
    number = np.arange(network.nodes)
    zones = np.where(number < network.zones, ids.astype(object), "")
    passable = (number >= network.first_thru).astype(int)
    _write(place / "node.csv", node_id=ids, x_coord=spots[:, 0], y_coord=spots[:, 1], zone_id=zones, passable=passable)
    ones = np.ones(network.links, dtype=int)
    _write(
        place / "link.csv", link_id=np.arange(1, network.links + 1), from_node_id=ids[network.tail],
        to_node_id=ids[network.head], directed=ones, length=network.length, lanes=ones, capacity=latency.capacity,
        vdf_fftt=latency.base, vdf_alpha=latency.b, vdf_beta=latency.power, toll=network.toll,
    )  # fmt: skip
    demand = network.demand
    _write(place / "demand.csv", o_zone_id=ids[demand.origin], d_zone_id=ids[demand.destination], volume=demand.trips)


def _write(path: Path, **columns: npt.NDArray[Any]) -> None:
    """Write columns by their names; numbers to the last bit, NaN as an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            writer.writerow(["" if cell != cell else cell for cell in row])
