"""Optuna's trials are pzos's queries: the points of a study in any order, up or down, failures and an early end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput

optuna = pytest.importorskip("optuna", reason="the extra optuna is not installed")
optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = {"toll": (0.0, 8.0), "fare": (0.0, 4.0)}


def follower(x: Any) -> Any:
    return np.maximum(4.0 - x, 0.0)


def cost(x: Any, y: Any) -> Any:
    return ((y - 3.0) ** 2).sum() + 0.1 * (x * x).sum()


def run(direction: str = "minimize", trials: int = 15, fails: int = -1, sign: float = 1.0) -> Any:
    from pzos.integrations.optuna import PzosSampler

    def objective(trial: Any) -> float:
        x = np.array([trial.suggest_float(name, *ends) for name, ends in SPACE.items()])
        if trial.number == fails:
            raise ValueError("no traffic today")
        y = follower(x)
        trial.set_user_attr("y", y.tolist())
        return sign * float(cost(x, y))

    sampler = PzosSampler(lambda x, y: sign * cost(x, y), SPACE, x0=[0.0, 0.0])
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(objective, n_trials=trials, catch=(ValueError,))
    return study


def test_trials_are_the_queries_of_a_study() -> None:
    direct = pzos.minimize(
        cost, follower, [0.0, 0.0], domain=pzos.Box([0, 0], [8, 4]), queries=15, order="told", certificate=False
    )
    study = run()
    assert study.best_value == pytest.approx(direct.best_value)
    assert [trial.value for trial in study.trials] == pytest.approx(direct.trace["value"].tolist())


def test_up_is_down_with_another_sign() -> None:
    assert run("maximize", sign=-1.0).best_value == pytest.approx(-run().best_value)


def test_a_trial_that_fails_is_a_query_without_an_answer() -> None:
    study = run(fails=3)
    assert [trial.state.name for trial in study.trials].count("FAIL") == 1
    assert study.sampler.study.failures == 1
    assert study.best_value < study.trials[0].value


def test_it_ends_when_nothing_can_be_gained() -> None:
    assert len(run(trials=400).trials) < 400


def test_what_is_missing_is_named() -> None:
    from pzos.integrations.optuna import PzosSampler

    with pytest.raises(InvalidInput, match=r"space = \{\}: expected bounds by name"):
        PzosSampler(cost, {})
    study = optuna.create_study(sampler=PzosSampler(cost, SPACE))
    with pytest.raises(InvalidInput, match='trial 0 has no user attribute "y"'):
        study.optimize(lambda trial: trial.suggest_float("toll", 0, 8) + trial.suggest_float("fare", 0, 4), n_trials=1)
