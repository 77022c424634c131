"""pzos as a generator of the standard that libEnsemble, Xopt and Optimas share (package ``gest-api``).

The standard's programs evaluate points; here a point is a query, and what an evaluation brings back is the followers'
response y*(x), given as the observables of the VOCS. The leader f, and with it F(x) = f(x, y), stays in the generator.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pzos.base.checks import Faults, Must, whole
from pzos.base.errors import InvalidInput
from pzos.base.types import Query, Sense
from pzos.methods.default import suited
from pzos.methods.solver import AnySolver
from pzos.problem.follower import Nobody
from pzos.problem.intersections import Intersection
from pzos.problem.leader import Leader
from pzos.problem.outcomes import Outcomes, caps
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain
from pzos.study.events import difference
from pzos.study.result import Result
from pzos.study.study import Study

_ELSEWHERE = Nobody("the followers of a generator are asked by the program that drives it")
#: Variables that went through a table of text may have lost their last digits.
_ROUNDING = 1e-9
#: Queries a step may have before identities (step * this + index) of two steps would meet.
_PER_STEP = 10**6


class PzosGenerator:
    """A study with the standard's words: ``suggest`` asks, ``ingest`` tells, ``finalize`` closes.

    The variables of ``vocs`` are the entries of x, in order, and their bounds the set X; its observables, in order, are
    the followers' response (each a number or an array). An objective, if there is one, says only whether to minimise or
    maximise. Constraints bound observables that are numbers; further ``outcomes`` may be given as for
    :class:`pzos.Problem`, and so may a ``grid`` and a ``domain`` inside the bounds, e.g. ``pzos.Polyhedron(A, b)`` for
    A x <= b, which the standard has no word for. ``x0`` is the start (by default each variable's default value, else
    the middle of its bounds, or the nearest point of the domain). ``path`` makes the study durable. Further
    ``settings`` are those of :class:`pzos.Study`.

    The points of a two-point estimate lie up to its radius outside the bounds. With the package ``gest-api`` installed,
    an instance is a ``gest_api.Generator``.
    """

    returns_id = True

    def __init__(
        self,
        vocs: Any,
        leader: Leader,
        solver: AnySolver,
        *,
        x0: Sequence[float] | None = None,
        path: str | None = None,
        outcomes: Outcomes | Sequence[Outcomes] | None = None,
        domain: Domain | None = None,
        grid: float | Sequence[float] | None = None,
        **settings: Any,
    ) -> None:
        self._validate_vocs(vocs)
        _register(type(self))
        self.vocs = vocs
        lower, upper = (np.array(side, dtype=np.float64) for side in zip(*vocs.bounds, strict=True))
        box = Box(lower, upper)
        allowed = box if domain is None else Intersection([box, domain])
        start = allowed.project(_start(vocs, lower, upper)) if x0 is None else np.asarray(x0, dtype=np.float64)
        given = [outcomes] if isinstance(outcomes, Outcomes) else list(outcomes or ())
        kept = [*_bounded(vocs), *given]
        named = list(vocs.variable_names)
        problem = Problem(
            leader, _ELSEWHERE, start, allowed, _sense(vocs), outcomes=kept or None, grid=grid, decisions=named
        )
        known = problem.known()
        solver = suited(known, solver)
        self.study = Study(known, solver, **settings) if path is None else Study.open(path, known, solver, **settings)
        self.ignored = 0
        self._handed_out: dict[int, Query] = {}

    def _validate_vocs(self, vocs: Any) -> None:
        """Raise ValueError unless pzos can work with these variables and outputs."""
        faults = Faults("PzosGenerator")
        kinds = {name: type(variable).__name__ for name, variable in vocs.variables.items()}
        odd = [f"{name} ({kind})" for name, kind in kinds.items() if kind != "ContinuousVariable"]
        faults.check(bool(kinds) and not odd, "vocs.variables", odd, "continuous variables", "give each its bounds")
        observables = list(vocs.observables)
        faults.check(bool(observables), "vocs.observables", observables, "the followers' response", "name its entries")
        faults.check(len(vocs.objectives) <= 1, "vocs.objectives", list(vocs.objectives), "one at most", "choose one")
        unknown = [name for name in vocs.constraints if name not in observables]
        faults.check(not unknown, "vocs.constraints", unknown, "names of observables", "add them to the observables")
        faults.raise_if_any()

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return queries that were not handed out yet; exactly ``num_points`` of them, or ValueError.

        A study of order "told" has as many as its limits allow; any other those of its step.
        """
        waiting = [] if self.study.done else self.study.ask()
        waiting = [query for query in waiting if _identity(query) not in self._handed_out]
        wanted = max(num_points or 1, len(waiting)) if self.study.order == "told" else 0
        while len(waiting) < wanted and (query := self.study.ask_one()) is not None:
            waiting.append(query)
        if num_points is not None:
            _at_most(len(waiting)).require("suggest", "num_points", num_points)
            waiting = waiting[:num_points]
        self._handed_out |= {_identity(query): query for query in waiting}
        return [self._point(query) for query in waiting]

    def _point(self, query: Query) -> dict[str, Any]:
        entries = {name: float(entry) for name, entry in zip(self.vocs.variable_names, query.x, strict=True)}
        constants = {name: constant.value for name, constant in self.vocs.constants.items()}
        return {**entries, **constants, "_id": _identity(query)}

    def ingest(self, results: list[dict[str, Any]]) -> None:
        """Take the responses to suggested points; points from elsewhere (no ``_id``) cannot be used and are counted."""
        ours = [row for row in results if "_id" in row]
        # What was suggested before a restart is open in the study: identities are addresses, the same in every session.
        known = self._handed_out | {_identity(query): query for query in self.study.ask()}
        unknown = [row["_id"] for row in ours if row["_id"] not in known]
        if unknown:
            raise InvalidInput(
                f"ingest: _id = {unknown}: expected identities that suggest() gave; leave out points of others"
            )
        told = [(known[row["_id"]], row) for row in ours]
        moved = [row["_id"] for query, row in told if self._is_moved(query, row)]
        if moved:
            raise InvalidInput(
                f"ingest: _id = {moved}: the variables are not those that were suggested: expected the same x; "
                "an answer belongs to the point it was asked at"
            )
        self.ignored += len(results) - len(ours)
        for query, row in told:
            response = self._response(row)
            if response is None:
                self.study.fail(query, "the evaluation gave no finite response")
            else:
                self.study.tell(query, response)
        if self.study.order == "asked":
            self._handed_out = {key: query for key, query in self._handed_out.items() if query.step >= self.study.step}

    def _is_moved(self, query: Query, row: Mapping[str, Any]) -> bool:
        """Tell whether a row repeats the variables, and they are others than were suggested, by more than rounding."""
        names = self.vocs.variable_names
        if not all(name in row for name in names):
            return any(name in row for name in names)
        try:
            x = np.array([row[name] for name in names], dtype=np.float64)
        except (TypeError, ValueError):
            return True
        return not difference(query.x, x) <= _ROUNDING

    def _response(self, row: Mapping[str, Any]) -> Any:
        try:
            parts = [np.atleast_1d(np.asarray(row[name], dtype=np.float64)).ravel() for name in self.vocs.observables]
        except (KeyError, TypeError, ValueError):
            return None
        if self.vocs.constraints and any(part.size != 1 for part in parts):
            raise InvalidInput(
                "ingest: an observable is an array: expected numbers, because vocs.constraints bound entries by name; "
                "name each entry, or give the constraints as outcomes"
            )
        response = np.concatenate(parts)
        return response if np.isfinite(response).all() else None

    def finalize(self) -> None:
        """Close the study's file, if it has one."""
        self.study.close()

    def result(self) -> Result:
        """Return what is known so far."""
        return self.study.result()


def _at_most(count: int) -> Must:
    """What the number of points asked for must be: the queries of a step depend on the answers to the step before."""
    return whole(
        0,
        "ingest results first, or ask with num_points=None",
        most=count,
        expected=f"at most {count}, the queries this step still has",
    )


def _identity(query: Query) -> int:
    return query.step * _PER_STEP + query.index


def _start(vocs: Any, lower: Any, upper: Any) -> Any:
    defaults = [variable.default_value for variable in vocs.variables.values()]
    middle = (lower + upper) / 2.0
    return np.array([m if default is None else default for m, default in zip(middle, defaults, strict=True)])


def _bounded(vocs: Any) -> list[Outcomes]:
    """Return the constraints of the VOCS on its observables."""
    names, found = list(vocs.observables), []
    for name, constraint in vocs.constraints.items():
        kind = type(constraint).__name__
        low, high = constraint.range if kind == "BoundsConstraint" else (-np.inf, np.inf)
        high = constraint.value if kind == "LessThanConstraint" else high
        low = constraint.value if kind == "GreaterThanConstraint" else low
        found.append(caps(high, [names.index(name)], lower=low, names=[name]))
    return found


def _sense(vocs: Any) -> Sense:
    kinds = [type(objective).__name__ for objective in vocs.objectives.values()]
    return "max" if kinds == ["MaximizeObjective"] else "min"


def _register(kind: type) -> None:
    """Let ``isinstance(generator, gest_api.Generator)`` be true where the package is installed."""
    try:
        standard = importlib.import_module("gest_api.generator")
    except ImportError:
        return
    standard.Generator.register(kind)
