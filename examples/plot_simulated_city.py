"""
Tolls in a city's traffic simulator
===================================

A city of 16 crossings in the hour in which everybody drives to work, simulated by
`UXsim <https://github.com/toruseo/UXsim>`_ (``pip install "pzos[traffic]"``): vehicles queue, queues spill back, and
drivers look for another way every two minutes. The city may toll the eight roads on which most time is lost, by up to
four minutes' worth, and wants all trips together to take less time. What a toll does only the simulator says.

With UXsim 1.15 this page printed (vehicle minutes on eight seeds that no method had seen)::

    no tolls                44,274  (809)
    uniform 1               36,189  (95)
    optimised               34,731  (76)
"""

import matplotlib.pyplot as plt
import numpy as np
import uxsim

import pzos
from pzos.networks import generated_city
from pzos.networks.search import optimise_tolls
from pzos.networks.simulators.traffic import judge, simulated_toll_problem
from pzos.networks.simulators.uxsim import UxsimSimulator
from pzos.stationarity import certify

# %%
# The decision
# ------------
# A query is three runs with the same three seeds at every toll, so that luck cancels in comparisons. Vehicles drive in
# platoons of five: the answer jumps when a platoon changes its way, and half a minute of toll moves more than one.

city = generated_city(4, 4, zones=6, congestion=1.2, seed=2)
simulator = UxsimSimulator(city)
before = simulator.run(np.zeros(city.links), seed=5000)
links = np.argsort(-simulator.run(np.zeros(city.links), seed=0).spent)[:8]
problem = simulated_toll_problem(simulator, links, "travel_time", upper=4.0, seeds=range(3))
solver = pzos.SecantPZOS(step=3e-5, radius=0.5)  # chosen on other seeds
found = optimise_tolls(problem, highest=4.0, solver=solver, queries=40, marginal=0)

# %%
# What it gives
# -------------
# Doing nothing; the obvious heuristic, one toll for all eight roads, the best of several; and a toll for each road. All
# three are judged on seeds that were not used to find them.

print(f"UXsim {uxsim.__version__}, {found.queries} queries")
print(judge(problem, found.choices(), range(5000, 5008)))
print("tolls in minutes:", np.round(found.x, 1))
certificate = certify(problem, found.x, delta=0.5, queries=33)
print(
    f"with {certificate.confidence:.0%} confidence, averaged over all tolls within half a minute of these, no "
    f"direction promises more than {0.1 * certificate.partial.upper:,.0f} vehicle minutes for tolls moved by 6 s"
)

# %%
# Before and after
# ----------------
# Widths are the time spent on a road, colours the toll: drivers leave the roads where they stood in each other's way.

toll = city.tolls_on(links, found.x)
after = simulator.run(toll, seed=5000)
places = city.coordinates
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axes, traffic, title in zip(panels, (before, after), ("before", "after"), strict=True):
    for start, end, spent, paid in zip(places[city.tail], places[city.head], traffic.spent, toll, strict=True):
        side = 0.05 * np.array([end[1] - start[1], start[0] - end[0]])  # both directions side by side
        (x0, y0), (x1, y1) = start + side, end + side
        colour = plt.colormaps["plasma_r"](0.2 + 0.8 * paid / toll.max()) if title == "after" and paid else "0.75"
        axes.plot([x0, x1], [y0, y1], color=colour, linewidth=0.5 + 8 * spent / before.spent.max())
    axes.set(title=f"{title}: {traffic.total_time:,.0f} vehicle minutes", aspect="equal")
    axes.axis("off")
plt.show()
