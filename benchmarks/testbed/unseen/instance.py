"""One problem of the protocol: what is known of it, the followers behind one door, and a registry of families.

Everything is written down to be minimised. The door counts the queries, adds what disturbs the answers (noise, drift,
outliers), and keeps the *true* F at every asked point, whatever the method saw.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import pzos

Vector = npt.NDArray[np.float64]
Value = Callable[[Vector, Vector], float]
Gradients = Callable[[Vector, Vector], tuple[Vector, Vector]]
Disturb = Callable[[Vector, Vector, np.random.Generator, list[Vector]], Vector]

#: The classes of followers, in the order of the table.
KINDS = (
    "smooth", "scales", "domains", "kinked", "jumps", "simulated", "noise", "several", "holes", "high", "far", "games",
)  # fmt: skip
#: For building; kept apart until a method was frozen; written after that, and looked at once; an examiner's, shown and
#: kept apart.
HALVES = ("tune", "held", "fresh", "shown", "apart")
INSTANCES = 5
#: Points that differ by no more than this share of each entry are the same up to rounding, and asked twice.
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Cost:
    """The leader's known f with its exact partial gradients; ``residuals`` where f = |r(x, y)|^2."""

    value: Value
    gradients: Gradients
    residuals: Callable[[Vector, Vector], Vector] | None = None

    def leader(self, name: str) -> pzos.Leader:
        """Return it as the library's leader."""
        return pzos.leader_from_functions(
            self.value, value_and_gradients=lambda x, y: (self.value(x, y), *self.gradients(x, y)), name=name
        )


@dataclass(frozen=True, eq=False)
class Draft:
    """What a family draws: cost, true response (of one x, or with ``rows`` of a stack), start, domain, disturbance.

    ``disturb`` takes (true y, x, generator of this query, true answers before) and gives what is answered.
    ``search`` says how the reference is found: "smooth", "kinked" or "jumps"; ``unit`` is the true scale of x, known
    to the reference only.
    """

    cost: Cost
    respond: Callable[[Vector], Vector]
    x0: Vector
    domain: Any = None
    disturb: Disturb | None = None
    search: str = "smooth"
    unit: Vector | float = 1.0
    rows: bool = True


def bounds_of(domain: Any, n: int) -> tuple[Vector, Vector] | None:
    """Return the bounds of a set of n decisions, or None where it has none."""
    if isinstance(domain, pzos.Box):
        return np.broadcast_to(domain.lower, n).copy(), np.broadcast_to(domain.upper, n).copy()
    if isinstance(domain, pzos.Nonnegative):
        return np.zeros(n), np.full(n, np.inf)
    if isinstance(domain, (pzos.Simplex, pzos.Budget)):
        return np.zeros(n), np.full(n, float(domain.total))
    if isinstance(domain, pzos.Ball):
        return domain.center - np.full(n, domain.radius), domain.center + np.full(n, domain.radius)
    return None


@dataclass(frozen=True, eq=False)
class Instance:
    """One drawn problem of a family."""

    family: str
    kind: str
    half: str
    seed: int
    draft: Draft

    @property
    def exact(self) -> bool:
        """Whether the answers are the true ones."""
        return self.draft.disturb is None

    @property
    def domain(self) -> Any:
        """Return the set of the leader's decisions."""
        return pzos.Whole() if self.draft.domain is None else self.draft.domain

    @property
    def bounds(self) -> tuple[Vector, Vector] | None:
        """Return the bounds of x that every method is told, or None."""
        return bounds_of(self.domain, self.draft.x0.size)

    @property
    def boxed(self) -> bool:
        """Whether the bounds are the whole domain; other sets are reached by projection."""
        return isinstance(self.domain, (pzos.Whole, pzos.Box, pzos.Nonnegative))

    def true_value(self, x: Vector) -> float:
        """Return F(x) without what disturbs the answers."""
        return self.draft.cost.value(x, self.draft.respond(x))

    def problem(self, door: Door) -> pzos.Problem:
        """Return the problem as a user of the library would state it, with this door as its followers."""
        return pzos.Problem(
            self.draft.cost.leader(self.family), door.asked, self.draft.x0, self.domain, name=self.family
        )


class Spent(Exception):
    """The query budget is spent; raised through a peer to end it."""


class Door:
    """The followers as any method meets them; stateful, so every run opens a new one."""

    def __init__(self, instance: Instance, budget: int) -> None:
        self.instance = instance
        self.budget = budget
        self.values: list[float] = []
        self.repeats = 0
        self.outside = 0
        self.seconds = 0.0
        self._seen: list[Vector] = []
        self._before: list[Vector] = []
        self._seed = [zlib.crc32(instance.family.encode()), instance.seed]

    def note(self, point: Vector) -> None:
        """Keep a point that is asked, and count it if it was before, up to rounding."""
        rounding = ROUNDING * np.abs(point)
        self.repeats += any((np.abs(point - seen) <= rounding).all() for seen in self._seen)
        self._seen.append(point)

    def asked(self, x: Vector) -> Vector:
        """Answer at x itself."""
        if len(self.values) >= self.budget:
            raise Spent
        start = time.process_time()
        draft = self.instance.draft
        point = np.array(x, dtype=np.float64).ravel()
        self.note(point)
        self.outside += not self.instance.domain.contains(point, 1e-9)
        true = np.asarray(draft.respond(point), dtype=np.float64)
        given = true
        if draft.disturb is not None:
            generator = np.random.default_rng([*self._seed, len(self.values)])
            given = draft.disturb(true, point, generator, self._before)
        self._before.append(true)
        self.values.append(float(draft.cost.value(point, true)))
        self.seconds += time.process_time() - start
        return given.copy()

    def at(self, x: Vector) -> tuple[Vector, Vector]:
        """Move x into the domain and return it with its answer (for peers that know only boxes)."""
        point = np.array(self.instance.domain.project(np.array(x, dtype=np.float64).ravel()))
        return point, self.asked(point)

    def cost(self, x: Vector) -> float:
        """Return F at x as it is seen, x moved into the domain."""
        point, y = self.at(x)
        return float(self.instance.draft.cost.value(point, y))


@dataclass(frozen=True)
class Family:
    """A way to draw problems of one kind, in one half of the protocol."""

    name: str
    kind: str
    half: str
    draw: Callable[[np.random.Generator], Draft]

    def instance(self, seed: int) -> Instance:
        """Return the instance of this number: always the same one."""
        generator = np.random.default_rng([zlib.crc32(self.name.encode()), seed])
        return Instance(self.name, self.kind, self.half, seed, self.draw(generator))


FAMILIES: dict[str, Family] = {}


def family(
    name: str, kind: str, half: str
) -> Callable[[Callable[[np.random.Generator], Draft]], Callable[[np.random.Generator], Draft]]:
    """Enter a drawing function into the registry."""

    def enter(draw: Callable[[np.random.Generator], Draft]) -> Callable[[np.random.Generator], Draft]:
        if name in FAMILIES or kind not in KINDS or half not in HALVES:
            raise ValueError(f"family {name!r}: expected a new name, a known kind and half, not {kind!r} and {half!r}")
        FAMILIES[name] = Family(name, kind, half, draw)
        return draw

    return enter
