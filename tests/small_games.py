"""Small answers of every game, for comparing compiled kernels with the same code run by Python itself.

``NUMBA_DISABLE_JIT=1 python tests/small_games.py`` prints them as JSON: also the way to step through a kernel.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from pzos.games import CournotGame, RoutingGame, SecurityGame, VariationalInequality
from pzos.problem.sets import Nonnegative


def routing_games() -> dict[str, tuple[RoutingGame, np.ndarray]]:
    """Games with tolls: of the paper, with exact ties, with circulations, badly scaled, with many drops of columns."""
    draw = np.random.default_rng(0)
    small = RoutingGame.random(6, vertices=6)
    tied = RoutingGame([0, 0, 0, 1, 2, 1, 3], [1, 2, 3, 3, 3, 2, 0], [1, 1, 2, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1],
                       [0, 0, 0, 1], [3, 3, 3, 2], [5, 0, 4, 1], [1, 1, 0.5, 2])  # fmt: skip
    steep = RoutingGame([0, 0], [1, 1], [680.0, 0.003], [0, 0], [0] * 5, [1] * 5, [1, 4, 4, 3, 5], [1] * 5)
    many = RoutingGame.random(3, vertices=8, edges=30, classes=3)
    return {
        "paper": (small, 2.0 * draw.normal(size=(12, small.edges))),
        "ties": (tied, draw.integers(-4, 5, (30, tied.edges)).astype(np.float64)),
        "steep": (steep, np.zeros((2, 2))),
        "columns": (many, np.vstack([np.zeros((4, 30)), 4.0 * draw.normal(size=(40, 30))])),
    }


def answers() -> dict[str, Any]:
    """Return the answers by name, as lists."""
    found = {name: game.response(tolls).tolist() for name, (game, tolls) in routing_games().items()}
    security = SecurityGame.random(1, targets=6)
    scarce = SecurityGame.random(2, targets=6, budget_share=0.02)
    ample = SecurityGame.random(3, targets=6, budget_share=9.0)
    found["security"] = [game.response(game.start()).tolist() for game in (security, scarce, ample)]
    cournot = CournotGame.random(0, firms=3, markets=2)
    found["cournot"] = cournot.response(cournot.start()).tolist()
    found["vi"] = VariationalInequality(lambda x, y: 2.0 * y - x, Nonnegative(), 2).response([4.0, -4.0]).tolist()
    return found


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
