"""What a toll authority may want, with exact gradients, and the report of a planner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    Network,
    toll_report,
)
from pzos.networks.objectives import TollSetting, drives_plausibly
from pzos.networks.tariffs import tariff


@pytest.mark.parametrize("objective", ["revenue", "travel_time", "emissions", "toll_squares",
                                       {"revenue": 1.0, "travel_time": -0.3, "toll_squares": -0.1}])  # fmt: skip
@pytest.mark.parametrize("classes", [None, [1]])
def test_gradients_of_every_objective_are_exact(city: Network, objective, classes) -> None:
    two = city.with_classes([1.0, 2.0])
    problem = two.toll_problem([0, 5, 9], objective, classes=classes, x0=[0.3, 0.7, 0.2])
    y = problem.follower.function(problem.x0).y
    value = problem.leader(problem.x0, y)
    rng = np.random.default_rng(0)
    for part, point in (("x", problem.x0), ("y", y)):
        direction = rng.standard_normal(point.size)
        h = 1e-4 * (1.0 + np.abs(point).max())
        ends = [
            (problem.x0 + s * h * direction, y) if part == "x" else (problem.x0, y + s * h * direction) for s in (1, -1)
        ]
        slope = (problem.leader.value(*ends[0]) - problem.leader.value(*ends[1])) / (2 * h)
        expected = float((value.grad_x if part == "x" else value.grad_y) @ direction)
        assert slope == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_own_objectives_and_their_faults(city: Network) -> None:
    problem = city.toll_problem([3], lambda x, v: (float(v[3]), np.zeros(1), np.eye(city.links)[3]))
    assert problem.sense == "min"
    y = problem.follower.function(problem.x0).y
    assert problem.leader.value(problem.x0, y) == y[3]
    with pytest.raises(InvalidInput, match="grad_flow"):
        city.toll_problem([3], lambda x, v: 1.0)
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*classes.*objective"):
        city.toll_problem([3], "profit", classes=[4])
    with pytest.raises(InvalidInput, match="each link once"):
        city.toll_problem([3, 3])
    with pytest.raises(InvalidInput, match="exactly one link"):
        city.toll_problem([(1, 1)])


def test_report_adds_up(city: Network) -> None:
    network = city.with_classes([0.5, 2.0])
    best = network.assign(np.full(network.links, 0.4))
    report = toll_report(network.assign(), best, np.arange(network.links))
    rows = {name: (before, after) for name, before, after in report.rows()}
    assert rows["revenue"][1] == pytest.approx(0.4 * best.flow.sum())
    worth = [0.5, 2.0]
    times = [[float(a.time @ a.class_flow[k]) for k in (0, 1)] for a in (report.before, report.after)]
    saved = sum(w * (times[0][k] - times[1][k]) for k, w in enumerate(worth))
    assert report.net_benefit == pytest.approx(saved, rel=1e-6, abs=1e-3)
    assert len(report.link_rows(5)) == 5


def test_emissions_need_plausible_lengths(city: Network) -> None:

    feet = replace(city, length=3281 * city.length)
    with pytest.raises(InvalidInput, match="km and times in minutes"):
        feet.toll_problem([0], "emissions")
    rows = [name for name, _, _ in _report(feet).rows()]
    assert not any("emissions" in name for name in rows)
    assert any("emissions" in name for name, _, _ in _report(city).rows())


def _report(network: Network):
    from pzos.networks import toll_report

    free = network.assign()
    return toll_report(free, network.assign(np.full(network.links, 0.1)), np.arange(network.links))


def test_the_report_splits_costs_by_class(city: Network) -> None:
    report = _report(city.with_classes([0.5, 2.0], names=["poor", "rich"]))
    rows = {name: (before, after) for name, before, after in report.rows()}
    for name, worth in (("poor", 0.5), ("rich", 2.0)):
        time, toll, cost = (
            rows[f"{kind}, {name}"][1] for kind in ("time per trip", "toll per trip (money)", "cost per trip (time)")
        )
        assert cost == pytest.approx(time + toll / worth, rel=1e-9)
    trips = city.demand.total / 2
    paid = sum(rows[f"toll per trip (money), {name}"][1] for name in ("poor", "rich")) * trips
    assert paid == pytest.approx(report.revenue, rel=1e-9)


def test_a_mix_is_the_weighted_sum_of_its_parts(city: Network) -> None:
    weights = {"revenue": 2.0, "travel_time": -0.5, "toll_squares": -3.0}
    x, y = np.array([0.3, 0.1]), city.assign().flow
    mixed = city.toll_problem([4, 8], weights).leader(x, y)
    parts = {name: city.toll_problem([4, 8], name, x0=0.0).leader(x, y) for name in weights}
    assert mixed.value == pytest.approx(sum(w * parts[name].value for name, w in weights.items()))
    for side in ("grad_x", "grad_y"):
        expected = sum(w * getattr(parts[name], side) for name, w in weights.items())
        np.testing.assert_allclose(getattr(mixed, side), expected)


def test_emissions_by_hand() -> None:
    network = Network.from_arrays(
        [0], [1], Latency.affine([2.0], 0.0), Demand.from_list([0], [1], [10.0]), length=[1.0]
    )
    setting = TollSetting(network, tariff(network, [0]))
    assert drives_plausibly(network)
    part = setting.emissions(np.zeros(1), np.array([10.0]))
    assert part.value == pytest.approx(10.0 * 0.2038 * 2.0 * np.exp(0.7962 / 2.0))
    assert not drives_plausibly(replace(network, length=np.zeros(1)))


def test_leaders_and_leader_values_are_taken_as_they_are(city: Network) -> None:
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)
    assert city.toll_problem([3], leader).leader is leader
    value = pzos.LeaderValue(2.0, np.zeros(1), np.zeros(city.links))
    assert city.toll_problem([3], lambda x, v: value).leader.value(np.zeros(1), np.zeros(city.links)) == 2.0


def test_links_of_a_report_are_sorted_by_the_size_of_their_toll(city: Network) -> None:
    tolls = np.zeros(city.links)
    tolls[[2, 5, 9]] = 0.1, -0.3, 0.2
    report = toll_report(city.assign(), city.assign(tolls), np.array([2, 5, 7, 9]))
    rows = report.link_rows(3)
    assert [row[1] for row in rows] == [-0.3, 0.2, 0.1]
    ends = f"{city.node_ids[city.tail[5]]} -> {city.node_ids[city.head[5]]}"
    assert rows[0] == (ends, -0.3, report.before.flow[5], report.after.flow[5])
    assert report.time_saved == report.before.total_travel_time - report.after.total_travel_time
