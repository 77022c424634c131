"""An OpenStreetMap extract as a network (extra ``osm``): a file on disk, nothing is asked for over the net.

Lengths are in km, times in minutes at the speed limit (or what is usual on such roads), capacities in vehicles per
hour: lanes times what a lane of that kind of road takes. These are rules of thumb; decisions need counted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.checks import FileFaults
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.networks.gmns import csv_rows
from pzos.networks.network import Network
from pzos.networks.tables import network_from_table

#: Vehicles per hour and lane by kind of road; links to and from it (motorway_link) are like it.
_LANE = {"motorway": 2000.0, "trunk": 1800.0, "primary": 1200.0, "secondary": 900.0, "tertiary": 700.0}
_OTHER_LANE, _OTHER_SPEED = 500.0, 30.0
#: Kinds of road that cars may take; an extract also has footpaths, rivers and the walls of houses.
_FOR_CARS = {*_LANE, "unclassified", "residential", "living_street", "road"}
_CLOSED = {"no", "private"}


def read_osm(path: str | Path, trips: Mapping[str, Any], *, places: Mapping[int, tuple[float, float]] | None = None,
             name: str | None = None) -> Network:  # fmt: skip
    """Read an extract (``.osm``, XML) as a network with these trips: columns origin, destination, trips.

    Of its ways only roads for cars are taken, without service roads and those whose access is private.
    Origins and destinations are numbers of nodes of the map. With ``places`` (zone: longitude, latitude)
    they are zones, and each is at the node nearest to its place.
    """
    try:
        import osmnx
    except ImportError as error:
        raise MissingExtra("osmnx", "osm", "an OpenStreetMap extract") from error
    graph = _streets(osmnx, Path(path))
    node_of = {} if places is None else {zone: _nearest(graph, place) for zone, place in places.items()}
    ends = {side: [node_of.get(zone, zone) for zone in trips[side]] for side in ("origin", "destination")}
    faults = FileFaults(path)
    for node in dict.fromkeys([*ends["origin"], *ends["destination"]]):
        if node not in graph:
            faults.at(None, f"node {node:.17g} of the trips: expected a node of the map's roads (or one of places)")
        else:
            graph.nodes[node]["ends"] = True  # a trip may begin between two crossings
    faults.raise_if_any()
    roads = osmnx.simplify_graph(graph, node_attrs_include=["ends"])
    roads = osmnx.add_edge_speeds(roads, fallback=_OTHER_SPEED)
    rows = [(*link[:2], *_road(link[2])) for link in roads.edges(data=True) if link[0] != link[1]]
    columns = ("from", "to", "length", "free_flow_time", "capacity")
    where = list(roads.nodes(data=True))
    nodes = {"node": [node for node, _ in where], "x": [spot["x"] for _, spot in where],
             "y": [spot["y"] for _, spot in where]}  # fmt: skip
    links = dict(zip(columns, zip(*rows, strict=True), strict=True))
    return network_from_table(links, {**ends, "trips": trips["trips"]}, nodes, name=name or Path(path).stem)


def _streets(osmnx: Any, path: Path) -> Any:
    """Return the roads for cars of an extract, as a graph."""
    if not path.is_file():
        raise InvalidInput(f"{path}: cannot be read: expected an OpenStreetMap extract (.osm); check the path")
    try:
        graph = osmnx.graph_from_xml(path, simplify=False, retain_all=True)
    except (SyntaxError, ValueError, KeyError, OSError) as error:  # XML that breaks off, no XML, no map
        raise InvalidInput(f"{path}: cannot be read ({error}): expected an OpenStreetMap extract (.osm) with ways; "
                           "extract it again, a .pbf file with osmium") from error  # fmt: skip
    graph.remove_edges_from([link for *link, data in graph.edges(keys=True, data=True) if not _for_cars(data)])
    if graph.number_of_edges() == 0:
        raise InvalidInput(f"{path}: no road for cars: expected ways with highway={', '.join(sorted(_FOR_CARS)[:3])}, "
                           "...; choose an extract with streets")  # fmt: skip
    return osmnx.truncate.largest_component(graph)


def _for_cars(data: Mapping[str, Any]) -> bool:
    return str(data.get("highway")).removesuffix("_link") in _FOR_CARS and data.get("access") not in _CLOSED


def read_trips(path: str | Path) -> dict[str, list[float]]:
    """Return the trips of a CSV file with the columns origin, destination, trips."""
    table: dict[str, list[float]] = {"origin": [], "destination": [], "trips": []}
    for row in csv_rows(Path(path), *table):
        for name, column in table.items():
            column.append(row.number(name))
    return table


def _nearest(graph: Any, place: tuple[float, float]) -> int:
    """Return the node nearest to a longitude and latitude."""
    nodes = list(graph.nodes(data=True))
    offset = np.array([[spot["x"] - place[0], spot["y"] - place[1]] for _, spot in nodes])
    offset[:, 0] *= np.cos(np.radians(place[1]))
    return int(nodes[int(np.argmin((offset**2).sum(axis=1)))][0])


def _road(data: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return length in km, time in minutes and capacity of a piece of road; the narrowest part of it counts."""
    kinds = [str(kind).removesuffix("_link") for kind in _each(data.get("highway"))]
    lane = min((_LANE.get(kind, _OTHER_LANE) for kind in kinds), default=_OTHER_LANE)
    lanes = min((float(count) for count in _each(data.get("lanes")) if _is_number(count)), default=0.0)
    one_way = data.get("oneway") in (True, "yes", "True")
    per_direction = max(lanes if one_way else lanes / 2.0, 1.0)
    length = float(data["length"]) / 1000.0
    return length, 60.0 * length / float(data["speed_kph"]), lane * per_direction


def _each(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _is_number(word: Any) -> bool:
    return str(word).replace(".", "", 1).isdigit()
