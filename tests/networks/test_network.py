"""Networks from arrays: small laws and clear errors."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    Network,
)


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
