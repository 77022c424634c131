"""Networks from tables in memory."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    network_from_table,
)


def test_tables_in_memory() -> None:
    links = {"from": [1, 2, 1], "to": [2, 3, 3], "free_flow_time": [1.0, 1.0, 5.0], "capacity": [10, 10, 10]}
    trips = {"origin": [1], "destination": [3], "trips": [4]}
    network = network_from_table(links, trips, {"node": [1, 3], "x": [0, 1], "y": [0, 1]})
    assert network.node_ids.tolist() == [1, 3, 2]
    assert network.assign().flow.tolist() == [4, 4, 0]
    assert network.coordinates is not None
    assert np.isnan(network.coordinates[2]).all()
    shut = network_from_table(links, trips, closed=[2])
    assert shut.first_thru == 1
    assert shut.assign().flow.tolist() == [0, 0, 4]
    low = network_from_table(links, trips, first_thru=3)
    assert low.assign().flow.tolist() == [0, 0, 4]
    constant = network_from_table({k: v for k, v in links.items() if k != "capacity"}, trips)
    assert (constant.latency.rise == 0).all()


def test_tables_in_memory_with_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*links\['to'\].*trips\['trips'\]"):
        network_from_table({"from": [1], "free_flow_time": [1]}, {"origin": [1], "destination": [2], "trips": ["x"]})
    with pytest.raises(InvalidInput, match="1 rows"):
        network_from_table(
            {"from": [1], "to": [2], "free_flow_time": [1], "b": [1, 2]},
            {"origin": [1], "destination": [2], "trips": [1]},
        )


def test_data_frames_are_tables() -> None:
    pandas = pytest.importorskip("pandas")
    links = pandas.DataFrame({"from": [1, 2], "to": [2, 1], "free_flow_time": [1.0, 2.0]})
    trips = pandas.DataFrame({"origin": [1], "destination": [2], "trips": [3.0]})
    assert network_from_table(links, trips).assign().total_travel_time == 3.0
