"""Step rules: their formulas, their scale, and runs that need no tuning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.schedules import Diminishing
from pzos.methods.steps import DoG, DoWG, StepState, next_step
from pzos.problem.leader import leader_from_functions
from pzos.problem.problem import Problem
from pzos.solving import solve

GRADIENT = np.array([3.0, 4.0])


def test_first_move_has_the_length_of_the_radius():
    for rule in (DoG(), DoWG()):
        alpha, seen = rule.next_step(StepState(), 0.1, np.zeros(2), GRADIENT)
        assert alpha * 5.0 == pytest.approx(0.1)
        assert seen.reach == 0.1
    alpha, _ = DoG(initial=2.0).next_step(StepState(), 0.1, np.zeros(2), GRADIENT)
    assert alpha == pytest.approx(0.4)


def test_formulas():
    moves = [np.array([0.0, 0.0]), np.array([0.3, 0.4]), np.array([0.1, 0.0])]
    gradients = [GRADIENT, np.array([1.0, 0.0]), np.array([0.0, 2.0])]
    reaches = np.array([0.2, 0.5, 0.5])
    squares = np.array([25.0, 1.0, 4.0])
    dog, dowg = StepState(), StepState()
    for t, (move, gradient) in enumerate(zip(moves, gradients, strict=True)):
        alpha, dog = DoG().next_step(dog, 0.2, move, gradient)
        assert alpha == pytest.approx(reaches[t] / np.sqrt(squares[: t + 1].sum()))
        alpha, dowg = DoWG().next_step(dowg, 0.2, move, gradient)
        weighted = (reaches**2 * squares)[: t + 1].sum()
        assert alpha == pytest.approx(reaches[t] ** 2 / np.sqrt(weighted))


@pytest.mark.parametrize("rule", [DoG(), DoWG()], ids=str)
def test_zero_gradients_take_no_step(rule):
    assert rule.next_step(StepState(), 0.1, np.zeros(2), np.zeros(2))[0] == 0.0


@settings(deadline=None)
@given(scale=st.floats(1e-3, 1e3))
def test_rules_do_not_depend_on_the_unit_of_the_cost(scale):
    for rule in (DoG(), DoWG()):
        past = rule.next_step(StepState(), 0.1, np.zeros(2), GRADIENT)[1]
        alpha, _ = rule.next_step(past, 0.1, np.ones(2), GRADIENT)
        scaled_past = rule.next_step(StepState(), 0.1, np.zeros(2), scale * GRADIENT)[1]
        scaled, _ = rule.next_step(scaled_past, 0.1, np.ones(2), scale * GRADIENT)
        assert scaled * scale == pytest.approx(alpha)


def test_numbers_and_schedules_pass_through():
    past = StepState(1.0, 2.0)
    assert next_step(0.3, 5, past, 0.1, np.zeros(2), GRADIENT) == (0.3, past)
    assert next_step(Diminishing(0.3), 3, past, 0.1, np.zeros(2), GRADIENT) == (0.15, past)


def quadratic(scale):
    """min |x - 1|^2 + |y|^2 with y = A x, 6 decisions; ``scale`` is the unit of the cost."""
    mix = np.random.default_rng(0).standard_normal((4, 6)) / 2
    leader = leader_from_functions(
        lambda x, y: scale * float(np.sum((x - 1) ** 2) + y @ y),
        lambda x, y: scale * 2 * (x - 1),
        lambda x, y: scale * 2 * y,
    )
    optimum = np.linalg.solve(np.eye(6) + mix.T @ mix, np.ones(6))
    return Problem(leader, lambda x: mix @ x, np.zeros(6)), optimum


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("solver", [MemoryPZOS(), MemoryPZOS(step=DoWG()), SecantPZOS()], ids=str)
def test_defaults_converge_whatever_the_unit_of_the_cost(solver, scale):
    problem, optimum = quadratic(scale)
    result = solve(problem, solver, queries=600, monitor=False)
    assert np.linalg.norm(result.x - optimum) < 1e-3


def test_bad_initial_length_is_named():
    with pytest.raises(InvalidInput, match=r"DoG: initial = -1\.0"):
        DoG(-1.0)
    with pytest.raises(InvalidInput, match="DoWG: initial = 0"):
        DoWG(0)
