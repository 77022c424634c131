"""Which iterates a run remembers: the best seen, and the paper's output x^R. All others are forgotten."""

from __future__ import annotations

from pzos.base.keys import Keys, Role
from pzos.base.types import Vector
from pzos.study.trace import Record


class Selection:
    """The best iterate at which F is known, and x^R with R uniform on the steps 0, ..., T-1 taken so far."""

    def __init__(self, x0: Vector, sign: float, keys: Keys) -> None:
        self.best_value = float("nan")
        self.best_x = x0
        self.random_step = 0
        self.random_x = x0
        self._sign = sign
        self._keys = keys
        self._next_draw = 0
        self._draws = 0

    def consider(self, record: Record) -> None:
        """Keep the point of a record if it is the best so far (sign * F is what goes down)."""
        if record.value == record.value and not self._sign * (record.value - self.best_value) >= 0:
            self.best_value, self.best_x = record.value, record.x

    def draw(self, record: Record) -> None:
        """Keep x^R with R uniform on the steps so far, without storing the iterates; call it once per step.

        Item n of a stream replaces the kept one with probability 1/n; after item s the next replacement is item
        floor(s/u) + 1 with u uniform, so only O(log T) draws are made.
        """
        if record.step != self._next_draw:
            return
        self.random_step, self.random_x = record.step, record.x
        u = 1.0 - self._keys.uniform(Role.OUTPUT, self._draws)
        self._draws += 1
        self._next_draw = int((record.step + 1) / u)
