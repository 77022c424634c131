"""
Hourly bids into a market of PyPSA
==================================

A firm names a price for its plant in each of 24 hours. `PyPSA <https://pypsa.org>`_
(``pip install "pzos[suite-pypsa]"``) clears the market with HiGHS; rivals and a battery react, and the firm sees the
price and what it sells. Rivals' costs are quadratic, so that answers are continuous, with kinks.
"""

import logging
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pypsa

import pzos

warnings.simplefilter("ignore")  # of PyPSA's own coming versions
for name in ("pypsa", "linopy"):
    logging.getLogger(name).setLevel(logging.ERROR)

# %%
# The market
# ----------

hours = np.arange(24)
load = 300.0 * (0.65 + 0.2 * np.exp(-(((hours - 9) / 2.5) ** 2)) + 0.35 * np.exp(-(((hours - 19) / 3) ** 2)))
network = pypsa.Network()
network.set_snapshots(hours)
network.add("Bus", "zone")
network.add("Load", "load", bus="zone", p_set=load)
for k, (cost, size) in enumerate(((12.0, 120.0), (35.0, 90.0), (60.0, 120.0))):
    network.add("Generator", f"rival {k}", bus="zone", p_nom=size, marginal_cost=cost, marginal_cost_quadratic=0.08)
network.add("StorageUnit", "battery", bus="zone", p_nom=30.0, max_hours=4.0, efficiency_store=0.95,
            cyclic_state_of_charge=True, marginal_cost_quadratic=0.01)  # fmt: skip
network.add("Generator", "own", bus="zone", p_nom=120.0, marginal_cost=25.0, marginal_cost_quadratic=0.03)
COST, SLOPE = 25.0, 0.03


def market(bids):
    """Clear the day: 24 prices, then what the firm sells in each hour."""
    network.generators_t.marginal_cost["own"] = bids
    network.optimize(solver_name="highs", log_to_console=False, include_objective_constant=False)
    return np.concatenate([network.buses_t.marginal_price["zone"], network.generators_t.p["own"]])


# %%
# The firm
# --------


def profit(bids, answer):
    price, sold = answer[:24], answer[24:]
    margin = price - COST - SLOPE * sold
    return float(margin @ sold), np.zeros(24), np.concatenate([sold, margin - SLOPE * sold])


leader = pzos.leader_from_functions(lambda x, y: profit(x, y)[0], value_and_gradients=profit, name="profit")
honest = np.full(24, COST)
problem = pzos.Problem(leader, market, honest, pzos.Box(0.0, 90.0), sense="max", name="hourly bids")
result = pzos.solve(problem, queries=16, seed=0, progress=False, certificate=False)
heuristic = max((honest * share for share in (1.2, 1.5, 2.0, 2.5)), key=lambda bids: profit(bids, market(bids))[0])
for name, bids in (("bid the cost", honest), ("best single mark-up", heuristic), ("pzos, 16 queries", result.best_x)):
    print(f"{name:<20} profit {profit(bids, market(bids))[0]:>9,.0f} a day")

# %%
# Before and after
# ----------------

before, after = market(honest), market(result.best_x)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axes, part, label in zip(panels, (slice(24), slice(24, 48)), ("price per MWh", "MW sold"), strict=True):
    axes.step(hours, before[part], where="mid", color="0.6", label="before")
    axes.step(hours, after[part], where="mid", color="#0072b2", label="after")
    axes.set(xlabel="hour of the day", ylabel=label)
panels[0].legend(fontsize=8)
plt.show()
