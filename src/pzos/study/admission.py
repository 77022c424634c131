"""What a study lets in: addresses, answers and problems, each refused with what was expected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pzos.answers.table import Answers
from pzos.base.checks import Faults, instance_of, shown
from pzos.base.errors import InvalidAnswer
from pzos.base.types import Query, Response, Vector, float_array
from pzos.methods.solver import Constrained, KeepingGrid
from pzos.problem.differences import WrongGradient
from pzos.problem.problem import Known, Problem


def _check_given(faults: Faults, answers: Any, known: Any) -> None:
    """Note why these answers cannot be known before the first query of the problem."""
    fits = answers is None or isinstance(answers, Answers)
    remedy = 'try pzos.Answers(x, y), result.answers or pzos.Answers.open("a.study")'
    faults.check(fits, "answers", answers, "a table of answers", remedy)
    if isinstance(answers, Answers) and isinstance(known, Known):
        answers.check(faults, known)
        answers.check_names(faults, known)


def check_address(query: Query | Response, own_of: Callable[[Query], Query | None]) -> None:
    """Refuse what is no query, and a query of another study that happens to have an open address."""
    if not isinstance(query, Query | Response):
        raise InvalidAnswer(f"query = {shown(query)}: expected a Query; pass one that study.ask() returned")
    own = own_of(query) if isinstance(query, Query) else None
    if own is None or not isinstance(query, Query):
        return
    if query is not own and not np.array_equal(query.x, own.x):
        raise InvalidAnswer(
            f"query {query.step}.{query.index}: x is another point than this study asks about: expected one of its own "
            "queries; was it asked by a study with another seed, solver or problem?"
        )


def told_vector(query: Query | Response, y: Any) -> Vector:
    """Return an answer given by hand as a float64 vector of its own."""
    try:
        return np.atleast_1d(float_array(y))
    except (TypeError, ValueError) as error:
        raise InvalidAnswer(
            f"query {query.step}.{query.index}: y = {shown(y)}: expected a vector of numbers ({error}); "
            "tell a 1-D array, or report the failure with study.fail(query, reason)"
        ) from error


def check_answer(response: Response, shape: tuple[int, ...]) -> None:
    """Refuse an answer that is not a finite vector of the length of earlier answers (``shape`` () if none)."""
    y = response.y
    where = f"query {response.step}.{response.index}"
    if y.ndim != 1 or y.size == 0:
        raise InvalidAnswer(f"{where}: y has shape {y.shape}: expected a vector; return a 1-D array")
    if shape not in ((), y.shape):
        raise InvalidAnswer(
            f"{where}: y has {y.size} entries: expected {shape[0]}, as in earlier answers; "
            "a follower's response must keep its length"
        )
    if not np.isfinite(y).all():
        entry = int(np.nonzero(~np.isfinite(y))[0][0])
        raise InvalidAnswer(
            f"{where}: y[{entry}] = {y[entry]}: expected finite numbers; "
            "repair the follower, or report the failure with study.fail(query, reason)"
        )


def check_taken(known: Known, iterate: Vector, query: Query, y: Vector) -> None:
    """Refuse an answer that the leader can take neither at its own point nor, as PZOS takes it, at the iterate.

    Constraints on outcomes must be defined at its own point.
    """
    leader = known.leader
    try:
        if known.outcomes is not None:
            known.outcomes.values(query.x, y)
        leader(query.x, y)
    except WrongGradient:  # no fault of the answer, which is kept; whoever uses the gradient will hear of it
        return
    except Exception as error:  # whatever it is, the answer must not be kept
        if query.x is not iterate and known.outcomes is None:
            with contextlib.suppress(Exception):
                leader(iterate, y)
                return
        raise InvalidAnswer(
            f"query {query.step}.{query.index}: y = {shown(y)}: expected an answer that the leader can take "
            f"({type(error).__name__}: {error}); correct it, or report the failure with study.fail(query, reason)"
        ) from error


def check_same(told: Response, response: Response) -> None:
    """Refuse an answer that differs from the one already told."""
    same = told.failure == response.failure and np.array_equal(told.y, response.y)
    if not same:
        raise InvalidAnswer(
            f"query {response.step}.{response.index}: was already answered differently: expected the same answer; "
            "a follower must be a function of x (declare noise with pzos.seeded)"
        )


def check_known(faults: Faults, known: Any, solver: Any, answers: Any = None) -> None:
    """Note a fault unless ``known`` is the known part of a problem, of which the solver heeds all constraints.

    And unless ``answers`` is a table that can be of its followers, or None.
    """
    _check_given(faults, answers, known)
    hint = ": a study never sees the follower" if isinstance(known, Problem) else ""
    must = instance_of(Known, "the known part of a problem", f"pass problem.known(){hint}")
    if not must.note(faults, "known", known):
        return
    if known.grid is not None:
        faults.check(isinstance(solver, KeepingGrid), "solver", solver, "one that keeps to the grid of the problem",
                     "use the default, pzos.CompositeTrustRegion(), or leave the grid out")  # fmt: skip
    if known.outcomes is not None:
        faults.check(isinstance(solver, Constrained), "solver", solver, "one that takes constraints on outcomes",
                     "use pzos.ConstrainedTrustRegion(), or pzos.ExactPenalty(PZOS(...))")  # fmt: skip
