"""A run in lockstep has the bits it has alone in a study, whatever runs beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pzos.base.errors import FollowerFailure, InvalidLeader, NotConverged
from pzos.base.types import dot
from pzos.experiments import lockstep
from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.lockstep import CountingDomain, dimension_of, execute
from pzos.games import RoutingGame, SecurityGame
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.steps import Diminishing
from pzos.problem.sets import Nonnegative, Whole
from pzos.solving import solve
from reading_edition import pzos

SECURITY = RunSpec("security", 0, 7, 10, 0.05, 30, Variant("PZOS", radius=0.1))
ROUTING = RunSpec("routing", 0, 500_000, 0, 0.7, 12, Variant("PZOS"))
#: Two of one dimension, and one of another.
SEEDS = (7, 8, 9)


def _stacks() -> list[RunSpec]:
    """Runs of every kind; those of one kind differ in instance and radius, and some have another dimension."""
    kinds = [("PZOS", 1), ("ZOS", 1), ("PZOS", 3), ("ZOS", 2)]
    security = [
        replace(SECURITY, seed=seed, targets=11 if seed == SEEDS[-1] else 10, variant=Variant(algorithm, batch, radius))
        for seed in SEEDS for radius in (0.1, 0.3) for algorithm, batch in kinds
    ]  # fmt: skip
    routing = [
        replace(ROUTING, seed=seed, variant=Variant(algorithm, batch, radius, nonnegative))
        for seed, radius in ((500_000, 0.5), (500_000, 2.0), (500_003, 0.5))
        for algorithm, batch in kinds for nonnegative in (False, True)
    ]  # fmt: skip
    return security + routing


def test_a_run_in_lockstep_has_the_bits_of_its_study() -> None:
    specs = _stacks()
    for spec, outcome in zip(specs, execute(specs), strict=True):
        if spec.family == "security":
            problem, step = SecurityGame.random(spec.seed, targets=spec.targets).problem(), Diminishing(0.05)
        else:
            game = RoutingGame.random(spec.seed)
            problem, step = game.problem(nonnegative=spec.variant.nonnegative), 0.7 / game.edges
        kind = PZOS if spec.variant.algorithm == "PZOS" else ZOS
        solver = kind(step=step, radius=spec.variant.radius, batch=spec.variant.batch)
        trace = solve(problem, solver, steps=spec.steps, seed=spec.seed, progress=False).trace
        assert outcome.values.tobytes() == trace["value"].tobytes()
        assert outcome.gradient_norms_squared.tobytes() == trace["gradient_norm_squared"][:-1].tobytes()
        assert outcome.dimension == problem.x0.size == dimension_of(spec)


def test_a_run_agrees_with_the_reading_edition() -> None:
    game = SecurityGame.random(7, targets=10)
    problem = game.problem()
    points = pzos(
        lambda x, y: game.damage_and_gradients(x, y)[1], lambda x, y: game.damage_and_gradients(x, y)[2], game.response,
        problem.x0, step=lambda t: 0.05 / (t + 1) ** 0.5, mu=0.1, T=30, seed=7, project=problem.domain.project,
    )  # fmt: skip
    values = [game.damage(x, game.response(x)) for x in points]
    np.testing.assert_allclose(execute([SECURITY])[0].values, values, rtol=1e-12)


@pytest.mark.parametrize("length", [1, 7, 300, 5000])
def test_products_of_rows_have_the_bits_of_each_alone(length: int) -> None:
    stack = np.random.default_rng(length).standard_normal((2, 3, 5, length))
    a, b = stack[0, :, 2], stack[1, :, 4]
    assert dot(a, b).tolist() == [[dot(one.copy(), other.copy())] for one, other in zip(a, b, strict=True)]  # type: ignore[attr-defined]


def test_projections_that_move_are_counted_run_by_run() -> None:
    domain = CountingDomain(Nonnegative(), 3)
    domain.project(np.array([[1.0, 2.0], [1.0, -2.0], [np.nan, np.nan]]))
    domain.project(np.array([[1.0, 0.0], [-1.0, -2.0], [np.nan, np.nan]]))
    assert domain.projected.tolist() == [0, 2, 0]
    assert CountingDomain(Whole(), 1).project(np.array([[-1.0]])).tolist() == [[-1.0]]
    assert domain.contains(np.array([1.0, 0.0]))
    assert not domain.contains(np.array([1.0, -1.0]))
    assert domain.faults(2) == Nonnegative().faults(2)


@pytest.mark.parametrize(("share", "slack"), [(0.5, 0), (50.0, 10)])
def test_answers_that_leave_budget_are_counted(share: float, slack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    game = SecurityGame.random(0, targets=5, budget_share=share)
    monkeypatch.setattr(lockstep.SecurityGame, "random", lambda *_, **__: game)
    (outcome,) = execute([RunSpec("security", 0, 0, 5, 0.05, 3, Variant("ZOS", radius=0.1))])
    assert outcome.slack_answers == slack  # two probes and the iterate a step, and the last iterate


DIVERGING = RunSpec("routing", 33, 4_500_033, 0, 1.05, 150, Variant("ZOS", bold=True))


def test_a_run_that_diverges_is_a_result_and_the_worst() -> None:
    """Its tolls grow to millions, where no equilibrium can be certified: that ends the run, not those beside it."""
    beside = replace(DIVERGING, variant=Variant("ZOS", radius=0.1, bold=True))
    outcome, other = execute([DIVERGING, beside])
    reached = np.isfinite(outcome.values)
    last = int(reached.sum())
    assert 1 < last < 150
    assert reached[:last].all()
    assert (outcome.values[last:] == -np.inf).all()  # revenue is maximised
    assert outcome.values.shape == (151,)
    assert np.isfinite(outcome.gradient_norms_squared).sum() == last
    assert np.isnan(outcome.gradient_norms_squared[last:]).all()
    assert other.values.tobytes() == execute([beside])[0].values.tobytes()


@pytest.mark.parametrize("error", [ValueError("a bug"), NotConverged("at x0 already")])
def test_a_follower_that_fails_otherwise_is_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> np.ndarray:
        raise error

    monkeypatch.setattr(RoutingGame, "response", fails)
    with pytest.raises(FollowerFailure, match=rf"seed500000.*step 0: {error}"):
        execute([ROUTING])


def test_a_value_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep.Revenue, "value", lambda *_: np.array([1.0, np.inf]))
    with pytest.raises(InvalidLeader, match=r"mu2: step 0: F = inf: expected a finite number"):
        execute([ROUTING, replace(ROUTING, variant=Variant("PZOS", radius=2.0))])
