"""The laws of pzos.testing, run over every solver: the smoothing and memory families and the trust region."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import pzos
from pzos.games.security import SecurityGame
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.predictions import (
    BlendPrediction,
    FittingMemory,
    LeaderPrediction,
    ModelPrediction,
    PairMemory,
    RegressionMemory,
    SecantMemory,
    ZeroPrediction,
)
from pzos.methods.probes import Central, Cycled, Independent, Midpoint, OneSided, Orthogonal
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.steps import Diminishing, DoG, DoWG
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.problem.follower import seeded
from pzos.problem.problem import Problem
from pzos.problem.sets import Budget, Nonnegative
from pzos.problem.structure import answers_nonnegative, conserved, own_effect
from pzos.testing import LAWS, LawBroken, check_solver, play, small_problem


def crude_product(x, u):
    """Return J'u of a follower model that is quite wrong."""
    return np.array([u[0], -u[1], 0.5 * u[0]])


def label(solver):
    """Return the solver's repr without addresses in memory: the workers must agree on the names of the tests."""
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", str(solver))


PREDICTIONS = (
    LeaderPrediction(),
    ZeroPrediction(),
    BlendPrediction(),
    ModelPrediction(crude_product),
    SecantMemory(),
    RegressionMemory(),
    PairMemory(2),
    FittingMemory(),
    FittingMemory(entries=1),
)
SOLVERS = (
    PZOS(),
    PZOS(Diminishing(0.1), 0.05, batch=3),
    ZOS(),
    ZOS(batch=2),
    *(MemoryPZOS(prediction=prediction) for prediction in PREDICTIONS),
    *(MemoryPZOS(differences=rule) for rule in (Central(), Midpoint(), OneSided(inside=True), Central(inside=True))),
    *(MemoryPZOS(directions=rule, batch=2) for rule in (Independent(), Orthogonal(), Cycled(), Cycled(2))),
    MemoryPZOS(step=DoWG(), batch=3, differences=Midpoint(inside=True)),
    MemoryPZOS(step=0.05),
    MemoryPZOS(step=Diminishing(0.1)),
    SecantPZOS(),
    SecantPZOS(step=0.05, prediction=SecantMemory()),
    CompositeTrustRegion(),
    CompositeTrustRegion(batch=3),
    CompositeTrustRegion(points=4, radius=0.3, iterations=5),
    CompositeTrustRegion(noisy=True),
    CompositeTrustRegion(noisy=False),
    pzos.ConstrainedTrustRegion(risk=0.1),
    pzos.ExactPenalty(MemoryPZOS()),
    pzos.StopWhenStationary(PZOS(step=0.02), delta=0.1, epsilon=0.3, first=16),
    pzos.PZOBO(),
    pzos.GuidedZO(batch=2),
    pzos.GuidedZO(history=True),
    pzos.NesterovSpokoiny(),
    pzos.ZSOL(),
    pzos.VarianceReducedZSOL(),
    pzos.SPSA(),
    pzos.FlaxmanOnePoint(),
    pzos.FollowerAgnostic(settle=2),
    pzos.ZOStackelberg(),
    pzos.GFM(),
    pzos.TwoPhaseGFM(rounds=2, steps=2, judging=2),
    pzos.GFMPlus(batch=1, large=3, period=2),
    pzos.KornowskiShamir(block=3),
    pzos.GradientMappingZO(),
    pzos.FrankWolfeZO(),
)


def test_every_public_solver_is_under_the_laws():
    methods = ("init", "ask", "tell", "stop")
    public = (getattr(pzos, name) for name in pzos.__all__)
    solvers = {kind for kind in public if isinstance(kind, type) and all(hasattr(kind, name) for name in methods)}
    with_leaders = {pzos.FrontSolver}  # it takes leaders of its own: tests/methods/front/test_solver.py has its laws
    assert solvers - with_leaders == {type(solver) for solver in SOLVERS}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("check_"))
@pytest.mark.parametrize("solver", SOLVERS, ids=label)
def test_law(solver, law):
    law(solver, small_problem())


@pytest.mark.parametrize("solver", SOLVERS, ids=label)
def test_maximising_the_negative_is_minimising(solver):
    low, _, _ = play(small_problem("min"), solver)
    high, _, _ = play(small_problem("max"), solver)
    np.testing.assert_array_equal(low.state.x, high.state.x)


@pytest.mark.parametrize("domain", [Nonnegative(), Budget(3.0)], ids=str)
@pytest.mark.parametrize("rule", [Central, Midpoint, OneSided])
def test_inside_probes_never_leave_the_domain(rule, domain):
    base = small_problem()
    problem = Problem(base.leader, base.follower, np.array([1.0, 0.01, 0.0]), domain)
    solver = MemoryPZOS(radius=0.2, differences=rule(inside=True))
    _, asked, _ = play(problem, solver, steps=40)
    assert all(domain.contains(query.x, 1e-9) for query in asked)
    _, asked, _ = play(problem, replace(solver, differences=rule()), steps=40)
    assert not all(domain.contains(query.x, 1e-9) for query in asked)


@dataclass(frozen=True)
class Remembers(PZOS):
    """A solver that breaks the laws: it counts its calls."""

    def ask(self, task, state):
        calls.append(1)
        plan = super().ask(task, state)
        return replace(plan, points=tuple(point + 1e-9 * len(calls) for point in plan.points))


@dataclass(frozen=True)
class Scribbles(PZOS):
    """A solver that breaks the laws: it writes into the answers."""

    def tell(self, task, state, plan, answers):
        answers[0].flags.writeable = True
        answers[0][:] = 0.0
        return super().tell(task, state, plan, answers)


@dataclass(frozen=True)
class Leaves(PZOS):
    """A solver that breaks the laws: it walks out of the domain."""

    def tell(self, task, state, plan, answers):
        after, outcome = super().tell(task, state, plan, answers)
        return after._replace(x=after.x + 10.0), outcome


calls: list[int] = []


@pytest.mark.parametrize("solver", [Remembers(), Scribbles(), Leaves()], ids=lambda s: type(s).__name__)
def test_lawbreakers_are_found(solver):
    with pytest.raises(LawBroken):
        check_solver(solver)


def test_laws_of_the_trust_region_hold_with_structure_kinks_and_noise():
    game = SecurityGame.random(3, 6)
    for structure in ([], [own_effect(), conserved(), answers_nonnegative()]):
        check_solver(CompositeTrustRegion(), game.problem(structure=structure))
    noisy = seeded(lambda x, generator: game.response(x) * (1.0 + 0.01 * generator.standard_normal(6)))
    quiet = game.problem()
    check_solver(CompositeTrustRegion(batch=2), Problem(quiet.leader, noisy, quiet.x0, quiet.domain))


def test_laws_hold_with_a_noisy_follower():
    quiet = small_problem()
    noisy = seeded(lambda x, generator: np.abs(x[:2]) + 0.01 * generator.standard_normal(2))
    check_solver(MemoryPZOS(step=DoG(0.01)), Problem(quiet.leader, noisy, quiet.x0, quiet.domain))


def test_all_queries_failing_leaves_the_start():
    study, _, records = play(small_problem(), MemoryPZOS(), fails=lambda query: True)
    np.testing.assert_array_equal(study.state.x, small_problem().x0)
    assert all(np.isnan(record.value) and record.step_size == 0.0 for record in records)


def test_failed_probes_still_tell_the_value_at_the_iterate():
    problem = small_problem()
    _, _, records = play(problem, MemoryPZOS(), fails=lambda query: query.index > 0, steps=1)
    y = np.abs(np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]]) @ problem.x0 - 0.1)
    assert records[0].value == problem.leader.value(problem.x0, y)
