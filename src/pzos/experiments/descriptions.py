"""What the paper ran, as frozen values (Sec. 5 and App. A). Nothing here is tuned per figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Family = Literal["security", "routing"]
Algorithm = Literal["PZOS", "ZOS"]

#: Instances of different families and seeds never share random numbers.
_SEED_STRIDE = 1_000_000
_FAMILY_OFFSET = {"security": 0, "routing": 500_000}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running an instance: algorithm, batch size Q, radius mu, set; a bold one takes a larger step."""

    algorithm: Algorithm
    batch: int = 1
    radius: float = 0.5
    nonnegative: bool = False
    bold: bool = False

    @property
    def queries_per_step(self) -> int:
        """Return the oracle calls of one iteration as the paper counts them: 2Q + 1 or 2Q."""
        return 2 * self.batch + (self.algorithm == "PZOS")

    @property
    def label(self) -> str:
        """Return the name used in figures."""
        return self.algorithm if self.batch == 1 else f"{self.algorithm} (Q={self.batch})"


def both(radius: float, *, batch: int = 1, nonnegative: bool = False, bold: bool = False) -> tuple[Variant, Variant]:
    """Return PZOS and ZOS, in every other respect the same."""
    return Variant("PZOS", batch, radius, nonnegative, bold), Variant("ZOS", batch, radius, nonnegative, bold)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: an instance, a variant and the number of steps. Everything needed to repeat it."""

    family: Family
    instance: int
    seed: int
    targets: int
    step_scale: float
    steps: int
    variant: Variant

    @property
    def key(self) -> str:
        """Return the address of the run in the store; it names everything the run depends on."""
        v = self.variant
        ending = "+" if v.nonnegative else ""
        return (
            f"{self.family}/{self.instance}/seed{self.seed}/n{self.targets}/a{self.step_scale:g}/T{self.steps}/"
            f"{v.algorithm}/Q{v.batch}/mu{v.radius:g}{ending}"
        )


@dataclass(frozen=True, slots=True)
class SecurityExperiment:
    """Sec. 5.2: 61 dimensions x 7 instances = 427 security games, mu = 0.1, T = 500, Q = 1.

    The step is 0.05/sqrt(t) for n <= 100 and 0.03/sqrt(t) above; x >= 0 by projection. Bold runs, for the footnote,
    keep 0.05/sqrt(t) at some dimensions above 100.
    """

    dimensions: tuple[int, ...] = (2, *range(5, 301, 5))
    repetitions: int = 7
    steps: int = 500
    radius: float = 0.1
    small_scale: float = 0.05
    large_scale: float = 0.03
    large_above: int = 100
    bold_dimensions: tuple[int, ...] = (200, 250, 300)

    def base(self) -> tuple[Variant, Variant]:
        """Return PZOS and ZOS with one direction each."""
        return both(self.radius)

    def bold(self) -> tuple[Variant, Variant]:
        """Return the same with the step of small games in large ones."""
        return both(self.radius, bold=True)

    @property
    def large_instances(self) -> int:
        """Return how many instances have n >= 100."""
        return self.repetitions * sum(n >= 100 for n in self.dimensions)

    def scale(self, targets: int) -> float:
        """Return the paper's step scale for this dimension."""
        return self.small_scale if targets <= self.large_above else self.large_scale

    def runs(self, seed: int, variants: Sequence[Variant]) -> Iterator[RunSpec]:
        """Yield the runs of the given variants, instance by instance."""
        for instance in range(len(self.dimensions) * self.repetitions):
            targets = self.dimensions[instance // self.repetitions]
            own_seed = instance_seed(seed, "security", instance)
            for variant in variants:
                if not variant.bold or targets in self.bold_dimensions:
                    scale = self.small_scale if variant.bold else self.scale(targets)
                    yield RunSpec("security", instance, own_seed, targets, scale, self.steps, variant)


@dataclass(frozen=True, slots=True)
class RoutingExperiment:
    """Sec. 5.1: 225 routing games, lambda = 1, mu = 0.5, step 0.7/|E|, T = 150, tau_0 = 0.

    Bold runs, for the footnote, take a step half again as large on the first instances; some runs of ZOS then send
    tolls to where no equilibrium can be computed.
    """

    instances: int = 225
    steps: int = 150
    radius: float = 0.5
    step_scale: float = 0.7
    regularisation: float = 1.0
    batches: tuple[int, ...] = (1, 2, 4)
    radii: tuple[float, ...] = (0.1, 0.5, 0.9, 2.0)
    bold_scale: float = 1.05
    bold_instances: int = 60

    def base(self) -> tuple[Variant, Variant]:
        """Return the pair of Fig. routing: PZOS and ZOS, Q = 1."""
        return both(self.radius)

    def batch_variants(self) -> tuple[Variant, ...]:
        """Return PZOS with Q = 1 and ZOS with each Q."""
        return (Variant("PZOS", radius=self.radius), *(Variant("ZOS", q, self.radius) for q in self.batches))

    def batch_pairs(self) -> tuple[tuple[Variant, Variant], ...]:
        """Return PZOS and ZOS with each Q."""
        return tuple(both(self.radius, batch=q) for q in self.batches)

    def bold(self) -> tuple[Variant, Variant]:
        """Return PZOS and ZOS with the larger step."""
        return both(self.radius, bold=True)

    def radius_variants(self) -> tuple[Variant, ...]:
        """Return both algorithms at each radius."""
        return tuple(variant for mu in self.radii for variant in both(mu))

    def constrained_variants(self) -> tuple[Variant, Variant]:
        """Return both algorithms with tau >= 0 by projection."""
        return both(self.radius, nonnegative=True)

    def runs(self, seed: int, variants: Sequence[Variant]) -> Iterator[RunSpec]:
        """Yield the runs of the given variants, instance by instance."""
        for instance in range(self.instances):
            own_seed = instance_seed(seed, "routing", instance)
            for variant in variants:
                if not variant.bold or instance < self.bold_instances:
                    scale = self.bold_scale if variant.bold else self.step_scale
                    yield RunSpec("routing", instance, own_seed, 0, scale, self.steps, variant)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of the paper is run: ``FULL`` is the paper's, ``QUICK`` a small version of the same."""

    name: str
    security: SecurityExperiment
    routing: RoutingExperiment

    def experiment(self, family: Family) -> SecurityExperiment | RoutingExperiment:
        """Return the experiment on one family of games."""
        return self.security if family == "security" else self.routing


FULL = Scale("full", SecurityExperiment(), RoutingExperiment())
QUICK = Scale(
    "quick",
    SecurityExperiment(dimensions=(2, 10, 50, 100, 150, 200, 250, 300), repetitions=3),
    RoutingExperiment(instances=40),
)


def instance_seed(seed: int, family: Family, instance: int) -> int:
    """Return the seed of an instance: of its data and, by another role, of its directions."""
    return seed * _SEED_STRIDE + _FAMILY_OFFSET[family] + instance
