"""Batches of the routing game: together or one by one, warm or cold, here or elsewhere, the bits are the same."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from pzos.base.errors import InvalidInput
from pzos.games import RoutingGame
from pzos.games._routing.space import ENTERED, ROWS, STEPS
from routing_oracle import Programme

SEEDS = st.integers(0, 10**6)


def tied_game(draw: np.random.Generator) -> RoutingGame:
    """Whole numbers, parallel edges, free edges, loops, classes that share a pair and a sensitivity."""
    while True:
        n, k = int(draw.integers(2, 8)), int(draw.integers(1, 12))
        m = int(draw.integers(n, 5 * n))
        tail, head = draw.integers(0, n, (2, m))
        origin, destination = draw.integers(0, n, (2, k))
        if draw.random() < 0.5:
            origin, destination = np.full(k, origin[0]), np.full(k, destination[0])
        try:
            return RoutingGame(tail, head, draw.integers(1, 3, m), draw.integers(0, 2, m), origin, destination,
                               draw.integers(0, 5, k), draw.choice([0.5, 1.0, 2.0], k))  # fmt: skip
        except InvalidInput:
            continue


def alone(game: RoutingGame, tolls: np.ndarray) -> np.ndarray:
    """The response of an object that was never asked before."""
    return pickle.loads(pickle.dumps(game)).response(tolls)


@given(SEEDS, st.integers(2, 25), st.sampled_from([0.02, 0.5, 5.0, 100.0]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_batch_has_the_bits_of_its_rows(seed: int, size: int, spread: float, tied: bool) -> None:
    draw = np.random.default_rng(seed)
    game = tied_game(draw) if tied else RoutingGame.random(seed)
    step = np.round if tied else np.asarray
    tolls = step(3.0 * draw.normal(size=game.edges)) + step(spread * draw.normal(size=(size, game.edges)))
    flows, gaps = game.certified_response(tolls)
    # at exact ties the set of columns is not unique, nor are the last bits
    allowed = 1e-12 * (1.0 + np.abs(flows).max()) if tied else 0.0
    assert np.abs(flows - [alone(game, row) for row in tolls]).max() <= allowed
    assert np.abs(flows - game.response(tolls)).max() <= allowed
    assert np.abs(flows - [game.response(row) for row in tolls]).max() <= allowed
    assert gaps.shape == (size,)
    assert ((gaps >= 0.0) & (gaps <= 1e-12)).all()
    statistics = game.statistics()
    assert statistics.responses == 3 * size


def test_neighbours_need_no_search() -> None:
    """One Newton step each, and no new column: the columns and the forests of the last answer serve."""
    for game in (RoutingGame.random(3), RoutingGame.random(3, vertices=12, edges=50, classes=13)):
        centre = np.random.default_rng(0).normal(size=game.edges)
        tolls = centre + 1e-9 * np.random.default_rng(1).normal(size=(9, game.edges))
        game.response(centre)
        before = game._solver()._named.pool.tally.copy()
        flows = game.response(tolls)
        after = game._solver()._named.pool.tally
        assert after[STEPS] - before[STEPS] == 9
        assert after[ENTERED] == before[ENTERED]
        assert game.statistics().responses == 10
        assert np.array_equal(flows, [alone(game, row) for row in tolls])


@pytest.mark.parametrize("size", [ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 5])
def test_long_batches(size: int) -> None:
    game = RoutingGame.random(11)
    tolls = np.random.default_rng(size).normal(size=(size, game.edges))
    flows, gaps = game.certified_response(tolls)
    assert np.array_equal(flows, game.response(tolls))
    assert np.array_equal(flows[::-1], game.response(tolls[::-1]))
    assert gaps.max() <= 1e-12


def test_history_does_not_show() -> None:
    game = RoutingGame.random(21)
    draw = np.random.default_rng(4)
    tolls = draw.normal(size=game.edges)
    first = game.response(tolls)
    for size in (0.1, 1.0, 10.0, 100.0, 1e4):
        game.response(size * draw.normal(size=(30, game.edges)))
        assert np.array_equal(game.response(tolls), first)


def test_bits_do_not_depend_on_the_process() -> None:
    game = RoutingGame.random(13)
    tolls = np.random.default_rng(2).normal(size=(18, game.edges))
    here = game.response(tolls)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = list(pool.map(game.response, [tolls[:9], tolls[9:], tolls[3], tolls[::-1]]))
    assert np.array_equal(here, np.vstack(there[:2]))
    assert np.array_equal(here[3], there[2])
    assert np.array_equal(here[::-1], there[3])


@pytest.mark.parametrize("row", [0, 4, 8])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_row_is_named_and_the_game_goes_on(row: int, value: float) -> None:
    game = RoutingGame.random(2)
    tolls = np.random.default_rng(0).normal(size=(9, game.edges))
    flows = game.response(tolls)
    bad = tolls.copy()
    bad[row, 3] = value
    with pytest.raises(InvalidInput, match=rf"tolls\[{row}, 3\] = {value}: expected a finite number"):
        game.response(bad)
    with pytest.raises(InvalidInput, match=r"tolls\[3\]"):
        game.response(bad[row])
    assert np.array_equal(game.response(tolls), flows)


def test_the_callers_array_is_left_alone() -> None:
    game = RoutingGame.random(2)
    tolls = np.random.default_rng(0).normal(size=(9, game.edges))
    kept = tolls.copy()
    for array in (tolls, tolls[0], np.asfortranarray(tolls), tolls[::2], tolls.astype(">f8"), tolls.astype("f4")):
        flows = game.response(array)
        assert not np.shares_memory(flows, array)
        assert flows.dtype == np.float64
        assert flows.dtype.isnative
    assert np.array_equal(tolls, kept)
    assert np.array_equal(game.response(tolls.astype(">f8")), game.response(tolls))


def test_parallel_edges_share_the_load() -> None:
    game = RoutingGame([0] * 4, [1] * 4, [1, 1, 2, 2], [0, 0, 0, 9], [0, 0], [1, 1], [3, 2], [1, 1])
    assert game.response(np.zeros(4)).tolist() == [2.0, 2.0, 1.0, 0.0]
    assert game.response([0.0, 0.0, 0.0, -9.0]).tolist() == [5 / 3, 5 / 3, 5 / 6, 5 / 6]
    assert sorted(column.edges for column in game.equilibrium(np.zeros(4)).columns if column.flow)[0] == (0,)


def test_free_edges_and_exact_ties() -> None:
    """All ways cost nothing but congestion, every class wants the same: integers in, exact thirds out."""
    game = RoutingGame([0, 0, 0, 1, 2], [1, 2, 3, 3, 3], [1] * 5, [0] * 5, [0] * 3, [3] * 3, [5, 0, 5], [1, 1, 1])
    assert game.response(np.zeros(5)).tolist() == [2.5, 2.5, 5.0, 2.5, 2.5]
    assert game.certified_response(np.zeros((9, 5)))[1].max() == 0.0


def small_tied_game(draw: np.random.Generator) -> RoutingGame:
    """As `tied_game`, small enough for a general solver."""
    while True:
        game = tied_game(draw)
        if Programme(game, np.zeros(game.edges)).cost.size <= 60:
            return game


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_agrees_with_a_general_solver(seed: int) -> None:
    """Scipy's SLSQP on edge flows of every class: it knows nothing of paths, cycles or tolls."""
    draw = np.random.default_rng(seed)
    game = RoutingGame.random(seed, vertices=5, edges=11, classes=2) if seed % 2 else small_tied_game(draw)
    tolls = 2.0 * draw.normal(size=game.edges)
    p = Programme(game, tolls)
    found = minimize(
        lambda f: (0.5 * f @ p.hessian @ f + p.cost @ f, p.hessian @ f + p.cost),
        np.linalg.lstsq(p.balance, p.supply, rcond=None)[0], jac=True, method="SLSQP",
        bounds=[(0.0, None)] * p.cost.size, options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda f: p.balance @ f - p.supply, "jac": lambda f: p.balance},
    )  # fmt: skip
    assert np.abs(p.load(found.x) - game.response(tolls)).max() <= 1e-4 * (1.0 + game.demand.sum())
