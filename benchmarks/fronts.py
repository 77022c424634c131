"""Fronts of two costs: one memory against eleven separate runs of the default, and against NSGA-II (pymoo).

    python benchmarks/fronts.py                                  # three cases of the half that was built on
    python benchmarks/fronts.py --first-seed 100 --instances 3   # other instances, for a report

Eleven runs of the default, one for each of eleven weights between the scaled costs (the two ends first, which give the
scales), have ``--each`` queries apiece; ``pzos.front`` has a quarter of all theirs, NSGA-II ten times as many as
the front. Figures are shares of the best hypervolume: that of all points any of them asked, up to the worst of either
cost on the joint front. Sioux Falls: revenue up, travel time down.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pzos
from pzos.methods.front.costs import hypervolume, undominated
from testbed.unseen.instance import Cost, Vector
from testbed.unseen.parts import logistic, normal, tanh_map, tracking

WEIGHTS = np.linspace(0.0, 1.0, 11)


class Case(NamedTuple):
    """Two costs over the same followers, both to be minimised, in a box that NSGA-II is told."""

    name: str
    leaders: tuple[pzos.Leader, pzos.Leader]
    follower: Callable[[Vector], Vector]
    x0: Vector
    lower: float
    upper: float

    def costs(self, points: list[Vector]) -> np.ndarray:
        """Return the true costs of points."""
        answers = [np.asarray(self.follower(x), dtype=float) for x in points]
        return np.array([[leader.value(x, y) for leader in self.leaders] for x, y in zip(points, answers, strict=True)])

    def problem(self, leader: pzos.Leader, asked: list[Vector]) -> pzos.Problem:
        """Return the problem with one cost; what is asked is kept."""

        def follower(x: Vector) -> Vector:
            asked.append(x.copy())
            return self.follower(x)

        return pzos.Problem(leader, follower, self.x0, pzos.Box(self.lower, self.upper), name=self.name)


def leader_of(cost: Cost, name: str) -> pzos.Leader:
    """Return a cost of the test bed as a leader."""
    return cost.leader(name)


def tanh_case(seed: int) -> Case:
    """Two targets for ten answers of a tanh network to fifteen decisions: no structure."""
    rng = np.random.default_rng([31, seed])
    respond = tanh_map(rng, 15, 10, 20)
    targets = [respond(rng.standard_normal(15)) for _ in range(2)]
    leaders = tuple(leader_of(tracking(t, np.zeros(15), 0.02), f"miss {k}") for k, t in enumerate(targets))
    return Case(f"tanh-15/{seed}", leaders, respond, np.clip(rng.standard_normal(15), -2.0, 2.0), -3.0, 3.0)


def logistic_case(seed: int) -> Case:
    """Adoption of twelve offers against what twenty decisions cost: no structure."""
    rng = np.random.default_rng([32, seed])
    A, b, price = 2.0 * normal(rng, 12, 20), rng.standard_normal(12), 1.0 + rng.random(12)
    sold = Cost(lambda x, y: float(-price @ y), lambda x, y: (np.zeros_like(x), -price))
    spent = Cost(lambda x, y: float((x * x).sum()), lambda x, y: (2.0 * x, np.zeros_like(y)))
    leaders = (leader_of(sold, "minus sales"), leader_of(spent, "effort"))
    return Case(f"logistic-20/{seed}", leaders, lambda x: logistic(x @ A.T + b), np.full(20, 0.1), -3.0, 3.0)


def sioux_case(data: Path) -> Case:
    """Revenue (turned) and travel time of tolls on the twenty links of Sioux Falls on which most time is spent."""
    city = pzos.networks.read_tntp(data / "SiouxFalls_net.tntp", data / "SiouxFalls_trips.tntp")
    free = city.assign()
    links = np.sort(np.argsort(-free.time * free.flow)[:20])
    problems = [
        city.toll_problem(links=links, objective=name, upper=20.0, x0=0.0) for name in ("revenue", "travel_time")
    ]
    revenue = problems[0].leader

    def negative(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = revenue(x, y)
        return -at.value, -at.grad_x, -at.grad_y

    turned = pzos.leader_from_functions(
        lambda x, y: -revenue.value(x, y), value_and_gradients=negative, name="minus revenue"
    )
    follower = problems[0].follower
    return Case(
        "sioux falls", (turned, problems[1].leader), lambda x: follower.respond(x, None).y, np.zeros(20), 0.0, 20.0
    )


def by_front(case: Case, queries: int) -> list[Vector]:
    """Return what one memory asks."""
    asked: list[Vector] = []
    pzos.front(case.problem(case.leaders[0], asked), case.leaders, queries=queries, progress=False)
    return asked


def by_runs(case: Case, each: int) -> list[Vector]:
    """Return what eleven runs of the default ask, the ends first."""
    everything: list[Vector] = []
    ends = []
    for leader in case.leaders:
        asked: list[Vector] = []
        result = pzos.solve(case.problem(leader, asked), queries=each, certificate=False, progress=False)
        ends.append(case.costs([result.best_x])[0])
        everything += asked
    scale = np.abs(ends[0] - ends[1])
    scale = np.where(scale > 0.0, scale, 1.0)
    for weight in WEIGHTS[1:-1]:
        mix = np.array([weight, 1.0 - weight]) / scale
        asked = []
        pzos.solve(case.problem(mixed(case, mix), asked), queries=each, certificate=False, progress=False)
        everything += asked
    return everything


def mixed(case: Case, mix: Vector) -> pzos.Leader:
    """Return a weighted sum of the costs."""

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = [leader(x, y) for leader in case.leaders]
        return (
            float(sum(m * one.value for m, one in zip(mix, at, strict=True))),
            sum(m * one.grad_x for m, one in zip(mix, at, strict=True)),
            sum(m * one.grad_y for m, one in zip(mix, at, strict=True)),
        )

    return pzos.leader_from_functions(lambda x, y: everything(x, y)[0], value_and_gradients=everything)


def by_nsga2(case: Case, queries: int) -> list[Vector] | str:
    """Return what NSGA-II asks, or why it was not run."""
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.core.problem import ElementwiseProblem
        from pymoo.optimize import minimize
    except ImportError as error:
        return f"not run ({error})"
    asked: list[Vector] = []

    class Both(ElementwiseProblem):
        def __init__(self) -> None:
            n = case.x0.size
            super().__init__(n_var=n, n_obj=2, xl=np.full(n, case.lower), xu=np.full(n, case.upper))

        def _evaluate(self, x: Vector, out: dict[str, object], *_: object, **__: object) -> None:
            asked.append(x.copy())
            out["F"] = case.costs([x])[0]

    minimize(Both(), NSGA2(pop_size=40), ("n_eval", queries), seed=1, verbose=False)
    return asked


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=40, help="queries of each of the eleven runs")
    parser.add_argument("--cases", nargs="*", default=["tanh", "logistic", "sioux"])
    parser.add_argument("--data", type=Path, help="folder of the TNTP files of Sioux Falls")
    args = parser.parse_args()
    try:
        pymoo = version("pymoo")
    except PackageNotFoundError:
        pymoo = "not installed"
    print(f"pzos {pzos.__version__}, numpy {np.__version__}, pymoo {pymoo}, Python {platform.python_version()}, "
          f"{platform.machine()}")  # fmt: skip
    seeds = range(args.first_seed, args.first_seed + args.instances)
    for name in args.cases:
        if name == "sioux" and args.data is not None:
            measure(sioux_case(args.data), args.each)
        elif name == "sioux":
            print("sioux falls: not run (say where the TNTP files are: --data FOLDER)")
        else:
            for seed in seeds:
                measure((tanh_case if name == "tanh" else logistic_case)(seed), args.each)


def measure(case: Case, each: int) -> None:
    """Print the shares of the best hypervolume."""
    queries = 11 * each // 4
    began = time.perf_counter()
    asked = {f"front {queries}": by_front(case, queries)}
    own = time.perf_counter() - began
    asked[f"eleven runs {11 * each}"] = by_runs(case, each)
    peer = by_nsga2(case, 10 * queries)
    if isinstance(peer, list):
        asked[f"NSGA-II {10 * queries}"] = peer
    costs = {name: case.costs(points) for name, points in asked.items()}
    everything = np.vstack(list(costs.values()))
    joint = everything[undominated(everything)]
    reference = joint.max(axis=0) + 1e-9 * np.ptp(joint, axis=0)
    whole = hypervolume(joint, reference)
    shares = ", ".join(f"{name}: {hypervolume(rows, reference) / whole:.4f}" for name, rows in costs.items())
    note = "" if isinstance(peer, list) else f", NSGA-II {peer}"
    print(f"{case.name:<16} {shares}{note}   (front {own:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
