"""Links and nodes as GeoJSON and GeoPackage, for a geographic information system: flows before and after, tolls, times.

GeoJSON is written as plain JSON, a GeoPackage as the SQLite file that it is; neither needs another package. The
coordinates are those of the network, whatever they mean: ``crs`` is the EPSG number of their reference system (4326 for
longitude and latitude in degrees, which is what GeoJSON readers expect), none if it is not known.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.checks import Faults, whole
from pzos.base.types import Matrix, Vector
from pzos.networks.assignment import Assignment
from pzos.networks.demand import Indices
from pzos.networks.network import Network

_UNKNOWN = -1  # what a GeoPackage calls a plane without a reference system
_DEGREES = 4326
_APPLICATION, _VERSION = 0x47504B47, 10300  # "GPKG", 1.3
_POINT, _LINE = 1, 2  # well-known binary
_KINDS = {"nodes": "POINT", "links": "LINESTRING"}
_TABLES = """
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
    organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
    description TEXT DEFAULT '', last_change DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
    min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT PRIMARY KEY, column_name TEXT NOT NULL,
    geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL);
"""


def write_geojson(before: Assignment, after: Assignment, path: str | Path, *, crs: int | None = None) -> None:
    """Write one line per link with what ``link_columns`` tells of it, and one point per node."""
    places = require_places("write_geojson", after.network, crs)
    features = [
        {"type": "Feature", "geometry": geometry, "properties": properties}
        for name, columns in _layers(before, after).items()
        for geometry, properties in zip(_shapes(name, after.network, places), _rows(columns), strict=True)
    ]
    collection: dict[str, Any] = {"type": "FeatureCollection", "name": after.network.name, "features": features}
    if crs not in (None, _DEGREES):
        collection["crs"] = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{crs}"}}
    Path(path).write_text(json.dumps(collection, allow_nan=False) + "\n", encoding="utf-8")


def write_geopackage(before: Assignment, after: Assignment, path: str | Path, *, crs: int | None = None) -> None:
    """Write the tables ``links`` and ``nodes`` of a GeoPackage; a file of that name is replaced."""
    places = require_places("write_geopackage", after.network, crs)
    system = _UNKNOWN if crs is None else crs
    Path(path).unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(f"PRAGMA application_id = {_APPLICATION}")
        base.execute(f"PRAGMA user_version = {_VERSION}")
        base.executescript(_TABLES)
        known = {_UNKNOWN: ("undefined plane", "NONE"), 0: ("undefined degrees", "NONE"), _DEGREES: ("WGS 84", "EPSG")}
        for number, (title, owner) in ({system: (f"EPSG {system}", "EPSG")} | known).items():
            row = (title, number, owner, number, "undefined", "")
            base.execute("INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, ?)", row)
        for name, columns in _layers(before, after).items():
            shapes = [_binary(shape, system) for shape in _shapes(name, after.network, places)]
            _write_table(base, name, columns, shapes, places, system)


def link_columns(before: Assignment, after: Assignment) -> dict[str, list[Any]]:
    """Return what is told of every link, by name: ends, flows, times and tolls before and after, the difference."""
    network = after.network
    columns: dict[str, Any] = {
        "link": np.arange(network.links), "from": network.node_ids[network.tail], "to": network.node_ids[network.head],
        "toll": after.largest_toll, "flow_before": before.flow, "flow_after": after.flow,
        "flow_difference": after.flow - before.flow, "time_before": before.time, "time_after": after.time,
        "capacity": network.latency.capacity, "length": network.length, "link_type": network.link_type,
    }  # fmt: skip
    return {name: column[network.roads].tolist() for name, column in columns.items()}


def _layers(before: Assignment, after: Assignment) -> dict[str, dict[str, list[Any]]]:
    network, nodes = after.network, _on_roads(after.network)
    zone = (nodes < network.zones).astype(int)
    return {
        "links": link_columns(before, after),
        "nodes": {"node": network.node_ids[nodes].tolist(), "zone": zone.tolist()},
    }


def _on_roads(network: Network) -> Indices:
    """Return the nodes that a road begins or ends at."""
    return np.unique(np.concatenate([network.tail[network.roads], network.head[network.roads]]))


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterable[dict[str, Any]]:
    """Yield the rows of a table; numbers that JSON does not know (a capacity without end) are null."""
    for row in zip(*columns.values(), strict=True):
        cells = (None if isinstance(cell, float) and not np.isfinite(cell) else cell for cell in row)
        yield dict(zip(columns, cells, strict=True))


def require_places(where: str, network: Network, crs: int | None) -> Matrix:
    """Return the coordinates of every node, or say what is missing."""
    faults = Faults(where)
    known = network.coordinates
    found = known is not None and bool(np.isfinite(known).all())
    faults.check(found, "network.coordinates", "missing" if known is None else "some are missing",
                 "coordinates of every node", "give a node file, or draw_map, which lays them out")  # fmt: skip
    if crs is not None:
        whole(1, "an EPSG number, 4326 for degrees").note(faults, "crs", crs)
    faults.raise_if_any()
    return np.zeros((0, 2)) if known is None else known


def _shapes(name: str, network: Network, places: Matrix) -> list[dict[str, Any]]:
    if name == "nodes":
        return [{"type": "Point", "coordinates": place} for place in places[_on_roads(network)].tolist()]
    ends = np.stack([places[network.tail], places[network.head]], axis=1)[network.roads]
    return [{"type": "LineString", "coordinates": line} for line in ends.tolist()]


def _binary(shape: Mapping[str, Any], system: int) -> bytes:
    """Return a geometry as a GeoPackage keeps it: a header without an envelope, then well-known binary."""
    numbers: Vector = np.asarray(shape["coordinates"], dtype="<f8").ravel()
    head = struct.pack("<2sBBi", b"GP", 0, 1, system)
    if shape["type"] == "Point":
        return head + struct.pack("<BI", 1, _POINT) + numbers.tobytes()
    return head + struct.pack("<BII", 1, _LINE, numbers.size // 2) + numbers.tobytes()


def _write_table(base: sqlite3.Connection, name: str, columns: Mapping[str, Sequence[Any]], shapes: Sequence[bytes],
                 places: Matrix, system: int) -> None:  # fmt: skip
    kinds = {int: "INTEGER", float: "DOUBLE"}
    wanted = ", ".join(f'"{column}" {kinds[type(cells[0])]}' for column, cells in columns.items())
    base.execute(f"CREATE TABLE {name} (fid INTEGER PRIMARY KEY AUTOINCREMENT, geom BLOB, {wanted})")
    marks = ", ".join("?" * (len(columns) + 1))
    titles = ", ".join(f'"{column}"' for column in columns)
    rows = [(shape, *row.values()) for shape, row in zip(shapes, _rows(columns), strict=True)]
    base.executemany(f"INSERT INTO {name} (geom, {titles}) VALUES ({marks})", rows)
    extent = (*places.min(axis=0).tolist(), *places.max(axis=0).tolist())
    base.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, min_x, min_y, max_x, max_y, srs_id) "
        "VALUES (?, 'features', ?, ?, ?, ?, ?, ?)",
        (name, name, *extent, system),
    )
    row = (name, "geom", _KINDS[name], system, 0, 0)
    base.execute("INSERT INTO gpkg_geometry_columns VALUES (?, ?, ?, ?, ?, ?)", row)
