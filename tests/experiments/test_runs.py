from __future__ import annotations

import numpy as np

from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.runs import CountingDomain, execute
from pzos.games import SecurityGame
from pzos.problem.sets import Nonnegative, Whole
from reading_edition import pzos


def test_a_run_is_a_pure_function_of_its_spec() -> None:
    spec = RunSpec("routing", 0, 500_000, 0, 0.7, 20, Variant("ZOS", 2))
    first, second = execute(spec), execute(spec)
    assert first.values.tobytes() == second.values.tobytes()
    assert first.values.shape == (21,)
    assert first.gradient_norms_squared.shape == (20,)


def test_a_run_agrees_with_the_reading_edition() -> None:
    spec = RunSpec("security", 0, 7, 10, 0.05, 30, Variant("PZOS", radius=0.1))
    game = SecurityGame.random(7, targets=10)
    problem = game.problem()
    points = pzos(
        lambda x, y: game.damage_and_gradients(x, y)[1], lambda x, y: game.damage_and_gradients(x, y)[2], game.response,
        problem.x0, step=lambda t: 0.05 / (t + 1) ** 0.5, mu=0.1, T=30, seed=7, project=problem.domain.project,
    )  # fmt: skip
    values = [game.damage(x, game.response(x)) for x in points]
    np.testing.assert_allclose(execute(spec).values, values, rtol=1e-12)


def test_projections_that_move_are_counted() -> None:
    domain = CountingDomain(Nonnegative())
    domain.project(np.array([1.0, 2.0]))
    domain.project(np.array([1.0, -2.0]))
    assert domain.projected == 1
    assert CountingDomain(Whole()).project(np.array([-1.0]))[0] == -1.0
