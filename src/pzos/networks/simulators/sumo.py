"""SUMO as a follower: its mesoscopic model in this process, by libsumo (extra ``sumo``).

A toll enters as extra travel time: the edge's *adapted* travel time is its measured one plus the toll, and every
vehicle is rerouted by adapted travel times as it departs. Of SUMO's many switches this one was seen to work; adapted
times of single vehicles in the mesoscopic model, and the rerouting device, ignore tolls in silence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, FileFaults, Must, at_least, checked
from pzos.base.errors import FollowerFailure, MissingExtra
from pzos.base.keys import Keys, Role
from pzos.base.types import Vector
from pzos.networks.demand import Demand, Indices
from pzos.networks.latency import Latency
from pzos.networks.maps import layout
from pzos.networks.network import Network
from pzos.networks.simulators.traffic import LANE_PER_HOUR, POSITIVE, Simulator, Traffic

_FEEDER_LANES = 4
_EXIT_AT = 0.9
_ONE_AT_A_TIME = threading.Lock()  # libsumo holds one simulation per process


def _packages() -> tuple[Any, Path]:
    """Return libsumo and the folder of SUMO's programs."""
    try:
        import libsumo
        import sumo
    except ImportError as error:
        raise MissingExtra("libsumo", "sumo", "simulation by SUMO") from error
    home = Path(sumo.SUMO_HOME)
    os.environ.setdefault("SUMO_HOME", str(home))  # or SUMO looks for its file formats on the web
    return libsumo, home / "bin"


@dataclass(frozen=True, eq=False)
class _Sumo(Simulator):
    """How SUMO is driven, whatever its files: departing vehicles choose by travel times with tolls."""

    loading: float = checked(POSITIVE, default=900.0)
    horizon: float = checked(POSITIVE, default=3600.0)
    _: KW_ONLY
    update: float = checked(POSITIVE, default=30.0)
    memory: float = checked(
        Must(lambda share: bool(0 <= share < 1), "a number from 0 to below 1", "0.7 is usual"), default=0.7
    )
    blur: float = checked(at_least(1, "a number >= 1", "1 is no error at all"), default=1.2)

    def _simulate(self, files: Sequence[str], edges: Sequence[str], extra: Vector, seed: int, here: Path) -> None:
        """Run SUMO with these files and ``extra`` seconds on ``edges``; what it measured is left in ``here``."""
        libsumo, _ = _packages()
        command = [
            "sumo", *files, "--seed", str(seed),
            "--end", f"{self.horizon:g}", "--tripinfo-output", str(here / "trips.out.xml"),
            "--tripinfo-output.write-unfinished", "--weights.random-factor", f"{self.blur:g}",
            "--time-to-teleport", "-1", "--no-step-log", "--no-warnings", "--duration-log.disable",
            "--xml-validation", "never", "--xml-validation.net", "never", "--ignore-route-errors",
        ]  # fmt: skip
        try:
            libsumo.start(command)
            self._drive(libsumo, edges, extra)
        except Exception as error:
            raise FollowerFailure(f"SUMO stopped at seed {seed}: {error}") from error
        finally:
            libsumo.close()

    def _drive(self, libsumo: Any, edges: Sequence[str], extra: Vector) -> None:
        """Step through the run; vehicles choose their way, tolls included, in the second they depart."""
        known = _measured(libsumo, edges)
        due = 0.0
        while libsumo.simulation.getTime() < self.horizon and libsumo.simulation.getMinExpectedNumber() > 0:
            now = libsumo.simulation.getTime()
            if now >= due:
                known = self.memory * known + (1.0 - self.memory) * _measured(libsumo, edges)
                for edge, seconds in zip(edges, known + extra, strict=True):
                    # SUMO takes no negative times; a subsidy ends at a free road.
                    libsumo.edge.adaptTraveltime(edge, max(float(seconds), 0.0))
                due = now + self.update
            libsumo.simulationStep()
            for vehicle in libsumo.simulation.getDepartedIDList():
                libsumo.vehicle.rerouteTraveltime(vehicle, False)


@dataclass(frozen=True, eq=False)
class SumoSimulator(_Sumo):
    """A network in SUMO. Trips depart at random.

    Measured travel times are taken in every ``update`` seconds and averaged with the earlier ones (weight ``memory``
    on those); drivers misjudge each road by up to the factor ``blur``. The other settings are those of every
    :class:`~pzos.networks.simulators.traffic.Simulator`. For files of your own: :meth:`from_files`.
    """

    @staticmethod
    def from_files(net: str | Path, routes: str | Path, tolled_edges: Sequence[str], **settings: Any) -> SumoFiles:
        """Return a simulator of a ``.net.xml`` and a ``.rou.xml`` as they are, with tolls on these edges, by id.

        ``settings`` are those of :class:`SumoFiles`, e.g. ``horizon=7200.0`` seconds or ``mesoscopic=True``.
        """
        return SumoFiles(read_edges(net), net=Path(net), routes=checked_routes(routes),
                         tolled_edges=tuple(tolled_edges), **settings)  # fmt: skip

    @cached_property
    def _folder(self) -> Path:
        """Return the folder with SUMO's network, built once and removed with this object."""
        folder = Path(tempfile.mkdtemp(prefix="pzos-sumo-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        build_network(self, folder)
        return folder

    def run(self, tolls: npt.ArrayLike, seed: int) -> Traffic:
        """Simulate once; tolls are in the network's units of time."""
        links = self.network.links
        extra = np.concatenate([np.asarray(tolls, dtype=np.float64) * self.second, np.zeros(links)])
        edges = [f"{part}{number}" for part in "ex" for number in range(links)]
        base = self._folder
        with _ONE_AT_A_TIME, tempfile.TemporaryDirectory(dir=base) as place:
            here = Path(place)
            departures = write_trips(self, here / "trips.xml", int(seed))
            write_measures(self, here / "measure.xml")
            files = ["--net-file", str(base / "city.net.xml"), "--route-files", str(here / "trips.xml"), "--mesosim",
                     "--additional-files", f"{base / 'types.xml'},{here / 'measure.xml'}"]  # fmt: skip
            self._simulate(files, edges, extra, int(seed), here)
            return self._read(here, departures)

    def _read(self, here: Path, departures: Vector) -> Traffic:
        """Read what was measured; trips that did not end count until the end of the run."""
        entered, spent = np.zeros(self.network.links), np.zeros(self.network.links)
        for edge in ElementTree.parse(here / "edges.out.xml").iter("edge"):
            kind, number = edge.get("id", "?")[0], edge.get("id", "?")[1:]
            if kind in "ex" and number.isdigit():
                spent[int(number)] += float(edge.get("sampledSeconds", 0.0)) / self.second
                entered[int(number)] += float(edge.get("entered", 0.0)) if kind == "e" else 0.0
        ends = np.full(departures.size, self.horizon)
        for trip in ElementTree.parse(here / "trips.out.xml").iter("tripinfo"):
            arrival = float(trip.get("arrival", -1.0))
            if arrival >= 0:
                ends[int(trip.get("id", "0"))] = arrival
        total = float((ends - departures).sum()) / self.second
        return Traffic(entered, spent, total - float(spent.sum()))


# ---- files of the user's own ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class SumoFiles(_Sumo):
    """A ``.net.xml`` and a ``.rou.xml`` as they are, made by :meth:`SumoSimulator.from_files`.

    ``network`` holds the net's edges in the order of the file; ``names`` are their ids, and ``tolled`` are the numbers
    of ``tolled_edges``, which :func:`~pzos.networks.simulators.traffic.simulated_toll_problem` takes where no links are
    named. Vehicles depart as the routes say and take the fastest way, tolls included; routes written in the file
    decide only where they begin and end. The seed is SUMO's. Every vehicle is simulated, unless ``mesoscopic``. Tolls
    are in minutes, as all times here (``second``: 60).
    """

    net: Path
    routes: Path
    tolled_edges: tuple[str, ...]
    mesoscopic: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "loading", self.horizon)  # the routes say who departs when
        super().__post_init__()
        faults = Faults("SumoSimulator.from_files")
        unknown = [edge for edge in self.tolled_edges if edge not in self.names]
        faults.check(
            bool(self.tolled_edges), "tolled_edges", self.tolled_edges, "at least one edge", "name edges by id"
        )
        faults.check(not unknown, "tolled_edges", unknown, f"ids of edges of {self.net.name}",
                     f"the first ones are {', '.join(self.names[:5])}")  # fmt: skip
        faults.check(len(set(self.tolled_edges)) == len(self.tolled_edges), "tolled_edges", self.tolled_edges,
                     "each edge once", "drop the repeated ones")  # fmt: skip
        faults.raise_if_any()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the ids of the edges."""
        return tuple(_edges_of(self.net)[0])

    @property
    def tolled(self) -> Indices:
        """Return the numbers of the tolled edges."""
        return np.array([self.names.index(edge) for edge in self.tolled_edges], dtype=np.int64)

    def run(self, tolls: npt.ArrayLike, seed: int) -> Traffic:
        """Simulate once; tolls, one per edge of the net, are in units of time."""
        extra = np.asarray(tolls, dtype=np.float64) * self.second
        with _ONE_AT_A_TIME, tempfile.TemporaryDirectory(prefix="pzos-sumo-") as place:
            here = Path(place)
            write_measures(self, here / "measure.xml")
            files = ["--net-file", str(self.net), "--route-files", str(self.routes), "--additional-files",
                     str(here / "measure.xml"), "--tripinfo-output.write-undeparted"]  # fmt: skip
            self._simulate([*files, "--mesosim"] if self.mesoscopic else files, self.names, extra, int(seed), here)
            return self._read(here)

    def _read(self, here: Path) -> Traffic:
        """Read what was measured; vehicles that still wait or drive at the end count until then."""
        number = {name: index for index, name in enumerate(self.names)}
        entered, spent = np.zeros(self.network.links), np.zeros(self.network.links)
        for edge in ElementTree.parse(here / "edges.out.xml").iter("edge"):
            index = number.get(edge.get("id", ""))
            if index is not None:  # not a junction's inside
                spent[index] = float(edge.get("sampledSeconds", 0.0)) / self.second
                entered[index] = float(edge.get("entered", 0.0)) + float(edge.get("departed", 0.0))
        trips = ElementTree.parse(here / "trips.out.xml").iter("tripinfo")
        total = sum(max(float(trip.get(part, 0.0)), 0.0) for trip in trips for part in ("duration", "departDelay"))
        return Traffic(entered, spent, total / self.second - float(spent.sum()))


def _parsed(path: str | Path, tag: str) -> ElementTree.Element:
    """Return the root of an XML file, which must have this tag."""
    faults = FileFaults(path)
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        faults.at(None, f"cannot be read ({error}): expected SUMO's XML with <{tag}> around it; unpack a .gz first")
        raise faults.error() from error
    if root.tag != tag:
        faults.at(None, f"begins with <{root.tag}>: expected SUMO's <{tag}>")
    faults.raise_if_any()
    return root


def _edges_of(net: str | Path) -> tuple[dict[str, tuple[str, str, float, float, int]], dict[str, tuple[float, float]]]:
    """Return by id (from, to, metres, metres a second, lanes) of the edges, and where the junctions lie."""
    root = _parsed(net, "net")
    edges = {}
    for edge in root.iter("edge"):
        lanes = edge.findall("lane")
        if edge.get("from") and edge.get("to") and lanes:  # others are the insides of junctions
            edges[edge.get("id", "")] = (edge.get("from", ""), edge.get("to", ""), float(lanes[0].get("length", 1.0)),
                                         max(float(lane.get("speed", 1.0)) for lane in lanes), len(lanes))  # fmt: skip
    places = {
        item.get("id", ""): (float(item.get("x", 0.0)), float(item.get("y", 0.0))) for item in root.iter("junction")
    }
    return edges, places


def read_edges(net: str | Path) -> Network:
    """Read a ``.net.xml``: its edges as links (minutes, kilometres, vehicles per hour), its junctions as nodes.

    Its demand, one trip over the first edge, and its latencies stand in: SUMO simulates the files themselves.
    """
    edges, places = _edges_of(net)
    faults = FileFaults(net)
    if not edges:
        faults.at(None, "has no edges between junctions: expected a network made by netconvert or netgenerate")
    faults.raise_if_any()
    nodes = {name: number for number, name in enumerate(sorted({end for edge in edges.values() for end in edge[:2]}))}
    metres, speed, lanes = np.array([edge[2:] for edge in edges.values()], dtype=np.float64).T
    tail, head = np.array([[nodes[end] for end in edge[:2]] for edge in edges.values()]).T
    latency = Latency.bpr(metres / speed / 60.0, 0.15, LANE_PER_HOUR * lanes, 4.0)
    return Network.from_arrays(
        tail, head, latency, Demand.from_list(tail[:1], head[:1], [1.0]), nodes=len(nodes), length=metres / 1000.0,
        coordinates=[places.get(name, (0.0, 0.0)) for name in nodes], name=Path(net).name.removesuffix(".net.xml"),
    )  # fmt: skip


def checked_routes(routes: str | Path) -> Path:
    """Return the path of a ``.rou.xml`` in which somebody departs."""
    root = _parsed(routes, "routes")
    faults = FileFaults(routes)
    if all(root.find(f".//{kind}") is None for kind in ("vehicle", "trip", "flow")):
        faults.at(None, "nobody departs: expected <vehicle>, <trip> or <flow>")
    faults.raise_if_any()
    return Path(routes)


def _measured(libsumo: Any, edges: Sequence[str]) -> Vector:
    """Return the current travel times of these edges."""
    return np.array([libsumo.edge.getTraveltime(edge) for edge in edges])


# ---- SUMO's files ---------------------------------------------------------------------------------------------


def _save(root: ElementTree.Element, path: Path) -> None:
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def build_network(simulator: SumoSimulator, folder: Path) -> None:
    """Write nodes, edges and their capacities, and have SUMO's netconvert join them into a network.

    A link is two edges: ``e``, where vehicles queue, and ``x``, a short exit with the link's capacity; SUMO limits
    what *enters* an edge, and the queue before a link of one edge would not be seen in its travel time. Every zone
    gets an edge to depart from and one to arrive at, so that the choice of the first road is free.
    """
    network = simulator.network
    places = layout(network)
    places = (places - places.min(axis=0)) * simulator.metre
    nodes, edges = ElementTree.Element("nodes"), ElementTree.Element("edges")
    types = ElementTree.Element("additional")
    for node, place in enumerate(places):
        _node(nodes, f"n{node}", place)
    for zone in np.unique([network.demand.origin, network.demand.destination]).tolist():
        _node(nodes, f"z{zone}", places[zone] + 40.0)
        _edge(edges, f"in{zone}", f"z{zone}", f"n{zone}", _FEEDER_LANES, 25.0, 50.0, "feeder")
        _edge(edges, f"out{zone}", f"n{zone}", f"z{zone}", _FEEDER_LANES, 25.0, 50.0, "feeder")
    _headway(types, "feeder", 0.3)
    _headway(types, "road", 0.6 * 3600.0 / LANE_PER_HOUR)
    seconds, metres, lanes = simulator.roads()
    headway = np.minimum(3600.0 * lanes / network.latency.capacity, 60.0)
    for number in range(network.links):
        start, end = places[network.tail[number]], places[network.head[number]]
        _node(nodes, f"m{number}", start + _EXIT_AT * (end - start))
        ends, speed = (int(network.tail[number]), int(network.head[number])), float(metres[number] / seconds[number])
        road, exit_ = _EXIT_AT * metres[number], (1.0 - _EXIT_AT) * metres[number]
        _edge(edges, f"e{number}", f"n{ends[0]}", f"m{number}", int(lanes[number]), speed, float(road), "road")
        _edge(edges, f"x{number}", f"m{number}", f"n{ends[1]}", int(lanes[number]), speed, float(exit_), f"t{number}")
        _headway(types, f"t{number}", float(headway[number]))
    for root, name in ((nodes, "city.nod.xml"), (edges, "city.edg.xml"), (types, "types.xml")):
        _save(root, folder / name)
    _convert(folder)


def _headway(types: ElementTree.Element, name: str, seconds: float) -> None:
    """Set the seconds between vehicles on a type of edge; in SUMO's own default a jam alone halves the capacity."""
    taus = dict.fromkeys(("tauff", "taufj", "taujf", "taujj"), f"{seconds:.4f}")
    ElementTree.SubElement(ElementTree.SubElement(types, "type", id=name), "meso", taus)


def _node(nodes: ElementTree.Element, name: str, place: Vector) -> None:
    ElementTree.SubElement(nodes, "node", id=name, x=f"{place[0]:.2f}", y=f"{place[1]:.2f}", type="priority")


def _edge(
    edges: ElementTree.Element, name: str, start: str, end: str, lanes: int, speed: float, length: float, kind: str
) -> None:
    ElementTree.SubElement(edges, "edge", {
        "id": name, "from": start, "to": end, "numLanes": f"{lanes}", "speed": f"{speed:.4f}",
        "length": f"{max(length, 1.0):.2f}", "type": kind,
    })  # fmt: skip


def _convert(folder: Path) -> None:
    _, programs = _packages()
    command = [
        str(programs / "netconvert"), "--node-files", str(folder / "city.nod.xml"), "--edge-files",
        str(folder / "city.edg.xml"), "--output-file", str(folder / "city.net.xml"), "--no-turnarounds", "true",
        "--no-warnings", "true", "--xml-validation", "never", "--offset.disable-normalization", "true",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FollowerFailure(f"netconvert could not build the network: {done.stderr.strip()[:500]}")


def write_trips(simulator: SumoSimulator, path: Path, seed: int) -> Vector:
    """Write the trips of one run in the order of departure; return the departure times.

    The number of trips of a pair is its demand over the loading period, rounded at random; both the rounding and the
    departure times are functions of the seed alone, never of the tolls.
    """
    demand = simulator.network.demand
    draw = Keys(seed).generator(Role.NOISE)
    expected = demand.trips * simulator.loading / 3600.0
    counts = np.floor(expected + draw.uniform(0.0, 1.0, expected.size)).astype(np.int64)
    pair = np.repeat(np.arange(expected.size), counts)
    departures = np.round(draw.uniform(0.0, simulator.loading, pair.size), 2)
    order = np.argsort(departures, kind="stable")
    root = ElementTree.Element("routes")
    for number, index in enumerate(order.tolist()):
        ElementTree.SubElement(root, "trip", {
            "id": f"{number}", "depart": f"{departures[index]:.2f}", "from": f"in{demand.origin[pair[index]]}",
            "to": f"out{demand.destination[pair[index]]}", "departLane": "best", "departSpeed": "max",
        })  # fmt: skip
    _save(root, path)
    return departures[order]


def write_measures(simulator: Simulator, path: Path) -> None:
    """Ask SUMO to measure every edge over the whole run."""
    root = ElementTree.Element("additional")
    ElementTree.SubElement(root, "edgeData", id="all", file=str(path.parent / "edges.out.xml"), excludeEmpty="true",
                           period=f"{simulator.horizon:g}")  # fmt: skip
    _save(root, path)
