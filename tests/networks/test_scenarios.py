"""Elastic demand and times of day: networks like any other, with known answers."""

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
    generated_city,
    independent_gap,
    optimise_tolls,
    tariff,
    toll_report,
    with_elastic_demand,
    with_time_slices,
)
from pzos.networks.scenarios import surplus, trips_made
from pzos.networks.search import marginal_cost_trials

ELASTICITY = 0.4


def one_road() -> Network:
    return Network.from_arrays([0], [1], Latency.affine([2.0], [0.0]), Demand.from_list([0], [1], [10.0]))


def test_one_road_has_the_demand_of_the_formula() -> None:
    road = with_elastic_demand(one_road(), ELASTICITY)
    for toll in (0.0, 0.5, 3.0, 9.0):
        state = road.assign(road.tolls_on(np.array([0]), toll))
        trips = max(10.0 * (1.0 + ELASTICITY * (1.0 - (2.0 + toll) / 2.0)), 0.0)
        assert trips_made(state)[0].sum() == pytest.approx(trips, abs=1e-6)
        highest = 2.0 * (1.0 + 1.0 / ELASTICITY)  # at which nobody travels
        assert surplus(state)[0] == pytest.approx(0.5 * trips * max(highest - 2.0 - toll, 0.0), abs=1e-5)
    assert surplus(one_road().assign()) is None


def test_revenue_of_elastic_demand_has_a_best_toll_of_its_own() -> None:
    road = with_elastic_demand(one_road(), ELASTICITY)
    found = optimise_tolls(road.toll_problem([0], "revenue", upper=20.0), 20.0, queries=40, marginal=0)
    assert found.x[0] == pytest.approx(1.0 / ELASTICITY, abs=1e-3)  # x (1 - e x / 2) is largest there
    assert found.capped == found.captive == ()


@pytest.mark.parametrize("closed", [0, 4])
def test_without_tolls_everybody_travels_as_before(closed: int) -> None:
    city = generated_city(4, 4, zones=4, congestion=1.5, seed=1).with_classes([1.0, 2.0])
    city = replace(city, first_thru=closed)
    elastic = with_elastic_demand(city, ELASTICITY)
    before, state = city.assign(), elastic.assign()
    np.testing.assert_allclose(state.flow[: city.links], before.flow, rtol=1e-5, atol=1e-4)
    for made, group in zip(trips_made(state), city.classes, strict=True):
        np.testing.assert_allclose(made, group.demand.trips, rtol=1e-5)
    assert independent_gap(elastic, state.class_flow) < 1e-9
    assert elastic.roads.sum() == city.links
    assert elastic.coordinates.shape == (elastic.nodes, 2)
    dearer = elastic.assign(np.where(elastic.roads, 1.0, 0.0))
    assert sum(made.sum() for made in trips_made(dearer)) < 0.99 * city.demand.total


def test_marginal_cost_tolls_raise_the_surplus_most() -> None:
    city = with_elastic_demand(generated_city(3, 3, zones=4, congestion=1.5, seed=1), ELASTICITY)
    roads = np.flatnonzero(city.roads)
    free = city.assign()
    problem = city.toll_problem(roads, "surplus", x0=0.0, upper=20.0)
    assert problem.sense == "max"
    # tolls that are what each traveller costs the others
    *_, last = marginal_cost_trials(problem, 40)
    external = city.tolls_on(roads, last.x)
    best = city.assign(external)
    report = toll_report(free, best, roads)
    rows = {name: (before, after) for name, before, after in report.rows()}
    assert rows["trips made"][1] < rows["trips made"][0]
    value = [problem.leader.value(x, state.flow) for x, state in ((external[roads], best), (0 * roads, free))]
    # the leader is the surplus of travellers and treasury, up to a constant
    assert value[0] - value[1] == pytest.approx(report.net_benefit, rel=1e-6)
    assert report.net_benefit > 0
    assert rows["surplus (money), all"][1] - rows["surplus (money), all"][0] == pytest.approx(report.user_benefit)
    for factor in (0.6, 1.5):
        other = city.assign(factor * external)
        assert problem.leader.value(factor * external[roads], other.flow) < value[0]


def test_times_of_day_are_solved_side_by_side() -> None:
    city = replace(generated_city(3, 3, zones=4, congestion=1.5, seed=2), first_thru=2)
    day = with_time_slices(city, {"morning": 1.0, "noon": 0.5})
    state = day.assign(gap=1e-12)
    half = replace(city, classes=tuple(replace(c, demand=c.demand.scaled(0.5)) for c in city.classes))
    np.testing.assert_allclose(state.flow[: city.links], city.assign(gap=1e-12).flow, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(state.flow[city.links :], half.assign(gap=1e-12).flow, rtol=1e-6, atol=1e-5)
    assert np.unique(day.node_ids).size == day.nodes
    plan = tariff(day, {"all day": [3, 3 + city.links], "noon": [5 + city.links]})
    found = pzos.solve(day.toll_problem(plan, "revenue", upper=5.0), queries=8, certificate=False, progress=False)
    assert found.best_x.size == 2


def test_what_cannot_be_is_said() -> None:
    own = one_road()
    own = replace(own, latency=own.latency.with_own(lambda link, v: 1.0 + v, lambda link, v: 1.0))
    with pytest.raises(InvalidInput, match="elasticity"):
        with_elastic_demand(one_road(), 0.0)
    with pytest.raises(InvalidInput, match="own functions"):
        with_elastic_demand(own, 0.3)
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*shares\['noon'\].*own functions"):
        with_time_slices(own, {"noon": -1.0})
    with pytest.raises(InvalidInput, match="time of day"):
        with_time_slices(one_road(), {})
