"""Tolls on a city simulated by UXsim: 40 queries, judged on seeds the optimiser never saw.

    pip install "pzos[traffic]"
    python examples/simulators/uxsim_tolls.py

The leader wants the total travel time of all vehicles (waiting included) to go down and may toll the eight links on
which most time is spent. A query is three runs with the same three seeds at every toll: common random numbers, and
averaging. The response is piecewise constant, so the radius is half a minute of toll.
"""

import sys

import numpy as np

import pzos
from pzos.networks import generated_city
from pzos.networks.search import optimise_tolls
from pzos.networks.simulators.traffic import advised_radius, judge, sensitivity, simulated_toll_problem
from pzos.networks.simulators.uxsim import UxsimSimulator

# Step and radius were chosen on seeds 1000 to 1015; those below were not looked at for that.
QUERIES, SEEDS, UNSEEN = 40, range(3), range(5000, 5012)

city = generated_city(4, 4, zones=6, congestion=1.2, seed=2)
simulator = UxsimSimulator(city)
links = np.argsort(-simulator.run(np.zeros(city.links), seed=0).spent)[:8]
problem = simulated_toll_problem(simulator, links, "travel_time", upper=4.0, seeds=SEEDS)

rows = sensitivity(problem, [0.01, 0.1, 0.5], np.eye(8)[:3])
for row in rows:
    print(f"a toll of {60 * row.step:4.1f} s changes the flows by {row.change:6.2%} (seed to seed {row.noise:.1%})")
print(f"smallest step above the noise: {60 * advised_radius(rows):.0f} s")

solver = pzos.SecantPZOS(step=3e-5, radius=0.5)
found = optimise_tolls(problem, highest=4.0, solver=solver, queries=QUERIES, marginal=0)

judged = judge(problem, found.choices(), UNSEEN)
print(f"\n{found.queries} queries; vehicle minutes on {len(UNSEEN)} unseen seeds, tolls in minutes\n{judged}")
print("tolls in minutes:", np.round(found.x, 2))
sys.exit(0 if judged.lowest() == "optimised" else 1)
