"""The rows of the suite: each is a function (door, seed) that asks until the budget is spent.

Ours, the related work and the peers of ``benchmarks/unseen.py``. Methods of the paper and of the related work leave
their step free: it is tuned on an instance that is never reported, twelve candidates each, in units of the bounds and
of F at x0. Where simulations are too slow for that the row is left out with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import pzos
from pzos.methods.steps import Diminishing, Power
from suite.family import Door
from testbed.unseen.instance import Vector
from testbed.unseen.peers import BUDGET_AWARE, Unfit, unit_of
from testbed.unseen.runs import PEERS

Method = Callable[[Door, int], None]
#: (unit of x, unit of the step, number of decisions) -> candidates.
Grid = Callable[[float, float, int], Sequence[Any]]
TUNING_SEED = 100
#: Steps of the grid, in units of the decisions per unit of F.
SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Tuning asks twelve times the budget: only where that takes less than so many seconds.
TUNING_SECONDS = 120.0
#: Queries a step of ours may end above the budget; they are counted, and their values are left out.
SLACK = 200
_RADIUS = 0.05


def solve(solver: Any, door: Door, seed: int, x0: Vector | None = None) -> None:
    """Run ``pzos.solve`` with a solver, or with its default method where it is None."""
    budget = door.budget
    door.budget = budget + SLACK
    problem = door.instance.problem(door, x0)
    patient = pzos.Tolerance(attempts=1, policy="drop", failure_rate=1.0)
    pzos.solve(problem, solver, queries=budget, seed=seed, progress=False, certificate=False, tolerance=patient)


def _plain(kind: Callable[..., Any]) -> Grid:
    return lambda x, step, n: [
        kind(step=rule(size * step), radius=_RADIUS * x) for size in SIZES for rule in (float, Diminishing)
    ]


def _gaussian(kind: Callable[..., Any]) -> Grid:
    """Probe as far as on the sphere: a normal vector is sqrt(d) long."""
    return lambda x, step, n: _plain(kind)(x / n**0.5, step, n)


def _spsa(x: float, step: float, n: int) -> Sequence[Any]:
    return [
        pzos.SPSA(Power(size * step, 0.602, offset=10.0), Power(radius * x, 0.101))
        for size in SIZES
        for radius in (_RADIUS / n**0.5, _RADIUS)
    ]


GRIDS: dict[str, Grid] = {
    "pzos-tuned": _plain(pzos.PZOS),
    "zos-tuned": _plain(pzos.ZOS),
    "pzobo": _gaussian(pzos.PZOBO),
    "nesterov-spokoiny": _gaussian(pzos.NesterovSpokoiny),
    "zsol": _plain(pzos.ZSOL),
    "gfm": _plain(pzos.GFM),
    "spsa": _spsa,
}
_chosen: dict[tuple[str, str, int], Any] = {}


def tuned(name: str, door: Door, seed: int) -> None:
    """Run the candidate that was best at this budget on the tuning instance."""
    family = door.instance.of
    key = (name, family.name, door.budget)
    if key not in _chosen:
        _chosen[key] = _best_candidate(GRIDS[name], door)
    solve(_chosen[key], door, seed)


def _best_candidate(grid: Grid, door: Door) -> Any:
    family, folder = door.instance.of, door.instance.folder
    practice = family.stated(TUNING_SEED, folder)
    start = practice.true_value(practice.draft.x0)  # the first answer may compile, so the second is timed
    practice.seconds = 0.0
    unit = float(unit_of(practice).mean())
    practice.answer(practice.domain.project(practice.draft.x0 + 1e-3 * unit), practice.noise(2))
    trials = 12 * door.budget
    if practice.seconds * trials > TUNING_SECONDS:
        raise Unfit(f"tuning it takes {trials} simulations of {practice.seconds:.2g} s")
    candidates = grid(unit, unit**2 / max(abs(start), 1e-12), practice.draft.x0.size)

    def found(candidate: Any) -> float:
        trial = Door(practice, door.budget)
        try:
            with np.errstate(all="ignore"):
                solve(candidate, trial, TUNING_SEED)
        except (pzos.PzosError, ArithmeticError, ValueError):  # so long a step that the simulator broke
            return np.inf
        return min(trial.values, default=np.inf)

    return min(candidates, key=found)


#: Ours and the related work, by name.
OURS: dict[str, Method] = {
    "default": partial(solve, None),
    "pzos-secant": lambda door, seed: solve(pzos.SecantPZOS(), door, seed),
    "pzos-memory": lambda door, seed: solve(pzos.MemoryPZOS(), door, seed),
    **{name: partial(tuned, name) for name in GRIDS},
}
#: Every row, cheap ones first among the peers.
METHODS: dict[str, Method] = {**OURS, **PEERS}  # type: ignore[dict-item]
#: Rows that use the budget in what they do: one run per budget.
AWARE = (*BUDGET_AWARE, *GRIDS)
