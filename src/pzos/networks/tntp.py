"""The TNTP format (net, trips, node and flow files): readers of its quirks with errors by file and line, and writers.

The format: metadata lines ``<TAG> value`` up to ``<END OF METADATA>``, comments after ``~``, rows that may or may
not end in ``;``. Zones are the nodes 1 .. <NUMBER OF ZONES>; nodes before <FIRST THRU NODE> may not be passed
through. Nodes that are not numbered 1 .. n keep their numbers as names; zones are then those with trips. A link of
length 0 whose time is "inf" or left empty takes no time (connectors of Munich). The public collection is
"Transportation Networks for Research"; no data are part of this package. What the writers write, the readers read back
to the last bit or two.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, FileFaults, read_lines
from pzos.base.types import Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Demand
from pzos.networks.latency import Latency
from pzos.networks.network import Network
from pzos.networks.omx import read_omx
from pzos.networks.tables import note_what_no_file_holds

_TAG = re.compile(r"^\s*<([^>]*)>\s*(.*)$")
_ENTRY = re.compile(r"([^\s:;]+)\s*:\s*([^\s:;]+)")
_ORIGIN = re.compile(r"^origin\b\s*([^\s:;]*)[\s:;]*(.*)$", re.IGNORECASE)
#: The columns in their usual order, with what stands in for one that a file with other columns does not have.
_COLUMNS = {"init node": None, "term node": None, "capacity": None, "length": 0.0, "free-flow time": None, "b": 0.15,
            "power": 4.0, "speed": 0.0, "toll": 0.0, "link type": 1.0}  # fmt: skip
_USUAL = tuple(_COLUMNS)
_NEEDED = 7
#: Other spellings of them.
_ALSO = {"from": "init node", "to": "term node", "alpha": "b", "beta": "power", "fftt": "free-flow time"}
#: Totals are declared with few digits.
_TOTAL = 1e-3
_BETWEEN = re.compile("[,:;]")


class _File:
    """A TNTP file cut into metadata (upper-case tag -> line number, text) and numbered data rows."""

    def __init__(self, path: str | Path) -> None:
        self.faults = FileFaults(path)
        self.metadata: dict[str, tuple[int, str]] = {}
        self.rows: list[tuple[int, str]] = []
        self.heading: tuple[int, str] | None = None  # the last comment before the rows
        for number, line in enumerate(read_lines(path), start=1):
            tag = _TAG.match(line)
            text = line.split("~")[0].strip()
            if tag:
                self.metadata[" ".join(tag[1].upper().split())] = (number, tag[2].split("~")[0].strip())
            elif text and text != ";":
                self.rows.append((number, text))
            elif "~" in line and not self.rows:
                self.heading = number, line.partition("~")[2].strip()

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


def _link_row(line: int, text: str, names: tuple[str, ...], nodes: float, faults: FileFaults) -> list[float]:
    """Return the columns of a link in their usual order, and note what is wrong with them."""
    cells, usual = _cells(text, len(names)), names == _USUAL
    if not ((_NEEDED <= len(cells) <= len(names) + 2) if usual else len(cells) >= len(names)):
        faults.at(line, f"{len(cells)} columns: expected {', '.join(names)}")
        return []
    row = {name: 0.0 if usual or value is None else value for name, value in _COLUMNS.items()}
    for name, cell in zip(names, cells, strict=False):
        if name not in row:
            continue
        try:
            row[name] = float(cell or np.inf)
        except ValueError:
            faults.at(line, f"{name} {cell!r}: expected a number")
            return []
    for name in ("init node", "term node"):
        if not (row[name] % 1 == 0 and 1 <= row[name] <= nodes):
            faults.at(line, f"{name} {row[name]:g}: expected a node number from 1 to {nodes:g}")
    if row["length"] == 0 and row["free-flow time"] == np.inf:
        row["free-flow time"] = 0.0
    for name in ("length", "free-flow time", "b", "power"):
        if not 0 <= row[name] < np.inf:
            faults.at(line, f"{name} {row[name]:g}: expected a finite number >= 0")
    if not (row["capacity"] > 0 or row["free-flow time"] * row["b"] == 0):
        faults.at(line, f"capacity {row['capacity']:g}: expected a number > 0 where the time depends on the flow")
    return list(row.values())


def _cells(text: str, count: int) -> list[str]:
    """Return the cells of a row; where tabs leave one of them empty, it stays so."""
    plain = text.replace(";", " ").rstrip()
    cells, tabbed = plain.split(), [cell.strip() for cell in plain.split("\t")]
    return tabbed if len(cells) < len(tabbed) == count else cells


def _named(rows: Sequence[tuple[int, str]], names: tuple[str, ...], nodes: int) -> bool:
    """Tell whether nodes have numbers of their own: as many as nodes are declared, and most of them higher than that.

    A single one that is too high is a slip of the pen.
    """
    cells = (text.replace(";", " ").split() for _, text in rows)
    places = [names.index(name) for name in _USUAL[:2]]
    ends = {cell for row in cells for cell in (row[place] for place in places if place < len(row)) if cell.isdigit()}
    return len(ends) == nodes and 2 * sum(int(end) > nodes for end in ends) > nodes


def _column_names(columns: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of a file's columns in the file's order, as this module spells them."""
    if columns is None:
        return _USUAL
    names = _spelled(columns)
    faults = Faults("read_tntp")
    needed = [name for name, default in _COLUMNS.items() if default is None]
    lacking = [name for name in needed if name not in names]
    known = [name for name in names if name in _COLUMNS]
    faults.check(not lacking, "columns", list(names), f"names that include {', '.join(needed)}",
                 f"{', '.join(lacking)} is missing; also known are "
                 + ", ".join(name for name in _USUAL if name not in needed))  # fmt: skip
    faults.check(len(set(known)) == len(known), "columns", list(names), "each name once", "call others '-'")
    faults.raise_if_any()
    return names


def _spelled(names: Iterable[str]) -> tuple[str, ...]:
    known = {_plain(name): name for name in _USUAL} | _ALSO
    return tuple(known.get(_plain(name), name) for name in names)


def _check_heading(file: _File) -> None:
    """Note a heading that has columns elsewhere than where they usually are: nobody has said which are which."""
    line, text = file.heading or (None, "")
    cells = [cell.strip(" ;") for cell in (text.split("\t") if "\t" in text else text.split())]
    found = _spelled(cell for cell in cells if cell)
    both = set(_USUAL[:2]) <= set(found)
    if both and any(name in _COLUMNS and _USUAL[place : place + 1] != (name,) for place, name in enumerate(found)):
        file.faults.at(line, f"a heading of {', '.join(found)}: expected {', '.join(_USUAL)}; name the columns in the "
                       "order of the file, with columns= or --columns")  # fmt: skip
        file.faults.raise_if_any()


def _plain(name: str) -> str:
    return re.sub("[^a-z]", "", str(name).lower())


def _read_links(file: _File, nodes: int, columns: Iterable[str] | None, strict: bool) -> npt.NDArray[np.float64]:
    names = _column_names(columns)
    if columns is None and strict:
        _check_heading(file)
    heading = bool(file.rows) and not any(character.isdigit() for character in file.rows[0][1])  # without its ~
    rows = file.rows[heading:]
    highest = np.inf if _named(rows, names, nodes) else nodes
    table = [_link_row(line, text, names, highest, file.faults) for line, text in rows]
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


class _Trips(NamedTuple):
    """Trips between nodes by their numbers in the file."""

    origin: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    trips: Vector


def _read_trips(path: str | Path, matrix: str | None, zones: Container[int], expected: str, strict: bool) -> _Trips:
    if Path(path).suffix.lower() == ".omx":
        return _read_omx(path, matrix, zones, expected)
    file = _File(path)
    origin: int | None = None
    table: list[tuple[int, int, float]] = []
    found, total = 0, 0.0
    for line, whole in file.rows:
        text, heading = whole, _ORIGIN.match(whole)
        if heading:
            origin, text = _zone(heading[1], zones, expected, line, file.faults), heading[2]
        entries = _ENTRY.findall(text)
        if _ENTRY.sub("", text).strip(" \t;") or not (entries or heading):
            file.faults.at(line, f"{whole[:40]!r}: expected 'Origin n' or 'destination : trips;'")
        elif entries and origin is None:
            file.faults.at(line, "trips before the first 'Origin' line: expected 'Origin n' first")
        else:
            found += len(entries)
            for word, amount in entries:
                trips = _amount(word, amount, line, file.faults)
                pair = origin or 0, _zone(word, zones, expected, line, file.faults), trips
                total += trips
                table += [pair] if trips > 0 else []  # most of a large table is zeros
    if not found:
        file.faults.at(None, "no trips found: expected lines 'Origin n' and 'destination : trips;'")
    if strict and found and not file.faults.messages:
        _compare_total(file, table, total)
    file.faults.raise_if_any()
    columns = np.array(table).reshape(-1, 3)
    return _Trips(columns[:, 0].astype(np.int64), columns[:, 1].astype(np.int64), columns[:, 2])


def _read_omx(path: str | Path, matrix: str | None, zones: Container[int], expected: str) -> _Trips:
    table, faults = read_omx(path, matrix), FileFaults(path)
    for zone in dict.fromkeys([*table["origin"], *table["destination"]]):
        if int(zone) not in zones:
            faults.at(None, f"zone {zone:g}: expected {expected}")
    faults.raise_if_any()
    origin, destination = (np.array(table[name], dtype=np.int64) for name in ("origin", "destination"))
    return _Trips(origin, destination, np.array(table["trips"]))


def _compare_total(file: _File, table: Sequence[tuple[int, int, float]], total: float) -> None:
    """Note a file that has not the trips it declares, whether or not those from a zone to itself were counted."""
    declared = file.number("TOTAL OD FLOW", float, total) or 0.0
    between = sum(trips for start, end, trips in table if start != end)
    if declared > 0 and min(abs(total - declared), abs(between - declared)) > _TOTAL * declared:
        file.faults.at(
            file.metadata["TOTAL OD FLOW"][0],
            f"<TOTAL OD FLOW> {declared:.10g}, but the trips that follow add up to {total:.10g}: the file may be cut "
            "short; correct the number or pass strict=False",
        )


def _amount(zone: str, amount: str, line: int, faults: FileFaults) -> float:
    try:
        value = float(amount)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        faults.at(line, f"trips {amount!r} to zone {zone}: expected a finite number >= 0")
    return value


def _zone(word: str, zones: Container[int], expected: str, line: int, faults: FileFaults) -> int:
    """Return the number of a zone as the file has it."""
    if word.isdigit() and int(word) in zones:
        return int(word)
    faults.at(line, f"zone {word!r}: expected {expected}")
    return 0


def read_tntp(
    net: str | Path,
    trips: str | Path,
    node: str | Path | None = None,
    *,
    toll_factor: float | None = None,
    distance_factor: float | None = None,
    columns: Iterable[str] | None = None,
    matrix: str | None = None,
    strict: bool = True,
) -> Network:
    """Read a network and its demand; coordinates come from ``node``, or from a ``*_node.tntp`` beside ``net``.

    The generalised cost adds ``toll_factor`` * toll + ``distance_factor`` * length to the time; the metadata
    <TOLL FACTOR> and <DISTANCE FACTOR> give the defaults, else 0. ``columns`` names the columns of a net file that has
    others than usual, in its order: init node, term node, capacity and free-flow time, and as far as it has them
    length, b (else 0.15), power (else 4), toll, link type; columns of other names are skipped. With ``strict=False`` a
    wrong <NUMBER OF LINKS> or <TOTAL OD FLOW> is overlooked. ``trips`` may be an OMX file (``.omx``); ``matrix``
    names its matrix.
    """
    file = _File(net)
    zones = file.number("NUMBER OF ZONES", int)
    nodes = file.number("NUMBER OF NODES", int)
    first_thru = file.number("FIRST THRU NODE", int, 1)
    given = {"TOLL FACTOR": toll_factor, "DISTANCE FACTOR": distance_factor}
    factors = [file.number(tag, float, 0.0) if value is None else value for tag, value in given.items()]
    count, center = int(nodes or 0), int(zones or 0)
    if nodes is not None and zones is not None and not 1 <= zones <= nodes:
        file.faults.at(file.metadata["NUMBER OF ZONES"][0], f"<NUMBER OF ZONES> {zones:g}: expected 1 to {count}")
    file.faults.raise_if_any()
    table = _read_links(file, count, columns, strict)
    tail, head, capacity, length, free, b, power, _, toll, kind = table.T
    ends = np.unique(table[:, :2]).astype(np.int64)
    closed = int(first_thru or 1)
    if ends[-1] <= count:
        moved = _read_trips(trips, matrix, range(1, center + 1), f"a number from 1 to {center}", strict)
        ids, first = np.arange(1, count + 1), closed - 1
    else:
        moved = _read_trips(trips, matrix, set(ends.tolist()), "a node of the network", strict)
        ids, center, first = _in_order(ends, moved, closed)
    place = dict(zip(ids.tolist(), range(ids.size), strict=True))
    beside = Path(str(net).replace("_net.tntp", "_node.tntp"))
    found = node is None and beside != Path(net) and beside.exists()
    node = beside if found else node
    return Network.from_arrays(
        _places(place, tail), _places(place, head), Latency.bpr(free, b, capacity, power),
        Demand.from_list(_places(place, moved.origin), _places(place, moved.destination), moved.trips),
        nodes=ids.size, zones=center, first_thru=first, length=length, toll=toll,
        toll_factor=float(factors[0] or 0.0), distance_factor=float(factors[1] or 0.0),
        node_ids=ids, link_type=kind.astype(np.int64), name=Path(net).stem.removesuffix("_net"),
        coordinates=None if node is None else _coordinates(node, place, strict=strict and not found),
    )  # fmt: skip


def _in_order(ends: npt.NDArray[np.int64], moved: _Trips, first_thru: int) -> tuple[npt.NDArray[np.int64], int, int]:
    """Return the nodes in the network's order (closed ones, zones, others), how many are zones, how many closed."""
    closed = ends[ends < first_thru]
    zones = np.setdiff1d(np.concatenate([moved.origin, moved.destination]), closed)
    others = np.setdiff1d(ends, np.concatenate([closed, zones]))
    return np.concatenate([closed, zones, others]), closed.size + zones.size, closed.size


def _places(place: dict[int, int], names: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.array([place[int(name)] for name in names], dtype=np.int64)


def read_tntp_nodes(path: str | Path, nodes: int, *, strict: bool = True) -> npt.NDArray[np.float64]:
    """Read the coordinates of a node file: node, x, y; nodes that are not listed get NaN.

    Nodes that the network does not have are a fault, or skipped with ``strict=False``.
    """
    return _coordinates(path, {number + 1: number for number in range(nodes)}, strict=strict)


def _coordinates(path: str | Path, place: dict[int, int], *, strict: bool) -> npt.NDArray[np.float64]:
    """Return the coordinates of a node file in the order that ``place`` gives to the nodes."""
    file = _File(path)
    expected = f"a number from 1 to {len(place)}" if len(place) in place else "a node of the network"
    places = np.full((len(place), 2), np.nan)
    for line, (node, x, y) in file.numbers("node, x, y", 3, 3):
        if node in place:
            places[place[int(node)]] = x, y
        elif strict:
            file.faults.at(line, f"node {node:g}: expected {expected}")
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
    """Write volume and cost (of the first class, in units of time) of every link, by node names, as a flow file."""
    network = assignment.network
    names = zip(network.node_ids[network.tail].tolist(), network.node_ids[network.head].tolist(), strict=True)
    ends = (f"{tail}\t{head}" for tail, head in names)
    rows = zip(ends, assignment.flow.tolist(), assignment.cost[0].tolist(), strict=True)
    _write(path, ["From\tTo\tVolume\tCost", *(f"{ends}\t{flow!r}\t{cost!r}" for ends, flow, cost in rows)])
