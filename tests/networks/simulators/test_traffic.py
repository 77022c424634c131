"""What simulators share: the same seeds, exact leaders, settings, and extras that are named."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.networks import Latency
from pzos.networks.search import value_at
from pzos.networks.simulators import aequilibrae, sumo, uxsim
from pzos.networks.simulators.traffic import (
    Judgement,
    Traffic,
    advised_radius,
    held_out,
    judge,
    sensitivity,
    simulated_toll_problem,
)
from roads import Coins, two_roads


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


@pytest.mark.parametrize("platoon", [0, 2.5, True, "5"])
def test_a_platoon_is_a_whole_number_of_vehicles(platoon) -> None:
    with pytest.raises(InvalidInput, match=r"platoon = .*: expected a whole number, 1 or more; 5 is usual"):
        uxsim.UxsimSimulator(two_roads(), platoon=platoon)


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


def test_tolls_are_compared_by_their_means():
    judged = Judgement({"dear": np.array([3.0, 5.0]), "cheap": np.array([1.0, 2.0])})
    assert judged.lowest() == "cheap"
    dear = next(line for line in str(judged).splitlines() if line.startswith("dear"))
    assert dear.split() == ["dear", "4", "(1)"]


def test_roads_are_told_in_seconds_metres_and_lanes() -> None:
    network = replace(two_roads(), length=np.array([1.0, 0.0, 2.0, 1.0]))
    network = replace(network, latency=Latency.bpr([1.0, 0.001, 1.5, 1.5], 0.15, [1500.0, 2001.0, 6000.0, 1.0], 4.0))
    roads = Coins(network).roads()
    assert roads.seconds.tolist() == [60.0, 1.0, 90.0, 90.0]  # nothing takes less than a second
    assert roads.metres.tolist() == [1000.0, 10.0, 2000.0, 1000.0]  # no length: 10 metres a second
    assert roads.lanes.tolist() == [1, 2, 3, 1]


def test_simulators_take_open_networks_only() -> None:
    with pytest.raises(InvalidInput, match=r"network.first_thru = 1: expected 0; traffic may pass through every node"):
        Coins(replace(two_roads(), first_thru=1))


def test_total_time_counts_waiting() -> None:
    assert Traffic(np.ones(2), np.array([1.5, 2.5]), 3.0).total_time == 7.0


def test_problems_are_bounded_and_named() -> None:
    problem = simulated_toll_problem(Coins(two_roads()), [0, 2], upper=[1.0, 2.0], x0=0.5)
    assert problem.x0.tolist() == [0.5, 0.5]
    assert problem.domain.project(np.array([9.0, -9.0])).tolist() == [1.0, 0.0]
    assert problem.name == "tolls on 2 links of network, Coins"
    assert problem.leader.name == "1 travel_time"


def test_several_tolls_are_judged_on_the_same_seeds() -> None:
    problem = simulated_toll_problem(Coins(two_roads()), [0], upper=4.0)
    judged = judge(problem, {"none": [0.0], "one": [1.0]}, [11, 12, 13])
    for name, x in (("none", 0.0), ("one", 1.0)):
        np.testing.assert_array_equal(judged.values[name], held_out(problem, [x], [11, 12, 13]))
    assert judged.lowest() in ("none", "one")
    assert str(judged).splitlines()[0].split() == ["mean", "(standard", "error)"]
