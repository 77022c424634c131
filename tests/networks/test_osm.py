"""OpenStreetMap extracts: roads with lengths, times and capacities; trips between nodes or places."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pzos.base.errors import InvalidInput, MissingExtra
from pzos.cli.main import main
from pzos.networks import read_osm

EXTRACT = """<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6" generator="by hand">
 <node id="101" lat="48.000" lon="11.000"/><node id="102" lat="48.000" lon="11.010"/>
 <node id="103" lat="48.008" lon="11.010"/><node id="104" lat="48.008" lon="11.000"/>
 <node id="105" lat="48.000" lon="11.005"/>
 <way id="1"><nd ref="101"/><nd ref="105"/><nd ref="102"/>
  <tag k="highway" v="primary"/><tag k="lanes" v="4"/><tag k="maxspeed" v="50"/></way>
 <way id="2"><nd ref="102"/><nd ref="103"/><tag k="highway" v="residential"/></way>
 <way id="3"><nd ref="103"/><nd ref="104"/>
  <tag k="highway" v="secondary"/><tag k="oneway" v="yes"/><tag k="lanes" v="2"/><tag k="maxspeed" v="60"/></way>
 <way id="4"><nd ref="104"/><nd ref="101"/><tag k="highway" v="secondary"/></way>
</osm>
"""
TRIPS = {"origin": [101, 103], "destination": [102, 101], "trips": [500.0, 300.0]}


@pytest.fixture
def extract(tmp_path: Path) -> Path:
    """Write a small extract; skip where it cannot be read."""
    pytest.importorskip("osmnx", reason="extra osm is not installed")
    path = tmp_path / "small.osm"
    path.write_text(EXTRACT, encoding="utf-8")
    return path


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "osmnx", None)
    with pytest.raises(MissingExtra, match=r"pzos\[osm\]"):
        read_osm(tmp_path / "small.osm", TRIPS)


def test_roads_have_lengths_times_and_capacities(extract: Path) -> None:
    network = read_osm(extract, TRIPS)
    assert 105 not in network.node_ids  # no crossing, and no trip ends there
    primary, one_way = network.link_number((101, 102)), network.link_number((103, 104))
    assert network.length[primary] == pytest.approx(0.744, rel=1e-2)
    assert network.latency.base[primary] == pytest.approx(60 * network.length[primary] / 50)
    assert network.latency.capacity[[primary, one_way]].tolist() == [2400.0, 1800.0]
    with pytest.raises(InvalidInput, match="exactly one link"):
        network.link_number((104, 103))
    assert network.demand.total == 800.0
    assert network.assign().converged


def test_places_find_their_nodes(extract: Path) -> None:
    trips = {"origin": [1], "destination": [2], "trips": [100.0]}
    network = read_osm(extract, trips, places={1: (11.0001, 48.0001), 2: (11.0051, 48.0)})
    assert sorted(network.node_ids[: network.zones].tolist()) == [101, 105]
    with pytest.raises(InvalidInput, match="node 7 of the trips"):
        read_osm(extract, {"origin": [7], "destination": [101], "trips": [1.0]})
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_osm(extract.with_name("none.osm"), trips)


def test_only_roads_for_cars_are_taken(extract: Path) -> None:
    others = """<node id="106" lat="48.004" lon="11.005"/>
 <way id="5"><nd ref="101"/><nd ref="106"/><nd ref="103"/><tag k="highway" v="footway"/></way>
 <way id="6"><nd ref="101"/><nd ref="102"/><nd ref="103"/><nd ref="101"/><tag k="building" v="yes"/></way>
 <way id="7"><nd ref="105"/><nd ref="106"/><tag k="waterway" v="river"/></way>
 <way id="8"><nd ref="103"/><nd ref="101"/><tag k="highway" v="residential"/><tag k="access" v="private"/></way>
</osm>"""
    alone = read_osm(extract, TRIPS)
    extract.write_text(EXTRACT.replace("</osm>", others), encoding="utf-8")
    among = read_osm(extract, TRIPS)
    assert among.node_ids.tolist() == alone.node_ids.tolist()
    assert among.latency.base.tolist() == alone.latency.base.tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (EXTRACT[:700], "cannot be read .*unclosed token.*expected an OpenStreetMap extract"),
        ("origin,destination,trips\n", "cannot be read"),
        ('<?xml version="1.0"?><osm version="0.6"></osm>', "cannot be read"),
        (EXTRACT.replace('k="highway"', 'k="waterway"'), "no road for cars"),
    ],
    ids=["cut", "no XML", "empty", "a map of rivers"],
)
def test_a_file_without_roads_is_one_clear_error(extract: Path, text: str, said: str) -> None:
    extract.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=said):
        read_osm(extract, TRIPS)


def test_tolls_of_an_extract_from_the_command_line(extract: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "od.csv").write_text("origin,destination,trips\n101,102,3000\n103,101,300\n")
    words = ["tolls", "--osm", str(extract), "--links", "101-102", "--queries", "20", "--out", str(tmp_path / "out")]
    assert main([*words, "--od", str(tmp_path / "od.csv"), "--geo", "geojson", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["links"][0]["from"] == 101
    assert (tmp_path / "out" / "tolls.geojson").exists()
    assert main(words) == 2
    assert "--od is missing" in capsys.readouterr().err
