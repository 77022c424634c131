"""The solver: any latency to any gap, how it gives up, and the same answers with and without compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.networks import (
    Demand,
    Latency,
    NegativeCycle,
    Network,
    generated_city,
    independent_gap,
)
from pzos.networks.equilibrium import solver
from pzos.networks.equilibrium.rounds import nothing_known
from roads import braess


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.5038, 5.1644, 16.8])
def test_cities_with_odd_latencies_reach_any_gap(power: float) -> None:
    from pzos.networks import independent_gap

    # As in public files: capacity 1 with a tiny b, links of constant cost, free-flow times of zero.
    city = generated_city(8, 8, zones=20, congestion=0.6 if power > 5 else 1.5, seed=1)
    b = np.where(np.arange(city.links) % 7 == 0, 0.0, 0.15 / city.latency.capacity**power)
    base = np.where(np.arange(city.links) % 11 == 0, 0.0, city.latency.base)
    odd = replace(city, latency=Latency.bpr(base, b, 1.0, power))
    answer = odd.assign(gap=1e-12)
    assert answer.gap <= 1e-12
    assert abs(independent_gap(odd, answer.class_flow)) <= 2e-12


@pytest.mark.parametrize(("power", "seed"), [(4.0, 3), (8.0, 1)])
def test_classes_that_swap_roads_on_steep_latencies_reach_the_gap(power: float, seed: int) -> None:
    city = generated_city(8, 9, zones=20, congestion=2.5, seed=seed)
    latency = Latency.bpr(city.latency.base, 0.15 if seed < 3 else 1.0, city.latency.capacity, power)
    classes: Network = replace(city, latency=latency).with_classes([0.5, 1.0, 2.0, 4.0])
    tolls = np.random.default_rng(seed).uniform(-0.05, 1.0, city.links) * city.latency.base.mean()
    answer = classes.assign(tolls, gap=1e-12)
    assert abs(independent_gap(classes, answer.class_flow, tolls)) <= 2e-12


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("times", [4.0, 16.0])
def test_powers_of_twelve_at_many_times_the_capacity_are_solved(times: float, seed: int) -> None:
    city = generated_city(8, 8, zones=20, congestion=times, seed=seed)
    steep = replace(city, latency=Latency.bpr(city.latency.base, 0.15, city.latency.capacity, 12.0))
    answer = steep.assign(gap=1e-9)
    assert (answer.flow / city.latency.capacity).max() > times
    assert abs(independent_gap(steep, answer.class_flow)) <= 2e-9


def test_an_overflow_is_named_before_anything_is_computed() -> None:
    network = replace(braess(), latency=Latency.bpr([1.0] * 5, 0.15, [1.0, 1.0, 1e-30, 1.0, 1.0], 12.0))
    with pytest.raises(InvalidInput, match=r"travel time of link 2 .*an overflow \(capacity 1e-30, power 12\)"):
        network.assign()


def test_networks_with_many_used_paths_per_pair_reach_a_tight_gap(public) -> None:
    network = public("Terrassa-Asymmetric")
    answer = network.assign(gap=1e-10)
    assert abs(independent_gap(network, answer.class_flow)) <= 2e-10


def test_steady_convergence_is_not_given_up() -> None:
    """Two classes that swap two steep roads: sweeps creep until Newton steps begin, and every round counts."""
    latency = Latency(np.full(6, 0.25), np.array([1.0, 3, 1, 4, 1, 1]) / 32, np.ones(6), np.array([1.0, 4, 1, 4, 1, 1]))
    demand = Demand.from_list([1], [2], [6.0])
    network = Network.from_arrays([0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2], latency, demand).with_classes([3.0, 2.0])
    tolls = 0.1 * np.arange(6)
    ready, effort = network.prepared, solver.Effort(newton_below=1e-3)
    fixed = np.ascontiguousarray((tolls / network.worth)[:, ready.order])  # as elsewhere: compiled once
    start = nothing_known(ready.graph, ready.trips)
    answer = solver.equilibrate(ready.graph, ready.trips, fixed, ready.law, 1e-11, effort, *start)
    assert (answer.status, answer.rounds > 25) == (solver.CONVERGED, True)


def test_a_run_says_how_it_ended() -> None:
    network = braess()
    ready, fixed = network.prepared, np.zeros((1, 5))

    def run(gap: float, tolls: float = 0.0, **effort: int) -> solver.Equilibration:
        start, tried = nothing_known(ready.graph, ready.trips), solver.Effort(**effort)
        return solver.equilibrate(ready.graph, ready.trips, fixed + tolls, ready.law, gap, tried, *start)

    assert run(1e-12).status == solver.CONVERGED
    tired = run(1e-300, rounds=5, patience=0)
    assert tired.status in (solver.TIRED, solver.CONVERGED)
    cut = run(1e-12, rounds=1)
    assert (cut.status, cut.rounds) == (solver.TIRED, 2)
    assert cut.gap > 1e-12
    assert cut.paths.flow[: cut.paths.first[1]].sum() == pytest.approx(6.0)


PROGRAM = """
import json, sys
import numpy as np
from dataclasses import replace
from pzos.networks import assignment, generated_city
from roads import braess
import pzos.games._compile as words

def answers():
    city = generated_city(3, 3, zones=4, congestion=2.0, seed=1)
    own = city.latency.with_own(lambda link, v: 1 + 1e-6 * v * v, lambda link, v: 2e-6 * v, [0, 3])
    for network in (braess(), city, replace(city, first_thru=2), replace(city, latency=own)):
        yield network.assign(gap=1e-12)
        yield network.with_classes([0.5, 1.0, 2.0], [0.3, 0.4, 0.3]).assign(
            np.linspace(-0.1, 0.5, network.links) * network.latency.base.mean(), gap=1e-12)
    assignment.MOST_PAIRS_FOR_PATHS = 0  # by bushes
    yield city.assign(gap=1e-9)

found = [[a.flow.tolist(), a.class_flow.tolist(), a.objective, a.skim().tolist()] for a in answers()]
sys.stdout.write(json.dumps([words.COMPILES, found]))
"""


def test_kernels_say_the_same_with_jit_off() -> None:
    """The same program twice: compiled, and as plain Python, where a debugger and coverage can look on."""
    tests = Path(__file__).resolve().parents[2]
    places = os.pathsep.join([str(Path(pzos.__file__).resolve().parents[1]), str(tests)])
    results = []
    for off in ("0", "1"):
        environment = {**os.environ, "PYTHONPATH": places, "NUMBA_DISABLE_JIT": off}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    (compiles, compiled), (plain, interpreted) = results
    assert (compiles, plain) == (True, False)
    for ours, theirs in zip(compiled, interpreted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["three classes", "own", "closed", "cycle"])
def test_small_cases_in_this_process(name: str) -> None:
    """The same kernels once more here, so that coverage with JIT off sees them without a second process."""
    city = generated_city(3, 3, zones=4, congestion=2.0, seed=1)
    tolls = np.linspace(-0.1, 0.5, city.links) * city.latency.base.mean()
    if name == "three classes":
        city = city.with_classes([0.5, 1.0, 2.0], [0.3, 0.4, 0.3])
    elif name == "own":
        own = city.latency.with_own(lambda link, v: 1 + 1e-6 * v * v, lambda link, v: 2e-6 * v, [0, 3])
        city = replace(city, latency=own)
    elif name == "closed":
        city = replace(city, first_thru=2, latency=replace(city.latency, power=city.latency.power + 0.5))
    else:
        with pytest.raises(NegativeCycle):
            city.assign(tolls - 50.0)
    answer = city.assign(tolls, gap=1e-12)
    assert abs(independent_gap(city, answer.class_flow, tolls)) <= 2e-12
