"""Small road networks, oracles and simulators that the tests of networks share."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from pzos.base.keys import Keys, Role
from pzos.networks import Demand, Latency, Network
from pzos.networks.simulators.traffic import Simulator, Traffic


def braess(trips: float = 6.0) -> Network:
    """Return Braess' network: two equal ways from 0 to 1 and a short cut between them."""
    latency = Latency.affine([0, 50, 50, 10, 0], [10, 1, 1, 1, 10])
    return Network.from_arrays([0, 0, 2, 2, 3], [2, 3, 1, 3, 1], latency, Demand.from_list([0], [1], [trips]))


def parallel(latency: Latency, trips: float, **more: object) -> Network:
    """Return two nodes joined by parallel links."""
    links = len(latency)
    return Network.from_arrays([0] * links, [1] * links, latency, Demand.from_list([0], [1], [trips]), **more)


@st.composite
def road_networks(draw: st.DrawFn, least_power: float = 1.0) -> Network:
    """Draw a small network in which every node reaches every other: a ring in both directions, and short cuts.

    Numbers are coarse, so that a found example can be read; all times rise with flow, so that flows are unique.
    """
    nodes = draw(st.integers(3, 6))
    ring = [(i, (i + 1) % nodes) for i in range(nodes)]
    cuts = draw(st.lists(st.sampled_from([(a, b) for a in range(nodes) for b in range(nodes) if a != b]), max_size=6))
    ends = np.array([*ring, *((b, a) for a, b in ring), *cuts])
    links = len(ends)
    rows = st.tuples(
        st.integers(1, 20), st.integers(1, 8), st.integers(1, 10), st.sampled_from([least_power, 2.0, 4.0])
    )
    free, b, capacity, power = np.array(draw(st.lists(rows, min_size=links, max_size=links)), dtype=np.float64).T
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(1, nodes - 1), st.integers(1, 12))
    trips = np.array(draw(st.lists(pairs, min_size=1, max_size=5)))
    demand = Demand.from_list(trips[:, 0], (trips[:, 0] + trips[:, 1]) % nodes, trips[:, 2])
    latency = Latency.bpr(free / 4, b / 8, capacity, power)
    return Network.from_arrays(ends[:, 0], ends[:, 1], latency, demand, nodes=nodes, zones=nodes, length=capacity)


def water_filling(intercept: np.ndarray, slope: np.ndarray, trips: float) -> np.ndarray:
    """Return the exact equilibrium of parallel affine links: the cheapest k links share one cost."""
    order = np.argsort(intercept)
    for k in range(1, order.size + 1):
        used = order[:k]
        level = (trips + np.sum(intercept[used] / slope[used])) / np.sum(1 / slope[used])
        if k == order.size or level <= intercept[order[k]]:
            break
    return np.maximum((level - intercept) / slope, 0.0)


def pigou(trips: float = 1.0) -> Network:
    """Return a constant road of time 1 beside one of time v."""
    return Network.from_arrays(
        [0, 0], [1, 1], Latency.affine([1.0, 0.0], [0.0, 1.0]), Demand.from_list([0], [1], [trips])
    )


def two_roads(trips: float = 2400.0) -> Network:
    """Return a short and a longer road between two places, each wide enough for half of the trips."""
    tail, head = [0, 2, 0, 3], [2, 1, 3, 1]
    latency = Latency.bpr([1.0, 1.0, 1.5, 1.5], 0.15, 1500.0, 4.0)
    places = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [1.0, -0.8]]
    demand = Demand.from_list([0], [1], [trips])
    return Network.from_arrays(tail, head, latency, demand, length=[1.0, 1.0, 1.3, 1.3], coordinates=places)


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


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    """Skip, with the reason, where an extra is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (extra {extra})")


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
