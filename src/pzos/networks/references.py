"""Equilibria that queries start from: the flow of the nearest one, on the paths of all.

Tolls send travellers onto detours. A query that finds these among the paths it starts with needs fewer rounds of
shortest paths than one which has to look for them. Which equilibrium is nearest follows from the tolls alone, so that
an answer is a function of the tolls, whatever was asked before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from pzos.base.checks import require
from pzos.base.types import Matrix
from pzos.networks.equilibrium.bushes import BushEquilibration
from pzos.networks.equilibrium.rounds import Known, joined

if TYPE_CHECKING:
    from pzos.networks.assignment import Assignment, Outcome
    from pzos.networks.network import Network


@dataclass(frozen=True, eq=False)
class References:
    """Equilibria of one network; as the ``reference`` of :meth:`pzos.networks.Network.assign`."""

    answers: tuple[Assignment, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", tuple(self.answers))
        require(len({id(answer.network) for answer in self.answers}) == 1, "References", "answers", self.answers,
                "equilibria of one network", "compute them with the same network's assign")  # fmt: skip

    @property
    def network(self) -> Network:
        """Return the network of all answers."""
        return self.answers[0].network

    def outcome(self, tolls: Matrix) -> Outcome:
        """Return the outcome to start from: of the answer whose travellers would feel the least change of tolls."""
        felt = [np.sum(each.class_flow * np.abs(tolls - each.tolls) / self.network.worth) for each in self.answers]
        nearest = int(np.argmin(felt))
        found = self.answers[nearest]._outcome
        if isinstance(found, BushEquilibration) or len(self.answers) == 1:
            return found
        return found._replace(paths=self._known.paths._replace(flow=self._known.flows[nearest]))

    @cached_property
    def _known(self) -> Known:
        sets = [answer.path_sets for answer in self.answers]
        with np.errstate(over="ignore"):  # of codes that wrap round, where nothing is compiled
            return reduce(joined, sets[1:], Known(sets[0], sets[0].flow[np.newaxis, : sets[0].first[-1]]))
