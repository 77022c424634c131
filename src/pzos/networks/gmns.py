"""GMNS tables as CSV files: node.csv, link.csv and demand.csv (General Modeling Network Specification).

The free-flow time of a link is ``vdf_fftt`` (or ``free_flow_time``) in minutes, else length / free_speed * 60; the
capacity of a link is capacity * lanes; BPR's b and power are ``vdf_alpha`` and ``vdf_beta``, 0.15 and 4 if absent. A
column ``passable`` of node.csv (ours, not of the standard) that is 0 closes a zone to traffic passing through.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pzos.base.checks import Faults
from pzos.networks.errors import FileFaults, read_lines
from pzos.networks.network import Network
from pzos.networks.tables import network_from_table

_TIME = ("vdf_fftt", "vdf_fftt1", "free_flow_time", "fftt")
_ALPHA = ("vdf_alpha", "vdf_alpha1", "b")
_BETA = ("vdf_beta", "vdf_beta1", "power")


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
    names = ("from", "to", "length", "free_flow_time", "capacity", "b", "power", "toll")
    table: dict[str, list[float]] = {name: [] for name in names}
    for line, row in sheet.rows:
        start, end = sheet.number(line, row, ("from_node_id",)), sheet.number(line, row, ("to_node_id",))
        for name, node in (("from_node_id", start), ("to_node_id", end)):
            if np.isfinite(node) and node not in nodes:
                sheet.faults.add(line, f"{name} {node:g}: expected a node_id of node.csv")
        length = sheet.number(line, row, ("length",), 0.0)
        lanes = sheet.number(line, row, ("lanes",), 1.0)
        values = (
            length, _free_time(sheet, line, row, length), sheet.number(line, row, ("capacity",), np.inf) * lanes,
            sheet.number(line, row, _ALPHA, 0.15), sheet.number(line, row, _BETA, 4.0),
            sheet.number(line, row, ("toll",), 0.0),
        )  # fmt: skip
        for name, value in zip(names[2:7], values, strict=False):
            if value < 0:
                sheet.faults.add(line, f"{name} {value:g}: expected a number >= 0")
        if values[2] == 0 and values[1] * values[3] > 0:
            sheet.faults.add(line, "capacity 0: expected a number > 0 where the time depends on the flow")
        one_way = sheet.text(row, "directed").lower() not in ("0", "false")
        for ends in ((start, end),) if one_way else ((start, end), (end, start)):
            for name, value in zip(names, (*ends, *values), strict=True):
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
    latency, ids = network.latency, network.node_ids.tolist()
    faults = Faults("write_gmns")
    faults.check(
        latency.own is None, "network.latency", "own functions", "BPR or affine latencies", "GMNS has no other"
    )
    lost = (latency.base == 0) & (latency.rise > 0)
    faults.check(not lost.any(), "free-flow time", 0.0, "a positive time where time depends on flow",
                 "GMNS writes the rise as vdf_alpha times free-flow time: use a small positive time")  # fmt: skip
    faults.raise_if_any()
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    spots = np.full((network.nodes, 2), np.nan) if network.coordinates is None else network.coordinates
    zones = [ids[i] if i < network.zones else "" for i in range(network.nodes)]
    passable = [int(i >= network.first_thru) for i in range(network.nodes)]
    node_rows = [(ids[i], _cell(spots[i, 0]), _cell(spots[i, 1]), zones[i], passable[i]) for i in range(network.nodes)]
    _write(place / "node.csv", ("node_id", "x_coord", "y_coord", "zone_id", "passable"), node_rows)
    heading = ("link_id", "from_node_id", "to_node_id", "directed", "length", "lanes", "capacity", "vdf_fftt",
               "vdf_alpha", "vdf_beta", "toll")  # fmt: skip
    b = np.divide(latency.rise, latency.base, out=np.zeros(network.links), where=latency.base > 0)
    link_rows = [
        (i + 1, ids[network.tail[i]], ids[network.head[i]], 1, _cell(network.length[i]), 1, _cell(latency.capacity[i]),
         _cell(latency.base[i]), _cell(b[i]), _cell(latency.power[i]), _cell(network.toll[i]))
        for i in range(network.links)
    ]  # fmt: skip
    _write(place / "link.csv", heading, link_rows)
    demand = network.demand
    pairs = zip(demand.origin.tolist(), demand.destination.tolist(), demand.trips.tolist(), strict=True)
    _write(
        place / "demand.csv", ("o_zone_id", "d_zone_id", "volume"), [(ids[a], ids[b], _cell(t)) for a, b, t in pairs]
    )


def _cell(value: float) -> str:
    return "" if np.isnan(value) else repr(float(value))


def _write(path: Path, heading: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(heading)
        writer.writerows(rows)
