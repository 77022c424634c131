"""
A city before and after tolls
=============================

A generated city of 36 crossings. Tolls may be set on the 16 links on which most time is spent; the leader wants the
total travel time to go down. Each query is an exact equilibrium of all travellers.
"""

import io

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.networks import draw_map, generated_city

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

# %%
# Width is flow, colour is toll; the third map is the difference, blue where there is less traffic and orange where
# there is more. ``write_map(free, tolled, "map.html")`` makes a page of the same with labels.
picture = io.BytesIO()
draw_map(free, tolled).savefig(picture, dpi=120)
picture.seek(0)
figure, axes = plt.subplots(figsize=(14, 5.4), layout="constrained")
axes.imshow(plt.imread(picture))
axes.axis("off")
plt.show()
