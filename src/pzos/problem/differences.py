"""Differences of a cheap known cost f(x, y): its gradients where nobody wrote them, and a check of those somebody did.

The check must catch what is wrong and let pass what is only awkward: a kink, or a cost of an odd scale. An entry is
called wrong if differences over three neighbouring scales, the finest that agree with each other, contradict it on both
sides of the point. In a long vector many entries are moved at once, each by an amount of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pzos.base.errors import InvalidLeader
from pzos.base.types import Vector

Value = Callable[[Vector, Vector], float]

_EPS = float(np.finfo(np.float64).eps)
#: Relative length of a step that balances rounding and curvature in a central difference.
_STEP = _EPS ** (1.0 / 3.0)
#: What is tried before an entry is doubted, and the lengths by which a doubt is settled, finest first.
_QUICK = 1e-5
_LADDER = tuple(10.0**-k for k in range(10, 0, -1))
#: A relative error of an entry from here on is an error of the gradient; scales agree if they do to this share of it.
_WRONG, _AGREEING = 1e-3, 0.1
#: Rounding of f, in units of its last digit, and the share of a difference it may make up.
_ROUNDING, _NOISE = 8.0, 0.1
#: So many groups of entries are moved one after the other, and so many looks are taken in all at those that look wrong.
_GROUPS, _LOOKS = 32, 2000


class WrongGradient(InvalidLeader):
    """A partial gradient of the leader contradicts the leader's own values; the answer it was found at is right."""


class Slopes(NamedTuple):
    """Slopes of f along a move: over both sides, ahead and behind, and how much of them rounding may be."""

    central: float
    ahead: float
    behind: float
    rounding: float

    @property
    def bend(self) -> float:
        """Return how far the slopes on both sides are apart."""
        return abs(self.ahead - self.behind)


def gradients(value: Value, x: Vector, y: Vector) -> tuple[Vector, Vector]:
    """Return both partial gradients of f by differences; one-sided where f is not defined on both sides."""
    centre = value(x, y)
    found = []
    for which, point in (("x", x), ("y", y)):
        gradient = np.empty(point.size)
        for entry in range(point.size):
            move = np.zeros(point.size)
            move[entry] = size = max(1.0, abs(float(point[entry])))
            slopes = _slopes(value, (x, y), which, move, _STEP, centre)
            sides = [slopes.central, slopes.ahead, slopes.behind]
            known = next((side for side in sides if np.isfinite(side)), None)
            if known is None:
                raise InvalidLeader(
                    f"f(x, y) is not defined on either side of {which}[{entry}] = {point[entry]:g}: expected a cost "
                    "that is known around the point; restrict x by bounds, or repair the cost there"
                )
            gradient[entry] = known / size
        found.append(gradient)
    return found[0], found[1]


def check_gradients(
    name: str, value: Value, x: Vector, y: Vector, centre: float, grad_x: Vector, grad_y: Vector
) -> None:
    """Raise :class:`WrongGradient`, which names the entry, if a gradient contradicts the values of f at (x, y)."""
    for which, point, gradient in (("x", x, grad_x), ("y", y, grad_y)):
        moves = _moves(point)
        groups = [group for group in np.array_split(np.arange(point.size), _GROUPS) if group.size][::-1]
        for _ in range(_LOOKS):
            if not groups:
                break
            group = groups.pop()
            move = np.zeros(point.size)
            move[group] = moves[group]
            measured = _contradicted(value, (x, y), which, move, centre, gradient)
            if measured is not None and group.size > 1:  # one half of it, or the other, or neither
                groups += np.array_split(group, 2)[::-1]
            elif measured is not None:
                entry = int(group[0])
                told = f"grad_{which}[{entry}] = {gradient[entry]:.6g}: expected {measured / moves[entry]:.6g}"
                raise WrongGradient(
                    f"{name}: {told}, as differences of f say; correct it (pzos.check_leader compares every entry), or "
                    "leave the gradients to pzos.leader_from_cost"
                )


def _moves(point: Vector) -> Vector:
    """Return by how much each entry is moved: by its size, in a long vector each by another share of it."""
    moves = np.maximum(1.0, np.abs(point))
    return moves if point.size <= _GROUPS else moves * (0.5 + (np.arange(point.size) * 0.6180339887498949) % 1.0)


def _contradicted(
    value: Value, point: tuple[Vector, Vector], which: str, move: Vector, centre: float, gradient: Vector
) -> float | None:
    """Return the slope of f along the move if it contradicts the gradient; None if it does not, or cannot tell."""
    claimed = float(np.dot(gradient, move))
    if _agree(_slopes(value, point, which, move, _QUICK, centre), claimed):
        return None
    ladder = [_slopes(value, point, which, move, step, centre) for step in _LADDER]
    flat = all(slopes.central == 0.0 for slopes in ladder)
    told = [
        slopes
        for slopes in ladder
        if np.isfinite(slopes).all()
        and slopes.rounding <= _NOISE * max(abs(slopes.central), abs(claimed))
        and (flat or slopes.central != 0.0)  # at fine scales a cost of few digits does not move at all
    ]
    if any(_agree(slopes, claimed) and slopes.bend <= 10.0 * _WRONG * abs(claimed) for slopes in told):
        return None
    for three in zip(told, told[1:], told[2:], strict=False):
        middle = three[1].central
        apart = _AGREEING * max(abs(middle - claimed), _WRONG * max(abs(middle), abs(claimed)))
        if all(abs(slopes.central - middle) <= apart + slopes.rounding for slopes in three):
            return None if any(_agree(slopes, claimed) for slopes in three) else middle
    return None


def _agree(slopes: Slopes, claimed: float) -> bool:
    """Tell whether a slope lies between those on both sides, as at a kink, up to a thousandth and rounding."""
    low, high = min(slopes.ahead, slopes.behind), max(slopes.ahead, slopes.behind)
    allowed = _WRONG * max(abs(claimed), abs(slopes.central)) + slopes.rounding
    return bool(low - allowed <= claimed <= high + allowed)


def _slopes(value: Value, point: tuple[Vector, Vector], which: str, move: Vector, step: float, centre: float) -> Slopes:
    """Return the slopes of f over ``step * move``; NaN where f is not defined."""

    def at(length: float) -> float:
        x, y = point
        moved = (x + length * move, y) if which == "x" else (x, y + length * move)
        for array in moved:
            array.setflags(write=False)  # read-only, as every point that a leader is handed
        with np.errstate(all="ignore"):
            try:
                return value(*moved)
            except (ArithmeticError, ValueError):  # outside of where f is defined
                return float("nan")

    ahead, behind = at(step), at(-step)
    rounding = _ROUNDING * _EPS * max(abs(centre), abs(ahead), abs(behind)) / step
    return Slopes((ahead - behind) / (2.0 * step), (ahead - centre) / step, (centre - behind) / step, rounding)
