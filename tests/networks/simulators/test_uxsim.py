"""UXsim, where its extra is installed."""

from __future__ import annotations

import numpy as np

import pzos
from pzos.networks import (
    generated_city,
    optimise_tolls,
)
from pzos.networks.simulators import uxsim
from pzos.networks.simulators.traffic import (
    held_out,
    simulated_toll_problem,
)
from roads import check_simulator, needs, two_roads


@needs("uxsim", "traffic")
def test_uxsim_keeps_the_laws() -> None:
    check_simulator(uxsim.UxsimSimulator(two_roads(), loading=1800.0, horizon=5400.0), 1200.0, toll=4.0)


@needs("uxsim", "traffic")
def test_tolls_improve_a_simulated_city_on_seeds_not_seen() -> None:
    city = generated_city(4, 4, zones=6, congestion=1.2, seed=2)
    simulator = uxsim.UxsimSimulator(city)
    links = np.argsort(-simulator.run(np.zeros(city.links), 0).spent)[:8]
    problem = simulated_toll_problem(simulator, links, "travel_time", upper=4.0, seeds=range(2))
    solver = pzos.SecantPZOS(step=3e-5, radius=0.5)
    found = optimise_tolls(problem, 4.0, solver, queries=28, marginal=0, progress=False)
    fresh = range(1000, 1008)
    none, uniform, ours = (
        held_out(problem, x, fresh).mean() for x in (np.zeros(8), np.full(8, found.uniform.toll), found.x)
    )
    assert found.queries <= 28
    assert ours < uniform < none
