"""A power producer bids its plants into a day-ahead market that PyPSA states and HiGHS clears.

Three zones joined by lines, 24 hours, rivals with costs of their own, and two plants of the firm. The firm decides the
price of each plant in each hour (48 decisions); the market answers with the price of the firm's zones and its dispatch,
and the profit sum (price - cost) q is known in both. With quadratic costs and a battery, hours hang together and the
answers are continuous with kinks; with linear costs a bid that passes a rival's loses the hour: the answers jump.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import pzos
from suite.family import Family
from testbed.unseen.instance import Vector

HOURS = 24
_ZONES = "ABC"
_CAP = 150.0
_MOST = 120.0


@dataclass(frozen=True, eq=False)
class Firm:
    """What the firm knows of itself: the zone of each plant, and its cost c q + a q^2 per hour."""

    zones: tuple[str, ...]
    cost: Vector
    slope: Vector

    @property
    def honest(self) -> Vector:
        """Return the bids that are its costs, hour by hour, plant after plant."""
        return np.repeat(self.cost, HOURS)

    def profit(self, y: Vector) -> tuple[float, Vector]:
        """Return sum (price - c - a q) q over plants and hours, and its gradient in y = (prices, dispatch)."""
        price, q = y.reshape(2, self.cost.size, HOURS)
        margin = price - self.cost[:, None] - self.slope[:, None] * q
        return float(np.sum(margin * q)), np.stack([q, margin - self.slope[:, None] * q]).ravel()


@dataclass(frozen=True, eq=False)
class Market:
    """The firm, and the market as a function of its bids."""

    firm: Firm
    clear: Callable[[Vector], Vector]


@lru_cache(maxsize=6)
def market(kind: str, seed: int) -> Market:
    """Return the market of an instance; PyPSA's model is made once, and only the bids in it change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyPSA's and linopy's own coming versions
        return _stated(kind, seed)


def _stated(kind: str, seed: int) -> Market:
    import pypsa

    logging.getLogger("linopy").setLevel(logging.ERROR)
    logging.getLogger("pypsa").setLevel(logging.ERROR)
    rng = np.random.default_rng(seed)
    quadratic = kind == "quadratic"
    network = pypsa.Network()
    network.set_snapshots(range(HOURS))
    _add_grid(network, rng)
    for k in range(8):
        slope = rng.uniform(0.03, 0.12) if quadratic else 0.0
        network.add("Generator", f"rival {k}", bus=_ZONES[k % 3], p_nom=rng.uniform(70.0, 160.0),
                    marginal_cost=rng.uniform(10.0, 80.0), marginal_cost_quadratic=slope)  # fmt: skip
    firm = Firm(("A", "B"), rng.uniform(20.0, 40.0, 2), np.full(2, 0.03) if quadratic else np.zeros(2))
    for k, zone in enumerate(firm.zones):
        network.add("Generator", f"own {k}", bus=zone, p_nom=rng.uniform(120.0, 180.0), marginal_cost=firm.cost[k],
                    marginal_cost_quadratic=firm.slope[k])  # fmt: skip
    if quadratic:
        network.add("StorageUnit", "battery", bus="C", p_nom=60.0, max_hours=4.0, efficiency_store=0.95,
                    efficiency_dispatch=0.95, cyclic_state_of_charge=True, marginal_cost_quadratic=0.01)  # fmt: skip
    return Market(firm, _cleared(network, firm))


def _add_grid(network: Any, rng: np.random.Generator) -> None:
    """Add zones, lines, loads with a morning and an evening peak, and shedding at the price cap."""
    hours = np.arange(HOURS)
    day = 0.65 + 0.2 * np.exp(-(((hours - 9.0) / 2.5) ** 2)) + 0.35 * np.exp(-(((hours - 19.0) / 3.0) ** 2))
    for zone in _ZONES:
        network.add("Bus", zone)
    for one, other in ("AB", "BC", "CA"):
        network.add("Line", one + other, bus0=one, bus1=other, x=0.1, s_nom=rng.uniform(80.0, 160.0))
    for zone in _ZONES:
        load = rng.uniform(260.0, 380.0) * day * rng.uniform(0.95, 1.05, HOURS)
        network.add("Load", f"load {zone}", bus=zone, p_set=load)
        network.add("Generator", f"shed {zone}", bus=zone, p_nom=1000.0, marginal_cost=_CAP)


def _cleared(network: Any, firm: Firm) -> Callable[[Vector], Vector]:
    """Return bids -> (prices, dispatch) of the firm: PyPSA's model in HiGHS, solved afresh for every bid."""
    from linopy.io import to_highspy

    model = network.optimize.create_model(include_objective_constant=False)
    solver = to_highspy(model)
    solver.setOptionValue("output_flag", False)
    matrices = model.matrices
    column = {label: place for place, label in enumerate(matrices.vlabels)}
    row = {label: place for place, label in enumerate(matrices.clabels)}
    power = model.variables["Generator-p"].labels
    balance = model.constraints["Bus-nodal_balance"].labels
    own = [column[int(label)] for k in range(firm.cost.size) for label in power.sel(name=f"own {k}").values]
    priced = [row[int(label)] for zone in firm.zones for label in balance.sel(name=zone).values]
    own_at, count = np.array(own, dtype=np.int32), len(own)

    def clear(x: Vector) -> Vector:
        solver.changeColsCost(count, own_at, np.array(x, dtype=np.float64))
        solver.clearSolver()  # so that an answer does not depend on the one before
        solver.run()
        status = solver.modelStatusToString(solver.getModelStatus())
        if status != "Optimal":
            raise pzos.FollowerFailure(f"the market did not clear: {status}")
        solution = solver.getSolution()
        return np.concatenate([np.array(solution.row_dual)[priced], np.array(solution.col_value)[own]])

    return clear


def make(kind: str, seed: int) -> pzos.Problem:
    """Return the firm's problem: the largest profit over bids between 0 and 120 per MWh, from its costs."""
    here = market(kind, seed)

    def all_at_once(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        profit, slopes = here.firm.profit(y)
        return profit, np.zeros(x.size), slopes

    leader = pzos.leader_from_functions(
        lambda x, y: here.firm.profit(y)[0], value_and_gradients=all_at_once, name="profit"
    )
    return pzos.Problem(leader, here.clear, here.firm.honest, pzos.Box(0.0, _MOST), sense="max", name=f"pypsa {kind}")


def _marked_up(kind: str, seed: int) -> Vector:
    """Return the best of ten mark-ups of all bids alike, which is ten simulations."""
    here = market(kind, seed)
    tried = [np.minimum(share * here.firm.honest, _MOST) for share in np.linspace(1.1, 2.0, 10)]
    return max(tried, key=lambda bids: here.firm.profit(here.clear(bids))[0])


FAMILIES = [
    Family(
        f"pypsa-{kind}", "pypsa", "suite-pypsa", partial(make, kind), response,
        f"a firm's 48 hourly bids into a market cleared by PyPSA and HiGHS, {kind} costs",
        baselines={"best of ten mark-ups": partial(_marked_up, kind)},
    )
    for kind, response in (("quadratic", "kinked"), ("linear", "jumps"))
]  # fmt: skip
