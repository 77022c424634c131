"""The certificate on a grid: are the neighbours of x, one step away in one entry, better?

There are no directions to take differences along where decisions are whole numbers or multiples of a step. What can be
said is less, and without a doubt where followers repeat themselves: of the neighbours of x that were asked, none is
better. It says nothing about points further away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pzos.base.checks import check_fields, checked, whole
from pzos.base.types import Purpose, Vector
from pzos.methods.estimators import Answers, Plan
from pzos.methods.solver import Task
from pzos.problem.problem import Known
from pzos.stationarity.one_batch import BatchState, OneBatch, all_equal


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourCertificate:
    """What the neighbours of x on the grid say; ``print`` it for the sentence.

    ``better`` is the best neighbour with a lower F (higher, to maximise), None if none is; ``neighbours`` lie in the
    set, ``asked`` of them answered, all of them as x did if ``unmoved``.
    """

    x: Vector
    value: float
    better: Vector | None
    better_value: float
    neighbours: int
    asked: int
    queries: int
    unmoved: bool = False

    @property
    def sentence(self) -> str:
        """Return what was found, in one line."""
        counted = f"all {self.neighbours}" if self.asked == self.neighbours else f"{self.asked} of {self.neighbours}"
        if self.better is None:
            still = "; the followers did not move" if self.unmoved else ""
            return f"no better neighbour on the grid, {counted} asked ({self.queries} queries){still}"
        return (
            f"a neighbour on the grid is better: F = {self.better_value:.6g} instead of {self.value:.6g} ({counted} "
            f"neighbours asked, {self.queries} queries)"
        )

    def __repr__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourSolver(OneBatch[NeighbourCertificate]):
    """Ask x and its neighbours on the grid of the problem, once, at most ``queries`` in all."""

    queries: int = checked(whole(2, "x and a neighbour"), default=33)
    keeps_grid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def ask(self, task: Task, state: BatchState[NeighbourCertificate]) -> Plan:
        """Plan x and its neighbours."""
        points = (state.x, *_neighbours(task.known, state.x)[: self.queries - 1])
        return Plan(points, (Purpose.ITERATE,) + (Purpose.CERTIFICATE,) * (len(points) - 1))

    def read(self, known: Known, plan: Plan, answers: Answers) -> NeighbourCertificate | None:
        """Compare F; a neighbour that violates a constraint on the outcome by more than x does is not better."""
        x, y = plan.points[0], answers[0]
        if y is None:
            return None
        here = known.leader.value(x, y)
        allowed = max(_excess(known, x, y), 0.0)
        told = [(z, answer) for z, answer in zip(plan.points[1:], answers[1:], strict=True) if answer is not None]
        values = {k: known.leader.value(z, a) for k, (z, a) in enumerate(told) if _excess(known, z, a) <= allowed}
        best = min(values, key=lambda k: known.sign * values[k], default=None)
        lower = best is not None and known.sign * (values[best] - here) < 0.0
        around = len(_neighbours(known, x))
        better, value = (told[best][0], values[best]) if best is not None and lower else (None, here)
        return NeighbourCertificate(
            x, here, better, value, around, len(told), len(plan.points), bool(told) and all_equal(answers)
        )


def _neighbours(known: Known, x: Vector) -> list[Vector]:
    return [] if known.grid is None else list(known.grid.neighbours(x, known.domain))


def _excess(known: Known, x: Vector, y: Vector) -> float:
    return 0.0 if known.outcomes is None else float(known.outcomes.values(x, y).max())
