"""Jacobian products of the routing response against differences of high order, away from kinks."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.games import RoutingGame
from pzos.games.derivatives_routing import routing_jacobian


def used_columns(game, tolls):
    return {(c.group, c.edges) for c in game.equilibrium(tolls).columns if c.flow > 1e-9}


@pytest.mark.parametrize("seed", range(20))
def test_products_match_differences(seed):
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls, v, u = draw.normal(size=(3, game.edges))
    h = 1e-5
    around = [tolls + k * h * v for k in (-2, -1, 1, 2)]
    if any(used_columns(game, near) != used_columns(game, tolls) for near in around):
        pytest.skip("a kink lies between the points of the difference")
    far_left, left, right, far_right = game.response(np.array(around))
    slope = (8.0 * (right - left) - (far_right - far_left)) / (12.0 * h)
    jacobian = routing_jacobian(game, tolls)
    assert np.abs(jacobian.times(v) - slope).max() <= 1e-8 * (1.0 + np.abs(slope).max())
    assert jacobian.transpose_times(u) @ v == pytest.approx(u @ jacobian.times(v), rel=1e-10, abs=1e-12)
    assert np.allclose(jacobian.dense() @ v, jacobian.times(v), rtol=1e-12, atol=1e-13)


def test_response_moves_along_its_jacobian_on_a_piece():
    game = RoutingGame([0, 0], [1, 1], [1.0, 3.0], [1.0, 3.0], [0], [1], [4.0], [0.5])
    jacobian = routing_jacobian(game, [0.0, 0.0]).dense()
    assert np.allclose(jacobian, [[-0.5, 0.5], [0.5, -0.5]])
    tolls = np.array([0.3, -0.2])
    assert np.allclose(game.response(tolls), game.response([0.0, 0.0]) + jacobian @ tolls)


def test_circulations_move_too():
    game = RoutingGame([0, 1], [1, 0], [1.0, 1.0], [0.0, 0.0], [0], [1], [1.0], [1.0])
    tolls = np.array([-3.0, -3.0])
    moved = np.array([1e-3, 0.0])
    slope = (game.response(tolls + moved) - game.response(tolls - moved)) / 2e-3
    assert np.allclose(routing_jacobian(game, tolls).times([1.0, 0.0]), slope)
    assert slope[0] < 0.0
