"""GMNS tables as CSV files: node.csv, link.csv and demand.csv (General Modeling Network Specification).

The free-flow time of a link is ``vdf_fftt`` (or ``free_flow_time``) in minutes, else length / free_speed * 60; the
capacity of a link is capacity * lanes; BPR's b and power are ``vdf_alpha`` and ``vdf_beta``, 0.15 and 4 if absent. A
column ``passable`` of node.csv (ours, not of the standard) that is 0 closes a zone to traffic passing through.
"""

from __future__ import annotations

import csv
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


class _Sheet:
    """One CSV file with lower-case column names; cells are read with errors that name the line."""

    def __init__(self, path: str | Path, needed: tuple[str, ...]) -> None:
        lines = read_lines(path)
        self.faults = FileFaults(path)
        reader = csv.reader(lines)
        header = [cell.strip().lower() for cell in next(reader, [])]
        self.columns = {name: place for place, name in enumerate(header) if name}
        for name in needed:
            if name not in self.columns:
                self.faults.add(1, f"column {name!r} is missing: expected a heading with {', '.join(needed)}")
        self.faults.raise_if_any()
        self.rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]

    def text(self, row: list[str], name: str) -> str:
        place = self.columns.get(name, len(row))
        return row[place].strip() if place < len(row) else ""

    def number(self, line: int, row: list[str], names: tuple[str, ...], default: float | None = None) -> float:
        """Return the first cell of these names that is filled in, or the default; else note a fault."""
        for name in names:
            cell = self.text(row, name)
            if cell:
                try:
                    return float(cell)
                except ValueError:
                    self.faults.add(line, f"{name} {cell!r}: expected a number")
                    return np.nan
        if default is None:
            self.faults.add(line, f"{' or '.join(names)} is empty: expected a number")
            return np.nan
        return default


def _free_time(sheet: _Sheet, line: int, row: list[str], length: float) -> float:
    if any(sheet.text(row, name) for name in _TIME):
        return sheet.number(line, row, _TIME)
    speed = sheet.number(line, row, ("free_speed",))
    if not speed > 0:
        sheet.faults.add(line, f"free_speed {speed:g}: expected a number > 0, or a free-flow time in {_TIME[0]}")
        return np.nan
    return 60.0 * length / speed


def _links(path: str | Path, nodes: set[float]) -> dict[str, list[float]]:
    sheet = _Sheet(path, ("from_node_id", "to_node_id"))
    table: dict[str, list[float]] = {name: [] for name in _ROAD}
    for line, row in sheet.rows:
        start, end = (sheet.number(line, row, (name,)) for name in ("from_node_id", "to_node_id"))
        for name, node in (("from_node_id", start), ("to_node_id", end)):
            if np.isfinite(node) and node not in nodes:
                sheet.faults.add(line, f"{name} {node:g}: expected a node_id of node.csv")
        length = sheet.number(line, row, ("length",), 0.0)
        lanes = sheet.number(line, row, ("lanes",), 1.0)
        free = _free_time(sheet, line, row, length)
        capacity = sheet.number(line, row, ("capacity",), np.inf) * lanes
        b, power = sheet.number(line, row, _ALPHA, 0.15), sheet.number(line, row, _BETA, 4.0)
        values = (length, free, capacity, b, power, sheet.number(line, row, ("toll",), 0.0))
        for name, value in zip(_ROAD[2:-1], values, strict=False):  # a toll may be negative
            if value < 0:
                sheet.faults.add(line, f"{name} {value:g}: expected a number >= 0")
        if capacity == 0 and free * b > 0:
            sheet.faults.add(line, "capacity 0: expected a number > 0 where the time depends on the flow")
        one_way = sheet.text(row, "directed").lower() not in ("0", "false")
        for ends in ((start, end),) if one_way else ((start, end), (end, start)):
            for name, value in zip(_ROAD, (*ends, *values), strict=True):
                table[name].append(value)
    sheet.faults.raise_if_any()
    return table


class _Nodes(NamedTuple):
    """Names and coordinates, the node of each zone, and the nodes that may not be passed through."""

    table: dict[str, list[float]]
    node_of_zone: dict[int, int]
    closed: list[int]


def _nodes(path: str | Path) -> _Nodes:
    sheet = _Sheet(path, ("node_id",))
    found = _Nodes({"node": [], "x": [], "y": []}, {}, [])
    for line, row in sheet.rows:
        node = sheet.number(line, row, ("node_id",))
        zone = sheet.number(line, row, ("zone_id",), 0.0)
        for name, value in (("node", node), ("x", sheet.number(line, row, ("x_coord",), np.nan)),
                            ("y", sheet.number(line, row, ("y_coord",), np.nan))):  # fmt: skip
            found.table[name].append(value)
        if not np.isfinite(node + zone):
            continue  # already a fault
        if sheet.number(line, row, ("passable",), 1.0) == 0:
            found.closed.append(int(node))
        if zone > 0:
            if int(zone) in found.node_of_zone:
                sheet.faults.add(line, f"zone {zone:g} has a second node: expected one node per zone; add a centroid")
            found.node_of_zone[int(zone)] = int(node)
    sheet.faults.raise_if_any()
    return found


def read_gmns(folder: str | Path, *, toll_factor: float = 0.0, distance_factor: float = 0.0) -> Network:
    """Read node.csv, link.csv and demand.csv (o_zone_id, d_zone_id, volume) of a folder."""
    place = Path(folder)
    nodes = _nodes(place / "node.csv")
    links = _links(place / "link.csv", set(nodes.table["node"]))
    sheet = _Sheet(place / "demand.csv", ("o_zone_id", "d_zone_id", "volume"))
    trips: dict[str, list[float]] = {"origin": [], "destination": [], "trips": []}
    for line, row in sheet.rows:
        for name, column in (("origin", "o_zone_id"), ("destination", "d_zone_id")):
            zone = sheet.number(line, row, (column,))
            if nodes.node_of_zone and zone not in nodes.node_of_zone:
                sheet.faults.add(line, f"{column} {zone:g}: expected a zone_id of node.csv")
            trips[name].append(nodes.node_of_zone.get(int(zone), zone) if np.isfinite(zone) else -1)
        volume = sheet.number(line, row, ("volume",))
        if volume < 0:
            sheet.faults.add(line, f"volume {volume:g}: expected a number >= 0")
        trips["trips"].append(volume)
    sheet.faults.raise_if_any()
    return network_from_table(
        links, trips, nodes.table, closed=nodes.closed, toll_factor=toll_factor, distance_factor=distance_factor,
        name=place.name,
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
