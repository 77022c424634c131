"""A problem solved in one call: ``solve``, ``minimize``, ``maximize``.

The walk goes one way: the problem, a method for it (by default :mod:`pzos.methods.default`), an oracle that has the
followers answer, a study that drives both, a certificate of the point it ends in, and the result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pzos.answers.crew import COUNT, crew_of, size_of
from pzos.answers.oracle import Oracle
from pzos.base.checks import Faults, Must, instance_of
from pzos.base.columns import Columns
from pzos.base.errors import FollowerFailure, InvalidInput, PzosError
from pzos.base.types import Sense
from pzos.methods.named import as_method
from pzos.methods.solver import AnySolver, Stop, explained
from pzos.problem.follower import Follower
from pzos.problem.leader import Leader
from pzos.problem.outcomes import RISK, Outcomes
from pzos.problem.plain_cost import leader_from_cost
from pzos.problem.problem import Known, Problem, require_problem
from pzos.problem.sense import AnySense, as_sense
from pzos.problem.sets import Domain, box_of
from pzos.stationarity.purse import Purse, purse_of
from pzos.study.result import Result
from pzos.study.run import Callback, CtrlC, drive
from pzos.study.study import ORDER, Order, Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pzos.answers.failures import Tolerance
    from pzos.answers.table import Answers
    from pzos.study.front import Front

_CALLBACK = Must(lambda value: value is None or callable(value), "a function of a record", "or None")


def solve(
    problem: Problem,
    solver: AnySolver | None = None,
    *,
    steps: int | None = None,
    queries: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    seed: int = 0,
    monitor: bool = True,
    workers: int | None = None,
    executor: Executor | None = None,
    order: Order = "asked",
    tolerance: Tolerance | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    certificate: bool | int | None = None,
    answers: Answers | None = None,
    risk: float = 0.05,
    xtol: float | None = None,
    ftol: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """Run ``solver`` on ``problem`` until a limit is reached, and return the result.

    Without a solver one is chosen and configured (``methods/default.py``); ``result.explanation`` says which and why,
    and ``result.certificate`` how stationary its point is. ``queries`` is all that is paid for: a tenth of it, and at
    least 33, are kept for the certificate; of fewer than 132 none are, and it is made if the method leaves enough
    (``result.uncertified`` says why there is none). A certificate that is asked for by name comes on top:
    ``certificate=True``, or so many queries; ``certificate=False`` leaves it out.
    ``steps``, ``queries``, ``seconds`` and ``target`` are limits; without any, 1000 steps are taken.
    ``tolerance`` says what to do about a follower that fails. With ``path`` the run is durable: every answer is
    kept in that file before it is used, and the same call goes on where a killed one ended. ``answers`` of these
    followers, asked for any cost, are known from the first query on: :class:`pzos.Answers`, e.g. ``result.answers``.
    ``progress`` shows a bar; by default only on a terminal. Ctrl-C returns the partial result, which counts every query
    that was answered, also those of a certificate that was not finished.

    ``workers`` is how many queries are answered at a time: by that many processes, or by the ``executor`` handed over,
    whose size is found out if it is not said. The default method asks as many per step; who answers them changes no
    bit. With ``order="told"`` no worker waits for another: each gets its next query at once, and what is asked
    depends on the order in which answers came.

    Where the problem has constraints on outcomes, ``risk`` is the probability with which a trial point of the default
    method may violate each of them, as far as its model knows; a method of the paper is taken with an exact penalty
    (:class:`pzos.ExactPenalty`).

    The default method ends by itself when many steps gained nothing; with ``xtol`` or ``ftol`` after few, once its
    moves of x are as small as ``xtol`` or a step promises no more than ``ftol``. ``callback(record)`` hears of every
    step (:class:`pzos.Record`), and ends the run by returning True or raising StopIteration.
    """
    require_problem("solve", problem)
    RISK.require("solve", "risk", risk)
    known = problem.known()
    if tolerance is not None:
        from pzos.answers.failures import Tolerance

        instance_of(Tolerance, "a pzos.Tolerance", "or None").require("solve", "tolerance", tolerance)
    faults = Faults("solve")
    COUNT.note(faults, "workers", workers)
    ORDER.note(faults, "order", order)
    _CALLBACK.note(faults, "callback", callback)
    faults.raise_if_any()
    purse = purse_of(known, queries, certificate if solver is None else certificate or False)
    batch = 1 if solver is not None or order == "told" else _batch(workers, executor, path)
    solver, explanation = _method(known, solver, queries if queries is not None else steps, risk, batch, xtol, ftol)
    purse.require_able(solver)
    settings: dict[str, Any] = {"seed": seed, "steps": steps, "seconds": seconds, "target": target}
    settings |= {
        "queries": purse.method,
        "failure_rate": None if tolerance is None else tolerance.failure_rate,
        "monitor": monitor,
        "order": order,
    }
    settings |= {} if answers is None else {"answers": answers}
    timeout = None if tolerance is None else tolerance.timeout
    # Ctrl-C is heard where it can be told of: the result of a run is not lost with its certificate.
    with CtrlC(), crew_of(workers, executor, timeout) as (executor, size):
        study = Study(known, solver, **settings) if path is None else Study.open(path, known, solver, **settings)
        with _paid_for(study), study, _oracle(problem.follower, seed, executor, tolerance) as oracle:
            result = drive(study, oracle, progress=progress, workers=size, callback=callback)
        found = (explanation, explained(study.solver, study.state), known.leader.remark())
        kept_in = "" if path is None else os.fspath(path)
        result = replace(result, explanation=". ".join(part for part in found if part), kept_in=kept_in)
        with _paid_for(study):
            return certified(
                result, study, purse, lambda key: _oracle(problem.follower, key, executor, tolerance), path
            )


@contextlib.contextmanager
def _paid_for(study: Study) -> Iterator[None]:
    """Let an error that ends a run carry the answers so far: they are not lost with it."""
    try:
        yield
    except PzosError as error:
        with contextlib.suppress(InvalidInput):  # raised where nothing was answered yet
            error.answers = study.result().answers
            if isinstance(error, FollowerFailure):
                error.remedy += (
                    "; what was answered is in .answers of this error: solve(..., answers=...) begins with it"
                )
        raise


def _method(
    known: Known, solver: AnySolver | None, budget: int | None, risk: float, batch: int, xtol: Any, ftol: Any
) -> tuple[AnySolver, str]:
    """Return the solver as the problem and its tolerances need it, chosen if there is none, and why that one."""
    if solver is not None and known.outcomes is None and xtol is None and ftol is None:
        return solver, ""  # nothing to add; the default method, which is large, is not even loaded
    from pzos.methods.default import choose, ending_at, suited

    given, why = choose(known, budget, risk, batch) if solver is None else (suited(known, solver, risk), "")
    return ending_at("solve", given, xtol, ftol), why


def certified(
    result: Result,
    study: Study,
    purse: Purse,
    oracle_of: Callable[[int], AbstractContextManager[Oracle]],
    path: str | os.PathLike[str] | None,
) -> Result:
    """Return the result with a certificate of the point the study ended in, as far as the purse and Ctrl-C allow.

    ``oracle_of`` makes the oracle for a seed: the noise of a noisy follower must not be that of the run.
    """
    wanted, why_not = purse.left_for_certificate(result)
    if not wanted:
        return replace(result, uncertified=why_not)
    from pzos.stationarity.certificate import ended_with, ending_point, ending_solver, place_beside
    from pzos.stationarity.one_batch import ask_once

    ending = ending_solver(study, wanted)
    if ending is None:
        return replace(result, uncertified="none: around x there is no room for moves, or nothing was learned")
    file = None if path is None else place_beside(path, result.queries)
    with oracle_of(result.seed + 1) as oracle:
        found = ask_once("solve", study.known, ending, oracle, ending_point(study), seed=result.seed, path=file)
    stop = Stop.INTERRUPTED if found.interrupted else result.stop
    return replace(ended_with(result, found.report, found.queries), stop=stop)


def _batch(workers: int | None, executor: Executor | None, path: str | os.PathLike[str] | None) -> int:
    """Return how many queries a step of the default method has: as in the file, else as many as there are workers."""
    if path is not None:
        from pzos.durable.replay import kept_in

        kept = kept_in(path).batch
        if kept is not None:
            return kept
    if workers is None and executor is not None:
        with contextlib.suppress(InvalidInput):  # one that does not tell has one query at a time
            return size_of(executor)
    return workers or 1


def _oracle(
    follower: Follower, seed: int, executor: Executor | None, tolerance: Tolerance | None
) -> AbstractContextManager[Oracle]:
    if tolerance is None:
        return nullcontext(Oracle(follower, seed=seed, executor=executor))
    from pzos.answers.failures import TolerantOracle

    return TolerantOracle(follower, tolerance, seed=seed, executor=executor)


def minimize(
    cost: Leader | Callable[[Any, Any], Any],
    follower: Follower | Callable[..., Any],
    x0: npt.ArrayLike,
    method: str | AnySolver | None = "default",
    *,
    bounds: Any = None,
    domain: Domain | None = None,
    sense: AnySense = "min",
    step_of_x: npt.ArrayLike | None = None,
    grid: npt.ArrayLike | None = None,
    outcomes: Outcomes | Iterable[Outcomes] | None = None,
    name: str = "",
    decisions: Columns | Sequence[Any] | None = None,
    responses: Columns | Sequence[Any] | None = None,
    unit: str = "",
    **settings: Any,
) -> Result:
    """Minimise f(x, y*(x)) in one call: ``cost(x, y)`` is known, ``follower(x)`` gives y and can only be queried.

    ``cost`` is a plain function (differentiated by JAX if that is installed, else by PyTorch, else by differences;
    ``result.explanation`` says which) or a :class:`pzos.Leader`. ``bounds`` are pairs, one per entry of x or one for
    all, None where a side is open; for other sets give a ``domain``. ``method`` is a name or a solver. ``step_of_x``
    keeps every decision on multiples of a step (``grid``, as in a :class:`Problem`, is another name): nobody sets a
    price to six digits. ``outcomes`` are constraints on what the followers do; ``decisions`` and ``responses`` name the
    entries of x and y, and ``unit`` is that of the cost. ``settings`` are those of
    :func:`solve`: ``queries``, ``seconds``, ``xtol``, ``ftol``, ``callback``, ``answers``, ``path``, ...

    >>> import numpy as np, pzos
    >>> result = pzos.minimize(lambda x, y: (y - 3) @ (y - 3), lambda x: 4 - np.minimum(x, 2), [0.0], bounds=(0, 8),
    ...                        queries=20)
    >>> bool(result.success), round(result.fun, 6), result.nfev <= 20
    (True, 0.0, True)
    """
    where = f"{as_sense('minimize', sense)}imize"
    leader = cost if isinstance(cost, Leader) or not callable(cost) else leader_from_cost(cost)
    faults = Faults(where)
    a_cost = Must(lambda value: isinstance(value, Leader), "a function cost(x, y)", "pass the function itself")
    a_cost.note(faults, "cost", leader)
    unclear = bounds is not None and domain is not None
    faults.check(not unclear, "bounds", bounds, "no bounds beside a domain", "leave one out, or use an Intersection")
    twice = step_of_x is not None and grid is not None
    faults.check(not twice, "grid", grid, "no grid beside a step_of_x", "leave one out")
    chosen = domain if bounds is None else box_of(faults, bounds)
    faults.raise_if_any()
    named: dict[str, Any] = {"name": name, "decisions": decisions, "responses": responses, "unit": unit}
    steps = grid if step_of_x is None else step_of_x
    problem = Problem(leader, follower, x0, chosen, sense, outcomes=outcomes, grid=steps, **named)
    return solve(problem, as_method(where, settings.pop("solver", method)), **settings)


def maximize(
    cost: Leader | Callable[[Any, Any], Any],
    follower: Follower | Callable[..., Any],
    x0: npt.ArrayLike,
    method: str | AnySolver | None = "default",
    **settings: Any,
) -> Result:
    """Maximise f(x, y*(x)) in one call; arguments as for :func:`minimize`."""
    return minimize(cost, follower, x0, method, **{"sense": "max", **settings})


def front(
    problem: Problem,
    leaders: Sequence[Leader],
    *,
    senses: Sequence[Sense] | None = None,
    queries: int = 150,
    weights: int = 15,
    batch: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    order: Order = "asked",
    tolerance: Tolerance | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    answers: Answers | None = None,
) -> Front:
    """Return the front of two or three costs over the followers of ``problem``, from one memory of answers.

    ``senses`` says of each leader whether it is to go down ("min") or up ("max"); by default as in the problem. So many
    ``weights`` of the costs are followed, ``batch`` queries are asked at a time, by default as many as there are
    workers; with ``order="told"`` no worker waits for another. All else is as for :func:`solve`. Set, start and
    declared structure are the problem's; its own cost is not used.
    """
    from pzos.methods.front.costs import total
    from pzos.methods.front.solver import FrontSolver
    from pzos.study.front import front_of

    require_problem("front", problem)
    faults = Faults("front")
    COUNT.note(faults, "workers", workers)
    ORDER.note(faults, "order", order)
    faults.raise_if_any()
    chosen = (problem.sense,) * len(leaders) if senses is None else tuple(senses)
    if batch is None:
        batch = 1 if order == "told" else _batch(workers, executor, path)
    solver = FrontSolver(tuple(leaders), chosen, weights, batch)
    known = problem.with_leader(total(solver.leaders, solver.signs), sense="min").known()
    rate = None if tolerance is None else tolerance.failure_rate
    settings: dict[str, Any] = {"seed": seed, "queries": queries, "failure_rate": rate, "answers": answers,
                                "order": order}  # fmt: skip
    with CtrlC(), crew_of(workers, executor, None if tolerance is None else tolerance.timeout) as crew:
        study = Study(known, solver, **settings) if path is None else Study.open(path, known, solver, **settings)
        with _paid_for(study), study, _oracle(problem.follower, seed, crew.executor, tolerance) as oracle:
            drive(study, oracle, progress=progress, workers=crew.size)
        return front_of(study, explained(solver, study.state))
