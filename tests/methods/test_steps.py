"""Schedules and step rules: their formulas, their scale, what they refuse, and runs that need no tuning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.steps import Diminishing, DoG, DoWG, Power, Schedule, StepState, next_step, value_at
from pzos.problem.leader import leader_from_functions
from pzos.problem.problem import Problem
from pzos.solving import solve
from pzos.study.limits import DEFAULT_STEPS, Limits

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


def test_diminishing_is_scale_over_root_t_from_one() -> None:
    schedule = pzos.Diminishing(0.05)
    assert schedule(0) == 0.05
    assert schedule(3) == 0.025
    assert schedule(99) == pytest.approx(0.005, rel=1e-15)


def test_constant() -> None:
    assert [pzos.Constant(np.float32(0.5))(t) for t in (0, 7)] == [0.5, 0.5]  # type: ignore[arg-type]
    assert type(pzos.Constant(1).value) is float


def test_schedules_are_frozen_values() -> None:
    assert pzos.Diminishing(1) == pzos.Diminishing(1.0)
    assert hash(pzos.Constant(2.0)) == hash(pzos.Constant(2))
    assert isinstance(pzos.Diminishing(1), Schedule)
    assert (
        repr(pzos.PZOS(step=pzos.Diminishing(0.05)))
        == "PZOS(step=Diminishing(scale=0.05), radius=0.1, batch=1, inside=False)"
    )


def test_a_number_or_any_function_of_t() -> None:
    assert value_at(0.5, 3) == 0.5
    assert value_at(lambda t: np.float32(2**-t), 3) == 0.125
    assert type(value_at(lambda t: np.float32(1.0), 0)) is float


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), None, "0.1", np.ones(2)])
def test_what_a_schedule_says_is_checked(bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"at t = 4: expected a positive finite number; a schedule is called with t"):
        value_at(lambda t: bad, 4)  # type: ignore[arg-type,return-value]


def test_limits() -> None:
    assert Limits().steps == Limits(target=1.0).steps == DEFAULT_STEPS
    assert Limits(queries=5).steps is None
    assert Limits(seconds=5).steps is None
    assert Limits(steps=np.int64(3)).steps == 3  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Limits: 4 faults"):
        Limits(steps=-1, queries=0, seconds=0, target=float("nan"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"step": DoG}, r"step = <class .*DoG'>: expected a number or a schedule; make one, e\.g\. DoG\(0\.05\)"),
        ({"radius": Diminishing}, r"radius = <class .*: expected a number or a schedule; make one, e\.g\. Dimin"),
        ({"radius": DoG()}, r"radius = DoG\(initial=None\): expected a positive finite number; try 0\.05"),
        ({"step": "fast"}, "step = 'fast': expected a positive finite number"),
        ({"batch": True}, "batch = True: expected a whole number, 1 or more; try batch=1"),
        ({"directions": Schedule}, "directions = .*: expected an object with the methods of Directions; try Indep"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_to_try(settings, words):
    with pytest.raises(InvalidInput, match=words):
        MemoryPZOS(**settings)


def test_a_rule_is_a_step_of_memories_and_no_schedule():
    assert MemoryPZOS(step=DoWG(0.1)).step == DoWG(0.1)
    with pytest.raises(InvalidInput, match=r"PZOS: step = DoG\(initial=None\): expected a positive finite number"):
        pzos.PZOS(step=DoG())


@given(moves=st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8))
def test_the_reach_never_shrinks_and_is_the_longest_move(moves):
    for rule in (DoG(), DoWG()):
        past = StepState()
        for move in moves:
            _, now = rule.next_step(past, 0.1, np.array([move, 0.0]), GRADIENT)
            assert now.reach >= past.reach
            assert now.total > past.total
            past = now
        assert past.reach == max(0.1, *moves)


def test_powers_are_the_gains_of_stochastic_approximation():
    assert [Power(2.0, 1.0)(t) for t in range(3)] == [2.0, 1.0, 2.0 / 3.0]
    assert Power(3.0, 0.5)(8) == pytest.approx(Diminishing(3.0)(8))
    assert Power(1.0, 2.0, offset=1.0)(0) == 0.25
    with pytest.raises(InvalidInput, match="power"):
        Power(1.0, -1.0)
