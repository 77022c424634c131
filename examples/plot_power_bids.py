"""
A power producer's bids
=======================

A producer owns five of eleven plants on the IEEE test grid with 30 buses and names a price for each of them. The market
is cleared by `pandapower <https://www.pandapower.org>`_ (``pip install "pzos[suite-pandapower]"``) with its AC optimal
power flow: voltages, losses and line limits included, and not convex. The producer knows its own costs and sees prices
and output; what the other plants cost it does not know.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandapower
from pandapower.networks import case30

import pzos

# %%
# The market
# ----------
# Six rivals: the plant at the grid's connection, and five more that are added here, each with a cost of its own.

net = case30()
for bus, cost in zip((3, 9, 14, 20, 28), (3.4, 4.6, 3.9, 4.2, 4.8), strict=True):
    rival = pandapower.create_gen(net, bus, 0.0, min_p_mw=0.0, max_p_mw=40.0, min_q_mvar=-20.0, max_q_mvar=30.0,
                                  controllable=True)  # fmt: skip
    pandapower.create_poly_cost(net, rival, "gen", cost, cp2_eur_per_mw2=0.03)
own = net.poly_cost.index[(net.poly_cost.et == "gen") & (net.poly_cost.element < 5)]
cost = net.poly_cost.cp1_eur_per_mw[own].to_numpy().copy()  # the cost of p MW is cost p + slope p^2
slope = net.poly_cost.cp2_eur_per_mw2[own].to_numpy().copy()
buses, home = len(net.bus), net.gen.bus[:5].to_numpy()


def market(bids):
    """Clear the market: the price at each of the 30 buses, and what the eleven plants produce."""
    net.poly_cost.loc[own, "cp1_eur_per_mw"] = bids
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandapower.runopp(net, delta=1e-10)
    return np.concatenate([net.res_bus.lam_p, net.res_gen.p_mw, net.res_ext_grid.p_mw])


# %%
# The producer
# ------------
# Profit = (price - cost) x output: known, and so are its slopes in prices and outputs.


def profit(bids, answer):
    price, output = answer[home], answer[buses : buses + 5]
    margin = price - cost - slope * output
    slopes = np.zeros(answer.size)
    slopes[home], slopes[buses : buses + 5] = output, margin - slope * output
    return float(margin @ output), np.zeros(bids.size), slopes


leader = pzos.leader_from_functions(lambda x, y: profit(x, y)[0], value_and_gradients=profit, name="profit")
problem = pzos.Problem(leader, market, cost, pzos.Box(0.0, 12.0), sense="max", name="bids")
result = pzos.solve(problem, queries=20, certificate=True, seed=0, progress=False)

# %%
# What it gives
# -------------
# Doing nothing is to bid the costs. The obvious heuristic is one mark-up for all plants: here the best of ten, which is
# ten queries.

heuristic = max((cost * share for share in np.linspace(1.2, 3.0, 10)), key=lambda bids: profit(bids, market(bids))[0])
for name, bids in (("bid the costs", cost), ("best single mark-up", heuristic), ("pzos, 20 queries", result.best_x)):
    print(f"{name:<20} profit {profit(bids, market(bids))[0]:>6.1f} an hour, bids {np.round(bids, 2)}")
certificate = result.certificate
print(
    f"with {certificate.confidence:.0%} confidence, averaged over all bids within {certificate.delta:.2g} of these, "
    f"no direction promises more than {0.1 * certificate.partial.upper:.2g} an hour for bids moved by 0.1"
)

# %%
# Before and after
# ----------------
# Some plants are held back so that others earn more: with five plants a producer decides where the lines are full.

before, after = market(cost), market(result.best_x)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
place = np.arange(5)
left.bar(place - 0.2, before[buses : buses + 5], 0.4, color="0.7", label="before")
left.bar(place + 0.2, after[buses : buses + 5], 0.4, color="#0072b2", label="after")
left.set(xticks=place, xticklabels=[f"plant {k + 1}" for k in place], ylabel="MW", title="output of the five plants")
left.legend(fontsize=8)
right.plot(np.sort(before[:buses]), color="0.5", label="before")
right.plot(np.sort(after[:buses]), color="#0072b2", label="after")
right.set(xlabel="buses, by price", ylabel="price per MWh", title="what everybody pays")
right.legend(fontsize=8)
plt.show()
