"""Reference derivatives of the responses against fourth-order differences, away from kinks."""

import ast
from pathlib import Path

import numpy as np
import pytest

import pzos.games
from pzos.games import RoutingGame
from pzos.games.derivatives import routing_jacobian, security_gradient, security_jacobian
from pzos.games.security import SecurityGame


def differences(game: SecurityGame, x: np.ndarray, h: float = 2e-4) -> np.ndarray:
    def column(e: np.ndarray) -> np.ndarray:
        near = game.response(x + h * e) - game.response(x - h * e)
        far = game.response(x + 2 * h * e) - game.response(x - 2 * h * e)
        return (8 * near - far) / (12 * h)

    return np.stack([column(e) for e in np.eye(x.size)], axis=1)


def face(game: SecurityGame, x: np.ndarray) -> tuple[bool, ...]:
    return tuple(game.response(x) > 0.0)


@pytest.mark.parametrize("share", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_jacobian_products_match_differences(seed: int, share: float) -> None:
    game = SecurityGame.random(seed, targets=9, budget_share=share)
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.2, 2.0, 9)
    for _ in range(100):  # keep away from kinks: one face in the neighbourhood
        if len({face(game, x + 1e-3 * s * e) for e in np.eye(9) for s in (-1, 1)}) == 1:
            break
        x = rng.uniform(0.2, 2.0, 9)
    jacobian = security_jacobian(game, x)
    numeric = differences(game, x)
    np.testing.assert_allclose(jacobian.dense(), numeric, atol=2e-9)
    v, u = rng.normal(size=9), rng.normal(size=9)
    np.testing.assert_allclose(jacobian.times(v), numeric @ v, atol=1e-8)
    np.testing.assert_allclose(jacobian.transpose_times(u), numeric.T @ u, atol=1e-8)
    if share < 1.0:
        assert abs(jacobian.times(v).sum()) < 1e-12


def test_no_effect_where_nothing_is_invested_or_attacked() -> None:
    game = SecurityGame.random(1, targets=20, budget_share=0.02)
    x = np.random.default_rng(0).uniform(0.2, 2.0, 20)
    x[3] = -1.0
    jacobian = security_jacobian(game, x)
    idle = game.response(x) == 0.0
    assert idle.any()
    assert (jacobian.dense()[idle] == 0.0).all()
    assert (jacobian.own_effect[idle] == 0.0).all()
    assert jacobian.own_effect[3] == 0.0


def test_gradient_of_the_composed_cost() -> None:
    game = SecurityGame.random(4, targets=12)
    x = game.start()
    value, gradient = security_gradient(game, x)
    assert value == game.damage(x, game.response(x))
    h, v = 1e-5, np.random.default_rng(1).normal(size=12)
    up, down = x + h * v, x - h * v
    slope = (game.damage(up, game.response(up)) - game.damage(down, game.response(down))) / (2 * h)
    assert slope == pytest.approx(float(gradient @ v), rel=1e-6)


def test_white_box_descent_reaches_a_stationary_point() -> None:
    from scipy.optimize import minimize

    game = SecurityGame.random(0, targets=10)
    found = minimize(lambda x: security_gradient(game, x), game.start(), jac=True, method="L-BFGS-B",
                     bounds=[(0, None)] * 10, options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    start_value, start_gradient = security_gradient(game, game.start())
    _, gradient = security_gradient(game, found.x)
    assert found.fun < start_value
    assert np.abs(gradient[found.x > 0]).max() < 1e-4 * np.abs(start_gradient).max()


def test_no_solver_imports_derivatives() -> None:
    package = Path(pzos.games.__file__).parent.parent
    for path in package.rglob("*.py"):
        if path.parent.name in ("games", "networks"):  # where derivatives live; no solver does
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                allowed = path.parent.name == "experiments"  # it measures methods against the white box
                assert allowed or not any("derivatives" in name for name in names), path


# --- routing


def used_columns(game, tolls):
    return {(c.group, c.edges) for c in game.equilibrium(tolls).columns if c.flow > 1e-9}


@pytest.mark.parametrize("seed", range(20))
def test_routing_products_match_differences(seed):
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
