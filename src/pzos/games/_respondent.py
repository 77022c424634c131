"""The follower of a game with a model: answers stacks of rows, each with its certificate as the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pzos.follower import Answer
from pzos.types import Matrix, Vector


@dataclass(frozen=True, slots=True, eq=False)
class Respondent:
    """Wraps X -> (Y, gaps) as a follower (protocol :class:`pzos.follower.Follower`).

    Each row is answered on its own inside, so the batch never shows in the bits of an answer.
    """

    function: Callable[[Matrix], tuple[Matrix, Vector]]
    seeded: bool = False
    batched: bool = True

    def respond(self, points: Sequence[Vector], generators: Sequence[Any] | None) -> list[Answer]:
        """Return one answer, with the gap it was certified to, per point."""
        rows, gaps = self.function(np.stack(points))
        return [Answer(row, float(gap)) for row, gap in zip(rows, gaps, strict=True)]
