"""A small problem with a kinked follower that counts its calls, and trajectories to compare bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import pzos


class Counted:
    """A follower that counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.concatenate([np.abs(x - 0.3), np.maximum(x, 0.1)])


def value(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ x + y.sum() + 0.5 * (y @ y))


def grad_x(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2.0 * x


def grad_y(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 1.0 + y


def problem(**changes: Any) -> pzos.Problem:
    leader = pzos.leader_from_functions(value, grad_x, grad_y, name="kinks")
    given: dict[str, Any] = {"leader": leader, "follower": Counted(), "x0": np.linspace(1.0, 2.0, 3), "name": "kinks"}
    return pzos.Problem(**{**given, **changes})


def finish(study: pzos.Study, game: pzos.Problem, **oracle: Any) -> pzos.Result:
    for _ in pzos.iterate(study, pzos.Oracle(game.follower, **oracle)):
        pass
    return study.result()


def bits(result: pzos.Result) -> bytes:
    columns = [result.trace[name].tobytes() for name in result.trace.columns if name != "seconds"]
    points = [point.tobytes() for point in (result.x, result.best_x, result.random_x)]
    return b"".join([*columns, *points, repr((result.queries, result.monitoring, result.failures)).encode()])


def calls(game: pzos.Problem) -> int:
    function: Any = game.follower
    return int(function.function.calls)
