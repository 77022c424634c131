"""What each memory remembers, and at what size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import LeaderValue
from pzos.methods.directions import Cycled
from pzos.methods.estimators import Probe
from pzos.methods.memories import FittingMemory, PairMemory, Pairs, Regression, RegressionMemory, SecantMemory


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
    assert memory.learn(before, at, []) is before or isinstance(before, Pairs)
    np.testing.assert_array_equal(memory.predict(memory.learn(before, at, []), np.zeros(4), at), kept)


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
