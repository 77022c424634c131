"""Unbiasedness of every prediction, and the family's special cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import LeaderValue
from pzos.methods.differences import Central, Midpoint, OneSided
from pzos.methods.directions import Cycled, Independent, Orthogonal
from pzos.methods.estimators import Probe, partial_estimate, predicted_estimate, sphere_directions, two_point_plan
from pzos.methods.memories import FittingMemory, PairMemory, RegressionMemory, SecantMemory
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.predictions import BlendPrediction, BlendState, LeaderPrediction, ModelPrediction, ZeroPrediction
from pzos.methods.smoothing import PZOS
from pzos.methods.solver import Task
from pzos.problem.leader import leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Whole
from pzos.solving import solve

RADIUS = 0.5
MIX = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0], [0.4, 0.1, 0.6], [-1.0, 0.3, 0.2]])
X = np.array([0.2, -0.1, 0.9])
Y = MIX @ np.abs(X)
LEADER = leader_from_functions(
    lambda x, y: float(x @ x + y @ y + x[0] * y[3]),
    lambda x, y: 2 * x + np.array([y[3], 0.0, 0.0]),
    lambda x, y: 2 * y + np.array([0.0, 0.0, 0.0, x[0]]),
)
PREDICTIONS = {
    "leader": LeaderPrediction(),
    "zero": ZeroPrediction(),
    "blend": BlendPrediction(),
    "model": ModelPrediction(lambda x, u: np.array([3.0, -2.0, 1.0]) * u[:3] + u[3]),
    "secant": SecantMemory(),
    "regression": RegressionMemory(),
    "pairs": PairMemory(2),
    "fitting": FittingMemory(),
}


def response(x):
    """A response with kinks: a mix of |x_i|."""
    return MIX @ np.abs(x)


def smoothed_gradient():
    """Return grad_x f + J y_mu' grad_y f in closed form.

    A coordinate u of the uniform ball of R^3 has density 3/4 (1 - u^2), so d/dx E|x + mu u| = (3 a - a^3)/2 with
    a = x/mu clipped to [-1, 1].
    """
    a = np.clip(X / RADIUS, -1.0, 1.0)
    at = LEADER(X, Y)
    return at.grad_x + (MIX * ((3 * a - a**3) / 2)).T @ at.grad_y


def learned_elsewhere(prediction, steps=7):
    """Return what a prediction knows after a few steps at other points: a past that is anything but right."""
    learned = prediction.start(3)
    for step in range(steps):
        x = X + 0.3 * Keys(9).direction(step, 1, 3)
        reading_probes = probes_at(x, sphere_directions(Keys(8), step, 1, 3), OneSided())[1]
        learned = prediction.learn(learned, LEADER(x, response(x)), reading_probes)
    return learned


def probes_at(x, directions, rule):
    plan = rule.plan(x, RADIUS, directions, Whole())
    reading = rule.read(plan, [response(point) for point in plan.points])
    return reading.y, reading.probes


def sampled(prediction, rule, directions=Independent(), batch=1, draws=4000, seed=1):  # noqa: B008
    learned = learned_elsewhere(prediction)
    estimates = np.empty((draws, 3))
    for draw in range(draws):
        y, probes = probes_at(X, directions(Keys(seed), draw, batch, 3), rule)
        at = LEADER(X, y)
        estimates[draw] = predicted_estimate(at, prediction.predict(learned, X, at), probes)
    return estimates


def z_scores(estimates, target):
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    return np.abs(estimates.mean(axis=0) - target) / np.maximum(error, 1e-12)


@pytest.mark.parametrize("rule", [Central(), OneSided()], ids=str)
@pytest.mark.parametrize("name", PREDICTIONS)
def test_every_prediction_is_unbiased_for_the_smoothed_gradient(name, rule):
    estimates = sampled(PREDICTIONS[name], rule)
    assert z_scores(estimates, smoothed_gradient()).max() < 4.5


@pytest.mark.parametrize("rule", [Central(), OneSided()], ids=str)
def test_orthogonal_batches_are_unbiased_with_less_noise(rule):
    prediction = SecantMemory()
    orthogonal = sampled(prediction, rule, Orthogonal(), batch=3, draws=1500)
    independent = sampled(prediction, rule, Independent(), batch=3, draws=1500)
    assert z_scores(orthogonal, smoothed_gradient()).max() < 4.5
    assert z_scores(independent, smoothed_gradient()).max() < 4.5
    assert orthogonal.var(axis=0).sum() < 0.7 * independent.var(axis=0).sum()


def test_cycled_directions_are_unbiased_over_whole_bases():
    estimates = sampled(SecantMemory(), OneSided(), Cycled(), draws=4500).reshape(-1, 3, 3).mean(axis=1)
    assert z_scores(estimates, smoothed_gradient()).max() < 4.5


def test_midpoint_bias_is_real_and_within_its_bound():
    estimates = sampled(LeaderPrediction(), Midpoint(), draws=4000)
    bias = np.linalg.norm(estimates.mean(axis=0) - smoothed_gradient())
    assert z_scores(estimates, smoothed_gradient()).max() > 6
    smoothness, lipschitz = 3.0, np.linalg.norm(MIX, 2)  # Hessian of f: 2 I plus one entry pair 1
    assert bias <= smoothness * lipschitz * RADIUS * (1 + np.sqrt(3) * lipschitz)


def test_using_a_memory_after_it_learned_is_biased():
    """Why the order matters: the same memory, updated before use, misses the smoothed gradient."""
    memory, learned = SecantMemory(), learned_elsewhere(SecantMemory())
    at = LEADER(X, Y)
    estimates = np.empty((2000, 3))
    for draw in range(len(estimates)):
        _, probes = probes_at(X, sphere_directions(Keys(1), draw, 1, 3), OneSided())
        estimates[draw] = at.grad_x + memory.predict(memory.learn(learned, at, probes), X, at)
    assert z_scores(estimates, smoothed_gradient()).max() > 6


def told_gradients(solver, draws):
    """Return g of ``draws`` runs of one tell from one state with a past, each with directions of its own."""
    known = Problem(LEADER, response, X).known()
    state = solver.init(Task(known, Keys(0)))
    learned = learned_elsewhere(solver.prediction)
    state = replace(state, learned=learned)
    gradients = np.empty((draws, 3))
    for draw in range(draws):
        task = Task(known, Keys(draw))
        plan = solver.ask(task, state)
        after, _ = solver.tell(task, state, plan, [response(point) for point in plan.points])
        gradients[draw] = X - after.x  # the step is 1
    return gradients


@pytest.mark.parametrize("name", PREDICTIONS)
def test_the_solver_uses_the_memory_before_it_learns(name):
    solver = MemoryPZOS(1.0, RADIUS, prediction=PREDICTIONS[name])
    assert z_scores(told_gradients(solver, 3000), smoothed_gradient()).max() < 4.5


def test_the_secant_solver_is_biased_as_it_says():
    solver = SecantPZOS(1.0, RADIUS, prediction=SecantMemory())
    assert z_scores(told_gradients(solver, 1000), smoothed_gradient()).max() > 6


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), batch=st.integers(1, 4), radius=st.floats(1e-3, 1.0))
def test_leader_prediction_has_the_bits_of_the_papers_estimate(seed, batch, radius):
    directions = sphere_directions(Keys(seed), 0, batch, 3)
    plan = Central().plan(X, radius, directions, Whole())
    answers = [response(point) for point in plan.points]
    reading = Central().read(plan, answers)
    at = LEADER(X, reading.y)
    ours = predicted_estimate(at, LeaderPrediction().predict(None, X, at), reading.probes)
    paper = partial_estimate(LEADER, two_point_plan(X, radius, directions, centred=True), answers)
    np.testing.assert_array_equal(ours, paper.gradient)


def test_memory_solver_with_the_leaders_prediction_is_pzos_bit_for_bit():
    problem = Problem(LEADER, response, X)
    ours = solve(problem, MemoryPZOS(0.02, 0.1, 2, LeaderPrediction(), Central()), steps=30, seed=4)
    paper = solve(problem, PZOS(0.02, 0.1, 2), steps=30, seed=4)
    np.testing.assert_array_equal(ours.x, paper.x)
    np.testing.assert_array_equal(ours.trace["value"], paper.trace["value"])


def test_a_perfect_model_leaves_no_noise():
    """On a linear response h is exact and g does not depend on the direction."""
    problem = Problem(LEADER, lambda x: MIX @ x, X)
    solver = MemoryPZOS(0.05, prediction=ModelPrediction(lambda x, u: MIX.T @ u))
    ends = [solve(problem, solver, steps=20, seed=seed).x for seed in (0, 1)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


def test_model_noise_follows_the_models_error():
    spread = [
        sampled(ModelPrediction(lambda x, u, e=e: (MIX * np.sign(X)).T @ u * (1 + e)), OneSided(), draws=400).var()
        for e in (0.5, 2.0)
    ]
    assert spread[0] < spread[1]


def test_blend_finds_the_two_extremes():
    at = LeaderValue(0.0, np.array([1.0, 0.0, 0.0]), np.array([1.0]))
    v = np.array([1.0, 0.0, 0.0])
    blend = BlendPrediction()
    silent = blend.learn(BlendState(), at, [Probe(v, np.array([0.0]), 1.0)] * 50)
    assert silent.weight == 1.0  # the response does not matter: PZOS
    balanced = blend.learn(BlendState(), at, [Probe(v, np.array([-1.0]), 1.0)] * 50)
    assert balanced.weight == 0.0  # at an optimum the response cancels the leader's part: the zero prediction
    np.testing.assert_array_equal(blend.predict(balanced, X, at), -at.grad_x)


def test_wrong_model_products_are_named():
    prediction = ModelPrediction(lambda x, u: u)
    with pytest.raises(InvalidInput, match=r"product\(x, u\) has shape \(4,\): expected \(3,\)"):
        prediction.predict(None, X, LEADER(X, Y))
    with pytest.raises(InvalidInput, match="product = 3"):
        ModelPrediction(3)
    with pytest.raises(InvalidInput, match="discount = 0"):
        BlendPrediction(0)


def test_faults_of_a_solver_are_listed_together():
    with pytest.raises(InvalidInput, match="SecantPZOS: 4 faults") as caught:
        SecantPZOS(step=-1, radius=0, batch=0, prediction=SecantMemory)
    for argument in ("step = -1", "radius = 0", "batch = 0", "prediction = "):
        assert argument in str(caught.value)
