"""The routing game: optimality proven from scratch, laws, stress sets, bits, errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pzos import PZOS, solve
from pzos.base.errors import InvalidInput, NotConverged
from pzos.games import RoutingGame
from pzos.problem.sets import Nonnegative, Whole
from routing_oracle import Programme, interior_equilibrium

SEEDS = st.integers(0, 10**6)


def assert_equilibrium(game, tolls, tolerance=1e-11, ties=0.0):
    """Prove optimality without the solver: feasibility, no negative cycle, only cheapest paths (KKT are sufficient)."""
    found = game.equilibrium(tolls)
    flow, split = found.flow, found.class_flow
    size = 1.0 + max(game.demand.sum(), flow.max())
    cost_size = 1.0 + np.abs(game.slope * flow + game.intercept).max() + np.abs(tolls).max() / game.sensitivity.min()
    assert split.min() >= 0.0
    assert np.abs(split.sum(axis=0) - flow).max() <= tolerance * size
    for i in range(game.classes):
        balance = np.zeros(game.vertices)
        np.add.at(balance, game.tail, split[i])
        np.add.at(balance, game.head, -split[i])
        balance[game.origin[i]] -= game.demand[i]
        balance[game.destination[i]] += game.demand[i]
        assert np.abs(balance).max() <= tolerance * size
        cost = game.slope * flow + game.intercept + tolls / game.sensitivity[i]
        anywhere, label = np.zeros(game.vertices), np.full(game.vertices, np.inf)
        label[game.origin[i]] = 0.0
        for _ in range(game.vertices):
            last = anywhere.copy()
            np.minimum.at(anywhere, game.head, last[game.tail] + cost)
            np.minimum.at(label, game.head, label[game.tail] + cost)
        fall = (last - anywhere).max()
        assert fall <= tolerance * cost_size, "a negative cycle is left"
        overpaid = cost @ split[i] - game.demand[i] * label[game.destination[i]]
        assert abs(overpaid) <= tolerance * cost_size * size
        assert found.cost[i] == pytest.approx(label[game.destination[i]], abs=1e-9 * cost_size)
    assert found.gap <= 1e-12
    # the same bits, but for exact ties: there the set of columns is not unique, nor are the last bits
    assert np.abs(flow - game.response(tolls)).max() <= ties * 1e-12 * size
    return found


def hard_instance(seed):
    """Random data never shows these: exact ties, zero costs, equal sensitivities, shared pairs, loops."""
    draw = np.random.default_rng(seed)
    while True:
        n, k = int(draw.integers(3, 10)), int(draw.integers(1, 6))
        m = int(draw.integers(n, 4 * n))
        tail, head = draw.integers(0, n, (2, m))
        slope = draw.integers(1, 4, m) if draw.random() < 0.8 else draw.uniform(1e-3, 1e3, m)
        intercept = draw.integers(0, 3, m) * (draw.random() < 0.7)
        sensitivity = np.ones(k) if draw.random() < 0.5 else draw.choice([0.1, 0.5, 1.0, 2.0], k)
        origin, destination = draw.integers(0, n, (2, k))
        if draw.random() < 0.4:
            origin, destination = np.full(k, origin[0]), np.full(k, destination[0])
        demand = draw.integers(int(draw.random() < 0.8), 6, k)
        size = int(draw.choice([0, 1, 3, 10, 100]))
        try:
            game = RoutingGame(tail, head, slope, intercept, origin, destination, demand, sensitivity)
        except InvalidInput:
            continue
        whole = draw.integers(-size, size + 1, (4, m)).astype(float)
        return game, np.vstack([whole, size * draw.normal(size=(2, m)), np.zeros((1, m))])


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_stress_sets_are_solved_exactly(seed):
    game, tolls = hard_instance(seed)
    for row in tolls:
        assert_equilibrium(game, row, ties=1.0)
    statistics = game.statistics()
    assert statistics.responses == len(tolls)


@given(SEEDS, st.sampled_from([0.0, 0.3, 3.0, 30.0, 100.0]))
@settings(max_examples=40, deadline=None)
def test_random_instances_are_solved_exactly(seed, size):
    game = RoutingGame.random(seed)
    draw = np.random.default_rng(seed)
    for row in size * draw.normal(size=(3, game.edges)):
        assert_equilibrium(game, row)


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_an_independent_method(seed):
    game, tolls = hard_instance(seed) if seed % 2 else (RoutingGame.random(seed, vertices=8), None)
    rows = np.random.default_rng(seed).normal(size=(2, game.edges)) * 4.0 if tolls is None else tolls[::2]
    for row in rows:
        flow, gap = interior_equilibrium(game, row)
        assert gap <= 1e-9
        assert np.abs(flow - game.response(row)).max() <= 1e-10 * (1.0 + flow.max())


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_qp_solver(seed):
    clarabel = pytest.importorskip("clarabel", reason="the QP solver Clarabel is not installed")
    sparse = pytest.importorskip("scipy.sparse")
    game = RoutingGame.random(seed)
    tolls = 3.0 * np.random.default_rng(seed).normal(size=game.edges)
    programme = Programme(game, tolls)
    size, rows = programme.cost.size, programme.supply.size
    options = clarabel.DefaultSettings()
    options.verbose = False
    cones = [clarabel.ZeroConeT(rows), clarabel.NonnegativeConeT(size)]
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(programme.hessian)), programme.cost,
        sparse.csc_matrix(np.vstack([programme.balance, -np.eye(size)])),
        np.concatenate([programme.supply, np.zeros(size)]), cones, options,
    ).solve()  # fmt: skip
    assert np.abs(programme.load(np.array(solution.x)) - game.response(tolls)).max() <= 1e-3


def test_circulation_in_a_part_no_origin_reaches():
    game = RoutingGame([0, 2, 3], [1, 3, 2], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0, 0], [1, 1], [2.0, 3.0], [1.0, 0.5])
    flow = game.response([0.0, -10.0, -10.0])
    # the class that feels tolls most circulates until 2 (F + 1) = 20 / 0.5
    assert flow.tolist() == [5.0, 19.0, 19.0]
    found = assert_equilibrium(game, np.array([0.0, -10.0, -10.0]))
    cycles = [column for column in found.columns if column.is_cycle]
    assert [(column.group, sorted(column.edges), column.flow) for column in cycles] == [(1, [1, 2], 19.0)]


def test_loop_with_a_negative_toll():
    game = RoutingGame([0, 1], [1, 1], [1.0, 2.0], [0.0, 1.0], [0], [1], [1.0], [1.0])
    assert game.response([0.0, -5.0]).tolist() == [1.0, 2.0]
    assert game.response([0.0, 5.0]).tolist() == [1.0, 0.0]


def test_paths_run_from_origin_to_destination():
    game = RoutingGame.random(5)
    found = game.equilibrium(np.linspace(-2.0, 2.0, game.edges))
    for column in found.columns:
        edges = list(column.edges)
        assert not column.is_cycle
        assert game.tail[edges[0]] == game.origin[column.group]
        assert game.head[edges[-1]] == game.destination[column.group]
        assert (game.head[edges[:-1]] == game.tail[edges[1:]]).all()
    demand = np.zeros(game.classes)
    for column in found.columns:
        demand[column.group] += column.flow
    assert np.allclose(demand, game.demand, rtol=1e-14)
    assert repr(found).startswith("Equilibrium(edges=")


# --- a function of the tolls alone, bit for bit


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_bits_do_not_depend_on_history_batch_or_copy(seed):
    hard = seed % 2 == 0
    game, tolls = hard_instance(seed) if hard else (RoutingGame.random(seed), None)
    draw = np.random.default_rng(seed)
    if tolls is None:
        centre = draw.normal(size=game.edges)
        tolls = np.vstack([centre + 0.5 * draw.normal(size=(6, game.edges)), 20.0 * draw.normal(size=(2, game.edges))])
    together = game.response(tolls)
    allowed = 1e-12 * (1.0 + together.max()) if hard else 0.0  # at exact ties the last bits are not unique
    assert np.abs(together - [game.response(row) for row in tolls]).max() <= allowed
    order = draw.permutation(len(tolls))
    assert np.abs(together[order] - game.response(tolls[order])).max() <= allowed
    assert np.abs(together - [pickle.loads(pickle.dumps(game)).response(row) for row in tolls]).max() <= allowed
    assert np.abs(together - game.certified_response(tolls)[0]).max() <= allowed


def test_bits_do_not_depend_on_the_thread():
    game = RoutingGame.random(11)
    tolls = np.random.default_rng(0).normal(size=(60, game.edges))
    alone = game.response(tolls[:40])
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(game.response, tolls[:40]))
    assert np.array_equal(alone, rows)
    assert game.statistics().responses == 80


def test_long_stacks_and_awkward_arrays():
    game = RoutingGame.random(2)
    tolls = np.random.default_rng(1).normal(size=(130, game.edges))
    flows = game.response(tolls)
    assert np.array_equal(flows[::7], game.response(np.asfortranarray(tolls)[::7]))
    frozen = tolls[3].copy()
    frozen.flags.writeable = False
    assert np.array_equal(flows[3], game.response(frozen))
    assert np.array_equal(game.response(np.arange(game.edges)), game.response([float(e) for e in range(game.edges)]))
    assert game.response(np.empty((0, game.edges))).shape == (0, game.edges)


def test_more_columns_than_the_first_workspace_holds():
    game = RoutingGame.random(3, vertices=30, edges=400, classes=14)
    tolls = 0.3 * np.random.default_rng(2).normal(size=(3, game.edges))
    for row in tolls:
        found = assert_equilibrium(game, row)
    assert len(found.columns) > 48 + game.classes
    assert np.array_equal(game.response(tolls), [game.response(row) for row in tolls[::-1]][::-1])


# --- laws


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_response_is_strongly_monotone(seed):
    """sum_i (t1 - t2)/s_i . (f_i(t1) - f_i(t2)) <= -sum_e a_e (F_e(t1) - F_e(t2))^2: optimality of both."""
    game = RoutingGame.random(seed)
    first, second = 2.0 * np.random.default_rng(seed).normal(size=(2, game.edges))
    one, two = game.equilibrium(first), game.equilibrium(second)
    moved = ((first - second) / game.sensitivity[:, None] * (one.class_flow - two.class_flow)).sum()
    assert moved <= -(game.slope * (one.flow - two.flow) ** 2).sum() + 1e-9


def data(game):
    return [game.tail, game.head, game.slope, game.intercept,
            game.origin, game.destination, game.demand, game.sensitivity]  # fmt: skip


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_scaling_laws(seed):
    game, tolls = RoutingGame.random(seed), None
    tolls = 3.0 * np.random.default_rng(seed).normal(size=game.edges)
    flow = game.response(tolls)
    tail, head, slope, intercept, origin, destination, demand, sensitivity = data(game)
    dearer = RoutingGame(tail, head, 8.0 * slope, 8.0 * intercept, origin, destination, demand, sensitivity)
    assert np.array_equal(dearer.response(8.0 * tolls), flow)
    deaf = RoutingGame(tail, head, slope, intercept, origin, destination, demand, 4.0 * sensitivity)
    assert np.array_equal(deaf.response(4.0 * tolls), flow)
    larger = RoutingGame(tail, head, slope, 2.0 * intercept, origin, destination, 2.0 * demand, sensitivity)
    assert np.array_equal(larger.response(2.0 * tolls), 2.0 * flow)
    assert np.abs(RoutingGame(tail, head, slope, intercept + tolls, origin, destination, demand, np.ones(game.classes))
                  .response(np.zeros(game.edges)) - RoutingGame(tail, head, slope, intercept, origin, destination,
                  demand, np.ones(game.classes)).response(tolls)).max() <= 1e-12 * (1.0 + flow.max())  # fmt: skip


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_names_do_not_matter(seed):
    """Edges, classes and vertices in another order give the same bits: the exact flow is rounded."""
    game, draw = RoutingGame.random(seed), np.random.default_rng(seed)
    tolls = 2.0 * draw.normal(size=game.edges)
    edges, classes = draw.permutation(game.edges), draw.permutation(game.classes)
    names = draw.permutation(game.vertices)
    other = RoutingGame(names[game.tail[edges]], names[game.head[edges]], game.slope[edges], game.intercept[edges],
                        names[game.origin[classes]], names[game.destination[classes]], game.demand[classes],
                        game.sensitivity[classes])  # fmt: skip
    assert np.array_equal(other.response(tolls[edges]), game.response(tolls)[edges])


def test_equal_classes_can_be_merged():
    game = RoutingGame.random(4, classes=1)
    tail, head, slope, intercept, origin, destination, demand, sensitivity = data(game)
    split = RoutingGame(tail, head, slope, intercept, origin.repeat(3), destination.repeat(3),
                        np.array([0.5, 0.25, 0.25]) * demand, sensitivity.repeat(3))  # fmt: skip
    tolls = np.random.default_rng(0).normal(size=(5, game.edges))
    assert np.array_equal(split.response(tolls), game.response(tolls))


# --- the problem


def test_leader_and_problem():
    game = RoutingGame.random(1)
    problem = game.problem(regularisation=0.5)
    assert problem.sense == "max"
    assert isinstance(problem.domain, Whole)
    assert isinstance(game.problem(nonnegative=True).domain, Nonnegative)
    assert not problem.x0.any()
    tolls, flow = np.random.default_rng(0).normal(size=(2, game.edges))
    value = problem.leader(tolls, flow)
    assert value.value == pytest.approx(tolls @ flow - 0.5 * tolls @ tolls)
    assert np.array_equal(value.grad_x, flow - tolls)
    assert np.array_equal(value.grad_y, tolls)
    answers = problem.follower.respond_all([tolls, -tolls])
    assert np.array_equal(answers[0].y, game.response(tolls))
    assert all(0.0 <= answer.gap <= 1e-12 for answer in answers)
    assert np.array_equal(pickle.loads(pickle.dumps(problem)).follower.respond(tolls, None).y, answers[0].y)


def test_pzos_earns_tolls():
    game = RoutingGame.random(8)
    result = solve(game.problem(), PZOS(step=0.7 / game.edges, radius=0.5), steps=40, seed=1)
    assert game.problem().leader.value(result.x, game.response(result.x)) > 1.0


# --- random instances and descriptions


def test_random_instances_have_the_papers_ranges():
    games = [RoutingGame.random(seed) for seed in range(150)]
    assert {game.vertices for game in games} == set(range(6, 26))
    assert min(game.edges for game in games) >= 12
    assert max(game.edges for game in games) <= 119
    assert {game.classes for game in games} == {2, 3, 4, 5}
    for name, low, high in (("slope", 1, 5), ("intercept", 1, 10), ("demand", 3, 12), ("sensitivity", 0.1, 2)):
        values = np.concatenate([getattr(game, name) for game in games])
        assert low <= values.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < values.max() <= high
    assert all((game.demand == np.round(game.demand)).all() for game in games)
    assert len({(int(t), int(h)) for t, h in zip(games[0].tail, games[0].head, strict=True)}) == games[0].edges


def test_random_is_a_function_of_its_arguments():
    one, two = RoutingGame.random(7, edges=30, vertices=9), RoutingGame.random(7, vertices=9, edges=30)
    assert all(np.array_equal(a, b) for a, b in zip(data(one), data(two), strict=True))
    assert (one.vertices, one.edges) == (9, 30)
    assert RoutingGame.random(7, vertices=2, edges=1, classes=1).response([1.0])[0] >= 3.0
    assert repr(one) == f"RoutingGame(vertices=9, edges=30, classes={one.classes})"
    with pytest.raises(InvalidInput, match="2 faults") as raised:
        RoutingGame.random(0, vertices=5, edges=100, classes=0)
    assert "edges = 100: expected a whole number from 4 to 20" in str(raised.value)


def test_description_is_frozen():
    game = RoutingGame.random(0)
    with pytest.raises(AttributeError):
        game.slope = np.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        game.slope[0] = 1.0


GOOD = {"tail": [0, 1], "head": [1, 2], "slope": [1, 1], "intercept": [0, 0],
        "origin": [0], "destination": [2], "demand": [1], "sensitivity": [1]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slope": [1, 0]}, r"slope\[1\] = 0.0: expected a slope > 0"),
        ({"slope": [1, np.nan]}, r"slope\[1\] = nan: expected a finite number"),
        ({"demand": [-1]}, r"demand\[0\] = -1.0: expected a demand >= 0"),
        ({"sensitivity": [0]}, r"sensitivity\[0\] = 0.0: expected a sensitivity > 0"),
        ({"intercept": [0, 0, 0]}, "lengths differ: tail 2, head 2, slope 2, intercept 3"),
        ({"demand": [1, 2]}, "lengths differ: origin 1, destination 1, demand 2, sensitivity 1"),
        ({"tail": [0, -1]}, r"tail\[1\] = -1.0: expected a vertex"),
        ({"head": [1, 1.5]}, r"head\[1\] = 1.5: expected a vertex"),
        ({"tail": "road"}, "tail = 'road': expected a vector of vertices"),
        ({"slope": []}, "slope = .*: expected a vector of numbers"),
        ({"origin": [2]}, r"destination\[0\] = 2: expected another vertex than the origin"),
    ],
)
def test_bad_data_is_named(change, message):
    with pytest.raises(InvalidInput, match=message) as raised:
        RoutingGame(**{**GOOD, **change})
    assert "faults" not in str(raised.value)


def test_all_faults_at_once():
    with pytest.raises(InvalidInput) as raised:
        RoutingGame(**{**GOOD, "slope": [0, -1], "demand": [-1], "sensitivity": [np.inf]})
    for part in ("3 faults", "slope[0]", "(2 entries are wrong)", "demand[0]", "sensitivity[0]"):
        assert part in str(raised.value)


def test_every_unreachable_destination_is_named():
    with pytest.raises(InvalidInput) as raised:
        RoutingGame([0, 1], [1, 2], [1, 1], [0, 0], [2, 0, 1], [0, 2, 0], [1, 1, 1], [1, 1, 1])
    text = str(raised.value)
    assert "destination[0] = 0: expected a vertex that a path from origin[0] = 2 reaches" in text
    assert "destination[2] = 0" in text
    assert "destination[1]" not in text


@pytest.mark.parametrize(
    ("tolls", "message"),
    [
        ([0.0, np.nan], r"tolls\[1\] = nan: expected a finite number"),
        ([[0.0, 0.0], [np.inf, 0.0]], r"tolls\[1, 0\] = inf"),
        ([0.0, 0.0, 0.0], r"expected 2 numbers, one per edge, or a stack of such rows, not shape \(3,\)"),
        (1.0, "one per edge"),
        ("toll", "tolls: expected numbers"),
    ],
)
def test_bad_tolls_are_named(tolls, message):
    game = RoutingGame(**GOOD)
    with pytest.raises(InvalidInput, match=message):
        game.response(tolls)
    if not isinstance(tolls, str | float):
        with pytest.raises(InvalidInput, match=message):
            game.response(np.array(tolls))
    assert game.response([0.0, 0.0]).tolist() == [1.0, 1.0]


# --- fall-backs and compilation


def test_no_answer_without_a_certificate(monkeypatch):
    game = RoutingGame.random(6, vertices=6)
    tolls = np.random.default_rng(0).normal(size=(3, game.edges))
    flows = game.response(tolls)
    solver = game._solver()
    kernel = solver.kernel
    monkeypatch.setattr(solver, "kernel", lambda *_: 8 * 1 + 1)  # the second row failed
    for ask in (game.response, game.certified_response):
        with pytest.raises(NotConverged, match=r"no equilibrium could be certified.*tolls from -?\d.*slopes from \d"):
            ask(tolls)
    monkeypatch.setattr(solver, "kernel", kernel)
    assert np.array_equal(game.response(tolls), flows)
    assert game.statistics().responses == 6


def test_describing_a_game_loads_no_compiler():
    code = "import sys; from pzos.games import RoutingGame; RoutingGame.random(0); print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert told.stdout.strip() == "False"
