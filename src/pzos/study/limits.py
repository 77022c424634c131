"""When a run must end, whatever the solver thinks: steps, queries, wall time, target value."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from pzos.base.checks import Faults
from pzos.base.types import as_number

#: What a run without any limit is given, so that ``while not study.done`` ends.
DEFAULT_STEPS = 1000

#: The rate of failures is judged once this many queries were answered or failed.
FEWEST_JUDGED = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None means no limit of that kind. Without any, 1000 steps are taken."""

    steps: int | None = None
    queries: int | None = None
    seconds: float | None = None
    target: float | None = None
    failure_rate: float | None = None

    def __post_init__(self) -> None:
        faults = Faults("Limits")
        check_limits(faults, self.steps, self.queries, self.seconds, self.target, self.failure_rate)
        faults.raise_if_any()
        if self.steps is None and self.queries is None and self.seconds is None:
            object.__setattr__(self, "steps", DEFAULT_STEPS)

    def fails_too_often(self, failures: int, told: int) -> bool:
        """Tell whether more than ``failure_rate`` of the queries told failed, once there are enough to judge."""
        return self.failure_rate is not None and told >= FEWEST_JUDGED and failures > self.failure_rate * told


def check_limits(
    faults: Faults, steps: object, queries: object, seconds: object, target: object, failure_rate: object = None
) -> None:
    """Note a fault for every limit that is neither None nor a number of its kind."""
    for name, count in (("steps", steps), ("queries", queries)):
        whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        ok = count is None or (whole and count >= 1)  # type: ignore[operator]  # whole says it is a number
        faults.check(ok, name, count, "a whole number, 1 or more", f"try {name}=300, or None for no limit")
    duration = as_number(seconds)
    ok = seconds is None or (duration is not None and duration > 0)
    faults.check(ok, "seconds", seconds, "a positive number", "try seconds=60, or None for no limit")
    goal = as_number(target)
    ok = target is None or (goal is not None and isfinite(goal))
    faults.check(ok, "target", target, "a finite number", "give the value of F to stop at, or None for no limit")
    share = as_number(failure_rate)
    ok = failure_rate is None or (share is not None and 0 < share <= 1)
    faults.check(ok, "failure_rate", failure_rate, "a share in (0, 1]", "try failure_rate=0.5, or None for no limit")
