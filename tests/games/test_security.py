"""The security game: optimality, laws, peers, the paper's rules, bad input."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize, minimize_scalar

from pzos.base.errors import InvalidInput, NotConverged
from pzos.games.security import SecurityGame, symmetric_effort
from pzos.problem.follower import Follower
from pzos.problem.leader import check_leader
from pzos.problem.sets import Nonnegative

SETTINGS = settings(max_examples=60, deadline=None)
SHARES = st.sampled_from([1e-9, 1e-3, 0.02, 0.3, 0.5, 0.9, 1.5, 3.0, 100.0])


def game_and_point(seed: int, targets: int, share: float) -> tuple[SecurityGame, np.ndarray]:
    game = SecurityGame.random(seed, targets=targets, budget_share=share)
    x = np.random.default_rng(seed).uniform(0.0, 3.0, targets)
    return game, x


def optimality_residual(game: SecurityGame, x: np.ndarray, y: np.ndarray) -> float:
    """The attacker's KKT residual, relative, computed apart from the kernel with the best multiplier."""
    strength = np.maximum(x, 0.0) + game.baseline
    pull = game.attacker_value * strength / (strength + y) ** 2
    marginal = pull - game.attacker_cost * y
    attacked = y > 0.0
    spends = math.fsum(y) >= game.budget * (1.0 - 1e-12)
    multiplier = max(float(np.median(marginal[attacked])), 0.0) if spends and attacked.any() else 0.0
    gap = marginal - multiplier
    scale = pull + game.attacker_cost * y + multiplier
    return float(np.max(np.where(attacked, np.abs(gap), np.maximum(gap, 0.0)) / scale))


@SETTINGS
@given(seed=st.integers(0, 10_000), targets=st.integers(1, 60), share=SHARES)
def test_response_is_optimal_and_within_budget(seed: int, targets: int, share: float) -> None:
    game, x = game_and_point(seed, targets, share)
    y = game.response(x)
    assert (y >= 0.0).all()
    assert math.fsum(y) <= game.budget * (1.0 + 1e-12)
    assert optimality_residual(game, x, y) <= 1e-12


def test_small_budgets_leave_targets_alone_and_large_ones_are_not_spent() -> None:
    game, x = game_and_point(1, 50, 0.02)
    y = game.response(x)
    assert 0 < np.count_nonzero(y) < 50
    assert math.fsum(y) == pytest.approx(game.budget, rel=1e-13)
    rich = SecurityGame(*(getattr(game, name) for name in FIELDS[:5]), budget=math.inf)
    free = rich.response(x)
    assert (free > 0.0).all()
    _, certificate = rich.certified_response(x)
    assert certificate.multiplier[0] == 0.0
    enough = SecurityGame(*(getattr(game, name) for name in FIELDS[:5]), budget=float(free.sum()) * 1.01)
    np.testing.assert_allclose(enough.response(x), free, rtol=1e-14)


FIELDS = ["defender_value", "attacker_value", "baseline", "defender_cost", "attacker_cost", "budget"]


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_slsqp(seed: int) -> None:
    game, x = game_and_point(seed, 8, [0.1, 0.5, 3.0][seed % 3])
    strength = x + game.baseline

    def cost(y: np.ndarray) -> float:
        return float((game.attacker_cost * y * y / 2 - game.attacker_value * y / (strength + y)).sum())

    def slope(y: np.ndarray) -> np.ndarray:
        return game.attacker_cost * y - game.attacker_value * strength / (strength + y) ** 2

    within = {"type": "ineq", "fun": lambda y: game.budget - y.sum(), "jac": lambda y: -np.ones_like(y)}
    peer = minimize(cost, np.full(8, game.budget / 8), jac=slope, bounds=[(0, None)] * 8, constraints=within,
                    method="SLSQP", options={"ftol": 1e-15, "maxiter": 500})  # fmt: skip
    mine = game.response(x)
    np.testing.assert_allclose(mine, peer.x, atol=1e-6)
    assert cost(mine) <= cost(peer.x) + 1e-12


@SETTINGS
@given(seed=st.integers(0, 1000), targets=st.integers(1, 40), share=SHARES)
def test_permuting_targets_permutes_the_answer(seed: int, targets: int, share: float) -> None:
    game, x = game_and_point(seed, targets, share)
    order = np.random.default_rng(seed + 1).permutation(targets)
    other = SecurityGame(*(getattr(game, name)[order] for name in FIELDS[:5]), budget=game.budget)
    np.testing.assert_allclose(other.response(x[order]), game.response(x)[order], rtol=1e-11, atol=1e-13)


@SETTINGS
@given(seed=st.integers(0, 1000), share=SHARES, money=st.floats(1e-6, 1e6), size=st.floats(1e-6, 1e6))
def test_scaling_laws(seed: int, share: float, money: float, size: float) -> None:
    """Multiplying values and costs by a factor changes nothing; changing the unit of effort rescales it."""
    game, x = game_and_point(seed, 12, share)
    y = game.response(x)
    dearer = SecurityGame(
        game.defender_value, money * game.attacker_value, game.baseline, game.defender_cost,
        money * game.attacker_cost, game.budget,
    )  # fmt: skip
    np.testing.assert_allclose(dearer.response(x), y, rtol=1e-10, atol=1e-13)
    rescaled = SecurityGame(
        game.defender_value, game.attacker_value, size * game.baseline, game.defender_cost,
        game.attacker_cost / size**2, size * game.budget,
    )  # fmt: skip
    np.testing.assert_allclose(rescaled.response(size * x) / size, y, rtol=1e-10, atol=1e-13)


@SETTINGS
@given(seed=st.integers(0, 1000), share=SHARES, factor=st.floats(1.01, 5.0))
def test_a_larger_budget_never_lowers_an_effort(seed: int, share: float, factor: float) -> None:
    game, x = game_and_point(seed, 12, share)
    richer = SecurityGame(*(getattr(game, name) for name in FIELDS[:5]), budget=factor * game.budget)
    assert (richer.response(x) >= game.response(x) - 1e-13).all()
    assert richer.certified_response(x)[1].multiplier[0] <= game.certified_response(x)[1].multiplier[0] + 1e-13


@SETTINGS
@given(seed=st.integers(0, 1000), share=SHARES, which=st.integers(0, 11))
def test_own_effect_has_the_sign_of_the_contest(seed: int, share: float, which: int) -> None:
    """Without a budget y_i depends on x_i alone, and falls in it exactly where y_i < x_i + b_i."""
    game, x = game_and_point(seed, 12, 1.0)
    free = SecurityGame(*(getattr(game, name) for name in FIELDS[:5]), budget=math.inf)
    moved = x.copy()
    moved[which] += 1e-4
    before, after = free.response(x), free.response(moved)
    others = np.arange(12) != which
    assert (before[others] == after[others]).all()
    if abs(before[which] - x[which] - game.baseline[which]) > 1e-2:
        assert (after[which] < before[which]) == (before[which] < x[which] + game.baseline[which])


def test_a_batch_is_its_rows_bit_for_bit_whatever_was_asked_before() -> None:
    game = SecurityGame.random(5, targets=37)
    rows = np.random.default_rng(0).uniform(-0.2, 3.0, (20, 37))
    together = game.response(rows)
    for i in reversed(range(20)):
        assert (game.response(rows[i]) == together[i]).all()
    assert (game.response(np.asfortranarray(rows)) == together).all()
    assert (game.response(rows[::2]) == together[::2]).all()
    copied = pickle.loads(pickle.dumps(game))
    assert (copied.response(rows) == together).all()
    answers = game.follower().respond_all(list(rows[:3]))
    assert all((answer.y == row).all() for answer, row in zip(answers, together, strict=False))
    assert all(0.0 <= answer.gap <= 1e-12 for answer in answers)


def test_investments_below_zero_count_as_none() -> None:
    game = SecurityGame.random(2, targets=6)
    x = np.array([-0.3, 0.0, 0.5, -5.0, 1.0, 0.2])
    assert (game.response(x) == game.response(np.maximum(x, 0.0))).all()
    y = game.response(x)
    assert game.damage(x, y) == pytest.approx(
        game.damage(np.maximum(x, 0.0), y) + float((game.defender_cost * np.minimum(x, 0.0) ** 2 / 2).sum())
    )


def test_leader_gradients_are_exact() -> None:
    game = SecurityGame.random(3, targets=15)
    x = np.random.default_rng(3).uniform(0.1, 2.0, 15)
    assert check_leader(game.leader(), x, game.response(x))


def test_paper_rules_for_budget_and_start() -> None:
    game = SecurityGame.random(11, targets=300)
    for low, high, names in [(1, 5, FIELDS[:2]), (0.1, 0.5, FIELDS[2:3]), (0.1, 0.3, FIELDS[3:5])]:
        for name in names:
            data = getattr(game, name)
            assert data.min() >= low
            assert data.max() <= high
            assert data.mean() == pytest.approx((low + high) / 2, rel=0.1)
    y = symmetric_effort(game.attacker_value, game.baseline, game.attacker_cost)
    mirrored = SecurityGame(*(getattr(game, name) for name in FIELDS[:5]), budget=math.inf)
    np.testing.assert_allclose(mirrored.response(y), y, rtol=1e-13)
    assert game.budget == pytest.approx(0.5 * y.sum(), rel=1e-14)
    x0 = game.start()
    for i in (0, 7, 299):
        v, b, c = game.defender_value[i], game.baseline[i], game.defender_cost[i]
        best = minimize_scalar(
            lambda x, v=v, b=b, c=c: v * b / (x + 2 * b) + c * x * x / 2, bounds=(0, 10), options={"xatol": 1e-10}
        )
        assert x0[i] == pytest.approx(best.x, abs=1e-6)
    np.testing.assert_allclose(
        game.defender_value * game.baseline / (x0 + 2 * game.baseline) ** 2, game.defender_cost * x0, rtol=1e-12
    )


def test_problem_and_repr() -> None:
    game = SecurityGame.random(0, targets=4)
    problem = game.problem()
    assert isinstance(problem.domain, Nonnegative)
    assert problem.sense == "min"
    assert isinstance(problem.follower, Follower)
    assert (problem.x0 == game.start()).all()
    assert repr(game).startswith("SecurityGame(targets=4, budget=")
    assert "\n" not in repr(game)
    assert (SecurityGame.random(0, targets=4).attacker_value == game.attacker_value).all()
    assert (game.problem(x0=np.ones(4)).x0 == 1.0).all()


def test_second_moments_of_the_paper_at_one_size() -> None:
    """Fig. 2 at n = 105: 85 / 336 in the paper; 7 instances, one run each, so a wide band."""
    from pzos.base.keys import Keys

    moments = np.zeros(2)
    for seed in range(7):
        game, keys = SecurityGame.random(seed, targets=105), Keys(seed)
        for black_box in (False, True):
            x = game.start()
            for t in range(500):
                v = keys.direction(t, 0, 105)
                y, up, down = game.response(np.stack([x, x + 0.1 * v, x - 0.1 * v]))
                if black_box:
                    rise = game.damage(x + 0.1 * v, up) - game.damage(x - 0.1 * v, down)
                    g = 105 / 0.2 * rise * v
                else:
                    _, grad_x, grad_y = game.damage_and_gradients(x, y)
                    g = grad_x + 105 / 0.2 * float(grad_y @ (up - down)) * v
                moments[int(black_box)] += float(g @ g) / 3500
                x = np.maximum(x - 0.03 / math.sqrt(t + 1) * g, 0.0)
    assert 60.0 < moments[0] < 130.0
    assert 260.0 < moments[1] < 420.0


def test_extreme_data_still_certified() -> None:
    one = SecurityGame([1.0], [1e12], [1e-9], [1.0], [1e-12], 1e3)
    assert one.response([0.0])[0] == pytest.approx(1e3, rel=1e-12)
    game = SecurityGame.random(0, targets=3)
    y = game.response([1e200, 0.0, 1e-300])
    assert math.fsum(y) == pytest.approx(game.budget, rel=1e-12)
    ties = SecurityGame(np.ones(4), np.ones(4), np.ones(4), np.ones(4), np.ones(4), 0.5)
    np.testing.assert_allclose(ties.response(np.zeros(4)), 0.125, rtol=1e-14)


def test_data_over_many_orders_of_magnitude_and_with_exact_ties_is_certified() -> None:
    rng = np.random.default_rng(0)
    for k in range(1500):
        n, reach = int(rng.integers(1, 30)), [1, 4, 8][k % 3]

        def data(n: int = n, reach: int = reach, ties: bool = k % 2 == 0) -> np.ndarray:
            exponent = rng.integers(-reach, reach + 1, n) if ties else rng.uniform(-reach, reach, n)
            return 10.0**exponent

        budget = 10.0 ** rng.uniform(-reach, reach) * rng.choice([1e-12, 1e-3, 1.0, n, 1e6])
        game = SecurityGame(data(), data(), data(), data(), data(), float(budget))
        x = np.where(rng.random(n) < 0.3, 0.0, data())
        y, certificate = game.certified_response(x)
        assert certificate.gap[0] <= 1e-14
        assert math.fsum(y[0]) <= budget * (1.0 + 1e-14)


def test_a_large_game() -> None:
    game = SecurityGame.random(0, targets=200_000)
    y, certificate = game.certified_response(game.start())
    assert certificate.gap[0] <= 1e-12
    assert abs(math.fsum(y[0]) - game.budget) <= 1e-12 * game.budget


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        SecurityGame([1, 2], [1, -2], [1], [math.nan, 1], "cheap", 0)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "5 faults" in message
    for part in ("attacker_value[1] = -2.0", "baseline", "defender_cost[0] = nan", "attacker_cost", "budget = 0"):
        assert part in message
    with pytest.raises(InvalidInput, match="targets = 0"):
        SecurityGame.random(0, targets=0)
    with pytest.raises(InvalidInput, match="budget = nan"):
        SecurityGame([1], [1], [1], [1], [1], math.nan)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "part"),
    [
        ([1.0, 2.0], "4 entries"),
        (np.ones((2, 3)), "4 entries"),
        ([1, 2, math.nan, 4], "x[2] = nan"),
        ("no", "numbers"),
        (np.full((2, 4), -math.inf), "x[0, 0] = -inf"),
        ([], "4 entries"),
        (np.ones((1, 1, 4)), "4 entries"),
    ],
)
def test_bad_queries_are_refused(x: object, part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        SecurityGame.random(0, targets=4).response(x)  # type: ignore[arg-type]
    assert part in str(caught.value)


def test_an_answer_without_certificate_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import pzos.games.security as module

    def lazy_kernel(*arguments: np.ndarray) -> float:
        arguments[-2][:] = 1.0
        arguments[-1][:] = 1e-3
        return 1e-3

    monkeypatch.setattr(module, "_compiled", lambda: lazy_kernel)
    with pytest.raises(NotConverged, match=r"residual 1\.00e-03"):
        SecurityGame.random(0, targets=4).response(np.ones(4))


@pytest.mark.parametrize(
    ("targets", "share", "message"),
    [
        (0, 0.5, "targets = 0: expected a whole number >= 1; try targets=10"),
        (2.5, 0.5, r"targets = 2\.5: expected a whole number >= 1"),
        (3, 0.0, r"budget_share = 0\.0: expected a positive number; try 0\.5"),
        (3, np.inf, "budget_share = inf: expected a positive number"),
        (3, "half", "budget_share = 'half': expected a positive number"),
    ],
)
def test_random_instances_need_targets_and_a_share(targets: object, share: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SecurityGame.random(0, targets=targets, budget_share=share)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, "all", None])
def test_an_attacker_needs_some_budget(budget: object) -> None:
    one = np.ones(2)
    with pytest.raises(InvalidInput, match=r"budget = .*: expected a positive number; an attacker needs some budget"):
        SecurityGame(one, one, one, one, one, budget)  # type: ignore[arg-type]
    assert SecurityGame(one, one, one, one, one, np.inf).response(np.zeros(2)).sum() > 0.0
