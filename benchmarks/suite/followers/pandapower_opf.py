"""A firm with five plants bids into a market that pandapower clears by an AC optimal power flow (not convex).

The IEEE cases with 30 and 118 buses. The firm names the price of each plant (5 decisions); the market answers with the
price at every bus and what every plant produces (41 and 172 answers), and the profit is known in them. In the smaller
case the firm would own five plants of six, so five rivals are added. The baseline is an engineer's: the same firm on
the linear DC market, solved there by a long search from several starts, and its bids taken to the AC market.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import pzos
from suite.family import Family
from testbed.unseen.instance import Vector

PLANTS = 5
_STARTS, _QUERIES = 3, 80
#: The cheapest bid and the dearest, in units of the case's dearest cost.
_RANGE = (0.0, 2.5)


@dataclass(frozen=True, eq=False)
class Market:
    """The firm's plants with their costs c p + a p^2, where their price and output stand in y, and the AC market."""

    cost: Vector
    slope: Vector
    price_at: Vector
    output_at: Vector
    most: float
    clear: Callable[[Vector], Vector]
    clear_dc: Callable[[Vector], Vector]

    def profit(self, y: Vector) -> tuple[float, Vector]:
        """Return sum (price - c - a p) p over the plants and its gradient in y."""
        price, p = y[self.price_at], y[self.output_at]
        margin = price - self.cost - self.slope * p
        slopes = np.zeros(y.size)
        slopes[self.price_at] = p
        slopes[self.output_at] = margin - self.slope * p
        return float(margin @ p), slopes


@lru_cache(maxsize=6)
def market(case: str, seed: int) -> Market:
    """Return the market of an instance: loads, costs and the firm's plants are drawn."""
    import pandapower
    from pandapower import networks

    rng = np.random.default_rng(seed)
    net = getattr(networks, case)()
    net.load[["p_mw", "q_mvar"]] *= rng.uniform(0.9, 1.05, (len(net.load), 1))
    if case == "case30":
        for bus in (3, 9, 14, 20, 28):
            rival = pandapower.create_gen(net, bus, 0.0, min_p_mw=0.0, max_p_mw=40.0, min_q_mvar=-20.0,
                                          max_q_mvar=30.0, controllable=True)  # fmt: skip
            pandapower.create_poly_cost(net, rival, "gen", rng.uniform(3.0, 5.0), cp2_eur_per_mw2=0.03)
        plants = list(range(PLANTS))
    else:
        large = net.gen.index[net.gen.max_p_mw >= 200.0]
        plants = sorted(int(k) for k in rng.choice(large, PLANTS, replace=False))
    costs = net.poly_cost
    costs["cp1_eur_per_mw"] *= rng.uniform(0.9, 1.1, len(costs))
    rows = [int(costs.index[(costs.et == "gen") & (costs.element == k)][0]) for k in plants]
    buses, gens = len(net.bus), list(net.gen.index)
    place = {bus: k for k, bus in enumerate(net.bus.index)}
    return Market(
        costs.loc[rows, "cp1_eur_per_mw"].to_numpy(np.float64).copy(),
        costs.loc[rows, "cp2_eur_per_mw2"].to_numpy(np.float64).copy(),
        np.array([place[net.gen.bus[k]] for k in plants]),
        np.array([buses + gens.index(k) for k in plants]),
        float(costs["cp1_eur_per_mw"].max()),
        _cleared(net, rows, "runopp"), _cleared(net, rows, "rundcopp"),
    )  # fmt: skip


def _cleared(net: Any, rows: list[int], how: str) -> Callable[[Vector], Vector]:
    """Return bids -> (price at every bus, output of every plant)."""
    import pandapower

    run: Any = getattr(pandapower, how)

    def clear(x: Vector) -> Vector:
        net.poly_cost.loc[rows, "cp1_eur_per_mw"] = np.array(x)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                run(net, delta=1e-10)
        except pandapower.OPFNotConverged as error:
            raise pzos.FollowerFailure(f"{how} did not converge") from error
        y = [net.res_bus.lam_p, net.res_gen.p_mw, net.res_ext_grid.p_mw]
        return np.concatenate([part.to_numpy(np.float64) for part in y])

    return clear


def make(case: str, seed: int, *, dc: bool = False) -> pzos.Problem:
    """Return the firm's problem on the AC market, or on the DC one."""
    here = market(case, seed)

    def all_at_once(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        profit, slopes = here.profit(y)
        return profit, np.zeros(x.size), slopes

    leader = pzos.leader_from_functions(lambda x, y: here.profit(y)[0], value_and_gradients=all_at_once, name="profit")
    bounds = pzos.Box(*(share * here.most for share in _RANGE))
    clear = here.clear_dc if dc else here.clear
    return pzos.Problem(leader, clear, here.cost, bounds, sense="max", name=f"{'DC' if dc else 'AC'} {case}")


def _by_dc(case: str, seed: int) -> Vector:
    """Return the best bids of the DC market, found from several starts."""
    problem, here = make(case, seed, dc=True), market(case, seed)
    rng = np.random.default_rng(seed)
    best, bids = -np.inf, here.cost
    for k in range(_STARTS):
        start = here.cost if k == 0 else rng.uniform(here.cost, _RANGE[1] * here.most)
        again = pzos.Problem(problem.leader, problem.follower, start, problem.domain, "max")
        found = pzos.solve(again, queries=_QUERIES, seed=k, progress=False, certificate=False)
        if found.best_value > best:
            best, bids = found.best_value, found.best_x
    return np.array(bids)


FAMILIES = [
    Family(
        f"acopf-{case}", "pandapower", "suite-pandapower", partial(make, case), "kinked",
        f"five plants bid into the AC optimal power flow of pandapower's {case}",
        baselines={"DC model": partial(_by_dc, case)}, queries=50,
    )
    for case in ("case30", "case118")
]  # fmt: skip
