"""Points with two or three costs: which are dominated, what volume they dominate, where the knees of a front are.

All costs go down here; a cost to be maximised enters with its sign turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Matrix, Vector
from pzos.problem.leader import Leader

Rows = npt.NDArray[np.int64]
#: The share of the sum in the augmented Chebyshev cost: what is only weakly dominated is not taken.
_AUGMENTED = 0.05
#: Over this part of the span of the costs the largest of them is rounded off.
_ROUNDED = 0.02
_LEAST_WEIGHT = 0.01
#: A knee gains at least this much against the plane through the ends, more than all points within this distance.
_KNEE, _NEAR = 0.05, 0.15


def undominated(costs: Matrix) -> Rows:
    """Return the rows than which no other is better in one cost and as good in all; of equal rows the first.

    >>> undominated(np.array([[0.0, 2.0], [1.0, 1.0], [1.0, 3.0], [2.0, 0.0], [2.0, 0.0]]))
    array([0, 1, 3])
    """
    kept = []
    for row, cost in enumerate(costs):
        as_good = (costs <= cost).all(axis=1)
        better = as_good & (costs < cost).any(axis=1)
        if not better.any() and not as_good[:row].any():
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def hypervolume(costs: Matrix, reference: Vector) -> float:
    """Return the volume between the reference and the points that are better than it in every cost.

    >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    3.0
    """
    inside = costs[(costs < reference).all(axis=1)]
    if inside.shape[0] == 0:
        return 0.0
    if costs.shape[1] == 2:
        return _area(inside, reference)
    inside = inside[np.argsort(inside[:, -1], kind="stable")]
    heights = np.append(inside[1:, -1], reference[-1]) - inside[:, -1]
    slices = [_area(inside[: k + 1, :-1], reference[:-1]) for k in range(len(inside))]
    return float(np.dot(heights, slices))


def _area(costs: Matrix, reference: Vector) -> float:
    ordered = costs[np.lexsort((costs[:, 1], costs[:, 0]))]
    lowest = np.minimum.accumulate(ordered[:, 1])
    widths = np.append(ordered[1:, 0], reference[0]) - ordered[:, 0]
    return float(np.dot(widths, reference[1] - lowest))


def spans(costs: Matrix) -> tuple[Vector, Vector]:
    """Return the lowest of each cost on the front, and how far it reaches from there; 1 where it does not."""
    front = costs[undominated(costs)]
    lowest = front.min(axis=0)
    wide = front.max(axis=0) - lowest
    everywhere = costs.max(axis=0) - costs.min(axis=0)
    wide = np.where(wide > 1e-12 * everywhere, wide, everywhere)
    return lowest, np.where(wide > 0.0, wide, 1.0)


def knees(costs: Matrix) -> Rows:
    """Return the rows of a front, without dominated points, where little more of one cost takes much of another.

    They lie far below the plane through the ends, and farther than all points near them.
    """
    lowest, wide = spans(costs)
    scaled = (costs - lowest) / wide
    depth = 1.0 - scaled.sum(axis=1)
    apart = np.abs(scaled[:, None] - scaled[None]).max(axis=2)
    best = np.where(apart <= _NEAR, depth[None], -np.inf).max(axis=1)
    ends = (scaled <= 0.0).any(axis=1)
    return np.flatnonzero((depth >= best) & (depth > _KNEE) & ~ends)


@lru_cache(maxsize=8)
def directions(costs: int, count: int) -> Matrix:
    """Return weights of the costs, spread over the simplex, the ends first; ``count`` of them for two costs.

    >>> directions(2, 3).round(2).tolist()
    [[0.99, 0.01], [0.01, 0.99], [0.5, 0.5]]
    """
    steps = count - 1
    if costs > 2:
        steps = int(np.sqrt(2.0 * count))
    chosen = combinations_with_replacement(range(costs), steps)
    lattice = np.array([[part.count(k) for k in range(costs)] for part in chosen]) / steps
    lattice = np.maximum(lattice, _LEAST_WEIGHT)
    weights = lattice / lattice.sum(axis=1, keepdims=True)
    ends = [int(np.argmax(weights[:, k])) for k in range(costs)]
    others = [row for row in range(len(weights)) if row not in ends]
    found: Matrix = weights[[*ends, *_spread(others)]]
    found.setflags(write=False)  # it is remembered
    return found


def _spread(rows: list[int]) -> list[int]:
    """Return the rows in an order in which the first few already lie all over: middles of what is left, in turns."""
    ordered, parts = [], [rows]
    while parts:
        part = parts.pop(0)
        if part:
            middle = len(part) // 2
            ordered.append(part[middle])
            parts += [part[:middle], part[middle + 1 :]]
    return ordered


class Chebyshev(NamedTuple):
    """costs -> max_i t_i + rho sum_i t_i, the largest rounded off, of t_i = scale_i f_i - shift_i.

    The augmented Chebyshev cost: its minimisers reach concave parts of a front, which weighted sums jump over.
    """

    scale: Vector
    shift: Vector

    @classmethod
    def of(cls, signs: Vector, lowest: Vector, wide: Vector, weights: Vector) -> Chebyshev:
        """Return that of the weighted costs w_i (f_i - lowest_i)/wide_i."""
        return cls(weights * signs / wide, weights * lowest / wide)

    def __call__(self, costs: Vector) -> tuple[float, Vector]:
        """Return the value and its slope in the costs."""
        terms = self.scale * costs - self.shift
        top = float(terms.max())
        shares = np.exp((terms - top) / _ROUNDED)
        total = float(shares.sum())
        value = top + _ROUNDED * float(np.log(total)) + _AUGMENTED * float(terms.sum())
        return value, (shares / total + _AUGMENTED) * self.scale


def scalarised(leaders: Sequence[Leader], cost: Chebyshev) -> Leader:
    """Return the leader whose cost is this one of the leaders' costs."""

    def value(x: Vector, y: Vector) -> float:
        return cost(np.array([leader.value(x, y) for leader in leaders]))[0]

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = [leader(x, y) for leader in leaders]
        total, pulls = cost(np.array([one.value for one in at]))
        grad_x: Vector = np.einsum("i,ij->j", pulls, np.array([one.grad_x for one in at]))
        grad_y: Vector = np.einsum("i,ij->j", pulls, np.array([one.grad_y for one in at]))
        return total, grad_x, grad_y

    return Leader(value, everything, "the costs of a front")


def total(leaders: Sequence[Leader], signs: Vector) -> Leader:
    """Return the sum of the costs, all going down: what a study of a front calls its F."""

    def value(x: Vector, y: Vector) -> float:
        return float(signs @ np.array([leader.value(x, y) for leader in leaders]))

    def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        at = [leader(x, y) for leader in leaders]
        grad_x: Vector = np.einsum("i,ij->j", signs, np.array([one.grad_x for one in at]))
        grad_y: Vector = np.einsum("i,ij->j", signs, np.array([one.grad_y for one in at]))
        return float(signs @ np.array([one.value for one in at])), grad_x, grad_y

    return Leader(value, everything, " + ".join(leader.name for leader in leaders))
