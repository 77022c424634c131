"""When a run must end, whatever the solver thinks."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from pzos.base.checks import check_fields, checked, number, whole
from pzos.methods.solver import Stop

#: What a run without any limit is given, so that ``while not study.done`` ends.
DEFAULT_STEPS = 1000

#: The rate of failures is judged once this many queries were answered or failed.
FEWEST_JUDGED = 20

_NO_LIMIT = "or None for no limit"
_COUNT = {name: whole(1, f"try {name}=300, {_NO_LIMIT}").or_none() for name in ("steps", "queries")}
_DURATION = number(lambda value: value > 0, "a positive number", f"try seconds=60, {_NO_LIMIT}", finite=False).or_none()
_GOAL = number(isfinite, "a finite number", f"give the value of F to stop at, {_NO_LIMIT}").or_none()
_SHARE = number(lambda share: 0 < share <= 1, "a share in (0, 1]", f"try failure_rate=0.5, {_NO_LIMIT}").or_none()


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run must end, whatever the solver thinks; None means no limit of that kind. Without any, 1000 steps.

    ``queries`` is what is paid for in all: the solver's own, and those asked only to watch it.
    """

    steps: int | None = checked(_COUNT["steps"], default=None)
    queries: int | None = checked(_COUNT["queries"], default=None)
    seconds: float | None = checked(_DURATION, default=None)
    target: float | None = checked(_GOAL, default=None)
    failure_rate: float | None = checked(_SHARE, default=None)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.steps is None and self.queries is None and self.seconds is None:
            object.__setattr__(self, "steps", DEFAULT_STEPS)

    def reached(self, steps: int, queries: int, seconds: float, failures: int, monitoring: int) -> Stop | None:
        """Return which limit is reached after so many steps, queries and seconds, if any."""
        if self.steps is not None and steps >= self.steps:
            return Stop.STEPS
        if self.queries is not None and queries + monitoring >= self.queries:
            return Stop.QUERIES
        if self.seconds is not None and seconds >= self.seconds:
            return Stop.SECONDS
        return Stop.FAILURES if self.fails_too_often(failures, queries + monitoring) else None

    def fails_too_often(self, failures: int, told: int) -> bool:
        """Tell whether more than ``failure_rate`` of the queries told failed, once there are enough to judge."""
        return self.failure_rate is not None and told >= FEWEST_JUDGED and failures > self.failure_rate * told
