"""Reference derivatives of the security response against fourth-order differences, away from kinks."""

import ast
from pathlib import Path

import numpy as np
import pytest

import pzos.games
from pzos.games.derivatives import security_gradient, security_jacobian
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
        if path.parent.name == "games":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                allowed = path.parent.name in ("experiments", "bench")  # they measure methods against the white box
                assert allowed or not any("derivatives" in name for name in names), path
