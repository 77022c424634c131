"""Routing follower against QP solvers, along real PZOS trajectories (issue: exact and fast followers, routing bars).

    python benchmarks/followers_routing.py [--instances 12] [--accuracy 20000]

Same instances, one thread, one run, medians. Every peer is set up once per instance, then only its linear cost is
updated and it is warm started where it can be. Peers that are not installed are named and left out:
    pip install daqp piqp osqp proxsuite clarabel highspy cvxpy
"""

import argparse
import importlib.metadata
import os
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import scipy.sparse as sp

from pzos.games._routing_interior import Programme, on_support
from pzos.games.routing import RoutingGame
from pzos.keys import Keys

Answerer = Callable[[np.ndarray], np.ndarray]


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
    "DAQP": ("daqp", daqp_peer),
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


def speed(instances: int, per_instance: int) -> None:
    ours, nine, one_of_nine, results = [], [], [], {name: ([], []) for name in PEERS}
    missing = []
    print(f"{instances} instances, {per_instance} consecutive queries of PZOS each; microseconds per response")
    for seed in range(instances):
        game = RoutingGame.random(seed)
        queries = trajectory(game, seed)[225 : 225 + per_instance]
        game.response(queries[0])
        seconds, flows = timed(game.response, queries)
        ours += seconds
        batches = [centre + 0.5 * np.vstack([np.zeros(game.edges), v, -v])
                   for centre in queries[::3]
                   for v in [np.array([Keys(seed).direction(7, k, game.edges) for k in range(4)])]]  # fmt: skip
        nine += timed(game.response, np.array(batches))[0]
        one_of_nine += [s for batch in batches for s in timed(game.response, batch)[0]]
        for name, (_, build) in PEERS.items():
            try:
                answer = build(game)
            except ImportError:
                missing.append(name)
                continue
            answer(queries[0])
            count = per_instance if name != "cvxpy" else min(per_instance, 10)
            seconds, theirs = timed(answer, queries[:count])
            results[name][0].extend(seconds)
            results[name][1].append(float(np.abs(theirs - flows[:count]).max()))
    own = np.median(ours)
    print(f"{'pzos':10} {1e6 * own:10.2f}   mean {1e6 * np.mean(ours):.2f}")
    for name, (package, _) in PEERS.items():
        if name not in missing:
            median = np.median(results[name][0])
            version = importlib.metadata.version(package)
            error = max(results[name][1])
            print(f"{name:10} {1e6 * median:10.2f}   {median / own:8.1f}x slower   error {error:.1e}   {version}")
    if missing:
        print("not installed:", ", ".join(sorted(set(missing))))
    print(f"batch of 9: {1e6 * np.median(nine):.2f}, its tolls one by one: {1e6 * np.median(one_of_nine):.2f} each, "
          f"ratio {np.median(nine) / np.median(one_of_nine):.2f} (bar 6); to a trajectory's response "
          f"{np.median(nine) / own:.2f}")  # fmt: skip


def accuracy(responses: int) -> None:
    worst, count, negative, fall_backs = 0.0, 0, 0, 0
    seed = 0
    while count < responses:
        game = RoutingGame.random(seed)
        queries = trajectory(game, seed)
        flows = game.response(queries)
        for tolls, flow in zip(queries, flows, strict=True):
            worst = max(worst, float(np.abs(flow - reference(game, tolls)).max()))
            negative += int(tolls.min() < 0.0)
        count += len(queries)
        statistics = game.statistics()
        fall_backs += statistics.cold + statistics.perturbed + statistics.interior
        seed += 1
    print(f"{count} responses on {seed} instances, {negative} with negative tolls: largest flow error {worst:.1e}, "
          f"none failed, fall-backs {fall_backs}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--accuracy", type=int, default=20000)
    options = parser.parse_args()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "numba"))
    print(versions)
    speed(options.instances, options.queries)
    if options.accuracy:
        accuracy(options.accuracy)


if __name__ == "__main__":
    main()
