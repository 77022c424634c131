"""The trust region under outcome constraints: known optima, both senses, sets, laws, and runs that cannot succeed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.types import Vector
from pzos.methods.estimators import of_kind
from pzos.methods.trust_region.elastic import ElasticMove
from pzos.methods.trust_region.state import Kind, TrialPlan
from pzos.testing import check_solver

MIX = np.array([[1.0, 0.4, -0.3], [0.2, -0.8, 1.0]])


def follower(x: Vector) -> Vector:
    return np.tanh(MIX @ x) + 0.2 * (MIX @ x)


def leader(sign: float = 1.0) -> pzos.Leader:
    return pzos.leader_from_functions(
        lambda x, y: sign * float((x - 1.0) @ (x - 1.0) + y @ y),
        lambda x, y: sign * 2.0 * (x - 1.0),
        lambda x, y: sign * 2.0 * y,
    )


def problem(outcomes: Any, domain: pzos.Box | None = None, sense: str = "min", x0: float = 0.1) -> pzos.Problem:
    sign = 1.0 if sense == "min" else -1.0
    return pzos.Problem(leader(sign), follower, np.full(3, x0), domain, sense, outcomes=outcomes)  # type: ignore[arg-type]


def run(task: pzos.Problem, queries: int = 40, **settings: object) -> pzos.Result:
    return pzos.solve(task, queries=queries, progress=False, certificate=False, **settings)  # type: ignore[arg-type]


def white_box(outcomes: pzos.Outcomes) -> tuple[float, Vector]:
    """Return the constrained optimum by SLSQP on F and g themselves."""
    from scipy.optimize import minimize

    found = minimize(
        lambda x: leader().value(x, follower(x)), np.zeros(3), method="SLSQP", options={"ftol": 1e-14},
        constraints=[{"type": "ineq", "fun": lambda x: -outcomes.values(x, follower(x))}],
    )  # fmt: skip
    return float(found.fun), found.x


CAPS = pzos.caps([0.3, np.inf], lower=[-np.inf, 0.25])


@pytest.mark.parametrize("sense", ["min", "max"])
def test_it_finds_the_constrained_optimum_in_either_sense(sense: str) -> None:
    best, at = white_box(CAPS)
    found = run(problem(CAPS, sense=sense))
    assert (found.value if sense == "min" else -found.value) == pytest.approx(best, rel=1e-4)
    np.testing.assert_allclose(found.x, at, atol=0.02)
    assert found.violation <= 1e-6
    assert found.active == ("y[0] <= 0.3",)
    assert all(price >= 0.0 for price in found.multipliers.values())
    assert found.multipliers["y[1] >= 0.25"] == 0.0


def test_a_multiplier_is_what_a_unit_of_room_is_worth() -> None:
    step = 1e-3
    prices = [white_box(pzos.caps([0.3 + room], [0]))[0] for room in (-step, step)]
    worth = (prices[0] - prices[1]) / (2.0 * step)
    found = run(problem(pzos.caps([0.3], [0])))
    assert found.multipliers["y[0] <= 0.3"] == pytest.approx(worth, rel=0.02)
    told = found.trace["multipliers"]
    assert told[np.isfinite(told)][-1] == pytest.approx(worth, rel=0.1)  # at the last trial, as the model saw it


def test_an_equality_is_kept_within_its_tolerance() -> None:
    balance = pzos.outcomes_from_functions(
        lambda x, y: y[:1] - y[1:] - 0.4, lambda x, y, w: (0 * x, np.array([w[0], -w[0]])), names="balance",
        equal={"balance": 1e-3},
    )  # fmt: skip
    found = run(problem(balance))
    y = follower(found.x)
    assert abs(y[0] - y[1] - 0.4) <= 1e-3 * (1.0 + 1e-2)
    assert found.value == pytest.approx(white_box(balance)[0], rel=1e-3)


@pytest.mark.parametrize(
    ("domain", "x0"),
    [
        (pzos.Box(-0.5, 0.5), 0.1),
        (pzos.Nonnegative(), 0.1),
        (pzos.Simplex(1.0), 1.0 / 3.0),
        (pzos.Budget(1.0), 0.1),
        (pzos.Ball(0.0, 0.8), 0.1),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_constraints_are_kept_in_every_kind_of_set(domain: pzos.Box, x0: float) -> None:
    asked: list[Vector] = []
    task = problem(pzos.caps([0.2], [0]), domain, x0=x0)
    follow = task.follower

    def heard(x: Vector) -> Vector:
        asked.append(x)
        return follower(x)

    assert follow is not None
    found = run(pzos.Problem(task.leader, heard, task.x0, domain, outcomes=task.outcomes), 30)
    assert found.violation <= 1e-6
    assert all(domain.contains(x, 1e-9) for x in asked)
    assert found.value < leader().value(task.x0, follower(task.x0))


def test_conflicting_constraints_end_with_their_own_reason_and_names() -> None:
    below, above = pzos.caps([0.0], [0], names=["north"]), pzos.caps(np.inf, [0], lower=[0.5], names=["north"])
    found = run(problem([below, above]), 25)
    assert found.stop is pzos.Stop.INFEASIBLE
    assert found.violation > 0.1
    assert "north >= 0.5" in repr(found)
    assert "north <= 0" in repr(found)
    # both cannot hold, so the least violated point is half way between them, up to their scales
    assert 0.05 < follower(found.x)[0] < 0.45


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-0.5, 0.8))
def test_no_infeasible_point_is_called_feasible(seed: int, cap: float) -> None:
    found = run(problem(pzos.caps([cap], [0])), 12, seed=seed)
    y = follower(found.x)
    standing = found.standing
    assert standing is not None
    np.testing.assert_allclose(standing.values, [y[0] - cap])
    feasible = y[0] - cap <= 1e-9 * standing.scales[0]
    assert standing.feasible == feasible == (found.violation <= 1e-9) == (found.stop is not pzos.Stop.INFEASIBLE)
    assert found.value == leader().value(found.x, y)


def test_the_returned_point_is_the_best_feasible_one_of_all_told() -> None:
    asked: list[Vector] = []

    def heard(x: Vector) -> Vector:
        asked.append(x)
        return follower(x)

    found = run(pzos.Problem(leader(), heard, np.full(3, 0.1), outcomes=CAPS), 20)
    told = [(leader().value(x, follower(x)), CAPS.values(x, follower(x)), x) for x in asked]
    standing = found.standing
    assert standing is not None
    good = [one for one in told if (one[1] <= 1e-9 * standing.scales).all()]
    assert found.value == min(one[0] for one in good)
    assert len(asked) == 20


def test_margins_make_trials_safer() -> None:
    wary, bold = (run(problem(CAPS), 30, risk=risk).trace["violation"] > 1e-6 for risk in (0.01, 0.5))
    assert np.count_nonzero(wary[3:]) <= np.count_nonzero(bold[3:])


def test_the_trace_says_which_share_of_its_margin_a_query_keeps() -> None:
    margins = run(problem(CAPS), queries=25).trace["margin"]
    told = margins[np.isfinite(margins)]
    assert np.isnan(margins[0])  # before the first answer there is no model
    assert (told.min() >= 0.0, told.max()) == (True, 1.0)


def asked_without_margins(seed: int) -> int:
    """Return how many of 25 queries on a kinked response went where margins were left out."""
    rng = np.random.default_rng(seed)
    slopes, base, prices = rng.standard_normal((6, 8)), rng.standard_normal(6), 0.5 + rng.random(6)
    profit = pzos.leader_from_functions(
        lambda x, y: float(-prices @ y + 0.1 * (y @ y) + 0.3 * (x @ x)), lambda x, y: 0.6 * x,
        lambda x, y: 0.2 * y - prices,
    )  # fmt: skip

    def kinked(x: Vector) -> Vector:
        return np.asarray(np.maximum(slopes @ x + base, 0.0))

    task = pzos.Problem(
        profit, kinked, np.zeros(8), pzos.Box(-4.0, 4.0), outcomes=pzos.caps(np.full(3, 0.4), [0, 1, 2])
    )
    study = pzos.Study(task.known(), pzos.ConstrainedTrustRegion(), queries=25)
    without = 0
    while not study.done:
        (query,) = study.ask()
        plan = of_kind(TrialPlan, study.solver.ask(study.task, study.state))  # a pure function: the plan that is open
        if isinstance(plan.move, ElasticMove):
            assert plan.kind is not Kind.PROBE or plan.move.bold.predicted <= 1e-9
            without += plan.kind is Kind.EXPLORE and np.array_equal(query.x, plan.move.bold.x)
        study.tell(query, kinked(query.x))
    return without


def test_where_margins_leave_nothing_to_gain_it_asks_without_them_and_not_at_random() -> None:
    """On which instances that comes to pass depends on rounding, and so on the version of numpy."""
    assert sum(asked_without_margins(seed) for seed in (2, 3, 4, 8)) > 1


def test_it_obeys_the_laws_of_solvers_without_constraints_too() -> None:
    check_solver(pzos.ConstrainedTrustRegion())


def test_without_constraints_it_asks_what_the_trust_region_asks() -> None:
    task = pzos.Problem(leader(), follower, np.full(3, 0.1))
    plain = run(task, 10)
    wrapped = pzos.solve(task, pzos.ConstrainedTrustRegion(), queries=10, progress=False)
    np.testing.assert_array_equal(plain.trace["value"], wrapped.trace["value"])


def test_a_killed_run_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    whole = run(problem(CAPS), 14)
    run(problem(CAPS), 6, path=tmp_path / "caps.study")
    rest = run(problem(CAPS), 14, path=tmp_path / "caps.study")
    np.testing.assert_array_equal(whole.trace["value"], rest.trace["value"])
    np.testing.assert_array_equal(whole.x, rest.x)
    assert whole.multipliers == rest.multipliers
    other = problem(pzos.caps([0.4], [0]))
    with pytest.raises(pzos.DifferentStudy, match="outcomes"):
        run(other, 14, path=tmp_path / "caps.study")


def test_failing_queries_do_not_end_a_run() -> None:
    count = iter(range(1000))

    def sometimes(x: Vector) -> Vector:
        if next(count) % 4 == 2:
            raise RuntimeError("busy")
        return follower(x)

    tolerance = pzos.Tolerance(policy="drop", attempts=1)
    found = run(pzos.Problem(leader(), sometimes, np.full(3, 0.1), outcomes=CAPS), 30, tolerance=tolerance)
    assert found.failures > 3
    assert found.violation <= 1e-6


@pytest.mark.parametrize("risk", [0.0, 0.6, -1.0, "much"])
def test_a_risk_that_is_no_probability_is_refused(risk: float) -> None:
    with pytest.raises(InvalidInput, match="risk"):
        run(problem(CAPS), risk=risk)


def test_a_solver_that_takes_no_constraints_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="one that takes constraints on outcomes"):
        pzos.Study(problem(CAPS).known(), pzos.PZOS())
    stopping = pzos.StopWhenStationary(pzos.PZOS(), delta=0.1, epsilon=0.1)
    with pytest.raises(InvalidInput, match="one that takes constraints on outcomes"):
        pzos.solve(problem(CAPS), stopping, steps=3, progress=False)
