"""The front a run has found: points, decisions, the volume they dominate, knees, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, aligned, counted
from pzos.base.types import Matrix, Sense, Vector, float_array
from pzos.methods.front.costs import Rows, hypervolume, knees, undominated
from pzos.methods.front.solver import FrontSolver, FrontState
from pzos.study.result import Result
from pzos.study.study import Study


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Told points none of which is worse than another in every cost, sorted by the first cost.

    ``points`` holds the costs, one row each, in their own senses; ``decisions`` and ``responses`` x and y*(x) there;
    ``knees`` are the rows where little more of one cost takes much of another. ``result`` is that of the run, with
    ``result.answers`` for further costs; its F is the sum of the costs, turned to go down.
    """

    points: Matrix
    decisions: Matrix
    responses: Matrix
    knees: Rows
    names: tuple[str, ...]
    senses: tuple[Sense, ...]
    result: Result

    @property
    def _signs(self) -> Vector:
        return np.array([1.0 if sense == "min" else -1.0 for sense in self.senses])

    def hypervolume(self, reference: npt.ArrayLike | None = None) -> float:
        """Return the volume of costs that the front dominates, up to ``reference``: by default its own worst costs."""
        costs = self._signs * self.points
        if reference is None:
            return hypervolume(costs, costs.max(axis=0))
        point = np.atleast_1d(float_array(reference))
        faults = Faults("hypervolume")
        fits = point.shape == (costs.shape[1],)
        faults.check(fits, "reference", reference, f"{costs.shape[1]} costs", "one for each leader")
        faults.raise_if_any()
        return hypervolume(costs, self._signs * point)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        rows = [("front", f"{counted(len(self), 'point')} from {counted(self.result.queries, 'query')}")]
        for k, (name, sense) in enumerate(zip(self.names, self.senses, strict=True)):
            low, high = self.points[:, k].min(), self.points[:, k].max()
            rows.append((f"{name} ({sense})", f"{low:.6g} to {high:.6g}"))
        rows += [("knee", ", ".join(f"{cost:.6g}" for cost in self.points[row])) for row in self.knees]
        return aligned(rows)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the front with its knees marked; returns the matplotlib figure and, with ``path``, writes it there."""
        from pzos.report.fronts import plot_front

        return plot_front(self, path)

    def page(self, path: str | Path) -> Path:
        """Write the picture as one self-contained HTML page, the decision of a point on hover (extra ``report``)."""
        from pzos.report.fronts import write_page

        return write_page(self, path)


def front_of(study: Study, explanation: str = "") -> Front:
    """Return the front that a study of a :class:`pzos.FrontSolver` has found so far."""
    solver, state, faults = study.solver, study.state, Faults("front_of")
    if not isinstance(solver, FrontSolver) or not isinstance(state, FrontState):
        faults.check(False, "study", solver, "a study of a FrontSolver", "use pzos.front(problem, leaders)")
        raise faults.error()
    faults.check(bool(state.points), "study", study.step, "an answered query", "let it go on")
    faults.raise_if_any()
    rows = undominated(state.costs)
    rows = rows[np.argsort(state.costs[rows, 0], kind="stable")]
    if solver.senses[0] == "max":
        rows = rows[::-1]
    names = tuple(leader.name for leader in solver.leaders)
    if len(set(names)) < len(names):
        names = tuple(f"cost {k + 1}" for k in range(len(names)))
    return Front(
        solver.signs * state.costs[rows],
        np.array([state.points[row] for row in rows]),
        np.array([state.answers[row] for row in rows]),
        knees(state.costs[rows]),
        names,
        solver.senses,
        study.result(explanation),
    )
