"""How told points stand to the outcome constraints, and which of them a run returns.

A point is feasible if every g_k is at most a billionth of its scale: the span of the first twelve values of g_k that
were told, or its size at the first answer, whichever is larger. First steps may lead far, and make that scale hundreds
of times what g_k is near the solution; a billionth of it is rounding by any measure. Of the feasible points told the
one of best F is returned, whatever it was asked for; without any, the one that violates least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pzos.base.keys import Keys
from pzos.base.types import Vector
from pzos.methods.solver import AnySolver, Constrained, Outcome, Returning, State, Stop, Task
from pzos.problem.outcomes import SPANNED, Outcomes
from pzos.problem.problem import Known
from pzos.study.result import Record, Selection

#: In units of the constraint's scale: what still counts as kept, and what counts as at its limit.
FEASIBLE, ACTIVE = 1e-9, 1e-4
#: Ends that a run without a feasible point shares: what matters then is that there is none.
_ENDS = (Stop.STEPS, Stop.QUERIES, Stop.SECONDS, Stop.CONVERGED, Stop.UNMOVED)


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """A told point against the constraints: ``values`` of g there, their ``scales``, and ``prices`` (multipliers)."""

    names: tuple[str, ...]
    values: Vector
    scales: Vector
    prices: Vector | None = None

    @property
    def violation(self) -> float:
        """Return the largest violation in units of its constraint's scale, 0 if there is none."""
        return max(float((self.values / self.scales).max()), 0.0)

    @property
    def feasible(self) -> bool:
        """Tell whether every constraint is kept, up to a billionth of its scale."""
        return self.violation <= FEASIBLE

    @property
    def active(self) -> tuple[str, ...]:
        """Return the constraints at their limits, or beyond."""
        near = self.values / self.scales >= -ACTIVE
        return tuple(name for name, at_limit in zip(self.names, near, strict=True) if at_limit)

    @property
    def violated(self) -> tuple[str, ...]:
        """Return the constraints that are not kept."""
        beyond = self.values / self.scales > FEASIBLE
        return tuple(name for name, broken in zip(self.names, beyond, strict=True) if broken)

    @property
    def multipliers(self) -> dict[str, float]:
        """Return the multiplier of each constraint by name; nothing where the method knows none."""
        return {} if self.prices is None else dict(zip(self.names, map(float, self.prices), strict=True))

    def rows(self) -> list[tuple[str, str]]:
        """Return what a table says: violation, what is active, and what a unit of room would bring."""
        if not self.feasible:
            at_limit = [name for name in self.active if name not in self.violated]
            against = f" against {_listed(at_limit)}" if at_limit else ""
            return [
                ("constraints", f"{_listed(self.violated)} violated{against}, by {self.violation:.2g} of the scale")
            ]
        rows = [("constraints", f"all {len(self.names)} kept (violation {self.violation:.2g} of the scale)")]
        prices = self.multipliers
        said = [f"{name} (multiplier {prices[name]:.4g})" if name in prices else name for name in self.active]
        return [*rows, ("at their limits", _listed(said, 8) if said else "none")]


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class _Told(NamedTuple):
    x: Vector
    value: float
    excess: Vector


class ConstrainedSelection(Selection):
    """Keeps the told point to return, of all that were asked: iterates, probes, monitoring."""

    def __init__(self, known: Known, outcomes: Outcomes, keys: Keys) -> None:
        super().__init__(known.x0, known.sign, keys)
        self._known, self._outcomes = known, outcomes
        self._lowest = self._highest = self._first = np.zeros(0)
        self._spanned = 0
        self._best: _Told | None = None
        self._latest: Mapping[int, Vector] = {}

    @property
    def scales(self) -> Vector:
        """Return the scale of each constraint."""
        spans = np.maximum(self._highest - self._lowest, np.abs(self._first))
        return np.where(spans > 0.0, spans, 1.0)

    @property
    def standing(self) -> Standing | None:
        """Return how the point to return stands to the constraints; None before any answer."""
        return None if self._best is None else Standing(self._outcomes.names, self._best.excess, self.scales)

    def tell(self, points: Sequence[Vector], answers: Sequence[Vector | None]) -> None:
        """Take the answers of a batch."""
        told = [(x, y) for x, y in zip(points, answers, strict=True) if y is not None]
        found = [_Told(x, self._known.leader.value(x, y), self._outcomes.values(x, y)) for x, y in told]
        if not found:
            return
        for one in found[: SPANNED - self._spanned]:
            first = self._spanned == 0
            self._first = one.excess if first else self._first
            self._lowest = np.minimum(one.excess if first else self._lowest, one.excess)
            self._highest = np.maximum(one.excess if first else self._highest, one.excess)
            self._spanned += 1
        self._latest = {id(one.x): one.excess for one in found}
        self._best = min(found if self._best is None else [self._best, *found], key=self._rank)
        self.best_x, self.best_value = self._best.x, self._best.value

    def _rank(self, one: _Told) -> tuple[float, float]:
        violation = max(float((one.excess / self.scales).max()), 0.0)
        return (0.0, self._sign * one.value) if violation <= FEASIBLE else (violation, self._sign * one.value)

    def consider(self, record: Record) -> None:
        """Leave the choice to :meth:`tell`, which sees the constraints."""

    def extras(self, outcome: Outcome) -> Mapping[str, float]:
        """Return what a step puts on record, with the violation at the point it speaks of."""
        excess = self._latest.get(id(outcome.x))
        if excess is None:
            return outcome.extras
        return {**outcome.extras, "violation": max(float((excess / self.scales).max()), 0.0)}

    def reaches(self, target: float) -> bool:
        """Tell whether a feasible point is as good as the target."""
        standing = self.standing
        return standing is not None and standing.feasible and super().reaches(target)

    def ended(self, stop: Stop) -> Stop:
        """Return why a run ended: if no told point is feasible, that."""
        standing = self.standing
        return Stop.INFEASIBLE if stop in _ENDS and standing is not None and not standing.feasible else stop


def selection_for(task: Task, state: State) -> Selection:
    """Return what keeps the points of a run on this problem, before its first query; what is known by then counts."""
    known = task.known
    if known.outcomes is not None:
        constrained = ConstrainedSelection(known, known.outcomes, task.keys)
        constrained.tell([x for x, _ in task.told], [y for _, y in task.told])
        return constrained
    selected = Selection(known.x0, known.sign, task.keys)
    if task.told and state.value == state.value:
        selected.best_x, selected.best_value = state.x, state.value
    return selected


def returned(
    selected: Selection, solver: AnySolver, task: Task, state: State, value: float
) -> tuple[Vector, float, Standing | None]:
    """Return the point a run returns, F there, and how it stands to the constraints, if there are any."""
    standing = selected.standing if isinstance(selected, ConstrainedSelection) else None
    if standing is None:
        best = solver.point_to_return(task, state) if isinstance(solver, Returning) else None
        return (state.x, value, None) if best is None else (*best, None)
    x, prices = selected.best_x, None
    if standing.feasible and isinstance(solver, Constrained):
        prices = solver.multipliers(task, state, x, standing.values)
    if prices is not None:  # a constraint away from its limit has none
        prices = np.where(standing.values / standing.scales >= -ACTIVE, prices, 0.0)
    return x, selected.best_value, replace(standing, prices=prices)
