"""
A front of two costs
====================

Tolls on the busiest links of a generated city: the city wants revenue, its travellers want short times. Both costs are
known and both follow from the same answers, so one run serves the whole front: every query is asked where the front is
expected to gain most, whichever mixture of the costs that is. The knee is where little revenue more takes much time.
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.networks import generated_city

city = generated_city(4, 4, zones=6, congestion=2.0, seed=1)
free = city.assign()
links = np.argsort(-free.time * free.flow)[:8]
revenue, time = (
    city.toll_problem(links=links, objective=name, upper=10.0, x0=0.0) for name in ("revenue", "travel_time")
)
front = pzos.front(revenue, [revenue.leader, time.leader], senses=["max", "min"], queries=50)
print(front)

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.plot(*front.points.T, "o-", color="#0072B2", markersize=4, linewidth=0.8, label="front")
axes.plot(*front.points[front.knees].T, "D", color="#D55E00", markersize=9, label="knee")
axes.set(xlabel="revenue (higher is better)", ylabel="total travel time (lower is better)")
axes.legend(frameon=False)
plt.show()
