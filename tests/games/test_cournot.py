"""The Cournot game: closed forms, best responses, batches, the leader, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar

from pzos.base.errors import InvalidInput, NotConverged
from pzos.games.cournot import CournotGame
from pzos.problem.leader import check_leader
from pzos.problem.sets import Budget, Nonnegative

SETTINGS = settings(max_examples=60, deadline=None)


def best_response_error(game: CournotGame, x: np.ndarray) -> float:
    """How far each firm is from its own best reply to all others, by its first-order condition."""
    y = game.response(x).reshape(game.firms, game.markets)
    others = x + y.sum(axis=0) - y
    reply = (game.demand_intercept - game.demand_slope * others - game.marginal_cost) / (
        2 * game.demand_slope + game.cost_curvature
    )
    return float(np.abs(np.clip(reply, 0.0, game.capacity) - y).max())


@SETTINGS
@given(seed=st.integers(0, 10_000), firms=st.integers(1, 30), markets=st.integers(1, 6), spread=st.floats(0.0, 10.0))
def test_every_firm_plays_its_best_reply(seed: int, firms: int, markets: int, spread: float) -> None:
    game = CournotGame.random(seed, firms=firms, markets=markets)
    x = np.random.default_rng(seed).normal(0.0, 1.0, markets) * spread
    assert best_response_error(game, x) <= 1e-12 * (1.0 + np.abs(x).max())


@SETTINGS
@given(firms=st.integers(1, 50), c=st.integers(0, 5), d=st.integers(0, 3), beta=st.integers(1, 3), x=st.integers(0, 4))
def test_identical_firms_have_a_closed_form(firms: int, c: int, d: int, beta: int, x: int) -> None:
    """y = (A - c) / (beta (N + 1) + d) with A = alpha - beta x, integer data with exact ties."""
    table = np.ones((firms, 1))
    game = CournotGame([30.0], [beta], c * table, d * table, math.inf * table, [1.0])
    expected = (30.0 - beta * x - c) / (beta * (firms + 1) + d)
    np.testing.assert_allclose(game.response([x]), max(expected, 0.0), rtol=1e-14)
    capped = CournotGame([30.0], [beta], c * table, d * table, 0.25 * table, [1.0])
    np.testing.assert_allclose(capped.response([x]), min(max(expected, 0.0), 0.25), rtol=1e-14)


def test_without_binding_capacities_the_equilibrium_is_a_linear_system() -> None:
    rng = np.random.default_rng(0)
    cost, curvature = rng.uniform(0, 1, (6, 1)), rng.uniform(0, 2, (6, 1))
    game = CournotGame([50.0], [0.7], cost, curvature, np.full((6, 1), math.inf), [0.0])
    matrix = 0.7 * (np.ones((6, 6)) + np.eye(6)) + np.diag(curvature[:, 0])
    np.testing.assert_allclose(game.response([4.0]), np.linalg.solve(matrix, 50.0 - 0.7 * 4.0 - cost[:, 0]), rtol=1e-13)


def test_stackelberg_optimum_in_closed_form() -> None:
    """Identical firms, linear costs: x* = (alpha + N c - (N + 1) c_L) / (2 beta)."""
    firms, table = 3, np.ones((3, 1))
    game = CournotGame([20.0], [2.0], 2.0 * table, 0.0 * table, math.inf * table, [1.5])

    def loss(x: float) -> float:
        return -game.profit(np.array([x]), game.response([x]))

    found = minimize_scalar(loss, bounds=(0.0, 10.0), options={"xatol": 1e-9})
    assert found.x == pytest.approx((20.0 + firms * 2.0 - (firms + 1) * 1.5) / 4.0, abs=1e-6)


@SETTINGS
@given(seed=st.integers(0, 1000), step=st.floats(0.01, 3.0))
def test_more_from_the_leader_means_less_from_the_firms_and_a_lower_price(seed: int, step: float) -> None:
    game = CournotGame.random(seed, firms=7, markets=2)
    x = np.random.default_rng(seed).uniform(0, 5, 2)
    assert (game.response(x + step) <= game.response(x) + 1e-13).all()
    assert (game.prices(x + step) < game.prices(x)).all()


@SETTINGS
@given(seed=st.integers(0, 1000), money=st.floats(1e-3, 1e3))
def test_the_currency_does_not_matter(seed: int, money: float) -> None:
    game = CournotGame.random(seed)
    other = CournotGame(
        money * game.demand_intercept, money * game.demand_slope, money * game.marginal_cost,
        money * game.cost_curvature, game.capacity, money * game.leader_marginal_cost,
        money * game.leader_cost_curvature,
    )  # fmt: skip
    x = game.start()
    np.testing.assert_allclose(other.response(x), game.response(x), rtol=1e-11, atol=1e-12)
    y = game.response(x)
    assert other.profit(x, y) == pytest.approx(money * game.profit(x, y), rel=1e-11)


def test_permuting_firms_permutes_the_answer() -> None:
    game = CournotGame.random(3, firms=9, markets=4)
    order = np.random.default_rng(0).permutation(9)
    other = CournotGame(
        game.demand_intercept, game.demand_slope, game.marginal_cost[order], game.cost_curvature[order],
        game.capacity[order], game.leader_marginal_cost,
    )  # fmt: skip
    x = game.start()
    np.testing.assert_allclose(
        other.response(x).reshape(9, 4), game.response(x).reshape(9, 4)[order], rtol=1e-13, atol=1e-14
    )


def test_a_batch_is_its_rows_bit_for_bit() -> None:
    for markets in (1, 3):
        game = CournotGame.random(1, firms=11, markets=markets)
        rows = np.random.default_rng(0).normal(2.0, 3.0, (33, markets))
        together = game.response(rows)
        assert all((game.response(row) == answer).all() for row, answer in zip(rows, together, strict=True))
        answers = game.follower().respond_all(list(rows))
        assert all((a.y == row).all() and 0.0 <= a.gap <= 1e-12 for a, row in zip(answers, together, strict=True))


def test_random_instances_have_kinks_in_reach() -> None:
    games = [CournotGame.random(seed, firms=8) for seed in range(20)]
    quantities = [(game, game.response(game.start()).reshape(8, 3)) for game in games]
    assert any((y == 0.0).any() for _, y in quantities)
    assert any((y == game.capacity).any() for game, y in quantities)
    assert any(((y > 0.0) & (y < game.capacity)).any() for game, y in quantities)


def test_leader_problem_and_repr() -> None:
    game = CournotGame.random(2, firms=4, markets=3)
    x = game.start() + 0.1
    assert check_leader(game.leader(), x, game.response(x))
    problem = game.problem()
    assert problem.sense == "max"
    assert isinstance(problem.domain, Nonnegative)
    small = CournotGame(
        game.demand_intercept, game.demand_slope, game.marginal_cost, game.cost_curvature, game.capacity,
        game.leader_marginal_cost, 0.0, 0.5,
    )  # fmt: skip
    assert isinstance(small.problem().domain, Budget)
    assert small.start().sum() <= 0.5 + 1e-12
    assert repr(game) == "CournotGame(firms=4, markets=3, leader_capacity=inf)"


def test_firms_without_capacity_sell_nothing() -> None:
    game = CournotGame([10.0], [1.0], [[1.0], [2.0]], [[0.0], [0.0]], [[0.0], [0.0]], [1.0])
    assert (game.response([2.0]) == 0.0).all()
    assert game.prices([2.0])[0] == 8.0


def test_all_faults_are_named_at_once() -> None:
    table = [[1.0], [1.0]]
    with pytest.raises(InvalidInput) as caught:
        CournotGame([10.0], [-1.0], table, [[1.0]], [[1.0], [math.nan]], [1.0, 2.0], -1.0, 0.0)
    message = str(caught.value)
    for part in ("demand_slope[0] = -1.0", "cost_curvature", "capacity[1, 0] = nan", "leader_marginal_cost",
                 "leader_cost_curvature = -1.0", "leader_capacity = 0.0", "6 faults"):  # fmt: skip
        assert part in message
    with pytest.raises(InvalidInput, match=r"x\[0\] = nan"):
        CournotGame.random(0).response([math.nan, 1.0, 1.0])
    with pytest.raises(InvalidInput, match="firms = 0"):
        CournotGame.random(0, firms=0)


@pytest.mark.parametrize(("firms", "markets", "faults"), [(0, 3, 1), (3, 0, 1), (0, 0, 2), (2.5, 3, 1), (True, 1, 1)])
def test_random_instances_need_whole_numbers(firms: object, markets: object, faults: int) -> None:
    with pytest.raises(InvalidInput, match=r"CournotGame\.random") as raised:
        CournotGame.random(0, firms=firms, markets=markets)  # type: ignore[arg-type]
    assert str(raised.value).count("expected a whole number >= 1; try 3") == faults


def test_an_answer_without_certificate_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    game = CournotGame.random(0)
    right = game._equilibrium_prices(np.ones((2, game.markets)))
    monkeypatch.setattr(CournotGame, "_equilibrium_prices", lambda *_: right + np.array([[0.0], [1e-3]]))
    with pytest.raises(NotConverged, match=r"row 1: prices miss demand by .*: expected +at most 1e-12"):
        game.response(np.ones((2, game.markets)))


@pytest.mark.parametrize("seed", range(5))
def test_markets_are_separate(seed: int) -> None:
    """What the leader sells in one market moves no firm in another, and a market alone answers as it does among all."""
    game = CournotGame.random(seed, firms=4, markets=3)
    x = game.start()
    moved = game.response(x + np.array([0.5, 0.0, 0.0])).reshape(4, 3)
    here = game.response(x).reshape(4, 3)
    assert np.array_equal(moved[:, 1:], here[:, 1:])
    assert (moved[:, 0] <= here[:, 0]).all()
    alone = CournotGame(game.demand_intercept[1:2], game.demand_slope[1:2], game.marginal_cost[:, 1:2],
                        game.cost_curvature[:, 1:2], game.capacity[:, 1:2], game.leader_marginal_cost[1:2])  # fmt: skip
    assert np.array_equal(alone.response(x[1:2]), here[:, 1])
