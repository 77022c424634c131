"""The followers' door: plain, batched and seeded callables, copies for user code, conversions, clear errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pzos
from instances import D_Y, LEADER, START, iterates, noisy, problem, response, responses
from pzos.base.errors import FollowerFailure, InvalidAnswer, InvalidInput
from pzos.base.types import Query
from pzos.problem.follower import BatchedFollower, PlainFollower, Respondent, as_follower


def run(follower: Any, steps: int = 6, seed: int = 0, **settings: Any) -> Any:
    task = problem(follower)
    study = pzos.Study(task.known(), pzos.PZOS(step=0.02, radius=0.1), steps=steps, seed=seed, **settings)
    return iterates(study, pzos.Oracle(task.follower, seed=seed))


def test_user_code_gets_copies_and_may_write_into_x() -> None:
    def careless(x: Any) -> Any:
        y = response(x)
        x[:] = np.nan
        return y

    def careless_rows(rows: Any) -> Any:
        y = responses(rows)
        rows[:] = np.nan
        return y

    def careless_noise(x: Any, generator: Any) -> Any:
        y = noisy(x, generator)
        x[:] = np.nan
        return y

    np.testing.assert_array_equal(run(careless), run(response))
    np.testing.assert_array_equal(run(pzos.batched(careless_rows)), run(pzos.batched(responses)))
    np.testing.assert_array_equal(run(pzos.seeded(careless_noise)), run(pzos.seeded(noisy)))


def test_a_follower_may_reuse_its_output_buffer() -> None:
    buffer, rows = np.empty(D_Y), np.empty((3, D_Y))

    def frugal(x: Any) -> Any:
        buffer[:] = response(x)
        return buffer

    def frugal_rows(points: Any) -> Any:
        rows[: len(points)] = responses(points)
        return rows[: len(points)]

    np.testing.assert_array_equal(run(frugal), run(response))
    np.testing.assert_array_equal(run(pzos.batched(frugal_rows)), run(pzos.batched(responses)))
    np.testing.assert_array_equal(run(lambda x: pzos.Answer(frugal(x), 0.0)), run(response))


@pytest.mark.parametrize(
    "convert",
    [list, tuple, lambda y: np.asarray(y).astype(object), lambda y: pzos.Answer(list(y)), np.ma.asarray],
    ids=["list", "tuple", "objects", "answer", "subclass"],
)
def test_answers_are_converted_at_the_door(convert: Any) -> None:
    np.testing.assert_array_equal(run(lambda x: convert(response(x))), run(response))


def test_ints_and_float32_become_float64_and_a_number_is_a_vector_of_one() -> None:
    query = Query(0, 0, START)
    for returned, expected in ((3, [3.0]), ([1, 2], [1.0, 2.0]), (np.float32([0.5, 0.25]), [0.5, 0.25])):
        (given,) = pzos.Oracle(lambda x, returned=returned: returned).answer([query])
        assert given.y.dtype == np.float64
        assert given.y.tolist() == expected


def test_gaps_and_seconds_are_reported() -> None:
    query = Query(2, 1, START)
    (given,) = pzos.Oracle(lambda x: pzos.Answer(x, 1e-7)).answer([query])
    assert (given.step, given.index, given.gap) == (2, 1, 1e-7)
    assert given.seconds >= 0
    (given,) = pzos.Oracle(lambda x: x).answer([query])
    assert np.isnan(given.gap)
    batched = pzos.batched(lambda rows: pzos.Answer(rows, [0.1 * (i + 1) for i in range(len(rows))]))
    assert [r.gap for r in pzos.Oracle(batched).answer([query, query])] == [0.1, 0.2]
    same = pzos.batched(lambda rows: pzos.Answer(rows, 0.5))
    assert [r.gap for r in pzos.Oracle(same).answer([query, query])] == [0.5, 0.5]


def test_batched_followers_see_the_whole_batch_once_a_step() -> None:
    shapes: list[tuple[int, ...]] = []

    def watched(rows: Any) -> Any:
        shapes.append(rows.shape)
        return responses(rows)

    run(pzos.batched(watched), steps=2, monitor=False)
    assert shapes == [(3, 5), (3, 5)]
    with ThreadPoolExecutor(2) as pool:
        list(pzos.Oracle(pzos.batched(watched), executor=pool).answer([Query(0, i, START) for i in range(4)]))
    assert shapes[-1] == (4, 5)


def test_noise_is_a_function_of_the_address() -> None:
    queries = [Query(4, index, START) for index in range(3)]
    forward = {r.index: r.y for r in pzos.Oracle(pzos.seeded(noisy), seed=5).answer(queries)}
    backward = {r.index: r.y for r in pzos.Oracle(pzos.seeded(noisy), seed=5).answer(queries[::-1])}
    for index in range(3):
        np.testing.assert_array_equal(forward[index], backward[index])
    assert not np.array_equal(forward[0], forward[1])
    other = {r.index: r.y for r in pzos.Oracle(pzos.seeded(noisy), seed=6).answer(queries)}
    assert not np.array_equal(forward[0], other[0])


def test_common_random_numbers_cancel_in_differences() -> None:
    queries = [Query(4, index, START) for index in range(3)]
    same = [r.y for r in pzos.Oracle(pzos.seeded(noisy, common=True), seed=5).answer(queries)]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])
    (later,) = pzos.Oracle(pzos.seeded(noisy, common=True), seed=5).answer([Query(5, 0, START)])
    assert not np.array_equal(same[0], later.y)

    def gradient_noise(common: bool) -> float:
        task = pzos.Problem(LEADER, pzos.seeded(noisy, common=common), START)
        solver = pzos.PZOS(step=1e-9, radius=1e-3)
        return float(pzos.solve(task, solver, steps=100, monitor=False).trace["gradient_norm_squared"].mean())

    assert gradient_noise(common=False) > 10 * gradient_noise(common=True)


def test_seeded_followers_need_an_oracle() -> None:
    with pytest.raises(FollowerFailure, match="asked without a generator; ask it through an Oracle"):
        pzos.seeded(noisy).respond(START, None)


@pytest.mark.parametrize(
    ("follower", "kind", "message"),
    [
        (lambda x: None, FollowerFailure, r"query 0\.0: the follower returned None: expected a vector of numbers"),
        (lambda x: "much", FollowerFailure, r"query 0\.0: the follower returned 'much': expected a vector"),
        (lambda x: x * 1j, FollowerFailure, r"complex128.*return a 1-D array"),
        (lambda x: [[1.0], [2.0, 3.0]], FollowerFailure, r"query 0\.0: the follower returned .*expected a vector"),
        (lambda x: pzos.Answer(x, None), FollowerFailure, r"query 0\.0: the follower reported gap = None"),
        (lambda x: np.full(3, np.nan), InvalidAnswer, r"query 0\.0: y\[0\] = nan: expected finite numbers; repair"),
        (lambda x: np.array([1.0, np.inf]), InvalidAnswer, r"query 0\.0: y\[1\] = inf: expected finite numbers"),
        (lambda x: np.ones((2, 2)), InvalidAnswer, r"query 0\.0: y has shape \(2, 2\): expected a vector"),
        (lambda x: [], InvalidAnswer, r"query 0\.0: y has shape \(0,\): expected a vector"),
        (
            lambda x: 1 / 0,
            FollowerFailure,
            r"failed on query 0\.0 \(step\.index\) at x = .*: ZeroDivisionError: .*by hand",
        ),
        (
            pzos.batched(lambda rows: rows[:1]),
            FollowerFailure,
            r"shape \(1, 5\) for 3 queries: expected one row",
        ),
        (
            pzos.batched(lambda rows: rows[0]),
            FollowerFailure,
            r"query 0\.0, 0\.1, 0\.2: batched follower: returned",
        ),
        (pzos.batched(lambda rows: 1 / 0), FollowerFailure, r"on query 0\.0, 0\.1, 0\.2 .*ZeroDivisionError"),
    ],
)
def test_faulty_answers_name_the_query(follower: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        pzos.solve(problem(follower), pzos.PZOS(), steps=2)


def test_a_changing_length_is_an_error() -> None:
    def growing(x: Any) -> Any:
        growing.calls += 1  # type: ignore[attr-defined]
        return np.ones(4 if growing.calls <= 4 else 5)  # type: ignore[attr-defined]

    growing.calls = 0  # type: ignore[attr-defined]
    with pytest.raises(InvalidAnswer, match=r"query 1\.1: y has 5 entries: expected 4, as in earlier answers"):
        pzos.solve(problem(growing), pzos.PZOS(), steps=3)


def test_the_cause_of_a_failure_is_kept() -> None:
    with pytest.raises(FollowerFailure) as caught:
        pzos.solve(problem(lambda x: {}["missing"]), pzos.PZOS(), steps=2)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("door", [pzos.batched, pzos.seeded, as_follower])
def test_a_non_callable_is_named(door: Any) -> None:
    with pytest.raises(InvalidInput, match="follower = 3: expected a function x -> y; pass the function itself"):
        door(3)


def test_one_at_a_time_or_all_at_once_the_answers_are_the_same() -> None:
    points = [START, 2.0 * START]
    plain, rows = as_follower(response), pzos.batched(responses)
    np.testing.assert_array_equal(plain.respond_all(points), [response(x) for x in points])
    one = rows.respond(START, None)
    assert isinstance(one, pzos.Answer)
    np.testing.assert_array_equal(one.y, responses(START[None])[0])
    assert (plain.batched, plain.seeded, plain.common) == (False, False, False)
    assert (rows.batched, rows.seeded) == (True, False)
    assert pzos.seeded(noisy, common=True).common


def test_a_respondent_gives_each_answer_with_its_own_certificate() -> None:
    game = Respondent(lambda rows: (responses(rows), np.arange(1.0, len(rows) + 1)))
    assert game.batched
    answers = game.respond_all([START, START + 1.0])
    assert [answer.gap for answer in answers] == [1.0, 2.0]
    assert all(type(answer.gap) is float for answer in answers)
    assert game.respond(START, None).gap == 1.0
    assert [r.gap for r in pzos.Oracle(game).answer([Query(0, 0, START), Query(0, 1, START)])] == [1.0, 2.0]


def test_what_is_a_follower_already_stays_itself() -> None:
    for follower in (pzos.batched(responses), pzos.seeded(noisy), Respondent(lambda rows: (rows, rows[:, 0]))):
        assert as_follower(follower) is follower
    assert isinstance(as_follower(response), PlainFollower)
    assert isinstance(pzos.batched(responses), BatchedFollower)
