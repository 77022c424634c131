"""Related methods against plain loops, stored trajectories, and what defines each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
import related_reading as reading
from golden import GOLDEN_RELATED
from instances import LEADER, START, cost, cost_x, cost_y, problem, response
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import Matrix, Vector
from pzos.methods.related.blocks import GAUSSIAN, SIGNS, SPHERE, Rays
from pzos.methods.related.goldstein import linear_minimiser
from pzos.methods.solver import Task
from pzos.methods.steps import value_at

INSIDE = pzos.Nonnegative()
SEED = 7
#: Every related method in a configuration of its own, with the queries of its first step.
RELATED: dict[str, tuple[Any, int]] = {
    "PZOBO": (pzos.PZOBO(batch=2), 3),
    "NesterovSpokoiny": (pzos.NesterovSpokoiny(batch=2), 3),
    "ZSOL": (pzos.ZSOL(batch=3), 4),
    "VarianceReducedZSOL": (pzos.VarianceReducedZSOL(batch=2), 3),
    "SPSA": (pzos.SPSA(), 2),
    "FlaxmanOnePoint": (pzos.FlaxmanOnePoint(), 1),
    "GuidedZO": (pzos.GuidedZO(step=0.3), 1),
    "GuidedZO-history": (pzos.GuidedZO(step=0.3, history=True), 2),
    "FollowerAgnostic": (pzos.FollowerAgnostic(settle=3), 6),
    "ZOStackelberg": (pzos.ZOStackelberg(), 4),
    "GFM": (pzos.GFM(), 2),
    "TwoPhaseGFM": (pzos.TwoPhaseGFM(rounds=3, steps=3, judging=3), 2),
    "GFMPlus": (pzos.GFMPlus(large=6, period=3), 12),
    "KornowskiShamir": (pzos.KornowskiShamir(), 2),
    "GradientMappingZO": (pzos.GradientMappingZO(), 8),
    "FrankWolfeZO": (pzos.FrankWolfeZO(), 8),
}


def cost_at(x: Vector) -> float:
    return cost(x, response(x))


def walked(solver: Any, task: pzos.Problem, steps: int, seed: int = SEED) -> tuple[Matrix, Vector]:
    """Return the iterates x_0, ..., x_T that a method walks through, and the point it returns."""
    study = pzos.Study(task.known(), solver, seed=seed, steps=steps, monitor=False)
    start = study.state.at
    points = [study.state.at for _ in pzos.iterate(study, pzos.Oracle(task.follower, seed=seed))]
    return np.array([start, *points]), study.state.x


# ---- against plain loops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
def test_pzobo_is_its_reading_edition(batch: int) -> None:
    ours, _ = walked(pzos.PZOBO(0.02, 0.1, batch), problem(domain=INSIDE), 60)
    theirs = reading.pzobo(cost_x, cost_y, response, START, lambda t: 0.02, 0.1, 60, batch, SEED, INSIDE.project)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("solver", [pzos.ZSOL(0.02, 0.1, 2), pzos.VarianceReducedZSOL(0.02, 0.1, 1, growth=0.5)])
def test_zsol_is_its_reading_edition(solver: Any) -> None:
    ours, _ = walked(solver, problem(domain=INSIDE), 40)
    theirs = reading.zsol(cost_at, START, lambda t: 0.02, 0.1, 40, solver._count, SEED, INSIDE.project)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_batches_of_the_variance_reduced_form_grow() -> None:
    assert [pzos.VarianceReducedZSOL(batch=2)._count(t) for t in range(4)] == [2, 4, 6, 8]
    assert [pzos.VarianceReducedZSOL(growth=0.5)._count(t) for t in (0, 3, 4)] == [1, 2, 3]


def test_spsa_is_its_reading_edition() -> None:
    solver = pzos.SPSA()
    ours, _ = walked(solver, problem(domain=INSIDE), 60)
    gains = [lambda t, gain=gain: value_at(gain, t) for gain in (solver.step, solver.radius)]
    theirs = reading.spsa(cost_at, START, *gains, 60, SEED, INSIDE.project)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    assert value_at(solver.step, 0) == pytest.approx(0.1 / 11.0**0.602)


def test_gfm_plus_is_its_reading_edition() -> None:
    ours, returned = walked(pzos.GFMPlus(0.02, 0.1, 2, large=7, period=4), problem(domain=INSIDE), 30)
    theirs, output = reading.gfm_plus(cost_at, START, 0.02, 0.1, 30, 2, 7, 4, SEED, INSIDE.project)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(returned, output, rtol=1e-10, atol=1e-12)


def test_kornowski_shamir_is_its_reading_edition() -> None:
    solver = pzos.KornowskiShamir(0.01, 0.1, length=0.07, block=4)
    ours, returned = walked(solver, problem(domain=INSIDE), 41)
    theirs, output = reading.kornowski_shamir(cost_at, START, 0.01, 0.1, 41, 0.07, 4, SEED, INSIDE.project)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(returned, output, rtol=1e-10, atol=1e-12)
    assert (np.linalg.norm(np.diff(ours, axis=0), axis=1) <= 0.07 * (1 + 1e-12)).all()


def test_gfm_walks_as_zos_and_the_gradient_mapping_as_zos_in_batches() -> None:
    for solver, batch in ((pzos.GFM(0.02), 1), (pzos.GradientMappingZO(0.02), 4)):
        ours, _ = walked(solver, problem(domain=INSIDE), 30)
        study = pzos.Study(problem(domain=INSIDE).known(), pzos.ZOS(0.02, 0.1, batch), seed=SEED, steps=30)
        theirs = [record.x for record in pzos.iterate(study, pzos.Oracle(response)) if record.step < 30]
        np.testing.assert_allclose(ours[:-1], theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", RELATED)
def test_trajectories_are_the_stored_ones(name: str) -> None:
    _, returned = walked(RELATED[name][0], problem(domain=INSIDE), 12, seed=2024)
    np.testing.assert_allclose(returned, GOLDEN_RELATED[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", RELATED)
def test_the_first_step_asks_what_the_method_says(name: str) -> None:
    solver, queries = RELATED[name]
    assert len(pzos.Study(problem().known(), solver, steps=1, monitor=False).ask()) == queries


def test_every_method_descends_on_a_smooth_problem() -> None:
    """The one-point estimate excepted, whose noise is as large as F itself."""
    for name, (solver, _) in RELATED.items():
        if name not in ("FlaxmanOnePoint", "TwoPhaseGFM"):
            result = pzos.solve(problem(), solver, queries=400, seed=1, progress=False, certificate=False)
            assert result.best_value < result.trace["value"][0] - 0.3, name


# ---- directions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rays", [SPHERE, GAUSSIAN, SIGNS], ids=["sphere", "gaussian", "signs"])
def test_weighted_directions_have_unit_covariance(rays: Rays) -> None:
    d, count = 4, 20_000
    drawn = np.array(rays.draw(Keys(3), 0, count, d))
    np.testing.assert_allclose(rays.weight(d) * drawn.T @ drawn / count, np.eye(d), atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.03)


def test_gaussian_directions_point_where_those_of_pzos_do() -> None:
    for u, v in zip(GAUSSIAN.draw(Keys(5), 2, 3, 6), SPHERE.draw(Keys(5), 2, 3, 6), strict=True):
        np.testing.assert_allclose(u / np.linalg.norm(u), v, rtol=1e-14)


def test_the_one_point_estimate_is_right_in_the_mean() -> None:
    """Lemma 2.1 of Flaxman et al. on a linear cost, whose smoothing is itself: 40000 directions, 4 deviations."""
    weights = np.array([1.0, -2.0, 0.5])
    leader = pzos.leader_from_functions(lambda x, y: float(weights @ x), lambda x, y: weights, lambda x, y: 0.0 * y)
    task = pzos.Problem(leader, lambda x: x[:1], np.zeros(3))
    points, _ = walked(pzos.FlaxmanOnePoint(1.0, 0.5, batch=40_000), task, 1)
    np.testing.assert_allclose(-points[1], weights, atol=4 * 3.0 * np.linalg.norm(weights) / np.sqrt(3 * 40_000))


# ---- outputs --------------------------------------------------------------------------------------------------------


def test_gfm_returns_each_iterate_equally_often() -> None:
    steps, seeds = 5, 1000
    counts = np.zeros(steps)
    for seed in range(seeds):
        points, returned = walked(pzos.GFM(0.02), problem(), steps, seed)
        counts[np.flatnonzero((points[:-1] == returned).all(axis=1))[0]] += 1
    expected = seeds / steps
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # chi-square with 4 degrees: 0.1 %


def test_two_phase_gfm_restarts_judges_and_ends() -> None:
    solver = pzos.TwoPhaseGFM(0.05, 0.05, rounds=3, steps=6, judging=200)
    result = pzos.solve(problem(), solver, steps=100, seed=2, progress=False, certificate=False)
    assert result.stop is pzos.Stop.STEPS
    assert result.queries == 3 * 6 * 2 + 3 * 200 * 2
    points, returned = walked(solver, problem(), 100, seed=2)
    np.testing.assert_array_equal(points[6], START)
    np.testing.assert_array_equal(points[12], START)
    study = pzos.Study(problem().known(), solver, seed=2, steps=18, monitor=False)
    for _ in pzos.iterate(study, pzos.Oracle(response)):
        pass
    outputs = study.state.kept
    assert len(outputs) == 3

    def length(x: Vector) -> float:
        """The gradient of F smoothed over the ball, from 4000 directions of another seed."""
        return float(
            np.linalg.norm(reading.two_points(cost_at, x, 0.05, [reading.sphere(99, 0, q, 5) for q in range(4000)]))
        )

    np.testing.assert_array_equal(returned, min(outputs, key=length))


def test_kornowski_shamir_returns_the_mean_so_far_before_its_first_block() -> None:
    solver = pzos.KornowskiShamir(block=10)
    points, returned = walked(solver, problem(), 3)
    shares = [reading.share(SEED, t) for t in range(3)]
    passed = [points[t] + shares[t] * (points[t + 1] - points[t]) for t in range(3)]
    np.testing.assert_allclose(returned, np.mean(passed, axis=0), rtol=1e-12)


# ---- sets of decisions ----------------------------------------------------------------------------------------------


def test_the_trace_shows_the_gradient_mapping() -> None:
    task = problem(domain=INSIDE)
    trace = pzos.solve(task, pzos.GradientMappingZO(0.5), steps=20, seed=SEED, progress=False, certificate=False).trace
    points, _ = walked(pzos.GradientMappingZO(0.5), task, 20)
    mapped = (np.diff(points, axis=0) ** 2).sum(axis=1) / 0.25
    np.testing.assert_allclose(trace["gradient_norm_squared"][:20], mapped, rtol=1e-12)


SETS = {
    "whole": pzos.Whole(),
    "nonnegative": pzos.Nonnegative(),
    "box": pzos.Box(-0.1, 0.4),
    "simplex": pzos.Simplex(1.0),
    "ball": pzos.Ball(np.zeros(4), 0.3),
}


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(SETS)), seed=st.integers(0, 10_000), reach=st.floats(0.05, 3.0))
def test_no_feasible_point_is_below_the_linear_minimiser(name: str, seed: int, reach: float) -> None:
    domain, draw = SETS[name], np.random.default_rng(seed)
    centre, slope = domain.project(draw.standard_normal(4) * 0.2), draw.standard_normal(4)
    found = linear_minimiser(domain, slope, centre, reach)
    assert domain.contains(found, 1e-9)
    assert np.linalg.norm(found - centre) <= reach * (1 + 1e-9)
    for _ in range(50):
        other = domain.project(centre + 2.0 * reach * draw.standard_normal(4))
        other = centre + (other - centre) * min(1.0, reach / max(np.linalg.norm(other - centre), 1e-300))
        assert slope @ found <= slope @ other + 1e-6 * reach


def test_frank_wolfe_on_known_sets() -> None:
    slope = np.array([1.0, -2.0, 0.0])
    np.testing.assert_allclose(
        linear_minimiser(pzos.Whole(), slope, np.ones(3), 2.0), np.ones(3) - 2.0 * slope / np.sqrt(5.0), rtol=1e-12
    )
    np.testing.assert_allclose(
        linear_minimiser(pzos.Simplex(1.0), slope, np.full(3, 1 / 3), 9.0), [0, 1, 0], atol=1e-12
    )
    np.testing.assert_array_equal(linear_minimiser(pzos.Whole(), np.zeros(3), np.ones(3), 2.0), np.ones(3))


# ---- guides, and followers who adapt --------------------------------------------------------------------------------


def test_the_first_guided_direction_is_the_known_gradient() -> None:
    study = pzos.Study(problem().known(), pzos.GuidedZO(radius=0.1), seed=3, steps=4, monitor=False)
    (first,) = study.ask()
    study.tell(first, response(first.x))
    pair = study.ask()
    offset = pair[0].x - START
    known = cost_x(START, response(START))
    assert abs(offset @ known) == pytest.approx(np.linalg.norm(offset) * np.linalg.norm(known), rel=1e-9)


def test_guides_fade_and_a_guide_of_zero_leaves_normal_directions() -> None:
    solver, task = pzos.GuidedZO(fading=0.5, batch=4000), Task(problem().known(), Keys(1))
    guide = np.eye(5)[0]
    for moves, along_guide in ((0, 1.0), (1, 0.5 + 0.5 / 5), (2, 0.25 + 0.75 / 5)):
        state = solver.init(task)._replace(t=2 * moves + 1, kept=guide)
        drawn = np.array(solver._guided(task, state))
        assert np.mean(drawn[:, 0] ** 2) == pytest.approx(along_guide, rel=0.1)
    nowhere = np.array(solver._guided(task, solver.init(task)._replace(t=1, kept=np.zeros(5))))
    np.testing.assert_allclose(np.mean(nowhere**2, axis=0), 0.2, rtol=0.1)


class Adapting:
    """Followers who move half of the way to their answer at every query, from wherever the last one left them."""

    def __init__(self) -> None:
        self.y = np.zeros(4)

    def __call__(self, x: Vector) -> Vector:
        self.y = 0.5 * (self.y + response(x))
        return self.y.copy()


def test_followers_who_adapt_are_given_time_to_settle() -> None:
    exact, _ = walked(pzos.FollowerAgnostic(), problem(), 30)
    errors = []
    for settle in (1, 6, 24):
        study = pzos.Study(problem().known(), pzos.FollowerAgnostic(settle=settle), seed=SEED, steps=30, monitor=False)
        followers = Adapting()
        while not study.done:
            for query in study.ask():
                study.tell(query, followers(query.x))
        errors.append(np.linalg.norm(study.state.x - exact[-1]))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


# ---- what they refuse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        (pzos.PZOBO, {"radius": -1.0}, "radius"),
        (pzos.GFMPlus, {"large": 0}, "large"),
        (pzos.TwoPhaseGFM, {"rounds": 1.5}, "rounds"),
        (pzos.KornowskiShamir, {"length": 0.0}, "length"),
        (pzos.FrankWolfeZO, {"reach": float("inf")}, "reach"),
        (pzos.GuidedZO, {"fading": 1.0}, "fading"),
        (pzos.VarianceReducedZSOL, {"growth": -0.5}, "growth"),
        (pzos.FollowerAgnostic, {"settle": 0}, "settle"),
    ],
)
def test_bad_settings_are_named(kind: type, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        kind(**options)


def test_a_partly_failed_step_uses_what_was_answered() -> None:
    study = pzos.Study(problem().known(), pzos.ZSOL(0.02, 0.1, batch=2), seed=SEED, steps=1)
    centre, first, second = study.ask()
    study.tell(centre, response(centre.x))
    study.tell(first, response(first.x))
    study.fail(second, "no answer")
    alone, _ = walked(pzos.ZSOL(0.02, 0.1), pzos.Problem(LEADER, response, START), 1)
    np.testing.assert_array_equal(study.state.x, alone[1])
