"""SUMO, where its extra is installed, and its files everywhere."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.networks.simulators import sumo
from pzos.networks.simulators.traffic import simulated_toll_problem
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


# ---- files of the user's own --------------------------------------------------------------------------------------

NET = """<net>
  <edge id=":b_0" function="internal"><lane id=":b_0_0" speed="10" length="3"/></edge>
  <edge id="ab" from="a" to="b"><lane id="0" speed="10" length="600"/><lane id="1" speed="12" length="600"/></edge>
  <edge id="bc" from="b" to="c"><lane id="bc_0" speed="20" length="1200"/></edge>
  <edge id="cb" from="c" to="b"><lane id="cb_0" speed="20" length="1200"/></edge>
  <junction id="a" x="0" y="0"/><junction id="b" x="600" y="0"/><junction id="c" x="600" y="1200"/>
</net>"""
ROUTES = '<routes><trip id="0" depart="0" from="ab" to="bc"/></routes>'


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    net, routes = tmp_path / "town.net.xml", tmp_path / "town.rou.xml"
    net.write_text(NET, encoding="utf-8")
    routes.write_text(ROUTES, encoding="utf-8")
    return net, routes


def test_a_net_is_read_as_it_is(files: tuple[Path, Path]) -> None:
    simulator = sumo.SumoSimulator.from_files(*files, tolled_edges=["cb", "ab"], horizon=600.0)
    network = simulator.network
    assert (simulator.names, simulator.tolled.tolist(), network.name) == (("ab", "bc", "cb"), [2, 0], "town")
    assert (network.tail.tolist(), network.head.tolist()) == ([0, 1, 2], [1, 2, 1])
    assert network.latency.base.tolist() == pytest.approx([600 / 12 / 60, 1.0, 1.0])  # minutes
    assert network.latency.capacity.tolist() == [4000.0, 2000.0, 2000.0]
    assert network.length.tolist() == [0.6, 1.2, 1.2]
    assert network.coordinates.tolist() == [[0, 0], [600, 0], [600, 1200]]
    problem = simulated_toll_problem(simulator, upper=3.0)
    assert problem.x0.size == 2


def test_files_are_run_with_tolls_on_their_edges(
    files: tuple[Path, Path], fake: FakeSumo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_behind() -> None:
        trips = Path(fake.command[fake.command.index("--tripinfo-output") + 1])
        late = '<tripinfo id="1" duration="-1" departDelay="90"/>'
        trips.write_text(f'<a><tripinfo id="0" duration="300" departDelay="30"/>{late}</a>', encoding="utf-8")
        inside = '<edge id=":b_0" sampledSeconds="9"/>'
        edges = f'<a><edge id="ab" sampledSeconds="120" entered="2" departed="3"/>{inside}</a>'
        trips.with_name("edges.out.xml").write_text(edges, encoding="utf-8")

    monkeypatch.setattr(fake, "close", left_behind)
    simulator = sumo.SumoSimulator.from_files(*files, tolled_edges=["ab"], horizon=60.0, update=30.0, memory=0.5)
    traffic = simulator.run([1.0, 0.0, 0.0], seed=5)
    assert fake.adapted["ab"] == pytest.approx([6 + 60, 56 + 60])
    assert fake.adapted["cb"] == pytest.approx([6, 56])
    assert fake.rerouted == ["0"]
    assert [fake.command[fake.command.index(word) + 1] for word in ("--net-file", "--route-files", "--seed")] == [
        *map(str, files), "5",
    ]  # fmt: skip
    assert "--mesosim" not in fake.command
    assert traffic.entered.tolist() == [5.0, 0.0, 0.0]
    assert traffic.spent.tolist() == [2.0, 0.0, 0.0]
    assert traffic.total_time == pytest.approx((300 + 30 + 90) / 60)
    sumo.SumoSimulator.from_files(*files, tolled_edges=["ab"], horizon=60.0, mesoscopic=True).run(np.zeros(3), 1)
    assert "--mesosim" in fake.command


@pytest.mark.parametrize(
    ("net", "routes", "tolled", "expected"),
    [
        (
            NET,
            ROUTES,
            ["ab", "xy"],
            "tolled_edges = ['xy']: expected ids of edges of town.net.xml; the first",
        ),
        (NET, ROUTES, [], "tolled_edges = (): expected at least one edge"),
        (NET, ROUTES, ["ab", "ab"], "expected each edge once"),
        ("<routes/>", ROUTES, ["ab"], "town.net.xml: begins with <routes>: expected SUMO's <net>"),
        ("<net>", ROUTES, ["ab"], "town.net.xml: cannot be read (no element found"),
        ("<net/>", ROUTES, ["ab"], "has no edges between junctions"),
        (NET, "<routes/>", ["ab"], "town.rou.xml: nobody departs: expected <vehicle>, <trip> or <flow>"),
    ],
)
def test_faults_of_files(files: tuple[Path, Path], net: str, routes: str, tolled: list[str], expected: str) -> None:
    for path, text in zip(files, (net, routes), strict=True):
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        sumo.SumoSimulator.from_files(*files, tolled_edges=tolled)
    assert expected in str(caught.value)


@needs("libsumo", "sumo")
def test_a_toll_moves_the_traffic_of_a_generated_net(tmp_path: Path) -> None:
    _, programs = sumo._packages()
    net, routes = tmp_path / "grid.net.xml", tmp_path / "grid.rou.xml"
    command = [
        str(programs / "netgenerate"),
        "--grid",
        "--grid.number=3",
        "--grid.length=200",
        "--output-file",
        str(net),
    ]
    subprocess.run(command, capture_output=True, check=True)
    flow = '<flow id="a" begin="0" end="200" vehsPerHour="600" from="A0B0" to="B2C2"/>'
    routes.write_text(f"<routes>{flow}</routes>", encoding="utf-8")
    simulator = sumo.SumoSimulator.from_files(net, routes, tolled_edges=["B0B1"], horizon=900.0)
    free, tolled = (simulator.run(simulator.network.tolls_on(simulator.tolled, [toll]), 1) for toll in (0.0, 3.0))
    here = simulator.tolled[0]
    assert free.entered[here] > 20
    assert tolled.entered[here] < 0.5 * free.entered[here]
    assert free.total_time > free.spent.sum() > 0
    assert simulator.run(np.zeros(simulator.network.links), 1).total_time == free.total_time
