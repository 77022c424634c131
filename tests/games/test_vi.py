"""Any parametric VI: known games given as G and a set, monotone and strongly monotone, failures that speak."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from pzos.base.errors import FollowerFailure, InvalidInput, NotConverged
from pzos.games.cournot import CournotGame
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.games.vi import VariationalInequality, variational_follower
from pzos.problem.leader import leader_from_functions
from pzos.problem.polyhedra import Polyhedron
from pzos.problem.sets import Ball, Box, Budget, Domain, Nonnegative, Product, Simplex, Whole

SETTINGS = settings(max_examples=25, deadline=None)


def security_operator(game: SecurityGame, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    strength = x + game.baseline
    return game.attacker_cost * y - game.attacker_value * strength / (strength + y) ** 2


@pytest.mark.parametrize("share", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("targets", [1, 2, 7, 40])
@pytest.mark.parametrize("kind", ["budget", "polyhedron"])
def test_security_given_as_a_vi(targets: int, share: float, kind: str) -> None:
    game = SecurityGame.random(targets, targets=targets, budget_share=share)
    rows = np.vstack([-np.eye(targets), np.ones((1, targets))])
    polyhedron = Polyhedron(rows, np.r_[np.zeros(targets), game.budget])
    feasible: Domain = Budget(game.budget) if kind == "budget" else polyhedron
    vi = VariationalInequality(lambda x, y: security_operator(game, x, y), feasible, targets)
    for x in (game.start(), np.random.default_rng(0).uniform(0, 3, targets)):
        np.testing.assert_allclose(vi.response(x), game.response(x), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_cournot_given_as_a_vi(seed: int) -> None:
    game = CournotGame.random(seed, firms=4, markets=2)

    def operator(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        q = y.reshape(4, 2)
        price = game.demand_intercept - game.demand_slope * (x + q.sum(axis=0))
        return (game.marginal_cost + game.cost_curvature * q - price + game.demand_slope * q).ravel()

    vi = VariationalInequality(operator, Box(0.0, game.capacity.ravel()), 8)
    np.testing.assert_allclose(vi.response(game.start()), game.response(game.start()), atol=1e-12)


def incidence(tail: list[int], head: list[int], vertices: int) -> np.ndarray:
    matrix = np.zeros((vertices, len(tail)))
    for e, (a, b) in enumerate(zip(tail, head, strict=True)):
        matrix[a, e] -= 1.0
        matrix[b, e] += 1.0
    return matrix


def routing_vi(tail, head, slope, intercept, origin, destination, demand, sensitivity) -> VariationalInequality:  # type: ignore[no-untyped-def]
    """Edge flows of each class, y >= 0, conservation: the routing game of Sec. 5.1 as a (merely) monotone VI."""
    vertices, classes, edges = max(*tail, *head) + 1, len(demand), len(tail)
    right = np.zeros((classes, vertices))
    for k in range(classes):
        right[k, origin[k]] -= demand[k]
        right[k, destination[k]] += demand[k]
    size = classes * edges
    balance = np.kron(np.eye(classes), incidence(tail, head, vertices))
    feasible = Polyhedron(-np.eye(size), np.zeros(size), balance, right.ravel())
    slope, intercept, sensitivity = (np.asarray(a, dtype=float) for a in (slope, intercept, sensitivity))

    def operator(toll: np.ndarray, y: np.ndarray) -> np.ndarray:
        total = y.reshape(classes, edges).sum(axis=0)
        return (slope * total + intercept + toll / sensitivity[:, None]).ravel()

    return VariationalInequality(operator, feasible, size)


def test_pigou_and_braess_flows() -> None:
    """Two parallel edges (F, and 1): all on the first. Braess: all over the bridge, 2 on each end edge."""
    two = routing_vi([0, 0], [1, 1], [1.0, 1e-3], [0.0, 2.0], [0], [1], [1.0], [1.0])
    np.testing.assert_allclose(two.response([0.0, 0.0]), [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(two.response([3.0, 0.0]).sum(), 1.0, atol=1e-12)
    braess = routing_vi([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], [10, 1, 1, 1, 10], [0, 50, 10, 50, 0], [0], [3], [6], [1])
    np.testing.assert_allclose(braess.response(np.zeros(5)), [4.0, 2.0, 2.0, 2.0, 4.0], atol=1e-10)


def test_agrees_with_the_routing_game() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        vertices, classes = int(rng.integers(4, 7)), 2
        tail = [*range(vertices - 1), *rng.integers(0, vertices, 8).tolist()]
        head = [*range(1, vertices), *rng.integers(0, vertices, 8).tolist()]
        kept = [e for e in range(len(tail)) if tail[e] != head[e]]
        tail, head = [tail[e] for e in kept], [head[e] for e in kept]
        edges = len(tail)
        data = (
            tail, head, rng.uniform(0.5, 2.0, edges), rng.uniform(0.0, 2.0, edges), [0] * classes,
            [vertices - 1] * classes, rng.uniform(0.5, 2.0, classes), rng.uniform(0.5, 2.0, classes),
        )  # fmt: skip
        toll = rng.normal(0.0, 1.0, edges)
        flows = routing_vi(*data).response(toll).reshape(classes, edges).sum(axis=0)
        np.testing.assert_allclose(flows, RoutingGame(*data).response(toll), atol=1e-8)


@pytest.mark.parametrize("size", [2, 9, 24])
@pytest.mark.parametrize(
    "feasible", [Whole(), Nonnegative(), Box(-1, 1), Simplex(1), Budget(1), Ball(0, 1)], ids=lambda s: type(s).__name__
)
def test_solutions_satisfy_the_variational_inequality(feasible: Domain, size: int) -> None:
    """Strongly monotone but far from symmetric; checked at random feasible points."""
    rng = np.random.default_rng(size)
    skew = rng.normal(size=(size, size))
    matrix = skew - skew.T + 0.1 * np.eye(size)
    shift = rng.normal(size=size)
    vi = VariationalInequality(lambda x, y: matrix @ y + x[0] * shift, feasible, size)
    solution = vi.solve([1.0])
    assert solution.residual <= 1e-10 * max(1.0, float(np.linalg.norm(solution.y)))
    value = matrix @ solution.y + shift
    for _ in range(200):
        other = feasible.project(rng.normal(0, 3, size))
        assert value @ (other - solution.y) >= -1e-8 * (1.0 + np.linalg.norm(other))


def test_matrix_games_are_merely_monotone_and_still_solved() -> None:
    """min over p, max over q of p' M q: the value must be that of the linear program."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        M = rng.normal(size=(5, 7))
        simplices = Product([(Simplex(1.0), 5), (Simplex(1.0), 7)])
        vi = VariationalInequality(lambda x, y, M=M: np.concatenate([M @ y[5:], -M.T @ y[:5]]), simplices, 12)
        p, q = np.split(vi.response([0.0]), [5])
        program = linprog(
            np.r_[np.zeros(5), 1.0], np.hstack([M.T, -np.ones((7, 1))]), np.zeros(7),
            np.r_[np.ones(5), 0.0][None, :], [1.0], bounds=[(0, None)] * 5 + [(None, None)],
        )  # fmt: skip
        assert float((M.T @ p).max()) == pytest.approx(program.fun, abs=1e-9)
        assert float((M @ q).min()) == pytest.approx(program.fun, abs=1e-9)


@SETTINGS
@given(seed=st.integers(0, 10_000), whole_numbers=st.booleans(), strong=st.booleans())
def test_monotone_vis_on_polyhedra_pass_a_linear_program(seed: int, whole_numbers: bool, strong: bool) -> None:
    """y solves the VI exactly if no feasible point has a smaller <G(y), .>; ties and redundant rows included."""
    rng = np.random.default_rng(seed)
    draw = (lambda *s: rng.integers(-2, 3, s).astype(float)) if whole_numbers else (lambda *s: rng.normal(size=s))
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    skew, root = draw(n, n), draw(n, int(rng.integers(0, n + 1)))
    matrix = skew - skew.T + root @ root.T + (0.1 * np.eye(n) if strong else 0.0)
    rows, inside, shift = np.vstack([draw(m, n), np.eye(n), -np.eye(n)]), draw(n), draw(n)
    limits = np.r_[rows[:m] @ inside + rng.integers(0, 2, m), 5.0 * np.ones(2 * n)]
    vi = VariationalInequality(lambda x, y: matrix @ y + shift, Polyhedron(rows, limits), n)
    y = vi.response([0.0])
    value = matrix @ y + shift
    best = linprog(value, rows, limits, bounds=(None, None))
    assert (rows @ y <= limits + 1e-9).all()
    assert value @ y - best.fun <= 1e-7


def test_own_set_without_derivative_uses_projections_only() -> None:
    class Slab:
        def project(self, x: np.ndarray) -> np.ndarray:
            return x - (x.sum() / x.size) if x.sum() > 0 else x

        def contains(self, x: np.ndarray, tolerance: float = 1e-12) -> bool:
            return bool(x.sum() <= tolerance)

        def faults(self, dimension: int) -> list[str]:
            return []

    vi = VariationalInequality(lambda x, y: 2.0 * (y - x), Slab(), 3, tolerance=1e-9)
    solution = vi.solve([1.0, 2.0, 0.0])
    np.testing.assert_allclose(solution.y, [0.0, 1.0, -1.0], atol=1e-8)
    assert solution.newton_steps == 0


@SETTINGS
@given(seed=st.integers(0, 10_000))
def test_a_nonlinear_vi_with_and_without_the_users_jacobian(seed: int) -> None:
    rng = np.random.default_rng(seed)
    skew = rng.normal(size=(6, 6))
    skew = skew - skew.T

    def operator(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(y) + y**3 + skew @ y - x

    def jacobian(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.diag(np.exp(y) + 3 * y**2) + skew

    x = rng.normal(0, 3, 6)
    exact = VariationalInequality(operator, Box(-2.0, 1.0), 6, jacobian=jacobian).response(x)
    differences = VariationalInequality(operator, Box(-2.0, 1.0), 6).response(x)
    np.testing.assert_allclose(exact, differences, atol=1e-10)


def test_answers_depend_on_x_alone_and_rows_are_answered_one_by_one() -> None:
    game = SecurityGame.random(0, targets=6)
    vi = VariationalInequality(lambda x, y: security_operator(game, x, y), Budget(game.budget), 6)
    rows = np.random.default_rng(0).uniform(0, 2, (4, 6))
    together = vi.response(rows)
    assert all((vi.response(rows[i]) == together[i]).all() for i in reversed(range(4)))
    follower = variational_follower(lambda x, y: security_operator(game, x, y), Budget(game.budget), 6)
    answers = follower.respond_all(list(rows))
    assert all((a.y == row).all() and 0.0 <= a.gap <= 1e-9 for a, row in zip(answers, together, strict=True))


def test_the_operator_may_write_into_its_arguments() -> None:
    def careless(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        y -= x
        x[:] = 99.0
        return y

    vi = VariationalInequality(careless, Nonnegative(), 2)
    np.testing.assert_allclose(vi.response([1.0, -1.0]), [1.0, 0.0], atol=1e-12)


def test_non_convergence_says_how_far_it_got() -> None:
    never = VariationalInequality(lambda x, y: np.ones(2), Whole(), 2, max_iterations=500)
    with pytest.raises(NotConverged, match=r"residual 1\.414e\+00 after 500 projection steps"):
        never.solve([0.0])
    unbounded = VariationalInequality(lambda x, y: -np.ones(1), Nonnegative(), 1, max_iterations=3000)
    with pytest.raises(NotConverged, match="check that G is monotone"):
        unbounded.solve([0.0])


def test_broken_operators_are_named() -> None:
    with pytest.raises(FollowerFailure, match=r"shape \(3,\)"):
        VariationalInequality(lambda x, y: np.ones(3), Whole(), 2).solve([0.0])
    with pytest.raises(FollowerFailure, match=r"G\(x, y\)\[1\] = nan"):
        VariationalInequality(lambda x, y: np.array([0.0, np.nan]), Whole(), 2).solve([0.0])
    wrong = VariationalInequality(lambda x, y: y - 1.0, Whole(), 2, jacobian=lambda x, y: np.ones(2))
    with pytest.raises(FollowerFailure, match="jacobian"):
        wrong.solve([0.0])


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        VariationalInequality(3, Box([0.0, 0.0], 1.0), 3, tolerance=0.0, max_iterations=0, start=[1.0])  # type: ignore[arg-type]
    message = str(caught.value)
    for part in ("operator = 3", "Box.lower has 2 entries", "tolerance = 0.0", "max_iterations = 0", "start"):
        assert part in message
    with pytest.raises(InvalidInput, match="feasible = 7"):
        VariationalInequality(lambda x, y: y, 7, 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"x\[0\] = nan"):
        VariationalInequality(lambda x, y: y, Whole(), 2).response([np.nan])


def test_problem_and_repr() -> None:
    vi = VariationalInequality(lambda x, y: y - x, Nonnegative(), 2, start=np.ones(2))
    leader = leader_from_functions(
        lambda x, y: float(y.sum()), lambda x, y: np.zeros_like(x), lambda x, y: np.ones_like(y)
    )
    problem = vi.problem(leader, np.ones(2))
    assert problem.follower.respond(np.array([2.0, -1.0]), None).y == pytest.approx([2.0, 0.0])
    assert repr(vi) == "VariationalInequality(dimension=2, feasible=Nonnegative, tolerance=1e-10)"


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-3, np.nan, "small"])
def test_the_tolerance_lies_between_0_and_1(tolerance: object) -> None:
    with pytest.raises(InvalidInput, match=r"tolerance = .*: expected a number between 0 and 1; try tolerance=1e-10"):
        VariationalInequality(lambda x, y: y, Whole(), 2, tolerance=tolerance)  # type: ignore[arg-type]


def test_a_jacobian_that_is_not_finite_leaves_it_to_the_projections() -> None:
    vi = VariationalInequality(
        lambda x, y: 3.0 * y - x, Nonnegative(), 2, jacobian=lambda x, y: np.full((2, 2), np.nan)
    )
    found = vi.solve([6.0, -1.0])
    assert found.newton_steps == 0
    np.testing.assert_allclose(found.y, [2.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_moves_with_the_set_and_the_scale_of_the_operator_does_not_matter(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix, shift = draw.normal(size=(3, 3)), draw.normal(size=3)
    strong = matrix @ matrix.T + np.eye(3)
    here = VariationalInequality(lambda x, y: strong @ y + x, Box(-0.3, 0.4), 3).response(shift)
    moved = VariationalInequality(lambda x, y: strong @ (y - 2.0) + x, Box(1.7, 2.4), 3).response(shift)
    scaled = VariationalInequality(lambda x, y: 50.0 * (strong @ y + x), Box(-0.3, 0.4), 3).response(shift)
    np.testing.assert_allclose(moved, here + 2.0, atol=1e-9)
    np.testing.assert_allclose(scaled, here, atol=1e-9)
