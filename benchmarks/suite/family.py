"""What a family of the suite is, how the folder is listed, and one instance behind the door that every method meets."""

from __future__ import annotations

import importlib
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import pzos
from pzos.problem.follower import Answer, Follower
from testbed.unseen import instance as unseen
from testbed.unseen.instance import Cost, Draft, Spent, Vector

FOLDER = Path(__file__).parent / "followers"
#: What makes the response hard.
KINDS = ("smooth", "kinked", "jumps", "noise")
Residuals = Callable[[Vector, Vector], Vector]


@dataclass(frozen=True, eq=False)
class Family:
    """A real simulator with a leader, as many instances as there are seeds.

    ``package`` is the module that must be importable ("" where none is needed), ``extra`` the extra that has it.
    ``best(seed)`` is the best F known of an instance, from the literature or an exact solution, in the problem's own
    sense; without it the best that any run ever found stands for it. ``residuals(seed)`` gives (x, y) -> r with
    f = |r|^2, where the cost is a sum of squares. ``baselines`` are what one would do without a method: by name
    a function seed -> x, scored on the simulator (x0 itself, "doing nothing", is always shown). ``queries`` and
    ``instances`` may be less than 200 and 5 where a simulation is slow. ``judged_by`` is the number of draws whose mean
    answer judges a point of a noisy follower. ``kept`` is False where an answer is cheaper than reading a file.
    """

    name: str
    package: str
    extra: str
    make: Callable[[int], pzos.Problem]
    kind: str
    about: str
    best: Callable[[int], float] | None = None
    residuals: Callable[[int], Residuals] | None = None
    baselines: Mapping[str, Callable[[int], Vector]] = field(default_factory=lambda: MappingProxyType({}))
    instances: int = 5
    queries: int = 200
    judged_by: int = 0
    kept: bool = True

    def missing(self) -> str:
        """Return why the family cannot be run here, or nothing."""
        if not self.package:
            return ""
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            return f"{self.name}: {self.package} is not installed ({error}): pip install 'pzos[{self.extra}]'"
        return ""

    def stated(self, seed: int, folder: Path | None = None) -> Stated:
        """Return an instance; with a folder its answers are kept there."""
        problem = self.make(seed)
        follower = problem.follower
        if self.kept and folder is not None:
            place = folder / "answers" / f"{self.name}-{seed}.cache"
            place.parent.mkdir(parents=True, exist_ok=True)
            follower = pzos.Cached(follower, place, name=f"{self.name}/{seed}")
        return Stated(self, seed, problem, follower, folder)


def found() -> dict[str, Family]:
    """Return every family of the folder by name, in the order of the files."""
    families: dict[str, Family] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem.startswith("_"):
            continue
        for family in importlib.import_module(f"suite.followers.{path.stem}").FAMILIES:
            if family.name in families or family.kind not in KINDS:
                raise ValueError(f"{path.name}: {family.name}: expected a new name and a kind of {', '.join(KINDS)}")
            families[family.name] = family
    return families


class Stated:
    """One instance as the protocol's peers know it (:class:`testbed.unseen.instance.Instance`), always minimised."""

    def __init__(
        self, family: Family, seed: int, problem: pzos.Problem, follower: Follower, folder: Path | None = None
    ) -> None:
        self.of, self.family, self.seed, self.stated, self.follower = family, family.name, seed, problem, follower
        self.folder = folder
        self.sign = problem.known().sign
        self.seconds, self.simulated = 0.0, 0
        leader, sign = problem.leader, self.sign

        def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
            at = leader(x, y)
            return sign * at.grad_x, sign * at.grad_y

        residuals = None if family.residuals is None else family.residuals(seed)
        cost = Cost(lambda x, y: sign * leader.value(x, y), gradients, residuals)
        self.draft = Draft(cost, self.true_answer, np.array(problem.x0), problem.domain, rows=False)

    @property
    def exact(self) -> bool:
        """Whether the same x always has the same answer."""
        return not self.follower.seeded

    @property
    def domain(self) -> Any:
        """Return the set of decisions, whose projection also keeps to the grid of the problem."""
        return self.stated.domain if self.stated.grid is None else _OnGrid(self.stated)

    @property
    def bounds(self) -> tuple[Vector, Vector] | None:
        """Return the bounds of x that every method is told, or None."""
        return unseen.bounds_of(self.stated.domain, self.draft.x0.size)

    @property
    def boxed(self) -> bool:
        """Whether the bounds are the whole domain; other sets are reached by projection."""
        return isinstance(self.domain, (pzos.Whole, pzos.Box, pzos.Nonnegative))

    def answer(self, x: Vector, generator: np.random.Generator | None = None) -> Vector:
        """Ask the simulator; the seconds of answers that had to be simulated are added up."""
        start = time.perf_counter()
        given = self.follower.respond(x, generator)
        if not (isinstance(given, Answer) and given.cached):
            self.seconds += time.perf_counter() - start
            self.simulated += 1
        return np.array(given.y if isinstance(given, Answer) else given, dtype=np.float64)

    def noise(self, *address: int) -> np.random.Generator | None:
        """Return the generator of a draw of a noisy simulator."""
        return None if self.exact else np.random.default_rng([zlib.crc32(self.family.encode()), self.seed, *address])

    def true_answer(self, x: Vector) -> Vector:
        """Return the answer without noise: the mean of so many draws of their own."""
        if self.exact:
            return self.answer(x)
        return np.mean([self.answer(x, self.noise(1, k)) for k in range(max(1, self.of.judged_by))], axis=0)

    def true_value(self, x: Vector) -> float:
        """Return sign F without noise; infinity where the simulator fails."""
        try:
            return self.draft.cost.value(x, self.true_answer(x))
        except pzos.FollowerFailure:
            return np.inf

    def problem(self, door: Door, x0: Vector | None = None) -> pzos.Problem:
        """Return the problem as its author stated it, with this door before the simulator, and perhaps another x0."""
        old = self.stated
        start = old.x0 if x0 is None else x0
        # Common random numbers meet every x alike, whoever asks: as the peers see it, the answer has no noise then.
        follower: Any = door.asked if self.exact or self.follower.common else pzos.seeded(door.asked)
        grid = None if old.grid is None else old.grid.steps
        return pzos.Problem(
            old.leader, follower, start, old.domain, old.sense, old.name, old.structure, self.family, old.outcomes, grid
        )  # fmt: skip


class _OnGrid:
    """A set of decisions on a grid, for peers that know neither."""

    def __init__(self, problem: pzos.Problem) -> None:
        self.set, self.grid = problem.domain, problem.grid

    def project(self, x: Vector) -> Vector:
        inside = np.asarray(self.set.project(x))
        nearest = self.grid.nearest(inside, self.set)  # type: ignore[union-attr]
        return inside if nearest is None else nearest

    def contains(self, x: Vector, tolerance: float = 0.0) -> bool:
        return bool(self.set.contains(x, tolerance))


class Door(unseen.Door):
    """The simulator as any method meets it: counts, and keeps sign F as it was seen, and where."""

    instance: Stated  # type: ignore[assignment]

    def __init__(self, instance: Stated, budget: int) -> None:
        super().__init__(instance, budget)  # type: ignore[arg-type]
        self.points: list[Vector] = []

    def asked(self, x: Vector, generator: np.random.Generator | None = None) -> Vector:
        """Answer at x itself; a failure is raised, and counts as a query."""
        if len(self.values) >= self.budget:
            raise Spent
        start, asked = time.process_time(), self.instance
        point = np.array(x, dtype=np.float64).ravel()
        self.note(point)
        inside = asked.domain.contains(point, 1e-9)
        self.outside += not inside
        common = asked.follower.common
        noise = asked.noise(0, 0 if common else len(self.values)) if generator is None else generator
        self.points.append(point)
        self.values.append(np.inf)  # a failure, or a probe outside the set, is worth nothing
        try:
            y = asked.answer(point, noise)
            if inside:
                self.values[-1] = float(asked.draft.cost.value(point, y))
        finally:
            self.seconds += time.process_time() - start
        return y

    def at(self, x: Vector) -> tuple[Vector, Vector]:
        """Move x into the domain and return it with its answer, which is NaN where the simulator failed."""
        point = np.array(self.instance.domain.project(np.array(x, dtype=np.float64).ravel()))
        try:
            return point, self.asked(point)
        except pzos.FollowerFailure:
            return point, np.full_like(self.instance.draft.respond(self.instance.draft.x0), np.nan)

    def cost(self, x: Vector) -> float:
        """Return sign F as it is seen, x moved into the domain; after a failure the worst F seen before it."""
        self.at(x)
        value = self.values[-1]
        seen = [v for v in self.values if np.isfinite(v)]
        return value if np.isfinite(value) or not seen else max(seen)
