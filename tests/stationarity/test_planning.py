"""What is proved beyond the paper: values by hand, laws, second moments against their bounds, and refusals."""

import argparse
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys
from pzos.base.types import LeaderValue, Matrix, Vector
from pzos.cli import plan as plan_command
from pzos.methods.estimators import Probe, predicted_estimate
from pzos.stationarity import Constants, Setting, sharp_moment_constant, theorem_schedule, worst_case
from pzos.study.run import iterate

ONES = Constants(L_f=1.0, L_g=1.0, L_y=1.0, dimension=1, Delta=1.0, k1=1.0, k2=1.0)
SETTINGS = {
    "pzos": Setting(),
    "batch": Setting(batch=5),
    "one-sided": Setting(one_sided=True),
    "memory": Setting("memory", bound=0.5),
    "noise": Setting(noise=1e-3),
    "error": Setting(error=1e-4),
    "projected": Setting(projected=True),
    "zos": Setting("zos"),
    "zos on a set": Setting("zos", batch=2, projected=True),
}
numbers = st.floats(0.1, 10.0)


@given(numbers, numbers, numbers, st.integers(1, 50), numbers)
def test_without_anything_added_the_second_moment_is_the_papers(
    L_f: float, L_g: float, L_y: float, d: int, mu: float
) -> None:
    c = Constants(L_f, L_g, L_y, d, 1.0)
    assert Setting().second_moment(c, mu) == pytest.approx(c.sigma_squared, rel=1e-12)
    assert Setting().bias(c, mu) == 0.0
    assert Setting("zos").second_moment(c, mu) == pytest.approx(c.black_box_sigma_squared, rel=1e-12)


def test_second_moments_and_biases_by_hand() -> None:
    mu = 0.5
    assert Setting(batch=2).second_moment(ONES, mu) == pytest.approx(3.0 + 0.5 + 0.5)
    assert Setting("memory", bound=2.0, batch=3).second_moment(ONES, mu) == pytest.approx(4.0 + 9.0 / 3.0)
    assert Setting(noise=0.1).second_moment(ONES, mu) == pytest.approx(4.0 + 0.5 * (0.1 / 0.5) ** 2)
    assert Setting(noise=0.1).bias(ONES, mu) == pytest.approx(0.2)
    assert Setting(error=0.1).bias(ONES, mu) == pytest.approx(0.2 + 0.2)
    assert Setting(error=0.1).second_moment(ONES, mu) == pytest.approx(2.0 * 4.0 + 2.0 * 0.2**2)
    assert Setting(error=0.1, one_sided=True).bias(ONES, mu) == pytest.approx(0.2 + 0.4)
    ten = Constants(1.0, 1.0, 1.0, 10, 1.0, k2=1.0)
    assert Setting(one_sided=True).second_moment(ten, mu) == pytest.approx(3.0 + 100.0)


def test_queries_per_step() -> None:
    assert [Setting(batch=3).queries_per_step, Setting(batch=3, one_sided=True).queries_per_step] == [7, 4]
    assert Setting("zos", batch=3).queries_per_step == 6


@pytest.mark.parametrize("name", SETTINGS)
def test_the_plan_meets_its_epsilon_and_no_fewer_steps_do(name: str) -> None:
    c = Constants(1.0, 1.0, 0.5, 4, 1.0, k2=sharp_moment_constant(4))
    plan = worst_case(c, SETTINGS[name], delta=0.5, epsilon=0.4, notion="full")
    assert plan.radius <= 0.5
    assert plan.guarantee() <= 0.4 < plan.guarantee(plan.steps // 2)
    assert plan.queries == plan.steps * SETTINGS[name].queries_per_step
    assert (plan.distance > 0.0) == SETTINGS[name].projected


@pytest.mark.parametrize("notion", ["partial", "full"])
def test_the_best_radius_needs_no_more_steps_than_the_papers(notion: pzos.stationarity.theory.Notion) -> None:
    c = Constants(2.0, 1.0, 0.5, 20, 3.0)
    published = theorem_schedule(c, delta=0.2, epsilon=0.3, notion=notion)
    assert worst_case(c, delta=0.2, epsilon=0.3, notion=notion).steps <= published.steps


def test_zos_needs_fewer_steps_in_the_worst_case_where_delta_is_much_larger_than_epsilon() -> None:
    c = Constants(1.0, 1.0, 1.0, 10, 1.0)
    zos, pzos_ = (worst_case(c, Setting(method), delta=1.0, epsilon=0.1) for method in ("zos", "pzos"))
    assert zos.radius == pytest.approx(1.0)
    assert pzos_.radius < 0.1
    assert zos.queries < 0.05 * pzos_.queries


# ---- the statements themselves --------------------------------------------------------------------------------------


def norm_response(X: Matrix) -> Matrix:
    return np.linalg.norm(X, axis=1, keepdims=True)


def moments(setting: Setting, y: object, x: Vector, p: Vector, draws: int = 4000) -> float:
    """Return E|g|^2 of the estimate itself, for grad_x f = e_1, grad_y f of norm 1."""
    d, mu, total = x.size, 0.3, 0.0
    here = y(x[None])[0]  # type: ignore[operator]
    at = LeaderValue(0.0, np.eye(1, d)[0], np.ones(here.size) / sqrt(here.size))
    V = np.array([Keys(3).direction(k, 0, d) for k in range(draws * setting.batch)])
    ahead, behind = y(x + mu * V), y(x - mu * V)  # type: ignore[operator]
    for k in range(draws):
        rows = range(k * setting.batch, (k + 1) * setting.batch)
        if setting.one_sided:
            probes = [Probe(V[q], ahead[q] - here, mu) for q in rows]
        else:
            probes = [Probe(V[q], ahead[q] - behind[q], 2.0 * mu) for q in rows]
        g = predicted_estimate(at, p, probes)
        total += float(g @ g)
    return total / draws


@pytest.mark.parametrize("name", ["pzos", "batch", "one-sided", "memory"])
@pytest.mark.parametrize("y", [np.abs, norm_response, lambda X: X])
def test_second_moments_stay_below_their_bounds(name: str, y: object) -> None:
    setting, d = SETTINGS[name], 12
    c = Constants(1.0, 1.0, 1.0, d, 1.0, k2=sharp_moment_constant(d))
    p = -np.ones(d) * ((setting.bound or 0.0) / sqrt(d))
    for x in (np.zeros(d), 0.05 * np.arange(d)):
        assert moments(setting, y, x, p) <= 1.05 * setting.second_moment(c, 0.3)


def test_one_sided_differences_break_the_bound_of_central_ones() -> None:
    # y* = |x| at 0: every one-sided slope is 1, so |H'g|^2 = d^2.
    d = 12
    c = Constants(1.0, 1.0, 1.0, d, 1.0, k2=sharp_moment_constant(d))
    found = moments(Setting(one_sided=True), norm_response, np.zeros(d), np.zeros(d))
    assert found == pytest.approx(d**2 + 1.0, rel=0.05)
    assert found > 5.0 * Setting().second_moment(c, 0.3)


@pytest.mark.parametrize("name", ["pzos", "memory", "zos"])
def test_the_promise_is_kept_on_a_toy(name: str) -> None:
    # f = sqrt(1 + |x - 2|^2) + y, y* = |x|/2 in one dimension: min|g| over the set is known.
    leader = pzos.leader_from_functions(
        lambda x, y: float(np.sqrt(1.0 + (x[0] - 2.0) ** 2) + y[0]),
        lambda x, y: (x - 2.0) / np.sqrt(1.0 + (x - 2.0) ** 2),
        lambda x, y: np.ones(1),
    )
    problem = pzos.Problem(leader, lambda x: 0.5 * np.abs(x), np.array([-1.0]))
    setting = SETTINGS[name] if name != "memory" else Setting("memory", bound=0.5)
    c = Constants(1.0, 1.0, 0.5, 1, 2.0, k2=1.0)
    plan = worst_case(c, setting, delta=0.3, epsilon=0.9, notion="full")
    solver: pzos.methods.solver.AnySolver = pzos.PZOS(plan.step, plan.radius)
    if name == "memory":
        clipped = pzos.ClippedPrediction(pzos.FittingMemory(), 0.5)
        solver = pzos.MemoryPZOS(plan.step, plan.radius, 1, clipped, pzos.Central())
    if name == "zos":
        solver = pzos.ZOS(plan.step, plan.radius)
    study = pzos.Study(problem.known(), solver, steps=plan.steps, monitor=False)
    points = np.array([record.x[0] for record in iterate(study, pzos.Oracle(problem.follower))])
    slope = (points - 2.0) / np.sqrt(1.0 + (points - 2.0) ** 2) + 0.5 * np.sign(points)
    near_kink = np.abs(points) <= 0.3
    assert np.mean(np.where(near_kink, 0.0, np.abs(slope))) <= 0.9


# ---- the clipped prediction, and what is refused --------------------------------------------------------------------


@given(st.floats(0.01, 10.0), st.integers(1, 6))
def test_a_clipped_prediction_keeps_its_direction_and_its_bound(bound: float, d: int) -> None:
    rng = np.random.default_rng(d)
    at = LeaderValue(0.0, rng.standard_normal(d), rng.standard_normal(d))
    inner = pzos.ModelPrediction(lambda x, g: 3.0 * g)
    plain = inner.predict(None, np.zeros(d), at)
    clipped = pzos.ClippedPrediction(inner, bound).predict(None, np.zeros(d), at)
    assert np.linalg.norm(clipped) <= bound * (1.0 + 1e-12)
    assert clipped == pytest.approx(plain * min(1.0, bound / np.linalg.norm(plain)))


def test_a_clipped_memory_learns_what_its_memory_learns() -> None:
    solver = pzos.MemoryPZOS(0.01, differences=pzos.Central())
    clipped = pzos.MemoryPZOS(
        0.01, differences=pzos.Central(), prediction=pzos.ClippedPrediction(pzos.FittingMemory(), 1e9)
    )
    problem = pzos.testing.small_problem()
    found = [pzos.solve(problem, way, steps=20, progress=False).x for way in (solver, clipped)]
    assert np.array_equal(*found)


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InvalidInput, match="bound = None: expected a bound on"):
        Setting("memory")
    with pytest.raises(InvalidInput, match="bound = 1"):
        Setting(bound=1.0)
    with pytest.raises(InvalidInput, match=r"(?s)noise = 0.1.*error = 0.2"):
        Setting("zos", noise=0.1, error=0.2)
    with pytest.raises(InvalidInput, match=r"noise = 0.1: expected 0 with one-sided"):
        Setting(one_sided=True, noise=0.1)
    with pytest.raises(InvalidInput, match="no partial notion"):
        worst_case(ONES, Setting("zos"), delta=0.1, epsilon=0.1, notion="partial")
    with pytest.raises(InvalidInput, match=r"epsilon = 0.1: expected more than 0.4"):
        worst_case(ONES, Setting(noise=0.1), delta=0.1, epsilon=0.1, notion="partial")


def test_a_k2_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"k2 = 0.9: expected 1 or more"):
        Constants(1.0, 1.0, 1.0, 3, 1.0, k2=0.9)


def test_the_command_plans_what_goes_beyond_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    plan_command.add_arguments(parser)
    given = {"L-f": 1, "L-g": 1, "L-y": 1, "Delta": 1, "delta": 0.1, "epsilon": 0.5, "dimension": 10}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    assert plan_command.run(parser.parse_args([*words, "--method", "memory", "--batch", "2"])) == 0
    said = capsys.readouterr().out
    assert "memory, |p| <= 1, central differences, batch 2" in said
    assert "queries 5 T" in said
    assert plan_command.run(parser.parse_args([*words, "--method", "zos", "--projected"])) == 0
    said = capsys.readouterr().out
    assert said.count("ZOS") == 1
    assert "normals of the set" in said
