"""The one door: every certificate and probe asks one batch, in memory or kept, and says what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from pzos.base.errors import FollowerFailure, InvalidInput
from pzos.base.types import Query, Response
from pzos.stationarity import (
    CertificateSolver,
    HullSolver,
    LipschitzSolver,
    SmoothingSolver,
    StopWhenStationary,
    certify,
    certify_hull,
    estimate_constants,
    smoothed_objects,
)
from pzos.stationarity.certificate import kept_at
from pzos.stationarity.one_batch import OneBatch, ask_once, known_at, report_on

from .instances import random_instance

SOLVERS: list[OneBatch[Any]] = [
    CertificateSolver(0.1, 20),
    HullSolver(0.1, 3),
    LipschitzSolver(0.1, 5),
    SmoothingSolver(0.1, 45),
]


class Dropping(pzos.Oracle):
    """An oracle that has no answer to some of the queries, by their number."""

    def __init__(self, problem: pzos.Problem, fails: Callable[[int], bool]) -> None:
        super().__init__(problem.follower)
        self.fails = fails

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        for number, response in enumerate(super().answer(queries), 1):
            lost = Response(response.step, response.index, np.empty(0), failure="out of order")
            yield lost if self.fails(number) else response


def out_of_order(x: np.ndarray) -> np.ndarray:
    raise RuntimeError("out of order")


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_without_the_centre_or_enough_answers_there_is_no_report(solver: OneBatch[Any]) -> None:
    problem = random_instance(1).problem
    asked = ask_once("here", problem.known(), solver, Dropping(problem, lambda number: number != 1))
    assert asked.report is None
    assert asked.failures == asked.queries - 1 > 0


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_a_few_failures_are_left_out(solver: OneBatch[Any]) -> None:
    problem = random_instance(1).problem
    asked = ask_once("here", problem.known(), solver, Dropping(problem, lambda number: number == 4))
    assert asked.failures == 1
    report: Any = asked.report
    if isinstance(solver, SmoothingSolver):
        assert report.pairs == 44
    else:
        assert report is not None
        assert report.queries == asked.queries


def test_too_many_failures_are_an_error_that_counts_them() -> None:
    problem = random_instance(1).problem
    broken = pzos.Problem(problem.leader, out_of_order, problem.x0)
    with pytest.raises(FollowerFailure, match="out of order"):
        certify(broken, delta=0.1)


def test_ctrl_c_is_no_failure_of_the_follower() -> None:
    problem = random_instance(1).problem
    calls = []

    def interrupted(x: np.ndarray) -> Any:
        calls.append(x)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt, match="certify: after 5 queries"):
        certify(pzos.Problem(problem.leader, interrupted, problem.x0), delta=0.1)


@pytest.mark.parametrize("x", [np.zeros(1), np.full(3, np.nan)])
def test_a_point_that_is_none_is_refused_by_every_door(x: np.ndarray) -> None:
    problem = random_instance(1).problem
    for door in (certify, certify_hull):
        with pytest.raises(InvalidInput, match=door.__name__):
            door(problem, x, delta=0.1)
    for probe in (estimate_constants, smoothed_objects):
        with pytest.raises(InvalidInput, match=probe.__name__):
            probe(problem, x, radius=0.1)


def test_x_takes_the_place_of_x0_and_cannot_be_changed() -> None:
    known = random_instance(1).problem.known()
    assert known_at("here", known, None) is known
    moved = known_at("here", known, [1.0, 2.0, 3.0])
    assert moved.x0.tolist() == [1.0, 2.0, 3.0]
    assert not moved.x0.flags.writeable
    assert moved.leader is known.leader


def test_a_kept_batch_is_read_again_without_a_query(tmp_path: Path) -> None:
    problem = random_instance(2).problem
    path, solver = tmp_path / "kept.study", CertificateSolver(0.1, 20, confidence=0.9)
    x = problem.x0 + 0.25
    found = report_on("here", problem, solver, x, seed=4, path=path)
    again = ask_once("here", problem.known(), solver, None, x, seed=4, path=path)
    assert repr(again.report) == repr(found)
    assert again.queries == 41
    from pzos.durable.replay import summary

    identity = summary(path).header["identity"]
    assert repr(kept_at(path, identity, x, problem)) == repr(found)
    assert kept_at(path, {**identity, "solver": {"type": "pzos.PZOS"}}, x, problem) is None


def test_a_certificate_in_memory_and_one_kept_have_the_same_bits(tmp_path: Path) -> None:
    problem = random_instance(2).problem
    solver = CertificateSolver(0.1, 20)
    kept = report_on("here", problem, solver, None, seed=0, path=tmp_path / "kept.study")
    free = certify(problem, delta=0.1, queries=41)
    assert kept.partial.upper == free.partial.upper
    assert kept.full.upper == free.full.upper


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (
            lambda: StopWhenStationary(pzos.PZOS(), 0.1, 0.1, radius="x"),
            "radius = 'x': expected a pos",
        ),
        (lambda: StopWhenStationary(pzos.PZOS(), 0.1, 0.1, radius=0.2), "radius = 0.2: expected at"),
        (lambda: HullSolver(0.1, step="x"), "step = 'x': expected a positive number"),
        (lambda: HullSolver(0.1, step=0.2), "step = 0.2: expected at most delta = 0.1"),
        (lambda: HullSolver("x", step=0.2), "delta = 'x': expected a positive number"),
        (lambda: LipschitzSolver(0.1, step="x"), "step = 'x': expected a positive number"),
        (lambda: LipschitzSolver(0.1, step=0.2), "step = 0.2: expected at most radius = 0.1"),
        (lambda: certify(random_instance(1).problem, "x", delta=0.1), "x = 'x': expected an array of numbers"),
    ],
)
def test_lengths_and_points_that_are_none_are_named(build: Callable[[], Any], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build()
    assert expected in str(caught.value)
