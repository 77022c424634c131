"""Laws that every solver must obey, as functions: run your own solver through them.

    from pzos.testing import check_solver

    def test_my_solver():
        check_solver(MySolver())

Each ``check_...`` runs the solver on a small problem (yours, or one built in) and raises :class:`LawBroken` with what
was seen. They drive the solver through a :class:`pzos.Study`, as every run does, and need no test framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pzos.answers.oracle import Oracle
from pzos.base.errors import PzosError
from pzos.base.keys import Keys, Role
from pzos.base.types import Query, Sense, Vector
from pzos.methods.estimators import Plan
from pzos.methods.solver import AnySolver, Task
from pzos.problem.follower import Follower
from pzos.problem.leader import leader_from_functions
from pzos.problem.problem import Problem
from pzos.problem.sets import Box, Domain
from pzos.study.result import Record
from pzos.study.study import Study

STEPS = 6


class LawBroken(PzosError, AssertionError):
    """A solver broke a law; the message says which, and what was seen."""


def small_problem(sense: Sense = "min") -> Problem:
    """Return a problem with 3 decisions in a box, 2 responses with kinks, and a cost that is not linear in them.

    ``sense="max"`` maximises the negated cost: the same problem seen from the other side.
    """
    mix = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
    sign = 1.0 if sense == "min" else -1.0

    def value(x: Vector, y: Vector) -> float:
        return sign * float(np.sum((x - 0.7) ** 2) + np.sum(y * y) + x[0] * y[1])

    def grad_x(x: Vector, y: Vector) -> Vector:
        gradient = 2.0 * (x - 0.7)
        gradient[0] += y[1]
        return sign * gradient

    def grad_y(x: Vector, y: Vector) -> Vector:
        gradient = 2.0 * y
        gradient[1] += x[0]
        return sign * gradient

    leader = leader_from_functions(value, grad_x, grad_y)
    start = np.array([1.5, -0.4, 0.9])
    return Problem(leader, lambda x: np.abs(mix @ x - 0.1), start, Box(-1.0, 2.0), sense, "a small kinked problem")


def answer(problem: Problem, query: Query) -> Vector:
    """Return the follower's answer to one query, through an oracle; noise depends on the query's address alone."""
    (response,) = Oracle(problem.follower).answer([query])
    return response.y


def play(
    problem: Problem,
    solver: AnySolver,
    *,
    steps: int = STEPS,
    seed: int = 0,
    order: Callable[[list[Query]], Iterable[Query]] = list,
    fails: Callable[[Query], bool] = lambda query: False,
) -> tuple[Study, list[Query], list[Record]]:
    """Run a study by hand, telling answers in ``order`` and failing where ``fails``; return it with what was asked."""
    study = Study(problem.known(), solver, seed=seed, steps=steps, monitor=False)
    asked: list[Query] = []
    records: list[Record] = []
    while not study.done:
        queries = study.ask()
        asked += queries
        for query in order(queries):
            _require(
                bool(np.isfinite(query.x).all()),
                f"query {query.step}.{query.index} is at {query.x}: expected a finite point",
            )
            record = study.fail(query, "on purpose") if fails(query) else study.tell(query, answer(problem, query))
            if record is not None:
                records.append(record)
    return study, asked, records


def check_solver(solver: AnySolver, problem: Problem | None = None) -> None:
    """Check every law of this module; ``problem`` defaults to :func:`small_problem`."""
    problem = small_problem() if problem is None else problem
    for law in LAWS:
        law(solver, problem)


def check_ask_is_idempotent(solver: AnySolver, problem: Problem) -> None:
    """Asking twice gives the same queries; an answered query is no longer open."""
    study = Study(problem.known(), solver, steps=STEPS, monitor=False)
    while not study.done:
        first, second = study.ask(), study.ask()
        _require_same_queries(first, second, "ask() twice")
        for count, query in enumerate(first, start=1):
            study.tell(query, answer(problem, query))
            if count < len(first):
                _require_same_queries(study.ask(), first[count:], "ask() after some answers")


def check_order_does_not_matter(solver: AnySolver, problem: Problem) -> None:
    """Answers told in reverse order give the same bits."""
    study, asked, _ = play(problem, solver)
    other, asked_again, _ = play(problem, solver, order=lambda queries: reversed(queries))
    _require_same_queries(asked, asked_again, "answers told in reverse")
    _require(_same(study.state.x, other.state.x), "answers told in reverse give another iterate")


def check_same_seed_same_run(solver: AnySolver, problem: Problem) -> None:
    """Two runs with one seed have the same bits; nothing is kept in the solver between runs."""
    play(problem, solver, seed=5, steps=2)
    _, asked, records = play(problem, solver, seed=11)
    _, asked_again, records_again = play(problem, solver, seed=11)
    _require_same_queries(asked, asked_again, "the same seed")
    rows = [_bits(record) for record in records]
    _require(rows == [_bits(record) for record in records_again], "the same seed gives other records")


def check_rebuilt_from_any_prefix(solver: AnySolver, problem: Problem) -> None:
    """A study rebuilt from the first answers of a run asks, bit for bit, what the run asked next."""
    _, asked, _ = play(problem, solver)
    answers = [answer(problem, query) for query in asked]
    for kept in range(len(asked)):
        study = Study(problem.known(), solver, steps=STEPS, monitor=False)
        for query, y in zip(asked[:kept], answers[:kept], strict=True):
            study.ask()
            study.tell(query, y)
        following = study.ask()
        _require_same_queries(following, asked[kept : kept + len(following)], f"a rebuild from {kept} answers")


def check_tell_is_pure(solver: AnySolver, problem: Problem) -> None:
    """``ask`` and ``tell`` change neither state, plan nor answers, and give the same bits when called again."""
    task = Task(problem.known(), Keys(3))
    state = solver.init(task)
    for step in range(STEPS):
        if solver.stop(task, state) is not None:
            return
        plan = solver.ask(task, state)
        answers = [answer(problem, Query(step, index, x)) for index, x in enumerate(plan.points)]
        watched = [state.x, *plan.points, *answers]
        copies = [array.copy() for array in watched]
        for y in answers:
            y.flags.writeable = False
        after, outcome = solver.tell(task, state, plan, answers)
        again, outcome_again = solver.tell(task, state, plan, answers)
        _require(_all_same(watched, copies), "tell() wrote into the state, the plan or an answer")
        _require(_same(after.x, again.x), "tell() twice on one state gives different iterates")
        _require(_same(outcome.x, outcome_again.x), "tell() twice on one state gives different outcomes")
        _require_same_points(plan, solver.ask(task, state), "ask() after tell() on the old state")
        _require_same_points(solver.ask(task, after), solver.ask(task, again), "ask() on equal states")
        state = after


def check_never_sees_the_follower(solver: AnySolver, problem: Problem) -> None:
    """The run works without the follower at hand, and only answered queries are counted."""
    task = Task(problem.known(), Keys(0))
    held = task.known.follower  # what they are called, not they themselves
    _require(not callable(held) and not isinstance(held, Follower), "the solver's task holds the follower")
    study, asked, _ = play(problem, solver)
    _require(study.queries == len(asked), f"{study.queries} queries counted, {len(asked)} asked")


def check_iterates_stay_in_the_domain(solver: AnySolver, problem: Problem) -> None:
    """Every iterate lies in the leader's set."""
    study, _, records = play(problem, solver, steps=4 * STEPS)
    for x in [*(record.x for record in records), study.state.x]:
        _require(problem.domain.contains(x, 1e-9), f"an iterate left the domain: {x}")


def check_failures_are_survived(solver: AnySolver, problem: Problem) -> None:
    """Failed queries, single, many or all, leave a run that goes on at finite points of the domain."""
    patterns: Sequence[Callable[[Query], bool]] = (
        lambda query: query.index == 0 and query.step == 1,
        lambda query: query.index > 0 and query.step == 2,
        lambda query: (query.step + query.index) % 2 == 0,
        lambda query: True,
    )
    for fails in patterns:
        study, asked, _ = play(problem, solver, fails=fails)
        x = study.state.x
        _require(bool(np.isfinite(x).all()), f"failed queries led to {x}")
        _require(problem.domain.contains(x, 1e-9), f"failed queries led out of the domain, to {x}")
        _require(study.failures == sum(map(fails, asked)), "not every failure was counted")


def check_domain(domain: Domain, dimension: int, *, points: int = 30, scale: float = 3.0) -> None:
    """Check that a set of the user's own is one: it projects onto itself, to the nearest point, and is convex.

    Points up to ``scale`` away from the projection of 0 are tried; what they do not show is not found.
    """
    _require(domain.faults(dimension) == [], f"the set refuses dimension {dimension}: {domain.faults(dimension)}")
    generator = Keys(0).generator(Role.INSTANCE)
    around = domain.project(np.zeros(dimension))
    sizes = (0.03 * scale, 0.3 * scale, scale)
    tried = [around + sizes[k % 3] * generator.standard_normal(dimension) for k in range(points)]
    nearest = []
    for x in tried:
        kept = x.copy()
        p = domain.project(x)
        _require(_same(x, kept), "project() wrote into its argument")
        _require(domain.contains(p, 1e-9), f"the projection of {x} is not in the set: {p}")
        _require(bool(np.abs(domain.project(p) - p).max() <= 1e-8 * scale), f"a point of the set was moved: {p}")
        nearest.append(p)
    for x, p in zip(tried, nearest, strict=True):
        for z in nearest:
            _require(
                float((x - p) @ (z - p)) <= 1e-6 * scale**2,
                f"project({x}) = {p} is not the nearest point, or the set is not convex: see {z}",
            )


#: Every law, in the order in which :func:`check_solver` tries them; for parametrised tests.
LAWS: tuple[Callable[[AnySolver, Problem], None], ...] = (
    check_ask_is_idempotent,
    check_order_does_not_matter,
    check_same_seed_same_run,
    check_rebuilt_from_any_prefix,
    check_tell_is_pure,
    check_never_sees_the_follower,
    check_iterates_stay_in_the_domain,
    check_failures_are_survived,
)


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise LawBroken(broken)


def _same(a: Vector, b: Vector) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _all_same(some: Sequence[Vector], others: Sequence[Vector]) -> bool:
    return len(some) == len(others) and all(_same(a, b) for a, b in zip(some, others, strict=True))


def _bits(record: Record) -> tuple[bytes, bytes]:
    """Return a record's bits without the wall time."""
    numbers = (record.queries, record.value, record.gradient_norm_squared, record.step_size)
    return record.x.tobytes(), np.array(numbers, dtype=np.float64).tobytes()


def _require_same_points(plan: Plan, other: Plan, when: str) -> None:
    _require(_all_same(plan.points, other.points), f"{when}: the planned points differ")


def _require_same_queries(some: Sequence[Query], others: Sequence[Query], when: str) -> None:
    addresses = [(query.step, query.index, query.purpose) for query in some]
    if addresses != [(query.step, query.index, query.purpose) for query in others]:
        raise LawBroken(f"{when}: other queries were asked ({len(some)} and {len(others)})")
    _require(_all_same([q.x for q in some], [q.x for q in others]), f"{when}: the queried points differ")
