"""Certificates under outcome constraints: the Lagrangian's gradients, multipliers, and what is claimed."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.types import Vector
from pzos.stationarity.multipliers import Constraints, lagrangian

TARGET = np.array([2.0, 1.0, 0.0])


def leader(sign: float) -> pzos.Leader:
    return pzos.leader_from_functions(
        lambda x, y: sign * float((y - TARGET) @ (y - TARGET)),
        lambda x, y: 0.0 * x,
        lambda x, y: sign * 2.0 * (y - TARGET),
    )


def follower(x: Vector) -> Vector:
    return x + 0.1 * np.sin(x)


def problem(cap: float = 1.0, sense: str = "min", x0: Vector = TARGET) -> pzos.Problem:
    """Track a target with y_0 <= cap: at the optimum y = (cap, 1, 0), and the multiplier is 2 (2 - cap)."""
    sign = 1.0 if sense == "min" else -1.0
    return pzos.Problem(leader(sign), follower, x0, sense=sense, outcomes=pzos.caps([cap, 5.0], [0, 1]))  # type: ignore[arg-type]


def answering(y: Vector) -> Vector:
    """Return the x that is answered by y."""
    x = y.copy()
    for _ in range(100):
        x = y - 0.1 * np.sin(x)
    return x


OPTIMUM = answering(np.array([1.0, 1.0, 0.0]))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_gradients_of_the_lagrangian_are_exact(sense: str) -> None:
    known = problem(sense=sense).known()
    assert known.outcomes is not None
    cost = lagrangian(known, known.outcomes, np.array([0.7, 0.2]))
    assert pzos.check_leader(cost, TARGET, TARGET + 0.3)
    sign = 1.0 if sense == "min" else -1.0
    above = cost.value(TARGET, np.array([3.0, 1.0, 0.0])) - known.leader.value(TARGET, np.array([3.0, 1.0, 0.0]))
    assert above == pytest.approx(sign * (0.7 * 2.0 - 0.2 * 4.0))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_constrained_optimum_is_certified_and_its_multiplier_found(sense: str) -> None:
    found = pzos.certify(problem(sense=sense), OPTIMUM, delta=0.01)
    assert found.constraints is not None
    np.testing.assert_allclose(found.constraints.multipliers, [2.0, 0.0], atol=0.02)
    assert found.partial.upper < 0.05
    assert found.constraints.violation < 1e-9
    assert found.constraints.slackness < 1e-9
    assert "under its constraints" in str(found)
    assert "under its constraints" in found.sentence
    sign = 1.0 if sense == "min" else -1.0
    assert found.value == pytest.approx(sign * 1.0)


def test_without_the_constraint_the_same_point_is_far_from_stationary() -> None:
    free = pzos.Problem(leader(1.0), follower, OPTIMUM)
    assert pzos.certify(free, OPTIMUM, delta=0.01).partial.estimate == pytest.approx(
        2.0 * (1 + 0.1 * np.cos(1.0)), rel=0.1
    )


def test_a_constraint_away_from_its_limit_has_no_multiplier() -> None:
    start = answering(np.array([0.5, 1.0, 0.0]))
    found = pzos.certify(problem(), start, delta=0.01)
    assert found.constraints is not None
    np.testing.assert_array_equal(found.constraints.multipliers, [0.0, 0.0])
    assert found.partial.estimate > 2.0


def test_a_violated_constraint_shows() -> None:
    found = pzos.certify(problem(cap=0.5), OPTIMUM, delta=0.01)
    assert found.constraints is not None
    assert found.constraints.violation == pytest.approx(0.5)
    assert "largest violation 0.5" in found.sentence


def test_a_run_ends_with_a_certificate_under_its_constraints() -> None:
    found = pzos.solve(problem(x0=np.array([0.2, 0.1, 0.3])), queries=25, progress=False, certificate=True)
    assert found.certificate is not None
    assert found.certificate.constraints is not None
    np.testing.assert_array_equal(found.certificate.x, found.x)
    assert found.certificate.constraints.multipliers[0] == pytest.approx(2.0, rel=0.05)
    assert list(found.certificate.constraints.multipliers) == list(found.multipliers.values())
    assert found.certificate.partial.upper < 0.2


def test_what_is_said_of_constraints() -> None:
    said = Constraints(("a", "b"), np.array([-0.5, 0.1]), np.array([2.0, 1.0]))
    assert said.violation == 0.1
    assert said.slackness == pytest.approx(1.1)
    assert said.sentence == "largest violation 0.1, complementarity 1.1"
