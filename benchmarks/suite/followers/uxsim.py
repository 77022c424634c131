"""Tolls on the eight busiest roads of a generated city whose vehicles are simulated by UXsim (``pzos[traffic]``).

Vehicles move in platoons of five: answers are whole numbers, jump as platoons change their way, and depend on a seed.
A query is the mean of three runs. The leader wants the time of everybody, waiting included, to go down.
"""

from __future__ import annotations

import numpy as np

import pzos
from pzos.networks import generated_city
from pzos.networks.simulators.traffic import simulated_toll_problem, simulated_travellers
from pzos.networks.simulators.uxsim import UxsimSimulator
from suite.family import Family


def tolls(seed: int) -> pzos.Problem:
    """Return tolls of up to four minutes; every draw has three seeds of its own."""
    simulator = UxsimSimulator(generated_city(4, 4, zones=6, congestion=1.2, seed=seed))
    links = np.argsort(-simulator.run(np.zeros(simulator.network.links), seed=0).spent)[:8]
    problem = simulated_toll_problem(simulator, links, "travel_time", upper=4.0, seeds=range(3))
    follower = pzos.seeded(simulated_travellers(problem).fresh, common=True)
    return pzos.Problem(problem.leader, follower, problem.x0, problem.domain, name=problem.name)


FAMILIES = [
    Family("uxsim-tolls", "uxsim", "traffic", tolls, "noise", "tolls on eight roads of a city in UXsim", judged_by=8,
           baselines={f"uniform-{60 * t:g}-s": lambda seed, t=t: np.full(8, t) for t in (0.5, 1.0, 2.0)}),
]  # fmt: skip
