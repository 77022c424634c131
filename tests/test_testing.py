"""The laws that ship with the package find those who break them, and say what was seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import pzos
from pzos import testing
from pzos.base.types import Query
from pzos.methods.solver import Stop
from pzos.testing import LAWS, LawBroken, answer, check_domain, check_solver, play, small_problem


@dataclass(frozen=True)
class AskCounts(pzos.PZOS):
    """Counts the calls of ``ask`` and lets the points drift with them."""

    calls: Iterator[int] = field(default_factory=itertools.count)

    def ask(self, task: Any, state: Any) -> Any:
        plan = super().ask(task, state)
        return replace(plan, points=tuple(point + 1e-9 * next(self.calls) for point in plan.points))


@dataclass(frozen=True)
class AskGrows(pzos.PZOS):
    """Plans one direction more with every call of ``ask``."""

    calls: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def ask(self, task: Any, state: Any) -> Any:
        return pzos.PZOS(self.step, self.radius, batch=next(self.calls)).ask(task, state)


@dataclass(frozen=True)
class TellCounts(pzos.PZOS):
    """Lets the iterate drift with the calls of ``tell``, whatever the answers."""

    calls: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        after, outcome = super().tell(task, state, plan, answers)
        return after._replace(x=task.known.domain.project(after.x + 1e-9 * next(self.calls))), outcome


@dataclass(frozen=True)
class OutcomeCounts(pzos.PZOS):
    """Reports another point with every call of ``tell``, though it moves as it should."""

    calls: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        after, outcome = super().tell(task, state, plan, answers)
        return after, outcome._replace(x=outcome.x + 1e-9 * next(self.calls))


@dataclass(frozen=True)
class ValueCounts(pzos.PZOS):
    """Reports another step size with every call of ``tell``."""

    calls: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        after, outcome = super().tell(task, state, plan, answers)
        return after, outcome._replace(step_size=float(next(self.calls)))


@dataclass(frozen=True)
class Scribbles(pzos.PZOS):
    """Writes into the answers it is told."""

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        answers[0].flags.writeable = True
        answers[0][:] = 0.0
        return super().tell(task, state, plan, answers)


@dataclass(frozen=True)
class Leaves(pzos.PZOS):
    """Walks out of the leader's set."""

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        after, outcome = super().tell(task, state, plan, answers)
        return after._replace(x=after.x + 10.0), outcome


@dataclass(frozen=True)
class LeavesAfterFailures(pzos.PZOS):
    """Behaves until a query fails, from iteration ``since`` on."""

    far: float = 10.0
    since: int = 0

    def tell(self, task: Any, state: Any, plan: Any, answers: Any) -> Any:
        after, outcome = super().tell(task, state, plan, answers)
        failed = state.t >= self.since and any(y is None for y in answers)
        return after._replace(x=after.x + self.far if failed else after.x), outcome


LAWBREAKERS: list[tuple[str, Callable[[], Any], str]] = [
    ("order_does_not_matter", AskCounts, "answers told in reverse: the queried points differ"),
    ("order_does_not_matter", TellCounts, "answers told in reverse: the queried points differ"),
    ("order_does_not_matter", AskGrows, "answers told in reverse: other queries were asked"),
    ("same_seed_same_run", AskCounts, "the same seed: the queried points differ"),
    ("same_seed_same_run", ValueCounts, "the same seed gives other records"),
    ("rebuilt_from_any_prefix", AskCounts, "a rebuild from 0 answers: the queried points differ"),
    ("tell_is_pure", Scribbles, r"tell\(\) wrote into the state, the plan or an answer"),
    ("tell_is_pure", TellCounts, r"tell\(\) twice on one state gives different iterates"),
    ("tell_is_pure", OutcomeCounts, r"tell\(\) twice on one state gives different outcomes"),
    ("tell_is_pure", AskCounts, r"ask\(\) after tell\(\) on the old state: the planned points differ"),
    ("tell_is_pure", AskGrows, r"ask\(\) after tell\(\) on the old state: the planned points differ"),
    ("iterates_stay_in_the_domain", Leaves, "an iterate left the domain"),
    ("failures_are_survived", LeavesAfterFailures, "failed queries led out of the domain"),
    (
        "failures_are_survived",
        lambda: LeavesAfterFailures(far=np.nan),
        r"query 2\.0 is at \[nan nan nan\]: expected a finite point",
    ),
    ("failures_are_survived", lambda: LeavesAfterFailures(far=np.nan, since=5), "failed queries led to .*nan"),
]


@pytest.mark.parametrize(
    ("law", "solver", "words"), LAWBREAKERS, ids=[f"{law}-{number}" for number, (law, _, _) in enumerate(LAWBREAKERS)]
)
def test_each_law_finds_who_breaks_it(law: str, solver: Callable[[], Any], words: str) -> None:
    with pytest.raises(LawBroken, match=words):
        getattr(testing, f"check_{law}")(solver(), small_problem())
    with pytest.raises(LawBroken):
        check_solver(solver())


def test_a_study_whose_plan_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking twice is the study's own promise: no solver can break it, but a changed study would."""
    ask = pzos.Study.ask
    calls = itertools.count()

    def drifting(self: pzos.Study) -> list[Query]:
        return [query._replace(x=query.x + next(calls)) for query in ask(self)]

    monkeypatch.setattr(pzos.Study, "ask", drifting)
    with pytest.raises(LawBroken, match=r"ask\(\) twice: the queried points differ"):
        testing.check_ask_is_idempotent(pzos.PZOS(), small_problem())


def test_a_count_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pzos.Study, "queries", property(lambda self: 1, lambda self, count: None), raising=False)
    with pytest.raises(LawBroken, match="1 queries counted, 18 asked"):
        testing.check_never_sees_the_follower(pzos.PZOS(), small_problem())


def test_a_solver_that_stops_by_itself_is_followed_no_further() -> None:
    @dataclass(frozen=True)
    class Stops(pzos.PZOS):
        def stop(self, task: Any, state: Any) -> Stop | None:
            return Stop.CONVERGED if state.t >= 2 else None

    check_solver(Stops())
    study, asked, records = play(small_problem(), Stops())
    assert study.step == len(records) == 2
    assert len(asked) == 6


def test_every_law_is_tried_and_has_a_sentence() -> None:
    named = {name for name in vars(testing) if name.startswith("check_")} - {"check_solver", "check_domain"}
    assert {law.__name__ for law in LAWS} == named
    assert all(law.__doc__ and law.__doc__.endswith(".") for law in LAWS)
    assert issubclass(LawBroken, AssertionError)
    assert issubclass(LawBroken, pzos.PzosError)


def test_a_problem_of_ones_own_is_used() -> None:
    seen: list[np.ndarray] = []

    def follower(x: np.ndarray) -> np.ndarray:
        seen.append(x)
        return np.abs(x)

    leader = pzos.leader_from_functions(lambda x, y: float(x @ x + y.sum()), lambda x, y: 2 * x, lambda x, y: 1 + 0 * y)
    check_solver(pzos.ZOS(), pzos.Problem(leader, follower, np.ones(4)))
    assert {x.shape for x in seen} == {(4,)}


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_small_problem_is_sound_from_both_sides(sense: Any) -> None:
    problem = small_problem(sense)
    y = answer(problem, Query(0, 0, problem.x0))
    assert pzos.check_leader(problem.leader, problem.x0, y)
    assert problem.leader.value(problem.x0, y) * (1.0 if sense == "min" else -1.0) > 0.0
    assert problem.domain.contains(problem.x0)


def test_answers_depend_on_the_address_alone() -> None:
    noisy = pzos.seeded(lambda x, generator: x + generator.standard_normal(x.size))
    problem = pzos.Problem(small_problem().leader, noisy, np.zeros(3))
    first, again = (answer(problem, Query(4, 2, np.zeros(3))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, answer(problem, Query(4, 3, np.zeros(3))))


def test_play_fails_and_orders_as_told() -> None:
    order: list[tuple[int, int]] = []

    def backwards(queries: list[Query]) -> list[Query]:
        order.extend((query.step, query.index) for query in reversed(queries))
        return queries[::-1]

    study, asked, records = play(
        small_problem(), pzos.PZOS(), steps=2, order=backwards, fails=lambda query: query.index == 2
    )
    assert order == [(0, 2), (0, 1), (0, 0), (1, 2), (1, 1), (1, 0)]
    assert [(query.step, query.index) for query in asked] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert study.failures == 2
    assert [record.step for record in records] == [0, 1]


class Ring:
    """No convex set: |x| = 1."""

    def project(self, x):
        return x / float(np.linalg.norm(x)) if x.any() else np.eye(1, x.size)[0]

    def contains(self, x, tolerance=1e-12):
        return abs(float(np.linalg.norm(x)) - 1.0) <= 1e-9

    def faults(self, dimension):
        return []


class Clumsy(pzos.Ball):
    """A ball that projects to its center."""

    def project(self, x):
        return x if self.contains(x) else 0.0 * x


@pytest.mark.parametrize("domain", [pzos.Simplex(1.0), pzos.Ball(0.0, 1.0), pzos.Polyhedron(A=[[1.0, 2.0]], b=[0.5])])
def test_sets_obey_their_laws(domain):
    check_domain(domain, 2)


@pytest.mark.parametrize("domain", [Ring(), Clumsy(0.0, 1.0)], ids=["ring", "clumsy"])
def test_what_is_no_set_or_no_projection_is_found(domain):
    with pytest.raises(LawBroken, match="is not the nearest point, or the set is not convex"):
        check_domain(domain, 2)


def test_a_set_of_another_dimension_is_refused():
    with pytest.raises(LawBroken, match="the set refuses dimension 3"):
        check_domain(pzos.Box([0.0, 0.0], 1.0), 3)
