"""The exact penalty: its gradients, what it reports, and the methods of the paper under constraints."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.types import Vector
from pzos.methods.penalty import penalised
from pzos.testing import check_solver


def leader() -> pzos.Leader:
    return pzos.leader_from_functions(
        lambda x, y: float((x - 1.0) @ (x - 1.0) + y @ y), lambda x, y: 2.0 * (x - 1.0), lambda x, y: 2.0 * y
    )


def follower(x: Vector) -> Vector:
    return np.array([x.sum(), x[0] - x[1]])


def problem(sense: str = "min") -> pzos.Problem:
    cost = leader()
    if sense == "max":
        cost = pzos.leader_from_functions(
            lambda x, y: -leader().value(x, y), lambda x, y: -leader()(x, y).grad_x, lambda x, y: -leader()(x, y).grad_y
        )
    return pzos.Problem(cost, follower, np.array([0.5, -0.5]), sense=sense, outcomes=pzos.caps(0.25))  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [4.0, -4.0])
def test_gradients_of_the_penalised_cost_are_exact(weight: float) -> None:
    phi = penalised(leader(), pzos.caps([0.2, -0.1]), weight, 0.05)
    for y in ([0.19, -0.12], [0.5, 0.3], [-2.0, -2.0]):
        assert pzos.check_leader(phi, [0.3, 0.4], y, tolerance=1e-4)


def test_the_penalty_is_the_largest_violation_up_to_the_rounding() -> None:
    x, y, caps = np.zeros(2), np.array([0.7, 0.1]), pzos.caps([0.2, 0.0])
    added = penalised(leader(), caps, 1.0, 1e-3).value(x, y) - leader().value(x, y)
    assert 0.5 <= added <= 0.5 + 1e-3 * np.log(3.0)
    within = penalised(leader(), caps, 1.0, 1e-3).value(x, np.array([-1.0, -1.0])) - leader().value(x, -np.ones(2))
    assert 0.0 <= within < 1e-9


@pytest.mark.parametrize(
    "method",
    [pzos.PZOS(step=0.02), pzos.ZOS(step=0.02), pzos.MemoryPZOS(step=0.02), pzos.SecantPZOS(step=0.02)],
    ids=lambda method: type(method).__name__,
)
@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_methods_of_the_paper_keep_the_cap(method: pzos.PZOS, sense: str) -> None:
    # without the cap y_0 = 0.4 at the optimum (by symmetry x_0 = x_1 = 1/3); with it x_0 + x_1 = 0.25
    found = pzos.solve(problem(sense), method, steps=600, progress=False)
    assert found.violation <= 1e-6
    assert follower(found.x)[0] <= 0.25 + 1e-5
    best = 2.0 * (0.125 - 1.0) ** 2 + 0.25**2
    value = found.value if sense == "min" else -found.value
    assert best - 1e-6 <= value <= best + 0.05
    assert found.value == pytest.approx(problem(sense).leader.value(found.x, follower(found.x)))


def test_what_is_reported_is_the_cost_and_not_the_penalised_one() -> None:
    found = pzos.solve(problem(), pzos.PZOS(step=0.02), steps=3, progress=False)
    assert found.trace["value"][0] == leader().value(np.array([0.5, -0.5]), follower(np.array([0.5, -0.5])))


def test_multipliers_are_the_weights_of_the_penalty() -> None:
    prices = pzos.ExactPenalty(pzos.PZOS(), weight=10.0, width=0.1).multipliers(
        None, None, np.zeros(2), np.array([0.0])
    )  # type: ignore[arg-type]
    assert prices == pytest.approx([5.0])


def test_only_methods_that_see_the_leader_alone_can_be_penalised() -> None:
    with pytest.raises(InvalidInput, match="PZOS, ZOS, MemoryPZOS or SecantPZOS"):
        pzos.ExactPenalty(pzos.CompositeTrustRegion())


def test_a_penalised_method_obeys_the_laws_of_solvers() -> None:
    check_solver(pzos.ExactPenalty(pzos.PZOS()))
