"""Maps: places for every node, whatever is known, and a picture that shows tolls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import MissingExtra
from pzos.networks import Demand, Latency, Network
from pzos.networks.maps import beside_each_other, draw_map, drawn_how, layout


def test_nodes_without_coordinates_stand_between_their_neighbours(city: Network) -> None:
    places = city.coordinates.copy()
    assert np.array_equal(layout(city), places)
    hidden = places.copy()
    hidden[[3, 4]] = np.nan
    filled = layout(replace(city, coordinates=hidden))
    assert np.isfinite(filled).all()
    known = np.setdiff1d(np.arange(city.nodes), [3, 4])
    np.testing.assert_array_equal(filled[known], places[known])
    assert np.abs(filled[[3, 4]] - places[[3, 4]]).max() < 3.0


@pytest.mark.parametrize(("by", "alike"), [("length", 0.97), ("travel time", 0.75)])  # the ring is fast: drawn short
def test_a_layout_by_the_roads_resembles_the_city(city: Network, by: str, alike: float) -> None:
    if by == "travel time":
        city = replace(city, length=np.zeros(city.links))
    blind = replace(city, coordinates=None)
    places = layout(blind)
    assert drawn_how(blind) == [f"no coordinates: laid out by {by}"]
    assert places.shape == (city.nodes, 2)
    assert np.array_equal(places, layout(replace(city, coordinates=np.full((city.nodes, 2), np.nan))))
    true = city.coordinates
    far = np.linalg.norm(true[:, None] - true[None], axis=2).ravel()
    drawn = np.linalg.norm(places[:, None] - places[None], axis=2).ravel()
    assert np.corrcoef(far, drawn)[0, 1] > alike


def test_one_endless_road_does_not_hide_the_city() -> None:
    around = np.arange(8)
    ring = Latency.affine([*np.ones(8), 1e5], 0.0)
    network = Network.from_arrays([*around, 0], [*(around + 1) % 8, 8], ring, Demand.from_list([0], [8], [1.0]))
    places = layout(network)
    assert np.ptp(places[:8], axis=0).max() > 0.2 * np.ptp(places, axis=0).max()


def test_layouts_of_tiny_and_broken_networks() -> None:
    two = Network.from_arrays([0], [1], Latency.affine([0.0], 0.0), Demand.from_list([0], [1], [1.0]))
    assert np.isfinite(layout(two)).all()
    apart = Network.from_arrays([0, 2], [1, 3], Latency.affine([1.0, 1.0], 0.0), Demand.from_list([0], [1], [1.0]))
    assert np.isfinite(layout(apart)).all()


def test_both_directions_of_a_street_are_apart(city: Network) -> None:
    segments = beside_each_other(layout(city), city)
    there = next(i for i in range(city.links) if city.tail[i] < city.head[i])
    back = city.link_number((int(city.node_ids[city.head[there]]), int(city.node_ids[city.tail[there]])))
    assert np.abs(segments[there][0] - segments[back][1]).max() > 0.0


@pytest.mark.parametrize("subsidy", [False, True])
def test_a_map_colours_tolls_and_draws_flow_as_width(tmp_path: Path, city: Network, subsidy: bool) -> None:
    pytest.importorskip("matplotlib", reason="extra plot is not installed")
    tolls = np.zeros(city.links)
    tolls[[0, 7]] = 1.0, -0.3 if subsidy else 2.0
    before, after = city.assign(), city.assign(tolls)
    figure = draw_map(before, after, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    left, middle, right, bar = figure.axes
    assert left.get_title().startswith("no tolls")
    assert middle.get_title().startswith("with tolls")
    assert right.get_title().startswith("difference")
    assert "toll" in bar.get_ylabel()
    assert ("subsidies" in bar.get_ylabel()) is subsidy
    plain, coloured = left.collections[1], middle.collections[1]
    assert len({tuple(colour) for colour in np.asarray(plain.get_colors()).tolist()}) == 1
    assert len({tuple(colour) for colour in np.asarray(coloured.get_colors()).tolist()}) == 3
    widths, wanted = np.sort(plain.get_linewidths()), np.sort(before.flow)
    shown = widths > 0.61  # thinner ones would not be seen
    np.testing.assert_allclose(widths[shown] / widths.max(), wanted[shown] / wanted.max(), rtol=1e-9)
    assert draw_map(after, before).axes[0].get_title().startswith("before")  # which has tolls


def test_a_map_without_tolls_has_no_scale(city: Network) -> None:
    pytest.importorskip("matplotlib", reason="extra plot is not installed")
    figure = draw_map(city.assign(), city.assign())
    assert len(figure.axes) == 3


def test_a_missing_matplotlib_names_the_extra(city: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pzos\[plot\]"):
        draw_map(city.assign(), city.assign())


def test_pieces_that_hang_on_nothing_known_stand_in_the_middle() -> None:
    places = np.array([[0.0, 0.0], [2.0, 4.0], [np.nan, np.nan], [np.nan, np.nan]])
    apart = Network.from_arrays(
        [0, 2], [1, 3], Latency.affine([1.0, 1.0], 0.0), Demand.from_list([0], [1], [1.0]), coordinates=places
    )
    np.testing.assert_array_equal(layout(apart), [[0, 0], [2, 4], [1, 2], [1, 2]])


def test_unknown_places_spread_from_the_known_ones() -> None:
    places = np.array([[0.0, 0.0], [np.nan, np.nan], [np.nan, np.nan], [6.0, 0.0]])
    row = Network.from_arrays(
        [0, 1, 2], [1, 2, 3], Latency.affine([1.0] * 3, 0.0), Demand.from_list([0], [3], [1.0]), coordinates=places
    )
    np.testing.assert_array_equal(layout(row), [[0, 0], [0, 0], [6, 0], [6, 0]])


def test_a_lone_street_of_parallel_lanes_has_a_layout() -> None:
    lanes = Network.from_arrays([0, 0], [1, 1], Latency.affine([2.0, 1.0], 0.0), Demand.from_list([0], [1], [1.0]))
    places = layout(lanes)
    assert places.shape == (2, 2)
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(1.0)  # the quicker lane counts
