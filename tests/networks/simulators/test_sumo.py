"""SUMO, where its extra is installed, and its files everywhere."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.networks.simulators import sumo
from roads import check_simulator, needs, two_roads


@needs("libsumo", "sumo")
def test_sumo_keeps_the_laws() -> None:
    check_simulator(sumo.SumoSimulator(two_roads(1800.0), loading=1200.0, horizon=3600.0), 600.0, toll=2.0)


# ---- without SUMO: its files, and how it is driven --------------------------------------------------------------


class FakeSumo:
    """A libsumo that moves nobody: it keeps what it is told, and writes the files that a run would leave."""

    def __init__(self, broken: bool = False) -> None:
        self.simulation = self.edge = self.vehicle = self
        self.now, self.broken = 0.0, broken
        self.command: list[str] = []
        self.adapted: dict[str, list[float]] = {}
        self.rerouted: list[str] = []
        self.closed = 0

    def start(self, command: list[str]) -> None:
        self.command, self.now = command, 0.0

    def getTime(self) -> float:
        return self.now

    def getMinExpectedNumber(self) -> int:
        return int(self.now < 70.0)

    def simulationStep(self) -> None:
        if self.broken:
            raise RuntimeError("a vehicle fell into the river")
        self.now += 1.0

    def getDepartedIDList(self) -> list[str]:
        return ["0"] if self.now == 1.0 else []

    def getTraveltime(self, edge: str) -> float:
        return (54.0 if edge.startswith("e") else 6.0) + (100.0 if self.now >= 30.0 else 0.0)

    def adaptTraveltime(self, edge: str, seconds: float) -> None:
        self.adapted.setdefault(edge, []).append(seconds)

    def rerouteTraveltime(self, vehicle: str, current: bool) -> None:
        self.rerouted.append(vehicle)

    def close(self) -> None:
        self.closed += 1
        trips = Path(self.command[self.command.index("--tripinfo-output") + 1])
        trips.write_text('<a><tripinfo id="0" arrival="100.0"/><tripinfo id="1" arrival="-1"/></a>', encoding="utf-8")
        edges = '<a><edge id="e0" sampledSeconds="120" entered="2"/><edge id="x0" sampledSeconds="60" entered="2"/>'
        edges += '<edge id="in0" sampledSeconds="30" entered="9"/></a>'
        trips.with_name("edges.out.xml").write_text(edges, encoding="utf-8")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeSumo:
    made = FakeSumo()
    monkeypatch.setattr(sumo, "_packages", lambda: (made, tmp_path))
    monkeypatch.setattr(sumo, "_convert", lambda folder: None)
    return made


def read(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


def test_every_link_is_a_road_and_an_exit_of_its_capacity(fake: FakeSumo, tmp_path: Path) -> None:
    network = two_roads(1800.0)
    sumo.build_network(sumo.SumoSimulator(network), tmp_path)
    nodes, edges, types = (read(tmp_path / name) for name in ("city.nod.xml", "city.edg.xml", "types.xml"))
    assert len(nodes) == network.nodes + network.links + 2  # and two zones
    assert len(edges) == 2 * network.links + 2 * 2
    by_name = {edge.get("id"): edge for edge in edges}
    names = {node.get("id") for node in nodes}
    assert all(edge.get("from") in names and edge.get("to") in names for edge in edges)
    road, way_out = by_name["e0"], by_name["x0"]
    assert (road.get("from"), road.get("to"), way_out.get("to")) == ("n0", "m0", "n2")
    assert float(road.get("length")) + float(way_out.get("length")) == pytest.approx(1000.0)
    assert float(road.get("speed")) == pytest.approx(1000.0 / 60.0, abs=1e-3)
    headways = {kind.get("id"): float(kind[0].get("tauff")) for kind in types}
    assert headways["feeder"] == 0.3
    assert any(seconds == pytest.approx(3600.0 / 1500.0, abs=1e-3) for seconds in headways.values())


def test_trips_are_a_function_of_the_seed_and_depart_in_order(tmp_path: Path) -> None:
    simulator = sumo.SumoSimulator(two_roads(1800.0), loading=600.0)
    times = [sumo.write_trips(simulator, tmp_path / f"{k}.xml", seed) for k, seed in enumerate((4, 4, 5))]
    np.testing.assert_array_equal(times[0], times[1])
    assert not np.array_equal(times[0], times[2])
    assert times[0].size == 300
    assert np.all(np.diff(times[0]) >= 0)
    assert 0.0 <= times[0][0] <= times[0][-1] <= 600.0
    trips = read(tmp_path / "0.xml")
    assert [trip.get("id") for trip in trips] == [str(k) for k in range(300)]
    assert {(trip.get("from"), trip.get("to")) for trip in trips} == {("in0", "out1")}
    sumo.write_measures(simulator, tmp_path / "m.xml")
    assert read(tmp_path / "m.xml")[0].get("period") == "3600"


def test_tolls_are_added_to_what_was_measured_and_averaged(fake: FakeSumo) -> None:
    simulator = sumo.SumoSimulator(two_roads(30.0), loading=600.0, horizon=600.0, update=30.0, memory=0.5)
    traffic = simulator.run([1.0, 0.0, -3.0, 0.0], seed=7)
    assert fake.adapted["e0"] == pytest.approx([54 + 60, 104 + 60, 129 + 60])  # half of each new measurement
    assert fake.adapted["e2"] == pytest.approx([0.0, 0.0, 0.0])  # a subsidy ends at a free road
    assert fake.adapted["x0"] == pytest.approx([6.0, 56.0, 81.0])
    assert fake.rerouted == ["0"]
    assert fake.closed == 1
    assert fake.command[fake.command.index("--seed") + 1] == "7"
    assert fake.command[fake.command.index("--end") + 1] == "600"
    assert traffic.entered.tolist() == [2.0, 0.0, 0.0, 0.0]
    assert traffic.spent.tolist() == [3.0, 0.0, 0.0, 0.0]  # minutes, road and exit together
    departures = sumo.write_trips(simulator, simulator._folder / "again.xml", 7)
    ends = np.array([100.0, *[600.0] * (departures.size - 1)])  # who did not arrive counts until the end
    assert traffic.total_time == pytest.approx(float((ends - departures).sum()) / 60.0)


def test_a_run_that_breaks_is_a_failure_of_the_follower(monkeypatch: pytest.MonkeyPatch, fake: FakeSumo) -> None:
    fake.broken = True
    with pytest.raises(FollowerFailure, match="SUMO stopped at seed 3: a vehicle fell into the river"):
        sumo.SumoSimulator(two_roads(30.0)).run(np.zeros(4), 3)
    assert fake.closed == 1


def test_a_network_that_cannot_be_converted_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sumo, "_packages", lambda: (None, tmp_path))
    calls = []

    def convert(command: list[str], **settings: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return subprocess.CompletedProcess(command, int(len(calls) > 1), "", "no such lane ")

    monkeypatch.setattr(subprocess, "run", convert)
    sumo._convert(tmp_path)
    assert calls[0][0] == str(tmp_path / "netconvert")
    with pytest.raises(FollowerFailure, match="netconvert could not build the network: no such lane"):
        sumo._convert(tmp_path)


def test_the_folder_goes_with_the_simulator(fake: FakeSumo) -> None:
    import gc

    simulator = sumo.SumoSimulator(two_roads(30.0))
    folder = simulator._folder
    assert (folder / "types.xml").exists()
    del simulator
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"memory": 1.0}, "memory = 1.0: expected a number from 0 to below 1; 0.7 is usual"),
        ({"blur": 0.5}, "blur = 0.5: expected a number >= 1; 1 is no error at all"),
        ({"metre": -1.0}, "metre = -1.0: expected a positive number; see the docstring"),
    ],
)
def test_settings_of_sumo(settings: dict[str, float], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sumo.SumoSimulator(two_roads(), **settings)
    assert expected in str(caught.value)
