"""GeoJSON and GeoPackage: what is written is what the network and its equilibria say."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import Assignment, Network, write_geojson, write_geopackage


@pytest.fixture(scope="module")
def states(city: Network) -> tuple[Assignment, Assignment]:
    """Return the city before and after a toll on one link."""
    return city.assign(), city.assign(city.tolls_on(np.array([7]), 2.0))


def test_geojson_has_every_link_and_node(states, tmp_path: Path) -> None:
    before, after = states
    write_geojson(before, after, tmp_path / "city.geojson")
    found = json.loads((tmp_path / "city.geojson").read_text())
    assert found["type"] == "FeatureCollection"
    assert "crs" not in found
    lines = [each for each in found["features"] if each["geometry"]["type"] == "LineString"]
    points = [each for each in found["features"] if each["geometry"]["type"] == "Point"]
    network = after.network
    assert (len(lines), len(points)) == (network.links, network.nodes)
    link = lines[7]["properties"]
    assert (link["from"], link["to"], link["toll"]) == (
        network.node_ids[network.tail[7]],
        network.node_ids[network.head[7]],
        2.0,
    )
    assert link["flow_difference"] == link["flow_after"] - link["flow_before"] == after.flow[7] - before.flow[7]
    assert lines[7]["geometry"]["coordinates"][1] == network.coordinates[network.head[7]].tolist()
    write_geojson(before, after, tmp_path / "city.geojson", crs=25832)
    assert "EPSG::25832" in (tmp_path / "city.geojson").read_text()


def test_a_geopackage_is_a_database_of_links_and_nodes(states, tmp_path: Path) -> None:
    before, after = states
    path = tmp_path / "city.gpkg"
    for _ in range(2):  # the second replaces the first
        write_geopackage(before, after, path, crs=25832)
    network = after.network
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA application_id").fetchone() == (0x47504B47,)
        assert base.execute("SELECT COUNT(*) FROM nodes").fetchone() == (network.nodes,)
        rows = base.execute('SELECT geom, "from", toll, flow_after FROM links ORDER BY link').fetchall()
        tables = dict(base.execute("SELECT table_name, geometry_type_name FROM gpkg_geometry_columns").fetchall())
        systems = {number for (number,) in base.execute("SELECT srs_id FROM gpkg_spatial_ref_sys").fetchall()}
    assert tables == {"links": "LINESTRING", "nodes": "POINT"}
    assert systems == {-1, 0, 4326, 25832}
    blob, start, toll, flow = rows[7]
    assert (start, toll, flow) == (network.node_ids[network.tail[7]], 2.0, after.flow[7])
    assert struct.unpack("<2sBBi", blob[:8]) == (b"GP", 0, 1, 25832)
    assert struct.unpack("<BII", blob[8:17]) == (1, 2, 2)
    ends = np.frombuffer(blob[17:]).reshape(2, 2)
    np.testing.assert_array_equal(ends, network.coordinates[[network.tail[7], network.head[7]]])


def test_what_is_not_known_is_null_and_places_are_needed(states, tmp_path: Path) -> None:
    before, after = states
    for write in (write_geojson, write_geopackage):
        lost = replace(after, network=replace(after.network, coordinates=None))
        with pytest.raises(InvalidInput, match=r"(?s)2 faults.*coordinates of every node.*EPSG"):
            write(before, lost, tmp_path / "x", crs=0)
    assert not (tmp_path / "x").exists()
    endless = replace(after.network.latency, capacity=np.full(after.network.links, np.inf))
    write_geojson(before, replace(after, network=replace(after.network, latency=endless)), tmp_path / "x")
    assert '"capacity": null' in (tmp_path / "x").read_text()
