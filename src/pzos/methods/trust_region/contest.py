"""Structures compete by predicting the next answer, before it is seen; the best predictor makes the next step.

A declared structure starts as favourite and is left only for a rival that predicts clearly better, so a wrong
declaration costs a few queries. With nothing declared the favourite is "no structure", and a structure that shows
in the answers is found after two or three of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pzos.methods.response_model.fit import Shape

_DISCOUNT = 0.7
_MARGIN = 2.5
_TRAILING_AFTER = 6
_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Contest:
    """Discounted sums of log relative prediction errors, one per shape; lower is better, infinite is out."""

    shapes: tuple[Shape, ...]
    favourite: Shape
    scores: tuple[float, ...]
    rounds: int = 0

    @property
    def winner(self) -> Shape:
        """Return the favourite unless a rival predicts better by the margin."""
        best = self.shapes[int(np.argmin(self.scores))]
        lead = self.scores[self.shapes.index(self.favourite)] - min(self.scores)
        return best if lead > _MARGIN else self.favourite

    @property
    def running(self) -> tuple[Shape, ...]:
        """Return the shapes still compared: all at first, then those not far behind, in the end winner and none."""
        if self.rounds >= _ROUNDS:
            return tuple(dict.fromkeys((self.winner, Shape.FREE)))
        limit = min(self.scores) + (_MARGIN if self.rounds >= _TRAILING_AFTER else np.inf)
        close = (shape for shape, score in zip(self.shapes, self.scores, strict=True) if score <= limit)
        return tuple(dict.fromkeys((self.winner, *close)))

    def observe(self, errors: Mapping[Shape, float]) -> Contest:
        """Return the contest after one more answer; ``errors`` are relative to the change of the answer."""
        if len(errors) < 2:
            return self
        scores = tuple(
            _DISCOUNT * score + float(np.log(errors[shape] + 1e-9)) if shape in errors else np.inf
            for shape, score in zip(self.shapes, self.scores, strict=True)
        )
        return Contest(self.shapes, self.favourite, scores, self.rounds + 1)


def contest(candidates: tuple[Shape, ...], favourite: Shape) -> Contest:
    """Open a contest among ``candidates``."""
    return Contest(candidates, favourite, (0.0,) * len(candidates))
