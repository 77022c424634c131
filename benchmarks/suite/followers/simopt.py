"""Four problems of SimOpt (``pip install simoptlib``), its simulated responses as y and the known costs in f.

A query is the mean of several replications. SimOpt's own streams (MRG32k3a) give common random numbers: the generator
of a query chooses the streams, and the same streams meet every x. Instances differ in costs, demands or arrivals.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import pzos
from suite.family import Family
from testbed.unseen.instance import Vector

_STREAMS = 2**20  # as many are told apart


@dataclass(frozen=True, eq=False)
class Replications:
    """A model of SimOpt as a follower: (x, generator) -> mean responses, one after another in one vector.

    ``module`` and ``model`` name it, ``factors(x)`` are what x and the instance make of its factors.
    """

    module: str
    model: str
    factors: Callable[[Vector], Mapping[str, Any]]
    responses: Sequence[str]
    replications: int

    def __call__(self, x: Vector, generator: np.random.Generator) -> Vector:
        """Simulate; a decision that the model refuses is a failure."""
        from mrg32k3a.mrg32k3a import MRG32k3a

        kind = getattr(importlib.import_module(f"simopt.models.{self.module}"), self.model)
        try:
            model = kind(dict(self.factors(x)))
        except ValueError as error:
            raise pzos.FollowerFailure(f"{self.model} refuses {x}: {error}") from error
        stream = int(generator.integers(_STREAMS))
        rows = []
        for replication in range(self.replications):
            model.before_replicate(
                [MRG32k3a(s_ss_sss_index=[stream, part, replication]) for part in range(model.n_rngs)]
            )
            given, _ = model.replicate()
            rows.append(np.concatenate([np.ravel(given[name]) for name in self.responses]))
        mean: Vector = np.mean(rows, axis=0, dtype=np.float64)
        return mean


def _weighted(weights: Sequence[float], cost: Callable[[Vector], tuple[float, Vector]] | None = None) -> Any:
    """Return the leader who pays a known cost(x), with its gradient, plus weights @ y."""
    w = np.array(weights, dtype=np.float64)
    known = cost or (lambda x: (0.0, np.zeros(x.size)))
    return pzos.leader_from_functions(
        lambda x, y: known(x)[0] + float(w @ y), lambda x, y: known(x)[1], lambda x, y: w.copy()
    )


def activities(seed: int) -> pzos.Problem:
    """SAN-1: crash the mean durations x of 13 tasks; pay costs/x and the mean length of the project.

    The answers are the mean times at which each of the nine milestones is reached.
    """
    costs = np.random.default_rng(seed).uniform(0.3, 3.0, 13)
    follower = Replications("san", "SAN", lambda x: {"arc_means": tuple(x)}, ["longest_path_to_all_nodes"], 30)
    leader = _weighted(np.eye(9)[-1], lambda x: (float((costs / x).sum()), -costs / x**2))
    return pzos.Problem(leader, pzos.seeded(follower, common=True), np.full(13, 8.0), pzos.Box(0.01, 100.0))


def messages(seed: int) -> pzos.Problem:
    """NETWORK-1: send shares x of 1000 messages through ten networks; processing costs are known, waiting is not."""
    draw = np.random.default_rng(seed)
    price, wait = draw.uniform(0.2, 1.8, 10) * 0.1 / np.arange(1.0, 11.0), 0.005 * draw.uniform(0.5, 1.5, 10)

    def factors(x: Vector) -> Mapping[str, Any]:
        shares = np.maximum(x, 0.0)
        return {"process_prob": list(shares / shares.sum()), "cost_time": list(wait), "cost_process": [1e-12] * 10}

    follower = Replications("network", "Network", factors, ["total_cost"], 3)
    leader = _weighted([1.0], lambda x: (1000.0 * float(price @ x), 1000.0 * price))
    return pzos.Problem(leader, pzos.seeded(follower, common=True), np.full(10, 0.1), pzos.Simplex())


def inventory(seed: int) -> pzos.Problem:
    """SSCONT-1: order up to S = x1 + x2 when the stock falls below s = x1; pay backorders, orders, and holding."""
    draw = np.random.default_rng(seed)
    given = {"demand_mean": float(draw.uniform(50, 200)), "lead_mean": float(draw.uniform(3, 9)),
             "backorder_cost": float(draw.uniform(2, 8)), "fixed_cost": float(draw.uniform(20, 500))}  # fmt: skip
    responses = ["avg_backorder_costs", "avg_order_costs", "avg_holding_costs", "stockout_rate", "avg_stockout"]
    follower = Replications("sscont", "SSCont", lambda x: {**given, "s": x[0], "S": x[0] + x[1]}, responses, 20)
    leader = _weighted([1.0, 1.0, 1.0, 0.0, 0.0])
    return pzos.Problem(leader, pzos.seeded(follower, common=True), [600.0, 600.0], pzos.Box(1.0, 5000.0))


def park(seed: int) -> pzos.Problem:
    """AMUSEMENTPARK-1: divide 350 places in queues among seven attractions; a visitor who finds none goes home.

    The answers are the visitors lost, the mean number in the park, and how busy each attraction is.
    """
    rates = {"arrival_gammas": np.random.default_rng(seed).integers(1, 3, 7).tolist(), "time_open": 120.0}
    responses = ["total_departed", "average_number_in_system", "attraction_utilization_percentages"]
    follower = Replications("amusementpark", "AmusementPark",
                            lambda x: {**rates, "queue_capacities": np.round(x).astype(int).tolist()},
                            responses, 2)  # fmt: skip
    start = np.array([344.0, *np.ones(6)])  # SimOpt's own
    return pzos.Problem(_weighted([1.0] + [0.0] * 8), pzos.seeded(follower, common=True), start, pzos.Simplex(350.0),
                        grid=pzos.whole())  # fmt: skip


_family = partial(Family, package="simopt", extra="suite-simopt")
FAMILIES = [
    _family("simopt-activities", make=activities, kind="noise", judged_by=16,
            about="crash the 13 tasks of a project (SAN-1)",
            baselines={"all-halved": lambda seed: np.full(13, 4.0)}),
    _family("simopt-messages", make=messages, kind="noise", judged_by=16,
            about="route messages through ten networks (NETWORK-1)",
            baselines={"all-through-the-fastest": lambda seed: np.eye(10)[0]}),
    _family("simopt-inventory", make=inventory, kind="noise", judged_by=16, about="an (s, S) inventory (SSCONT-1)",
            baselines={"a-thousand-each": lambda seed: np.array([1000.0, 1000.0])}),
    _family("simopt-park", make=park, kind="noise", judged_by=8, queries=50,
            about="350 places in the queues of seven attractions, whole numbers (AMUSEMENTPARK-1)",
            baselines={"equal-queues": lambda seed: np.full(7, 50.0)}),
]  # fmt: skip
