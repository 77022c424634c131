"""The TNTP files with their quirks, and errors that name file and line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    Network,
    read_tntp,
    read_tntp_flow,
    read_tntp_nodes,
    write_tntp,
    write_tntp_flow,
)
from roads import road_networks

NET = """<NUMBER OF ZONES> 2\t
<NUMBER OF NODES> 4
<FIRST THRU NODE> 3
<NUMBER OF LINKS> 5
<ORIGINAL HEADER>~ Init node Term node ;
<END OF METADATA>


~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;
\t1\t3\t10\t2\t0\t0.15\t4\t0\t0\t3\t;
\t3\t4\t10\t5\t1.5\t0.15\t4\t0\t7\t1\t;
\t3\t4\t1\t5\t2.0\t1.3E-10\t3.5038\t0\t0\t1;
\t4\t2\t1\t1\t0.01\t0.000E+00\t0\t0\t0\t1\t;
\t4\t3\t10\t5\t1.5e-005\t0\t4\t0\t0\t1\t;
"""
TRIPS = """<NUMBER OF ZONES> 2
<TOTAL OD FLOW> 9.0
<END OF METADATA>

~ a remark
Origin 	1
    1 :    4.0;    2 :   9.0;
origin 2
"""


def written(folder: Path, net: str = NET, trips: str = TRIPS, node: str | None = None) -> tuple[Path, Path]:
    """Write the files and return the paths of net and trips."""
    paths = folder / "Small_net.tntp", folder / "Small_trips.tntp"
    paths[0].write_text(net, encoding="utf-8")
    paths[1].write_text(trips, encoding="utf-8")
    if node is not None:
        (folder / "Small_node.tntp").write_text(node, encoding="utf-8")
    return paths


def message(folder: Path, net: str = NET, trips: str = TRIPS, node: str | None = None) -> str:
    """Return what reading these files complains about."""
    with pytest.raises(InvalidInput) as caught:
        read_tntp(*written(folder, net, trips, node))
    return str(caught.value)


def test_every_quirk_is_read(tmp_path: Path) -> None:
    network = read_tntp(*written(tmp_path))
    assert (network.name, network.nodes, network.zones, network.first_thru, network.links) == ("Small", 4, 2, 2, 5)
    assert network.coordinates is None
    np.testing.assert_array_equal(network.latency.base, [0, 1.5, 2.0, 0.01, 1.5e-5])
    assert network.latency.rise[2] == 2.0 * 1.3e-10
    assert network.latency.rise[0] == network.latency.rise[3] == network.latency.rise[4] == 0
    assert network.demand.trips.tolist() == [9.0]  # trips from a zone to itself stay at home
    assert network.link_type.tolist() == [3, 1, 1, 1, 1]
    assert network.assign(gap=1e-12).flow[[0, 3, 4]].tolist() == [9, 9, 0]


def test_generalised_cost_weighs_toll_and_length(tmp_path: Path) -> None:
    net, trips = written(tmp_path, NET.replace("<END OF", "<TOLL FACTOR> 0.5\n<DISTANCE FACTOR> 0.1\n<END OF"))
    network = read_tntp(net, trips)
    assert (network.toll_factor, network.distance_factor) == (0.5, 0.1)
    assert network.assign().cost[0, 1] == pytest.approx(network.assign().time[1] + 0.5 * 7 + 0.1 * 5)
    assert read_tntp(net, trips, toll_factor=0.0).toll_factor == 0.0


def test_headings_without_a_tilde_and_trips_beside_their_origin(tmp_path: Path) -> None:
    net = NET.replace("~\tinit_node", "\tinit_node")
    network = read_tntp(*written(tmp_path, net, "Origin 1 2 : 5.5; 1 : 0;\nOrigin 2: 1:2;"))
    assert network.demand.matrix(2).tolist() == [[0, 5.5], [2, 0]]


def test_a_node_file_beside_the_network_is_found(tmp_path: Path) -> None:
    paths = written(tmp_path, node="Node X Y ;\n1 0.5 1 ;\n3, 2, 3\n99 7 7\n")
    places = read_tntp(*paths).coordinates
    assert places is not None
    np.testing.assert_array_equal(places[[0, 2]], [[0.5, 1], [2, 3]])
    assert np.isnan(places[[1, 3]]).all()
    with pytest.raises(InvalidInput, match=r"Small_node.tntp:4: node 99: expected a number from 1 to 4"):
        read_tntp_nodes(tmp_path / "Small_node.tntp", 4)
    with pytest.raises(InvalidInput, match="node 99"):
        read_tntp(*paths, tmp_path / "Small_node.tntp")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("\t1\t3\t10\t2", "\t1\t9\t10\t2", r"Small_net.tntp:10: term node 9: expected a node number from 1 to 4"),
        ("\t3\t4\t10\t5", "\t3\t4\tmany\t5", r"Small_net.tntp:11: capacity 'many': expected a number"),
        ("\t3\t4\t10\t5", "\t3\t4\t0\t5", r"Small_net.tntp:11: capacity 0: expected a number > 0"),
        ("\t1.5\t0.15\t4\t0\t7", "\t-1\t0.15\t4\t0\t7", r"Small_net.tntp:11: free-flow time -1: expected"),
        ("\t1.5\t0.15\t4\t0\t7", "\tnan\t0.15\t4\t0\t7", r"Small_net.tntp:11: free-flow time nan: expected"),
        ("\t4\t2\t1\t1\t0.01\t0.000E+00\t0\t0\t0\t1\t;", "\t4\t2\t1;", r"Small_net.tntp:13: 3 columns: expected"),
        ("LINKS> 5", "LINKS> 6", r"Small_net.tntp:4: <NUMBER OF LINKS> 6, but 5 links follow"),
        ("NODES> 4", "NODES> four", r"Small_net.tntp:2: <NUMBER OF NODES> 'four': expected a number"),
        ("NODES> 4", "NODES> 4.5", r"Small_net.tntp:2: <NUMBER OF NODES> '4.5': expected a number"),
        ("ZONES> 2", "ZONES> 7", r"Small_net.tntp:1: <NUMBER OF ZONES> 7: expected 1 to 4"),
        ("<NUMBER OF ZONES> 2\t\n", "", r"<NUMBER OF ZONES> is missing"),
    ],
)
def test_faults_of_a_network_name_the_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in NET
    found = message(tmp_path, NET.replace(old, new, 1))
    assert re.search(expected, found), found


@pytest.mark.parametrize(
    ("trips", "expected"),
    [
        ("Origin 1\n 2 : many;", "Small_trips.tntp:2: trips 'many' to zone 2: expected a finite number >= 0"),
        ("Origin 1\n 2 : -3;", "Small_trips.tntp:2: trips '-3' to zone 2"),
        ("Origin 1\n 8 : 3;", "Small_trips.tntp:2: zone '8': expected a number from 1 to 2"),
        ("Origin 9\n 2 : 3;", "Small_trips.tntp:1: zone '9': expected a number from 1 to 2"),
        (" 2 : 3;", "Small_trips.tntp:1: trips before the first 'Origin' line"),
        ("Origin 1\n 2 : 3; nonsense", "Small_trips.tntp:2: '2 : 3; nonsense': expected 'Origin n' or"),
        ("<END OF METADATA>\n", "no trips found"),
    ],
)
def test_faults_of_trips_name_the_line(tmp_path: Path, trips: str, expected: str) -> None:
    assert expected in message(tmp_path, trips=trips)


def test_all_faults_of_a_file_are_told_together_and_cut_off(tmp_path: Path) -> None:
    found = message(tmp_path, trips="Origin 1\n" + " 7 : 1;\n" * 30)
    assert "30 faults" in found
    assert "and 10 more faults" in found


def test_a_missing_file_and_a_short_one_are_plain_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nothing.tntp: cannot be read"):
        read_tntp(tmp_path / "nothing.tntp", tmp_path / "nothing.tntp")
    net, trips = written(tmp_path, NET.replace("LINKS> 5", "LINKS> 50"))
    assert read_tntp(net, trips, strict=False).links == 5
    uncounted, trips = written(tmp_path, NET.replace("<NUMBER OF LINKS> 5\n", ""))
    assert read_tntp(uncounted, trips).links == 5


def test_writing_and_reading_back_changes_nothing(tmp_path: Path, city: Network) -> None:
    net, trips, node, flow = (tmp_path / f"c_{kind}.tntp" for kind in ("net", "trips", "node", "flow"))
    write_tntp(city, net, trips, node)
    back = read_tntp(net, trips)
    for name in ("base", "rise", "capacity", "power"):
        np.testing.assert_allclose(getattr(back.latency, name), getattr(city.latency, name), rtol=1e-15)
    for name in ("tail", "head", "length", "toll", "coordinates", "link_type"):
        np.testing.assert_array_equal(getattr(back, name), getattr(city, name))
    assert (back.zones, back.first_thru, back.nodes) == (city.zones, city.first_thru, city.nodes)
    np.testing.assert_array_equal(back.demand.trips, city.demand.trips)
    answer = back.assign()
    write_tntp_flow(answer, flow)
    volume, cost = read_tntp_flow(flow, city)
    np.testing.assert_array_equal(volume, answer.flow)
    np.testing.assert_array_equal(cost, answer.cost[0])


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path, city: Network) -> None:
    paths = tmp_path / "net", tmp_path / "trips"
    with pytest.raises(InvalidInput, match="one class"):
        write_tntp(city.with_classes([1.0, 2.0]), *paths)
    steep = Network.from_arrays([0], [1], Latency.affine([0.0], [1.0]), Demand.from_list([0], [1], [1.0]))
    with pytest.raises(InvalidInput, match="free-flow time"):
        write_tntp(steep, *paths)
    with pytest.raises(InvalidInput, match="coordinates"):
        write_tntp(steep, *paths, tmp_path / "node")


def test_flow_files_must_fit_the_network(tmp_path: Path) -> None:
    network = read_tntp(*written(tmp_path))
    good = "From To Volume Cost\n1 3 9 0\n3 4 5 1\n3 4 4 2\n4 2 9 0.01\n4 3 0 0\n"
    path = tmp_path / "flow"
    path.write_text(good, encoding="utf-8")
    assert read_tntp_flow(path, network)[0].tolist() == [9, 5, 4, 9, 0]  # parallel links in their order
    for text, expected in (
        (good.replace("4 3 0 0\n", ""), "link 4 -> 3 is missing"),
        (good + "1 2 3 4\n", "flow:7: link 1 -> 2: expected a link of the network"),
        (good.replace("9 0.01", "x y"), "flow:5: "),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput, match=expected):
            read_tntp_flow(path, network)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("NODES> 4", "NODES> inf", "Small_net.tntp:2: <NUMBER OF NODES> 'inf': expected a number"),
        ("NODES> 4", "NODES>", "Small_net.tntp:2: <NUMBER OF NODES> '': expected a number"),
        ("<NUMBER OF NODES> 4\n", "", "<NUMBER OF NODES> is missing: expected a metadata line"),
        ("LINKS> 5", "LINKS> few", "Small_net.tntp:4: <NUMBER OF LINKS> 'few': expected a number"),
        ("<END OF", "<TOLL FACTOR> dear\n<END OF", "Small_net.tntp:6: <TOLL FACTOR> 'dear': expected a number"),
        ("\t1\t3\t10\t2", "\t1.5\t3\t10\t2", "Small_net.tntp:10: init node 1.5: expected a node number from 1 to 4"),
        ("\t1\t3\t10\t2", "\tinf\t3\t10\t2", "Small_net.tntp:10: init node inf: expected a node number"),
        ("\t1\t3\t10\t2", "\tnan\t3\t10\t2", "Small_net.tntp:10: init node nan: expected a node number"),
        ("\t1\t3\t10\t2", "\t1\t3\t10\t-2", "Small_net.tntp:10: length -2: expected a finite number >= 0"),
        ("1.3E-10\t3.5038", "-1\t3.5038", "Small_net.tntp:12: b -1: expected a finite number >= 0"),
        ("1.3E-10\t3.5038", "1\tinf", "Small_net.tntp:12: power inf: expected a finite number >= 0"),
    ],
)
def test_more_faults_of_a_network(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in NET
    assert expected in message(tmp_path, NET.replace(old, new, 1))


def test_a_network_without_links_says_so(tmp_path: Path) -> None:
    header = NET[: NET.index("\t1\t3")].replace("LINKS> 5", "LINKS> 0")
    assert "no link found: expected one row per link after <END OF METADATA>" in message(tmp_path, header)


def test_the_line_numbers_of_several_faults(tmp_path: Path) -> None:
    found = message(tmp_path, NET.replace("\t10\t5\t1.5\t", "\tx\t5\t1.5\t").replace("\t4\t2\t1\t1", "\t4\t8\t1\t1"))
    assert "2 faults" in found
    assert found.index("Small_net.tntp:11: capacity 'x'") < found.index("Small_net.tntp:13: term node 8")


def test_node_and_flow_files_with_faults_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "n_node.tntp"
    path.write_text("node x y\n1 0 0;\n2 zero 0;\n3 1;\nnan 0 0\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_tntp_nodes(path, 4)
    for expected in (
        "n_node.tntp:3: '2 zero 0;': expected node, x, y",
        "n_node.tntp:4: '3 1;'",
        "n_node.tntp:5: node nan",
    ):
        assert expected in str(caught.value)
    network = read_tntp(*written(tmp_path))
    path.write_text("from to volume cost\n1 3 9 0\n1 3 9 0\n1.5 3 1 1\n4 2\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_tntp_flow(path, network)
    for expected in (
        "n_node.tntp:3: link 1 -> 3: expected a link of the network, once",
        "n_node.tntp:4: link 1.5 -> 3: expected a link of the network",
        "n_node.tntp:5: '4 2': expected from, to, volume, cost",
        "link 4 -> 2 is missing: expected every link of the network",
    ):
        assert expected in str(caught.value)


def test_a_flow_file_may_leave_out_the_costs(tmp_path: Path) -> None:
    network = read_tntp(*written(tmp_path))
    path = tmp_path / "flow"
    path.write_text("1 3 9\n3 4 5;\n3 : 4 : 4\n4 2 9\n4 3 0\n", encoding="utf-8")
    volume, cost = read_tntp_flow(path, network)
    assert volume.tolist() == [9, 5, 4, 9, 0]
    assert np.isnan(cost).all()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(road_networks(), st.integers(0, 2), st.floats(0.0, 2.0), st.floats(0.0, 2.0), st.booleans())
def test_every_network_of_one_class_comes_back(
    tmp_path: Path, network: Network, first_thru: int, toll_factor: float, distance_factor: float, drawn: bool
) -> None:
    places = np.linspace(-1.0, 1.0, 2 * network.nodes).reshape(-1, 2) if drawn else None
    whole = replace(
        network, first_thru=first_thru, toll_factor=toll_factor, distance_factor=distance_factor, coordinates=places,
        toll=network.length / 3.0, link_type=np.arange(network.links),
    )  # fmt: skip
    net, trips, node = (tmp_path / f"w_{kind}.tntp" for kind in ("net", "trips", "node"))
    node.unlink(missing_ok=True)
    write_tntp(whole, net, trips, node if drawn else None)
    back = read_tntp(net, trips)
    for name in ("nodes", "zones", "first_thru", "toll_factor", "distance_factor"):
        assert getattr(back, name) == getattr(whole, name)
    for name in ("tail", "head", "length", "toll", "link_type"):
        np.testing.assert_array_equal(getattr(back, name), getattr(whole, name))
    for name in ("base", "capacity", "power"):
        np.testing.assert_array_equal(getattr(back.latency, name), getattr(whole.latency, name))
    np.testing.assert_allclose(back.latency.rise, whole.latency.rise, rtol=1e-15)
    np.testing.assert_array_equal(back.demand.matrix(back.nodes), whole.demand.matrix(back.nodes))
    assert (back.coordinates is None) is not drawn
    if drawn:
        np.testing.assert_array_equal(back.coordinates, places)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(road_networks())
def test_every_flow_comes_back_to_the_last_bit(tmp_path: Path, network: Network) -> None:
    net, trips, flow = (tmp_path / f"f_{kind}.tntp" for kind in ("net", "trips", "flow"))
    write_tntp(network, net, trips)
    back = read_tntp(net, trips)
    answer = back.assign()
    write_tntp_flow(answer, flow)
    volume, cost = read_tntp_flow(flow, back)
    np.testing.assert_array_equal(volume, answer.flow)
    np.testing.assert_array_equal(cost, answer.cost[0])


def test_own_latencies_do_not_fit_the_format(tmp_path: Path, city: Network) -> None:
    own = replace(city, latency=city.latency.with_own(lambda link, flow: flow, lambda link, flow: 1.0))
    with pytest.raises(InvalidInput, match="expected BPR or affine latencies; TNTP knows no others"):
        write_tntp(own, tmp_path / "net", tmp_path / "trips")


# ---- other numbers, other columns, declared totals -------------------------------------------------------------------

NAMED = """<NUMBER OF ZONES> 3
<NUMBER OF NODES> 3
<NUMBER OF LINKS> 3
<END OF METADATA>
\t700\t90\t10\t1\t2\t0.15\t4\t0\t0\t1\t;
\t90\t1000001\t10\t1\t3\t0.15\t4\t0\t0\t1\t;
\t1000001\t700\t10\t0\tinf\t0.15\t4\t0\t0\t1\t;
"""
NAMED_TRIPS = "<TOTAL OD FLOW> 5\n<END OF METADATA>\nOrigin 700\n 1000001 : 5.0;\n"


def test_nodes_may_have_numbers_of_their_own(tmp_path: Path) -> None:
    network = read_tntp(*written(tmp_path, NAMED, NAMED_TRIPS, "Node X Y\n90 1 2 ;\n700 3 4;\n"))
    assert network.node_ids.tolist() == [700, 1000001, 90]  # zones come first
    assert (network.zones, network.first_thru) == (2, 0)
    assert network.link_number((90, 1000001)) == 1
    assert network.latency.base.tolist() == [2, 3, 0]  # a connector of length 0 takes no time
    assert network.assign().flow.tolist() == [5, 5, 0]
    np.testing.assert_array_equal(network.coordinates, [[3, 4], [np.nan, np.nan], [1, 2]])
    closed = read_tntp(*written(tmp_path, NAMED.replace("<END", "<FIRST THRU NODE> 100\n<END"), NAMED_TRIPS))
    assert (closed.node_ids[0], closed.first_thru) == (90, 1)
    assert "zone '2': expected a node of the network" in message(tmp_path, NAMED, NAMED_TRIPS.replace("700", "2"))
    # a cell that tabs leave empty does not shift the others
    network = read_tntp(*written(tmp_path, NAMED.replace("inf", ""), NAMED_TRIPS))
    assert network.latency.base.tolist() == [2, 3, 0]
    assert "free-flow time inf" in message(tmp_path, NAMED.replace("\t3\t0.15", "\t\t0.15"), NAMED_TRIPS)


def test_flows_are_written_by_the_names_of_the_nodes(tmp_path: Path) -> None:
    state = read_tntp(*written(tmp_path, NAMED, NAMED_TRIPS)).assign()
    write_tntp_flow(state, tmp_path / "flow.tntp")
    assert "700\t90\t5.0" in (tmp_path / "flow.tntp").read_text()
    np.testing.assert_array_equal(read_tntp_flow(tmp_path / "flow.tntp", state.network)[0], state.flow)


def test_other_columns_are_named_by_the_user(tmp_path: Path) -> None:
    rows = ["1 2 7.5 900 k 2.5 3", "2 1 7.5 800 k 2.5 3"]
    tags = ["<NUMBER OF ZONES> 2", "<NUMBER OF NODES> 2", "<NUMBER OF LINKS> 2", "<END OF METADATA>"]
    paths = written(tmp_path, "\n".join([*tags, *rows]) + "\n", TRIPS)
    network = read_tntp(
        *paths, columns=["init_node", "term_node", "Length", "capacity", "-", "free_flow_time", "lanes"]
    )
    assert network.latency.capacity.tolist() == [900, 800]
    assert network.latency.b.tolist() == [0.15, 0.15]
    assert network.length.tolist() == [7.5, 7.5]
    assert read_tntp(*paths, columns=["to", "from", "-", "capacity", "-", "fftt"]).head.tolist() == [0, 1]
    # a heading that says so is not overlooked
    net = paths[0].read_text()
    for heading in (
        "~\tInit node\tTerm node\tLength\tCapacity\tSpeed\tFree Flow Time\t;",
        "~ link_id from to capacity",
    ):
        paths[0].write_text(net.replace("<END OF METADATA>", f"<END OF METADATA>\n{heading}"))
        with pytest.raises(InvalidInput, match=r"a heading of .*; name the columns in the order of the file"):
            read_tntp(*paths)
    with pytest.raises(InvalidInput, match="capacity is missing"):
        read_tntp(*paths, columns=["init node", "term node", "free-flow time"])
    with pytest.raises(InvalidInput, match="each name once"):
        read_tntp(*paths, columns=["from", "to", "capacity", "capacity", "fftt"])
    with pytest.raises(InvalidInput, match="7 columns: expected"):
        read_tntp(*paths, columns=["from", "to", "capacity", "fftt", *"-----"])


def test_a_trips_file_cut_short_is_refused(tmp_path: Path) -> None:
    trips = TRIPS.replace("9.0\n<END", "13.0\n<END")  # with those from a zone to itself
    assert read_tntp(*written(tmp_path, NET, trips)).demand.total == 9.0
    short = TRIPS.replace("2 :   9.0", "2 :   4.0")
    told = message(tmp_path, NET, short)
    assert "Small_trips.tntp:2: <TOTAL OD FLOW> 9, but the trips that follow add up to 8" in told
    assert "cut short" in told
    assert read_tntp(*written(tmp_path, NET, short), strict=False).demand.total == 4.0


def test_munich_is_read(tntp) -> None:
    folder = tntp("SiouxFalls", "net").parents[1] / "Munich"
    if not folder.is_dir():
        pytest.skip("no Munich among the public networks here")
    network = read_tntp(folder / "munich_net.tntp", folder / "munich_trips.tntp")
    assert (network.nodes, network.links) == (742, 1872)
    assert network.node_ids.min() == 73469
