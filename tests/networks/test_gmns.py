"""GMNS tables: what is read, what is refused with file and line, and round trips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Network,
    generated_city,
    read_gmns,
    write_gmns,
)
from roads import road_networks

NODE = "node_id,x_coord,y_coord,zone_id\n10,0,0,1\n20,1,0,\n30,2,0,2\n"


LINK = (
    "link_id,from_node_id,to_node_id,directed,length,lanes,capacity,free_speed,vdf_fftt\n"
    "1,10,20,0,1.5,2,900,60,\n2,20,30,1,1,1,1000,,0.5\n"
)


DEMAND = "o_zone_id,d_zone_id,volume\n1,2,100\n\n2,2,7\n"


def folder(place: Path, node: str = NODE, link: str = LINK, demand: str = DEMAND) -> Path:
    for name, text in (("node", node), ("link", link), ("demand", demand)):
        (place / f"{name}.csv").write_text(text, encoding="utf-8")
    return place


def test_times_capacities_and_directions(tmp_path: Path) -> None:
    network = read_gmns(folder(tmp_path))
    assert network.node_ids.tolist() == [10, 30, 20]  # zones first
    ends = [
        (int(network.node_ids[a]), int(network.node_ids[b])) for a, b in zip(network.tail, network.head, strict=True)
    ]
    assert ends == [(10, 20), (20, 10), (20, 30)]
    assert network.latency.base.tolist() == [1.5, 1.5, 0.5]
    assert network.latency.capacity.tolist() == [1800, 1800, 1000]
    np.testing.assert_allclose(network.latency.rise, 0.15 * network.latency.base)
    assert network.demand.total == 100
    assert network.assign().flow.tolist() == [100, 0, 100]


@pytest.mark.parametrize(
    ("part", "old", "new", "expected"),
    [
        ("link", "1.5,2,900", "1.5,2,lots", "link.csv:2: capacity 'lots': expected a number"),
        ("link", "1.5,2,900", "1.5,2,-9", "link.csv:2: capacity -18: expected a number >= 0"),
        ("link", "900,60,", "900,0,", "link.csv:2: free_speed 0: expected a number > 0"),
        ("link", "1000,,0.5", "0,,0.5", "link.csv:3: capacity 0: expected a number > 0"),
        ("link", "2,20,30", "2,20,99", "link.csv:3: to_node_id 99: expected a node_id of node.csv"),
        ("link", "from_node_id", "from", "link.csv:1: column 'from_node_id' is missing"),
        ("node", "20,1,0,", "20,1,0,1", "node.csv:3: zone 1 has a second node"),
        ("node", "20,1,0,", "20,1,0,west", "node.csv:3: zone_id 'west': expected a number"),
        ("demand", "1,2,100", "1,5,100", "demand.csv:2: d_zone_id 5: expected a zone_id of node.csv"),
        ("demand", "1,2,100", "1,2,-4", "demand.csv:2: volume -4: expected a number >= 0"),
        ("demand", "1,2,100", "1,2,", "demand.csv:2: volume is empty: expected a number"),
        ("node", "10,0,0,1", ",0,0,1", "node.csv:2: node_id is empty: expected a number"),
        ("node", "10,0,0,1", "inf,0,0,1", "node.csv:2: node_id, zone_id: expected finite numbers"),
        ("node", "30,2,0,2", "30,east,0,2", "node.csv:4: x_coord 'east': expected a number"),
        ("node", "node_id", "id", "node.csv:1: column 'node_id' is missing: expected a heading with node_id"),
        ("link", "2,20,30", "2,twenty,30", "link.csv:3: from_node_id 'twenty': expected a number"),
        ("link", "2,20,30", "2,inf,30", "link.csv:3: from_node_id inf: expected a node_id of node.csv"),
        ("link", "1000,,0.5", "1000,,", "link.csv:3: free_speed is empty: expected a number"),
        ("link", "1000,,0.5", "1000,,-0.5", "link.csv:3: free_flow_time -0.5: expected a number >= 0"),
        ("link", "0,1.5,2,900", "0,-1.5,2,900", "link.csv:2: length -1.5: expected a number >= 0"),
        ("link", "to_node_id", "end", "link.csv:1: column 'to_node_id' is missing"),
        ("demand", "1,2,100", ",2,100", "demand.csv:2: o_zone_id is empty: expected a number"),
        ("demand", "1,2,100", "1,2,lots", "demand.csv:2: volume 'lots': expected a number"),
        ("demand", "volume", "trips", "demand.csv:1: column 'volume' is missing"),
        ("demand", "2,2,7", "2,9,7", "demand.csv:4: d_zone_id 9: expected a zone_id of node.csv"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, part: str, old: str, new: str, expected: str) -> None:
    texts = {"node": NODE, "link": LINK, "demand": DEMAND}
    assert old in texts[part]
    texts[part] = texts[part].replace(old, new)
    with pytest.raises(InvalidInput) as caught:
        read_gmns(folder(tmp_path, **texts))
    assert expected in str(caught.value)


@pytest.mark.parametrize("closed", [0, 5])
def test_writing_and_reading_back_keeps_the_equilibrium(tmp_path: Path, closed: int) -> None:
    city = replace(generated_city(4, 5, zones=5, seed=2), first_thru=closed)
    write_gmns(city, tmp_path)
    back = read_gmns(tmp_path)
    assert back.first_thru == closed
    order = np.lexsort((city.node_ids[city.head], city.node_ids[city.tail]))
    other = np.lexsort((back.node_ids[back.head], back.node_ids[back.tail]))
    np.testing.assert_allclose(back.assign().flow[other], city.assign().flow[order], rtol=1e-5, atol=1e-3)
    assert back.assign().objective == pytest.approx(city.assign().objective, rel=1e-9)


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path, city: Network) -> None:
    own = replace(city, latency=city.latency.with_own(lambda link, flow: flow, lambda link, flow: 1.0))
    with pytest.raises(InvalidInput, match="own functions"):
        write_gmns(own, tmp_path)
    steep = replace(city, latency=replace(city.latency, base=0 * city.latency.base))
    with pytest.raises(InvalidInput, match="free-flow time"):
        write_gmns(steep, tmp_path)


def test_a_missing_or_empty_file_is_a_plain_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"node\.csv: cannot be read .*expected a text file; check the path"):
        read_gmns(tmp_path)
    with pytest.raises(InvalidInput, match=r"node\.csv:1: column 'node_id' is missing"):
        read_gmns(folder(tmp_path, node=""))


def test_all_faults_of_a_file_come_together(tmp_path: Path) -> None:
    link = LINK.replace("1.5,2,900", "-1.5,2,many").replace("1000,,0.5", "-1000,,0.5")
    with pytest.raises(InvalidInput, match=r"(?s)link.csv: 4 faults.*:2: capacity 'many'.*:2: length.*:3: capacity"):
        read_gmns(folder(tmp_path, link=link))


def test_a_byte_order_mark_and_short_rows_are_read(tmp_path: Path) -> None:
    network = read_gmns(folder(tmp_path, node="\ufeffNode_ID , X_coord,y_coord,zone_id\n10,0,0,1\n20\n30,2,0,2\n"))
    assert network.coordinates is not None
    assert np.isnan(network.coordinates[2]).all()


def test_without_zones_nodes_are_zones(tmp_path: Path) -> None:
    network = read_gmns(folder(tmp_path, node="node_id\n10\n20\n30\n", demand="o_zone_id,d_zone_id,volume\n10,30,5\n"))
    assert network.node_ids.tolist() == [10, 30, 20]
    assert network.demand.total == 5


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(road_networks(), st.integers(0, 2), st.booleans())
def test_every_network_comes_back(tmp_path: Path, network: Network, closed: int, drawn: bool) -> None:
    places = np.linspace(-1.0, 1.0, 2 * network.nodes).reshape(-1, 2) if drawn else None
    names = np.arange(network.nodes) * 3 + 11
    whole = replace(network, first_thru=closed, node_ids=names, coordinates=places, toll=network.length / 3.0)
    write_gmns(whole, tmp_path)
    back = read_gmns(tmp_path)
    assert back.first_thru == closed
    assert set(back.node_ids.tolist()) == set(names.tolist())
    for name in ("tail", "head"):
        ours, theirs = (each.node_ids[getattr(each, name)] for each in (whole, back))
        np.testing.assert_array_equal(ours, theirs)
    for name in ("length", "toll"):
        np.testing.assert_array_equal(getattr(back, name), getattr(whole, name))
    for name in ("base", "capacity", "power"):
        np.testing.assert_array_equal(getattr(back.latency, name), getattr(whole.latency, name))
    np.testing.assert_allclose(back.latency.rise, whole.latency.rise, rtol=1e-15)
    trips = [
        sorted(zip(each.node_ids[d.origin], each.node_ids[d.destination], d.trips, strict=True))
        for each, d in ((whole, whole.demand), (back, back.demand))
    ]
    assert trips[0] == trips[1]
    if places is not None:
        order = np.argsort(back.node_ids)
        np.testing.assert_array_equal(back.coordinates[order], places)
