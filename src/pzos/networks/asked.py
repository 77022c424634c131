"""What a search of tolls knows: every answer, asked for once and known to all its parts, within one budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.answers.table import Answers
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.base.types import Purpose, Query, Vector
from pzos.networks.demand import Indices
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain, Nonnegative
from pzos.study.result import Result
from pzos.study.standing import FEASIBLE, Standing

#: Below this share of its untolled flow a link is priced out of traffic; a flow that moved less did not move.
_EMPTY, _SAME = 1e-6, 1e-6


class Trial(NamedTuple):
    """Tolls that were tried, the answer, what they are worth, and the constraints g there."""

    x: Vector
    y: Vector
    value: float
    what: str
    excess: Vector


class Asked:
    """All that was asked: each answer is counted once and known to every part of the search.

    ``left`` queries may still be asked, ``reserve`` of them not by the search but by the checks after it.
    """

    def __init__(self, problem: Problem, queries: int, seed: int) -> None:
        self.problem, self.left, self.seed, self.reserve = problem, queries, seed, 0
        self.sign = problem.known().sign
        self.trials: dict[bytes, Trial] = {}
        self.dropped = np.zeros(0, dtype=np.int64)  # tolls that are one too many

    def at(self, x: Vector, what: str) -> Trial:
        """Return the trial at ``x`` (projected onto the set), asked for unless it is known."""
        point = self.problem.domain.project(np.asarray(x, dtype=np.float64)) + 0.0
        known = self.trials.get(point.tobytes())
        if known is not None:
            return known
        self.left -= 1
        return self.told(point, answer_at(self.problem, point, self.seed), what)

    def told(self, x: Vector, y: Vector, what: str) -> Trial:
        """Keep an answer."""
        outcomes = self.problem.outcomes
        excess = np.zeros(0) if outcomes is None else outcomes.values(x, y)
        trial = Trial(x, y, self.problem.leader.value(x, y), what, excess)
        return self.trials.setdefault((x + 0.0).tobytes(), trial)

    def keep_only(self, tolls: Sequence[int]) -> None:
        """Leave only these tolls free; the others are 0."""
        domain, size = self.problem.domain, self.problem.x0.size
        if not isinstance(domain, Box | Nonnegative):
            raise InvalidInput(f"optimise_tolls: most with tolls in {domain}: expected bounds of each toll; drop one")
        self.dropped = np.setdiff1d(np.arange(size), np.asarray(tolls, dtype=np.int64))
        box = self.holding(self.dropped, np.zeros(size))
        self.problem = replace(self.problem, domain=box, x0=box.project(self.problem.x0))

    def holding(self, tolls: Sequence[int] | Indices, x: Vector) -> Domain:
        """Return the set in which these tolls are as they are at x; the whole one where tolls are bound together."""
        domain, size = self.problem.domain, x.size
        if not isinstance(domain, Box | Nonnegative) or len(tolls) == size:
            return domain
        low, high = np.zeros(size), np.full(size, np.inf)
        if isinstance(domain, Box):
            low, high = (np.array(np.broadcast_to(side, (size,))) for side in (domain.lower, domain.upper))
        held = list(tolls)
        low[held] = high[held] = x[held]
        return Box(low, high)

    def nearest(self, x: Vector) -> Answers:
        """Return the answers nearest to x, as many as there are tolls."""
        trials = list(self.trials.values())
        order = np.argsort([np.abs(trial.x - x).max() for trial in trials], kind="stable")[: x.size]
        return Answers([trials[row].x for row in order], [trials[row].y for row in order])

    def rank(self, trial: Trial) -> tuple[float, float]:
        """Return what is to be small: the violation of constraints, in units of the largest value seen, then the cost.

        A violation that counts as none elsewhere counts as none here.
        """
        violation = float((trial.excess / self._scales).max(initial=0.0)) if trial.excess.size else 0.0
        if self.dropped.size and np.any(trial.x[self.dropped]):
            violation = np.inf
        return violation if violation > FEASIBLE else 0.0, self.sign * trial.value

    @property
    def to_spend(self) -> int:
        """Return how many queries the search may still ask."""
        return self.left - self.reserve

    @property
    def _scales(self) -> Vector:
        seen: Vector = np.abs([trial.excess for trial in self.trials.values()]).max(axis=0)
        return np.asarray(np.maximum(seen, 1e-300))

    @property
    def untolled(self) -> Trial:
        """Return the first trial, which is that of no tolls."""
        return next(iter(self.trials.values()))

    def best(self, trials: Iterable[Trial] | None = None) -> Trial:
        """Return the best of these trials, or of all."""
        return min(self.trials.values() if trials is None else trials, key=self.rank)

    def standing(self, trial: Trial, result: Result) -> Standing | None:
        """Return how a trial stands to the constraints; the multipliers are those of the search."""
        return None if result.standing is None else replace(result.standing, values=trial.excess)

    # ---- traffic on the tolled links

    def traffic(self, trial: Trial) -> Vector | None:
        """Return how many pay each toll, where the followers are travellers on links that are known."""
        payers = getattr(getattr(self.problem.follower, "function", None), "payers", None)
        return None if payers is None else np.asarray(payers(trial.y))

    def empty(self, trial: Trial) -> Indices:
        """Return the tolls that nobody pays although somebody did at another toll."""
        here, most = self.traffic(trial), self._most_traffic
        if here is None or most is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero((here <= _EMPTY * most) & (most > 0.0) & (trial.x > 0.0))

    def highest_paid(self, trial: Trial) -> Vector:
        """Return the highest toll below that of ``trial`` that somebody was seen to pay, 0 where there is none."""
        paid = np.zeros(trial.x.size)
        for other in self.trials.values():
            flow, most = self.traffic(other), self._most_traffic
            if flow is not None and most is not None:
                pays = (flow > _EMPTY * most) & (other.x < trial.x)
                paid = np.where(pays, np.maximum(paid, other.x), paid)
        return paid

    def captive(self) -> tuple[int, ...]:
        """Return the tolls whose payers were as many at every toll tried, some of which were not 0."""
        flows = [self.traffic(trial) for trial in self.trials.values()]
        known = np.array([flow for flow in flows if flow is not None])
        if not known.size:
            return ()
        most, least = known.max(axis=0), known.min(axis=0)
        tolled = np.any([trial.x > 0.0 for trial in self.trials.values()], axis=0)
        return tuple(np.flatnonzero(tolled & (most > 0.0) & (most - least <= _SAME * most)).tolist())

    @property
    def _most_traffic(self) -> Vector | None:
        flows = [self.traffic(trial) for trial in self.trials.values()]
        known = [flow for flow in flows if flow is not None]
        return np.max(known, axis=0) if known else None


def answer_at(problem: Problem, x: Vector, seed: int = 0) -> Vector:
    """Return the followers' answer at x, by one query."""
    oracle = Oracle(problem.follower, seed=seed)
    response = next(oracle.answer([Query(0, 0, np.asarray(x, dtype=np.float64), Purpose.MONITOR)]))
    if response.failure:
        raise FollowerFailure(f"the followers did not answer at x = {x}: {response.failure}")
    return response.y
