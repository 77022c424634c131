"""Fronts, volumes, knees and weights: laws, and an independent count by sampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.methods.front.costs import Chebyshev, directions, hypervolume, knees, scalarised, spans, undominated


def clouds(costs: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(
        st.lists(st.integers(0, 6), min_size=costs, max_size=costs), min_size=1, max_size=9
    ).map(lambda rows: np.array(rows, dtype=float))  # fmt: skip


@given(clouds(2) | clouds(3))
@settings(deadline=None)
def test_nothing_dominates_the_front_and_all_else_is_dominated(costs: np.ndarray) -> None:
    rows = undominated(costs)
    front = costs[rows]
    for row, cost in enumerate(costs):
        better = ((front <= cost).all(axis=1) & (front < cost).any(axis=1)).any()
        assert better != any((cost == front[k]).all() for k in range(len(front))), row


@given(clouds(2) | clouds(3))
@settings(deadline=None)
def test_the_volume_is_that_of_all_unit_cubes_it_dominates(costs: np.ndarray) -> None:
    corners = np.stack(np.meshgrid(*[np.arange(7)] * costs.shape[1], indexing="ij"), axis=-1).reshape(
        -1, costs.shape[1]
    )
    counted = sum((costs <= corner).all(axis=1).any() for corner in corners)
    assert hypervolume(costs, np.full(costs.shape[1], 7.0)) == counted


def test_what_lies_beyond_the_reference_does_not_count() -> None:
    assert hypervolume(np.array([[0.0, 5.0], [5.0, 0.0]]), np.array([4.0, 4.0])) == 0.0


def test_knees_are_where_the_front_bends_most() -> None:
    t = np.linspace(0.0, 1.0, 41)
    bent = np.stack([t, (1.0 - np.sqrt(np.clip(2.0 * t - t**2, 0.0, 1.0)))], axis=1)
    (knee,) = knees(bent)
    assert bent[knee].tolist() == pytest.approx([1 - 2**-0.5] * 2, abs=0.03)
    concave = np.stack([t, 1.0 - t**2], axis=1)
    assert knees(concave).size == 0
    assert knees(np.array([[0.0, 1.0], [1.0, 0.0]])).size == 0


@pytest.mark.parametrize(("costs", "count"), [(2, 15), (3, 15), (2, 3)])
def test_weights_cover_the_simplex_with_the_ends_first(costs: int, count: int) -> None:
    weights = directions(costs, count)
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert (weights > 0.0).all()
    assert [int(np.argmax(row)) for row in weights[:costs]] == list(range(costs))
    assert (weights[:costs].max(axis=1) > 0.97).all()
    assert len(np.unique(weights.round(9), axis=0)) == len(weights)
    assert len(weights) == count if costs == 2 else len(weights) >= 6


def leaders(count: int) -> list[pzos.Leader]:
    return [
        pzos.leader_from_functions(
            lambda x, y, k=k: float(((x - k) ** 2).sum() + np.exp(0.3 * k * y).sum()),
            lambda x, y, k=k: 2 * (x - k),
            lambda x, y, k=k: 0.3 * k * np.exp(0.3 * k * y),
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("count", [2, 3])
def test_the_scalarised_cost_has_exact_gradients_and_is_close_to_chebyshev(count: int) -> None:
    weights = directions(count, 9)[-1]
    signs, lowest, wide = np.ones(count), np.linspace(0.1, 0.3, count), np.linspace(1.0, 2.0, count)
    leader = scalarised(leaders(count), Chebyshev.of(signs, lowest, wide, weights))
    x, y = np.array([0.3, -0.2]), np.array([0.5, 0.1, -0.4])
    assert pzos.check_leader(leader, x, y)
    terms = weights * (np.array([one.value(x, y) for one in leaders(count)]) - lowest) / wide
    assert leader.value(x, y) == pytest.approx(terms.max() + 0.05 * terms.sum(), abs=0.03)


def test_spans_are_of_the_front_not_of_all_points() -> None:
    lowest, wide = spans(np.array([[0.0, 2.0], [1.0, 0.0], [50.0, 90.0]]))
    assert lowest.tolist() == [0.0, 0.0]
    assert wide.tolist() == [1.0, 2.0]
