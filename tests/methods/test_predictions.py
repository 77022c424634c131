"""Unbiasedness of every prediction and the special cases of the family; what each memory remembers, at what size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import LeaderValue
from pzos.methods.estimators import Probe, partial_estimate, predicted_estimate, sphere_directions, two_point_plan
from pzos.methods.memory import MemoryPZOS, SecantPZOS
from pzos.methods.predictions import (
    BlendPrediction,
    BlendState,
    FittingMemory,
    LeaderPrediction,
    ModelPrediction,
    PairMemory,
    Pairs,
    Regression,
    RegressionMemory,
    SecantMemory,
    ZeroPrediction,
)
from pzos.methods.probes import Central, Cycled, Independent, Midpoint, OneSided, Orthogonal
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


def linear_case(seed, decisions, responses):
    draw = Keys(seed).generator(Role.INSTANCE)
    jacobian = draw.standard_normal((responses, decisions))
    return jacobian, LeaderValue(0.0, np.zeros(decisions), draw.standard_normal(responses))


def probes_along(jacobian, directions):
    return [Probe(v, 0.25 * (jacobian @ v), 0.25) for v in directions]


def error(memory, learned, jacobian, at):
    x = np.zeros(jacobian.shape[1])
    return np.linalg.norm(memory.predict(learned, x, at) - jacobian.T @ at.grad_y)


@settings(deadline=None)
@given(seed=st.integers(0, 2**20), count=st.integers(1, 12))
def test_pairs_are_the_secant_memory_exactly_while_they_last(seed, count):
    jacobian, at = linear_case(seed, 5, 3)
    probes = probes_along(jacobian, [Keys(seed).direction(0, i, 5) for i in range(count)])
    dense, pairs = SecantMemory(), PairMemory(count)
    x = np.zeros(5)
    full = dense.predict(dense.learn(dense.start(5), at, probes), x, at)
    limited = pairs.predict(pairs.learn(pairs.start(5), at, probes), x, at)
    np.testing.assert_allclose(limited, full, atol=1e-12)


def test_pairs_forget_what_is_older():
    jacobian, at = linear_case(1, 6, 4)
    probes = probes_along(jacobian, [Keys(1).direction(0, i, 6) for i in range(9)])
    memory = PairMemory(4)
    all_told = memory.learn(memory.start(6), at, probes)
    last_told = memory.learn(memory.start(6), at, probes[-4:])
    assert len(all_told.directions) == 4
    np.testing.assert_array_equal(memory.predict(all_told, np.zeros(6), at), memory.predict(last_told, np.zeros(6), at))


@pytest.mark.parametrize("memory", [SecantMemory(), RegressionMemory(ridge=1e-12), PairMemory(6)], ids=str)
def test_one_basis_teaches_a_constant_jacobian(memory):
    jacobian, at = linear_case(2, 6, 4)
    basis = [Cycled()(Keys(2), step, 1, 6)[0] for step in range(6)]
    learned = memory.start(6)
    for probe in probes_along(jacobian, basis):
        learned = memory.learn(learned, at, [probe])
    assert error(memory, learned, jacobian, at) < 1e-8


def test_regression_learns_from_independent_directions_faster_than_secants():
    jacobian, at = linear_case(3, 30, 30)
    probes = probes_along(jacobian, [Keys(3).direction(0, i, 30) for i in range(60)])
    regression, secant = RegressionMemory(), SecantMemory()
    fitted = error(regression, regression.learn(None, at, probes), jacobian, at)
    assert fitted < 0.05 * error(secant, secant.learn(None, at, probes), jacobian, at)


def test_regression_is_discounted_least_squares():
    """Against the normal equations, solved directly."""
    jacobian, at = linear_case(4, 5, 3)
    draw = Keys(4).generator(Role.NOISE)
    directions = np.array([Keys(4).direction(0, i, 5) for i in range(25)])
    slopes = directions @ jacobian.T + 0.1 * draw.standard_normal((25, 3))
    memory = RegressionMemory(horizon=2.0, ridge=1e-3)
    learned = memory.learn(None, at, [Probe(v, s, 1.0) for v, s in zip(directions, slopes, strict=True)])
    keep = 1 - 1 / (2.0 * 5)
    weights = keep ** np.arange(24, -1, -1)
    normal = (directions.T * weights) @ directions + memory.ridge * keep**25 * np.eye(5)
    expected = np.linalg.solve(normal, (directions.T * weights) @ slopes)
    np.testing.assert_allclose(learned.transposed, expected, rtol=1e-6, atol=1e-8)


def test_regression_stays_bounded_where_a_direction_is_never_probed():
    at = LeaderValue(0.0, np.zeros(3), np.ones(2))
    memory, learned = RegressionMemory(horizon=0.5), None
    for i in range(2000):
        v = np.append(Keys(0).direction(i, 0, 2), 0.0)
        learned = memory.learn(learned, at, [Probe(v, v[:2], 1.0)])
    assert np.isfinite(learned.inverse).all()
    assert learned.inverse.max() <= 3 / memory.ridge * 2
    np.testing.assert_allclose(memory.predict(learned, np.zeros(3), at), [1.0, 1.0, 0.0], atol=1e-6)


def test_regression_stays_positive_definite_over_a_long_run():
    at = LeaderValue(0.0, np.zeros(8), np.ones(8))
    memory, learned = RegressionMemory(), None
    for i in range(5000):
        v = Keys(5).direction(i, 0, 8)
        learned = memory.learn(learned, at, [Probe(v, v, 1.0)])
    assert np.linalg.eigvalsh(learned.inverse).min() > 1e-3
    np.testing.assert_array_equal(learned.inverse, learned.inverse.T)


@pytest.mark.parametrize("memory", [SecantMemory(), RegressionMemory(), PairMemory(3), FittingMemory()], ids=str)
def test_learning_writes_into_nothing_and_nothing_told_changes_nothing(memory):
    jacobian, at = linear_case(6, 4, 4)
    probes = probes_along(jacobian, [Keys(6).direction(0, i, 4) for i in range(5)])
    before = memory.learn(memory.start(4), at, probes[:2])
    kept = memory.predict(before, np.zeros(4), at)
    memory.learn(before, at, probes[2:])
    np.testing.assert_array_equal(memory.predict(before, np.zeros(4), at), kept)
    after = memory.learn(before, at, [])
    np.testing.assert_array_equal(memory.predict(after, np.zeros(4), at), kept)
    if isinstance(before, Pairs):
        assert len(before.directions) == len(after.directions) > 0
        assert all(map(np.array_equal, after.directions, before.directions))
        assert all(map(np.array_equal, after.slopes, before.slopes))
    else:
        assert after is before


@pytest.mark.parametrize(("entries", "kind"), [(4 * 7, Regression), (4 * 7 - 1, Pairs)])
def test_the_fitting_memory_picks_by_size(entries, kind):
    jacobian, at = linear_case(7, 4, 3)
    memory = FittingMemory(entries)
    learned = memory.learn(memory.start(4), at, probes_along(jacobian, [Keys(7).direction(0, 0, 4)]))
    assert isinstance(learned, kind)
    same = (RegressionMemory() if kind is Regression else PairMemory()).predict(learned, np.zeros(4), at)
    np.testing.assert_array_equal(memory.predict(learned, np.zeros(4), at), same)


def test_bad_sizes_are_named():
    with pytest.raises(InvalidInput, match="pairs = 0"):
        PairMemory(0)
    with pytest.raises(InvalidInput, match="entries = True"):
        FittingMemory(True)
    with pytest.raises(InvalidInput, match="2 faults"):
        RegressionMemory(horizon=0.1, ridge=-1.0)
