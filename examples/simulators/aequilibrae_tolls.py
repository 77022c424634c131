"""Tolls on a city whose travellers are answered by AequilibraE: 14 queries, judged by an exact equilibrium.

    pip install "pzos[aequilibrae]"
    python examples/simulators/aequilibrae_tolls.py

AequilibraE's answers carry a relative gap of 1e-3, an error that does not vanish with the toll: the radius is large.
There is no randomness to hold out; the tolls found are judged by ``Network.assign`` at a gap of 1e-10 instead.
"""

import sys
import warnings

import numpy as np

import pzos
from pzos.networks import generated_city
from pzos.networks.search import optimise_tolls
from pzos.networks.simulators.aequilibrae import AequilibraeFollower

QUERIES = 14

warnings.simplefilter("ignore")  # of AequilibraE's own imports
city = generated_city(4, 4, zones=6, congestion=2.0, seed=2)
free = city.assign()
links = np.argsort(-free.time * free.flow)[:6]
follower = AequilibraeFollower(city, links, gap=1e-3)
problem = city.toll_problem(links, {"revenue": 1.0, "travel_time": -1.0}, upper=10.0, follower=follower)
found = optimise_tolls(problem, highest=10.0, solver=pzos.SecantPZOS(step=2e-4, radius=0.5), queries=QUERIES,
                       uniform=5, marginal=0)  # fmt: skip

exact = city.toll_problem(links, {"revenue": 1.0, "travel_time": -1.0}, upper=10.0).follower.function
print(f"{found.queries} queries; revenue minus total travel time, exact")
values = []
for name, x in found.choices().items():
    answer = exact.assignment(x)
    values.append(answer.revenue - answer.total_travel_time)
    print(f"{name:<12}{values[-1]:>14,.0f}")
print("tolls:", np.round(found.x, 2))
sys.exit(0 if values[2] > max(values[:2]) else 1)
