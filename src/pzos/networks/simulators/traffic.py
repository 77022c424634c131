"""What every simulator has in common: runs at tolls and a seed, averages over seeds, and the leader's problem on them.

A simulated response is y = (vehicles that entered each link, time spent on each link, time waited at the start), so
that revenue and total travel time are known, linear functions of tolls and response.

Responses of simulators are noisy and piecewise constant: a vehicle changes its route or does not. Differences are
meaningful only over tolls of seconds, not hundredths (``advised_radius``). Noise is handled by common random numbers
(the same seeds at every toll, so that luck cancels in comparisons) and averaging over them; a result is judged on
seeds the optimiser never saw (``held_out``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from pzos.base.checks import Faults, checked, instance_of, note_fields, positive
from pzos.base.types import LeaderValue, Matrix, Vector
from pzos.networks.demand import Indices
from pzos.networks.network import Network
from pzos.networks.objectives import mixed_leader
from pzos.networks.tariffs import chosen_links, link_names
from pzos.problem.problem import Problem
from pzos.problem.sets import Box

LANE_PER_HOUR = 2000.0
"""Vehicles that a lane takes in an hour."""

POSITIVE = positive("see the docstring")

WEIGHTS = ("revenue", "travel_time", "toll_squares")
"""What the leader of a simulated city may weigh; travel time counts waiting and trips that did not end."""


class Traffic(NamedTuple):
    """One run: vehicles that entered each link, time spent on each link (units of time), time waited at the start."""

    entered: Vector
    spent: Vector
    waited: float

    @property
    def total_time(self) -> float:
        """Return the time of all vehicles from their wish to depart until they arrive, or the run ends."""
        return float(self.spent.sum()) + self.waited


class Roads(NamedTuple):
    """The links as simulators want them: seconds at free flow (1 or more), metres, lanes."""

    seconds: Vector
    metres: Vector
    lanes: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Simulator(ABC):
    """A traffic simulator of a network: a pure function of tolls (in units of time, one per link) and a seed.

    Trips depart over ``loading`` seconds; the run ends after ``horizon`` seconds. Demand and capacities are per hour,
    times in units of ``second`` seconds (60: minutes), lengths in units of ``metre`` metres. Drivers learn travel
    times every ``update`` seconds.
    """

    network: Network
    loading: float = checked(POSITIVE, default=1800.0)
    horizon: float = checked(POSITIVE, default=5400.0)
    _: KW_ONLY
    update: float = checked(POSITIVE, default=120.0)
    second: float = checked(POSITIVE, default=60.0)
    metre: float = checked(POSITIVE, default=1000.0)

    def __post_init__(self) -> None:
        faults = Faults(type(self).__name__)
        note_fields(faults, self)
        faults.check(self.horizon >= self.loading, "horizon", self.horizon, f"at least {self.loading:g}", "run longer")
        faults.check(len(self.network.classes) == 1, "network.classes", len(self.network.classes), "one class",
                     "one value of time is simulated")  # fmt: skip
        faults.check(self.network.first_thru == 0, "network.first_thru", self.network.first_thru, "0",
                     "traffic may pass through every node here")  # fmt: skip
        faults.raise_if_any()

    @property
    def tolled(self) -> Indices | None:
        """Return the numbers of the links that may be tolled; None: all of them."""
        return None

    def roads(self) -> Roads:
        """Return what the links are like; links without a length are driven at 10 metres a second."""
        seconds = np.maximum(self.network.latency.base * self.second, 1.0)
        metres = np.where(self.network.length > 0, self.network.length * self.metre, 10.0 * seconds)
        lanes = np.maximum(np.ceil(self.network.latency.capacity / LANE_PER_HOUR), 1.0).astype(np.int64)
        return Roads(seconds, metres, lanes)

    @abstractmethod
    def run(self, tolls: npt.ArrayLike, seed: int) -> Traffic:
        """Simulate once."""


@dataclass(frozen=True, eq=False)
class SimulatedTravellers:
    """Tolls on ``links`` in, the mean response over ``seeds`` out: the same seeds at every toll."""

    simulator: Simulator
    links: Indices
    seeds: tuple[int, ...]

    def __call__(self, x: Vector) -> Vector:
        """Answer one query by one run per seed."""
        return self._mean(x, self.seeds)

    def once(self, x: Vector, seed: int) -> Vector:
        """Return the response of a single run."""
        traffic = self.simulator.run(self.simulator.network.tolls_on(self.links, x), seed)
        return np.concatenate([traffic.entered, traffic.spent, [traffic.waited]])

    def payers(self, y: Vector) -> Vector:
        """Return how many vehicles pay each toll, out of a response."""
        return np.asarray(y[self.links])

    def fresh(self, x: Vector, generator: Generator) -> Vector:
        """Answer with seeds from ``generator``: for ``pzos.seeded(travellers.fresh, common=True)``."""
        return self._mean(x, generator.integers(0, 2**31 - 1, len(self.seeds)).tolist())

    def _mean(self, x: Vector, seeds: Sequence[int]) -> Vector:
        mean: Vector = np.mean([self.once(x, seed) for seed in seeds], axis=0)
        return mean


def simulated_toll_problem(
    simulator: Simulator,
    links: Iterable[Any] | None = None,
    objective: str | Mapping[str, float] = "travel_time",
    *,
    upper: npt.ArrayLike,
    x0: npt.ArrayLike = 0.0,
    seeds: Sequence[int] = (0, 1, 2, 3),
) -> Problem:
    """Return the problem of choosing tolls between 0 and ``upper`` (units of time) on ``links`` of a simulated city.

    ``objective``: "revenue" (maximised), "travel_time" or "toll_squares" (minimised), or a mix of them such as
    ``{"revenue": 1.0, "travel_time": -0.5}`` (maximised).
    """
    faults = Faults("simulated_toll_problem")
    instance_of(Simulator, "a Simulator", "e.g. UxsimSimulator(city)").require(faults.where, "simulator", simulator)
    chosen = chosen_links(simulator.network, simulator.tolled if links is None else links)
    weights = {objective: 1.0} if isinstance(objective, str) else {str(k): float(v) for k, v in objective.items()}
    faults.check(bool(weights) and set(weights) <= set(WEIGHTS), "objective", objective, f"names out of {WEIGHTS}",
                 "the simulator tells vehicles and times only")  # fmt: skip
    faults.check(len(seeds) > 0, "seeds", seeds, "at least one", "four average most of the noise out")
    faults.raise_if_any()
    size, high = chosen.size, np.broadcast_to(np.asarray(upper, dtype=np.float64), chosen.shape)
    minimised = isinstance(objective, str) and objective != "revenue"
    names = link_names(simulator.network)
    return Problem(
        mixed_leader(_SimulatedSetting(simulator.network.links, chosen), weights),
        SimulatedTravellers(simulator, chosen, tuple(int(seed) for seed in seeds)),
        np.broadcast_to(np.asarray(x0, dtype=np.float64), (size,)).copy(),
        Box(np.zeros(size), high),
        "min" if minimised else "max",
        f"tolls on {size} links of {simulator.network.name}, {type(simulator).__name__}",
        decisions=[names[link] for link in chosen],
    )


@dataclass(frozen=True, eq=False)
class _SimulatedSetting:
    """What may be wanted of tolls x and a simulated response y: entered vehicles, times spent, time waited."""

    count: int
    links: Indices

    def revenue(self, x: Vector, y: Vector) -> LeaderValue:
        grad = np.zeros(y.size)
        grad[self.links] = x
        return LeaderValue(float(x @ y[self.links]), y[self.links], grad)

    def travel_time(self, x: Vector, y: Vector) -> LeaderValue:
        timed = np.arange(y.size) >= self.count
        return LeaderValue(float(y[self.count :].sum()), np.zeros(x.size), timed.astype(np.float64))

    def toll_squares(self, x: Vector, y: Vector) -> LeaderValue:
        return LeaderValue(float(x @ x), 2.0 * x, np.zeros(y.size))


def held_out(problem: Problem, x: npt.ArrayLike, seeds: Sequence[int]) -> Vector:
    """Return F at ``x`` for each of these seeds alone; choose seeds that the optimiser has not used."""
    travellers = simulated_travellers(problem)
    point = np.asarray(x, dtype=np.float64)
    return np.array([problem.leader.value(point, travellers.once(point, int(seed))) for seed in seeds])


class Judgement(NamedTuple):
    """F of several tolls by name, on each of the seeds they were judged on."""

    values: Mapping[str, Vector]

    def __str__(self) -> str:
        rows = (
            f"{name:<18}{found.mean():>12,.0f}  ({found.std(ddof=1) / found.size**0.5:,.0f})"
            for name, found in self.values.items()
        )
        return "\n".join([f"{'':<18}{'mean':>12}  (standard error)", *rows])

    def lowest(self) -> str:
        """Return the name of the tolls with the lowest mean."""
        return min(self.values, key=lambda name: float(self.values[name].mean()))


def judge(problem: Problem, choices: Mapping[str, npt.ArrayLike], seeds: Sequence[int]) -> Judgement:
    """Judge several tolls on the same seeds, which the optimiser must not have used (at least two)."""
    return Judgement({name: held_out(problem, x, seeds) for name, x in choices.items()})


def simulated_travellers(problem: Problem) -> SimulatedTravellers:
    """Return the simulated followers of a problem."""
    inner = getattr(problem.follower, "function", None)
    if isinstance(inner, SimulatedTravellers):
        return inner
    faults = Faults("simulated_travellers")
    faults.check(False, "problem", problem.name, "a problem of simulated_toll_problem", "make it with that")
    raise faults.error()


class Sensitivity(NamedTuple):
    """How much the entered vehicles change, relative to their number, for a step of this size, and for the seed."""

    step: float
    change: float
    noise: float


def sensitivity(problem: Problem, steps: Sequence[float], directions: Matrix) -> list[Sensitivity]:
    """Measure the response to steps of several sizes along ``directions`` (rows) from x0: what a radius can see.

    ``change`` is the mean over directions with common seeds; ``noise`` the spread between single seeds at x0.
    """
    travellers = simulated_travellers(problem)
    count = travellers.simulator.network.links
    single = np.array([travellers.once(problem.x0, seed)[:count] for seed in travellers.seeds])
    here = single.mean(axis=0)
    size = float(np.linalg.norm(here))
    noise = float(np.linalg.norm(single.std(axis=0))) / size
    rows = []
    for step in steps:
        moved = [problem.domain.project(problem.x0 + step * direction) for direction in directions]
        change = np.mean([np.linalg.norm(travellers(x)[:count] - here) for x in moved]) / size
        rows.append(Sensitivity(float(step), float(change), noise))
    return rows


def advised_radius(rows: Sequence[Sensitivity]) -> float:
    """Return the smallest step whose effect exceeds the noise of a mean over the seeds, else the largest tried."""
    seen = (row.step for row in rows if row.change > row.noise)
    return min(seen, default=max(row.step for row in rows))
