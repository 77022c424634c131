"""Tolls per road and five minutes in UNsim, a simulator of flows in JAX (``pzos[suite-unsim]``), after its example 12.

The leader minimises everybody's vehicle seconds plus ``PENALTY`` times the sum of squared tolls (in seconds); tolls
have no upper bound, and x0 = 0 says nothing of their scale. ``city`` is a generated city: some 1000 decisions, 10 ms a
query. ``chicago`` is example 12 itself, rebuilt from the public TNTP files of Chicago-Sketch by the rules that the
example states: 15,320 decisions, 102,320 answers, tens of seconds a query without a GPU, and so no family of the suite;
``benchmarks/chicago.py`` runs it. Its files are read from PZOS_TNTP, or ../shared/data/tntp beside the repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pzos
from pzos.base.types import Vector
from pzos.networks.city import generated_city
from pzos.networks.network import Network
from pzos.networks.tntp import read_tntp
from suite.family import Family

PENALTY = 0.001
_HERE = Path(__file__).resolve()
_MILE = 1609.34
_TEMPERATURE = 10.0  # seconds: how sharply drivers prefer the shorter way
_PEAK = 1.5
_MOTORWAY = 2
_CONNECTOR = {"length": 1000.0, "free_flow_speed": 20.0, "capacity": 15.0, "jam_density": 0.2}


def chicago_files() -> tuple[Path, Path]:
    """Return the net and trips files of Chicago-Sketch, which may not be there."""
    folder = Path(os.environ.get("PZOS_TNTP", _HERE.parents[4] / "shared" / "data" / "tntp")) / "Chicago-Sketch"
    return folder / "ChicagoSketch_net.tntp", folder / "ChicagoSketch_trips.tntp"


@dataclass(frozen=True, eq=False)
class UnsimTravellers:
    """Tolls x (per tolled link and period, in seconds) in; vehicle seconds per link and period, then waiting, out.

    A query is one run of UNsim, compiled at the first; it has no randomness.
    """

    params: Any
    config: Any
    links: Any

    @cached_property
    def answer(self) -> Any:
        """Return the run as a compiled function of JAX, which can be differentiated."""
        return _compiled(self)

    def __call__(self, x: Vector) -> Vector:
        """Answer one query."""
        return np.asarray(self.answer(x), dtype=np.float64)


def _compiled(travellers: UnsimTravellers) -> Any:
    import jax
    import jax.numpy as jnp
    from unsim.unsim_diff import simulate_duo

    params, config = travellers.params, travellers.config
    periods, links = config.n_toll_steps, jnp.asarray(travellers.links)
    cut = periods * config.toll_step_size - config.tsize  # the last period may be shorter

    def per_period(rows: Any) -> Any:
        padded = jnp.pad(rows, ((0, 0), (0, cut)))
        return padded.reshape(rows.shape[0], periods, config.toll_step_size).sum(axis=2) * config.deltat

    def answer(x: Any) -> Any:
        tolls = params.toll.at[links].set(x.reshape(links.size, periods))
        state = simulate_duo(params._replace(toll=tolls), config)
        inside = state.cum_arrival[:, : config.tsize] - state.cum_departure[:, : config.tsize]
        waiting = per_period(state.demand_queue_history.sum(axis=0, keepdims=True))
        return jnp.concatenate([per_period(inside).ravel(), waiting.ravel()])

    return jax.jit(answer)


class Road(NamedTuple):
    """A link of UNsim: ends by name, metres, metres a second, lanes."""

    start: str
    end: str
    metres: float
    speed: float
    lanes: int


class Trip(NamedTuple):
    """Vehicles per hour between two nodes, by name."""

    origin: str
    end: str
    flow: float


def toll_problem(
    name: str, roads: Sequence[Road], trips: Sequence[Trip], thirds: float, horizon: float
) -> pzos.Problem:
    """Return the tolls on the links that are congested without tolls, in every period of five minutes.

    Trips depart over three times ``thirds`` seconds, with ``_PEAK`` times the flow in the second of the three.
    """
    from unsim.unsim_diff import simulate_duo, world_to_jax

    params, config = world_to_jax(_world(name, roads, trips, thirds, horizon))
    state = simulate_duo(params, config)
    inside = np.asarray(state.cum_arrival - state.cum_departure)[:, : config.tsize]
    free = np.asarray(params.q_star) * np.asarray(config.link_lengths) / np.asarray(params.u)
    links = np.flatnonzero(inside.max(axis=1) > 1.1 * free)
    leader = pzos.leader_from_functions(
        lambda x, y: float(y.sum() + PENALTY * (x @ x)), lambda x, y: 2.0 * PENALTY * x, lambda x, y: np.ones(y.size)
    )
    size = links.size * config.n_toll_steps
    return pzos.Problem(leader, UnsimTravellers(params, config, links), np.zeros(size), pzos.Nonnegative(), "min",
                   f"tolls on {links.size} links in {config.n_toll_steps} periods of {name}, UNsim")  # fmt: skip


def _world(name: str, roads: Sequence[Road], trips: Sequence[Trip], thirds: float, horizon: float) -> Any:
    """Return UNsim's world; every origin sends its vehicles over a connector of its own."""
    from unsim import World

    world = World(name=name, tmax=horizon, route_choice="duo_logit", logit_temperature=_TEMPERATURE, print_mode=0,
                  save_mode=0)  # fmt: skip
    origins = sorted({trip.origin for trip in trips}, key=int)
    for node in sorted({end for road in roads for end in road[:2]}, key=int):
        world.addNode(node)
    for origin in origins:
        world.addNode(f"orig_{origin}")
    for number, road in enumerate(roads):
        # As in the example: triangular diagram with a reaction time of a second and 5 metres a vehicle.
        world.addLink(f"link_{number}", road.start, road.end, length=round(road.metres, 1),
                      free_flow_speed=round(road.speed, 2), jam_density=round(0.2 * road.lanes, 2),
                      capacity=round(road.lanes * road.speed / (road.speed + 5.0), 4))  # fmt: skip
    for origin in origins:
        world.addLink(f"conn_{origin}", f"orig_{origin}", origin, **_CONNECTOR)
    for trip in trips:
        for third, factor in enumerate((1.0, _PEAK, 1.0)):
            begin = third * thirds
            world.adddemand(f"orig_{trip.origin}", trip.end, begin, begin + thirds, flow=factor * trip.flow / 3600.0)
    world.finalize_scenario()
    return world


def chicago() -> pzos.Problem:
    """Return example 12: the roads between junctions, and trips of over 5 vehicles to the 200 busiest zones."""
    network = read_tntp(*chicago_files())
    zones, demand = network.zones, network.demand
    gate = {int(a): str(b + 1) for a, b in zip(network.tail, network.head, strict=True) if a < zones}
    between = demand.origin != demand.destination
    attracted = np.bincount(demand.destination[between], demand.trips[between], minlength=zones)
    busy = np.isin(demand.destination, np.argsort(-attracted, kind="stable")[:200])
    kept = between & busy & (demand.trips > 5.0)
    rows = zip(demand.origin[kept], demand.destination[kept], demand.trips[kept], strict=True)
    trips = [Trip(gate[int(origin)], gate[int(end)], float(flow)) for origin, end, flow in rows]
    real = np.flatnonzero(np.minimum(network.tail, network.head) >= zones)
    return toll_problem("Chicago", [_chicago_road(network, int(number)) for number in real], trips, 1200.0, 12000.0)


def _chicago_road(network: Network, number: int) -> Road:
    metres = max(float(network.length[number]) * _MILE, 1000.0)
    minutes = float(network.latency.base[number])
    speed = min(max(metres / (60.0 * minutes), 10.0), 30.0) if minutes > 0 else 30.0
    lanes = max(int(network.latency.capacity[number] / 1800.0), 3 if network.link_type[number] == _MOTORWAY else 1)
    return Road(str(network.tail[number] + 1), str(network.head[number] + 1), metres, speed, lanes)


@cache
def city(seed: int, side: int = 6, zones: int = 12, congestion: float = 1.5) -> pzos.Problem:
    """Return a generated city of ``side`` by ``side`` crossings, an hour of demand and two to get home."""
    network = generated_city(side, side, zones=zones, congestion=congestion, seed=seed)
    metres = np.maximum(1000.0 * network.length, 600.0)
    speed = 1000.0 * network.length / (60.0 * network.latency.base)
    lanes = np.maximum(np.round(network.latency.capacity / 1800.0), 1.0).astype(int)
    ends = zip(network.tail + 1, network.head + 1, metres, speed, lanes, strict=True)
    roads = [Road(str(a), str(b), float(m), float(u), int(n)) for a, b, m, u, n in ends]
    demand = zip(network.demand.origin + 1, network.demand.destination + 1, network.demand.trips, strict=True)
    trips = [Trip(str(a), str(b), float(flow)) for a, b, flow in demand if flow > 0]
    return toll_problem(network.name, roads, trips, 600.0, 5400.0)


def _everywhere(toll: float) -> Callable[[int], Vector]:
    return lambda seed: np.full(city(seed).x0.size, toll)


FAMILIES = [
    Family("unsim-tolls", "unsim", "suite-unsim", city, "kinked", "tolls per road and five minutes of a city in UNsim",
           baselines={f"uniform-{toll:g}-s": _everywhere(toll) for toll in (10.0, 30.0, 100.0)}, kept=False),
]  # fmt: skip
