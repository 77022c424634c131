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


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 7), (5, 4)])
def test_a_grid_has_its_streets(rows: int, columns: int) -> None:
    city = generated_city(rows, columns, zones=3, seed=1)
    assert city.nodes == rows * columns
    assert city.links == 2 * (rows * (columns - 1) + columns * (rows - 1))
    assert city.zones == 3
    assert city.demand.trips.size == 6  # every zone to every other
    assert city.coordinates is not None
    apart = np.linalg.norm(city.coordinates[city.tail] - city.coordinates[city.head], axis=1)
    np.testing.assert_allclose(city.length, apart)
    assert city.name == f"generated city {rows}x{columns}, seed 1"
    assert np.isfinite(city.assign(gap=1e-6).skim()).all()


def test_congestion_scales_the_trips_alone() -> None:
    calm, busy = (generated_city(4, 4, zones=5, congestion=c, seed=9) for c in (1.0, 3.0))
    np.testing.assert_allclose(busy.demand.trips, 3.0 * calm.demand.trips)
    np.testing.assert_array_equal(busy.latency.base, calm.latency.base)
    np.testing.assert_array_equal(busy.tail, calm.tail)


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        ({"zones": 1}, "zones = 1: expected a whole number from 2 to 49; at most one per crossing"),
        ({"zones": "x"}, "zones = 'x': expected a whole number from 2 to 49"),
        ({"rows": "x", "zones": 2.5}, "zones = 2.5: expected a whole number, 2 or more"),
        ({"rows": 3.0}, "rows, columns = (3.0, 7): expected whole numbers"),
        ({"zones": 50}, "zones = 50: expected a whole number from 2 to 49"),
        ({"rows": 1}, "rows, columns = (1, 7): expected whole numbers, at least 2 each; try 7, 7"),
        ({"congestion": np.nan}, "congestion = nan: expected a positive number; try 1.0"),
    ],
)
def test_what_a_city_cannot_be(settings_: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        generated_city(**settings_)
    assert expected in str(caught.value)
