"""Link latencies inside the compiled code: BPR with any power, affine, constant, or a user's own function.

A link's travel time at flow v is  base + rise (v / capacity)^power,  which is BPR with base = free-flow time and
rise = b * base, affine with power 1, constant with rise 0. Powers 1 and 4 avoid the general power function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix
from pzos.networks.equilibrium.compiled import compiled, inlined

CONSTANT, AFFINE, QUARTIC, POWER, OWN = 0, 1, 2, 3, 4
"""The kinds of link in ``Law.kind``; OWN + i is a link with the user's own latency, number i."""

BASE, RISE, SCALE, EXPONENT = 0, 1, 2, 3
"""The columns of ``Law.coefficient``."""

FLOW, TIME, SLOPE = 0, 1, 2
"""The columns of the state of the links: flow, travel time, derivative of travel time."""

_SMALLEST = 1e-12


class Law(NamedTuple):
    """The latencies of all links; ``cost`` and ``slope`` are compiled functions (number, flow) -> float."""

    kind: npt.NDArray[np.int64]
    coefficient: Matrix
    cost: Any
    slope: Any


@inlined
def latency(
    link: int, flow: float, kinds: npt.NDArray[np.int64], coefficient: Matrix, cost: Any, slope: Any
) -> tuple[float, float]:
    """Return travel time and its derivative on one link."""
    kind = kinds[link]
    time, rate = coefficient[link, 0], 0.0
    if kind != CONSTANT:
        rise, scale = coefficient[link, 1], coefficient[link, 2]
        x = flow * scale
        if kind == QUARTIC:
            cube = x * x * x
            time += rise * cube * x
            rate = 4.0 * rise * scale * cube
        elif kind == AFFINE:
            time += rise * x
            rate = rise * scale
        elif kind >= OWN:
            time = cost(kind - OWN, flow)
            rate = slope(kind - OWN, flow)
        else:
            power = coefficient[link, 3]
            if power < 1.0:  # the slope is infinite at zero flow, and an infinite slope would stop every step
                x = max(x, _SMALLEST)
            lower = x ** (power - 1.0)
            time += rise * lower * x
            rate = power * rise * scale * lower
    return time, rate


@compiled
def refresh(law: Law, state: Matrix) -> None:
    """Write travel time and slope of every link at its flow into ``state``."""
    kind, coefficient, cost, slope = law
    for link in range(kind.size):
        time, rate = latency(link, state[link, FLOW], kind, coefficient, cost, slope)
        state[link, TIME] = time
        state[link, SLOPE] = rate
