"""When a run must end, whatever the solver thinks: steps, queries, wall time, target value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pzos.errors import Faults

#: What a run without any limit is given, so that ``while not study.done`` ends.
DEFAULT_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None means no limit of that kind. Without any, 1000 steps are taken."""

    steps: int | None = None
    queries: int | None = None
    seconds: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        faults = Faults("limits")
        for name in ("steps", "queries"):
            count = getattr(self, name)
            whole = count is None or (isinstance(count, int | np.integer) and not isinstance(count, bool))
            faults.check(whole and (count is None or count >= 1), name, count, "a whole number, 1 or more", "or None")
        faults.check(self.seconds is None or self.seconds > 0, "seconds", self.seconds, "a positive number", "or None")
        faults.check(
            self.target is None or bool(np.isfinite(self.target)), "target", self.target, "a finite number", "or None"
        )
        faults.raise_if_any()
        if self.steps is None and self.queries is None and self.seconds is None:
            object.__setattr__(self, "steps", DEFAULT_STEPS)
