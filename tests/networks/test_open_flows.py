"""What an equilibrium leaves open: ties of constant cost, and classes; and who is told."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.networks import Demand, Latency, Network, optimise_tolls


def two_ways(times: list[float], slopes: list[float], **options: object) -> Network:
    """Ten travellers and parallel links from 0 to 1."""
    latency = Latency.affine(times, slopes)
    ends = np.zeros(len(times), np.int64)
    return Network.from_arrays(ends, ends + 1, latency, Demand.from_list([0], [1], [10.0]), **options)


def test_ties_of_constant_cost_are_open_and_named_also_where_nobody_drives() -> None:
    found = two_ways([1.0, 1.0, 2.0, 0.5], [0.0, 0.0, 0.0, 1.0]).assign().open_flows
    assert found.links.tolist() == [0, 1]  # the third is dearer, the fourth rises until it costs 1
    assert found.change.sum() == pytest.approx(0.0, abs=1e-12)
    assert found.sentences() == [
        "the flow of 2 links (0 → 1 (link 0), 0 → 1 (link 1)) is not determined: ways of constant cost tie there"
    ]


def test_one_constant_way_against_a_rising_one_is_determined() -> None:
    found = two_ways([1.0, 0.0], [0.0, 1.0]).assign().open_flows
    assert not found
    assert found.sentences() == []


def test_classes_that_share_two_ways_are_open_but_the_flow_of_both_is_not() -> None:
    network = two_ways([1.0, 0.0], [0.5, 1.0]).with_classes([1.0, 2.0], names=["slow", "fast"])
    found = network.assign().open_flows
    assert found.links.size == 0
    assert [links.tolist() for links in found.by_class] == [[0, 1], [0, 1]]
    assert "class 'slow'" in found.sentences()[0]
    tolled = network.assign([3.0, 0.0]).open_flows  # at most one of the classes uses both ways
    assert not tolled


def test_a_sum_of_flows_is_open_only_where_what_is_open_does_not_cancel() -> None:
    found = two_ways([1.0, 1.0], [0.0, 0.0]).assign().open_flows
    assert not found.matter(np.array([2.0, 2.0]))
    assert found.matter(np.array([2.0, 1.0]))


def test_a_leader_whose_value_travellers_decide_who_do_not_care_is_told(caplog: pytest.LogCaptureFixture) -> None:
    network = two_ways([1.0, 2.0], [0.0, 0.0])
    problem = network.toll_problem([0], "revenue", lower=1.0, upper=1.0, x0=1.0)  # the toll at which both ways cost 2
    found = optimise_tolls(problem, 1.0, queries=10, uniform=2, marginal=0)
    assert found.open_value
    assert "do not care" in caplog.text
    caplog.clear()
    untied = network.toll_problem([0], "revenue", lower=0.5, upper=0.5, x0=0.5)
    assert not optimise_tolls(untied, 1.0, queries=10, uniform=2, marginal=0).open_value
    assert caplog.text == ""


def test_a_leader_that_counts_payers_of_one_class_is_told() -> None:
    network = two_ways([1.0, 0.0], [0.5, 1.0]).with_classes([1.0, 1.0])
    half = network.toll_problem([0], "revenue", classes=[0], lower=1.0, upper=1.0, x0=1.0)
    assert not optimise_tolls(half, 1.0, queries=10, uniform=2, marginal=0).open_value  # the toll tells them apart
    free = network.toll_problem([0], lambda x, y: (y[2], np.zeros(1), np.eye(3)[2]), classes=[0], lower=0.0, upper=0.0)
    assert optimise_tolls(free, 1.0, queries=10, uniform=2, marginal=0).open_value


def test_tiny_tolls_move_only_what_is_named_on_winnipeg(public) -> None:
    network = public("Winnipeg")
    before = network.assign(gap=1e-11)
    tolls = np.random.default_rng(0).uniform(0.0, 1e-9, network.links)
    moved = np.abs(network.assign(tolls, gap=1e-11).flow - before.flow)
    named = np.isin(np.arange(network.links), before.open_flows.links)
    assert moved[named].max() > 100.0
    assert moved[~named].max() < 1e-3
