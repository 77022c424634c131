"""
Tolls in SUMO
=============

A city of 16 crossings in ten minutes of rush hour, vehicle by vehicle in the mesoscopic model of
`SUMO <https://eclipse.dev/sumo>`_ (``pip install "pzos[sumo]"``). Vehicles choose their way, tolls included, as they
depart. The city may toll the six roads on which most time is spent and wants all trips together, waiting included, to
take less time.

With SUMO 1.28 this page printed (vehicle minutes on eight seeds that no method had seen, and their standard error)::

    no tolls                14,289  (97)
    uniform 0.5             12,682  (62)
    optimised               12,548  (102)
    a toll for each road gains 133 (59) over one for all

Nearly all of the gain is in having tolls at all. A net and routes of your own are read by
``SumoSimulator.from_files("city.net.xml", "city.rou.xml", edges)``.
"""

import libsumo
import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.networks import generated_city
from pzos.networks.search import optimise_tolls
from pzos.networks.simulators.sumo import SumoSimulator
from pzos.networks.simulators.traffic import judge, simulated_toll_problem
from pzos.stationarity import certify

# %%
# The decision
# ------------
# Six tolls of up to three minutes. A query is three runs with the same three seeds at every toll, so that luck cancels
# in comparisons. The answer jumps when a vehicle changes its way: probes are a quarter of a minute of toll away.

city = generated_city(4, 4, zones=5, congestion=0.8, seed=2)
simulator = SumoSimulator(city, loading=600.0, horizon=2400.0)
links = np.argsort(-simulator.run(np.zeros(city.links), seed=0).spent)[:6]
problem = simulated_toll_problem(simulator, links, "travel_time", upper=3.0, seeds=range(3))
solver = pzos.SecantPZOS(step=1e-4, radius=0.25)  # chosen on other seeds
found = optimise_tolls(problem, highest=2.0, solver=solver, queries=36, uniform=6, marginal=0)

# %%
# What it gives
# -------------
# Doing nothing; the obvious heuristic, one toll for all six roads, the best of several; and a toll for each road. All
# are judged on eight seeds that were not used to find them.

print(f"SUMO {libsumo.__version__}, {found.queries} queries; vehicle minutes:")
judged = judge(problem, found.choices(), range(5000, 5008))
print(judged)
one, each = list(judged.values.values())[1:]
gained = one - each  # seed by seed, so that luck cancels here too
error = gained.std(ddof=1) / gained.size**0.5
print(f"a toll for each road gains {gained.mean():,.0f} ({error:,.0f}) over one for all")
certificate = certify(problem, found.x, delta=0.25, queries=33)
print(
    f"with {certificate.confidence:.0%} confidence, averaged over all tolls within a quarter of a minute of these, no "
    f"direction promises more than {0.1 * certificate.partial.upper:,.0f} vehicle minutes for tolls moved by 6 s"
)

# %%
# Before and after
# ----------------
# Left: who drives on the tolled roads. Right: every dot is one of the eight seeds, the line their mean.

before = np.mean([simulator.run(np.zeros(city.links), seed).entered[links] for seed in range(5000, 5004)], axis=0)
paid = city.tolls_on(links, found.x)
after = np.mean([simulator.run(paid, seed).entered[links] for seed in range(5000, 5004)], axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
place = np.arange(links.size)
left.bar(place - 0.2, before, 0.4, color="0.65", label="no tolls")
left.bar(place + 0.2, after, 0.4, color="#0072b2", label="with tolls")
ends = [f"{city.tail[k] + 1} to {city.head[k] + 1}\n{toll:.2f} min" for k, toll in zip(links, found.x, strict=True)]
left.set(xticks=place, ylabel="vehicles", xlabel="tolled road, and its toll")
left.set_xticklabels(ends, fontsize=7)
left.legend(fontsize=8)
for row, (values, colour) in enumerate(zip(judged.values.values(), ("0.4", "#d55e00", "#0072b2"), strict=True)):
    right.plot(np.full(values.size, row), values, "o", color=colour, markersize=4, alpha=0.6)
    right.hlines(values.mean(), row - 0.25, row + 0.25, color=colour, linewidth=2)
right.set(xticks=np.arange(3), xticklabels=list(judged.values), ylabel="vehicle minutes")
plt.show()
