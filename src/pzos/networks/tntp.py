"""The TNTP format (net, trips, node and flow files): readers of its quirks with errors by file and line, and writers.

The format: metadata lines ``<TAG> value`` up to ``<END OF METADATA>``, comments after ``~``, rows that may or may
not end in ``;``. Zones are the nodes 1 .. <NUMBER OF ZONES>; nodes before <FIRST THRU NODE> may not be passed
through. The public collection is "Transportation Networks for Research"; no data are part of this package. What the
writers write, the readers read back to the last bit or two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, FileFaults, read_lines
from pzos.base.types import Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Demand
from pzos.networks.latency import Latency
from pzos.networks.network import Network
from pzos.networks.tables import note_what_no_file_holds

_TAG = re.compile(r"^\s*<([^>]*)>\s*(.*)$")
_ENTRY = re.compile(r"([^\s:;]+)\s*:\s*([^\s:;]+)")
_ORIGIN = re.compile(r"^origin\b\s*([^\s:;]*)[\s:;]*(.*)$", re.IGNORECASE)
_COLUMNS = ("init node", "term node", "capacity", "length", "free-flow time", "b", "power", "speed", "toll",
            "link type")  # fmt: skip
_NEEDED = 7
_BETWEEN = re.compile("[,:;]")


class _File:
    """A TNTP file cut into metadata (upper-case tag -> line number, text) and numbered data rows."""

    def __init__(self, path: str | Path) -> None:
        self.faults = FileFaults(path)
        self.metadata: dict[str, tuple[int, str]] = {}
        self.rows: list[tuple[int, str]] = []
        for number, line in enumerate(read_lines(path), start=1):
            tag = _TAG.match(line)
            text = line.split("~")[0].strip()
            if tag:
                self.metadata[" ".join(tag[1].upper().split())] = (number, tag[2].split("~")[0].strip())
            elif text and text != ";":
                self.rows.append((number, text))

    def number(self, tag: str, kind: type, default: float | None = None) -> float | None:
        """Return the number of a tag; a missing one without default, or one that is no number, is a fault."""
        line, text = self.metadata.get(tag, (None, ""))
        if line is None:
            if default is None:
                self.faults.at(None, f"<{tag}> is missing: expected a metadata line '<{tag}> number'")
            return default
        try:
            value = float(text.split()[0].rstrip(";"))
            if kind(value) != value:
                raise ValueError
            return value
        except (ValueError, IndexError, OverflowError):
            self.faults.at(line, f"<{tag}> {text!r}: expected a number")
            return default

    def numbers(self, expected: str, needed: int, most: int) -> Iterator[tuple[int, list[float]]]:
        """Yield line and the first ``most`` numbers of every row that has the ``needed`` ones; note the others."""
        for position, (line, text) in enumerate(self.rows):
            try:
                cells = [float(cell) for cell in _BETWEEN.sub(" ", text).split()[:most]]
            except ValueError:
                cells = []
            if len(cells) >= needed:
                yield line, cells
            elif position > 0:  # the first row may be a heading
                self.faults.at(line, f"{text[:40]!r}: expected {expected}")


def _link_row(line: int, text: str, nodes: int, faults: FileFaults) -> list[float]:
    """Return the columns of a link, 0 where the last ones are left out, and note what is wrong with them."""
    cells = text.replace(";", " ").split()
    if not _NEEDED <= len(cells) <= len(_COLUMNS) + 2:
        faults.at(line, f"{len(cells)} columns: expected {', '.join(_COLUMNS)}")
        return []
    row = dict.fromkeys(_COLUMNS, 0.0)
    for name, cell in zip(_COLUMNS, cells, strict=False):
        try:
            row[name] = float(cell)
        except ValueError:
            faults.at(line, f"{name} {cell!r}: expected a number")
            return []
    for name in ("init node", "term node"):
        if not (row[name] % 1 == 0 and 1 <= row[name] <= nodes):
            faults.at(line, f"{name} {row[name]:g}: expected a node number from 1 to {nodes}")
    for name in ("length", "free-flow time", "b", "power"):
        if not 0 <= row[name] < np.inf:
            faults.at(line, f"{name} {row[name]:g}: expected a finite number >= 0")
    if not (row["capacity"] > 0 or row["free-flow time"] * row["b"] == 0):
        faults.at(line, f"capacity {row['capacity']:g}: expected a number > 0 where the time depends on the flow")
    return list(row.values())


def _read_links(file: _File, nodes: int, strict: bool) -> npt.NDArray[np.float64]:
    heading = bool(file.rows) and not any(character.isdigit() for character in file.rows[0][1])  # without its ~
    table = [_link_row(line, text, nodes, file.faults) for line, text in file.rows[heading:]]
    declared = file.number("NUMBER OF LINKS", int, len(table))
    if strict and not file.faults.messages and len(table) != declared:
        file.faults.at(
            file.metadata["NUMBER OF LINKS"][0],
            f"<NUMBER OF LINKS> {declared:g}, but {len(table)} links follow: the file may be cut short; "
            "correct the number or pass strict=False",
        )
    if not table:
        file.faults.at(None, "no link found: expected one row per link after <END OF METADATA>")
    file.faults.raise_if_any()
    return np.array(table)


def _read_demand(path: str | Path, zones: int) -> Demand:
    file = _File(path)
    origin: int | None = None
    table: list[tuple[int, int, float]] = []
    found = 0
    for line, whole in file.rows:
        text, heading = whole, _ORIGIN.match(whole)
        if heading:
            origin, text = _zone(heading[1], zones, line, file.faults), heading[2]
        entries = _ENTRY.findall(text)
        if _ENTRY.sub("", text).strip(" \t;") or not (entries or heading):
            file.faults.at(line, f"{whole[:40]!r}: expected 'Origin n' or 'destination : trips;'")
        elif entries and origin is None:
            file.faults.at(line, "trips before the first 'Origin' line: expected 'Origin n' first")
        else:
            found += len(entries)
            pairs = ((origin or 0, *_trip(zone, amount, zones, line, file.faults)) for zone, amount in entries)
            table += [pair for pair in pairs if pair[2] > 0]  # most of a large table is zeros
    if not found:
        file.faults.at(None, "no trips found: expected lines 'Origin n' and 'destination : trips;'")
    file.faults.raise_if_any()
    columns = np.array(table).reshape(-1, 3)
    return Demand.from_list(columns[:, 0], columns[:, 1], columns[:, 2])


def _trip(zone: str, amount: str, zones: int, line: int, faults: FileFaults) -> tuple[int, float]:
    """Return destination (counted from 0) and trips of an entry."""
    try:
        value = float(amount)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        faults.at(line, f"trips {amount!r} to zone {zone}: expected a finite number >= 0")
    return _zone(zone, zones, line, faults), value


def _zone(word: str, zones: int, line: int, faults: FileFaults) -> int:
    """Return the number of a zone, counted from 0."""
    if word.isdigit() and 1 <= int(word) <= zones:
        return int(word) - 1
    faults.at(line, f"zone {word!r}: expected a number from 1 to {zones}")
    return 0


def read_tntp(
    net: str | Path,
    trips: str | Path,
    node: str | Path | None = None,
    *,
    toll_factor: float | None = None,
    distance_factor: float | None = None,
    strict: bool = True,
) -> Network:
    """Read a network and its demand; coordinates come from ``node``, or from a ``*_node.tntp`` beside ``net``.

    The generalised cost adds ``toll_factor`` * toll + ``distance_factor`` * length to the time; the metadata
    <TOLL FACTOR> and <DISTANCE FACTOR> give the defaults, else 0. With ``strict=False`` a wrong <NUMBER OF LINKS>
    is overlooked.
    """
    file = _File(net)
    zones = file.number("NUMBER OF ZONES", int)
    nodes = file.number("NUMBER OF NODES", int)
    first_thru = file.number("FIRST THRU NODE", int, 1)
    given = {"TOLL FACTOR": toll_factor, "DISTANCE FACTOR": distance_factor}
    factors = [file.number(tag, float, 0.0) if value is None else value for tag, value in given.items()]
    count = int(nodes or 0)
    if nodes is not None and zones is not None and not 1 <= zones <= nodes:
        file.faults.at(file.metadata["NUMBER OF ZONES"][0], f"<NUMBER OF ZONES> {zones:g}: expected 1 to {count}")
    file.faults.raise_if_any()
    table = _read_links(file, count, strict)
    beside = Path(str(net).replace("_net.tntp", "_node.tntp"))
    found = node is None and beside != Path(net) and beside.exists()
    node = beside if found else node
    tail, head, capacity, length, free, b, power, _, toll, kind = table.T
    return Network.from_arrays(
        tail.astype(np.int64) - 1, head.astype(np.int64) - 1, Latency.bpr(free, b, capacity, power),
        _read_demand(trips, int(zones or 0)), nodes=count, zones=int(zones or 0), first_thru=int(first_thru or 1) - 1,
        length=length, toll=toll, toll_factor=float(factors[0] or 0.0), distance_factor=float(factors[1] or 0.0),
        node_ids=np.arange(1, count + 1), link_type=kind.astype(np.int64), name=Path(net).stem.removesuffix("_net"),
        coordinates=None if node is None else read_tntp_nodes(node, count, strict=strict and not found),
    )  # fmt: skip


def read_tntp_nodes(path: str | Path, nodes: int, *, strict: bool = True) -> npt.NDArray[np.float64]:
    """Read the coordinates of a node file: node, x, y; nodes that are not listed get NaN.

    Nodes that the network does not have are a fault, or skipped with ``strict=False``.
    """
    file = _File(path)
    places = np.full((nodes, 2), np.nan)
    for line, (node, x, y) in file.numbers("node, x, y", 3, 3):
        if 1 <= node < nodes + 1:
            places[int(node) - 1] = x, y
        elif strict:
            file.faults.at(line, f"node {node:g}: expected a number from 1 to {nodes}")
    file.faults.raise_if_any()
    return places


def read_tntp_flow(path: str | Path, network: Network) -> tuple[Vector, Vector]:
    """Read a flow file (from, to, volume, cost); return volume and cost in the network's order of links."""
    file = _File(path)
    number_of = {float(name): index for index, name in enumerate(network.node_ids)}
    waiting: dict[tuple[int, int], list[int]] = {}
    for link in range(network.links - 1, -1, -1):
        waiting.setdefault((int(network.tail[link]), int(network.head[link])), []).append(link)
    volume, cost = np.full(network.links, np.nan), np.full(network.links, np.nan)
    for line, cells in file.numbers("from, to, volume, cost", 3, 4):
        ends = number_of.get(cells[0], -1), number_of.get(cells[1], -1)
        if not waiting.get(ends):
            file.faults.at(line, f"link {cells[0]:.17g} -> {cells[1]:.17g}: expected a link of the network, once")
            continue
        link = waiting[ends].pop()
        volume[link], cost[link] = cells[2], cells[3] if len(cells) > 3 else np.nan
    for ends, left in waiting.items():
        if left:
            names = network.node_ids[ends[0]], network.node_ids[ends[1]]
            file.faults.at(None, f"link {names[0]} -> {names[1]} is missing: expected every link of the network")
    file.faults.raise_if_any()
    return volume, cost


# ---- writers ---------------------------------------------------------------------------------------------------------


def write_tntp(network: Network, net: str | Path, trips: str | Path, node: str | Path | None = None) -> None:
    """Write network and demand (and coordinates) as TNTP files; nodes are numbered from 1 in their order."""
    faults = Faults("write_tntp")
    note_what_no_file_holds(faults, network, "TNTP knows no others", "TNTP writes the rise as b")
    faults.check(len(network.classes) == 1, "network.classes", len(network.classes), "one class",
                 "TNTP knows no classes: write one network per class")  # fmt: skip
    faults.check(node is None or network.coordinates is not None, "node", node, "a network with coordinates",
                 "leave the node file out")  # fmt: skip
    faults.raise_if_any()
    _write(net, _net_lines(network))
    _write(trips, _trips_lines(network))
    if node is not None and network.coordinates is not None:
        rows = [f"{i + 1}\t{x!r}\t{y!r}\t;" for i, (x, y) in enumerate(network.coordinates.tolist())]
        _write(node, ["Node\tX\tY\t;", *rows])


def _write(path: str | Path, lines: Iterable[str]) -> None:
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _ends(network: Network) -> list[str]:
    """Return the end nodes of every link, counted from 1."""
    ends = zip((network.tail + 1).tolist(), (network.head + 1).tolist(), strict=True)
    return [f"{tail}\t{head}" for tail, head in ends]


def _net_lines(network: Network) -> Iterable[str]:
    latency = network.latency
    yield f"<NUMBER OF ZONES> {network.zones}"
    yield f"<NUMBER OF NODES> {network.nodes}"
    yield f"<FIRST THRU NODE> {network.first_thru + 1}"
    yield f"<NUMBER OF LINKS> {network.links}"
    yield f"<TOLL FACTOR> {network.toll_factor!r}"
    yield f"<DISTANCE FACTOR> {network.distance_factor!r}"
    yield "<END OF METADATA>"
    yield "\n~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;"
    columns = (latency.capacity, network.length, latency.base, latency.b, latency.power, np.zeros(network.links),
               network.toll, network.link_type)  # fmt: skip
    for ends, *row in zip(_ends(network), *(column.tolist() for column in columns), strict=True):
        yield f"\t{ends}\t" + "\t".join(map(repr, row)) + "\t;"


def _trips_lines(network: Network) -> Iterable[str]:
    demand = network.classes[0].demand
    pairs = zip(demand.origin.tolist(), demand.destination.tolist(), demand.trips.tolist(), strict=True)
    yield f"<NUMBER OF ZONES> {network.zones}"
    yield f"<TOTAL OD FLOW> {demand.total!r}"
    yield "<END OF METADATA>"
    last = -1
    for origin, end, trips in pairs:
        if origin != last:
            yield f"\nOrigin {origin + 1}"
            last = origin
        yield f"    {end + 1} : {trips!r};"


def write_tntp_flow(assignment: Assignment, path: str | Path) -> None:
    """Write volume and cost (of the first class, in units of time) of every link as a TNTP flow file."""
    rows = zip(_ends(assignment.network), assignment.flow.tolist(), assignment.cost[0].tolist(), strict=True)
    _write(path, ["From\tTo\tVolume\tCost", *(f"{ends}\t{flow!r}\t{cost!r}" for ends, flow, cost in rows)])
