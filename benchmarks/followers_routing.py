"""Routing follower against QP solvers, along real PZOS trajectories; part of `benchmarks/followers.py`.

Every peer is set up once per instance, then only its linear cost is updated and it is warm started where it can be.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from pzos.base.keys import Keys
from pzos.games import RoutingGame
from pzos.games.routing import reachable_from

Answerer = Callable[[np.ndarray], np.ndarray]
TURNS = 3


class Programme:
    """min f'Qf / 2 + c'f over f >= 0, Nf = r: one variable per class and edge that the class can use at all."""

    def __init__(self, game: RoutingGame, tolls: np.ndarray) -> None:
        self.group, self.edge = np.nonzero(usable_edges(game))
        self.edges = game.edges
        self.hessian = np.where(self.edge[:, None] == self.edge[None, :], game.slope[self.edge][:, None], 0.0)
        self.cost = game.intercept[self.edge] + tolls[self.edge] / game.sensitivity[self.group]
        rows = np.zeros((game.classes, game.vertices, self.edge.size))
        variable = np.arange(self.edge.size)
        np.add.at(rows, (self.group, game.tail[self.edge], variable), 1.0)
        np.add.at(rows, (self.group, game.head[self.edge], variable), -1.0)
        supply = np.zeros((game.classes, game.vertices))
        np.add.at(supply, (np.arange(game.classes), game.origin), game.demand)
        np.add.at(supply, (np.arange(game.classes), game.destination), -game.demand)
        kept = independent_rows(rows.reshape(-1, self.edge.size))
        self.balance: np.ndarray = rows.reshape(-1, self.edge.size)[kept]
        self.supply: np.ndarray = supply.reshape(-1)[kept]

    def load(self, flow: np.ndarray) -> np.ndarray:
        """Aggregate flow of every edge."""
        load: np.ndarray = np.bincount(self.edge, weights=flow, minlength=self.edges).astype(np.float64)
        return load


def usable_edges(game: RoutingGame) -> np.ndarray:
    """Classes by edges: whether an edge lies on a way from origin to destination or on a cycle."""
    n = game.vertices
    reach = np.array([reachable_from(n, game.tail, game.head, v) for v in range(n)])
    on_cycle = reach[game.head, game.tail]
    on_way = reach[game.origin][:, game.tail] & reach[:, game.destination].T[:, game.head]
    mask: np.ndarray = on_way | on_cycle
    return mask


def independent_rows(matrix: np.ndarray) -> np.ndarray:
    """Rows of a stack of incidence matrices that span all of them (one row per connected part is redundant)."""
    from scipy.linalg import qr

    triangle, order = qr(matrix.T, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > 1e-9))
    return np.sort(order[:rank])


def on_support(programme: Programme, used: np.ndarray) -> np.ndarray:
    """Load that solves the equations of a support, by least squares (flows of the classes need not be unique)."""
    size, rows = int(used.sum()), programme.supply.size
    system = np.zeros((size + rows, size + rows))
    system[:size, :size] = programme.hessian[np.ix_(used, used)]
    system[:size, size:] = programme.balance[:, used].T
    system[size:, :size] = programme.balance[:, used]
    right = np.concatenate([-programme.cost[used], programme.supply])
    solution = np.linalg.lstsq(system, right, rcond=1e-13)[0]
    solution += np.linalg.lstsq(system, right - system @ solution, rcond=1e-13)[0]
    flow = np.zeros(programme.cost.size)
    flow[used] = solution[:size]
    return programme.load(flow)


def trajectory(game: RoutingGame, seed: int, steps: int = 150) -> np.ndarray:
    """Queries of PZOS as in Sec. 5.1: mu = 0.5, alpha = 0.7 / |E|, lambda = 1, three per step."""
    tolls, queries = np.zeros(game.edges), []
    for step in range(steps):
        v = Keys(seed).direction(step, 0, game.edges)
        asked = np.array([tolls, tolls + 0.5 * v, tolls - 0.5 * v])
        flow, plus, minus = game.response(asked)
        gradient = flow - 2.0 * tolls + game.edges * (tolls @ (plus - minus)) * v
        tolls = tolls + 0.7 / game.edges * gradient
        queries.append(asked)
    return np.concatenate(queries)


class Sparse:
    """The programme with f and F as variables: a diagonal Hessian, F = sum_i f_i and conservation as equations."""

    def __init__(self, game: RoutingGame) -> None:
        self.game = game
        self.programme = p = Programme(game, np.zeros(game.edges))
        self.own, m = p.edge.size, game.edges
        self.size = self.own + m
        gather = sp.csc_matrix((np.ones(self.own), (p.edge, np.arange(self.own))), shape=(m, self.own))
        self.P = sp.csc_matrix(sp.diags(np.concatenate([np.zeros(self.own), game.slope])))
        self.A = sp.csc_matrix(sp.bmat([[sp.csc_matrix(p.balance), None], [gather, -sp.identity(m)]]))
        self.b = np.concatenate([p.supply, np.zeros(m)])
        self.rate = 1.0 / game.sensitivity[p.group]

    def cost(self, tolls: np.ndarray) -> np.ndarray:
        return np.concatenate([tolls[self.programme.edge] * self.rate, self.game.intercept])

    def flow(self, solution: np.ndarray) -> np.ndarray:
        return np.array(solution)[self.own : self.size]  # a copy: some solvers hand out their own memory


def daqp_peer(game: RoutingGame) -> Answerer:
    """DAQP is fastest without the equations: f = f0 + Z z with Z spanning the circulations, and f >= 0.

    It wants a positive definite Hessian: 1e-6 is added (flow error about 1e-6; its proximal iterations are slower).
    """
    import daqp
    from scipy.linalg import null_space

    p = Programme(game, np.zeros(game.edges))
    rate = 1.0 / game.sensitivity[p.group]
    basis = np.ascontiguousarray(null_space(p.balance))
    start = np.linalg.lstsq(p.balance, p.supply, rcond=None)[0]
    fixed = basis.T @ (p.hessian @ start + game.intercept[p.edge])
    to_cost, to_load = basis.T * rate, np.zeros((game.edges, basis.shape[1]))
    np.add.at(to_load, p.edge, basis)
    by_toll = np.zeros((basis.shape[1], game.edges))
    np.add.at(by_toll.T, p.edge, to_cost.T)
    hessian = basis.T @ p.hessian @ basis + 1e-6 * np.eye(basis.shape[1])
    base, size = p.load(start), start.size
    model = daqp.Model()
    model.setup(hessian, fixed, basis, np.full(size, 1e30), -start, np.zeros(size, dtype=np.int32))

    def answer(tolls: np.ndarray) -> np.ndarray:
        model.update(f=fixed + by_toll @ tolls)
        return base + to_load @ np.asarray(model.solve()[0])

    return answer


def daqp_equations_peer(game: RoutingGame) -> Answerer:
    """DAQP on the programme as it stands: edge flows per class, conservation as equations, the same 1e-6 added."""
    import daqp

    p = Programme(game, np.zeros(game.edges))
    rate, size, rows = 1.0 / game.sensitivity[p.group], p.cost.size, p.supply.size
    fixed, equality = game.intercept[p.edge], 5
    model = daqp.Model()
    model.setup(p.hessian + 1e-6 * np.eye(size), p.cost.copy(), np.ascontiguousarray(p.balance),
                np.concatenate([np.full(size, 1e30), p.supply]), np.concatenate([np.zeros(size), p.supply]),
                np.repeat([0, equality], [size, rows]).astype(np.int32))  # fmt: skip

    def answer(tolls: np.ndarray) -> np.ndarray:
        model.update(f=fixed + tolls[p.edge] * rate)
        return p.load(np.asarray(model.solve()[0]))

    return answer


def piqp_peer(game: RoutingGame) -> Answerer:
    import piqp

    form = Sparse(game)
    solver = piqp.SparseSolver()
    lower = np.concatenate([np.zeros(form.own), np.full(game.edges, -np.inf)])
    solver.setup(form.P, form.cost(np.zeros(game.edges)), form.A, form.b, x_l=lower)

    def answer(tolls: np.ndarray) -> np.ndarray:
        solver.update(c=form.cost(tolls))
        solver.solve()
        return form.flow(solver.result.x)

    return answer


def osqp_peer(game: RoutingGame) -> Answerer:
    import osqp

    form = Sparse(game)
    bounds = sp.csc_matrix(sp.eye(form.own, form.size))
    solver = osqp.OSQP()
    solver.setup(form.P, form.cost(np.zeros(game.edges)), sp.csc_matrix(sp.vstack([form.A, bounds])),
                 np.concatenate([form.b, np.zeros(form.own)]), np.concatenate([form.b, np.full(form.own, np.inf)]),
                 verbose=False, eps_abs=1e-5, eps_rel=1e-5, max_iter=100000)  # fmt: skip

    def answer(tolls: np.ndarray) -> np.ndarray:
        solver.update(q=form.cost(tolls))
        return form.flow(solver.solve().x)

    return answer


def proxqp_peer(game: RoutingGame) -> Answerer:
    from proxsuite import proxqp

    form = Sparse(game)
    bounds = sp.csc_matrix(sp.eye(form.own, form.size))
    solver = proxqp.sparse.QP(form.size, form.b.size, form.own)
    solver.settings.eps_abs = 1e-6
    solver.settings.initial_guess = proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    solver.init(
        form.P, form.cost(np.zeros(game.edges)), form.A, form.b, bounds, np.zeros(form.own), np.full(form.own, 1e20)
    )

    def answer(tolls: np.ndarray) -> np.ndarray:
        solver.update(g=form.cost(tolls))
        solver.solve()
        return form.flow(solver.results.x)

    return answer


def clarabel_peer(game: RoutingGame) -> Answerer:
    import clarabel

    form = Sparse(game)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False
    rows = sp.csc_matrix(sp.vstack([form.A, -sp.eye(form.own, form.size)]))
    cones = [clarabel.ZeroConeT(form.b.size), clarabel.NonnegativeConeT(form.own)]
    right = np.concatenate([form.b, np.zeros(form.own)])
    solver = clarabel.DefaultSolver(form.P, form.cost(np.zeros(game.edges)), rows, right, cones, settings)

    def answer(tolls: np.ndarray) -> np.ndarray:
        solver.update(q=form.cost(tolls))
        return form.flow(np.array(solver.solve().x))

    return answer


def highs_peer(game: RoutingGame) -> Answerer:
    import highspy

    form = Sparse(game)
    model = highspy.HighsModel()
    lp = model.lp_
    lp.num_col_, lp.num_row_ = form.size, form.b.size
    lp.col_cost_ = form.cost(np.zeros(game.edges))
    lp.col_lower_ = np.zeros(form.size)
    lp.col_upper_ = np.full(form.size, highspy.kHighsInf)
    lp.row_lower_ = lp.row_upper_ = form.b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = form.A.indptr, form.A.indices, form.A.data
    lower = sp.csc_matrix(sp.tril(form.P))
    model.hessian_.dim_ = form.size
    model.hessian_.format_ = highspy.HessianFormat.kTriangular
    model.hessian_.start_, model.hessian_.index_, model.hessian_.value_ = lower.indptr, lower.indices, lower.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(model)
    places = np.arange(form.size, dtype=np.int32)

    def answer(tolls: np.ndarray) -> np.ndarray:
        solver.changeColsCost(form.size, places, form.cost(tolls))
        solver.run()
        return form.flow(np.array(solver.getSolution().col_value))

    return answer


def cvxpy_peer(game: RoutingGame) -> Answerer:
    import cvxpy as cp

    form = Sparse(game)
    variable, cost = cp.Variable(form.size), cp.Parameter(form.size)
    objective = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(game.slope), variable[form.own :])) + cost @ variable
    problem = cp.Problem(cp.Minimize(objective), [form.A @ variable == form.b, variable[: form.own] >= 0])

    def answer(tolls: np.ndarray) -> np.ndarray:
        cost.value = form.cost(tolls)
        problem.solve(solver=cp.CLARABEL)
        return form.flow(variable.value)

    return answer


PEERS: dict[str, tuple[str, Callable[[RoutingGame], Answerer]]] = {
    "DAQP": ("daqp", daqp_equations_peer),
    "DAQP reduced": ("daqp", daqp_peer),
    "PIQP": ("piqp", piqp_peer),
    "OSQP": ("osqp", osqp_peer),
    "ProxQP": ("proxsuite", proxqp_peer),
    "Clarabel": ("clarabel", clarabel_peer),
    "HiGHS": ("highspy", highs_peer),
    "cvxpy": ("cvxpy", cvxpy_peer),
}


def timed(answer: Answerer, queries: np.ndarray) -> tuple[list[float], np.ndarray]:
    seconds, flows = [], []
    for tolls in queries:
        start = time.perf_counter()
        flow = answer(tolls)
        seconds.append(time.perf_counter() - start)
        flows.append(flow)
    return seconds, np.array(flows)


def reference(game: RoutingGame, tolls: np.ndarray) -> np.ndarray:
    """Flow by LAPACK from the edges each class uses: the equations of that support, by least squares.

    The support is taken from the solver's class flows, and checked: Wardrop's conditions must hold on all edges.
    """
    split = game.equilibrium(tolls)
    programme = Programme(game, tolls)
    used = split.class_flow[programme.group, programme.edge] > 1e-9
    flow = on_support(programme, used)
    latency = game.slope * flow + game.intercept
    for i in range(game.classes):
        cost = latency + tolls / game.sensitivity[i]
        label = np.full(game.vertices, np.inf)
        label[game.origin[i]] = 0.0
        for _ in range(game.vertices):
            np.minimum.at(label, game.head, label[game.tail] + cost)
        known = np.isfinite(label[game.tail])
        reduced = cost[known] + label[game.tail[known]] - label[game.head[known]]
        paid = split.class_flow[i][known] @ np.abs(reduced)
        if reduced.min(initial=0.0) < -1e-9 or paid > 1e-9:
            raise SystemExit(f"Wardrop's conditions fail: {reduced.min():.1e}, {paid:.1e}")
    return flow


def batches_of_nine(game: RoutingGame, queries: np.ndarray, seed: int) -> np.ndarray:
    """The queries of one PZOS step with four directions: the point, and four pairs around it."""
    directions = np.array([Keys(seed).direction(7, k, game.edges) for k in range(4)])
    around = 0.5 * np.vstack([np.zeros((1, game.edges)), directions, -directions])
    return np.array([centre + around for centre in queries[::3]])


@dataclass
class Times:
    """Seconds per response, pooled over the instances, and the largest flow error."""

    seconds: list[float] = field(default_factory=list)
    error: float = 0.0

    def add(self, seconds: list[float], flows: np.ndarray, exact: np.ndarray) -> None:
        self.seconds += seconds
        self.error = max(self.error, float(np.abs(flows - exact).max()))

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


@dataclass
class Speed:
    """What one run of all followers on the same queries found."""

    ours: Times
    nine: Times
    one_of_nine: Times
    peers: dict[str, Times]
    missing: list[str]


def installed_peers(game: RoutingGame, missing: list[str]) -> dict[str, Answerer]:
    """Every peer set up for a game; those not installed are noted."""
    peers = {}
    for name, (_, make) in PEERS.items():
        try:
            peers[name] = make(game)
        except ImportError:
            if name not in missing:
                missing.append(name)
    return peers


def speed(instances: int, per_instance: int) -> Speed:
    """All followers on the same consecutive queries of PZOS; they take turns, so that noise falls on all alike."""
    found = Speed(Times(), Times(), Times(), {}, [])
    for seed in range(instances):
        game = RoutingGame.random(seed)
        queries = trajectory(game, seed)[225 : 225 + per_instance]
        nines = batches_of_nine(game, queries, seed)
        answerers = installed_peers(game, found.missing)
        flows = game.response(queries)
        for _ in range(TURNS):
            found.ours.add(*timed(game.response, queries), flows)
            for name, answer in answerers.items():
                answer(queries[0])
                found.peers.setdefault(name, Times()).add(*timed(answer, queries), flows)
            game.response(queries[0])
            found.nine.seconds += timed(game.response, nines)[0]
            found.one_of_nine.seconds += [s for nine in nines for s in timed(game.response, nine)[0]]
    return found


def accuracy(responses: int) -> dict[str, float]:
    """Flow errors against LAPACK along whole trajectories, on fresh instances; an error is raised where one fails."""
    worst, count, negative, fall_backs, seed = 0.0, 0, 0, 0, 1000
    while count < responses:
        game = RoutingGame.random(seed)
        queries = trajectory(game, seed)
        for tolls, flow in zip(queries, game.response(queries), strict=True):
            worst = max(worst, float(np.abs(flow - reference(game, tolls)).max()))
            negative += int(tolls.min() < 0.0)
        count += len(queries)
        statistics = game.statistics()
        fall_backs += statistics.cold + statistics.perturbed
        seed += 1
    return {
        "responses": count,
        "instances": seed - 1000,
        "negative": negative,
        "worst": worst,
        "fall_backs": fall_backs,
    }
