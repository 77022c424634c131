"""Bushes find the equilibria that paths find, and hand out flows, paths, derivatives and open flows alike."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.networks import Network, assignment, generated_city, independent_gap
from pzos.networks.assignment import AboveGap, Assignment
from pzos.networks.equilibrium.bushes import BushEquilibration

GAP = 1e-9


@pytest.fixture(autouse=True)
def always_bushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "MOST_PAIRS_FOR_PATHS", 0)


def by_paths(network: Network, tolls: object, monkeypatch: pytest.MonkeyPatch) -> Assignment:
    with monkeypatch.context() as patched:
        patched.setattr(assignment, "MOST_PAIRS_FOR_PATHS", 10**9)
        return network.assign(tolls, gap=1e-11)


@pytest.fixture(scope="module")
def two_classes() -> Network:
    return generated_city(5, 5, zones=9, congestion=1.5, seed=5).with_classes([0.5, 2.0])


def test_flows_are_those_of_paths(two_classes: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    tolls = np.where(np.arange(two_classes.links) % 7 == 0, 1.5, 0.0)
    found, other = two_classes.assign(tolls, gap=GAP), by_paths(two_classes, tolls, monkeypatch)
    assert isinstance(found._outcome, BushEquilibration)
    assert not isinstance(other._outcome, BushEquilibration)
    assert independent_gap(two_classes, found.class_flow, tolls) == pytest.approx(found.gap, abs=1e-12)
    assert np.abs(found.flow - other.flow).max() < 1e-2 * other.flow.max()
    assert found.objective == pytest.approx(other.objective, rel=2 * GAP)


def test_public_networks_have_the_flows_of_paths(public, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chicago-Sketch: flow that rounding left behind an empty node once stopped it at 2e-6."""
    network = public("Chicago-Sketch")
    found, other = network.assign(gap=1e-8), by_paths(network, None, monkeypatch)
    assert independent_gap(network, found.class_flow) == pytest.approx(found.gap, rel=1e-3, abs=1e-12)
    assert found.objective == pytest.approx(other.objective, rel=1e-8)


def test_the_answer_has_the_same_bits_and_a_warm_one_needs_fewer_rounds(city: Network) -> None:
    tolls = np.full(city.links, 0.05)
    free = city.assign(gap=GAP)
    cold, again = (city.assign(tolls, gap=GAP) for _ in range(2))
    warm = city.assign(tolls, gap=GAP, reference=free)
    assert np.array_equal(cold.flow, again.flow)
    assert warm.rounds < cold.rounds
    assert warm.objective == pytest.approx(cold.objective, rel=2 * GAP)
    assert np.array_equal(free.flow, city.assign(gap=GAP).flow)  # and the reference is as it was


def test_paths_carry_the_demand_at_least_cost(two_classes: Network) -> None:
    found = two_classes.assign(gap=GAP)
    carried = np.zeros((len(two_classes.classes), two_classes.links))
    for path in found.paths():
        carried[path.user_class, path.links] += path.flow
        assert two_classes.tail[path.links[0]] == path.origin
        assert two_classes.head[path.links[-1]] == path.destination
    assert carried == pytest.approx(found.class_flow, rel=1e-9, abs=1e-9)
    trips = sum(group.demand.total for group in two_classes.classes)
    assert sum(path.flow for path in found.paths()) == pytest.approx(trips, rel=1e-12)


def test_derivatives_and_open_flows_are_those_of_paths(city: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    found, other = city.assign(gap=1e-10), by_paths(city, None, monkeypatch)
    weights = np.sin(np.arange(city.links))
    expected = other.jacobian().transpose(weights)
    assert found.jacobian().transpose(weights) == pytest.approx(expected, abs=1e-3 * np.abs(expected).max())
    halves = city.with_classes([1.0, 1.0])
    mine, theirs = halves.assign(gap=GAP).open_flows, by_paths(halves, None, monkeypatch).open_flows
    assert mine.by_class[0].size > 0
    assert [links.tolist() for links in mine.by_class] == [links.tolist() for links in theirs.by_class]


def test_subsidies_are_left_to_paths(city: Network) -> None:
    tolls = np.zeros(city.links)
    tolls[0] = -0.01
    assert not isinstance(city.assign(tolls, reference=city.assign(gap=1e-4))._outcome, BushEquilibration)


def test_rounds_that_do_not_suffice_are_said(city: Network) -> None:
    with pytest.raises(AboveGap, match="after 1 rounds"):
        city.assign(gap=1e-12, rounds=1)
