"""Latencies, demand, the generated city, networks from arrays: small laws and clear errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.networks import Demand, Latency, Network, UserClass, generated_city
from pzos.networks.city import ARTERIAL, RING, STREET

POSITIVE = st.floats(0.1, 10.0)


@given(POSITIVE, st.floats(0.0, 3.0), POSITIVE, st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0, 4.9432, 16.8]), POSITIVE)
def test_slope_and_integral_belong_to_the_time(free: float, b: float, capacity: float, power: float, v: float) -> None:
    latency = Latency.bpr([free], [b], [capacity], [power])
    h = 1e-5 * v
    time = [float(latency.time(np.array([v + s * h]))[0]) for s in (-1, 0, 1)]
    area = [float(latency.integral(np.array([v + s * h]))[0]) for s in (-1, 1)]
    assert (time[2] - time[0]) / (2 * h) == pytest.approx(float(latency.slope(np.array([v]))[0]), rel=1e-4, abs=1e-6)
    assert (area[1] - area[0]) / (2 * h) == pytest.approx(time[1], rel=1e-6)
    assert float(latency.integral(np.zeros(1))[0]) == 0.0
    assert free <= float(latency.time(np.zeros(1))[0]) <= time[1]


@given(POSITIVE, st.floats(0.0, 3.0), st.sampled_from([0.0, 1.0, 1.5, 4.0]), st.floats(0.0, 10.0))
def test_marginal_cost_is_time_plus_flow_times_slope(free: float, b: float, power: float, v: float) -> None:
    latency, flow = Latency.bpr([free], [b], [2.0], [power]), np.array([v])
    expected = latency.time(flow) + flow * latency.slope(flow)
    np.testing.assert_allclose(latency.marginal().time(flow), expected, rtol=1e-12)


def test_the_compiled_latency_is_the_same_function() -> None:
    from pzos.networks.latency import FLOW, SLOPE, TIME, refresh

    powers = np.array([0.0, 0.5, 1.0, 1.5, 4.0, 5.1644, 4.0])
    rise_b = np.array([0.3, 1.0, 1.0, 0.2, 0.15, 1e-16, 0.0])
    latency = Latency.bpr(np.linspace(1, 2, 7), rise_b, [3, 3, 3, 3, 3, 1, 3], powers)
    state = np.zeros((7, 3))
    state[:, FLOW] = 5.0
    refresh(latency.law(np.arange(7)), state)
    np.testing.assert_allclose(state[:, TIME], latency.time(state[:, FLOW]), rtol=1e-14)
    np.testing.assert_allclose(state[:, SLOPE], latency.slope(state[:, FLOW]), rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([1.0, -1.0], 0.1, 1.0, 4.0), "free-flow time of link 1"),
        (([1.0], [0.1], [0.0], [4.0]), "capacity of link 0"),
        (([1.0], [0.1], [1.0], [-2.0]), "power of link 0"),
        (([1.0], [np.nan], [1.0], [4.0]), "rise"),
        (([1.0, 2.0, 3.0], [0.1, 0.2], 1.0, 4.0), "b = "),
    ],
)
def test_bad_latencies_are_named(arguments: tuple[object, ...], expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        Latency.bpr(*arguments)


def test_own_latencies_integrate_by_quadrature_or_as_given() -> None:
    base = Latency.affine([1.0, 1.0], [0.0, 0.0])
    own = base.with_own(lambda link, flow: flow**3, lambda link, flow: 3 * flow**2, links=[1])
    np.testing.assert_allclose(own.integral(np.array([2.0, 2.0])), [2.0, 4.0], rtol=1e-12)
    given_one = base.with_own(
        lambda link, flow: flow**3, lambda link, flow: 3 * flow**2, links=[1], integral=lambda link, flow: flow**4 / 4
    )
    np.testing.assert_allclose(given_one.integral(np.array([2.0, 2.0])), [2.0, 4.0], rtol=1e-15)
    with pytest.raises(InvalidInput, match="marginal"):
        own.marginal()
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*cost.*slope"):
        base.with_own(3.0, "x")  # type: ignore[arg-type]


def test_demand_adds_up_and_stays_on_the_road() -> None:
    demand = Demand.from_list([0, 0, 1, 2, 0], [1, 1, 1, 0, 2], [3, 4, 9, 0, 5])
    assert demand.matrix(3).tolist() == [[0, 7, 5], [0, 0, 0], [0, 0, 0]]
    assert demand.total == 12
    assert demand.scaled(0.5).total == 6
    assert Demand.from_matrix(demand.matrix(3)).matrix(3).tolist() == demand.matrix(3).tolist()
    for bad, expected in (
        (lambda: Demand.from_matrix([[1, 2]]), "square"),
        (lambda: Demand.from_list([0], [1], [-1]), r"trips\[0\]"),
        (lambda: Demand.from_list([0], [1, 2], [1]), "equal length"),
        (lambda: Demand.from_list([-1], [1], [1]), "node numbers"),
        (lambda: demand.scaled(0), "factor"),
        (lambda: UserClass(demand, 0.0), "value_of_time"),
    ):
        with pytest.raises(InvalidInput, match=expected):
            bad()


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


def test_a_generated_city_is_a_function_of_its_seed() -> None:
    one, same, other = generated_city(seed=5), generated_city(seed=5), generated_city(seed=6)
    assert np.array_equal(one.latency.base, same.latency.base)
    assert np.array_equal(one.demand.trips, same.demand.trips)
    assert not np.array_equal(one.latency.base, other.latency.base)
    assert set(one.link_type.tolist()) == {STREET, ARTERIAL, RING}
    assert one.coordinates is not None
    # Every street has two directions and the ring is the fastest.
    pairs = set(zip(one.tail.tolist(), one.head.tolist(), strict=True))
    assert pairs == {(b, a) for a, b in pairs}
    speed = one.length / one.latency.base
    assert speed[one.link_type == RING].min() > speed[one.link_type == STREET].max()


def test_a_generated_city_fills_as_asked() -> None:
    for congestion in (0.5, 2.0):
        city = generated_city(6, 8, zones=12, congestion=congestion, seed=1)
        filling = np.average(city.assign(gap=1e-6).flow / city.latency.capacity, weights=city.latency.base)
        assert filling == pytest.approx(0.5 * congestion, rel=0.35)
    with pytest.raises(InvalidInput, match=r"(?s)3 faults.*rows.*zones.*congestion"):
        generated_city(1, 5, zones=9, congestion=-1)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.5038, 5.1644, 16.8])
def test_cities_with_odd_latencies_reach_any_gap(power: float) -> None:
    from pzos.networks import independent_gap

    # As in public files: capacity 1 with a tiny b, links of constant cost, free-flow times of zero.
    city = generated_city(8, 8, zones=20, congestion=0.6 if power > 5 else 1.5, seed=1)
    b = np.where(np.arange(city.links) % 7 == 0, 0.0, 0.15 / city.latency.capacity**power)
    base = np.where(np.arange(city.links) % 11 == 0, 0.0, city.latency.base)
    odd = replace(city, latency=Latency.bpr(base, b, 1.0, power))
    answer = odd.assign(gap=1e-12)
    assert answer.gap <= 1e-12
    assert abs(independent_gap(odd, answer.class_flow)) <= 2e-12


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
