"""The two estimators against closed forms and against what the paper proves about them (Lemma 1 and its proof)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from instances import LEADER, START, cost, cost_x, cost_y, response
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Purpose, Vector
from pzos.methods.estimators import (
    Plan,
    Probe,
    black_box_estimate,
    of_kind,
    partial_estimate,
    predicted_estimate,
    sphere_directions,
    two_point_plan,
)
from pzos.methods.solver import Task

N = 4_000


def linear_leader(a: Vector, b: Vector) -> pzos.Leader:
    """f(x, y) = a . x + b . y."""
    return pzos.leader_from_functions(lambda x, y: float(a @ x + b @ y), lambda x, y: a, lambda x, y: b)


def estimates(
    kind: object, leader: pzos.Leader, follower: object, x: Vector, mu: float, n: int, seed: int = 0
) -> Matrix:
    """Draw n independent estimates at x."""
    rows = []
    for step in range(n):
        plan = two_point_plan(x, mu, sphere_directions(Keys(seed), step, 1, x.size), centred=True)
        rows.append(kind(leader, plan, [follower(point) for point in plan.points]).gradient)
    return np.array(rows)


def normal(seed: int, *shape: int) -> Matrix:
    return Keys(seed).generator(Role.INSTANCE).standard_normal(shape)


@pytest.mark.parametrize("d", [2, 6])
def test_mean_of_the_jacobian_estimate_is_the_jacobian(d: int) -> None:
    """On y = J x, E[H] = J: with f = y_i the estimate is row i of H. Every entry within 3 sigma (98 in 100 of them)."""
    jacobian = normal(1, 3, d)
    plans = [two_point_plan(np.ones(d), 0.1, sphere_directions(Keys(2), t, 1, d), centred=True) for t in range(N)]
    answers = [[jacobian @ point for point in plan.points] for plan in plans]
    within = []
    for i in range(3):
        leader = linear_leader(np.zeros(d), np.eye(3)[i])
        rows = np.array(
            [partial_estimate(leader, plan, a).gradient for plan, a in zip(plans, answers, strict=True)]  # type: ignore[union-attr]
        )
        sigma = rows.std(axis=0) / np.sqrt(N)
        within.append(np.abs(rows.mean(axis=0) - jacobian[i]) / sigma)
    assert np.max(within) <= 4.0
    assert np.mean(np.array(within) <= 3.0) >= 0.9


@pytest.mark.parametrize("d", [1, 4, 20])
def test_second_moment_of_the_linear_example(d: int) -> None:
    """For h(x) = L e_1 . x the estimate is d L v_1 v, and E||d L v_1 v||^2 = d L^2 (proof of Lemma 1)."""
    slope = 1.7
    leader = linear_leader(slope * np.eye(d)[0], np.zeros(1))
    rows = estimates(black_box_estimate, leader, lambda x: np.zeros(1), np.zeros(d), 0.3, N)
    v = np.array([Keys(0).direction(step, 0, d) for step in range(N)])
    np.testing.assert_allclose(rows, d * slope * v[:, :1] * v, rtol=1e-9, atol=1e-12)
    squares = (rows**2).sum(axis=1)
    assert abs(squares.mean() - d * slope**2) <= 3 * squares.std() / np.sqrt(N) + 1e-12


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0.05, 3.0), st.floats(0.1, 3.0))
def test_second_moment_bounds_of_the_lemma(seed: int, d: int, L_f: float, L_y: float) -> None:
    """Random instances with |grad_x f|, |grad_y f| <= L_f and y* L_y-Lipschitz satisfy both bounds of Lemma 1.

    f = L_f (sin(a . x) + sin(b . y)) / sqrt 2 with |a| = |b| = 1, and y* = L_y |R x| with R orthogonal. The bounds are
    taken with k_2 = 1, the smallest constant the lemma allows; the sampled mean has three standard errors of room.
    """
    a, b = (w / np.linalg.norm(w) for w in normal(seed, 2, d))
    rotation = np.linalg.qr(normal(seed + 1, d, d))[0]
    leader = pzos.leader_from_functions(
        lambda x, y: float(L_f / np.sqrt(2) * (np.sin(a @ x) + np.sin(b @ y))),
        lambda x, y: L_f / np.sqrt(2) * np.cos(a @ x) * a,
        lambda x, y: L_f / np.sqrt(2) * np.cos(b @ y) * b,
    )

    def follower(x: Vector) -> Vector:
        return L_y * np.abs(rotation @ x)

    x = normal(seed + 2, d)
    partial = (estimates(partial_estimate, leader, follower, x, 0.1, 400, seed) ** 2).sum(axis=1)
    black_box = (estimates(black_box_estimate, leader, follower, x, 0.1, 400, seed) ** 2).sum(axis=1)
    first = d * L_f**2 * L_y**2
    rest = L_f**2 * (1 + 2 * L_y)
    assert partial.mean() - 3 * partial.std() / 20 <= first + rest
    assert black_box.mean() - 3 * black_box.std() / 20 <= first + d * rest


def test_partial_estimate_has_less_noise_where_the_leader_matters() -> None:
    """The gap between the two second moments grows with d when grad_x f is large (Fig. 1)."""
    ratios = []
    for d in (5, 40):
        leader = linear_leader(np.ones(d), np.full(1, 0.1))
        x = np.zeros(d)
        own = estimates(partial_estimate, leader, lambda x: np.abs(x[:1]), x, 0.1, 2000)
        other = estimates(black_box_estimate, leader, lambda x: np.abs(x[:1]), x, 0.1, 2000)
        ratios.append((other**2).sum() / (own**2).sum())
    assert ratios[0] > 3
    assert ratios[1] > 4 * ratios[0]


@pytest.mark.parametrize("q", [1, 4])
def test_both_estimators_from_the_same_answers(q: int) -> None:
    directions = sphere_directions(Keys(8), 0, q, START.size)
    plan = two_point_plan(START, 0.1, directions, centred=True)
    answers = [response(point) for point in plan.points]
    partial = pzos.PZOS.estimate(LEADER, plan, answers)
    black_box = pzos.ZOS.estimate(LEADER, plan, answers)
    uncentred = pzos.ZOS.estimate(LEADER, two_point_plan(START, 0.1, directions, centred=False), answers[1:])
    assert partial is not None
    assert black_box is not None
    assert uncentred is not None
    assert partial.value == black_box.value == cost(START, answers[0])
    assert np.isnan(uncentred.value)
    np.testing.assert_array_equal(black_box.gradient, uncentred.gradient)
    H = sum(np.outer(answers[2 * i + 1] - answers[2 * i + 2], v) for i, v in enumerate(directions)) * 5 / (0.2 * q)
    y = answers[0]
    np.testing.assert_allclose(partial.gradient, cost_x(START, y) + H.T @ cost_y(START, y), rtol=1e-12)
    assert partial.pairs == black_box.pairs == q


def test_pzos_and_zos_use_the_same_directions() -> None:
    task = pzos.Problem(LEADER, response, START)
    own = pzos.Study(task.known(), pzos.PZOS(batch=3), seed=4).ask()
    other = pzos.Study(task.known(), pzos.ZOS(batch=3), seed=4, monitor=False).ask()
    assert own[0].purpose is Purpose.ITERATE
    np.testing.assert_array_equal(own[0].x, START)
    np.testing.assert_array_equal([q.x for q in own[1:]], [q.x for q in other])
    wider = pzos.Study(task.known(), pzos.ZOS(batch=5), seed=4, monitor=False).ask()
    np.testing.assert_array_equal([q.x for q in other], [q.x for q in wider[:6]])


def test_an_estimate_never_writes_into_what_the_leader_returned() -> None:
    own = np.ones(2)
    leader = pzos.Leader(lambda x, y: 0.0, lambda x, y: (0.0, own, own))
    plan = two_point_plan(np.zeros(2), 0.1, sphere_directions(Keys(0), 0, 2, 2), centred=True)
    partial_estimate(leader, plan, [np.arange(2.0) * i for i in range(5)])
    assert own.tolist() == [1.0, 1.0]


def test_partial_estimate_needs_the_answer_at_x() -> None:
    plan = two_point_plan(START, 0.1, sphere_directions(Keys(0), 0, 1, 5), centred=False)
    with pytest.raises(InvalidInput, match="expected a centred plan; plan with centred=True"):
        pzos.PZOS.estimate(LEADER, plan, [response(p) for p in plan.points])


def test_failed_answers_leave_out_their_pair() -> None:
    directions = sphere_directions(Keys(8), 0, 2, 5)
    plan = two_point_plan(START, 0.1, directions, centred=True)
    answers = [response(point) for point in plan.points]
    alone = two_point_plan(START, 0.1, directions[1:], centred=True)
    for estimate in (partial_estimate, black_box_estimate):
        part = estimate(LEADER, plan, [answers[0], answers[1], None, *answers[3:]])
        whole = estimate(LEADER, alone, [answers[0], *answers[3:]])
        assert part is not None
        assert whole is not None
        np.testing.assert_array_equal(part.gradient, whole.gradient)
        assert part.pairs == 1
        assert estimate(LEADER, plan, [answers[0], None, None, None, None]) is None
    assert partial_estimate(LEADER, plan, [None, *answers[1:]]) is None
    without_centre = black_box_estimate(LEADER, plan, [None, *answers[1:]])
    assert without_centre is not None
    assert np.isnan(without_centre.value)


# ---- on a full basis of directions: d/Q sum_q v_q v_q' = I, so that nothing is left to chance ------------------------

CASES = {"seed": st.integers(0, 10**6), "d": st.integers(1, 9), "mu": st.floats(1e-2, 10.0)}


def full_basis(seed: int, d: int) -> tuple[Vector, ...]:
    return pzos.Orthogonal()(Keys(seed), 0, d, d)


@given(**CASES)
def test_a_full_basis_adds_up_to_the_identity(seed: int, d: int, mu: float) -> None:
    basis = full_basis(seed, d)
    np.testing.assert_allclose(sum(np.outer(v, v) for v in basis), np.eye(d), atol=1e-12)


@given(**CASES)
def test_on_a_full_basis_both_estimates_of_a_linear_problem_are_its_gradient(seed: int, d: int, mu: float) -> None:
    jacobian, a, b = normal(seed, 3, d), normal(seed + 1, d), normal(seed + 2, 3)
    plan = two_point_plan(normal(seed + 3, d), mu, full_basis(seed, d), centred=True)
    answers = [jacobian @ point for point in plan.points]
    for kind in (partial_estimate, black_box_estimate):
        found = kind(linear_leader(a, b), plan, answers)
        assert found is not None
        assert found.pairs == d
        np.testing.assert_allclose(found.gradient, a + jacobian.T @ b, atol=1e-8 * d)


@given(**CASES)
def test_on_a_full_basis_no_prediction_leaves_a_trace(seed: int, d: int, mu: float) -> None:
    """E[d v v'] = I is what makes every p unbiased; on a full basis it holds exactly, and p cancels."""
    jacobian, b = normal(seed, 3, d), normal(seed + 2, 3)
    at = pzos.LeaderValue(0.0, normal(seed + 1, d), b)
    probes = [Probe(v, mu * (jacobian @ v), mu) for v in full_basis(seed, d)]
    for prediction in (np.zeros(d), 10.0 * normal(seed + 3, d), jacobian.T @ b):
        found = predicted_estimate(at, prediction, probes)
        np.testing.assert_allclose(found, at.grad_x + jacobian.T @ b, atol=1e-10)


@given(**CASES, count=st.integers(1, 5))
def test_a_perfect_prediction_needs_no_basis(seed: int, d: int, mu: float, count: int) -> None:
    jacobian, b = normal(seed, 3, d), normal(seed + 2, 3)
    at = pzos.LeaderValue(0.0, normal(seed + 1, d), b)
    probes = [Probe(v, mu * (jacobian @ v), mu) for v in sphere_directions(Keys(seed), 0, count, d)]
    np.testing.assert_allclose(predicted_estimate(at, jacobian.T @ b, probes), at.grad_x + jacobian.T @ b, atol=1e-10)


@given(**CASES, count=st.integers(1, 5))
def test_the_sign_of_a_direction_does_not_matter(seed: int, d: int, mu: float, count: int) -> None:
    x, directions = normal(seed, d), sphere_directions(Keys(seed), 0, count, d)
    leader = linear_leader(normal(seed + 1, d), normal(seed + 2, d))
    found = []
    for sign in (1.0, -1.0):
        plan = two_point_plan(x, mu, [sign * v for v in directions], centred=True)
        estimate = partial_estimate(leader, plan, [np.sin(point) for point in plan.points])
        assert estimate is not None
        found.append(estimate.gradient)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_a_plan_of_another_kind_is_refused_by_name() -> None:
    plan = Plan((START,), (Purpose.ITERATE,))
    assert of_kind(Plan, plan) is plan
    task = Task(pzos.Problem(LEADER, response, START).known(), Keys(0))
    for solver, kind in (
        (pzos.PZOS(), "TwoPoint"),
        (pzos.MemoryPZOS(), "Probe"),
        (pzos.CompositeTrustRegion(), "Trial"),
    ):
        with pytest.raises(TypeError, match=f"expected a {kind}Plan, got Plan"):
            solver.tell(task, solver.init(task), plan, [response(START)])
