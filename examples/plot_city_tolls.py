"""
A city before and after tolls
=============================

A generated city of 36 crossings. Tolls may be set on the 16 links on which most time is spent; the leader wants the
total travel time to go down. Each query is an exact equilibrium of all travellers.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import pzos
from pzos.networks import generated_city

city = generated_city(6, 6, zones=10, congestion=2.2, seed=1)
free = city.assign()
links = np.argsort(-free.time * free.flow)[:16]
problem = city.toll_problem(links=links, objective="travel_time", upper=10.0)
result = pzos.solve(problem, queries=60, seed=0)

toll = np.zeros(city.links)
toll[links] = result.best_x
tolled = city.assign(toll)
best = city.system_optimum().total_travel_time
for name, assignment in (("no tolls", free), ("tolls", tolled)):
    print(f"{name:<9} total travel time {assignment.total_travel_time:,.0f} minutes")
print(f"nobody could do better than {best:,.0f} (the system optimum, which would need tolls everywhere)")

places = city.coordinates
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axes, assignment, title, shown in zip(panels, (free, tolled), ("before", "after"), (0 * toll, toll), strict=True):
    segments = np.stack([places[city.tail], places[city.head]], axis=1)
    side = np.stack([segments[:, 1, 1] - segments[:, 0, 1], segments[:, 0, 0] - segments[:, 1, 0]], axis=1)
    segments = segments + 0.05 * side[:, None, :]  # both directions of a street side by side
    widths = 0.4 + 5 * assignment.flow / free.flow.max()
    paid = shown > 0.02 * toll.max()
    axes.add_collection(LineCollection(segments[~paid], colors="0.75", linewidths=widths[~paid]))
    lines = LineCollection(segments[paid], array=shown[paid], cmap="plasma_r", linewidths=widths[paid])
    lines.set_clim(-0.3 * toll.max(), toll.max())  # the lightest colours would not be seen
    axes.add_collection(lines)
    axes.autoscale()
    axes.set(title=f"{title}: {assignment.total_travel_time:,.0f} minutes", aspect="equal")
    axes.axis("off")
figure.colorbar(lines, ax=panels, label="toll", shrink=0.7).ax.set_ylim(0, toll.max())
plt.show()
