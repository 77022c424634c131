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


LINKS = {"from": [1, 2], "to": [2, 1], "free_flow_time": [1.0, 2.0]}
TRIPS = {"origin": [1], "destination": [2], "trips": [3.0]}


@pytest.mark.parametrize(
    ("links", "trips", "expected"),
    [
        ({"from": []}, {}, "links['from'] = array([], dtype=float64): expected at least one row; add rows"),
        ({"toll": [1.0, None]}, {}, "links['toll'] = array([ 1., nan]): expected no missing values; fill the gaps"),
        ({"b": ["x", 1]}, {}, "links['b'] = ['x', 1]: expected a column of numbers; convert it to numbers"),
        ({"power": [1.0]}, {}, "links['power'] = 1: expected 2 rows; one per link"),
        ({"from": [1.5, 2]}, {}, "links['from'] = array([1.5, 2. ]): expected whole numbers; they name nodes"),
        ({}, {"origin": [np.inf]}, "trips['origin'] = array([inf]): expected whole numbers; they name nodes"),
        ({}, {"trips": ["many"]}, "trips['trips'] = ['many']: expected a column of numbers"),
        ({"to": [1]}, {}, "head = 1: expected 2 entries, one per link, as tail has"),
    ],
)
def test_faults_name_table_and_column(links: dict[str, object], trips: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        network_from_table({**LINKS, **links}, {**TRIPS, **trips})
    assert expected in str(caught.value)


def test_a_missing_column_says_what_the_table_has() -> None:
    with pytest.raises(InvalidInput, match=r"trips\['trips'\] = 'missing': expected a column of this name; has"):
        network_from_table(LINKS, {"origin": [1], "destination": [2], "volume": [3.0]})


def test_defaults_of_the_optional_columns() -> None:
    network = network_from_table({**LINKS, "capacity": [5.0, np.inf]}, TRIPS, name="two")
    np.testing.assert_allclose(network.latency.rise, [0.15, 0.0])
    assert network.latency.power.tolist() == [4.0, 4.0]
    assert (network.length.tolist(), network.toll.tolist(), network.link_type.tolist()) == ([0, 0], [0, 0], [1, 1])
    assert (network.name, network.zones, network.first_thru) == ("two", 2, 0)
    assert network.coordinates is None


def test_names_of_nodes_are_kept_and_unknown_places_are_skipped() -> None:
    links = {"from": [50, 7], "to": [7, 9], "free_flow_time": [1.0, 2.0]}
    trips = {"origin": [50], "destination": [9], "trips": [1.0]}
    network = network_from_table(links, trips, {"node": [7, 8], "x": [1.0, 5.0], "y": [2.0, 5.0]})
    assert network.node_ids.tolist() == [9, 50, 7]  # zones first, by name
    assert network.link_number((50, 7)) == 0
    assert network.coordinates is not None
    np.testing.assert_array_equal(network.coordinates[2], [1.0, 2.0])
