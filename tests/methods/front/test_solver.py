"""The front of costs whose front is known: reached, concave parts too; and a study like any other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from durable_problem import bits
from pzos.methods.front.costs import total
from pzos.study.front import front_of
from pzos.testing import LAWS, small_problem

BOX = pzos.Box(-2.0, 2.0)


def follower(x: np.ndarray) -> np.ndarray:
    """A bijection: what the costs say of y holds for some x."""
    return np.tanh(x) + 0.5 * x


def distance(goal: np.ndarray, name: str) -> pzos.Leader:
    return pzos.leader_from_functions(
        lambda x, y: float(((y - goal) ** 2).sum()), lambda x, y: 0 * x, lambda x, y: 2 * (y - goal), name=name
    )


def concave(goal: np.ndarray, name: str) -> pzos.Leader:
    """1 - exp(-|y - goal|^2), as of Fonseca and Fleming: two of them have a concave front."""
    return pzos.leader_from_functions(
        lambda x, y: float(1.0 - np.exp(-((y - goal) ** 2).sum())),
        lambda x, y: 0 * x,
        lambda x, y: 2.0 * (y - goal) * np.exp(-((y - goal) ** 2).sum()),
        name=name,
    )


A, B = np.array([0.7, 0.7]), np.array([-0.7, -0.7])


def problem(leader: pzos.Leader) -> pzos.Problem:
    return pzos.Problem(leader, follower, np.array([0.5, -0.5]), BOX, name="two goals")


def test_the_front_of_two_distances_is_the_segment_between_the_goals() -> None:
    costs = [distance(A, "a"), distance(B, "b")]
    front = pzos.front(problem(costs[0]), costs, queries=40)
    length = float(((A - B) ** 2).sum())
    t = np.linspace(0.0, 1.0, 400)
    true = length * np.stack([t**2, (1 - t) ** 2], axis=1)
    reference = [length, length]
    best = pzos.methods.front.costs.hypervolume(true, np.array(reference))  # type: ignore[attr-defined]
    assert front.hypervolume(reference) > 0.95 * best
    assert np.allclose(front.points, [[c.value(x, y) for c in costs] for x, y in zip(front.decisions, front.responses,
                                                                                  strict=True)])  # fmt: skip
    assert (np.diff(front.points[:, 0]) > 0).all()
    assert (np.diff(front.points[:, 1]) < 0).all()
    assert front.result.queries == 40
    assert front.knees.size
    assert "knee" in repr(front)


def test_concave_parts_are_reached() -> None:
    costs = [concave(0.7 * A, "a"), concave(0.7 * B, "b")]
    front = pzos.front(problem(costs[0]), costs, queries=40)
    scaled = front.points / front.points.max(axis=0)
    middle = (scaled > 0.3).all(axis=1)
    assert middle.sum() >= 5, "a weighted sum finds the two ends alone"


def test_a_cost_may_go_up() -> None:
    costs = [distance(A, "a"), distance(B, "b")]
    up = pzos.leader_from_functions(
        lambda x, y: -costs[1].value(x, y), lambda x, y: 0 * x, lambda x, y: -costs[1](x, y).grad_y, name="minus b"
    )
    down = pzos.front(problem(costs[0]), costs, queries=12)
    turned = pzos.front(problem(costs[0]), [costs[0], up], senses=["min", "max"], queries=12)
    assert np.array_equal(turned.points, down.points * [1.0, -1.0])


def test_three_costs() -> None:
    costs = [distance(goal, name) for goal, name in ((A, "a"), (B, "b"), (np.array([0.7, -0.7]), "c"))]
    front = pzos.front(problem(costs[0]), costs, queries=25)
    assert front.points.shape[1] == 3
    assert len(front) >= 10
    assert front.hypervolume() > 0.0


def study(path: Path | None, queries: int, order: str = "asked", **settings: Any) -> Any:
    solver = pzos.FrontSolver((distance(A, "a"), distance(B, "b")), **settings)
    known = problem(total(solver.leaders, solver.signs)).known()
    if path is None:
        return pzos.Study(known, solver, queries=queries, order=order)
    return pzos.Study.open(path, known, solver, queries=queries, order=order)


def drive(opened: Any) -> Any:
    for _ in pzos.iterate(opened, pzos.Oracle(follower)):
        pass
    return opened


@pytest.mark.parametrize("batch", [1, 3])
def test_a_front_is_durable_and_the_same_bits_by_ask_and_tell(tmp_path: Path, batch: int) -> None:
    whole = drive(study(None, 9, batch=batch))
    by_hand = study(None, 9, batch=batch)
    while not by_hand.done:
        for query in reversed(by_hand.ask()):
            by_hand.tell(query, follower(query.x))
    assert bits(by_hand.result()) == bits(whole.result())
    with study(tmp_path / "front.study", 5, batch=batch) as begun:
        drive(begun)
    with study(tmp_path / "front.study", 9, batch=batch) as resumed:
        drive(resumed)
        assert bits(resumed.result()) == bits(whole.result())
        assert np.array_equal(front_of(resumed).points, front_of(whole).points)


def test_a_batch_asks_for_different_points() -> None:
    opened = study(None, 40, batch=4)
    sizes = []
    while not opened.done:
        queries = opened.ask()
        sizes.append(len(queries))
        assert len({query.x.tobytes() for query in queries}) == len(queries)
        for query in queries:
            opened.tell(query, follower(query.x))
    assert max(sizes) == 4


def test_a_front_asks_as_many_at_a_time_as_there_are_workers(tmp_path: Path) -> None:
    costs = [distance(A, "a"), distance(B, "b")]
    with ThreadPoolExecutor(4) as threads:
        found = pzos.front(problem(costs[0]), costs, queries=13, executor=threads, path=tmp_path / "front.study")
        asked = [query.step for query, _ in found.result.told or ()]
        assert max(asked.count(step) for step in asked) == 4
    alone = pzos.front(problem(costs[0]), costs, queries=13, batch=4)
    assert np.array_equal(found.points, alone.points)
    again = pzos.front(
        problem(costs[0]), costs, queries=13, path=tmp_path / "front.study"
    )  # batches are as in the file
    assert np.array_equal(found.points, again.points)
    with pytest.raises(pzos.InvalidInput, match="workers = 0"):
        pzos.front(problem(costs[0]), costs, workers=0)


# ---- answers in any order ---------------------------------------------------------------------------------------


def answer_some(opened: Any, workers: int, seed: int, answers: int = 100) -> list[bytes]:
    """Answer queries in a random order, ``workers`` being open at a time; returns the points that were answered."""
    rng, told, waiting = np.random.default_rng(seed), [], opened.ask()
    for _ in range(answers):
        while len(waiting) < workers and (query := opened.ask_one()) is not None:
            waiting.append(query)
        if not waiting:
            break
        query = waiting.pop(int(rng.integers(len(waiting))))
        opened.tell(query, follower(query.x))
        told.append(query.x.tobytes())
    return told


def test_one_at_a_time_there_is_only_one_order() -> None:
    told = drive(study(None, 9, order="told"))
    assert told.order == "told"
    assert np.array_equal(front_of(told).points, front_of(drive(study(None, 9))).points)


@pytest.mark.parametrize("cut", [2, 9])
def test_a_killed_front_goes_on_in_any_order_and_replays_to_the_same_bits(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "front.study"
    begun = study(path, 14, order="told")
    told = answer_some(begun, 4, 0, cut)
    out, known = {query.x.tobytes() for query in begun.ask()}, begun.state.costs.tobytes()
    begun.journal._finalizer()  # killed: the lock goes with the process
    with study(path, 14, order="told") as again:
        assert again.state.costs.tobytes() == known
        assert {query.x.tobytes() for query in again.ask()} <= out
        more = answer_some(again, 3, 1)
        assert len(set(told + more)) == 14
        front = front_of(again)
    with study(path, 14, order="told") as once_more:
        assert front_of(once_more).points.tobytes() == front.points.tobytes()
        assert once_more.done


def test_open_queries_of_a_front_are_different_points_for_different_weights() -> None:
    opened = study(None, 60, order="told")
    answer_some(opened, 8, 0, 28)
    points = [query.x for query in opened.ask()]
    assert len({x.tobytes() for x in points}) == len(points) == 7
    assert len({issued.plan.track for issued in opened._out.values()}) >= 4


def test_answers_that_come_before_the_one_at_the_start_are_on_the_front() -> None:
    opened = study(None, 20, order="told")
    first, *blind = [opened.ask_one() for _ in range(4)]
    for query in blind:
        opened.tell(query, follower(query.x))
    assert len(opened.state.points) == 3
    assert front_of(opened).points.size
    opened.tell(first, follower(first.x))
    assert opened.state.shared.past.count > 1
    answer_some(opened, 3, 0)
    assert opened.result().queries == 20


def test_an_answer_that_is_taken_back_leaves_the_later_ones_known(tmp_path: Path) -> None:
    with study(tmp_path / "front.study", 20, order="told") as opened:
        answer_some(opened, 3, 0, 9)
        learned = opened.state.shared.past.count
        opened.withdraw(pzos.Response(4, 0, np.empty(0)), "a typing error")
        wrong = next(query for query in opened.ask() if query.step == 4)
        opened.tell(wrong, follower(wrong.x))
        assert len(opened.state.points) == 9
        assert opened.state.shared.past.count == learned
        assert opened.queries < 9  # the others were set aside, not forgotten


@pytest.mark.parametrize("order", ["asked", "told"])
def test_a_start_that_always_fails_ends_the_front(order: str) -> None:
    opened = study(None, 20, order=order)
    while not opened.done:
        for query in opened.ask():
            opened.fail(query, "out of order")
    assert opened.stop is pzos.Stop.FAILURES
    assert 5 <= opened.result().failures <= 6  # by batches F at the end is asked for as well


def test_no_worker_of_a_front_waits_for_another(tmp_path: Path) -> None:
    costs, path = [distance(A, "a"), distance(B, "b")], tmp_path / "front.study"
    with ThreadPoolExecutor(4) as threads:
        found = pzos.front(problem(costs[0]), costs, queries=13, executor=threads, order="told", path=path)
    assert [query.index for query, _ in found.result.told or ()] == [0] * 13
    again = pzos.front(problem(costs[0]), costs, queries=13, order="told", path=path)
    assert np.array_equal(found.points, again.points)
    with pytest.raises(pzos.DifferentStudy, match="order"):
        pzos.front(problem(costs[0]), costs, queries=13, path=path)
    with pytest.raises(pzos.InvalidInput, match="order = 'any'"):
        pzos.front(problem(costs[0]), costs, order="any")  # type: ignore[arg-type]


def test_a_front_begins_with_what_is_known() -> None:
    costs = [distance(A, "a"), distance(B, "b")]
    first = pzos.front(problem(costs[0]), costs, queries=12)
    more = pzos.front(problem(costs[0]), costs, queries=4, answers=first.result.answers)
    assert more.result.queries == 4
    assert more.hypervolume([4.0, 4.0]) >= first.hypervolume([4.0, 4.0])
    assert len(more.result.answers) == 16


def test_a_failing_follower_is_gone_on_without() -> None:
    def sometimes(x: np.ndarray) -> np.ndarray:
        if x[0] < 0.0:  # where much of the front is
            raise RuntimeError("out of order")
        return follower(x)

    costs = [distance(A, "a"), distance(B, "b")]
    game = pzos.Problem(costs[0], sometimes, np.array([0.5, -0.5]), BOX)
    front = pzos.front(game, costs, queries=12, tolerance=pzos.Tolerance(policy="drop"))
    assert front.result.failures > 0
    assert len(front) > 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"leaders": (distance(A, "a"),)}, "two or three leaders"),
        ({"leaders": (distance(A, "a"), distance(B, "b")), "senses": ("min",)}, "2 of them"),
        ({"leaders": (distance(A, "a"), distance(B, "b")), "senses": ("min", "up")}, "senses = 'up'"),
        ({"leaders": (distance(A, "a"), distance(B, "b")), "weights": 1, "batch": 0}, "2 faults"),
    ],
)
def test_what_is_no_front_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(pzos.InvalidInput, match=words):
        pzos.FrontSolver(**settings)


def test_other_studies_have_no_front() -> None:
    plain = pzos.Study(problem(distance(A, "a")).known(), pzos.CompositeTrustRegion())
    with pytest.raises(pzos.InvalidInput, match="a study of a FrontSolver"):
        front_of(plain)
    with pytest.raises(pzos.InvalidInput, match="an answered query"):
        front_of(study(None, 4))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("check_"))
def test_law(law: Any) -> None:
    problem = small_problem()
    law(pzos.FrontSolver((problem.leader, distance(np.zeros(1), "effort"))), problem)
