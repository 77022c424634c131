"""The only loop of the package, and the one-call doors built on it: solve, minimize, maximize."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pzos.answers.oracle import Oracle
from pzos.base.types import Purpose, Response, Sense
from pzos.methods.solver import AnySolver, Stop
from pzos.problem.follower import Follower
from pzos.problem.leader import Leader
from pzos.problem.problem import Problem, require_problem
from pzos.problem.sets import Domain
from pzos.study.ledger import NAMES, ordered
from pzos.study.progress import watched
from pzos.study.result import Result
from pzos.study.study import Study
from pzos.study.trace import Record

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pzos.answers.failures import Tolerance

#: The library's logger: silent unless the program that uses the library configures logging.
logger = logging.getLogger("pzos")
logger.addHandler(logging.NullHandler())


#: Ends after which there is time, and a point worth certifying.
_CERTIFIED_ENDS = (Stop.STEPS, Stop.QUERIES, Stop.TARGET, Stop.CONVERGED)


def iterate(study: Study, oracle: Oracle) -> Iterator[Record]:
    """Drive a study to its end, yielding one record per step.

    Progress bars, logging, early stopping and live plots are consumers of this generator.
    """
    while not study.done:
        for response in _responses(study, oracle):
            record = study.receive(response)
            if record is not None:
                yield record


def _responses(study: Study, oracle: Oracle) -> Iterator[Response]:
    """Have the open queries answered.

    A batched follower is asked for the whole batch even where a study that was rebuilt has part of its answers,
    because the last bits of a batched answer depend on the shape of the batch.
    """
    queries = study.ask()
    if not oracle.follower.batched:
        return oracle.answer(queries)
    open_now = {query.index for query in queries}
    return (response for response in oracle.answer(study.batch()) if response.index in open_now)


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
    executor: Executor | None = None,
    tolerance: Tolerance | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    certificate: bool | int | None = None,
) -> Result:
    """Run ``solver`` on ``problem`` until a limit is reached, and return the result.

    Without a solver one is chosen and configured (``methods/default.py``); ``result.explanation`` says which and why,
    and ``result.certificate`` how stationary its point is. The certificate's queries come on top of the limits and are
    counted in ``result.monitoring``: 33, or as many as ``certificate`` says; ``certificate=False`` leaves it out.
    ``steps``, ``queries`` (the algorithm's), ``seconds`` and ``target`` are limits; without any, 1000 steps are
    taken. ``executor`` answers the queries of a step in parallel, with the same bits. ``tolerance`` says what to do
    about a follower that fails. With ``path`` the run is durable: every answer is kept in that file before it is used,
    and the same call goes on where a killed one ended. ``progress`` shows a bar; by default only on a terminal.
    Ctrl-C returns the partial result.
    """
    require_problem("solve", problem)
    settings: dict[str, Any] = {
        "seed": seed,
        "steps": steps,
        "queries": queries,
        "seconds": seconds,
        "target": target,
        "failure_rate": None if tolerance is None else tolerance.failure_rate,
        "monitor": monitor,
    }
    known = problem.known()
    explanation = ""
    if solver is None:
        from pzos.methods.default import choose

        solver, explanation = choose(known, queries if queries is not None else steps)
        certificate = True if certificate is None else certificate
    study = Study(known, solver, **settings) if path is None else Study.open(path, known, solver, **settings)
    with study, _oracle(problem.follower, seed, executor, tolerance) as oracle:
        result = replace(drive(study, oracle, progress=progress), explanation=explanation)
    if not certificate or result.stop not in _CERTIFIED_ENDS:
        return result
    from pzos.stationarity.ending import ending_certificate

    # Another seed: the noise of a noisy follower must not be that of the run.
    with _oracle(problem.follower, seed + 1, executor, tolerance) as oracle:
        asked = None if certificate is True else certificate
        found = ending_certificate(study.task, study.state, oracle, queries=asked, path=path, spent=result.queries)
    spent = 0 if found is None else found.queries
    ledger = ordered({**result.ledger, NAMES[Purpose.CERTIFICATE.value]: spent})
    return replace(result, certificate=found, monitoring=result.monitoring + spent, ledger=ledger)


def _oracle(
    follower: Follower, seed: int, executor: Executor | None, tolerance: Tolerance | None
) -> AbstractContextManager[Oracle]:
    if tolerance is None:
        return nullcontext(Oracle(follower, seed=seed, executor=executor))
    from pzos.answers.failures import TolerantOracle

    return TolerantOracle(follower, tolerance, seed=seed, executor=executor)


def drive(study: Study, oracle: Oracle, *, progress: bool | None = None) -> Result:
    """Exhaust :func:`iterate` and return the result; Ctrl-C ends the study where it is."""
    logger.debug("start: %s, %r, %r", study.known.name or "unnamed problem", study.solver, study.limits)
    try:
        for _ in watched(iterate(study, oracle), study, progress):
            pass
    except KeyboardInterrupt:
        study.interrupt()
    result = study.result()
    logger.info(
        "%s after %d steps and %d queries: F = %.8g", result.stop.value, result.steps, result.queries, result.value
    )
    return result


def minimize(
    leader: Leader,
    follower: Follower | Callable[..., Any],
    x0: npt.ArrayLike,
    solver: AnySolver | None = None,
    *,
    domain: Domain | None = None,
    **limits: Any,
) -> Result:
    """Minimise f(x, y*(x)) in one call; keyword arguments as for :func:`solve`."""
    return _quick("min", leader, follower, x0, solver, domain, limits)


def maximize(
    leader: Leader,
    follower: Follower | Callable[..., Any],
    x0: npt.ArrayLike,
    solver: AnySolver | None = None,
    *,
    domain: Domain | None = None,
    **limits: Any,
) -> Result:
    """Maximise f(x, y*(x)) in one call; keyword arguments as for :func:`solve`."""
    return _quick("max", leader, follower, x0, solver, domain, limits)


def _quick(
    sense: Sense,
    leader: Leader,
    follower: Follower | Callable[..., Any],
    x0: npt.ArrayLike,
    solver: AnySolver | None,
    domain: Domain | None,
    limits: dict[str, Any],
) -> Result:
    return solve(Problem(leader, follower, x0, domain, sense), solver, **limits)
