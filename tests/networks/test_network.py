"""Networks from arrays: small laws and clear errors."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    Network,
)
from roads import braess


def test_networks_from_arrays_tell_all_faults_at_once() -> None:
    demand = Demand.from_list([0], [5], [1.0])
    with pytest.raises(InvalidInput, match=r"(?s)faults.*head.*latency.*tail, head.*zones.*first_thru.*demand"):
        Network.from_arrays([0, 9], [1], Latency.affine([1.0], [0.0]), demand, nodes=3, zones=7, first_thru=9)
    one = Network.from_arrays([0], [1], Latency.affine([1.0], [0.0]), [[0, 3], [0, 0]])
    assert repr(one) == "Network 'network': 2 nodes, 1 links, 2 zones, 1 pairs, 1 class"
    with pytest.raises(InvalidInput, match="add up to 1"):
        one.with_classes([1.0, 2.0], [0.5, 0.6])
    with pytest.raises(InvalidInput, match="at least one number"):
        one.with_classes([])
    with pytest.raises(InvalidInput, match="link number"):
        one.link_number(1)
    assert one.link_number((0, 1)) == 0


def test_a_network_of_free_roads_has_no_gap() -> None:
    free = Network.from_arrays([0, 1, 0], [1, 2, 2], Latency.affine([0.0] * 3, 0.0), Demand.from_list([0], [2], [5.0]))
    answer = free.assign()
    assert answer.gap == 0.0
    assert answer.total_travel_time == 0.0
    assert answer.flow.sum() >= 5.0


def test_loops_and_parallel_links_are_no_trouble() -> None:
    latency = Latency.affine([1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0])
    network = Network.from_arrays([0, 0, 0, 0], [1, 0, 1, 1], latency, Demand.from_list([0], [1], [6.0]))
    np.testing.assert_allclose(network.assign().flow, [2, 0, 2, 2], rtol=1e-9)


def test_trips_without_a_way_are_named() -> None:
    network = Network.from_arrays([0], [1], Latency.affine([1.0], [0.0]), Demand.from_list([0, 1], [1, 0], [1.0, 2.0]))
    with pytest.raises(InvalidInput, match=r"1 -> 0"):
        network.assign()


def test_what_is_left_out_is_counted_from_the_data() -> None:
    network = Network.from_arrays([0, 4], [4, 2], Latency.affine([1.0, 1.0], 0.0), Demand.from_list([0], [2], [1.0]))
    assert (network.nodes, network.zones, network.first_thru) == (5, 3, 0)
    assert network.node_ids.tolist() == [0, 1, 2, 3, 4]
    assert network.links == 2
    assert network.worth.tolist() == [[1.0]]
    scalar = Network.from_arrays(
        [0], [1], Latency.affine([1.0], 0.0), [[0, 1.0], [0, 0]], length=3.0, toll=[2.0], link_type=4
    )
    assert (scalar.length.tolist(), scalar.toll.tolist(), scalar.link_type.tolist()) == ([3.0], [2.0], [4])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"length": [1.0]}, "length = 1: expected 5 entries, one per link, as tail has; check the arrays"),
        ({"toll": np.nan}, "length, toll = 'not finite': expected finite numbers; check the arrays"),
        ({"toll_factor": -1.0}, "toll_factor = -1.0: expected a finite number >= 0; 0.0 ignores it"),
        ({"distance_factor": np.inf}, "distance_factor = inf: expected a finite number >= 0"),
        ({"node_ids": [1, 2]}, "node_ids = array([1, 2]): expected 4 names; one per node"),
        ({"coordinates": [[0.0, 0.0]]}, "coordinates = (1, 2): expected (4, 2); one (x, y) per node"),
        ({"first_thru": 5}, "first_thru = 5: expected a number from 0 to 4; 0 lets traffic pass through every node"),
        ({"zones": 0}, "zones = 0: expected a number from 1 to 4"),
        ({"nodes": 3}, "tail, head = 3: expected node numbers from 0 to 2; count from 0"),
    ],
)
def test_every_fault_of_a_network_has_its_words(change: dict[str, object], expected: str) -> None:
    good = braess()
    with pytest.raises(InvalidInput) as caught:
        Network.from_arrays(good.tail, good.head, good.latency, good.demand, **change)
    assert expected in str(caught.value)


def test_a_network_needs_links_and_trips() -> None:
    none = Demand.from_list([], [], [])
    with pytest.raises(InvalidInput, match=r"demand of class 'all' = 0: expected at least one trip; add trips"):
        Network.from_arrays([0], [1], Latency.affine([1.0], 0.0), none)


def test_links_are_found_by_number_or_by_their_ends() -> None:
    network = Network.from_arrays(
        [0, 0, 1], [1, 1, 0], Latency.affine([1.0] * 3, 0.0), Demand.from_list([0], [1], [1.0]), node_ids=[7, 9]
    )
    assert network.link_number((9, 7)) == 2
    assert network.link_number(np.int64(1)) == 1
    for bad, expected in (
        ((7, 9), "2 links join these nodes; give the link's number"),
        ((7, 7), "0 links join these nodes"),
        (3, "a link number from 0 to 2 or a pair of nodes"),
        (-1, "a link number from 0 to 2"),
        (True, "a link number from 0 to 2"),
        (1.0, "a link number from 0 to 2"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(expected)):
            network.link_number(bad)


def test_classes_share_the_demand() -> None:
    two = braess(10.0).with_classes([1.0, 2.0], [0.25, 0.75], ["poor", "rich"])
    assert [(c.name, c.value_of_time, c.demand.total) for c in two.classes] == [("poor", 1.0, 2.5), ("rich", 2.0, 7.5)]
    assert two.demand.total == 10.0
    assert two.worth.tolist() == [[1.0], [2.0]]
    assert repr(two) == "Network 'network': 4 nodes, 5 links, 2 zones, 2 pairs, 2 classes"
    with pytest.raises(InvalidInput, match="2 numbers; one per class"):
        two.with_classes([1.0, 2.0], [1.0])


def test_tolls_of_some_links_stand_among_zeros() -> None:
    assert braess().tolls_on(np.array([3, 1]), [2.0, 5.0]).tolist() == [0.0, 5.0, 0.0, 2.0, 0.0]


def test_the_solver_reads_links_by_tail_and_trips_by_class_and_origin() -> None:
    demand = Demand.from_list([2, 0, 0], [0, 2, 1], [1.0, 2.0, 3.0])
    network = Network.from_arrays(
        [2, 0, 1, 0], [0, 1, 2, 2], Latency.affine([1.0, 2.0, 3.0, 4.0], 0.0), demand, toll=[1.0, 0, 0, 0],
        toll_factor=2.0, length=[0, 1.0, 0, 0], distance_factor=3.0,
    ).with_classes([1.0, 4.0])  # fmt: skip
    ready = network.prepared
    assert ready is network.prepared  # built once
    assert ready.order.tolist() == [1, 3, 2, 0]
    assert ready.graph.first_out.tolist() == [0, 2, 3, 4]
    assert (ready.trips.group_class.tolist(), ready.trips.origin.tolist()) == ([0, 0, 1, 1], [0, 2, 0, 2])
    assert ready.trips.first.tolist() == [0, 2, 3, 5, 6]
    assert ready.trips.pair_class.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(ready.base, [[3.0, 0, 0, 2.0], [3.0, 0, 0, 0.5]])


def test_many_trips_without_a_way_are_counted() -> None:
    demand = Demand.from_list(np.arange(1, 9), np.zeros(8), np.ones(8))
    network = Network.from_arrays(np.zeros(8), np.arange(1, 9), Latency.affine([1.0] * 8, 0.0), demand,
                                  node_ids=np.arange(100, 109))  # fmt: skip
    with pytest.raises(InvalidInput, match=r"8 pairs \(101 -> 100, 102 -> 100, .*check first_thru"):
        network.assign()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: braess().with_classes("x"), "values_of_time = ['x']: expected an array of numbers"),
        (lambda: braess().with_classes(3), "values_of_time = array(3.): expected a list of numbers; one per class"),
        (lambda: braess().with_classes([1.0, 2.0], ["a", None]), "shares = ['a', None]: expected an array of numbers"),
        (lambda: Network.from_arrays(["x"], [1], Latency.affine(1, 1), [[0, 1], [0, 0]]), "tail = ['x']: expected an"),
        (lambda: Network.from_arrays([0], [0.5], Latency.affine(1, 1), [[0, 1], [0, 0]]), "head[0] = 0.5: expected a"),
        (lambda: braess().toll_problem(upper="x"), "upper = 'x': expected an array of numbers"),
        (lambda: braess().toll_problem(classes=["x"]), "classes = ['x']: expected an array of numbers"),
        (lambda: braess().toll_problem(3), "links = 3: expected a list of links"),
        (lambda: Latency.affine("x", 1.0), "intercept = 'x': expected an array of numbers"),
        (lambda: Latency.affine(1.0, 1.0).with_own(abs, abs, links="x"), "links = 'x': expected an array of numbers"),
    ],
)
def test_what_is_no_number_is_named(build, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build()
    assert expected in str(caught.value)


def test_values_of_time_may_come_from_a_generator() -> None:
    two = braess().with_classes(value for value in (1.0, 2.0))
    assert [group.value_of_time for group in two.classes] == [1.0, 2.0]
