"""The contest of structures, which decides what the model of the response assumes: the best predictor leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pzos.methods.response_model.fit import Shape

_DISCOUNT = 0.7
#: By how much a rival must predict better than the favourite to lead; and a structure, where none is declared, while
#: directions of up to so many decisions are unknown: what it says of them, however rough, is more than nothing.
_MARGIN, _EARLY_MARGIN, _MOST_EARLY = 2.5, 1.0, 20
_TRAILING_AFTER = 6
#: Up to so many decisions looks far away are likely to find what there is, and every direction is soon asked.
FEW_DECISIONS = 6
#: For so many answers an open contest is led by whatever predicts best.
_OPEN_FOR = 4
_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Contest:
    """Structures compete by predicting the next answer, before it is seen; the best predictor makes the next step.

    A declared structure starts as favourite and is left only for a rival that predicts clearly better, so a wrong
    declaration costs a few queries. With nothing declared the favourite is "no structure", and a structure that shows
    in the answers is found after two or three of them. ``scores`` are discounted sums of log relative prediction
    errors, one per shape; lower is better, infinite is out.

    Until as many answers as there are ``decisions`` were compared, what leads decides what directions nobody has asked
    are taken to do: then a smaller margin is enough, unless they are so few that all are soon asked.

    ``open`` says that the first trial failed. Without structure the next one would go where no answer has told of a
    loss yet, and may end where nothing moves any more: own effects lead, then for a while whatever predicts best.
    """

    shapes: tuple[Shape, ...]
    favourite: Shape
    scores: tuple[float, ...]
    rounds: int = 0
    open: bool = False
    decisions: int = 0

    def opened(self) -> Contest:
        """Return the contest after a first trial that failed; a declared structure still leads."""
        return replace(self, open=self.favourite is Shape.FREE and len(self.shapes) > 1)

    @property
    def winner(self) -> Shape:
        """Return the favourite unless a rival predicts better by the margin, or the contest is open."""
        best = self.shapes[int(np.argmin(self.scores))]
        if self.open and self.rounds < _OPEN_FOR:
            return best if self.rounds else Shape.OWN
        unknown = FEW_DECISIONS < self.decisions <= _MOST_EARLY and self.rounds < self.decisions
        lead = self.scores[self.shapes.index(self.favourite)] - min(self.scores)
        early = unknown and self.favourite is Shape.FREE
        return best if lead > (_EARLY_MARGIN if early else _MARGIN) else self.favourite

    @property
    def running(self) -> tuple[Shape, ...]:
        """Return the shapes still compared: all at first, then those not far behind, in the end winner and none."""
        if self.rounds >= _ROUNDS:
            return tuple(dict.fromkeys((self.winner, Shape.FREE)))
        limit = min(self.scores) + (_MARGIN if self.rounds >= _TRAILING_AFTER else np.inf)
        close = (shape for shape, score in zip(self.shapes, self.scores, strict=True) if score <= limit)
        return tuple(dict.fromkeys((self.winner, *close, Shape.FREE)))

    def observe(self, errors: Mapping[Shape, float]) -> Contest:
        """Return the contest after one more answer; ``errors`` are relative to the change of the answer."""
        if len(errors) < 2:
            return self
        scores = tuple(
            _DISCOUNT * score + float(np.log(errors[shape] + 1e-9)) if shape in errors else np.inf
            for shape, score in zip(self.shapes, self.scores, strict=True)
        )
        return replace(self, scores=scores, rounds=self.rounds + 1)


#: Without rivals there is nothing to find out.
NO_CONTEST = Contest((Shape.FREE,), Shape.FREE, (0.0,))
