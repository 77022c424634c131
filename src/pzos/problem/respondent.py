"""The follower of a game with a model: answers stacks of rows, each with its certificate as the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.random import Generator

from pzos.base.types import Matrix, Vector
from pzos.problem.follower import Answer, Follower


@final
@dataclass(frozen=True, eq=False)
class Respondent(Follower):
    """Wraps X -> (Y, gaps) as a batched follower.

    Each row is answered on its own inside, so the batch never shows in the bits of an answer.
    """

    function: Callable[[Matrix], tuple[Matrix, Vector]]
    batched = True

    def respond(self, x: Vector, generator: Generator | None) -> Answer:
        """Return the answer to one query, with the gap it was certified to."""
        rows, gaps = self.function(x.reshape(1, -1))
        return Answer(rows[0], float(gaps[0]))

    def respond_all(self, points: Sequence[Vector]) -> list[Any]:
        """Return one answer, with the gap it was certified to, per point."""
        rows, gaps = self.function(np.stack(points))
        return [Answer(row, gap) for row, gap in zip(rows, gaps.tolist(), strict=True)]
