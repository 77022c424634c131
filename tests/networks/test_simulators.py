"""Simulators as followers: what they share, and each one where its extra is installed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import pzos
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.keys import Keys, Role
from pzos.networks import Demand, Latency, Network, generated_city
from pzos.networks.simulators import aequilibrae, sumo, uxsim
from pzos.networks.simulators.traffic import (
    Judgement,
    Simulator,
    Traffic,
    advised_radius,
    held_out,
    sensitivity,
    simulated_toll_problem,
)
from pzos.networks.tolls import optimise_tolls, value_at


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    """Skip, with the reason, where an extra is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (extra {extra})")


def two_roads(trips: float = 2400.0) -> Network:
    """Return a short and a longer road between two places, each wide enough for half of the trips."""
    tail, head = [0, 2, 0, 3], [2, 1, 3, 1]
    latency = Latency.bpr([1.0, 1.0, 1.5, 1.5], 0.15, 1500.0, 4.0)
    places = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [1.0, -0.8]]
    demand = Demand.from_list([0], [1], [trips])
    return Network.from_arrays(tail, head, latency, demand, length=[1.0, 1.0, 1.3, 1.3], coordinates=places)


# ---- what all share -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Coins(Simulator):
    """Travellers on two roads: each takes the one that is cheaper to him, by his own luck."""

    network: Network
    people: int = 400

    def run(self, tolls: npt.ArrayLike, seed: int) -> Traffic:
        luck = Keys(seed).generator(Role.NOISE).normal(0.0, 1.0, self.people)
        first = np.asarray(tolls)[0] - np.asarray(tolls)[2] < luck
        share = np.array([first.sum(), first.sum(), (~first).sum(), (~first).sum()], dtype=np.float64)
        return Traffic(share, share * (1.0 + share / self.people), 3.0)


def test_the_answer_is_the_mean_over_the_same_seeds() -> None:
    problem = simulated_toll_problem(Coins(two_roads()), [0], "travel_time", upper=4.0, seeds=(3, 5))
    follower = problem.follower.function
    x = np.array([0.7])
    np.testing.assert_array_equal(follower(x), (follower.once(x, 3) + follower.once(x, 5)) / 2)
    np.testing.assert_array_equal(follower(x), follower(x))
    y = follower(x)
    assert y.size == 2 * 4 + 1
    assert value_at(problem, x) == pytest.approx(y[4:].sum())
    assert held_out(problem, x, [3, 5]).mean() == pytest.approx(value_at(problem, x))
    fresh = pzos.Problem(problem.leader, pzos.seeded(follower.fresh, common=True), x, problem.domain)
    assert value_at(fresh, x, seed=0) == value_at(fresh, x, seed=0) != value_at(fresh, x, seed=1)


@pytest.mark.parametrize("objective", ["revenue", "travel_time", "toll_squares", {"revenue": 2.0, "travel_time": -0.5}])
def test_leaders_of_simulated_cities_have_exact_gradients(objective) -> None:
    problem = simulated_toll_problem(Coins(two_roads()), [0, 3], objective, upper=4.0, x0=[0.3, 0.8])
    assert problem.sense == ("min" if objective in ("travel_time", "toll_squares") else "max")
    rng = np.random.default_rng(0)
    y, at = rng.uniform(1, 2, 9), problem.x0
    value = problem.leader(at, y)
    for dx, dy in ((rng.normal(size=2), np.zeros(9)), (np.zeros(2), rng.normal(size=9))):
        slope = (
            problem.leader.value(at + 1e-5 * dx, y + 1e-5 * dy) - problem.leader.value(at - 1e-5 * dx, y - 1e-5 * dy)
        ) / 2e-5
        assert slope == pytest.approx(value.grad_x @ dx + value.grad_y @ dy, rel=1e-6, abs=1e-8)


def test_tiny_steps_change_nothing_and_the_radius_says_so() -> None:
    problem = simulated_toll_problem(Coins(two_roads()), [0], "travel_time", upper=4.0, x0=0.5)
    rows = sensitivity(problem, [1e-5, 0.01, 0.5, 2.0], np.ones((1, 1)))
    changes = [row.change for row in rows]
    assert changes[0] == 0.0
    assert changes == sorted(changes)
    assert rows[0].noise > 0.0
    assert advised_radius(rows) >= 0.01
    assert advised_radius(rows[:1]) == 1e-5  # nothing was seen: the largest tried


def test_faults_of_a_simulated_problem() -> None:
    coins = Coins(two_roads())
    with pytest.raises(InvalidInput, match="a Simulator"):
        simulated_toll_problem(two_roads(), [0], upper=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*objective.*seeds"):
        simulated_toll_problem(coins, [0], "emissions", upper=1.0, seeds=())
    with pytest.raises(InvalidInput, match="simulated_toll_problem"):
        held_out(two_roads().toll_problem([0]), [0.0], [1])


@pytest.mark.parametrize("kind", [uxsim.UxsimSimulator, sumo.SumoSimulator])
def test_settings_that_make_no_sense(kind) -> None:
    with pytest.raises(InvalidInput, match=r"(?s)faults.*loading.*horizon"):
        kind(two_roads(), loading=-1.0, horizon=-2.0)
    with pytest.raises(InvalidInput, match="one class"):
        kind(two_roads().with_classes([1.0, 2.0]))
    with pytest.raises(InvalidInput, match="at least"):
        kind(two_roads(), loading=100.0, horizon=50.0)


@pytest.mark.parametrize(
    ("module", "package", "extra", "call"),
    [
        (uxsim, "uxsim", "traffic", lambda m: m.UxsimSimulator(two_roads()).run(np.zeros(4), 0)),
        (sumo, "libsumo", "sumo", lambda m: m.SumoSimulator(two_roads()).run(np.zeros(4), 0)),
        (aequilibrae, "aequilibrae", "aequilibrae", lambda m: m.build(two_roads())),
    ],
)
def test_a_missing_package_names_its_extra(module, package, extra, call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install \"pzos\[{extra}\]\""):
        call(module)


# ---- each of them ---------------------------------------------------------------------------------------------


def check_simulator(simulator: Simulator, trips: float, toll: float) -> None:
    """Check the laws of a simulator on two roads: repeatable, by seed, conserving, and a toll moves traffic."""
    free = simulator.run(np.zeros(4), 0)
    again, other = simulator.run(np.zeros(4), 0), simulator.run(np.zeros(4), 1)
    np.testing.assert_array_equal(free.entered, again.entered)
    np.testing.assert_array_equal(free.spent, again.spent)
    assert not np.array_equal(free.spent, other.spent)
    assert free.entered[0] + free.entered[2] == pytest.approx(trips, rel=0.05)
    assert free.entered[1] + free.entered[3] == pytest.approx(trips, rel=0.05)
    assert free.total_time > 2.0 * trips * 0.95  # nobody is faster than the empty short road
    assert free.waited >= -1e-6
    tolled = simulator.run([toll, 0.0, 0.0, 0.0], 0)
    assert tolled.entered[0] < 0.6 * free.entered[0]
    assert tolled.entered[2] > 1.5 * max(free.entered[2], 1.0)
    nudged = simulator.run([1e-4, 0.0, 0.0, 0.0], 0)
    assert np.abs(nudged.entered - free.entered).sum() <= 0.05 * trips  # piecewise constant


@needs("uxsim", "traffic")
def test_uxsim_keeps_the_laws() -> None:
    check_simulator(uxsim.UxsimSimulator(two_roads(), loading=1800.0, horizon=5400.0), 1200.0, toll=4.0)


@needs("libsumo", "sumo")
def test_sumo_keeps_the_laws() -> None:
    check_simulator(sumo.SumoSimulator(two_roads(1800.0), loading=1200.0, horizon=3600.0), 600.0, toll=2.0)


@needs("uxsim", "traffic")
def test_tolls_improve_a_simulated_city_on_seeds_not_seen() -> None:
    city = generated_city(4, 4, zones=6, congestion=1.2, seed=2)
    simulator = uxsim.UxsimSimulator(city)
    links = np.argsort(-simulator.run(np.zeros(city.links), 0).spent)[:8]
    problem = simulated_toll_problem(simulator, links, "travel_time", upper=4.0, seeds=range(2))
    solver = pzos.SecantPZOS(step=3e-5, radius=0.5)
    found = optimise_tolls(problem, 4.0, solver, queries=28, marginal=0, progress=False)
    fresh = range(1000, 1008)
    none, uniform, ours = (
        held_out(problem, x, fresh).mean() for x in (np.zeros(8), np.full(8, found.uniform.toll), found.x)
    )
    assert found.queries <= 28
    assert ours < uniform < none


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
    from dataclasses import replace

    network = two_roads()
    if "power" in change:
        network = replace(network, latency=Latency.bpr(1.0, 0.15, [10.0] * 4, change["power"]))
    network = replace(network, first_thru=change.get("first_thru", 0))
    with pytest.raises(InvalidInput, match=expected):
        aequilibrae._check(network, np.asarray(change.get("tolls", np.zeros(4))))


def test_tolls_are_compared_by_their_means():
    judged = Judgement({"dear": np.array([3.0, 5.0]), "cheap": np.array([1.0, 2.0])})
    assert judged.lowest() == "cheap"
    dear = next(line for line in str(judged).splitlines() if line.startswith("dear"))
    assert dear.split() == ["dear", "4", "(1)"]
