import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.stationarity import LipschitzSolver, estimate_constants

from .instances import linear_problem


def test_exact_for_one_entry_and_stated_in_words() -> None:
    leader = pzos.leader_from_functions(
        lambda x, y: float(2.0 * y[0]), lambda x, y: np.zeros(1), lambda x, y: 2.0 * np.ones(1)
    )
    problem = pzos.Problem(leader, lambda x: 3.0 * np.abs(x), x0=np.zeros(1))
    found = estimate_constants(problem, radius=1.0, pairs=60)
    assert found.L_y == pytest.approx(3.0, rel=1e-9)
    assert found.L_f == pytest.approx(2.0)
    assert found.L_g == 0.0
    assert found.queries == 121
    assert "lower estimates" in repr(found)
    assert "may be larger" in repr(found)


def test_the_confidence_is_that_of_the_largest_of_n() -> None:
    problem, _, _ = linear_problem(3, 1.0)
    found = estimate_constants(problem, radius=1.0, pairs=299)
    assert found.missed == pytest.approx(0.00997, abs=1e-4)  # Wilks: 299 draws for 99 % with 95 % confidence
    # among many further pairs, no more than that share (and sampling) is steeper
    steeper = [estimate_constants(problem, radius=1.0, pairs=1, seed=s).L_y > found.L_y for s in range(1, 301)]
    assert np.mean(steeper) <= 0.04


def test_estimates_are_only_used_with_a_stated_factor() -> None:
    problem, _, _ = linear_problem(3, 1.0)
    found = estimate_constants(problem, radius=1.0)
    assumed = found.assumed(2.0, Delta=1.0)
    assert (assumed.L_f, assumed.L_g, assumed.L_y) == pytest.approx((2 * found.L_f, 2 * found.L_g, 2 * found.L_y))
    with pytest.raises(InvalidInput, match="lower estimates"):
        found.assumed(0.5, Delta=1.0)


def test_faults() -> None:
    with pytest.raises(InvalidInput, match=r"(?s)radius.*pairs"):
        LipschitzSolver(radius=0.0, pairs=0)
