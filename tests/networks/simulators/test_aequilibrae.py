"""AequilibraE, where its extra is installed, and what it is told everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    Latency,
    generated_city,
)
from pzos.networks.simulators import aequilibrae
from pzos.networks.tolls import value_at
from roads import needs, two_roads


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

    network = two_roads()
    if "power" in change:
        network = replace(network, latency=Latency.bpr(1.0, 0.15, [10.0] * 4, change["power"]))
    network = replace(network, first_thru=change.get("first_thru", 0))
    with pytest.raises(InvalidInput, match=expected):
        aequilibrae._check(network, np.asarray(change.get("tolls", np.zeros(4))))
