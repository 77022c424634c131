"""AequilibraE, where its extra is installed, and what it is told everywhere."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Latency,
    generated_city,
)
from pzos.networks.search import value_at
from pzos.networks.simulators import aequilibrae
from roads import needs, two_roads


@needs("aequilibrae", "aequilibrae")
@pytest.mark.filterwarnings("ignore")
def test_aequilibrae_agrees_with_our_equilibrium() -> None:
    city = generated_city(4, 4, zones=6, congestion=1.2, seed=2)
    follower = aequilibrae.AequilibraeFollower(city, np.array([3, 10]), gap=1e-5)
    answer = follower(np.array([0.5, 1.0]))
    tolls = np.zeros(city.links)
    tolls[[3, 10]] = 0.5, 1.0
    ours = city.assign(tolls)
    assert answer.gap <= 1e-5
    np.testing.assert_allclose(answer.y, ours.flow, atol=0.02 * ours.flow.max())
    problem = city.toll_problem([3, 10], "revenue", upper=3.0, follower=follower)
    assert value_at(problem, np.array([0.5, 1.0])) == pytest.approx(ours.revenue, rel=0.02)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tolls": [-1.0, 0, 0, 0]}, "no subsidies"),
        ({"power": 0.5}, "powers >= 1"),
        ({"first_thru": 1}, "all zones or none"),
    ],
)
def test_what_aequilibrae_cannot_do_is_said(change, expected: str) -> None:

    network = two_roads()
    if "power" in change:
        network = replace(network, latency=Latency.bpr(1.0, 0.15, [10.0] * 4, change["power"]))
    network = replace(network, first_thru=change.get("first_thru", 0))
    with pytest.raises(InvalidInput, match=expected):
        aequilibrae._check(network, np.asarray(change.get("tolls", np.zeros(4))))


# ---- without AequilibraE: what it is told ------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> tuple[MagicMock, MagicMock]:
    pandas = pytest.importorskip("pandas")
    paths, matrix = MagicMock(), MagicMock()
    monkeypatch.setattr(aequilibrae, "_modules", lambda: (paths, matrix, pandas))
    made = paths.TrafficAssignment.return_value
    made.results.return_value = pandas.DataFrame({"PCE_tot": [5.0, 7.0]}, index=[3, 1])
    made.assignment.rgap = 2e-5
    return paths, matrix


def test_links_demand_and_settings_arrive(fake: tuple[MagicMock, MagicMock]) -> None:
    paths, matrix = fake
    network = two_roads(12.0)
    power = np.array([4.0, 0.0, 1.0, 2.0])
    network = replace(network, latency=Latency.bpr([1.0, 1.0, 0.0, 1.5], 0.15, 1500.0, power), first_thru=2)
    made = aequilibrae.build(network, [0.5, 0.0, 0.0, 0.0], "cfw", 1e-6, 77, 3)
    table = paths.Graph.return_value.network
    assert table["a_node"].tolist() == [1, 3, 1, 4]
    assert table["b_node"].tolist() == [3, 2, 4, 2]
    np.testing.assert_allclose(table["free_flow_time"], [1.0, 1.15, 1e-6, 1.5])  # constant links; no time of zero
    np.testing.assert_allclose(table["b"], [0.15, 0.0, 0.0, 0.15])
    assert table["power"].tolist() == [4.0, 1.0, 1.0, 2.0]
    assert table["fixed"].tolist() == [0.5, 0.0, 0.0, 0.0]
    paths.Graph.return_value.set_blocked_centroid_flows.assert_called_once_with(True)
    trips = matrix.AequilibraeMatrix.return_value
    assert trips.create_empty.call_args.kwargs["zones"] == 2
    (_, written) = trips.matrices.__setitem__.call_args.args
    assert written.tolist() == [[0.0, 12.0], [0.0, 0.0]]
    made.set_algorithm.assert_called_once_with("cfw")
    made.set_cores.assert_called_once_with(3)
    assert (made.max_iter, made.rgap_target) == (77, 1e-6)


def test_flows_come_back_in_the_order_of_the_links(fake: tuple[MagicMock, MagicMock]) -> None:
    paths, _ = fake
    answer = aequilibrae.AequilibraeFollower(two_roads(), np.array([3]))(np.array([0.25]))
    assert answer.y.tolist() == [7.0, 0.0, 5.0, 0.0]
    assert answer.gap == 2e-5
    paths.TrafficAssignment.return_value.execute.assert_called_once_with()
    assert paths.Graph.return_value.network["fixed"].tolist() == [0.0, 0.0, 0.0, 0.25]


def test_classes_and_own_latencies_are_refused() -> None:
    network = two_roads()
    own = network.latency.with_own(lambda link, v: v, lambda link, v: 1.0)
    several = replace(network, latency=own).with_classes([1.0, 2.0])
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*one class; split the network.*it knows BPR only"):
        aequilibrae._check(several, np.zeros(4))
