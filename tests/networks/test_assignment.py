"""Equilibria: known optima, laws of flows and costs, and what is refused."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput, NotConverged
from pzos.networks import (
    AboveGap,
    Demand,
    Latency,
    NegativeCycle,
    Network,
    References,
    UserClass,
    flow_imbalance,
    generated_city,
    independent_gap,
)
from roads import braess, parallel, pigou, road_networks, water_filling

KNOWN = {"SiouxFalls": 42.31335287107440e5, "Anaheim": 1286032.17109602, "Chicago-Sketch": 17313018.7387477}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 5)), min_size=1, max_size=6), st.floats(0.1, 50))
def test_parallel_affine_links_fill_like_water(links: list[tuple[float, float]], trips: float) -> None:
    intercept, slope = np.array(links).T
    found = parallel(Latency.affine(intercept, slope), trips).assign(gap=1e-13).flow
    expected = water_filling(intercept, slope, trips)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * trips)


def test_braess_paradox_has_its_textbook_flows() -> None:
    answer = braess().assign()
    np.testing.assert_allclose(answer.flow, [4, 2, 2, 2, 4], rtol=1e-9)
    assert answer.objective == pytest.approx(386.0, rel=1e-12)
    assert answer.total_travel_time == pytest.approx(6 * 92, rel=1e-9)
    assert {round(path.cost, 6) for path in answer.paths()} == {92.0}


@pytest.mark.parametrize("name", ["SiouxFalls", "Anaheim", "Eastern-Massachusetts", "Chicago-Sketch"])
def test_public_networks_reach_their_known_optima(public, tntp, name: str) -> None:
    from pzos.networks import read_tntp_flow

    network = public(name)
    answer = network.assign(gap=1e-12)
    assert answer.gap <= 1e-12
    assert abs(independent_gap(network, answer.class_flow)) <= 2e-12
    if name in KNOWN:
        assert answer.objective == pytest.approx(KNOWN[name], rel=1e-12)
        volume, cost = read_tntp_flow(tntp(name, "flow"), network)
        unique = network.latency.rise > 0
        np.testing.assert_allclose(answer.flow[unique], volume[unique], atol=1e-4)
        np.testing.assert_allclose(answer.cost[0], cost, rtol=1e-8)


def test_the_answer_is_a_function_of_the_tolls_on_any_thread(city: Network) -> None:
    tolls = np.random.default_rng(0).uniform(0, 2, (6, city.links))
    alone = [city.assign(row).flow for row in tolls]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda row: city.assign(row).flow, tolls[::-1]))[::-1]
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_the_bits_are_the_same_for_any_number_of_threads() -> None:
    """As many groups as make batches of several origins: 12 zones, 8 classes."""
    city = generated_city(4, 4, zones=12, congestion=2.0, seed=4).with_classes(np.linspace(0.5, 4.0, 8))
    for tolls in np.linspace(0.0, 0.5, city.links), np.linspace(-0.05, 0.5, city.links):
        alone = city.assign(tolls)
        warm = city.assign(0.5 * tolls, reference=alone)
        for threads in (2, 5):
            together = city.assign(tolls, threads=threads)
            assert np.array_equal(together.class_flow, alone.class_flow)
            assert (together.gap, together.rounds) == (alone.gap, alone.rounds)
            assert np.array_equal(city.assign(0.5 * tolls, reference=together, threads=threads).flow, warm.flow)
    with pytest.raises(InvalidInput, match=r"threads = 0: expected a whole number"):
        city.assign(threads=0)


def test_a_query_from_a_reference_is_a_function_of_the_tolls_in_any_order_and_process(city: Network) -> None:
    tolls = np.random.default_rng(0).uniform(0, 2, (4, city.links))
    free = city.assign()
    kept = free.class_flow.copy()
    warm = [city.assign(row, reference=free).flow for row in tolls]
    again = [city.assign(row, reference=free).flow for row in tolls[::-1]][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(warm, again, strict=True))
    elsewhere: Network = pickle.loads(pickle.dumps(city))
    assert np.array_equal(elsewhere.assign(tolls[0], reference=elsewhere.assign()).flow, warm[0])
    for row, flow in zip(tolls, warm, strict=True):
        np.testing.assert_allclose(flow, city.assign(row).flow, rtol=1e-4, atol=1e-2)
    assert np.array_equal(city.assign(reference=free).flow, free.flow)
    assert np.array_equal(free.class_flow, kept)
    with pytest.raises(InvalidInput, match=r"reference.*an equilibrium of this network"):
        replace(city, name="other").assign(reference=free)


def test_a_query_from_several_references_starts_near_and_knows_the_detours(city: Network) -> None:
    tolls = np.zeros((3, city.links))
    tolls[1:, city.assign().flow.argmax()] = 1.0, 1.5
    free, there = (city.assign(row) for row in tolls[:2])
    both = References((free, there))
    fresh = city.assign(tolls[2])
    for threads in (1, 2):
        found = city.assign(tolls[2], reference=both, threads=threads)
        assert found.rounds < fresh.rounds
        assert independent_gap(city, found.class_flow, tolls[2]) <= 1e-10
        np.testing.assert_allclose(found.flow, fresh.flow, rtol=1e-4, atol=1e-2)
        assert np.array_equal(city.assign(tolls[0], reference=both, threads=threads).flow, free.flow)
        assert np.array_equal(city.assign(tolls[1], reference=both, threads=threads).flow, there.flow)
    assert np.array_equal(city.assign(tolls[2], reference=both).flow, found.flow)
    with pytest.raises(InvalidInput, match=r"reference.*an equilibrium of this network"):
        replace(city, name="other").assign(reference=both)
    with pytest.raises(InvalidInput, match=r"answers.*equilibria of one network"):
        References((free, replace(city, name="other").assign()))


def test_equal_classes_are_one_class(city: Network) -> None:
    tolls = np.linspace(0, 2, city.links)
    one, three = city.assign(tolls), city.with_classes([1.0, 1.0, 1.0]).assign(tolls)
    np.testing.assert_allclose(three.flow, one.flow, rtol=1e-5, atol=1e-3)
    assert three.objective == pytest.approx(one.objective, rel=1e-9)
    assert three.revenue == pytest.approx(one.revenue, rel=1e-6)


def test_the_rich_pay_and_the_poor_drive_round() -> None:
    latency = Latency.affine([1.0, 2.0], [0.01, 0.01])
    classes = [
        UserClass(Demand.from_list([0], [1], [50.0]), worth, name) for worth, name in ((10.0, "rich"), (0.1, "poor"))
    ]
    network = Network.from_arrays([0, 0], [1, 1], latency, classes)
    answer = network.assign([1.0, 0.0])
    np.testing.assert_allclose(answer.class_flow, [[50, 0], [0, 50]], atol=1e-9)
    assert answer.revenue == pytest.approx(50.0)
    assert answer.total_travel_time == pytest.approx(50 * 1.5 + 50 * 2.5)


def test_tolls_may_differ_by_class() -> None:
    network = parallel(Latency.affine([1.0, 1.0], [0.0, 0.0]), 10.0).with_classes([1.0, 1.0])
    answer = network.assign([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(answer.class_flow, [[0, 5], [5, 0]])
    assert answer.revenue == 0.0


def test_closed_zones_are_not_passed_through() -> None:
    tail, head = [0, 2, 0, 3, 2, 1], [2, 1, 3, 1, 0, 2]  # node 2 is cheap but closed
    times = [1.0, 1.0, 5.0, 5.0, 1.0, 1.0]
    demand = Demand.from_list([0, 0], [1, 2], [4.0, 3.0])
    open_city = Network.from_arrays(tail, head, Latency.affine(times, 0.0), demand, zones=3)
    closed = replace(open_city, first_thru=3)
    np.testing.assert_array_equal(open_city.assign().flow, [7, 4, 0, 0, 0, 0])
    np.testing.assert_array_equal(closed.assign().flow, [3, 0, 4, 4, 0, 0])
    assert independent_gap(closed, closed.assign().flow) == 0.0


def test_zero_free_flow_times_and_constant_links_are_fine() -> None:
    tail, head = [0, 1, 1, 2], [1, 2, 2, 3]
    latency = Latency.bpr([0.0, 1.0, 2.0, 0.0], [0.15, 1.0, 0.0, 0.0], [10.0, 10.0, 10.0, 1.0], [4.0, 2.0, 4.0, 0.0])
    answer = Network.from_arrays(tail, head, latency, Demand.from_list([0], [3], [15.0])).assign(gap=1e-13)
    np.testing.assert_allclose(answer.flow, [15, 10, 5, 15], rtol=1e-6)


def test_subsidies_are_fine_and_negative_cycles_are_named(city: Network) -> None:
    there = city.link_number((int(city.node_ids[city.tail[0]]), int(city.node_ids[city.head[0]])))
    tolls = np.zeros(city.links)
    tolls[there] = -0.5 * city.latency.base[there]
    assert independent_gap(city, city.assign(tolls).class_flow, tolls) <= 2e-10
    tolls[there] = -100.0
    with pytest.raises(NegativeCycle) as caught:
        city.assign(tolls)
    ends = {int(city.node_ids[city.tail[there]]), int(city.node_ids[city.head[there]])}
    assert ends <= set(caught.value.nodes)
    assert caught.value.nodes[0] == caught.value.nodes[-1]
    assert " -> ".join(str(node) for node in caught.value.nodes) in str(caught.value)


def test_a_cycle_that_traffic_closes_is_no_error() -> None:
    # At free flow 1 -> 2 -> 1 costs 1 + 1 - 3 < 0; with traffic on 1 -> 2 it costs more than zero.
    latency = Latency.affine([1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 0.0, 0.0])
    network = Network.from_arrays([0, 1, 2, 2], [1, 2, 1, 3], latency, Demand.from_list([0], [3], [10.0]))
    answer = network.assign([0.0, -3.0, 0.0, 0.0])
    np.testing.assert_array_equal(answer.flow, [10, 10, 0, 10])


def test_a_general_power_below_and_above_one() -> None:
    for power in (0.5, 1.5, 7.3):
        network = parallel(Latency.bpr([1.0, 2.0], [1.0, 0.3], [3.0, 4.0], power), 8.0)
        answer = network.assign(gap=1e-12)
        assert answer.time[0] == pytest.approx(answer.time[1], rel=1e-10)


def test_an_answer_above_the_gap_is_refused(city: Network) -> None:
    with pytest.raises(AboveGap, match=r"relative gap .* asked for 1.0e-10") as caught:
        city.assign(rounds=1)
    assert isinstance(caught.value, NotConverged)
    assert caught.value.gap > 1e-10
    partial = city.assign(rounds=1, above_gap="return")
    assert not partial.converged
    assert partial.gap == caught.value.gap


def test_all_faults_of_a_call_are_told_at_once(city: Network) -> None:
    with pytest.raises(InvalidInput, match=r"(?s)2 faults.*gap.*rounds"):
        city.assign(gap=0.0, rounds=0)
    with pytest.raises(InvalidInput, match="tolls"):
        city.assign([1.0, 2.0])
    bad = np.zeros(city.links)
    bad[3] = np.nan
    with pytest.raises(InvalidInput, match=r"tolls\[3\]"):
        city.assign(bad)


def test_paths_add_up_and_skims_are_shortest(city: Network) -> None:
    two = city.with_classes([0.5, 2.0])
    tolls = np.linspace(0, 1, city.links)
    answer = two.assign(tolls)
    added = np.zeros_like(answer.class_flow)
    skims = [answer.skim(0), answer.skim(1)]
    for path in answer.paths():
        np.add.at(added[path.user_class], path.links, path.flow)
        assert two.tail[path.links[0]] == path.origin
        assert two.head[path.links[-1]] == path.destination
        assert np.array_equal(two.head[path.links[:-1]], two.tail[path.links[1:]])
        assert path.cost == pytest.approx(skims[path.user_class][path.origin, path.destination], rel=1e-5)
    np.testing.assert_allclose(added, answer.class_flow, rtol=1e-12)
    np.testing.assert_allclose(answer.class_flow.sum(axis=0), answer.flow, rtol=1e-12)
    length = answer.skim(0, links=city.length)
    assert np.all(length[np.isfinite(length)] >= 0)
    assert answer.total_cost > answer.total_travel_time


def test_system_optimum_is_the_equilibrium_under_its_own_tolls(city: Network) -> None:
    best, free = city.system_optimum(), city.assign()
    assert best.total_travel_time < free.total_travel_time
    tolled = city.assign(best.tolls)
    np.testing.assert_allclose(tolled.flow, best.flow, rtol=1e-4, atol=1e-2)
    assert tolled.total_travel_time == pytest.approx(best.total_travel_time, rel=1e-9)


def test_a_tight_gap_makes_differences_exact(city: Network) -> None:
    rng = np.random.default_rng(1)
    direction = rng.standard_normal(city.links)
    direction /= np.linalg.norm(direction)
    fine = city.assign(0.5 * direction, gap=1e-13).flow - city.assign(-0.5 * direction, gap=1e-13).flow
    usual = city.assign(0.5 * direction).flow - city.assign(-0.5 * direction).flow
    assert np.linalg.norm(usual - fine) <= 1e-3 * np.linalg.norm(fine)


# ---- laws on networks drawn at random -------------------------------------------------------------------------

LAWS = settings(max_examples=25, deadline=None)


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    """Flows are as exact as the square root of the gap: the objective is flat at its minimum."""
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@LAWS
@given(road_networks(), st.lists(st.floats(0.2, 5.0), min_size=1, max_size=3))
def test_flows_carry_the_demand_and_used_paths_are_cheapest(network: Network, worths: list[float]) -> None:
    classes = network.with_classes(worths)
    tolls = 0.1 * np.arange(network.links)
    answer = classes.assign(tolls, gap=1e-11)
    assert flow_imbalance(classes, answer.class_flow) <= 1e-12
    assert np.all(answer.flow >= 0.0)
    skims = [answer.skim(kind) for kind in range(len(worths))]
    carried = np.zeros((len(worths), network.nodes, network.nodes))
    for path in answer.paths():
        carried[path.user_class, path.origin, path.destination] += path.flow
        above = path.cost - skims[path.user_class][path.origin, path.destination]
        assert above >= -1e-12 * path.cost
        assert path.flow * above <= 1e-10 * answer.total_cost  # all excess together is within the gap
    for kind, group in enumerate(classes.classes):
        np.testing.assert_allclose(carried[kind], group.demand.matrix(network.nodes), rtol=1e-12)


@LAWS
@given(road_networks(), st.randoms(use_true_random=False))
def test_the_order_of_the_links_does_not_matter(network: Network, luck) -> None:
    order = list(range(network.links))
    luck.shuffle(order)
    latency = network.latency
    mixed = Latency(*(part[order] for part in (latency.base, latency.rise, latency.capacity, latency.power)))
    other = Network.from_arrays(network.tail[order], network.head[order], mixed, network.demand, nodes=network.nodes)
    assert_close(other.assign(gap=1e-12).flow, network.assign(gap=1e-12).flow[order])


@LAWS
@given(road_networks(), st.randoms(use_true_random=False))
def test_the_numbers_of_the_nodes_do_not_matter(network: Network, luck) -> None:
    new = list(range(network.nodes))
    luck.shuffle(new)
    name, demand = np.array(new), network.demand
    moved = Demand.from_list(name[demand.origin], name[demand.destination], demand.trips)
    other = Network.from_arrays(name[network.tail], name[network.head], network.latency, moved, nodes=network.nodes)
    assert_close(other.assign(gap=1e-12).flow, network.assign(gap=1e-12).flow)


@LAWS
@given(road_networks(), st.floats(0.05, 0.95), st.floats(0.2, 5.0))
def test_splitting_a_class_in_two_changes_nothing(network: Network, share: float, worth: float) -> None:
    tolls = 0.2 * (np.arange(network.links) % 3)
    whole = network.with_classes([worth]).assign(tolls, gap=1e-12)
    split = network.with_classes([worth, worth], [share, 1.0 - share]).assign(tolls, gap=1e-12)
    assert_close(split.flow, whole.flow)
    assert split.objective == pytest.approx(whole.objective, rel=1e-10)


@LAWS
@given(road_networks(), st.floats(1.01, 3.0))
def test_more_demand_costs_more(network: Network, factor: float) -> None:
    busier = replace(network, classes=tuple(replace(c, demand=c.demand.scaled(factor)) for c in network.classes))
    less, more = network.assign(gap=1e-11), busier.assign(gap=1e-11)
    assert more.total_travel_time > less.total_travel_time
    assert more.objective > less.objective


@LAWS
@given(road_networks(), st.floats(0.1, 10.0))
def test_the_unit_of_time_does_not_matter(network: Network, unit: float) -> None:
    latency = network.latency
    scaled = replace(network, latency=replace(latency, base=unit * latency.base, rise=unit * latency.rise))
    tolls = 0.3 * (np.arange(network.links) % 4)
    assert_close(scaled.assign(unit * tolls, gap=1e-12).flow, network.assign(tolls, gap=1e-12).flow)


@LAWS
@given(road_networks(), st.lists(st.floats(-5.0, 5.0), min_size=6, max_size=6))
def test_tolls_that_telescope_move_nobody(network: Network, height: list[float]) -> None:
    """Tolls  height(head) - height(tail)  cost every way between two nodes the same, though links may cost below 0."""
    climb = np.array(height)[network.head] - np.array(height)[network.tail]
    free, climbing = network.assign(gap=1e-12), network.assign(climb, gap=1e-12)
    assert_close(climbing.flow, free.flow)
    assert abs(independent_gap(network, climbing.class_flow, climb)) <= 2e-12


@LAWS
@given(road_networks(), st.floats(0.2, 5.0))
def test_value_of_time_and_tolls_cancel(network: Network, worth: float) -> None:
    tolls = 0.25 * (np.arange(network.links) % 5)
    assert_close(
        network.with_classes([worth]).assign(worth * tolls, gap=1e-12).flow, network.assign(tolls, gap=1e-12).flow
    )


@LAWS
@given(road_networks(), st.floats(0.0, 3.0))
def test_nothing_beats_the_system_optimum_nor_the_equilibrium_in_its_objective(network: Network, toll: float) -> None:
    best, free = network.system_optimum(1e-12), network.assign(gap=1e-12)
    tolled = network.assign(toll * (np.arange(network.links) % 2), gap=1e-12)
    for other in (free, tolled):
        assert best.total_travel_time <= other.total_travel_time * (1 + 1e-9)
    beckmann = [sum(network.latency.integral(each.flow)) for each in (free, best, tolled)]
    assert beckmann[0] <= min(beckmann[1:]) * (1 + 1e-9)


@LAWS
@given(road_networks())
def test_a_free_new_road_beside_every_road_halves_nothing_but_the_load(network: Network) -> None:
    """Two copies of every road share its flow: the same times as one road of twice the capacity."""
    latency = network.latency
    twice = [np.tile(part, 2) for part in (latency.base, latency.rise, latency.capacity, latency.power)]
    doubled = Network.from_arrays(
        np.tile(network.tail, 2), np.tile(network.head, 2), Latency(*twice), network.demand, nodes=network.nodes
    )
    wide = replace(network, latency=replace(latency, capacity=2.0 * latency.capacity))
    pairs, wider = doubled.assign(gap=1e-12), wide.assign(gap=1e-12)
    assert_close(pairs.flow[: network.links] + pairs.flow[network.links :], wider.flow)
    assert pairs.total_travel_time == pytest.approx(wider.total_travel_time, rel=1e-6)


def test_pigou_by_hand() -> None:
    free, best = pigou().assign(gap=1e-14), pigou().system_optimum(1e-14)
    np.testing.assert_allclose(free.flow, [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(best.flow, [0.5, 0.5], atol=1e-12)
    assert (free.total_travel_time, best.total_travel_time) == pytest.approx((1.0, 0.75))
    np.testing.assert_allclose(best.tolls, [[0.0, 0.5]], atol=1e-12)
    assert best.revenue == pytest.approx(0.25)
    assert free.objective == pytest.approx(0.5)


def test_removing_the_short_cut_of_braess_helps_everyone() -> None:
    with_it = braess().assign().total_travel_time
    closed = braess().assign([0.0, 0.0, 0.0, 1e3, 0.0]).total_travel_time
    assert (with_it, closed) == pytest.approx((6 * 92.0, 6 * 83.0))


def test_skims_add_up_any_quantity_along_the_cheapest_ways(city: Network) -> None:
    answer = city.assign()
    costs, lengths = answer.skim(), answer.skim(links=city.length)
    hops = answer.skim(links=np.ones(city.links))
    assert np.all(np.diag(costs) == 0.0)
    off = ~np.eye(city.zones, dtype=bool)
    assert np.all(hops[off] >= 1.0)
    np.testing.assert_array_equal(hops, np.round(hops))
    assert np.all(lengths[off] <= hops[off] * city.length.max() + 1e-9)
    for path in answer.paths():
        assert costs[path.origin, path.destination] <= path.cost * (1 + 1e-9)
    one_way = Network.from_arrays([0], [1], Latency.affine([2.0], [0.0]), Demand.from_list([0], [1], [1.0]))
    assert one_way.assign().skim().tolist() == [[0.0, 2.0], [np.inf, 0.0]]


def test_the_largest_toll_of_a_link_keeps_its_sign() -> None:
    network = parallel(Latency.affine([1.0, 1.0], [1.0, 1.0]), 4.0).with_classes([1.0, 1.0])
    answer = network.assign([[0.5, -0.1], [-0.2, -0.3]])
    assert answer.largest_toll.tolist() == [0.5, -0.3]


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        ({"gap": 1.0}, "gap = 1.0: expected a number between 0 and 1; 1e-10 is usual, 1e-14 about the end"),
        ({"rounds": 0}, "rounds = 0: expected a whole number, 1 or more; 400 is usual"),
        ({"gap": "x"}, "gap = 'x': expected a number between 0 and 1"),
        ({"rounds": "x"}, "rounds = 'x': expected a whole number, 1 or more"),
        ({"above_gap": np.ones(2)}, "expected 'raise' or 'return'; choose one"),
        ({"tolls": "x"}, "tolls = 'x': expected an array of numbers"),
        ({"above_gap": "shrug"}, "above_gap = 'shrug': expected 'raise' or 'return'; choose one"),
        ({"tolls": [[1.0, 2.0, 3.0]]}, "expected 2 numbers (or 1 rows); one toll per link"),
        ({"tolls": [np.inf, 0.0]}, "tolls[0] = inf: expected finite numbers; check the tolls"),
    ],
)
def test_what_assign_refuses(settings_: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        pigou().assign(**settings_)
    assert expected in str(caught.value)
