"""One study as a page tells it: plain numbers and text, gathered from a result or from a study file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pzos.base.types import Matrix, Sense, Vector

Rows = tuple[tuple[str, str], ...]
EMPTY: Vector = np.empty(0)


class Curve(NamedTuple):
    """F where it is known, against what it cost to get there."""

    queries: Vector
    seconds: Vector
    values: Vector

    def best(self, sense: Sense) -> Vector:
        """Return the best value so far at each point."""
        return np.minimum.accumulate(self.values) if sense == "min" else np.maximum.accumulate(self.values)


class Motion(NamedTuple):
    """Step by step: the algorithm's queries so far, how far (or with which step size) x moved, the radius probed."""

    queries: Vector
    step: Vector
    step_name: str
    radius: Vector


class RoadMap(NamedTuple):
    """Links as segments between points, with their flow before and after, and the tolls set on them."""

    start: Matrix
    end: Matrix
    flow_before: Vector
    flow_after: Vector
    toll: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """Everything the page says about one study; empty parts are left out of it, with the reason in ``missing``."""

    name: str
    sense: Sense
    status: str
    asked: Rows
    method: Rows
    versions: Rows
    ledger: Mapping[str, int]
    before: Vector
    after: Vector
    after_name: str
    curve: Curve
    motion: Motion
    certificate: str
    resume: tuple[str, ...]
    missing: tuple[str, ...] = ()
    roads: RoadMap | None = None
    labels: tuple[str, ...] = field(default=())

    def label(self, entry: int) -> str:
        """Return the name of one decision."""
        return self.labels[entry] if self.labels else f"x[{entry}]"
