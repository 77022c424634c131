"""What the figures are made from: the scale, the seed, the folder and the store of finished runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pzos.base.types import Vector
from pzos.experiments.descriptions import RunSpec, Scale, Variant
from pzos.experiments.store import RunStore
from pzos.experiments.tables import Runs, load_runs


class Claim(NamedTuple):
    """One quantitative sentence of the paper as a predicate on our numbers."""

    claim: str
    where: str
    found: str
    holds: bool


@dataclass(frozen=True, slots=True)
class FigureReport:
    """A finished figure: what it shows, which claims it bears on, and the choices the paper left open."""

    name: str
    title: str
    caption: str
    claims: tuple[Claim, ...]
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class Context:
    """One reproduction: everything a figure needs, with runs read from the store once."""

    scale: Scale
    seed: int
    folder: Path
    store: RunStore
    _security: dict[Variant, Runs] = field(default_factory=dict)
    _routing: dict[Variant, Runs] = field(default_factory=dict)

    def security(self, algorithm: str) -> Runs:
        """Return the security runs of one algorithm."""
        if not self._security:
            self._security = load_runs(self.store, self.scale.security.runs(self.seed))
        return next(runs for variant, runs in self._security.items() if variant.algorithm == algorithm)

    def routing(self, variant: Variant) -> Runs:
        """Return the routing runs of one variant."""
        if variant not in self._routing:
            self._routing |= load_runs(self.store, self.scale.routing.runs(self.seed, (variant,)))
        return self._routing[variant]


class Figure(NamedTuple):
    """How to make a figure: the runs it needs, and the function that draws it and checks its claims."""

    needs: Callable[[Scale, int], list[RunSpec]]
    make: Callable[[Context], FigureReport]


def share(condition: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    """Return a count like '225 of 225'."""
    return f"{int(condition.sum())} of {condition.size}"


def ahead(ours: Vector, theirs: Vector, steps: Vector) -> str:
    """Say at how many steps the first curve lies above the second and, where it does not, when and by how much."""
    behind = ours <= theirs
    if not behind.any():
        return f"at {share(~behind)} iterations"
    where = steps[behind]
    return (
        f"at {share(~behind)} iterations; behind between t = {where[0]:.0f} and {where[-1]:.0f} "
        f"by at most {np.max(theirs - ours):.1g}"
    )
