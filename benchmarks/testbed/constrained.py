"""Problems with constraints on outcomes, their reference optima, and the peers that can take such constraints.

Instances are drawn by number. Numbers from 100 up were used to fix constants; reported tables use others.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import pzos
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from testbed.unseen.parts import normal, tanh_map
from testbed.unseen.rough import Quadratic

Respond = Callable[[Vector], Vector]
#: What counts as feasible, in units of each constraint's scale, and as good as the reference.
FEASIBLE, WITHIN = 1e-6, 0.01


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, the best feasible F known (to minimise), the scales of its constraints, and F at its start."""

    family: str
    seed: int
    problem: pzos.Problem
    respond: Respond
    scales: Vector
    start: float
    starts: tuple[Vector, ...] = ()

    @property
    def sign(self) -> float:
        """Return +1 to minimise, -1 to maximise."""
        return self.problem.known().sign

    def at(self, x: Vector) -> tuple[float, Vector]:
        """Return what goes down, and g, at x."""
        y = self.respond(x)
        return self.sign * self.problem.leader.value(x, y), self.problem.outcomes.values(x, y)

    def violation(self, g: Vector) -> float:
        """Return the largest violation in units of its scale."""
        return max(float((g / self.scales).max()), 0.0)

    def gap(self, value: float, best: float) -> float:
        """Return how far above the reference a value is, in units of how far the start is."""
        return (value - best) / max(abs(self.start - best), 0.05 * abs(best), 1e-12)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the box of decisions."""
        n, domain = self.problem.x0.size, self.problem.domain
        if isinstance(domain, pzos.Nonnegative):
            return np.zeros(n), np.full(n, np.inf)
        if isinstance(domain, pzos.Box):
            return np.broadcast_to(domain.lower, n), np.broadcast_to(domain.upper, n)
        return np.full(n, -np.inf), np.full(n, np.inf)


def jacobian(respond: Respond, x: Vector, y: Vector, step: float, ask: Respond | None = None) -> Matrix:
    """Return dy/dx by forward differences, one query per decision."""
    ask = respond if ask is None else ask
    columns = []
    for i in range(x.size):
        moved = x.copy()
        moved[i] += step * max(1.0, abs(float(x[i])))
        columns.append((ask(moved) - y) / (moved[i] - x[i]))
    return np.array(columns).T


def _case(family: str, seed: int, problem: pzos.Problem, respond: Respond, starts: tuple[Vector, ...] = ()) -> Case:
    y = respond(problem.x0)
    value, g = problem.leader.value(problem.x0, y), problem.outcomes.values(problem.x0, y)
    points = [np.abs(problem.outcomes.values(x, respond(x))) for x in starts]
    scales = np.max([np.abs(g), *points], axis=0)
    scales = np.where(scales > 0, scales, 1.0)
    return Case(family, seed, problem, respond, scales, problem.known().sign * value, starts)


def unconstrained(problem: pzos.Problem, respond: Respond, bounds: tuple[Vector, Vector]) -> Vector:
    """Return a minimiser without the constraints, by differences of y and the chain rule."""
    from scipy.optimize import minimize

    sign = problem.known().sign

    def cost(x: Vector) -> tuple[float, Vector]:
        y = respond(x)
        at = problem.leader(x, y)
        return sign * at.value, sign * (at.grad_x + jacobian(respond, x, y, 1e-7).T @ at.grad_y)

    x = problem.x0
    for _ in range(3):
        x = minimize(cost, x, jac=True, method="L-BFGS-B", bounds=list(zip(*bounds, strict=True))).x
    return np.asarray(x)


def security(seed: int, targets: int) -> Case:
    """The security game of the paper; no target may lose more than 85 % of the largest loss without the caps."""
    game = SecurityGame.random(seed, targets)
    free = game.problem()
    best = unconstrained(free, game.response, (np.zeros(targets), np.full(targets, np.inf)))

    def losses(x: Vector, y: Vector) -> Vector:
        return game.defender_value * y / (np.maximum(x, 0.0) + y + game.baseline)

    cap = 0.85 * float(losses(best, game.response(best)).max())

    def pull(x: Vector, y: Vector, w: Vector) -> tuple[Vector, Vector]:
        strength = np.maximum(x, 0.0) + game.baseline
        spread = w * game.defender_value / (strength + y) ** 2
        return np.where(x >= 0.0, -spread * y, 0.0), spread * strength

    names = [f"loss of target {i}" for i in range(targets)]
    caps = pzos.outcomes_from_functions(lambda x, y: losses(x, y) - cap, pull, names=names)
    problem = pzos.Problem(free.leader, game.response, free.x0, free.domain, outcomes=caps)
    return _case(f"security-{targets}", seed, problem, game.response, (best,))


def routing(seed: int) -> Case:
    """The routing game of the paper; five busy links that tolls can relieve may carry 90 % of what they would."""
    game = RoutingGame.random(seed)
    free = game.problem(0.1)
    every = np.full(game.edges, 100.0)
    best = unconstrained(free, game.response, (-every, every))
    flow = game.response(best)
    busy = np.argsort(-flow, kind="stable")[:10]
    dear = best.copy()
    dear[busy] += 30.0
    relieved = busy[game.response(dear)[busy] < 0.8 * flow[busy]][:5]
    dear = best.copy()
    dear[relieved] += 30.0
    caps = pzos.caps(np.maximum(0.9 * flow[relieved], 1.02 * game.response(dear)[relieved]), relieved)
    problem = pzos.Problem(free.leader, game.response, free.x0, pzos.Box(-100.0, 100.0), "max", outcomes=caps)
    return _case("routing", seed, problem, game.response, (best, dear))


def resources(seed: int) -> Case:
    """A follower who solves a quadratic program with bounds; three resources, of which 80 % may be used."""
    rng = Keys(seed).generator(Role.INSTANCE, 7)
    root = normal(rng, 10, 10)
    bounds = np.vstack([np.eye(10), -np.eye(10)]), np.concatenate([np.full(10, 2.0), np.zeros(10)])
    solve = Quadratic(root @ root.T + 0.5 * np.eye(10), *bounds)
    A, b, price = 1.5 * normal(rng, 10, 12), 0.5 + rng.standard_normal(10), 0.5 + rng.random(10)

    def respond(x: Vector) -> Vector:
        return solve(A @ x + b)

    leader = pzos.leader_from_functions(
        lambda x, y: float(-price @ y + 0.1 * (y @ y) + 0.1 * (x @ x)),
        lambda x, y: 0.2 * x, lambda x, y: -price + 0.2 * y,
    )  # fmt: skip
    x0, use = rng.standard_normal(12), rng.random((3, 10))
    box = pzos.Box(-4.0, 4.0)
    best = unconstrained(
        pzos.Problem(leader, respond, x0.clip(-4, 4), box), respond, (np.full(12, -4.0), np.full(12, 4.0))
    )
    limit = 0.8 * use @ respond(best)
    caps = pzos.outcomes_from_functions(
        lambda x, y: use @ y - limit, lambda x, y, w: (0.0 * x, w @ use), names=["water", "power", "labour"]
    )
    problem = pzos.Problem(leader, respond, x0.clip(-4, 4), box, outcomes=caps)
    return _case("resources", seed, problem, respond, (best,))


def smooth(seed: int, decisions: int = 15) -> Case:
    """An unstructured smooth response with three constraints that the free optimum violates."""
    rng = Keys(seed).generator(Role.INSTANCE, 8)
    respond = tanh_map(rng, decisions, 8, 20)
    target = respond(rng.standard_normal(decisions)) + 0.3 * rng.standard_normal(8)
    x0 = rng.standard_normal(decisions)
    leader = pzos.leader_from_functions(
        lambda x, y: float(((y - target) ** 2).sum() + 0.02 * (x @ x)),
        lambda x, y: 0.04 * x, lambda x, y: 2.0 * (y - target),
    )  # fmt: skip
    every = np.full(decisions, np.inf)
    best = unconstrained(pzos.Problem(leader, respond, x0), respond, (-every, every))
    allowed = best + 0.5 * rng.standard_normal(decisions)
    rows = normal(rng, 3, 8)
    rows *= np.sign(rows @ (respond(best) - respond(allowed)))[:, None]
    limit = 0.5 * rows @ (respond(best) + respond(allowed))
    caps = pzos.outcomes_from_functions(
        lambda x, y: rows @ y - limit, lambda x, y, w: (0.0 * x, w @ rows), names=["first", "second", "third"]
    )
    problem = pzos.Problem(leader, respond, x0, outcomes=caps)
    return _case("smooth", seed, problem, respond, (best, allowed))


def small(seed: int) -> Case:
    """One of many small problems, to count violations on."""
    return smooth(seed, 6)


FAMILIES: dict[str, Callable[[int], Case]] = {
    "security-10": lambda seed: security(seed, 10),
    "security-50": lambda seed: security(seed, 50),
    "routing": routing,
    "resources": resources,
    "smooth": lambda seed: smooth(seed),
}


# ---- references -----------------------------------------------------------------------------------------------------


def reference(case: Case, starts: int = 4) -> tuple[float, Vector]:
    """Return the lowest feasible F found with the exact follower: SLSQP on F from several starts, polished."""
    low, high = case.bounds()
    begin = [case.problem.x0, *case.starts]
    draw = Keys(case.seed).generator(Role.INSTANCE, 9)
    spread = np.std(begin, axis=0) + 0.1
    begin += [begin[1] + spread * draw.standard_normal(begin[0].size) for _ in range(starts)]
    best, where = np.inf, case.problem.x0
    for x in begin:
        for _ in range(3):
            try:
                x = np.clip(_slsqp(case, case.respond, np.clip(x, low, high), 1e-7, 200), low, high)
                value, g = case.at(x)
            except pzos.PzosError:  # far away the follower may not be found
                break
            if case.violation(g) <= FEASIBLE and value < best:
                best, where = value, x
    return best, where


def _slsqp(case: Case, ask: Respond, x0: Vector, step: float, iterations: int) -> Vector:
    """Run SLSQP with differences of y and the chain rule; every difference is asked through ``ask``."""
    from scipy.optimize import minimize

    problem, sign = case.problem, case.sign
    outcomes = problem.outcomes
    answers: dict[bytes, Vector] = {}
    slopes: dict[bytes, Matrix] = {}

    def answer(x: Vector) -> Vector:
        if x.tobytes() not in answers:
            answers[x.tobytes()] = ask(x)
        return answers[x.tobytes()]

    def slope(x: Vector) -> Matrix:
        if x.tobytes() not in slopes:
            slopes[x.tobytes()] = jacobian(ask, x, answer(x), step)
        return slopes[x.tobytes()]

    def gradient(x: Vector) -> Vector:
        at = problem.leader(x, answer(x))
        return sign * (at.grad_x + slope(x).T @ at.grad_y)

    def room_slope(x: Vector) -> Matrix:
        own, in_y = outcomes.pulls(x, answer(x), np.diag(1.0 / case.scales))
        return -(own + in_y @ slope(x))

    low, high = case.bounds()
    found = minimize(
        lambda x: sign * problem.leader.value(x, answer(x)), x0, jac=gradient, method="SLSQP",
        bounds=[(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)],
        constraints=[{"type": "ineq", "fun": lambda x: -outcomes.values(x, answer(x)) / case.scales,
                      "jac": room_slope}],
        options={"maxiter": iterations, "ftol": 1e-12},
    )  # fmt: skip
    return np.asarray(found.x)


# ---- runs -----------------------------------------------------------------------------------------------------------


class Spent(Exception):
    """The budget is spent; raised through a peer to end it."""


class Asked:
    """The follower behind a counter: what goes down and the violation at every point asked, in order."""

    def __init__(self, case: Case, budget: int) -> None:
        self.case, self.budget = case, budget
        self.values: list[float] = []
        self.violations: list[float] = []
        self._known: dict[bytes, Vector] = {}

    def __call__(self, x: Vector) -> Vector:
        """Answer one query; the same point twice is asked once."""
        x = np.array(x, dtype=np.float64)
        if x.tobytes() in self._known:
            return self._known[x.tobytes()]
        if len(self.values) >= self.budget:
            raise Spent
        y = self.case.respond(x)
        self._known[x.tobytes()] = y
        with np.errstate(all="ignore"):
            value = self.case.sign * self.case.problem.leader.value(x, y)
            self.violations.append(self.case.violation(self.case.problem.outcomes.values(x, y)))
        self.values.append(value)
        return y

    def both(self, x: Vector) -> tuple[float, Vector]:
        """Return what goes down, and g in its scales, by one query."""
        x = np.array(x, dtype=np.float64)
        y = self(x)
        return self.case.sign * self.case.problem.leader.value(x, y), self.case.problem.outcomes.values(
            x, y
        ) / self.case.scales


def cobyqa(asked: Asked, seed: int) -> None:
    """SciPy's COBYQA, F and g as black boxes."""
    from scipy.optimize import Bounds, NonlinearConstraint, minimize

    case = asked.case
    minimize(
        lambda x: asked.both(x)[0], case.problem.x0, method="COBYQA", bounds=Bounds(*case.bounds()),
        constraints=NonlinearConstraint(lambda x: asked.both(x)[1], -np.inf, 0.0),
        options={"maxfev": asked.budget, "maxiter": 10 * asked.budget},
    )  # fmt: skip


def slsqp(asked: Asked, seed: int) -> None:
    """SciPy's SLSQP with forward differences of y and the chain rule for F and g."""
    _slsqp(asked.case, asked, asked.case.problem.x0, 1e-6, 1000)


def cma_al(asked: Asked, seed: int) -> None:
    """Pycma with its augmented Lagrangian."""
    import cma

    low, high = asked.case.bounds()
    spread = 0.3 * max(1.0, float(np.abs(asked.case.problem.x0).mean()))
    cma.fmin_con2(
        lambda x: asked.both(x)[0], asked.case.problem.x0, spread, constraints=lambda x: list(asked.both(x)[1]),
        options={"seed": seed + 1, "verbose": -9, "bounds": [list(low), list(high)], "maxfevals": 10 * asked.budget},
    )  # fmt: skip


def _searched_box(case: Case) -> tuple[Vector, Vector]:
    """Return the box for peers that need one: three times as far from x0 as any start is from the origin."""
    low, high = case.bounds()
    reach = 3.0 * max(1.0, float(np.abs([case.problem.x0, *case.starts]).max()))
    return np.maximum(low, case.problem.x0 - reach), np.minimum(high, case.problem.x0 + reach)


def tpe(asked: Asked, seed: int) -> None:
    """Optuna's TPE with constraints, in a box."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    low, high = _searched_box(asked.case)

    def objective(trial: Any) -> float:
        x = np.array([trial.suggest_float(f"x{i}", low[i], high[i]) for i in range(low.size)])
        value, g = asked.both(x)
        trial.set_user_attr("g", [float(entry) for entry in g])
        return value

    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=lambda trial: trial.user_attrs["g"])
    optuna.create_study(sampler=sampler).optimize(objective, n_trials=asked.budget)


def botorch(asked: Asked, seed: int) -> None:
    """BoTorch: processes of F and of every g, log expected improvement under constraints, in the box of TPE."""
    import torch
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    low, high = _searched_box(asked.case)
    box = torch.tensor(np.array([low, high]))
    draws = torch.quasirandom.SobolEngine(low.size, scramble=True, seed=seed).draw(low.size, dtype=torch.float64)
    points = [asked.case.problem.x0, *(low + draws.numpy() * (high - low))]
    told = [np.append(*asked.both(x)) for x in points]
    outputs = 1 + len(asked.case.problem.outcomes)
    constraints = [lambda samples, k=k: samples[..., k] for k in range(1, outputs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on fits that end early, which is what they are for
        while True:
            X, Y = torch.tensor(np.array(points)), torch.tensor(np.array(told))
            model = SingleTaskGP(X, Y, input_transform=Normalize(low.size), outcome_transform=Standardize(outputs))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            kept = (Y[:, 1:] <= FEASIBLE).all(dim=1)
            best = Y[kept, 0].min() if kept.any() else Y[:, 0].max()  # none kept: any feasible point is an improvement
            wanted = GenericMCObjective(lambda samples, X=None: -samples[..., 0])
            promise = qLogExpectedImprovement(
                model, best_f=-best, sampler=SobolQMCNormalSampler(torch.Size([64]), seed=seed), objective=wanted,
                constraints=constraints,
            )  # fmt: skip
            found, _ = optimize_acqf(promise, box, q=1, num_restarts=3, raw_samples=64, options={"maxiter": 60})
            points.append(found[0].numpy())
            told.append(np.append(*asked.both(points[-1])))


def ours(asked: Asked, seed: int) -> pzos.Result:
    """The default method of pzos."""
    from dataclasses import replace

    problem = replace(asked.case.problem, follower=pzos.problem.follower.as_follower(asked))
    return pzos.solve(problem, queries=asked.budget, seed=seed, certificate=False, progress=False, monitor=False)


class Method(NamedTuple):
    """How to run one, the package it needs, and up to how many decisions and queries it is run at all."""

    run: Callable[[Asked, int], Any]
    package: str = ""
    decisions: float = np.inf
    queries: float = np.inf

    def missing(self) -> str:
        """Return the package that it lacks here, or nothing."""
        return self.package if self.package and importlib.util.find_spec(self.package) is None else ""


METHODS: dict[str, Method] = {
    "pzos": Method(ours),
    "COBYQA": Method(cobyqa, "scipy"),
    "SLSQP": Method(slsqp, "scipy"),
    "pycma AL": Method(cma_al, "cma"),
    "TPE": Method(tpe, "optuna"),
    "BoTorch": Method(botorch, "botorch", decisions=10, queries=100),
}


def first_good(case: Case, run: Mapping[str, Sequence[float]], best: float) -> int | None:
    """Return the number of the first query at a feasible point within one per cent; None if there is none."""
    for number, (value, violation) in enumerate(zip(run["values"], run["violations"], strict=True), 1):
        if violation <= FEASIBLE and case.gap(value, best) <= WITHIN:
            return number
    return None
