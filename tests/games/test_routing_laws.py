"""Laws of congested networks that any right answer obeys: potentials, marginal tolls, series, Braess, optimality."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos.games import RoutingGame

SEEDS = st.integers(0, 10**6)
SETTINGS = settings(max_examples=15, deadline=None)


def changed(game: RoutingGame, **data: np.ndarray) -> RoutingGame:
    """The game with other data."""
    names = ("tail", "head", "slope", "intercept", "origin", "destination", "demand", "sensitivity")
    return RoutingGame(**{name: data.get(name, getattr(game, name)) for name in names})


@given(SEEDS)
@SETTINGS
def test_tolls_that_come_from_a_potential_change_nothing(seed: int) -> None:
    """p(head) - p(tail) adds the same to all paths of a class and nothing to cycles."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls, potential = draw.normal(size=game.edges), draw.integers(-9, 10, game.vertices).astype(np.float64)
    shifted = game.response(tolls + potential[game.head] - potential[game.tail])
    np.testing.assert_allclose(shifted, game.response(tolls), rtol=1e-12, atol=1e-12 * game.demand.sum())


@given(SEEDS)
@SETTINGS
def test_marginal_tolls_bring_the_system_optimum(seed: int) -> None:
    """Travellers who count money as time and pay a F* choose F*, the flow of least total latency (Pigou)."""
    game = RoutingGame.random(seed)
    game = changed(game, sensitivity=np.ones(game.classes))
    optimum = changed(game, slope=2.0 * game.slope).response(np.zeros(game.edges))
    np.testing.assert_allclose(game.response(game.slope * optimum), optimum, rtol=1e-11, atol=1e-11)

    def total(flow: np.ndarray) -> float:
        return float(flow @ (game.slope * flow + game.intercept))

    draw = np.random.default_rng(seed)
    others = [game.response(tolls) for tolls in np.vstack([np.zeros(game.edges), draw.normal(size=(3, game.edges))])]
    assert all(total(optimum) <= total(flow) * (1.0 + 1e-12) for flow in others)


@given(SEEDS)
@SETTINGS
def test_an_edge_may_be_cut_in_two(seed: int) -> None:
    """Half the slope, the intercept and the toll on each of two edges in a row carry what one edge did."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls, cut = 2.0 * draw.normal(size=game.edges), int(draw.integers(game.edges))
    share = np.where(np.arange(game.edges) == cut, 0.5, 1.0)
    tail, head = np.append(game.tail, game.vertices), np.append(game.head, game.head[cut])
    head[cut] = game.vertices
    longer = changed(game, tail=tail, head=head, slope=np.append(share * game.slope, 0.5 * game.slope[cut]),
                     intercept=np.append(share * game.intercept, 0.5 * game.intercept[cut]))  # fmt: skip
    flow = longer.response(np.append(share * tolls, 0.5 * tolls[cut]))
    assert flow[-1] == flow[cut]
    np.testing.assert_allclose(flow[:-1], game.response(tolls), rtol=1e-12, atol=1e-12 * game.demand.sum())


@given(SEEDS)
@SETTINGS
def test_what_nobody_uses_may_be_left_out(seed: int) -> None:
    """A class without travellers changes no bit, an edge too dear for everyone no more than rounding."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls = draw.normal(size=game.edges)
    flow = game.response(tolls)
    nobody = changed(
        game, origin=np.append(game.origin, game.origin[0]), demand=np.append(game.demand, 0.0),
        destination=np.append(game.destination, game.destination[0]), sensitivity=np.append(game.sensitivity, 0.7),
    )  # fmt: skip
    assert np.array_equal(nobody.response(tolls), flow)
    dear = changed(
        game, tail=np.append(game.tail, game.origin[0]), head=np.append(game.head, game.destination[0]),
        slope=np.append(game.slope, 1.0), intercept=np.append(game.intercept, 1e3),
    )  # fmt: skip
    found = dear.response(np.append(tolls, 0.0))
    assert found[-1] == 0.0
    np.testing.assert_allclose(found[:-1], flow, rtol=1e-12, atol=1e-12 * game.demand.sum())


@given(SEEDS)
@SETTINGS
def test_no_other_flow_that_meets_the_demand_is_better(seed: int) -> None:
    """The variational inequality of the game, against the equilibria of other tolls (they are feasible)."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls = 2.0 * draw.normal(size=(4, game.edges))
    here, *others = [game.equilibrium(row) for row in tolls]
    cost = game.slope * here.flow + game.intercept + tolls[0] / game.sensitivity[:, None]
    size = 1.0 + np.abs(cost).max() * game.demand.sum()
    for other in others:
        assert (cost * (other.class_flow - here.class_flow)).sum() >= -1e-11 * size


@given(SEEDS)
@SETTINGS
def test_a_toll_on_one_edge_never_draws_travellers_there(seed: int) -> None:
    """Monotonicity where all classes see money alike: more toll on e, no more flow on e."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    game = changed(game, sensitivity=np.ones(game.classes))
    tolls, edge = draw.normal(size=game.edges), int(draw.integers(game.edges))
    raised = np.repeat(tolls[None], 6, axis=0)
    raised[:, edge] += np.arange(6.0)
    flow = game.response(raised)[:, edge]
    assert (np.diff(flow) <= 1e-12 * (1.0 + flow[0])).all()


def test_braess() -> None:
    """The bridge 1 -> 2 tempts everyone and makes everyone slower; a toll closes it again."""
    slope, intercept = [1, 0.01, 0.01, 1, 0.01], [0, 5, 5, 0, 0.1]
    game = RoutingGame([0, 1, 0, 2, 1], [1, 3, 2, 3, 2], slope, intercept, [0], [3], [4], [1])
    free, closed = game.equilibrium(np.zeros(5)), game.equilibrium([0.0, 0.0, 0.0, 0.0, 10.0])
    assert free.flow[4] > 3.0
    assert closed.flow[4] == 0.0
    assert closed.flow.tolist()[:4] == [2.0, 2.0, 2.0, 2.0]
    assert free.cost[0] > 8.0 > closed.cost[0] == pytest.approx(7.02)


def test_slopes_far_apart() -> None:
    """Costs small beside the steepest slope, where the rounding of a flow shows in them: the share is still exact."""
    steep, flat = Fraction(680.0), Fraction(0.003)
    game = RoutingGame([0, 0], [1, 1], [680.0, 0.003], [0, 0], [0] * 5, [1] * 5, [1, 4, 4, 3, 5], [1] * 5)
    flows, gaps = game.certified_response(np.zeros((2, 2)))
    assert flows[0].tolist() == [float(17 * flat / (steep + flat)), float(17 * steep / (steep + flat))]
    assert np.array_equal(flows[0], flows[1])
    assert gaps.max() <= 1e-15
    assert game.statistics().responses == 2
    assert game.statistics().perturbed >= 1


def test_statistics_add_up_over_threads_and_begin_at_nothing() -> None:
    from concurrent.futures import ThreadPoolExecutor

    game = RoutingGame.random(4)
    assert repr(game.statistics()) == "Statistics(responses=0, cold=0, perturbed=0)"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(game.response, np.zeros((6, game.edges))))
    game.certified_response(np.zeros(game.edges))
    assert game.statistics().responses == 7


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tail", [0, np.nan], r"tail\[1\] = nan: expected a vertex, a whole number >= 0; number vertices 0, 1"),
        ("head", [1, np.inf], r"head\[1\] = inf: expected a vertex"),
        ("slope", [-np.inf, 1], r"slope\[0\] = -inf: expected a finite number; correct it"),
        ("demand", [np.nan], r"demand\[0\] = nan: expected a finite number"),
        ("intercept", [[0, 0]], "intercept = .*: expected a vector of numbers; give at least one"),
    ],
)
def test_an_entry_is_blamed_once(field: str, value: list[float], message: str) -> None:
    good = {"tail": [0, 1], "head": [1, 2], "slope": [1, 1], "intercept": [0, 0],
            "origin": [0], "destination": [2], "demand": [1], "sensitivity": [1]}  # fmt: skip
    with pytest.raises(ValueError, match=message) as raised:
        RoutingGame(**{**good, field: value})
    assert str(raised.value).count("expected") == 1


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "much", None])
def test_the_regularisation_is_a_number(value: object) -> None:
    with pytest.raises(ValueError, match=r"regularisation = .*: expected a finite number >= 0; the paper uses 1"):
        RoutingGame.random(0).leader(value)  # type: ignore[arg-type]
