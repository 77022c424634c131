"""The generated city."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.networks import (
    generated_city,
)
from pzos.networks.city import ARTERIAL, RING, STREET


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
