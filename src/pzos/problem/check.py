"""``check_leader``: compares a leader's gradients with finite differences and says which entry is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.types import Vector, float_array
from pzos.problem.leader import Leader


@dataclass(frozen=True, slots=True)
class WrongEntry:
    """One gradient entry that disagrees with the finite difference of f."""

    gradient: str
    entry: int
    claimed: float
    measured: float


@dataclass(frozen=True, slots=True)
class LeaderReport:
    """What :func:`check_leader` found. It is truthy if both gradients agree with f."""

    worst_error: float
    tolerance: float
    wrong: tuple[WrongEntry, ...]

    def __bool__(self) -> bool:
        return not self.wrong

    def __repr__(self) -> str:
        if self:
            return f"both gradients agree with f (worst relative error {self.worst_error:.1e})"
        lines = [f"{len(self.wrong)} gradient entries disagree with finite differences of f:"]
        lines += [
            f"  {w.gradient}[{w.entry}]: the leader says {w.claimed:.6g}, differences say {w.measured:.6g}"
            for w in self.wrong[:10]
        ]
        if len(self.wrong) > 10:
            lines.append(f"  ... and {len(self.wrong) - 10} more")
        return "\n".join(lines)


def check_leader(
    leader: Leader, x: npt.ArrayLike, y: npt.ArrayLike, *, tolerance: float = 1e-6, entries: int = 200
) -> LeaderReport:
    """Compare grad_x f and grad_y f at (x, y) with central differences, entry by entry.

    At most ``entries`` entries of each gradient are looked at, evenly spread. The error is relative to the
    larger of the two values and of the typical size of the gradient, so that tiny entries do not raise alarms.
    """
    faults = Faults("check_leader")
    faults.check(isinstance(leader, Leader), "leader", leader, "a Leader", "build one with leader_from_functions")
    x, y = _vector(faults, "x", x), _vector(faults, "y", y)
    faults.raise_if_any()
    at = leader(x, y)
    wrong: list[WrongEntry] = []
    worst = 0.0
    for name, gradient, which in (("grad_x", at.grad_x, 0), ("grad_y", at.grad_y, 1)):
        typical = float(np.sqrt(np.mean(gradient**2))) if gradient.size else 0.0
        for entry in np.unique(np.linspace(0, gradient.size - 1, min(entries, gradient.size)).astype(int)):
            measured = _central_difference(leader, (x, y), which, int(entry))
            scale = max(abs(measured), abs(gradient[entry]), typical, 1e-8 * max(1.0, abs(at.value)))
            error = abs(measured - gradient[entry]) / scale
            worst = max(worst, error)
            if error > tolerance:
                wrong.append(WrongEntry(name, int(entry), float(gradient[entry]), measured))
    return LeaderReport(worst, tolerance, tuple(wrong))


def _vector(faults: Faults, name: str, value: npt.ArrayLike) -> Vector:
    try:
        vector = np.atleast_1d(float_array(value))
    except (TypeError, ValueError):
        vector = np.full(1, np.nan)
    ok = vector.ndim == 1 and vector.size > 0 and bool(np.isfinite(vector).all())
    faults.check(ok, name, value, "a vector of finite numbers", "give a point where f is smooth")
    return vector


def _central_difference(leader: Leader, point: tuple[Vector, Vector], which: int, entry: int) -> float:
    """Fourth-order central difference of f in one entry: exact to about 1e-10 for a smooth cost."""
    step = 1e-3 * max(1.0, abs(float(point[which][entry])))

    def value(offset: float) -> float:
        moved = [point[0].copy(), point[1].copy()]
        moved[which][entry] += offset
        return leader.value(moved[0], moved[1])

    near = value(step) - value(-step)
    far = value(2 * step) - value(-2 * step)
    return (8.0 * near - far) / (12.0 * step)
